"""`init` prints a budget that loads, passes the gate as it stands, and says what to fill in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from specbudget.budget.reading import load_budget
from specbudget.check.gather import gather
from specbudget.check.report import Report, judge_plan
from specbudget.cli import main
from specbudget.domain.finding import CheckResult

ARGS = (
    "--tp 4 --speculative-algorithm DSPARK --mem-fraction-static 0.85 "
    "--enable-linear-replayssm-spec --linear-replayssm-cache-len 32"
)


def written(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[Path, str]:
    """The budget that `init` prints, in a file, and what it says beside it."""
    assert main(["init", *arguments]) == 0
    told = capsys.readouterr()
    file = folder / "budget.yaml"
    file.write_text(told.out)
    return file, told.err


def judged(file: Path) -> Report:
    """The gate's word on a file."""
    return judge_plan(gather(file))


def lines_in_force(report: Report) -> dict[str, CheckResult]:
    """The budgeted lines and their verdicts."""
    return {line.line.id: line.verdict for line in report.lines if line.budgeted}


def test_two_folders_are_enough(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """From checkpoints alone every line is in force and none fails; what is not known is a comment with an example."""
    models = ("--target", str(ling / "target"), "--drafter", str(ling / "drafter"))
    file, said = written(capsys, tmp_path, *models)
    report = judged(file)
    assert report.exit_code(strict=False) == 0
    assert set(lines_in_force(report)) == {"artifacts", "kv", "acceptance", "staging", "codesign"}
    assert "the gate says pass" in said
    for comment in ("# target_length:", "# min_target_tokens:", "# storage_bandwidth:", "# gpu_memory:"):
        assert comment in file.read_text()


def test_arguments_and_memory_make_limits(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """With arguments, release and memory the pools are predicted, and the proposed limits leave room."""
    models = ("--target", str(ling / "target"), "--drafter", str(ling / "drafter"), "--service", "chat")
    engine = ("--args", ARGS, "--engine-version", "0.5.23", "--free-before-load", "178.6GiB")
    file, said = written(capsys, tmp_path, *models, *engine)
    loaded = load_budget(file).budget
    assert loaded.service == "chat"
    assert loaded.parallelism.tensor == 4
    line = loaded.budget.kv
    assert line is not None
    assert line.min_target_tokens
    assert line.target
    assert line.drafter
    report = judged(file)
    assert lines_in_force(report)["kv"] is CheckResult.PASS
    assert report.verdict in (CheckResult.PASS, CheckResult.WARN), said


def test_a_bench_proposes_the_target(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """The target lies a margin below what 95 % of requests reached, and the gate finds it attainable."""
    bench = tmp_path / "bench.json"
    measured = {"length": 4.6, "verify_steps": 120000, "quantiles": {"0.05": 3.3, "0.5": 4.5}}
    bench.write_text(json.dumps({"profiles": {"default": measured}}))
    models = ("--target", str(ling / "target"), "--drafter", str(ling / "drafter"), "--bench", str(bench))
    file, _ = written(capsys, tmp_path, *models)
    line = load_budget(file).budget.budget.acceptance
    assert line is not None
    assert line.target_length == 3.0
    found = {finding.id: finding for finding in judged(file).findings}
    assert found["acceptance.unattainable"].result is CheckResult.PASS
    assert found["acceptance.no_margin"].result is CheckResult.PASS


def test_a_mean_is_no_target(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """From a mean alone no target is proposed; the comment says why."""
    bench = tmp_path / "bench.jsonl"
    bench.write_text('{"backend": "sglang", "accept_length": 4.6}\n')
    models = ("--target", str(ling / "target"), "--drafter", str(ling / "drafter"), "--bench", str(bench))
    file, _ = written(capsys, tmp_path, *models)
    line = load_budget(file).budget.budget.acceptance
    assert line is not None
    assert line.target_length is None
    assert "the mean was 4.60" in file.read_text()


def test_what_cannot_pass_is_left_out_of_force(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """A deployment that cannot start: its KV line is written as comments, and the reason is told."""
    models = ("--target", str(ling / "target"), "--drafter", str(ling / "drafter"))
    engine = ("--args", ARGS, "--engine-version", "0.5.23", "--free-before-load", "20GiB")
    file, said = written(capsys, tmp_path, *models, *engine)
    assert "kv" not in yaml.safe_load(file.read_text())["budget"]
    assert "  # kv:" in file.read_text()
    assert "not in force, for too little is known: kv" in said
    assert judged(file).verdict is not CheckResult.FAIL


def test_a_pair_that_does_not_fit_is_told(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """No budget mends a misfit: it is printed, and the failing rule is named."""
    drafter = tmp_path / "drafter"
    drafter.mkdir()
    config = json.loads((ling / "drafter" / "config.json").read_text())
    config["target_layer_ids"] = [1, 11, 23, 29, 47]
    (drafter / "config.json").write_text(json.dumps(config))
    file, said = written(capsys, tmp_path, "--target", str(ling / "target"), "--drafter", str(drafter))
    assert "codesign.taps_range" in said
    assert load_budget(file).budget.drafter.path == str(drafter)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target", "{ling}/nothing"), "--target"),
        (("--target", "{ling}/target", "--gpu-memory", "80"), "--gpu-memory"),
        (("--target", "{ling}/target", "--engine", "http://127.0.0.1:9"), "--engine"),
        (("--target", "{ling}/target", "--engine", "nonsense"), "--engine"),
        (("--target", "{ling}/target", "--sidecar", "http://127.0.0.1:9"), "--sidecar"),
        (("--target", "{ling}/target", "--sidecar", "file:///etc/hostname"), "--sidecar"),
        (("--target", "{ling}/target", "--bench", "{ling}/nothing"), "nothing"),
        (("--target", "{ling}/target", "--service", "two words"), "--service"),
        (("--target", "{ling}/target", "--args", "--tp 1 --api-key=hidden"), "engine.api_key_file"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], ling: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Exit 2, one line that names the argument, nothing on standard output."""
    assert main(["init", *(argument.format(ling=ling) for argument in arguments)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert len(told.err.splitlines()) == 1
    assert "Traceback" not in told.err
    assert "hidden" not in told.err


def test_odd_paths_survive_the_file(capsys: pytest.CaptureFixture[str], ling: Path, tmp_path: Path) -> None:
    """A path with quotes, colons and a hash stands in the file as it is."""
    odd = tmp_path / 'a: "b" #c {d}'
    odd.mkdir()
    (odd / "config.json").write_bytes((ling / "drafter" / "config.json").read_bytes())
    file, _ = written(capsys, tmp_path, "--target", str(ling / "target"), "--drafter", str(odd))
    assert load_budget(file).budget.drafter.path == str(odd)


def test_swapped_checkpoints_are_told_in_one_line(capsys: pytest.CaptureFixture[str], ling: Path) -> None:
    """A budget of a pair the wrong way round would be of no use: none is printed, the line says what to swap."""
    assert main(["init", "--target", str(ling / "drafter"), "--drafter", str(ling / "target")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "target and drafter are swapped" in told.err
    assert told.err.endswith(": swap --target and --drafter\n")
