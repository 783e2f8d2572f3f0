"""The pair on disk: judged, held against the lock, and watched for change."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from tests.serve.polled_desk import Page, write_budget

from specbudget.budget.lock import Lock, LockedAcceptance, lock_path, write_lock
from specbudget.budget.model import Budget
from specbudget.budget.reading import load_budget
from specbudget.catalog.sets import Artifact
from specbudget.domain.finding import CheckResult
from specbudget.domain.observation import EngineFacts
from specbudget.domain.pair_change import Change, RecheckPlan
from specbudget.pair.side import locked_model, read_side
from specbudget.serve.collect import collect
from specbudget.serve.desk import Desk
from specbudget.serve.pair_watch import PairWatch
from specbudget.serve.publish import render
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.sources.checkpoint import read_checkpoint

FACTS = EngineFacts(version="0.5.23", algorithm="DSPARK", speculates=True, num_steps=1, num_draft_tokens=9)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with target/ and drafter/ of the stand-in."""
    folder = tmp_path_factory.mktemp("models")
    write_target(folder / "target")
    write_drafter(folder / "drafter")
    return folder


def watch(folder: Path, models: Path) -> PairWatch:
    """A watch on the pair with a budget in `folder`."""
    budget = Budget.model_validate(
        {
            "service": "chat",
            "target": {"path": str(models / "target")},
            "drafter": {"path": str(models / "drafter"), "algorithm": "dspark"},
            "engine": {"version": "0.5.23"},
        }
    )
    return PairWatch(budget, folder / "budget.yaml")


def see(pairs: PairWatch, models: Path) -> None:
    """Reads both sides as they are now."""
    for artifact in Artifact:
        pairs.saw(artifact, read_side(read_checkpoint(models / artifact)))


def approve(pairs: PairWatch) -> None:
    """Writes the lock of the pair as it was read."""
    target, drafter = (locked_model(pairs.sides[a], kv_bytes_per_token=None) for a in Artifact)
    assert target is not None
    write_lock(
        lock_path(pairs.budget_file),
        Lock(
            lock=1,
            service="chat",
            approved_at="2026-01-31T12:00:00Z",
            target=target,
            drafter=drafter,
            acceptance={"default": LockedAcceptance(length=4.6, verify_steps=10_000)},
        ),
    )


def test_before_both_sides_are_read_nothing_is_judged(tmp_path: Path, models: Path) -> None:
    """Unknown, neither fit nor unfit."""
    verdict = watch(tmp_path, models).verdict(FACTS)
    assert verdict is not None
    assert (verdict.ratio, verdict.findings) == (None, ())


def test_a_pair_that_fits_passes(tmp_path: Path, models: Path) -> None:
    """No failing rule, and without a lock nothing can be due."""
    pairs = watch(tmp_path, models)
    see(pairs, models)
    verdict = pairs.verdict(FACTS)
    assert verdict is not None
    assert (verdict.ratio, verdict.failing, dict(verdict.due)) == (0.0, 0, {})
    assert verdict.counts()[CheckResult.PASS] > 15


def test_tokenizers_count_once_they_are_compared(tmp_path: Path) -> None:
    """The comparison is its own step, since it reads large files; the next verdict knows it."""
    write_target(tmp_path / "target")
    write_drafter(tmp_path / "drafter")
    for artifact, vocabulary in ((Artifact.TARGET, {"a": 0, "b": 1}), (Artifact.DRAFTER, {"b": 0, "a": 1})):
        (tmp_path / artifact / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    pairs = watch(tmp_path, tmp_path)
    pairs.compare_tokenizers()
    see(pairs, tmp_path)
    results = []
    for _ in range(2):
        verdict = pairs.verdict(FACTS)
        assert verdict is not None
        results += [finding.result for finding in verdict.findings if finding.check == "tokenizer"]
        pairs.compare_tokenizers()
    assert results == [CheckResult.UNKNOWN, CheckResult.FAIL]


def test_a_target_alone_is_no_pair(tmp_path: Path) -> None:
    """Where nothing points to a second model there is nothing to judge."""
    pairs = PairWatch(Budget.model_validate({"service": "a", "target": {"path": "t"}}), tmp_path / "budget.yaml")
    assert pairs.verdict(EngineFacts(speculates=False)) is None


def test_a_changed_drafter_is_told_against_the_lock(tmp_path: Path) -> None:
    """The approved pair is not due; another drafter config makes the KV plan due, whoever reads it first."""
    models = tmp_path / "models"
    write_target(models / "target")
    write_drafter(models / "drafter")
    pairs = watch(tmp_path, models)
    see(pairs, models)
    approve(pairs)
    pairs.read_lock()
    verdict = pairs.verdict(FACTS)
    assert verdict is not None
    assert set(verdict.due.values()) == {False}
    assert pairs.measured_lengths() == {"default": 4.6}
    config = models / "drafter" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 4096}))
    later = watch(tmp_path, models)
    later.read_lock()
    see(later, models)
    changed = later.verdict(FACTS)
    assert changed is not None
    assert changed.due[RecheckPlan.KV] is True
    assert changed.change.drafter.change is Change.CHANGED
    assert changed.ratio is not None
    assert changed.ratio >= 1.0


def test_a_changed_target_makes_the_acceptance_due(tmp_path: Path) -> None:
    """The target was swapped and the drafter is the same: the length that was measured is another target's."""
    models = tmp_path / "models"
    write_target(models / "target")
    write_drafter(models / "drafter")
    pairs = watch(tmp_path, models)
    see(pairs, models)
    approve(pairs)
    config = models / "target" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 4096}))
    later = watch(tmp_path, models)
    later.read_lock()
    see(later, models)
    changed = later.verdict(FACTS)
    assert changed is not None
    assert {plan for plan, due in changed.due.items() if due} == {RecheckPlan.ACCEPTANCE}
    assert changed.change.target.change is Change.CHANGED
    assert changed.change.drafter.change is Change.SAME
    assert changed.ratio is not None
    assert changed.ratio >= 1.0


@pytest.mark.parametrize("changed", list(Artifact))
def test_what_changed_shows_as_a_likely_cause_and_as_a_plan_that_is_due(tmp_path: Path, changed: Artifact) -> None:
    """A swapped target makes the acceptance due, a swapped drafter the KV plan; the other one is not suspected."""
    models = tmp_path / "models"
    write_target(models / "target")
    write_drafter(models / "drafter")
    sides = {"target": {"path": "models/target"}, "drafter": {"path": "models/drafter", "algorithm": "dspark"}}
    budget = write_budget(tmp_path, "http://127.0.0.1:9", **sides)
    desk = Desk(load_budget(budget), 0.0)
    see(desk.pairs, models)
    approve(desk.pairs)
    desk.pairs.read_lock()
    config = models / changed / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 4096}))
    see(desk.pairs, models)
    page = Page(render(collect(desk, 1_796_000_000.0)).text)
    suspected = {a: page.value("acceptance_suspect", cause=f"{a}_changed") for a in Artifact}
    assert suspected == {a: float(a is changed) for a in Artifact}
    due = {plan: page.value("recheck_due", plan=plan) for plan in ("acceptance", "kv", "two_model")}
    target = changed is Artifact.TARGET
    assert due == {"acceptance": float(target), "kv": float(not target), "two_model": 0}


def test_without_a_lock_a_change_is_told_against_what_was_seen_first(tmp_path: Path) -> None:
    """A swap under a running engine is seen; no plan is due, since nobody approved one."""
    models = tmp_path / "models"
    write_target(models / "target")
    write_drafter(models / "drafter")
    pairs = watch(tmp_path, models)
    see(pairs, models)
    write_drafter(models / "drafter", changes={"max_position_embeddings": 4096})
    see(pairs, models)
    verdict = pairs.verdict(FACTS)
    assert verdict is not None
    assert verdict.change.drafter.change is Change.CHANGED
    assert dict(verdict.due) == {}


def test_a_broken_lock_leaves_the_old_one_in_force(
    tmp_path: Path, models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line per fault, once, with file and line; the approved lengths stay."""
    pairs = watch(tmp_path, models)
    see(pairs, models)
    approve(pairs)
    pairs.read_lock()
    lock_path(pairs.budget_file).write_text("lock: 1\nservice: [\n")
    with caplog.at_level(logging.ERROR):
        pairs.read_lock()
        pairs.read_lock()
    assert len([r for r in caplog.records if "budget.lock:" in r.getMessage()]) == 1
    assert pairs.measured_lengths() == {"default": 4.6}
