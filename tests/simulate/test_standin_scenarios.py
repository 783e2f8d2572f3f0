"""Each scenario of the stand-in changes what its declaration names, when it says so, and nothing else."""

from __future__ import annotations

import math

import pytest
import yaml

from specbudget.simulate.budgetfile import budget_text
from specbudget.simulate.conditions import Timeline, mix_length
from specbudget.simulate.scenarios import SCENARIOS, Action, Phase, Profile, Scenario


def length_between(run, begin, end):
    """Acceptance length of the requests that arrived in a span of seconds after ready; None without steps."""
    ready = run.process.ready_at
    chosen = [request for request in run.ended if ready + begin <= request.arrived < ready + end]
    steps = sum(request.verify_steps for request in chosen)
    return 1 + sum(request.accepted for request in chosen) / steps if steps else None


def test_the_declared_scenarios_are_there():
    """Every scenario has a name, a one-line summary and profiles whose shares make a whole."""
    assert {"steady", "acceptance-drop", "idle", "speculation-off", "restart", "dp2", "log-rotation"} <= set(SCENARIOS)
    for scenario in SCENARIOS.values():
        assert scenario.summary
        assert "\n" not in scenario.summary
        assert sum(profile.share for profile in scenario.profiles.values()) == pytest.approx(1.0)


def test_acceptance_drop_falls_once_for_good(virtual):
    """4.6 until fifteen seconds after ready, 1.9 from then on."""
    run = virtual("acceptance-drop").until(60)
    assert length_between(run, 0, 14) == pytest.approx(4.6, abs=0.25)
    assert length_between(run, 16, 30) == pytest.approx(1.9, abs=0.1)
    assert length_between(run, 40, 55) == pytest.approx(1.9, abs=0.1)


def test_idle_ends_the_traffic(virtual):
    """After twenty seconds no request arrives and all that were there are answered."""
    run = virtual("idle").until(60)
    last = max(request.arrived for request in run.ended) - run.process.ready_at
    assert 19 < last <= 20.1
    assert all(scheduler.in_flight == 0 for scheduler in run.process.schedulers)


def test_speculation_off_keeps_serving_without_the_drafter(virtual):
    """Requests that arrive later end as before and have no verify step."""
    run = virtual("speculation-off").until(60)
    ready = run.process.ready_at
    late = [request for request in run.ended if request.arrived > ready + 20.5]
    assert len(late) > 500
    assert {request.verify_steps for request in late} == {0}
    assert "accept len" in run.texts("Decode batch")[5]
    assert "accept len" not in run.texts("Decode batch")[-1]


def test_dp2_spreads_requests_over_both_ranks(virtual):
    """Both ranks serve about half, and each GPU holds more of the weights than with four."""
    run = virtual("dp2").until(40)
    counts = [run.truth.by_rank[rank].records for rank in ("0", "1")]
    assert abs(counts[0] - counts[1]) < 0.1 * sum(counts)
    single = virtual("steady").process.sizes
    assert run.process.sizes.target_weights > 1.9 * single.target_weights
    assert run.process.sizes.drafter_token_bytes == 2 * single.drafter_token_bytes
    assert run.process.sizes.target_token_bytes == single.target_token_bytes == 8064


@pytest.mark.parametrize(
    ("seconds", "length"),
    [
        pytest.param(0, 4.6, id="before"),
        pytest.param(160, 3.91, id="half way"),
        pytest.param(310, 3.22, id="at the end"),
        pytest.param(900, 3.22, id="for good"),
    ],
)
def test_a_ramp_moves_the_whole_mix_linearly(seconds, length):
    """A slow decay of 30 % over ten minutes is where it should be at each moment."""
    scenario = Scenario(summary="", phases=(Phase(at=10, length=4.6 * 0.7, over=300),))
    conditions = Timeline(scenario).at(seconds)
    assert mix_length(conditions.lengths, conditions.shares) == pytest.approx(length, abs=0.02)
    assert conditions.lengths["chat"] < conditions.lengths["code"]


def test_speed_divides_the_delays_of_phases_and_stages():
    """At speed 20 a phase of fifteen seconds comes after three quarters of one."""
    timeline = Timeline(SCENARIOS["acceptance-drop"], speed=20)
    assert mix_length(timeline.at(0.70).lengths, timeline.base.shares) == pytest.approx(4.6, abs=0.05)
    assert mix_length(timeline.at(0.76).lengths, timeline.base.shares) == pytest.approx(1.9, abs=0.01)


@pytest.mark.parametrize(("speed", "pace"), [(0.5, 0.5), (1.0, 1.0), (2.0, 2.0), (20.0, 2.0)])
def test_a_start_up_keeps_a_length_that_its_log_can_tell(virtual, speed, pace):
    """Stages are divided by the speed up to 2; at any speed only the slow start goes over the budget."""
    for name, within in (("steady", True), ("cold-start-slow", False)):
        process = virtual(name, speed=speed).until(16).process
        plain = virtual(name).process.plan
        assert process.plan.http_up == pytest.approx(plain.http_up / pace)
        budget = yaml.safe_load(budget_text(process.deployment, speed=speed))["budget"]["staging"]["cold_start"]
        limit, seconds = float(budget.removesuffix("s")), process.ready_at - process.started
        # the log tells whole seconds, cut off at both ends
        told = math.floor(seconds), math.ceil(seconds)
        assert all((one <= 0.9 * limit) if within else (one > limit) for one in told), (name, told, limit)


def test_shares_of_profiles_can_shift(virtual):
    """A mix that shifts to a hard profile lowers the length of the whole and of no profile."""
    profiles = {
        "easy": Profile(share=0.9, length=5.0),
        "hard": Profile(share=0.1, length=2.0, adapter="ling-hard"),
    }
    shift = Phase(at=15, shares={"easy": 0.1, "hard": 0.9})
    run = virtual(Scenario(summary="", profiles=profiles, phases=(shift,))).until(50)
    assert length_between(run, 0, 14) > 4.0
    assert length_between(run, 16, 45) < 2.4
    hard = run.truth.by_profile["hard"]
    assert 1 + hard.accepted_drafts / hard.verify_steps == pytest.approx(2.0, abs=0.1)


def test_a_full_pool_retracts_requests(virtual, shapes):
    """Longer prompts in a small pool drive it above nine tenths, with retractions that are counted."""
    scenario = Scenario(summary="", max_total_tokens=65_536, phases=(Phase(at=15, prompt_tokens=4000),))
    run = virtual(scenario).until(18)
    quiet = shapes(run.exposition)
    assert "sglang:num_retracted_requests_total" not in quiet
    ours = shapes(run.until(60).exposition)
    assert sum(ours["sglang:num_retracted_requests_total"].samples.values()) > 0
    assert next(iter(ours["sglang:full_token_usage"].samples.values())) > 0.9
    assert any(record.get("num_retractions") for record in run.records)


def test_a_frozen_batch_produces_nothing_and_stays(virtual, shapes):
    """While decoding stands still, requests run on paper and no token counter moves."""
    run = virtual(Scenario(summary="", phases=(Phase(at=10, decoding=False),)))
    before = shapes(run.until(20).exposition)
    after = shapes(run.until(50).exposition)
    assert before["sglang:realtime_tokens_total"].samples == after["sglang:realtime_tokens_total"].samples
    assert run.process.schedulers[0].running


def test_repeating_steps_accept_the_same_number(virtual):
    """A repetitive drafter gives every step of a request the same number of accepted drafts."""
    run = virtual(Scenario(summary="", phases=(Phase(at=0, repeating=True),))).until(20)
    histograms = [request.histogram for request in run.ended if request.verify_steps > 5]
    assert all(sum(count > 0 for count in histogram) == 1 for histogram in histograms)


def test_a_stage_that_never_ends_keeps_the_server_away(virtual):
    """A start-up stuck in the drafter's load prints no further line and never becomes ready."""
    from specbudget.simulate.scenarios import StartUp

    run = virtual(Scenario(summary="", start_up=StartUp(load_drafter=float("inf")))).until(60)
    assert run.process.ready_at is None
    assert run.lines[-1][2].startswith("Load weight begin")
    assert run.process.http_up_at == float("inf")


def test_a_restart_can_come_up_smaller(virtual):
    """The second start uses its own limit of tokens."""
    from pathlib import Path

    from specbudget.simulate.deployment import Deployment

    scenario = Scenario(summary="", restart_total_tokens=1_000_000, phases=(Phase(at=20, actions=(Action.RESTART,)),))
    deployment = Deployment(scenario=scenario, folder=Path("/srv"), host="127.0.0.1", port=1)
    assert deployment.sizes(0).tokens > 1_800_000
    assert deployment.sizes(1).tokens == 1_000_000 // 64 * 64
    assert "--max-total-tokens 1000000" in " ".join(deployment.command_line(1))


def test_a_memory_fraction_below_the_weights_is_refused():
    """As the engine refuses to start where the weights leave nothing for the pools."""
    from specbudget.simulate.sizing import B200, size_engine

    with pytest.raises(ValueError, match="leaves no memory"):
        size_engine(gpu=B200, tensor_parallel=4, memory_fraction=0.3, speculation=True, max_total_tokens=None)
