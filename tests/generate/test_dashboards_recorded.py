"""Every query of every panel over recorded scenarios, in a real Prometheus of three ages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.prometheus_tools import Suite

from generate.dashboard_files import Query, marks, queries
from generate.recorded_prometheus import SCENARIOS, Recorded, recorded
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, LINES, STAGING, LineDef
from specbudget.domain.line_state import LineState
from specbudget.generate.dashboards.queries import SEVERITY

pytestmark = pytest.mark.slow

MAY_BE_EMPTY: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {
    ("acceptance", "Time per output token", "B"): (SCENARIOS, "the engine itself was not scraped"),
    ("acceptance", "Time per output token", "C"): (SCENARIOS, "the engine itself was not scraped"),
    ("memory", "Alerts that fired", "A"): (("steady", "idle"), "no alert fired"),
    ("overview", "Firing alerts", "A"): (("steady", "idle"), "no alert fires"),
    ("overview", "Unknown or down", "A"): (SCENARIOS, "everything could be read"),
    ("overview", "Ledger of the five lines", "B"): (SCENARIOS, "the recording is shorter than the hour of the change"),
    ("overview", "Replicas", "H"): (SCENARIOS, "every source was up"),
    ("overview", "Rules that do not pass", "A"): (
        ("steady", "acceptance-drop", "cold-start-slow", "idle", "kv-pressure"),
        "every rule that could be judged passes",
    ),
    ("overview", "Errors of readings in this time range", "A"): (SCENARIOS, "nothing failed to be read"),
    ("acceptance", "Drafts accepted, by position", "A"): (("idle",), "no verify step in the range"),
    ("overview", "Replicas", "C"): (("idle",), "no verify step within five minutes"),
    **{
        (each, name, "mark"): (SCENARIOS, "nothing of the kind happened")
        for each in ("overview", "acceptance", "memory", "startup")
        for name in ("Replicas differ in a model", "Recheck due", "Pages", "Tickets")
    },
}
"""The queries that may give nothing: in which scenarios, and why. All others must give something in each."""


def test_what_may_be_empty_is_asked_at_all() -> None:
    """The table names queries and scenarios that there are."""
    known = {(query.dashboard, query.panel, query.ref) for query in [*queries(), *marks()]}
    assert set(MAY_BE_EMPTY) <= known
    assert {scenario for scenarios, _ in MAY_BE_EMPTY.values() for scenario in scenarios} <= set(SCENARIOS)


TROUBLE: dict[str, tuple[LineDef | None, LineState]] = {
    "steady": (None, LineState.OK),
    "acceptance-drop": (ACCEPTANCE, LineState.BREACH),
    "idle": (None, LineState.OK),
    "kv-pressure": (KV, LineState.AT_RISK),
    "cold-start-slow": (STAGING, LineState.BREACH),
    "drafter-swapped": (CODESIGN, LineState.AT_RISK),
}
"""The one line that is in trouble at the end of a scenario, and its state."""


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
        if prometheus.scenario not in MAY_BE_EMPTY.get((query.dashboard, query.panel, query.ref), ((), ""))[0]
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
    line, state = TROUBLE[prometheus.scenario]
    tiles = [query for query in queries() if query.panel == "The five lines now"]
    shown = {
        each.id: SEVERITY[int(float(prometheus.now(tile.filled)[0]["value"][1]))]
        for each, tile in zip(LINES, tiles, strict=True)
    }
    assert shown == {each.id: state if each is line else LineState.OK for each in LINES}
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
    assert values[0].keys() == values[1].keys() == values[2].keys()
    assert {line for line, _ in values[0]} == {line.id for line in LINES}
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
    line, state = TROUBLE[prometheus.scenario]
    worst = {each.id: {shown[key] for key in shown if key[0] == each.id} for each in LINES}
    assert {each.id: max(worst[each.id], key=SEVERITY.index) for each in LINES} == {
        each.id: state if each is line else LineState.OK for each in LINES
    }


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
    assert late == (prometheus.scenario == "cold-start-slow")


def test_starts_are_counted_although_they_lie_before_the_first_scrape(prometheus: Recorded) -> None:
    """The one start of a replica that is new to Prometheus is one, and not none."""
    counted = next(query for query in queries() if query.panel == "Starts in this time range")
    found = {one["metric"]["outcome"]: float(one["value"][1]) for one in prometheus.now(counted.filled)}
    slow = prometheus.scenario == "cold-start-slow"
    assert found == {"ok": 0.0 if slow else 1.0, "over_budget": 1.0 if slow else 0.0, "failed": 0.0, "stuck": 0.0}
