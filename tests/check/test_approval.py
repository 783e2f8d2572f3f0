"""Approving a pair: what is written, what stands in the way, and what a later change of either model is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.check.plans import DFLASH, TARGET, PlanFolder, dflash_tensors, target_tensors, write_checkpoint

from specbudget.budget.lock import load_lock
from specbudget.cli import main
from specbudget.domain.finding import CheckResult

PASS, WARN, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.UNKNOWN
LINES: dict[str, Any] = {
    "budget__kv": {"min_target_tokens": 300_000, "tokens_per_request": 1024},
    "budget__acceptance": {
        "target_length": 2.0,
        "reference": "bench.json",
        "break_even": [{"running": 1, "length": 1.5}, {"running": 64, "length": 2.0}],
    },
}


@pytest.fixture
def plans(plans: PlanFolder) -> PlanFolder:
    """A plan that passes, with a reference."""
    measured = {"length": 4.0, "verify_steps": 1000, "quantiles": {"0.05": 3.0}}
    (plans.folder / "bench.json").write_text(json.dumps({"profiles": {"default": measured}}))
    return plans


def approve(plans: PlanFolder, *words: str, **budget: Any) -> int:
    """`check --approve` on a budget with these changes."""
    return main(["check", "--budget", str(plans.write(**{**LINES, **budget})), "--approve", *words])


def fine_tuned(folder: Path) -> None:
    """Another config of the same shapes."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))


def test_a_pair_that_passes_is_recorded(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock holds both fingerprints, geometry, engine, the measured length and break-even; then the pair passes."""
    assert approve(plans) == 0
    assert capsys.readouterr().err == f"approved: {plans.lock}\n"
    loaded = load_lock(plans.lock)
    assert loaded is not None
    lock = loaded.lock
    assert lock.service == "chat"
    assert (lock.target.kv_bytes_per_token, lock.target.parameters) == (2048, 525_376)
    assert lock.drafter is not None
    assert (lock.drafter.kv_bytes_per_token, lock.drafter.architecture) == (512, "DFlashDraftModel")
    assert (lock.engine.version, lock.engine.algorithm, lock.engine.num_draft_tokens) == ("0.5.23", "dflash", 8)
    assert (lock.acceptance["default"].length, lock.acceptance["default"].verify_steps) == (4.0, 1000)
    assert [(point.running, point.length) for point in lock.break_even] == [(1, 1.5), (64, 2.0)]
    told = plans.judge(**LINES)["codesign.approved"]
    assert (told.result, lock.approved_at in told.message) == (PASS, True)


@pytest.mark.parametrize(
    ("changed", "value", "words"),
    [
        (("target",), "acceptance", "acceptance check due"),
        (("drafter",), "kv", "KV budget due"),
        (("target", "drafter"), "two_model", "whole two-model plan due"),
    ],
)
def test_a_model_that_changes_makes_its_plan_due(
    plans: PlanFolder, changed: tuple[str, ...], value: str, words: str
) -> None:
    """A warning names the plan; approving again settles it."""
    approve(plans)
    for name in changed:
        fine_tuned(plans.folder / name)
    told = plans.judge(**LINES)["codesign.approved"]
    assert (told.result, told.value, words in told.message) == (WARN, value, True)
    assert approve(plans) == 0
    assert plans.judge(**LINES)["codesign.approved"].result is PASS


def test_a_tokenizer_that_changes_counts_too(plans: PlanFolder) -> None:
    """It is in no other fingerprint."""
    (plans.target / "tokenizer.json").write_text("{}")
    approve(plans)
    (plans.target / "tokenizer.json").write_text('{"version": 2}')
    told = plans.judge(**LINES)["codesign.approved"]
    assert (told.value, "target changed (tokenizer)" in told.message) == ("acceptance", True)
    (plans.target / "tokenizer.json").unlink()
    lost = plans.judge(**LINES)["codesign.approved"]
    assert (lost.result, lost.required) == (UNKNOWN, True)


def test_another_release_of_the_engine_is_a_warning(plans: PlanFolder) -> None:
    """The pair is the same, what it runs on is not."""
    approve(plans)
    told = plans.judge(**LINES, engine__version="0.5.18")["codesign.approved"]
    assert (told.result, told.value, told.limit) == (WARN, "0.5.18", "0.5.23")


@pytest.mark.parametrize(
    ("budget", "code", "words"),
    [
        ({"budget__kv": {"min_target_tokens": 400_000}}, 1, "the verdict is fail: settle kv.min_target_tokens first"),
        (
            {"budget__kv": {"min_target_tokens": 1}, "engine__free_before_load": None},
            3,
            "the verdict is unknown: settle kv.min_target_tokens first",
        ),
    ],
)
def test_a_plan_that_fails_or_is_not_known_is_not_approved(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], budget: dict[str, Any], code: int, words: str
) -> None:
    """The exit code is the verdict's, the reason names the findings, and no lock is written."""
    assert approve(plans, **budget) == code
    assert words in capsys.readouterr().err
    assert not plans.lock.exists()


def test_a_warning_does_not_stand_in_the_way(plans: PlanFolder) -> None:
    """Whoever approves has read it; under --strict the exit code still tells of it."""
    budget = {"budget__kv": {"min_target_tokens": 330_000}}
    assert plans.judge(**budget).report.verdict is WARN
    assert approve(plans, **budget) == 0
    assert plans.lock.exists()
    plans.lock.unlink()
    assert approve(plans, "--strict", **budget) == 3
    assert plans.lock.exists()


def test_the_change_that_is_approved_is_no_longer_held_against_the_plan(plans: PlanFolder) -> None:
    """Under --strict the warning that calls for approval does not make the approval fail."""
    recorded = {"speculators_config": {"verifier": {"name_or_path": "target"}}}
    write_checkpoint(plans.drafter, {**DFLASH, **recorded}, dflash_tensors())
    assert approve(plans, "--strict") == 0
    fine_tuned(plans.target)
    words = ["check", "--budget", str(plans.file), "--strict"]
    assert main(words) == 1
    assert approve(plans, "--strict") == 0
    assert main(words) == 0


def test_a_broken_target_is_not_approved_even_where_its_line_is_not_budgeted(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lock of a checkpoint that cannot be read would approve nothing."""
    (plans.target / "config.json").write_text("{")
    assert approve(plans, budget__kv=None, budget__acceptance=None) in (1, 3)
    assert "--approve: not approved" in capsys.readouterr().err
    assert not plans.lock.exists()


def test_the_lock_may_lie_elsewhere(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """--lock says where it is read and written; one that is named must be there unless it is being made."""
    elsewhere = plans.folder / "locks" / "chat.lock"
    words = ["check", "--budget", str(plans.write(**LINES)), "--lock", str(elsewhere)]
    assert main(words) == 2
    assert f"{elsewhere}: no such lock" in capsys.readouterr().err
    assert approve(plans, "--lock", str(elsewhere)) == 2
    assert "make its folder writable" in capsys.readouterr().err or not elsewhere.exists()
    elsewhere.parent.mkdir()
    assert approve(plans, "--lock", str(elsewhere)) == 0
    assert elsewhere.exists()
    assert not plans.lock.exists()
    assert main(words) == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("lock: 2\nservice: chat\n", "approve the pair again"),
        ("{", "not valid YAML"),
        ("- 1\n", "a lock is a mapping"),
    ],
)
def test_a_lock_that_cannot_be_used_is_exit_2_until_the_pair_is_approved_again(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    """Each fault in one line that names the file, and the way out; a plan that fails replaces nothing."""
    plans.lock.write_text(content)
    assert main(["check", "--budget", str(plans.write())]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert str(plans.lock) in told.err
    assert words in told.err
    assert "approve the pair again with `specbudget check --approve`, or delete the file" in told.err
    assert approve(plans, budget__kv={"min_target_tokens": 400_000}) == 1
    assert plans.lock.read_text() == content
    assert "the lock stays, which cannot be used" in capsys.readouterr().err
    assert approve(plans) == 0
    told = capsys.readouterr()
    assert "it replaces one that could not be used" in told.err
    assert len(told.err.splitlines()) == 1
    assert load_lock(plans.lock) is not None


def test_a_file_that_is_no_lock_by_its_name_is_never_replaced(plans: PlanFolder) -> None:
    """--lock with the wrong name would cost a file."""
    other = plans.folder / "notes.yaml"
    other.write_text("- 1\n")
    assert approve(plans, "--lock", str(other)) == 2
    assert other.read_text() == "- 1\n"


def test_an_explained_rule_does_not_stop_the_approval(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are done."""
    assert approve(plans, "--explain", "kv.min_target_tokens") == 0
    told = capsys.readouterr()
    assert told.out.startswith("kv.min_target_tokens")
    assert told.err == f"approved: {plans.lock}\n"
    assert plans.lock.exists()


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit"])
def test_a_reader_that_leaves_does_not_stop_the_approval(plans: PlanFolder, form: str) -> None:
    """`check --approve | head -1` writes the lock, says so, and ends without a traceback."""
    budget = plans.write(**LINES)
    script = (
        "import os, sys\nreader, writer = os.pipe()\nos.close(reader)\nos.dup2(writer, 1)\n"
        "from specbudget.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    words = ["check", "--budget", str(budget), "--approve", "--format", form]
    told = subprocess.run([sys.executable, "-c", script, *words], stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 141
    assert told.stderr == f"approved: {plans.lock}\n"
    assert plans.lock.exists()


def test_the_lock_of_another_service_is_exit_2(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A lock that was copied along would approve the wrong pair."""
    approve(plans)
    capsys.readouterr()
    assert main(["check", "--budget", str(plans.write(service="other"))]) == 2
    assert "is the lock of chat, the budget is of other" in capsys.readouterr().err


def test_a_pair_in_one_checkpoint_is_approved_as_one(plans: PlanFolder) -> None:
    """Without a drafter of its own the lock holds the target alone, and both change together."""
    config = {**TARGET, "architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1}
    write_checkpoint(plans.target, config, target_tensors())
    budget = {
        "drafter__path": None,
        "drafter__algorithm": "mtp",
        "engine__args": "--speculative-algorithm NEXTN --mem-fraction-static 0.8",
        "budget__kv": None,
    }
    assert approve(plans, **budget) == 0
    lock = load_lock(plans.lock)
    assert lock is not None
    assert lock.lock.drafter is None
    fine_tuned(plans.target)
    assert plans.judge(**{**LINES, **budget})["codesign.approved"].value == "two_model"


def test_a_drafter_that_is_replaced_by_none_is_told(plans: PlanFolder) -> None:
    """The lock's drafter is held against what the budget names now."""
    approve(plans)
    write_checkpoint(plans.folder / "second", {**DFLASH, "num_hidden_layers": 1}, dflash_tensors())
    told = plans.judge(**LINES, drafter__path="second")["codesign.approved"]
    assert told.value == "kv"


def test_what_changed_of_a_config_is_named(plans: PlanFolder) -> None:
    """The lock holds the settings, so that the warning names each that changed, old and new."""
    approve(plans)
    changed = {**DFLASH, "dflash_config": {"target_layer_ids": [1, 5], "mask_token_id": 1000}}
    write_checkpoint(plans.drafter, changed, dflash_tensors())
    told = plans.judge(**LINES)["codesign.approved"]
    assert told.value == "kv"
    assert "drafter changed (config: dflash_config.target_layer_ids [1, 4] → [1, 5])" in told.message
    assert "measure acceptance as well" in told.message


def test_a_lock_of_an_earlier_version_is_read(plans: PlanFolder) -> None:
    """Without settings it still notices the change; only their names are missing."""
    approve(plans)
    document = yaml.safe_load(plans.lock.read_text())
    for model in ("target", "drafter"):
        assert document[model].pop("config")
    plans.lock.write_text(yaml.safe_dump(document))
    assert plans.judge(**LINES)["codesign.approved"].result is CheckResult.PASS
    write_checkpoint(plans.drafter, {**DFLASH, "block_size": 16}, dflash_tensors())
    assert "drafter changed (config)" in plans.judge(**LINES)["codesign.approved"].message


def test_settings_of_a_config_stay_short(plans: PlanFolder) -> None:
    """Long lists and odd keys are digests in the lock; a config of thousands of settings has none."""
    odd = {"layers": list(range(500)), "a\x1bb": 1, "deep": {"er": {"and": {"deeper": {"still": 1}}}}, "empty": {}}
    write_checkpoint(plans.target, {**TARGET, **odd}, target_tensors())
    approve(plans)
    lock = load_lock(plans.lock)
    assert lock is not None
    settings = lock.lock.target.config
    assert settings["hidden_size"] == "64"
    assert settings["layers"].startswith("sha256:")
    assert settings["deep.er.and.deeper"] == '{"still": 1}'
    assert settings["empty"] == "{}"
    assert not [key for key in settings if not key.isprintable()]
    write_checkpoint(plans.target, {**TARGET, **{f"k{number}": 1 for number in range(1000)}}, target_tensors())
    approve(plans)
    lock = load_lock(plans.lock)
    assert lock is not None
    assert lock.lock.target.config == {}
