"""The runbook: every alert has its paragraph, every link leads somewhere, every query and every command is true."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from generate.acceptance_cases import traffic
from generate.promtool import failures, run
from generate.rule_cases import SETTINGS, Case
from generate.test_rules_fire import written
from generate.test_rules_text import NAMES
from specbudget.budget.model import Budget
from specbudget.budget.reading import load_budget
from specbudget.catalog.alerts import ALERTS, AlertDef
from specbudget.catalog.alerts.burn import FAST_BURN, SLOW_BURN
from specbudget.catalog.causes import CAUSES
from specbudget.catalog.engine_words import ENGINES
from specbudget.catalog.lines import LINES
from specbudget.catalog.promql import Clause, Condition
from specbudget.catalog.recording import record_groups
from specbudget.catalog.sets import Suspect
from specbudget.check.report import TEXTS
from specbudget.cli import _parser, main
from specbudget.domain.time_to_page import seconds_to_page
from specbudget.generate.rule_budget import rule_settings
from specbudget.generate.rules import alerting_rules, files
from specbudget.generate.runbook import RUNBOOK, render
from specbudget.generate.runbook.launch import launch
from specbudget.generate.runbook.markdown import anchor
from specbudget.generate.runbook.paging import CADENCE

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "budget.yaml"
FIXTURES = ROOT / "tests" / "fixtures" / "sglang" / "0.5.23"

ODD = '{{ odd }}: 100% "quoted" name'
CAFE = "/models/café-模型 | `x` <b>&amp; $HOME 'y' [z](w)"


def budget(**keys: Any) -> Budget:
    return Budget.model_validate({"service": "chat"} | keys)


def lines(**keys: Any) -> Budget:
    return budget(budget=keys)


WHOLE = load_budget(EXAMPLE).budget
STRANGE = budget(
    target={"path": f"/models/{ODD}"},
    drafter={"path": CAFE},
    engine={"server_log": CAFE, "request_log": f"/logs/{ODD}", "api_key_file": CAFE, "args": ["--model-path", CAFE]},
    links={"runbook": "https://example.invalid/r?a=1&b=2#c", "dashboards": "https://g.example/x?a=1&b=<2>|`{{3}}`#d"},
    budget={"acceptance": {"target_length": 2.6, "profiles": {ODD: {"match": {"model": "a"}, "target_length": 3}}}},
)
BUDGETS = {
    "whole": WHOLE,
    "nothing": budget(),
    "kv alone": lines(kv={"target": "4GiB"}),
    "no slo": lines(acceptance={"break_even": 2.1}, artifacts={"target": "4GiB"}),
    "no staging": lines(acceptance={"target_length": 2.6}, artifacts={}),
    "batches": lines(acceptance={"target_length": 2.6, "sli": "batch", "objective": 0.6}),
    "strange": STRANGE,
    "vllm": budget(
        engine={
            "kind": "vllm",
            "url": "http://127.0.0.1:8000",
            "args": '--speculative-config \'{"method": "eagle3"}\'',
        },
        budget={"acceptance": {"target_length": 2.6}, "staging": {"warmup": "required", "cold_start": "90s"}},
    ),
    "tensorrt-llm": budget(
        engine={"kind": "tensorrt-llm", "url": "http://127.0.0.1:8000"},
        budget={"acceptance": {"target_length": 2.6}, "staging": {"warmup": "required", "cold_start": "90s"}},
    ),
}
EACH = pytest.mark.parametrize("one", BUDGETS.values(), ids=BUDGETS)


def tokens(text: str) -> list[Token]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(text)


def walked(found: Sequence[Token]) -> Iterator[Token]:
    for token in found:
        yield token
        yield from walked(token.children or [])


def headings(text: str) -> list[str]:
    """The text of every heading, as a reader sees it."""
    found = tokens(text)
    return [
        "".join(part.content for part in found[place + 1].children or [])
        for place, token in enumerate(found)
        if token.type == "heading_open"
    ]


def github(titles: Sequence[str]) -> list[str]:
    """The fragments that GitHub gives to headings: a second one of the same text gets a number."""
    seen: Counter[str] = Counter()
    fragments = []
    for title in titles:
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        fragments.append(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return fragments


def blocks(text: str, language: str) -> list[str]:
    return [token.content for token in walked(tokens(text)) if token.type == "fence" and token.info == language]


def spans(text: str) -> list[str]:
    return [token.content for token in walked(tokens(text)) if token.type == "code_inline"]


def commands(text: str) -> list[str]:
    """Every call of our own program, in blocks and in sentences."""
    found = [line for block in blocks(text, "sh") for line in block.splitlines()] + spans(text)
    return [line for line in found if line.startswith("specbudget ")]


@EACH
def test_every_alert_of_the_rules_has_its_paragraph(one: Budget) -> None:
    """The fragment of each `runbook_url` is the anchor of a heading, and no other alert has one."""
    s = rule_settings(one)
    fragments = github(headings(render(one)))
    rules = [rule for group in alerting_rules(s)["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        assert rule["annotations"]["runbook_url"].rpartition("#")[2] in fragments, rule["alert"]
    assert {rule["alert"] for rule in rules} == {t for t in headings(render(one)) if t.startswith("Specbudget")}


@EACH
def test_every_link_within_leads_to_a_heading(one: Budget) -> None:
    """And no two headings share an anchor."""
    text = render(one)
    fragments = github(headings(text))
    assert len(set(fragments)) == len(fragments)
    targets = [str(t.attrs["href"]) for t in walked(tokens(text)) if t.type == "link_open"]
    within = {target[1:] for target in targets if target.startswith("#")}
    assert within
    assert within <= set(fragments)
    assert all(target.startswith(("#", "https://")) for target in targets)


@EACH
def test_every_query_parses_and_reads_only_what_is_declared(one: Budget, tmp_path: Path) -> None:
    """Each block is ready to paste into the real program, and names series of the catalog or recorded ones."""
    s, queries = rule_settings(one), blocks(render(one), "promql")
    recorded = {record.name for group in record_groups(s) for record in group.rules}
    assert len(queries) > 20
    for query in queries:
        for name in re.findall(r"\b(?:\w+:)?specbudget_\w+(?::\w+)?", query):
            assert name in NAMES | recorded | {"specbudget_service"} or "__name__" in query, name
        assert "$SERVICE" not in query
        assert f'"{one.service}"' in query
    rules = [{"record": f"tested:{place}", "expr": query} for place, query in enumerate(dict.fromkeys(queries))]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "tested", "rules": rules}]}))
    checked = run("check", "rules", "--lint=none", tmp_path / "rules.yml")
    assert checked.returncode == 0, checked.stderr


@EACH
def test_every_command_is_one_that_we_have(one: Budget) -> None:
    """Our own parser takes each of them, and each rule that is to be explained exists."""
    found = commands(render(one))
    assert len(found) >= 7
    for command in found:
        words = shlex.split(command)[1:]
        if "…" in words:
            continue
        args = _parser().parse_args(words)
        asked = getattr(args, "explain", None)
        assert asked is None or asked in TEXTS or asked == "codesign.RULE", command


@EACH
def test_every_command_is_one_for_a_shell(one: Budget) -> None:
    """Blocks parse, whatever signs are in the paths: nothing of a path is run."""
    for block in blocks(render(one), "sh"):
        done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False, timeout=20)
        assert done.returncode == 0, done.stderr
        assert not re.search(r"\[[a-z ]+\](?![(\]*])", block.replace("[z]", "").replace("[:_]", "")), block


def test_no_mark_is_left() -> None:
    """Marks of commands are filled everywhere."""
    for one in (WHOLE, budget()):
        text = render(one)
        for words in ENGINES.values():
            assert not [mark for mark in words.marks if mark in text]
        for mark in ("[curl", "[engine]", "[sidecar]", "[budget]", "[target]", "[drafter]", "log]"):
            assert mark not in text


@pytest.mark.parametrize("kind", [kind for kind in ENGINES if kind != "sglang"])
def test_other_engines_hear_nothing_of_sglang(kind: str) -> None:
    """Neither the runbook nor an alert names SGLang's flags, endpoints or environment."""
    said = render(BUDGETS[kind]) + "".join(files(BUDGETS[kind]).values())
    own = set(re.findall(r"--[a-z][a-z_-]+", said))
    assert not re.search(r"sglang|SGLANG|/server_info|/v1/loads", said, re.I)
    assert not own & {"--speculative-algorithm", "--enable-metrics", "--export-metrics-to-file", "--max-total-tokens"}
    assert not own & {"--skip-server-warmup", "--export-metrics-to-file-dir", "--max-running-requests"}
    assert ENGINES[kind].off in said


def test_tensorrt_llms_records_are_not_taken_away() -> None:
    """Reading its /metrics empties the queue that others count: no command does."""
    for block in blocks(render(BUDGETS["tensorrt-llm"]), "sh"):
        assert not re.search(r"8000/metrics", block)


@pytest.mark.parametrize(("fixture", "prints"), [("nospec", "off_prints"), ("dspark", "on_prints")])
def test_the_check_prints_what_the_runbook_says(fixture: str, prints: str, tmp_path: Path) -> None:
    """The very command, on what the engine answered: nothing but the one field, and none of the keys beside it."""
    answers = sorted(FIXTURES.rglob(f"server_info*{fixture}.json"))
    if not answers:
        pytest.fail(f"no server_info of {fixture} among the fixtures")
    (command,) = {block for block in blocks(render(WHOLE), "sh") if "server_info" in block}
    script = f"curl() {{ cat {shlex.quote(str(answers[0]))}; }}\n{command}"
    done = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=True, timeout=20)
    expected = getattr(ENGINES["sglang"], prints)
    assert re.fullmatch(re.escape(expected).replace("…", r"\w+"), done.stdout.strip().replace(" ", ""))


def test_off_leaves_out_all_that_belongs_to_the_drafter() -> None:
    """Its options go with their values, abbreviated ones too; all others stay in their order."""
    args = (
        "--tp 4 --speculative-algo EAGLE --speculative-num-steps=3 --enable-metrics --enable-linear-replayssm-spec -x 1"
    )
    off = launch(budget(engine={"args": args, "version": "0.5.23"}, target={"path": "/m"}), drafter=False)
    assert off is not None
    assert shlex.split(off.replace("\\\n", ""))[2:] == [
        "sglang.launch_server", "--model-path", "/m", "--tp-size", "4", "--enable-metrics", "-x", "1",
    ]  # fmt: skip
    vllm = {
        "kind": "vllm",
        "args": ["/m", "-sc", '{"method": "mtp"}', "--per-request-spec-decode-metrics", "summary", "-O3"],
    }
    off = launch(budget(engine=vllm, target={"path": "/m"}), drafter=False)
    assert off is not None
    assert shlex.split(off.replace("\\\n", "")) == ["vllm", "serve", "/m", "-O3"]


@pytest.mark.parametrize(
    "args",
    [
        "--api-key SECRET --tp 4",
        "--admin-api-key=SECRET",
        "--ssl-keyfile-password SECRET",
        "--my-unknown-token SECRET",
        ["--api_key", "SECRET"],
        "--dist-init-addr http://user:SECRET@host:1",
        '--model-loader-extra-config \'{"token": "SECRET"}\'',
        "--speculative-algorithm EAGLE --speculative-draft-model-path https://u:SECRET@h/x",
    ],
)
@pytest.mark.parametrize("kind", ENGINES)
def test_no_secret_of_the_launch_is_written(args: Any, kind: str) -> None:
    """Values of keys, tokens and passwords are hidden, wherever they stand."""
    assert "SECRET" not in render(budget(engine={"args": args, "kind": kind, "version": "0.5.23"}))


def test_odd_names_come_out_as_they_are() -> None:
    """Paths, links and profiles with any sign are read by a renderer as they were written, and break no table."""
    text = render(STRANGE)
    found = tokens(text)
    assert f"ls -l {shlex.quote(f'/models/{ODD}')} {shlex.quote(CAFE)}" in "".join(blocks(text, "sh"))
    assert ODD in spans(text)
    pair = f"--target {shlex.quote(f'/models/{ODD}')} --drafter {shlex.quote(CAFE)}"
    assert f"specbudget init {pair} --sidecar http://127.0.0.1:9877" in spans(text)
    rows = [token for token in walked(found) if token.type == "tr_open"]
    assert len(rows) > 5
    assert f"ls -lt {shlex.quote(f'/logs/{ODD}')}" in "".join(blocks(text, "sh"))
    assert not [token for token in walked(found) if token.type == "html_inline"]
    hrefs = {str(token.attrs["href"]) for token in walked(found) if token.type == "link_open"}
    assert any(href.startswith("https://g.example/x?a=1&b=%3C2%3E%7C%60") for href in hrefs)
    for token in walked(found):
        if token.type == "text" and "specbudget_" not in token.content:
            assert "</" not in token.content or "details" in token.content


def test_html_is_ours_alone() -> None:
    """The only tags are those that fold the rule away, and the comment at the top."""
    for one in BUDGETS.values():
        for token in walked(tokens(render(one))):
            if token.type == "html_block":
                assert re.match(r"<!-- Generated|</?details>", token.content.strip())


def test_a_small_budget_has_a_short_runbook() -> None:
    """What is not budgeted is said in a line; no paragraph, table or number is about it."""
    sizes = {name: render(one).count("\n") for name, one in BUDGETS.items()}
    assert sizes["nothing"] < 0.85 * sizes["whole"]
    nothing = render(BUDGETS["nothing"])
    assert "No acceptance target is budgeted" in nothing
    assert nothing.count("Not budgeted: nothing here watches it.") == len(LINES) - 1
    for absent in ("FastBurn", "KvPoolOverBudget", "ColdStartOverBudget", "break-even", "None", "nan", "inf "):
        assert absent not in nothing, absent
    assert "SpecbudgetKvPoolOverBudget" in render(BUDGETS["kv alone"])
    assert "SpecbudgetArtifactsOverBudget" not in render(BUDGETS["kv alone"])


@EACH
def test_no_value_of_the_program_shows_through(one: Budget) -> None:
    """No None, no nan, no object, no doubled blank line and no blank at the end of a line."""
    text = render(one)
    assert not re.search(r"\bNone\b|\bnan\b|<function|object at 0x", text)
    assert "\n\n\n" not in text
    assert not re.search(r"(?m)[ \t]+$", text.replace(CAFE, ""))
    assert text.endswith("\n")


def test_it_is_made_of_the_budget_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes wherever it runs, with or without checkpoints and lock beside it; `--check` holds it to that."""
    copy = tmp_path / "budget.yaml"
    copy.write_text(EXAMPLE.read_text())
    (tmp_path / "budget.lock").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "runbook", "--budget", str(copy), "--out", "out"]) == 0
    assert (tmp_path / "out" / RUNBOOK).read_bytes() == (ROOT / RUNBOOK).read_bytes()
    assert main(["generate", "runbook", "--budget", str(copy), "--out", "out", "--check"]) == 0
    (tmp_path / "out" / RUNBOOK).write_text("changed")
    assert main(["generate", "runbook", "--budget", str(copy), "--out", "out", "--check"]) == 1


def test_numbers_follow_from_the_budget() -> None:
    """Sums, headrooms, break-even and the traffic that a page needs, against arithmetic done here."""
    text = render(WHOLE)
    for told in (
        "valid with 84 output tokens or more",  # ceil(32 x 2.6)
        "393,216 tokens",  # 48 x 8192
        "a pool of 436,907 tokens",  # / 0.9
        "above 255.6 GiB",  # 0.9 x 284
        "below 444,444 tokens",  # 400,000 / 0.9
        "From 26 running requests on",  # 2.1 + 1.3 x 25 / 63 > 2.6
        "42.0 GiB per device, 29.79 % of a GPU's 141.0 GiB; 168.0 GiB per replica",
        "takes 36 s; 54 s are left",  # 287 / 8
        "it is gone in 33.6 h",  # 28 d x 5 %
        "4 events and 100 verify steps a minute",  # 20 and 500 in 5 minutes
        "| 67.2 % | 1 h, 5 min | 13.44 |",
    ):
        assert told in text, told


def test_a_start_that_cannot_be_in_time_is_seen() -> None:
    """The estimate of loading against the start-up budget, by readers and by mode."""
    disk = {
        "artifacts": {"total": "80GiB"},
        "staging": {"cold_start": "90s", "storage_bandwidth": "1GiB/s", "readers": 2},
    }
    assert "takes 80 s to 160 s; that alone may be more than 90 s" in render(lines(**disk))
    disk["staging"]["mode"] = "prefetch"
    assert "takes 80 s; 10 s are left" in render(lines(**disk))


def bounds(part: Clause | Condition) -> Iterator[str]:
    """Every scalar that something is compared with."""
    if isinstance(part, Clause):
        if re.fullmatch(r"[\d.]+", part.bound) and part.bound not in ("0", "1"):
            yield part.bound
        return
    yield from bounds(part.first)
    for each in (*(joined.part for joined in part.rest), *part.otherwise):
        yield from bounds(each)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_words_of_a_rule_have_its_numbers(alert: AlertDef) -> None:
    """Each threshold of the expression stands in the sentence about it, as a number, a share or a length of time."""
    condition, words = alert.condition(SETTINGS), alert.when(SETTINGS).replace(",", "")
    assert condition is not None
    for bound in bounds(condition):
        value = float(bound)
        told = {bound, f"{value:.0%}", f"{100 * value:.4g} %", f"{value / 60:g} min"}
        assert any(re.search(rf"(?<![\d.]){re.escape(each)}(?!\d)", words) for each in told), (bound, words)


def test_every_cause_is_explained() -> None:
    """The closed set, each with a heading that alerts link to and something to do."""
    titles = headings(render(WHOLE))
    assert set(CAUSES) == set(Suspect)
    for cause, text in CAUSES.items():
        assert f"Cause {cause}" in titles
        assert text.means
        assert text.evidence
        assert text.actions
    assert "[`mix`](#cause-mix)" in render(WHOLE)


@pytest.mark.parametrize("heading", ["Cause kv_pressure", "Turn speculation off", "SpecbudgetKvPressure", "Co-design"])
def test_anchors_are_githubs(heading: str) -> None:
    """As its renderer makes them."""
    assert anchor(heading) == github([heading])[0]


@pytest.mark.slow
@pytest.mark.parametrize(("alert", "bad"), [(FAST_BURN, 0.8), (FAST_BURN, 1.0), (SLOW_BURN, 0.5)])
def test_prometheus_pages_when_it_is_said_to(alert: AlertDef, bad: float, tmp_path: Path) -> None:
    """Hours without a bad event, then a share of bad ones: silent until both windows can burn, out by the promise."""
    row = SETTINGS.pages[0 if alert is FAST_BURN else 1]
    promised = seconds_to_page(row, bad, objective=SETTINGS.objective, for_seconds=alert.for_seconds, cadence=CADENCE)
    fires = row.seconds_to_fire(bad, SETTINGS.objective)
    assert promised is not None
    assert fires is not None
    onset, step = row.long_seconds + 600, CADENCE.scrape
    clean, burning = int(onset / step), int(promised / step) + 20
    case = Case(
        alert=alert,
        says="as promised",
        series=traffic((clean, 5, 0.0, 120), (burning, 5, bad, 120)),
        # increase() looks a little ahead of its samples: two of them are left for that
        expect={
            f"{onset + fires - 2 * step:.0f}s": 0,
            f"{onset + promised - CADENCE.notification:.0f}s": 1,
        },
        step="30s",
        evaluated="30s",
    )
    told = failures(written(tmp_path / "rules", alert, [case]))
    assert not told, "\n".join(told.values())


def test_the_committed_rules_and_the_runbook_are_of_one_budget() -> None:
    """Every alert of the committed rules has its heading in the committed runbook."""
    rules = yaml.safe_load((ROOT / "alerts" / "alerts.rules.yml").read_text())
    fragments = github(headings((ROOT / RUNBOOK).read_text()))
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["alert"].lower() in fragments
