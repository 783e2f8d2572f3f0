"""What a dashboard says of several replicas: the worst counts, and a silent one is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generate.dashboard_files import SETTINGS, Query, queries
from generate.promtool import failures
from specbudget.catalog import series
from specbudget.catalog.lines import ACCEPTANCE, CODESIGN, KV, LINES, LineDef, Unit
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import LINE_STATES, SPECULATION_STATES
from specbudget.domain.line_state import LineState, Spending, line_state
from specbudget.domain.speculation import SpeculationState
from specbudget.generate.dashboards.ledger import SHOWN_IN
from specbudget.generate.dashboards.queries import SEVERITY

pytestmark = pytest.mark.slow

Samples = dict[str, str]
MINUTES = 30


def sample(one: SeriesDef, replica: str = "a", cluster: str = "c1", **labels: str) -> str:
    around = {"cluster": cluster, "namespace": "llm", "pod": replica, "instance": f"{replica}:9877", "job": "s"}
    every = around | {"specbudget_service": SETTINGS.service} | labels
    return f"{one.full_name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in every.items())}}}"


def holds(value: float) -> str:
    return f"{value}x{MINUTES}"


def panel(title: str, ref: str = "A") -> Query:
    (found,) = (query for query in queries() if query.panel == title and query.ref == ref)
    return found


def checked(folder: Path, samples: Samples, query: Query, expected: list[tuple[dict[str, str], float]]) -> None:
    """The query gives exactly these samples after half an hour, in a real Prometheus."""
    wanted = [
        {"labels": f"{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}}", "value": value}
        for labels, value in expected
    ]
    check: dict[str, Any] = {"expr": query.filled, "eval_time": f"{MINUTES}m", "exp_samples": wanted}
    group = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in samples.items()],
        "promql_expr_test": [check],
    }
    (folder / "tests.yml").write_text(json.dumps({"evaluation_interval": "1m", "tests": [group]}))
    said = failures([folder / "tests.yml"])
    assert not said, "\n".join(said.values())


def of(line: str, budget: str, **more: str) -> dict[str, str]:
    return {"specbudget_service": SETTINGS.service, "line": line, "budget": budget} | more


def test_the_ledger_shows_the_worst_replica(tmp_path: Path) -> None:
    """Of a cap the most spent and the least allowed, of a floor the least there is and the most demanded."""
    cap, floor = KV.budget("target"), KV.budget("min_target_tokens")
    samples = {
        sample(series.BUDGET_SPENT[cap.unit], "a", line="kv", budget=cap.id): holds(3 * 2**30),
        sample(series.BUDGET_SPENT[cap.unit], "b", line="kv", budget=cap.id): holds(2 * 2**30),
        sample(series.BUDGET_SPENT[floor.unit], "a", line="kv", budget=floor.id): holds(500),
        sample(series.BUDGET_SPENT[floor.unit], "b", line="kv", budget=floor.id): holds(700),
        sample(series.BUDGET_LIMIT[cap.unit], "a", line="kv", budget=cap.id): holds(4 * 2**30),
        sample(series.BUDGET_LIMIT[cap.unit], "b", line="kv", budget=cap.id): holds(5 * 2**30),
        sample(series.BUDGET_LIMIT[floor.unit], "a", line="kv", budget=floor.id): holds(400),
        sample(series.BUDGET_LIMIT[floor.unit], "b", line="kv", budget=floor.id): holds(600),
    }
    title = "Ledger of the five lines"
    spent = [(of("kv", cap.id, unit="GiB"), 3.0), (of("kv", floor.id, unit="tokens"), 500.0)]
    checked(tmp_path, samples, panel(title, "C"), spent)
    limit = [(of("kv", cap.id, unit="GiB"), 4.0), (of("kv", floor.id, unit="tokens"), 600.0)]
    checked(tmp_path, samples, panel(title, "D"), limit)


@pytest.mark.parametrize("unit", list(Unit))
def test_every_unit_of_a_budget_has_its_word(unit: Unit, tmp_path: Path) -> None:
    """Each row of the ledger says in what it counts."""
    line, budget = next((line, budget) for line in LINES for budget in line.budgets if budget.unit is unit)
    word, divisor = SHOWN_IN[unit]
    samples = {sample(series.BUDGET_SPENT[unit], line=line.id, budget=budget.id): holds(7.0 * divisor)}
    expected = [(of(line.id, budget.id, unit=word), 7.0)]
    checked(tmp_path, samples, panel("Ledger of the five lines", "C"), expected)


def ratio(line: LineDef, budget: str, value: float | None, replica: str = "a") -> Samples:
    """A budget with a limit, and a used ratio where it is known."""
    found = line.budget(budget)
    samples = {sample(series.BUDGET_LIMIT[found.unit], replica, line=line.id, budget=budget): holds(1.0)}
    if value is not None:
        samples[sample(series.BUDGET_USED_RATIO, replica, line=line.id, budget=budget)] = holds(value)
    return samples


@pytest.mark.parametrize(
    ("line", "budget", "value", "of_line", "shown"),
    [
        (KV, "high_water", 1.08, LineState.AT_RISK, LineState.AT_RISK),
        (KV, "high_water", 0.95, LineState.OK, LineState.OK),
        (KV, "target", 1.08, LineState.BREACH, LineState.BREACH),
        (KV, "target", 0.95, LineState.AT_RISK, LineState.AT_RISK),
        (KV, "min_target_tokens", 1.0, LineState.AT_RISK, LineState.AT_RISK),
        (CODESIGN, "pair", 1.0, LineState.AT_RISK, LineState.AT_RISK),
        (CODESIGN, "pair", 2.0, LineState.BREACH, LineState.BREACH),
        (ACCEPTANCE, "burn_fast", 1.4, LineState.AT_RISK, LineState.AT_RISK),
        (ACCEPTANCE, "burn_fast", 1.4, LineState.BREACH, LineState.BREACH),
        (ACCEPTANCE, "burn_fast", None, LineState.UNKNOWN, LineState.UNKNOWN),
    ],
    ids=["above the mark", "near the mark", "over", "nearly over", "at the floor", "a warning", "unfit",
         "little traffic", "burns", "no event"],
)  # fmt: skip
def test_the_ledger_judges_a_budget_as_its_line_does(
    line: LineDef, budget: str, value: float | None, of_line: LineState, shown: LineState, tmp_path: Path
) -> None:
    """A mark is passed and breaches nothing, and what too little traffic speaks for does not either."""
    samples = ratio(line, budget, value) | states(line.id, "a", of_line)
    expected = [(of(line.id, budget), float(SEVERITY.index(shown)))]
    checked(tmp_path, samples, panel("Ledger of the five lines", "E"), expected)


def test_the_ledger_tells_which_replica_is_in_breach(tmp_path: Path) -> None:
    """The worst of two counts; that the line of another replica is in breach says nothing of this one's burn."""
    samples = ratio(ACCEPTANCE, "burn_fast", 1.4, "a") | states(ACCEPTANCE.id, "a", LineState.AT_RISK)
    samples |= ratio(ACCEPTANCE, "break_even", 1.2, "b") | states(ACCEPTANCE.id, "b", LineState.BREACH)
    samples |= ratio(ACCEPTANCE, "break_even", 0.5, "a")
    expected = [
        (of(ACCEPTANCE.id, "burn_fast"), float(SEVERITY.index(LineState.AT_RISK))),
        (of(ACCEPTANCE.id, "break_even"), float(SEVERITY.index(LineState.BREACH))),
    ]
    checked(tmp_path, samples, panel("Ledger of the five lines", "E"), expected)


def test_the_length_reached_is_of_the_replica_that_is_worst_off(tmp_path: Path) -> None:
    """5.2 against a target of 4 is worse than 2.7 against 1.9: the ratio counts, and not the least length."""
    budget = ACCEPTANCE.budget("target_length")
    samples: Samples = {}
    for replica, length, target in (("a", 5.2, 4.0), ("b", 2.7, 1.9)):
        labels = {"line": ACCEPTANCE.id, "budget": budget.id}
        samples[sample(series.BUDGET_SPENT[budget.unit], replica, **labels)] = holds(length)
        samples[sample(series.BUDGET_USED_RATIO, replica, **labels)] = holds(target / length)
    query = panel("Acceptance length against target and break-even", "C")
    checked(tmp_path, samples, query, [({}, 5.2)])


def test_nearly_all_reach_a_low_length(tmp_path: Path) -> None:
    """Of 100 requests a minute five lie between 2 and 2.5 and five above 5: 95 % reach 2.5, half 3.25, 10 % 4.75."""
    of_bucket = {"2": 0, "2.5": 5, "3": 30, "3.5": 70, "4": 80, "4.5": 85, "5": 95, "6": 100, "+Inf": 100}
    name = series.REQUEST_ACCEPTANCE_LENGTH
    samples = {
        sample(name, profile="default", le=le).replace(name.full_name, f"{name.full_name}_bucket"): f"0+{n}x{MINUTES}"
        for le, n in of_bucket.items()
    }
    for ref, reached in (("A", 2.5), ("B", 3.25), ("C", 4.75)):
        query = panel("Length that requests reach", ref)
        wide = replace(query, expr=query.expr.replace("$__rate_interval", "5m"))
        checked(tmp_path, samples, wide, [({}, reached)])


def states(line: str, replica: str, state: LineState | None, **more: str) -> Samples:
    if state is None:
        return {}
    return {
        sample(series.LINE_STATE, replica, line=line, state=each, **more): holds(float(each is state))
        for each in LINE_STATES
    }


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (LineState.OK, LineState.OK, LineState.OK),
        (LineState.OK, LineState.UNKNOWN, LineState.UNKNOWN),
        (LineState.UNKNOWN, LineState.AT_RISK, LineState.AT_RISK),
        (LineState.AT_RISK, LineState.BREACH, LineState.BREACH),
        (LineState.OK, None, LineState.OK),
        (None, None, LineState.UNKNOWN),
    ],
)
def test_a_tile_shows_the_worst_state(
    one: LineState, other: LineState | None, shown: LineState, tmp_path: Path
) -> None:
    """Of two replicas the worse one; where nobody ever told anything the line is unknown, and never ok."""
    samples = states(ACCEPTANCE.id, "a", one) | states(ACCEPTANCE.id, "b", other)
    samples |= states(KV.id, "a", LineState.BREACH)  # another line is another tile
    tile = next(q for q in queries() if q.panel == "The five lines now" and f'line="{ACCEPTANCE.id}"' in q.expr)
    checked(tmp_path, samples, tile, [({}, float(SEVERITY.index(shown)))])


def test_a_service_that_fell_silent_is_unknown(tmp_path: Path) -> None:
    """Told until ten minutes ago and no more, beside another that is ok: unknown, since silence is not health."""
    samples = {
        sample(series.LINE_STATE, "a", line=ACCEPTANCE.id, state="ok", specbudget_service="other"): "1x20 stale",
        sample(series.LINE_STATE, "b", line=ACCEPTANCE.id, state="ok"): holds(1),
    }
    tile = next(q for q in queries() if q.panel == "The five lines now" and f'line="{ACCEPTANCE.id}"' in q.expr)
    every = Query(tile.dashboard, tile.panel, tile.ref, tile.expr.replace("$service", ".*"), tile.instant)
    checked(tmp_path, samples, every, [({}, float(SEVERITY.index(LineState.UNKNOWN)))])


@pytest.mark.parametrize("one", list(LineState))
@pytest.mark.parametrize("other", list(LineState))
def test_states_are_ordered_as_the_sidecar_orders_them(one: LineState, other: LineState) -> None:
    """What a line of two such budgets would be is what two such replicas are."""
    ratio = {LineState.OK: 0.5, LineState.AT_RISK: 0.95, LineState.BREACH: 1.5, LineState.UNKNOWN: None}
    both = line_state(Spending(line="kv", budget="b", spent=ratio[each], limit=1.0) for each in (one, other))
    assert max(one, other, key=SEVERITY.index) == both


def test_one_rank_that_is_off_is_shown(tmp_path: Path) -> None:
    """Of two ranks the state that comes first in the set, not the better one."""
    samples = {
        sample(series.SPECULATION_STATE, rank=rank, state=state): holds(float(state is of_rank))
        for rank, of_rank in (("0", SpeculationState.ACTIVE), ("1", SpeculationState.OFF))
        for state in SPECULATION_STATES
    }
    checked(tmp_path, samples, panel("Speculation"), [({}, float(SPECULATION_STATES.index(SpeculationState.OFF)))])


def test_replicas_of_two_clusters_are_two(tmp_path: Path) -> None:
    """The same address in another cluster is another replica."""
    samples = {
        sample(series.KV_RETRACTIONS, cluster=cluster, rank="0"): f"0+{60 * pace}x{MINUTES}"
        for cluster, pace in (("c1", 1), ("c2", 2))
    }
    around = {"namespace": "llm", "pod": "a", "instance": "a:9877", "specbudget_service": SETTINGS.service}
    expected = [(around | {"cluster": "c1"}, 1.0), (around | {"cluster": "c2"}, 2.0)]
    query = panel("Retractions by replica")
    # two samples of a minute apart: the window of a test has to hold them
    wide = Query(query.dashboard, query.panel, query.ref, query.expr.replace("$__rate_interval", "5m"), query.instant)
    checked(tmp_path, samples, wide, expected)


def test_a_batch_length_of_replicas_is_a_ratio_of_sums(tmp_path: Path) -> None:
    """A replica with nine times the steps counts nine times."""
    samples: Samples = {}
    for replica, length, pace in (("a", 2.0, 9), ("b", 4.0, 1)):
        samples[sample(series.ROLLING_ACCEPTANCE_LENGTH, replica, scope="batch", window="5m")] = holds(length)
        samples[sample(series.VERIFY_STEPS, replica, rank="0", profile="default")] = f"0+{60 * pace}x{MINUTES}"
    query = panel("Acceptance length against target and break-even", "B")
    checked(tmp_path, samples, query, [({}, 2.2)])


def test_the_timeline_is_of_one_replica(tmp_path: Path) -> None:
    """Of the slower one, and of no mixture of both."""
    samples: Samples = {}
    for replica, begin, took in (("a", 1, 50), ("b", 20, 5)):
        stage = {"artifact": "target", "stage": "load"}
        samples[sample(series.STARTUP_STAGE_OFFSET, replica, **stage)] = holds(begin)
        samples[sample(series.STARTUP_STAGE_DURATION, replica, **stage)] = holds(took)
    title = "The latest start, stage by stage"
    checked(tmp_path, samples, panel(title, "A"), [({"lane": "target: load"}, 1.0)])
    checked(tmp_path, samples, panel(title, "B"), [({"lane": "target: load"}, 50.0)])


def test_an_unloaded_rule_file_is_told(tmp_path: Path) -> None:
    """Steps are counted and no recorded series is there: alerts are silent, and a row says why."""
    samples = {
        sample(series.BUILD_INFO, version="1", pythonversion="3.11"): holds(1),
        sample(series.VERIFY_STEPS, rank="0", profile="default"): f"0+60x{MINUTES}",
    }
    around = {"cluster": "c1", "namespace": "llm", "specbudget_service": SETTINGS.service}
    expected = [(around | {"what": "no recorded series: rules not loaded?"}, 1.0)]
    checked(tmp_path, samples, panel("Unknown or down"), expected)
