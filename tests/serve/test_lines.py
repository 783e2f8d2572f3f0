"""What each budget line has spent, and the state that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specbudget.budget.model import Budget
from specbudget.budget.slo_policy import slo_policy
from specbudget.catalog.sets import Scope
from specbudget.domain.acceptance import Ints
from specbudget.domain.finding import CheckResult, Finding
from specbudget.domain.line_state import LineState, Spending, line_state
from specbudget.domain.pair_change import Change, ModelChange, PairChange, RecheckPlan
from specbudget.domain.requests import UNKNOWN, RequestBatch
from specbudget.serve.acceptance_book import AcceptanceBook
from specbudget.serve.kv_figures import KvFigures, PoolFigures
from specbudget.serve.ledger import Ledger
from specbudget.serve.lines import (
    acceptance_spendings,
    artifact_spendings,
    codesign_spendings,
    kv_spendings,
    staging_spendings,
)
from specbudget.serve.pair_watch import PairVerdict

GIB = 1 << 30
NOW = 1_796_000_000.0


def budget(drafter: bool = True, **lines: Any) -> Budget:
    """A budget with these lines, for a target alone or a pair."""
    models = {"target": {"path": "/models/target"}} | ({"drafter": {"path": "/models/drafter"}} if drafter else {})
    return Budget.model_validate({"service": "chat", "budget": lines, **models})


def by_budget(spendings: list[Spending]) -> dict[str, float | None]:
    """What is spent, by budget."""
    return {spending.budget: spending.spent for spending in spendings}


ALL_ARTIFACTS = {"target": "10GiB", "drafter": "2GiB", "total": "11GiB", "image": "20GiB"}


def test_artifacts_are_what_the_checkpoints_hold() -> None:
    """Target and drafter on their own, both in total and in the image."""
    spendings = artifact_spendings(budget(artifacts=ALL_ARTIFACTS), {"target": 9 * GIB, "drafter": 3 * GIB})
    assert by_budget(spendings) == {
        "target": 9 * GIB,
        "drafter": 3 * GIB,
        "total": 12 * GIB,
        "image": 12 * GIB,
    }
    assert line_state(spendings) is LineState.BREACH


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    """A drafter that cannot be read makes the total unknown, not smaller; what is known is still judged."""
    spendings = artifact_spendings(budget(artifacts=ALL_ARTIFACTS), {"target": 5 * GIB, "drafter": None})
    assert by_budget(spendings) == {"target": 5 * GIB, "drafter": None, "total": None, "image": None}
    assert line_state(spendings) is LineState.UNKNOWN
    assert all(s.why for s in spendings if s.spent is None)


def test_a_target_alone_has_a_total() -> None:
    """Where no drafter is configured there is none to wait for."""
    spendings = artifact_spendings(budget(drafter=False, artifacts={"total": "11GiB"}), {"target": 5 * GIB})
    assert by_budget(spendings) == {"total": 5 * GIB}


def test_what_is_not_budgeted_is_not_spent() -> None:
    """A line that is left out has no budget, whatever is known."""
    empty, book = budget(), AcceptanceBook(Ledger(), slo_policy(budget()))
    assert artifact_spendings(empty, {"target": 1}) == []
    assert kv_spendings(empty, KvFigures()) == []
    assert acceptance_spendings(empty, book, scope=Scope.BATCH, break_even=2.0, now=NOW) == []
    assert staging_spendings(empty, None) == []
    assert by_budget(artifact_spendings(budget(artifacts={"image": "1GiB"}), {})) == {"image": None}


def figures(*use: tuple[float, float]) -> KvFigures:
    """Pools of ranks with so many tokens used of so many; a token costs 1 MiB of the target, 2 MiB of the drafter."""
    pools = [
        {
            str(rank): PoolFigures(
                capacity_tokens=capacity,
                used_tokens=used,
                capacity_bytes=capacity * size,
                used_bytes=used * size,
            )
            for rank, (used, capacity) in enumerate(use)
        }
        for size in (1 << 20, 2 << 20)
    ]
    return KvFigures(target_pools=pools[0], drafter_pools=pools[1])


ALL_KV = {"target": "1GiB", "drafter": "1GiB", "high_water": 0.8, "min_target_tokens": 500}


def test_kv_is_judged_by_its_fullest_rank() -> None:
    """The largest pool against the bytes, the fullest against high water, the smallest against the floor."""
    spendings = kv_spendings(budget(kv=ALL_KV), figures((100, 1000), (450, 500)))
    assert by_budget(spendings) == {
        "target": 1000 << 20,
        "drafter": 2000 << 20,
        "high_water": 0.9,
        "min_target_tokens": 500,
    }
    assert {s.budget: s.used_ratio for s in spendings} == {
        "target": pytest.approx(1000 / 1024),
        "drafter": pytest.approx(2000 / 1024),
        "high_water": pytest.approx(0.9 / 0.8),
        "min_target_tokens": 1.0,
    }


@pytest.mark.parametrize(
    ("used", "state"),
    [(0, LineState.OK), (800, LineState.OK), (801, LineState.AT_RISK), (1000, LineState.AT_RISK)],
)
def test_high_water_is_a_mark_and_no_breach(used: float, state: LineState) -> None:
    """A full pool is the engine at work: above high water the line is at risk, below it nothing is."""
    assert line_state(kv_spendings(budget(kv={"high_water": 0.8}), figures((used, 1000)))) is state


def test_a_pool_that_shrank_below_its_floor_is_a_breach() -> None:
    """499 tokens against 500."""
    assert line_state(kv_spendings(budget(kv={"min_target_tokens": 500}), figures((0, 499)))) is LineState.BREACH


def test_kv_without_an_engine_is_unknown() -> None:
    """Every figure is unknown with its reason, and none is 0."""
    spendings = kv_spendings(budget(kv=ALL_KV), KvFigures())
    assert set(by_budget(spendings).values()) == {None}
    assert line_state(spendings) is LineState.UNKNOWN
    assert all(s.why for s in spendings)


def acceptance(
    lengths: list[float], *, guard: dict[str, int] | None = None, steps: float = 100.0, **more: Any
) -> tuple[Budget, AcceptanceBook]:
    """A budget judged by batch reports, and a book with one report of so many steps a second of each length."""
    line = {
        "target_length": 2.5,
        "sli": "batch",
        "page_guard": guard or {"events": 20, "verify_steps": 500},
        **more,
    }
    made = budget(acceptance=line)
    book = AcceptanceBook(Ledger(), slo_policy(made))
    for second, length in enumerate(reversed(lengths)):
        book.count_batch("0", length, steps, window=None, at=NOW - second, now=NOW)
    return made, book


def spent_on_acceptance(made: tuple[Budget, AcceptanceBook], *, break_even: float | None = None) -> dict[str, Spending]:
    """The acceptance line's spendings now, by budget."""
    spendings = acceptance_spendings(*made, scope=Scope.BATCH, break_even=break_even, now=NOW)
    return {spending.budget: spending for spending in spendings}


def test_acceptance_without_an_event_is_unknown() -> None:
    """Of no event nobody can say what share was bad: the burns are unknown too, none is 0, and each says why."""
    spendings = spent_on_acceptance(acceptance([], break_even=2.0), break_even=2.0)
    assert {name: (s.spent, s.used_ratio) for name, s in spendings.items()} == dict.fromkeys(
        ("target_length", "break_even", "burn_fast", "burn_slow"), (None, None)
    )
    assert {line_state([s]) for s in spendings.values()} == {LineState.UNKNOWN}
    assert spendings["burn_fast"].why == "no valid event in the last 1h"
    assert all(s.why for s in spendings.values())


def test_a_service_that_fell_idle_burns_nothing() -> None:
    """Bad events of half an hour ago are in the hour and not in the last 5 minutes: the fast burn is 0, and known."""
    made, book = acceptance([])
    for second in range(40):
        book.count_batch("0", 1.5, 100.0, window=None, at=NOW - 1800 - second, now=NOW)
    spendings = spent_on_acceptance((made, book))
    assert (spendings["burn_fast"].spent, spendings["burn_fast"].why) == (0.0, "")
    assert line_state([spendings["burn_fast"]]) is LineState.OK
    later = {s.budget: s for s in acceptance_spendings(made, book, scope=Scope.BATCH, break_even=None, now=NOW + 7200)}
    assert (later["burn_fast"].spent, later["burn_slow"].spent) == (None, 0.0)


def finished(profile: int, lengths: Ints) -> RequestBatch:
    """Requests of one profile with these lengths, in hundredths, of 100 verify steps each."""
    n = len(lengths)
    zeros, unknown = np.zeros(n, dtype=np.int64), np.full(n, UNKNOWN)
    return RequestBatch(
        finished_at=np.full(n, NOW),
        output_tokens=lengths,
        prompt_tokens=zeros,
        cached_tokens=zeros,
        aborted=np.zeros(n, dtype=bool),
        steps=np.full(n, 100),
        accepted=lengths - 100,
        proposed=unknown,
        window=unknown,
        bound=unknown,
        rank=zeros,
        profile=np.full(n, profile),
        histogram=np.zeros((n, 0), dtype=np.int64),
    )


@pytest.mark.parametrize(("hard", "worst"), [(200, (2.05, 1.9)), (300, (5.05, 4.0))], ids=["hard", "default"])
def test_the_length_reached_is_of_the_profile_that_is_worst_off(hard: int, worst: tuple[float, float]) -> None:
    """Of 100 lengths 95 % reach the sixth lowest; of two profiles that one counts which is nearer to its own target.

    So the figure can lie above the mean of all requests, as it does where most are of the other, shorter profile.
    """
    profiles = {"hard": {"match": {"model": "hard"}, "target_length": 1.9}}
    made = budget(acceptance={"target_length": 4.0, "profiles": profiles})
    book = AcceptanceBook(Ledger(), slo_policy(made))
    for profile, lowest in (("default", 500), ("hard", hard)):
        book.count_requests(finished(book.policy.profiles.index(profile), lowest + np.arange(100)), NOW)
    reached = spent_on_acceptance((made, book))["target_length"]
    assert (reached.spent, reached.limit) == worst


def test_a_collapse_burns_twenty_times_and_breaches() -> None:
    """All events bad at 95 %: a burn of 20 against 13.44 and 5.6, and a length below the target and break-even."""
    spendings = spent_on_acceptance(acceptance([1.5] * 40, break_even=2.0), break_even=2.0)
    assert spendings["burn_fast"].spent == pytest.approx(20.0)
    assert spendings["burn_fast"].limit == pytest.approx(13.44)
    assert spendings["burn_slow"].limit == pytest.approx(5.6)
    assert (spendings["target_length"].spent, spendings["target_length"].used_ratio) == (
        1.5,
        pytest.approx(2.5 / 1.5),
    )
    assert spendings["break_even"].spent == pytest.approx(1.5)
    assert line_state(spendings.values()) is LineState.BREACH


def test_too_little_traffic_shows_its_burn_and_breaches_nothing() -> None:
    """Nineteen bad events burn as fast, and page nobody: the guard wants twenty."""
    spendings = spent_on_acceptance(acceptance([1.5] * 19))
    assert spendings["burn_fast"].spent == pytest.approx(20.0)
    assert line_state([spendings["burn_fast"]]) is LineState.AT_RISK
    few_steps = spent_on_acceptance(acceptance([1.5] * 20, guard={"events": 20, "verify_steps": 2001}))
    assert line_state([few_steps["burn_fast"]]) is LineState.AT_RISK
    enough = spent_on_acceptance(acceptance([1.5] * 20, guard={"events": 20, "verify_steps": 2000}))
    assert line_state([enough["burn_fast"]]) is LineState.BREACH


@pytest.mark.parametrize(("steps", "state"), [(10.0, LineState.AT_RISK), (10_000.0, LineState.BREACH)])
def test_three_of_four_bad_at_night_page_nobody(steps: float, state: LineState) -> None:
    """A burn of 15.0 against 14.4: with 40 verify steps under a guard of 1000 it is shown, with 40000 it breaches."""
    guard = {"events": 1, "verify_steps": 1000}
    made = acceptance([1.5, 1.5, 3.0, 1.5], guard=guard, steps=steps, objective=0.95, window="30d")
    fast = spent_on_acceptance(made)["burn_fast"]
    assert (fast.spent, fast.limit) == (pytest.approx(15.0), pytest.approx(14.4))
    assert line_state([fast]) is state
    # how little there was can be read
    assert made[1].events(3600.0, NOW) == (1.0, 3.0, 4 * steps)


def test_healthy_traffic_is_ok() -> None:
    """One bad event of forty is within the objective."""
    spendings = spent_on_acceptance(acceptance([1.5] + [3.0] * 39, break_even=2.0), break_even=2.0)
    assert line_state(spendings.values()) is LineState.OK
    assert spendings["target_length"].spent == 3.0


def test_break_even_without_a_known_batch_is_unknown() -> None:
    """Several points and no running engine: nobody knows which of them holds."""
    points = [{"running": 1, "length": 2.1}, {"running": 64, "length": 3.4}]
    spendings = spent_on_acceptance(acceptance([3.0] * 40, break_even=points), break_even=None)
    spending = spendings["break_even"]
    assert (spending.spent, spending.limit, spending.used_ratio) == (3.0, None, None)
    assert "how many requests run is not known" in spending.why
    assert line_state([spending]) is LineState.UNKNOWN


def test_a_cold_start_is_unknown_until_a_start_was_seen() -> None:
    """Budgeted and not computable: unknown, never ok; a start that is going on counts as far as it is."""
    made = budget(staging={"cold_start": "90s"})
    assert [(s.budget, s.spent, s.limit) for s in staging_spendings(made, None)] == [("cold_start", None, 90.0)]
    assert line_state(staging_spendings(made, None)) is LineState.UNKNOWN
    assert line_state(staging_spendings(made, 60.0)) is LineState.OK
    assert line_state(staging_spendings(made, 100.0)) is LineState.BREACH


def verdict(*results: CheckResult, due: bool = False) -> PairVerdict:
    """Rules with these results; every unknown one is required."""
    same = ModelChange(change=Change.SAME)
    return PairVerdict(
        findings=tuple(
            Finding(id=f"codesign.r{i}", result=r, required=True, message="") for i, r in enumerate(results)
        ),
        change=PairChange(target=same, drafter=same),
        due={RecheckPlan.KV: due},
    )


@pytest.mark.parametrize(
    ("judged", "ratio", "state"),
    [
        (verdict(CheckResult.PASS), 0.0, LineState.OK),
        (verdict(CheckResult.PASS, CheckResult.WARN), 1.0, LineState.AT_RISK),
        (verdict(CheckResult.PASS, due=True), 1.0, LineState.AT_RISK),
        (verdict(CheckResult.WARN, CheckResult.FAIL), 2.0, LineState.BREACH),
        (verdict(CheckResult.PASS, CheckResult.UNKNOWN), None, LineState.UNKNOWN),
    ],
    ids=["fits", "warning", "recheck due", "unfit", "fact missing"],
)
def test_the_pair_breaches_when_a_rule_fails(judged: PairVerdict, ratio: float | None, state: LineState) -> None:
    """Any failing rule makes the ratio 2; a warning or a recheck that is due puts the line at risk."""
    (spending,) = codesign_spendings(judged)
    assert spending.used_ratio == ratio
    assert line_state([spending]) is state
    assert codesign_spendings(None) == []
