"""Every query of every panel over recorded scenarios, in a real Prometheus of three ages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.prometheus_tools import Suite

from e2e.scenario_rows import ROWS
from generate.dashboard_files import Query, marks, queries
from generate.recorded_prometheus import SCENARIOS, Recorded, recorded
from generate.silent_panels import may_be_empty
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, KV, LINES, STAGING
from specbudget.catalog.sets import StartOutcome
from specbudget.domain.line_state import LineState
from specbudget.domain.speculation import SpeculationState
from specbudget.generate.dashboards.queries import SEVERITY

pytestmark = pytest.mark.slow

MAY_BE_EMPTY = may_be_empty()


def test_what_may_be_empty_is_asked_at_all() -> None:
    """The table names queries and scenarios that there are."""
    known = {(query.dashboard, query.panel, query.ref) for query in [*queries(), *marks()]}
    assert set(MAY_BE_EMPTY) <= known
    assert {scenario for scenarios in MAY_BE_EMPTY.values() for scenario in scenarios} <= set(SCENARIOS)


def states_at_the_end(scenario: str) -> dict[str, LineState]:
    """The state of each line at the end of a scenario, as its row of the end-to-end tests declares it."""
    return {line.id: LineState(ROWS[scenario].lines.get(line.id, LineState.OK)) for line in LINES}


@pytest.fixture(
    params=[(s, Suite.USUAL) for s in SCENARIOS]
    + [("acceptance-drop", Suite.OLDEST), ("acceptance-drop", Suite.NEWEST)],
    ids=lambda p: f"{p[0]}-{p[1]}",
    scope="module",
)
def prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """A scenario in Prometheus; one of them in all ages."""
    scenario, suite = request.param
    with recorded(scenario, suite, tmp_path_factory.mktemp(scenario)) as running:
        yield running


def asked(prometheus: Recorded, query: Query) -> list[dict[str, object]]:
    """The answer as Grafana would get it."""
    return prometheus.now(query.filled) if query.instant else prometheus.over_time(query.filled)


def test_no_panel_is_empty_that_should_have_data(prometheus: Recorded) -> None:
    """Every query runs, and gives something, unless the table says why it may not."""
    empty = [query for query in [*queries(), *marks()] if not asked(prometheus, query)]
    unexpected = [
        str(query)
        for query in empty
        if prometheus.scenario not in MAY_BE_EMPTY.get((query.dashboard, query.panel, query.ref), ())
    ]
    assert unexpected == []


def test_no_panel_shows_what_is_no_number(prometheus: Recorded) -> None:
    """Nothing is divided by 0: what is not known is absent, and neither NaN nor infinite."""
    for query in queries():
        for one in asked(prometheus, query):
            values = one.get("values") or [one["value"]]
            assert not {value for _, value in values} & {"NaN", "+Inf", "-Inf"}, str(query)  # type: ignore[union-attr]


def test_the_tiles_name_the_trouble(prometheus: Recorded) -> None:
    """From across the room: the line in trouble and no other, and each dashboard about it says the same."""
    tiles = [query for query in queries() if query.panel == "The five lines now"]
    shown = {
        each.id: SEVERITY[int(float(prometheus.now(tile.filled)[0]["value"][1]))]
        for each, tile in zip(LINES, tiles, strict=True)
    }
    assert shown == states_at_the_end(prometheus.scenario)
    own = {"Acceptance line": ACCEPTANCE, "KV line": KV, "Staging line": STAGING}
    for query in queries():
        if query.panel in own:
            assert SEVERITY[int(float(prometheus.now(query.filled)[0]["value"][1]))] == shown[own[query.panel].id]


def test_the_ledger_has_every_budget(prometheus: Recorded) -> None:
    """Used, spent and limit of each budget of the demo agree, whatever its unit."""
    used, _, spent, limit, _ = (query for query in queries() if query.panel == "Ledger of the five lines")
    values = [
        {(one["metric"]["line"], one["metric"]["budget"]): float(one["value"][1]) for one in prometheus.now(q.filled)}
        for q in (used, spent, limit)
    ]
    assert values[0].keys() == values[1].keys() & values[2].keys()
    assert {line for line, _ in values[1] | values[2]} == {line.id for line in LINES}
    states = states_at_the_end(prometheus.scenario)
    for line, budget in values[1].keys() ^ values[2].keys():
        assert states[line] is LineState.UNKNOWN, f"one side of {line} {budget} is not told"
    for line in (ARTIFACTS, KV, ACCEPTANCE, STAGING):
        for budget in line.budgets:
            key = (line.id, budget.id)
            if key in values[0]:
                over, under = (values[2], values[1]) if budget.floor else (values[1], values[2])
                assert values[0][key] == pytest.approx(over[key] / under[key], rel=0.02, abs=0.02), key


def test_the_ledger_and_the_tiles_judge_alike(prometheus: Recorded) -> None:
    """No budget is worse than its line; the worst one of the line in trouble is exactly as bad."""
    (states,) = (q for q in queries() if q.panel == "Ledger of the five lines" and q.ref == "E")
    shown = {
        (one["metric"]["line"], one["metric"]["budget"]): SEVERITY[int(float(one["value"][1]))]
        for one in prometheus.now(states.filled)
    }
    worst = {
        line.id: max((state for key, state in shown.items() if key[0] == line.id), key=SEVERITY.index) for line in LINES
    }
    lines = states_at_the_end(prometheus.scenario)
    if ROWS[prometheus.scenario].speculation in (SpeculationState.OFF, SpeculationState.FROZEN):
        # not for a budget: nothing is spent, and nothing is got for what was paid
        assert lines.pop(ACCEPTANCE.id) is LineState.AT_RISK
        assert worst.pop(ACCEPTANCE.id) is LineState.OK
    assert worst == lines


def test_the_timeline_tells_the_whole_start(prometheus: Recorded) -> None:
    """Every stage begins and ends within the cold start, and the bars of one model do not lie over each other."""
    begins, *parts, order = (query for query in queries() if query.panel == "The latest start, stage by stage")
    at = {one["metric"]["lane"]: float(one["value"][1]) for one in prometheus.now(begins.filled)}
    took = {one["metric"]["lane"]: float(one["value"][1]) for q in parts for one in prometheus.now(q.filled)}
    place = {one["metric"]["lane"]: float(one["value"][1]) for one in prometheus.now(order.filled)}
    assert at.keys() == took.keys() == place.keys()
    assert all(took.values()), "a lane without a bar"
    whole, limit, *stages = sorted(place, key=place.__getitem__)
    assert (whole, limit) == ("cold start", "budget")
    assert [at[lane] for lane in stages] == sorted(at[lane] for lane in stages)
    assert {"cold start", "budget", "target: load", "drafter: load"} <= at.keys()
    for lane, begin in at.items():
        if lane not in ("cold start", "budget"):
            # the log has whole seconds
            assert begin + took[lane] <= took["cold start"] + 1.0, lane
    late = took["cold start"] > took["budget"]
    assert late == (states_at_the_end(prometheus.scenario)[STAGING.id] is LineState.BREACH)


STARTS = {
    "cold-start-slow": {StartOutcome.OVER_BUDGET: 1.0},
    "stuck-start": {StartOutcome.STUCK: 1.0},
    "restart": {StartOutcome.OK: 2.0},
    "capacity-shrank": {StartOutcome.OK: 2.0},
}
"""How the starts of a scenario ended; of all others there is one, which is ok."""


def test_starts_are_counted_although_they_lie_before_the_first_scrape(prometheus: Recorded) -> None:
    """The one start of a replica that is new to Prometheus is one, and not none."""
    counted = next(query for query in queries() if query.panel == "Starts in this time range")
    found = {one["metric"]["outcome"]: float(one["value"][1]) for one in prometheus.now(counted.filled)}
    ended = STARTS.get(prometheus.scenario, {StartOutcome.OK: 1.0})
    assert found == {outcome: ended.get(outcome, 0.0) for outcome in StartOutcome}
