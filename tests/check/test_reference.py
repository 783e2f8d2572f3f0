"""Reference acceptance in its three forms, what it says of an SLO, and that no prompt ever leaves it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.check.plans import FIXTURES, PlanFolder

from specbudget.budget.model import Budget
from specbudget.check.reference import Reference, read_reference
from specbudget.cli import main
from specbudget.domain.finding import CheckResult, Exactness
from specbudget.errors import BudgetError

RECORDS = FIXTURES / "sglang" / "0.5.23" / "requests_dflash" / "sglang-request-metrics-20261129_16.log"
SECRET = "a prompt that nobody may see"

PROFILES = {
    "code": {"match": {"model": "coder-*"}, "target_length": 3.0},
    "chat": {"match": {"adapter": "chat-*"}, "target_length": 2.0, "min_output_tokens": 10},
}


def budget(**acceptance: Any) -> Budget:
    """A budget with this acceptance line."""
    line = {"target_length": 2.0, **acceptance}
    return Budget.model_validate({"service": "chat", "budget": {"acceptance": line}})


def record(tokens: int, steps: int, accepted: int, *, adapter: str | None = None, **more: Any) -> str:
    """One line of a request log."""
    parameters = {"text": SECRET, **({} if adapter is None else {"lora_path": adapter})}
    told = {
        "request_parameters": json.dumps(parameters),
        "id": "x",
        "finish_reason": {"type": "stop"},
        "completion_tokens": tokens,
        "prompt_tokens": 5,
        "spec_verify_ct": steps,
        "spec_num_correct_drafts": accepted,
        "spec_num_proposed_drafts": 7 * steps,
        "spec_accept_length": 1 + accepted / steps if steps else 0.0,
        "request_received_ts": 1795968192.9,
        "response_sent_to_client_ts": 1795968196.9,
        **more,
    }
    return json.dumps(told) + "\n"


def read(path: Path, text: str, *, served: str | None = None, **acceptance: Any) -> Reference:
    """The reference that a text is."""
    path.write_text(text)
    return read_reference(path, budget(**acceptance), served_model=served)


def test_records_give_exact_shares(tmp_path: Path) -> None:
    """The length is a ratio of sums over valid events; requests with few tokens or no step do not count."""
    lines = [record(100, 50, 100), record(100, 25, 75), record(10, 1, 7), record(200, 0, 0), record(90, 30, 30)]
    measured = read(tmp_path / "requests.log", "".join(lines)).profiles["default"]
    assert measured.length == 1 + (100 + 75 + 30) / (50 + 25 + 30)
    assert measured.verify_steps == 105
    assert measured.lengths == (2.0, 3.0, 4.0)
    assert measured.reached_by(0.95) == (2.0, 2.0)
    assert measured.share_reaching(2.5) == pytest.approx(2 / 3)


def test_a_folder_of_records_is_one_reference(tmp_path: Path) -> None:
    """All its files count, an empty one is passed over, a last line without an end counts too."""
    (tmp_path / "a-00.log").write_text("")
    (tmp_path / "a-01.log").write_text(record(100, 50, 100))
    (tmp_path / "a-02.log").write_text(record(100, 25, 75).rstrip("\n"))
    (tmp_path / "notes.txt").write_text("no record")
    measured = read_reference(tmp_path, budget())
    assert measured.profiles["default"].lengths == (3.0, 4.0)
    assert measured.source == str(tmp_path)


def test_captured_records_are_read(tmp_path: Path) -> None:
    """Nineteen requests of a real engine; those of at least 64 tokens count."""
    told = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    valid = [each for each in told if each.get("spec_verify_ct") and each["completion_tokens"] >= 64]
    measured = read_reference(RECORDS, budget()).profiles["default"]
    assert 0 < (measured.requests or 0) <= len(valid)
    assert 1.0 < measured.length < 16.0


def test_records_go_to_the_profile_they_match(tmp_path: Path) -> None:
    """By adapter of each request and by the served model; each with its own least output."""
    lines = record(100, 50, 100) + record(12, 4, 8, adapter="chat-de") + record(100, 25, 75, adapter="other")
    found = read(tmp_path / "r.log", lines, profiles=PROFILES).profiles
    assert found["default"].lengths == (3.0, 4.0)
    assert found["chat"].lengths == (3.0,)
    served = read(tmp_path / "r.log", record(100, 50, 100), profiles=PROFILES, served="coder-1")
    assert set(served.profiles) == {"code"}
    assert served.of("chat") is None


def test_our_own_form(tmp_path: Path) -> None:
    """A length and quantiles per profile; one that is not measured takes the measurement of all traffic."""
    text = json.dumps({"profiles": {"default": {"length": 4.2, "quantiles": {"0.05": 2.8, "0.5": 4.1}},
                                    "code": {"length": 5.0, "verify_steps": 10}}})  # fmt: skip
    found = read(tmp_path / "bench.json", text, profiles=PROFILES)
    assert found.profiles["default"].quantiles == ((0.05, 2.8), (0.5, 4.1))
    assert found.of("code") == found.profiles["code"]
    assert found.of("chat") == found.profiles["default"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"profiles": {"default": {"length": 0.5}}}', 1, "profiles.default.length: should be greater than"),
        ('{"profiles":\n{"default":\n{"length": 3, "lenght": 2}}}', 3, "did you mean “length”"),
        ('{"profiles": {}}', 1, "profiles: should"),
        (
            '{"profiles":\n {"cod": {"length": 2}}}',
            2,
            "profiles.cod: no profile of the budget, which has default, code",
        ),
        ('{"profiles": {"default": {"length": 2, "quantiles": {"1.5": 2}}}}', 1, "less than 1"),
        ('{"profiles": {"default": {"length": 2, "quantiles": {"0.1": 3, "0.2": 2}}}}', 1, "correct the quantiles"),
        ("[1]", 1, "a reference is a mapping"),
        ("{", None, "not valid YAML"),
        ("", None, "a reference is a mapping"),
        ('{"accept_length": null}\n', 1, "accept_length: should be a length"),
        ('{"accept_length": 3}\n{"accept_length": "x"}\n', 2, "accept_length: should be a length"),
        ('{"accept_length": 0.0}\n', 1, "accept_length: 0, so the bench ran without speculation"),
        ('{"accept_length": 0.2}\n', 1, "accept_length: should be a length"),
        (f"What is {SECRET}?: tell me\n", 1, "(no name): unknown key"),
        (f"profiles:\n  What is {SECRET}?: {{length: 2}}\n", 2, "profiles.(no name): no profile of the budget"),
        (f"profiles:\n  What is {SECRET}?: {{length: 0}}\n", 2, "profiles.(no name).length: should be"),
        (f"What is {SECRET}?: 1\nWhat is {SECRET}?: 2\n", 2, "(no name): given twice"),
        (record(10, 5, 10), None, "no finished request with verify steps"),
        ('{"request_parameters"', None, "no finished request with verify steps"),
    ],
)
def test_a_fault_names_file_line_and_key(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    """What is wrong and where, and never a word of the content that may be a prompt."""
    with pytest.raises(BudgetError) as raised:
        read(tmp_path / "bench.json", text, profiles=PROFILES)
    problem = raised.value.problems[0]
    assert problem.file == str(tmp_path / "bench.json")
    assert words in f"{problem.key}: {problem.message}".removeprefix(": ")
    if line is not None:
        assert problem.line == line
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"backend": "sglang", "accept_length": 2.0}\n{"backend": "sglang", "accept_length": 4.02}\n',
        '{"accept_length": 4.02, "output_throughput": 10.0}',
        '{\n "accept_length": 4.02,\n "output_throughput": 10.0\n}\n',
    ],
)
def test_bench_serving_gives_the_mean_of_its_last_run(tmp_path: Path, text: str) -> None:
    """A line per run, or one object over several lines."""
    measured = read(tmp_path / "bench.jsonl", text).profiles["default"]
    assert (measured.length, measured.reached_by(0.95)) == (4.02, None)


@pytest.mark.parametrize(
    ("target", "result", "value"),
    [(2.0, CheckResult.PASS, 2.5), (2.5, CheckResult.PASS, 2.5), (2.6, CheckResult.FAIL, 2.5)],
)
def test_records_decide_whether_an_slo_can_be_met(
    plans: PlanFolder, target: float, result: CheckResult, value: float
) -> None:
    """95 % of a hundred requests reach 2.5: the number, and its class as measured by the engine."""
    lines = [record(100, 40, 60)] * 6 + [record(100, 40, 100)] * 94
    (plans.folder / "requests.log").write_text("".join(lines))
    told = plans.judge(budget__acceptance={"target_length": target, "reference": "requests.log"})
    finding = told["acceptance.unattainable"]
    assert (finding.result, finding.value, finding.exactness) == (result, value, Exactness.FROM_LOG)
    assert any("of 100 requests" in step for step in finding.arithmetic)
    assert told["acceptance.no_margin"].result is (CheckResult.WARN if target == 2.5 else CheckResult.PASS)


def test_the_worst_profile_decides(plans: PlanFolder) -> None:
    """A profile whose target is out of reach is named with its key."""
    (plans.folder / "bench.json").write_text(
        json.dumps({"profiles": {"default": {"length": 4, "quantiles": {"0.05": 3.0}},
                                 "code": {"length": 4, "quantiles": {"0.05": 2.0}}}})
    )  # fmt: skip
    told = plans.judge(budget__acceptance={"target_length": 2.0, "reference": "bench.json", "profiles": PROFILES})
    finding = told["acceptance.unattainable"]
    assert (finding.result, finding.value, finding.limit) == (CheckResult.FAIL, 2.0, 3.0)
    assert "profiles.code.target_length" in finding.message


def test_a_pipe_or_a_folder_without_records_is_told_at_once(tmp_path: Path) -> None:
    """Nobody waits for a writer, and what the folder lacks is said."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BudgetError, match="not a regular file"):
        read_reference(tmp_path / "pipe", budget())
    with pytest.raises(BudgetError, match="holds no request records"):
        read_reference(tmp_path, budget())


def test_break_even_is_taken_at_the_planned_batch(plans: PlanFolder) -> None:
    """The same drafter pays for few requests and not for many."""
    (plans.folder / "bench.json").write_text('{"profiles": {"default": {"length": 3.0}}}')
    points = [{"running": 1, "length": 1.5}, {"running": 64, "length": 3.4}]
    line = {"break_even": points, "reference": "bench.json"}
    few = plans.judge(budget__acceptance=line, budget__kv={"concurrency": 1})["acceptance.break_even"]
    many = plans.judge(budget__acceptance=line, budget__kv={"concurrency": 64})["acceptance.break_even"]
    assert (few.result, few.limit) == (CheckResult.PASS, 1.5)
    assert (many.result, many.limit) == (CheckResult.FAIL, 3.4)
    assert "two models are slower than one" in many.message
    assert any("speed-up: 0.88" in step for step in many.arithmetic)


def test_a_reference_that_cannot_be_used_is_a_required_unknown(plans: PlanFolder) -> None:
    """The budget names one, so its absence is no pass; the finding says what is wrong with the file."""
    told = plans.judge(budget__acceptance={"target_length": 2.0, "reference": "gone.json"})
    finding = told["acceptance.unattainable"]
    assert (finding.result, finding.required) == (CheckResult.UNKNOWN, True)
    assert "acceptance.reference: " in finding.message
    assert "gone.json" in finding.message
    assert told.report.exit_code(strict=False) == 3


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit"])
def test_no_prompt_leaves_the_records(plans: PlanFolder, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither of records that count nor of lines that are none."""
    shutil.copy(RECORDS, plans.folder / "requests.log")
    with (plans.folder / "requests.log").open("a") as file:
        file.write(record(100, 40, 60) + f"{SECRET}\n" + '{"request_parameters": "' + SECRET)
    file_name = plans.write(budget__acceptance={"target_length": 2.0, "reference": "requests.log"})
    assert main(["check", "--budget", str(file_name), "--format", form]) in (0, 1)
    assert main(["check", "--budget", str(file_name), "--explain", "acceptance.unattainable"]) in (0, 1)
    (plans.folder / "requests.log").write_text(f"{SECRET}: {{")
    assert main(["check", "--budget", str(file_name), "--format", form]) == 3
    told = capsys.readouterr()
    for words in (SECRET, "Explain topic"):
        assert words not in told.out + told.err
