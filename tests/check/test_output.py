"""The four forms of a verdict: stable keys, valid documents, and nothing of a path or a config that is obeyed."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console
from tests.check.plans import DFLASH, PlanFolder, dflash_tensors, write_checkpoint

from specbudget.check.output.as_json import render_json
from specbudget.check.output.as_junit import render_junit
from specbudget.check.output.as_markdown import render_markdown
from specbudget.check.output.as_text import print_text
from specbudget.check.output.words import amount, printable
from specbudget.check.report import TEXTS, Report
from specbudget.cli import main
from specbudget.domain.finding import CheckResult

KEYS = {"id", "verdict", "required", "message", "value", "limit", "unit", "class"}
NASTY = "a|b`c*<img src=x>&amp;\x1b[31m\n\r\u202e#@team_[x](y)"

BAD: dict[str, Any] = {
    "budget__artifacts": {"target": "1MiB", "image": "2MiB"},
    "budget__kv": {"min_target_tokens": 330_000, "drafter": "1GiB"},
    "budget__acceptance": {"target_length": 2.0, "reference": "nowhere.json"},
    "budget__staging": {"mode": "overlap", "cold_start": "90s", "storage_bandwidth": "1MB/s"},
}
"""A plan with a fail, a warning, a required unknown and others on its lines."""


def printed(report: Report, *, width: int = 120, terminal: bool = False, verbose: bool = False) -> str:
    """The text form on a console of that width."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, highlight=False)
    print_text(report, verbose=verbose, console=console)
    return file.getvalue()


def nasty(plans: PlanFolder) -> PlanFolder:
    """A drafter whose folder and class have names that no form may obey."""
    config = {**DFLASH, "architectures": [f"X{NASTY}"], "dflash_config": {"mask_token_id": 5000}}
    write_checkpoint(plans.folder / NASTY, config, dflash_tensors())
    (plans.folder / NASTY / "model.safetensors").write_bytes(b"x")
    return plans


@pytest.mark.parametrize("budget", [{}, BAD])
def test_json_has_its_keys_and_finite_numbers(plans: PlanFolder, budget: dict[str, Any]) -> None:
    """Every finding has the same keys, `low` and `high` come together, units and classes are of closed sets."""
    document = json.loads(
        render_json(plans.judge(**budget).report), parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
    )
    assert list(document) == ["verdict", "lines"]
    assert [line["line"] for line in document["lines"]] == ["artifacts", "kv", "acceptance", "staging", "codesign"]
    for line in document["lines"]:
        assert list(line) == ["line", "budgeted", "verdict", "findings"]
        for finding in line["findings"]:
            assert KEYS <= set(finding) <= KEYS | {"low", "high"}
            assert ("low" in finding) == ("high" in finding)
            assert finding["id"].split(".")[0] == line["line"]
            assert finding["verdict"] in set(CheckResult)
            assert finding["class"] in {"exact", "from_log", "estimate", None}
            assert isinstance(finding["value"], int | float | str | None)
            if isinstance(finding["value"], int | float):
                assert finding["class"] is not None
                assert finding["unit"] is None or finding["unit"]
                assert math.isfinite(finding["value"])


def test_json_keeps_what_has_no_bound_valid(plans: PlanFolder) -> None:
    """A quantile beyond the last one that was measured has no upper end: null, not Infinity."""
    (plans.folder / "bench.json").write_text('{"profiles": {"default": {"length": 4, "quantiles": {"0.01": 3.0}}}}')
    report = plans.judge(budget__acceptance={"target_length": 2.0, "reference": "bench.json"}).report
    told = next(f for line in json.loads(render_json(report))["lines"] for f in line["findings"]
                if f["id"] == "acceptance.unattainable")  # fmt: skip
    assert (told["verdict"], told["low"], told["high"]) == ("pass", 3.0, None)


def test_markdown_obeys_nothing_that_it_quotes(plans: PlanFolder) -> None:
    """Each table row has its cells, and no path makes markup, a mention, an escape or a line of its own."""
    report = nasty(plans).judge(drafter__path=NASTY, **BAD).report
    text = render_markdown(report)
    assert not [char for char in text if not char.isprintable() and char not in "\n\u200b"]
    assert "<img" not in text.replace("\\<", "")
    assert "@team" not in text
    for line in text.splitlines():
        if line.startswith("| ") and "---" not in line:
            assert line.replace("\\|", "").count("|") in (4, 5)
    for trouble in (f for f in report.counted if f.result is not CheckResult.PASS):
        assert f"`{trouble.id}`" in text


def test_markdown_of_a_plan_that_passes_has_nothing_to_do(plans: PlanFolder) -> None:
    """Five lines and the numbers; lines that are not budgeted are shown as such."""
    text = render_markdown(plans.judge(budget__kv={"min_target_tokens": 1000}).report)
    assert "## specbudget: `chat` ✅ pass" in text
    assert "| Acceptance | not budgeted | |" in text
    assert "| ✅ | `kv.min_target_tokens` | 335,050 | 1,000 |" in text


def test_junit_is_a_document_whose_counts_are_true(plans: PlanFolder) -> None:
    """One suite per budgeted line, one case per finding; fail, required unknown and other unknown are told apart."""
    report = nasty(plans).judge(drafter__path=NASTY, engine__request_log=None, **BAD).report
    root = Xml.fromstring(render_junit(report))
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == [line.line.id for line in report.lines if line.budgeted]
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(count) == str(len([case for case in cases if case.find(kind) is not None]))
    assert {case.get("name") for case in root.iter("testcase")} == {finding.check for finding in report.counted}
    assert root.find(".//failure") is not None
    assert root.find(".//error") is not None
    assert root.find(".//skipped") is not None
    assert any((case.text or "").startswith("warning: ") for case in root.iter("system-out"))


def test_text_in_a_pipe_has_no_escape_and_no_blank_at_the_end(plans: PlanFolder) -> None:
    """A log of a pipeline shows it as it is, whatever a path contains."""
    for verbose in (False, True):
        text = printed(nasty(plans).judge(drafter__path=NASTY, **BAD).report, verbose=verbose)
        assert not [char for char in text if not char.isprintable() and char != "\n"]
        assert not [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_text_says_all_of_it_on_any_terminal(plans: PlanFolder, width: int) -> None:
    """Neither signs nor numbers are cut where it is narrow; a sentence that would be squeezed stands below."""
    report = plans.judge(**BAD).report
    text = printed(report, width=width, terminal=True)
    for sign in "✓!✗?":
        assert sign in text
    words = " ".join(printed(report, width=width).split())
    for finding in report.counted:
        if finding.result is CheckResult.FAIL:
            assert finding.message in words


def test_text_tells_each_trouble_once(plans: PlanFolder) -> None:
    """What must be done stands in full once; the line's answer and the row of its numbers name it alone."""
    report = plans.judge(budget__kv={"min_target_tokens": 400_000}).report
    words = " ".join(printed(report).split())
    message = next(finding.message for finding in report.findings if finding.result is CheckResult.FAIL)
    assert words.count(message) == 1
    assert words.index("next steps") < words.index(message)
    assert "nothing to do not known, and not required: codesign." in " ".join(printed(plans.judge().report).split())


LINES_KEPT: dict[str, Any] = {
    "budget__artifacts": {"target": "1GiB", "drafter": "1GiB"},
    "budget__kv": {"min_target_tokens": 300_000, "high_water": 0.9},
    "budget__acceptance": {"target_length": 2.0},
    "budget__staging": {"mode": "prefetch"},
}
SCREEN = 24
"""Lines of the smallest terminal that people still use."""


def test_the_answer_stands_first_and_fits_one_screen(plans: PlanFolder) -> None:
    """Verdict, five lines, the drafter's cost and what to do come before any table."""
    report = plans.judge(**LINES_KEPT).report
    shown = printed(report).splitlines()
    assert shown[0] == f"specbudget check chat  {report.verdict}"
    for line in report.lines:
        (row,) = [text for text in shown[:SCREEN] if text[2:].startswith(line.line.title) and text[0] in "✓!✗?-"]
        assert (line.verdict if line.budgeted else "not budgeted") in row
    first = " ".join(" ".join(shown[:SCREEN]).split())
    assert "the drafter takes 20.0% of the target's token budget" in first
    assert "nothing to do" in first
    assert "█" not in "".join(shown[: shown.index("nothing to do")])


def test_a_line_says_what_decides_it(plans: PlanFolder) -> None:
    """Of a line that does not pass its rules by name, of one that does the budget nearest to its limit."""
    shown = printed(plans.judge(**LINES_KEPT | {"budget__kv": {"min_target_tokens": 400_000}}).report).splitlines()
    assert any(line.startswith("✗ KV pools") and line.endswith("min_target_tokens") for line in shown)
    assert any(line.startswith("✓ Artifacts") and " at most 1.0 GiB" in line for line in shown)


def test_beside_a_failure_what_is_not_known_is_told_by_name(plans: PlanFolder) -> None:
    """A checkpoint that is not there makes many facts unknown: the failure in full, the rest in one line."""
    report = plans.judge(**LINES_KEPT, drafter__path="nowhere").report
    failing = [finding for finding in report.steps if finding.result is CheckResult.FAIL]
    missing = [finding for finding in report.steps if finding.result is CheckResult.UNKNOWN]
    assert failing
    assert len(missing) > 3
    text = printed(report)
    assert all(finding.message in " ".join(text.split()) for finding in failing)
    assert text.count("not known, and required: ") == 1
    assert all(finding.message in " ".join(printed(report, verbose=True).split()) for finding in missing)


def test_verbose_shows_every_finding(plans: PlanFolder) -> None:
    """Nothing that a rule said is left out of it."""
    report = plans.judge(**BAD).report
    text = printed(report, verbose=True)
    for finding in report.findings:
        assert f" {finding.check}" in text
    assert "more findings" not in text
    assert "more findings" in printed(report)


def test_equal_widths_of_a_pair_are_no_limit(plans: PlanFolder) -> None:
    """`hidden_size 64 ≤ 64` would be wrong: the rules of the pair have sentences, no bars."""
    text = printed(plans.judge().report, verbose=True)
    pair = text[text.rindex("Co-design") :]
    assert "both are 64 wide" in pair
    assert "≤" not in pair
    assert "█" not in pair


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}])
def test_colors_are_for_terminals_that_want_them(plans: PlanFolder, environment: dict[str, str]) -> None:
    """A pipe gets none; NO_COLOR is obeyed on a terminal too."""
    command = [sys.executable, "-m", "specbudget", "check", "--budget", str(plans.write(**BAD))]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 1
    assert "\x1b[3" not in done.stdout
    assert done.stderr == ""


def test_a_rule_is_explained(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Question, verdict, number, arithmetic with this plan's numbers, and source."""
    file = plans.write(budget__kv={"min_target_tokens": 300_000})
    assert main(["check", "--budget", str(file), "--explain", "kv.drafter_cost_tokens"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("kv.drafter_cost_tokens\n  What does the drafter cost in target tokens?\n")
    for words in ("20.0%", "value     83,867", "class     exact", "cost: 83,867 tokens = 83,762 KV", "  source    "):
        assert words in told


def test_a_rule_is_explained_by_the_name_in_the_table(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """The table leaves out the line's name; where only one rule is called so, that is enough."""
    assert main(["check", "--budget", str(plans.write()), "--explain", "drafter_cost_tokens"]) == 0
    assert capsys.readouterr().out.startswith("kv.drafter_cost_tokens\n")


@pytest.mark.parametrize("wanted", sorted(TEXTS))
def test_every_rule_can_be_explained(plans: PlanFolder, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it says nothing of this plan; the exit code is the plan's."""
    assert main(["check", "--budget", str(plans.write(**BAD)), "--explain", wanted]) == 1
    told = capsys.readouterr().out
    assert told.startswith(f"{wanted}\n  {TEXTS[wanted].asks}\n")
    assert TEXTS[wanted].source in told


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("kv.drafter_cost", "did you mean kv.drafter_cost_tokens"),
        ("target_complet", "did you mean artifacts.target_complete"),
        ("xyzzy", "known are acceptance.break_even"),
        ("", "known are"),
        ("\x1b[2J", "known are"),
    ],
)
def test_an_id_that_is_none_is_exit_2(
    plans: PlanFolder, wanted: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the nearest ones, and without obeying what was typed."""
    assert main(["check", "--budget", str(plans.write()), "--explain", wanted]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert "\x1b" not in told.err


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (8064, "bytes", "8,064 B"),
        (8_064_000_000, "bytes", "7.5 GiB"),
        (-1024, "bytes", "-1,024 B"),
        (0.717, "ratio", "71.7%"),
        (90.0, "seconds", "90 s"),
        (2.6, "tokens", "2.60"),
        (1_363_707_905, "parameters", "1,363,707,905"),
        (math.inf, "tokens", "no bound"),
        (None, "bytes", ""),
        ("a\x1bb", "", "a?b"),
    ],
)
def test_numbers_in_words(value: float | str | None, unit: str, words: str) -> None:
    """One form everywhere a person reads."""
    assert amount(value, unit) == words


def test_nothing_unprintable_is_printed() -> None:
    """Controls, bidirectional marks, surrogates and line ends become question marks."""
    assert printable("a\x00\x1b\u202e\n\udcff\u2028é漢") == "a??????é漢"
    assert Path(printable("/x/y")) == Path("/x/y")
