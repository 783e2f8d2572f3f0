"""Every comparison, threshold, guard and wait of every alert is held by a case: change it, and one fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from generate.promtool import failures, run
from generate.rule_cases import SETTINGS, seconds
from generate.test_rules_fire import cases_of, written
from specbudget.catalog.alerts import ALERTS, AlertDef
from specbudget.catalog.alerts.burn import BURN_DAY, FAST_BURN
from specbudget.catalog.promql import Clause, Condition, Join, Joined
from specbudget.catalog.recording import RecordDef, record_groups

OPPOSITE = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}
SWAPPED = {Join.AND: Join.UNLESS, Join.UNLESS: Join.AND}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """What is changed, and what stands in its place."""

    alert: AlertDef
    change: str
    condition: Condition | None = None
    waits: float | None = None
    record: RecordDef | None = None


def bounds(clause: Clause) -> Iterator[str]:
    """Other bounds: half as much again and two thirds; for what is counted, the next whole number."""
    match clause.op, clause.bound:
        case (("==" | "!="), ("0" | "1") as bound):
            yield "1" if bound == "0" else "0"
        case _, "0":
            yield "1"
        case _, "1":
            yield from ("2", "0.67")
        case (("==" | "!="), _):
            pass
        case _, bound:
            yield from (f"1.5 * ({bound})", f"({bound}) / 1.5")


def clauses(clause: Clause) -> Iterator[tuple[str, Clause]]:
    if clause.op:
        yield f"{clause.op} → {OPPOSITE[clause.op]}", replace(clause, op=OPPOSITE[clause.op])
        for bound in bounds(clause):
            yield f"{clause.op} {clause.bound} → {bound}", replace(clause, bound=bound)


def changed(condition: Condition, known: frozenset[str]) -> Iterator[tuple[str, Condition]]:
    """Each condition that differs in one place. A part that is the whole of another alert, in `known`, is kept."""
    for change, first in clauses(condition.first):
        yield change, replace(condition, first=first)
    for place, joined in enumerate(condition.rest):

        def with_part(new: tuple[Joined, ...], place: int = place) -> Condition:
            return replace(condition, rest=(*condition.rest[:place], *new, *condition.rest[place + 1 :]))

        yield f"without `{joined.join}` {place}", with_part(())
        yield f"`{joined.join}` {place} turned round", with_part((replace(joined, join=SWAPPED[joined.join]),))
        if joined.part.text() in known:
            continue
        inner = clauses(joined.part) if isinstance(joined.part, Clause) else changed(joined.part, known)
        for change, part in inner:
            yield f"{place}: {change}", with_part((replace(joined, part=part),))
    for place, other in enumerate(condition.otherwise):
        rest = (*condition.otherwise[:place], *condition.otherwise[place + 1 :])
        yield f"without `or` {place}", replace(condition, otherwise=rest)
        for change, part in changed(other, known):
            otherwise = (*condition.otherwise[:place], part, *condition.otherwise[place + 1 :])
            yield f"or {place}: {change}", replace(condition, otherwise=otherwise)


def mutants() -> Iterator[Mutant]:
    conditions = {alert: alert.condition(SETTINGS) for alert in ALERTS}
    known = frozenset(condition.text() for condition in conditions.values() if condition is not None)
    for alert, condition in conditions.items():
        assert condition is not None
        for change, other in changed(condition, known):
            yield Mutant(alert=alert, change=change, condition=other)
        if alert.for_seconds:
            # by one evaluation at least, or nothing shows
            coarsest = max(seconds(case.evaluated) for case in cases_of(alert))
            longer = alert.for_seconds + max(alert.for_seconds, coarsest)
            yield Mutant(alert=alert, change="waits longer", waits=longer)
            yield Mutant(alert=alert, change="does not wait", waits=0)
    read_by = {"bad_from_boot:last": BURN_DAY, "held_back:last5m": FAST_BURN}
    for record in (rule for group in record_groups(SETTINGS) for rule in group.rules):
        for part, alert in read_by.items():
            if part in record.name:
                assert isinstance(record.expr, Condition)
                for change, other in changed(record.expr, frozenset()):
                    yield Mutant(alert=alert, change=f"{part} {change}", record=replace(record, expr=other))


@pytest.mark.slow
@pytest.mark.longest
def test_every_mutant_is_noticed(tmp_path: Path) -> None:
    """Some case fails for each; the message lists those that all cases let pass."""
    alive = list(mutants())
    assert len(alive) > 300
    # a mutant that one case has noticed need not be shown to the others: the first case notices most
    for turn, chosen in enumerate((slice(1), slice(1, 4), slice(4, 8), slice(8, None))):
        files: dict[Path, Mutant] = {}
        for place, mutant in enumerate(alive):
            cases = [case for case in cases_of(mutant.alert) if not case.plain][chosen]
            replaced = {} if mutant.record is None else {mutant.record.name: mutant.record}
            folder = tmp_path / f"{turn}-{place:04}"
            for file in written(
                folder, mutant.alert, cases, condition=mutant.condition, waits=mutant.waits, replaced=replaced
            ):
                files[file] = mutant
        noticed = [files[file] for file in failures(list(files))]
        alive = [mutant for mutant in alive if not any(mutant is other for other in noticed)]
    assert not alive, "\n".join(f"{mutant.alert.name}: {mutant.change}" for mutant in alive)


def test_every_mutant_is_a_rule_that_parses(tmp_path: Path) -> None:
    """A mutant must fail for what it does: the mutator writes nothing that promtool refuses."""
    files = []
    for place, mutant in enumerate(mutants()):
        if mutant.condition is not None:
            files += written(tmp_path / str(place), mutant.alert, [], condition=mutant.condition)
    rules = sorted(tmp_path.glob("*/rules.yml"))
    checked = run("check", "rules", *rules)
    assert checked.returncode == 0, re.sub(r"(?m)^Checking.*\n.*SUCCESS.*\n", "", checked.stderr)[:2000]
