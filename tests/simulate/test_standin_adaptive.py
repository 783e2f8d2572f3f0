"""The adaptive verify window follows acceptance and batch size by the engine's rules."""

from __future__ import annotations

import pytest

from specbudget.simulate.adaptive import AdaptiveSteps, StepSlot

GRAPHS = (1, 2, 4, 8, 16, 24, 32)


def slot(**knobs):
    """A slot with four candidates that begins at three steps."""
    return StepSlot([1, 3, 5, 7], first=3, **{"up": 0.0, "down": -0.25, **knobs})


def feed(one, accepted, batches):
    """The steps after each of so many batches of the same mean."""
    steps = []
    for _ in range(batches):
        one.update(accepted)
        steps.append(one.steps)
    return steps


def test_nothing_changes_before_ten_batches_and_then_every_fifth():
    """The first change comes with the fifteenth batch."""
    steps = feed(slot(), 3.0, 20)
    assert steps[:14] == [3] * 14
    assert steps[14] == 5


@pytest.mark.parametrize(
    ("accepted", "settled"),
    [
        pytest.param(0.2, 1, id="hardly anything accepted: down to the smallest"),
        pytest.param(2.2, 3, id="between the thresholds: stays"),
        pytest.param(3.0, 5, id="above two and a half: up"),
        pytest.param(5.0, 7, id="above four and a half: up to the top"),
    ],
)
def test_steps_settle_where_acceptance_carries_them(accepted, settled):
    """A step count is left upwards above steps - 0.5, and downwards below the lower one's - 0.75."""
    assert feed(slot(), accepted, 100)[-1] == settled


def test_hysteresis_moves_both_thresholds():
    """With two less for rising and one and a half less for falling, 2.8 swings between the upper two."""
    assert set(feed(slot(up=-2.0, down=-1.5), 2.8, 100)[50:]) == {5, 7}
    assert set(feed(slot(), 2.8, 100)[50:]) == {5}


def test_a_batch_is_routed_by_the_graph_that_it_runs_in():
    """Nine requests run in the graph of sixteen, and so have the steps of sixteen."""
    lines: list[tuple[float, str]] = []
    config = {"1": {"candidate_steps": [7]}, "16": {"candidate_steps": [5]}}
    adaptive = AdaptiveSteps(config, first=5, graph_sizes=GRAPHS, log=lambda when, text: lines.append((when, text)))
    for now, (batch, window) in enumerate([(16, 6), (8, 8), (9, 6), (40, 6), (1, 8)]):
        adaptive.before_batch(float(now), batch)
        assert (batch, adaptive.window) == (batch, window)
    assert [text for _, text in lines] == [
        "Switch adaptive runtime state: steps 5 -> 7, draft_tokens 6 -> 8",
        "Switch adaptive runtime state: steps 7 -> 5, draft_tokens 8 -> 6",
        "Switch adaptive runtime state: steps 5 -> 7, draft_tokens 6 -> 8",
    ]
    assert [when for when, _ in lines] == [1.0, 2.0, 4.0]


def test_a_change_by_acceptance_is_logged_and_in_force_at_once():
    """The policy's line comes before the worker's."""
    lines: list[str] = []
    config = {"1": {"candidate_steps": [5, 7]}}
    adaptive = AdaptiveSteps(config, first=5, graph_sizes=GRAPHS, log=lambda _when, text: lines.append(text))
    for _ in range(15):
        adaptive.after_batch(0.0, batch=4, accepted=20)
    assert adaptive.window == 8
    assert [line.split(":")[0] for line in lines] == ["Adaptive spec params updated", "Switch adaptive runtime state"]
