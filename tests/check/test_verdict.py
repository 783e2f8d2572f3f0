"""From findings to a verdict and an exit code, through the command line as a pipeline calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.check.plans import PlanFolder

from specbudget.check.rules.limits import against
from specbudget.cli import main
from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN

FITS: dict[str, Any] = {"budget__kv": {"min_target_tokens": 300_000}}
TIGHT: dict[str, Any] = {"budget__kv": {"min_target_tokens": 330_000}}
FAILS: dict[str, Any] = {"budget__kv": {"min_target_tokens": 400_000}}
OPEN: dict[str, Any] = {"budget__kv": {"min_target_tokens": 1}, "engine__free_before_load": None}
UNDECIDED: dict[str, Any] = {
    "budget__kv": {"min_target_tokens": 600_000},
    "engine__free_before_load": None,
    "engine__gpu_memory": "4GiB",
}


def run(plans: PlanFolder, *words: str, **budget: Any) -> int:
    """The exit code of `specbudget check`."""
    return main(["check", "--budget", str(plans.write(**budget)), *words])


@pytest.mark.parametrize(
    ("words", "budget", "plain", "strict"),
    [
        ("nothing is budgeted but the pair", {}, 0, 3),
        ("a limit is kept", FITS, 0, 3),
        ("a limit is kept within a tenth", TIGHT, 0, 3),
        ("a limit is broken", FAILS, 1, 1),
        ("a required fact is missing", OPEN, 3, 3),
        ("the limit lies within the interval", UNDECIDED, 3, 3),
        ("one line fails, another is unknown", {**OPEN, "budget__artifacts": {"target": "1B"}}, 1, 1),
    ],
)
def test_exit_codes(plans: PlanFolder, words: str, budget: dict[str, Any], plain: int, strict: int) -> None:
    """0 for pass and warn, 1 fail, 3 unknown; --strict lets nothing unknown through: this pair was never approved."""
    assert run(plans, **budget) == plain, words
    assert run(plans, "--strict", **budget) == strict, words


def test_strict_turns_a_warning_into_a_failure(plans: PlanFolder) -> None:
    """With a lock and a recorded target nothing is unknown: then a warning alone decides."""
    config = json.loads((plans.drafter / "config.json").read_text())
    config["speculators_config"] = {"verifier": {"name_or_path": "org/target"}}
    (plans.drafter / "config.json").write_text(json.dumps(config))
    known = {"tokens_per_request": 1024}
    assert run(plans, "--approve", **FITS) == 0
    assert run(plans, "--strict", budget__kv={**FITS["budget__kv"], **known}) == 0
    assert run(plans, "--strict", budget__kv={**TIGHT["budget__kv"], **known}) == 1


def test_a_line_that_is_not_budgeted_is_shown_and_does_not_count(plans: PlanFolder) -> None:
    """A model whose layers nobody knows makes the KV line unknown once it is budgeted, and counts for nothing else."""
    config = json.loads((plans.target / "config.json").read_text())
    del config["num_hidden_layers"]
    (plans.target / "config.json").write_text(json.dumps(config))
    lines = {line.line.id: line for line in plans.judge().report.lines}
    assert not lines["kv"].budgeted
    assert "kv" not in {finding.line for finding in plans.judge().report.counted}
    assert "kv" in {finding.line for finding in plans.judge(budget__kv={}).report.counted}


def test_a_checkpoint_that_is_not_whole_fails_whatever_is_budgeted(plans: PlanFolder) -> None:
    """A pointer in the place of weights would stop the engine: it counts without an artifacts line, and is named."""
    (plans.target / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    )
    report = plans.judge().report
    lines = {line.line.id: line for line in report.lines}
    assert (lines["artifacts"].budgeted, lines["artifacts"].verdict) == (False, FAIL)
    assert report.verdict is FAIL
    assert [finding.id for finding in report.deciding] == ["artifacts.target_complete"]


def test_evidence_that_may_be_missing_does_not_make_a_line_unknown(plans: PlanFolder) -> None:
    """No weights, no reference, no lock, no recorded target: all unknown, none required."""
    (plans.target / "model.safetensors").unlink()
    judged = plans.judge(budget__artifacts={}, budget__acceptance={"target_length": 2.0})
    unknown = [finding for finding in judged.report.counted if finding.result is UNKNOWN]
    assert {finding.id for finding in unknown} >= {
        "artifacts.target_complete",
        "acceptance.unattainable",
        "codesign.approved",
        "codesign.trained_for",
    }
    assert not any(finding.required for finding in unknown)
    assert judged.report.verdict is PASS


@pytest.mark.parametrize(
    ("low", "value", "high", "limit", "floor", "result"),
    [
        (80, 85, 89, 100, False, PASS),
        (80, 85, 95, 100, False, WARN),
        (80, 85, 100, 100, False, WARN),
        (80, 85, 101, 100, False, UNKNOWN),
        (100, 110, 120, 100, False, UNKNOWN),
        (101, 110, 120, 100, False, FAIL),
        (112, 120, 130, 100, True, PASS),
        (105, 120, 130, 100, True, WARN),
        (99, 120, 130, 100, True, UNKNOWN),
        (80, 90, 100, 100, True, UNKNOWN),
        (80, 90, 99, 100, True, FAIL),
        (None, 90, None, 100, False, PASS),
        (None, 90.1, None, 100, False, WARN),
        (None, 0, None, 100, True, FAIL),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    low: float | None, value: float, high: float | None, limit: float, floor: bool, result: CheckResult
) -> None:
    """Inside, outside, straddling, and within the last tenth, from above and from below."""
    told = against(
        "it takes", value=value, limit=limit, shown="v", limit_shown="l", fix="fix", floor=floor, low=low, high=high
    )
    assert told.result is result
    assert ("fix" in told.message) is (result in (WARN, FAIL))
    assert ("inside the interval" in told.message) is (result is UNKNOWN)


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "--budget", "x.yaml", "--format", "xml"],
        ["check", "--budget"],
        ["check", "--what"],
        ["chek", "--budget", "x.yaml"],
    ],
)
def test_wrong_usage_is_exit_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The parser says what is wrong."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: specbudget" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"", "a budget is a mapping"),
        (b"\x00\xff", "not UTF-8"),
        (b"service: [", "not valid YAML"),
        (b"service: chat\nbudgett: {}\n", "did you mean"),
        (b"apiVersion: v1\nkind: Service\n", "unknown key"),
        (b"service: chat\nbudget: {kv: {target: 40}}\n", "kv.target"),
    ],
)
def test_a_budget_that_cannot_be_used_is_exit_2(
    plans: PlanFolder, content: bytes | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per fault on standard error, naming the file; nothing on standard output."""
    if content is not None:
        plans.file.write_bytes(content)
    assert main(["check", "--budget", str(plans.file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert all(line.startswith(str(plans.file)) for line in told.err.splitlines())


def test_strict_can_pass_without_a_drafter(plans: PlanFolder) -> None:
    """A model that does not exist leaves nothing unknown."""
    alone = {"drafter__path": None, "drafter__algorithm": None, "engine__args": "--mem-fraction-static 0.8"}
    line = {"min_target_tokens": 300_000, "tokens_per_request": 1024}
    assert run(plans, "--strict", **alone, budget__kv=line, budget__acceptance={}) == 0


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit"])
def test_a_full_disk_is_one_line(plans: PlanFolder, form: str) -> None:
    """The verdict could not be written, so it is no verdict: exit 2, no traceback."""
    words = [sys.executable, "-m", "specbudget", "check", "--budget", str(plans.write(**FITS)), "--format", form]
    with open("/dev/full", "w") as full:
        told = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr == "the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    "damage", ["missing", "pointer", "truncated", "no shard", "no json", "a file", "nothing in it", "no folder"]
)
def test_a_bad_checkpoint_is_a_finding_and_never_exit_2(
    plans: PlanFolder, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails the artifacts line, whatever is wrong with it."""
    weights, budget = plans.target / "model.safetensors", {"budget__artifacts": {}}
    match damage:
        case "missing":
            (plans.target / "config.json").unlink()
        case "pointer":
            weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        case "truncated":
            weights.write_bytes(weights.read_bytes()[:40])
        case "no shard":
            weights.rename(plans.target / "other.safetensors")
            (plans.target / "model.safetensors.index.json").write_text('{"weight_map": {"x": "gone.safetensors"}}')
        case "no json":
            (plans.target / "config.json").write_text("{")
        case "a file":
            budget["target__path"] = "target/config.json"  # type: ignore[assignment]
        case "nothing in it":
            weights.write_bytes(b"")
        case "no folder":
            budget["target__path"] = "nowhere"  # type: ignore[assignment]
    assert run(plans, **budget) == 1
    told = capsys.readouterr()
    assert told.err == ""
    assert "artifacts.target_complete" in told.out
