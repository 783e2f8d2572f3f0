"""What an observer sees of each declared scenario: gauges, log lines and records, when the declaration says so."""

from __future__ import annotations

import json
import re

import pytest

from specbudget.simulate import loads, serverinfo
from specbudget.simulate.scenarios import SCENARIOS

SERVING = [name for name in SCENARIOS if name not in ("stuck-start", "pd-prefill")]
ENDS_AT = {"idle": 19.0, "frozen": 19.0}
"""Seconds after ready until which the scenarios serve that stop doing so."""


def length_between(run, begin, end, profile=None):
    """Acceptance length of the requests that arrived in a span of seconds after ready."""
    ready = run.process.ready_at
    chosen = [
        request
        for request in run.ended
        if ready + begin <= request.arrived < ready + end and profile in (None, request.profile)
    ]
    return 1 + sum(request.accepted for request in chosen) / sum(request.verify_steps for request in chosen)


def gauge(shapes, run, name):
    """The only value of a gauge on /metrics now."""
    (value,) = shapes(run.exposition)[f"sglang:{name}"].samples.values()
    return value


def total(shapes, run, name):
    """The sum of a family's samples; 0 where there are none."""
    family = shapes(run.exposition).get(f"sglang:{name}")
    return 0.0 if family is None else sum(family.samples.values())


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "stuck-start"])
def test_every_scenario_is_ready_within_five_seconds(seen, name):
    """All but the one whose load is slow, which generates within eight."""
    process = seen(name).process
    assert process.ready_at - process.started < (8.0 if name == "cold-start-slow" else 5.0)
    assert process.first_generation_at - process.started < 8.0


@pytest.mark.parametrize("name", SERVING)
def test_every_scenario_serves_twenty_requests_a_second(seen, name):
    """At least so many of 128 tokens or more end per second, as long as the engine serves at all."""
    run = seen(name)
    begin = run.process.ready_at + 2.0
    end = min(run.process.ready_at + ENDS_AT.get(name, 60.0), run.now)
    ended = [request for request in run.ended if begin <= request.finished < end and request.completion_tokens >= 128]
    assert len(ended) >= 20 * (end - begin)


@pytest.mark.parametrize(
    "speed", [pytest.param(1.0, id="at its own speed"), pytest.param(20.0, id="twenty times faster")]
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_truth_of_every_scenario_is_the_sum_over_its_records(virtual, seen, name, speed):
    """Records, tokens, steps, proposed and accepted drafts and the histogram agree to the last one."""
    run = seen(name) if speed == 1.0 else virtual(name, speed=speed).until(7)
    records, truth = run.records, run.truth.total
    assert truth.records == len(records)
    assert (len(records) > 50) is (name != "stuck-start" and (name, speed) not in (("idle", 20.0), ("frozen", 20.0)))
    for count, key in (
        (truth.verify_steps, "spec_verify_ct"),
        (truth.proposed_drafts, "spec_num_proposed_drafts"),
        (truth.accepted_drafts, "spec_num_correct_drafts"),
        (truth.prompt_tokens, "prompt_tokens"),
    ):
        assert count == sum(record.get(key, 0) for record in records), key
    assert truth.completion_tokens + truth.never_ran == sum(record["completion_tokens"] for record in records)
    histogram = [0] * len(truth.histogram)
    for record in records:
        for drafts, steps in enumerate(record.get("spec_correct_drafts_histogram", [])):
            histogram[drafts] += steps
    assert truth.histogram == histogram


def test_collapse_falls_to_one_accepted_draft_in_ten_steps(seen, shapes):
    """4.6 until fifteen seconds after ready, then 1.1, in records, gauge and log line alike."""
    run = seen("collapse")
    assert length_between(run, 0, 14) == pytest.approx(4.6, abs=0.25)
    assert length_between(run, 16, 30) == pytest.approx(1.1, abs=0.03)
    assert 1.0 < gauge(shapes, run, "spec_accept_length") < 1.3
    assert re.search(r"accept len: 1\.[01]\d, accept rate: 0\.0[0-3],", run.texts("Decode batch")[-1])


def test_slow_decay_loses_three_tenths_in_ten_minutes_and_meets_its_target(virtual):
    """Half of the loss after half of the time; at the end nearly every request still reaches the target."""
    run = virtual("slow-decay", speed=20.0).until(42)
    ready = run.process.ready_at
    assert length_between(run, 0, 0.75) == pytest.approx(4.6, abs=0.4)
    assert length_between(run, 14.75, 16.75) == pytest.approx(3.91, abs=0.3)
    assert length_between(run, 31, 38) == pytest.approx(3.22, abs=0.1)
    late = [request for request in run.ended if request.arrived > ready + 31 and request.completion_tokens >= 84]
    bad = sum(1 + request.accepted / request.verify_steps < 2.2 for request in late)
    assert len(late) > 100
    assert bad < 0.05 * len(late)


def test_mix_shift_changes_the_mix_and_no_profile(virtual, shapes):
    """Nine in ten requests carry the hard profile's adapter after the shift; each profile keeps its length."""
    run = virtual("mix-shift").until(40)
    ready = run.process.ready_at

    def carrying(begin, end):
        parameters = [
            json.loads(record["request_parameters"])
            for record in run.records
            if begin <= record.get("request_received_ts", 0) - ready < end
        ]
        return sum(one.get("lora_path") == "ling-hard" for one in parameters) / len(parameters)

    assert carrying(0, 14) == pytest.approx(0.1, abs=0.06)
    assert carrying(16, 34) == pytest.approx(0.9, abs=0.06)
    for profile, length in (("general", 6.2), ("hard", 3.2)):
        assert length_between(run, 0, 14, profile) == pytest.approx(length, abs=0.35)
        assert length_between(run, 16, 34, profile) == pytest.approx(length, abs=0.35)
    assert gauge(shapes, run, "lora_pool_slots_used") == 1.0
    assert gauge(shapes, run, "lora_pool_utilization") == 1 / 8


def test_over_strong_leaves_no_request_near_the_target(seen):
    """Nine in ten requests reach twice the target of 2.6; the whole is near the window of nine."""
    run = seen("over-strong")
    lengths = sorted(1 + r.accepted / r.verify_steps for r in run.ended if r.completion_tokens >= 84)
    assert length_between(run, 0, 30) == pytest.approx(8.1, abs=0.2)
    assert lengths[len(lengths) // 10] > 2 * 2.6
    assert len({round(length, 2) for length in lengths}) > 50


def test_kv_pressure_fills_the_pools_retracts_and_queues(virtual, shapes):
    """Quiet for fifteen seconds; then nine tenths full, retractions on their counters, and a queue that grows."""
    run = virtual("kv-pressure").until(17)
    assert total(shapes, run, "num_retracted_requests_total") == 0
    assert gauge(shapes, run, "full_token_usage") < 0.5
    queue = [gauge(shapes, run.until(second), "num_queue_reqs") for second in (20, 24, 28)]
    assert queue == sorted(queue)
    assert queue[-1] > queue[0] + 20
    usage = [gauge(shapes, run.until(second), "full_token_usage") for second in range(30, 60)]
    assert sum(share > 0.9 for share in usage) == len(usage)
    retracted = total(shapes, run, "num_retracted_requests_total")
    assert retracted > 5
    lines = run.texts("KV cache pool is full. Retract requests.")
    assert sum(int(re.search(r"#retracted_reqs: (\d+)", line)[1]) for line in lines) == retracted
    assert total(shapes, run, "num_retracted_input_tokens_total") > 1000 * retracted
    told = sum(record.get("num_retractions", 0) for record in run.records)
    assert 0 < told <= retracted


def test_capacity_shrank_comes_up_with_a_third_fewer_slots(virtual, shapes):
    """The second start says so in gauge, log and server info; both sides of the pair have fewer."""
    first, second = virtual("capacity-shrank").until(5), virtual("capacity-shrank", life=1).until(5)
    slots = []
    for run in (first, second):
        (told,) = set(shapes(run.exposition)["sglang:max_total_num_tokens"].samples.values())
        assert run.texts("max_total_num_tokens=")[0].startswith(f"max_total_num_tokens={told:.0f},")
        assert serverinfo.server_info(run.process)["max_total_num_tokens"] == told
        assert len({re.search(r"#tokens: (\d+)", line)[1] for line in run.texts("KV Cache is allocated")}) == 1
        slots.append(told)
    assert slots[1] == pytest.approx(slots[0] * 2 / 3, rel=0.001)


def test_cold_start_slow_loads_the_drafter_four_times_as_long(seen, shapes):
    """Only the drafter's load takes longer; with it the start passes its budget of six seconds."""
    run, usual = seen("cold-start-slow"), seen("steady")

    def loaded(one):
        lines = one.texts("Load weight end.")
        return [float(re.search(r"elapsed=([\d.]+) s", line)[1]) for line in (lines[0], lines[-1])]

    assert loaded(usual) == [0.8, 1.2]
    assert loaded(run) == [0.8, 4.8]
    assert run.process.first_generation_at - run.process.started > 6.0
    phases = shapes(run.exposition)["sglang:startup_time_seconds"].samples
    assert next(value for key, value in phases.items() if "load_weight" in key) == pytest.approx(5.6)


def test_stuck_start_stops_in_the_load_of_the_drafter(virtual):
    """The last line begins the second load; HTTP never comes up."""
    run = virtual("stuck-start").until(120)
    assert run.process.ready_at is None
    assert run.process.http_up_at == float("inf")
    own = [text for _, prefix, text in run.lines if prefix == " TP0"]
    assert [text.split(".")[0] for text in own] == ["Load weight begin", "Load weight end", "Load weight begin"]
    assert not run.ended


def test_pair_unfit_accepts_nothing_from_the_first_request_on(seen, shapes):
    """1.0 from boot on, in records and gauge, with healthy traffic otherwise."""
    run = seen("pair-unfit")
    assert length_between(run, 0, 10) == pytest.approx(1.03, abs=0.02)
    assert length_between(run, 20, 30) == pytest.approx(1.03, abs=0.02)
    assert 1.0 <= gauge(shapes, run, "spec_accept_length") < 1.1


def test_frozen_counts_no_token_while_requests_run_on_paper(virtual, shapes):
    """From twenty seconds after ready every counter of tokens, steps and requests stands; the gauges stay."""
    run = virtual("frozen").until(26)

    def counted():
        families = shapes(run.exposition)
        names = ("realtime_tokens_total", "generation_tokens_total", "num_requests_total", "spec_verify_calls_total")
        return [families[f"sglang:{name}"].samples for name in (*names, "cuda_graph_passes_total")]

    before, records = counted(), len(run.ended)
    run.until(90)
    assert counted() == before
    assert len(run.ended) == records
    assert gauge(shapes, run, "num_running_reqs") > 0
    (entry,) = loads.loads(run.process, include={"core"}, rank=None)
    assert entry["num_running_reqs"] > 0
    assert max(when for when, _, _ in run.lines) < run.process.ready_at + 20.2


def test_pd_prefill_hands_every_request_over_after_one_token(seen, shapes):
    """One output token, no verify step, the engine's own role in labels, server info, loads and lines."""
    run = seen("pd-prefill")
    ran = [record for record in run.records if "prompt_tokens" in record]
    assert len(ran) > 20 * 30
    for record in ran:
        assert record["completion_tokens"] == 1
        assert record["finish_reason"] == {"type": "length", "length": 0}
        assert not any(key.startswith("spec_") for key in record)
    warm_up, *others = (json.loads(record["request_parameters"]) for record in ran)
    assert (warm_up["bootstrap_host"], warm_up["input_ids"]) == ("2.2.2.2", [10, 11, 12, 13])
    assert len({parameters["bootstrap_room"] for parameters in others}) == len(others)
    families = shapes(run.exposition)
    assert all('engine_type="prefill"' in sample for shape in families.values() for sample in shape.samples)
    for name in ("time_to_first_token_seconds", "inter_token_latency_seconds", "spec_verify_calls_total"):
        assert f"sglang:{name}" not in families
    assert not any("decode" in sample for sample in families["sglang:realtime_tokens_total"].samples)
    count = next(v for key, v in families["sglang:kv_transfer_latency_ms"].samples.items() if "_count" in key)
    assert count == len(others)
    assert gauge(shapes, run, "utilization") == -1.0
    assert set(families["sglang:graph_memory_usage_gb"].samples.values()) == {0.0}
    assert serverinfo.server_info(run.process)["disaggregation_mode"] == "prefill"
    assert serverinfo.model_info(run.process)["disaggregation_mode"] == "prefill"
    (entry,) = loads.loads(run.process, include=None, rank=None)
    assert entry["disaggregation"]["mode"] == "prefill"
    assert "speculative" not in entry
    assert not run.texts("Decode batch")
    assert not run.texts("Capture")
    sizes = run.process.sizes
    assert (sizes.replay_ring, sizes.conv_windows) == (0, 0)
    assert not any("replayssm" in word for word in run.process.deployment.command_line())


def test_spec_adaptive_moves_the_window_at_run_time(virtual, shapes):
    """Both windows show on the gauges and in the rank's own state; the arguments at the top keep the launch's."""
    run = virtual("spec-adaptive").until(5)
    windows, states = set(), set()
    for second in range(6, 60):
        run.until(second)
        steps, tokens = gauge(shapes, run, "spec_num_steps"), gauge(shapes, run, "spec_num_draft_tokens")
        assert tokens == steps + 1
        length = gauge(shapes, run, "spec_accept_length")
        assert 1.0 < length < 8.0
        assert gauge(shapes, run, "spec_accept_rate") == pytest.approx((length - 1) / (tokens - 1))
        windows.add(tokens)
        info = serverinfo.server_info(run.process)
        (state,) = info["internal_states"]
        states.add((state["speculative_num_steps"], state["speculative_num_draft_tokens"]))
        assert (info["speculative_num_steps"], info["speculative_num_draft_tokens"]) == (5, 6)
    assert windows == {6.0, 8.0}
    assert states == {(5, 6), (7, 8)}
    # The policy explains some changes; the batch size makes the others.
    assert len(run.texts("Switch adaptive")) > len(run.texts("Adaptive spec params updated")) > 10
    assert info["speculative_adaptive"] is True
    assert info["speculative_algorithm"] == "EAGLE"
    assert "--speculative-algorithm NEXTN --speculative-adaptive" in info["launch_command"]


def test_spec_adaptive_records_count_proposals_of_the_launchs_window(seen):
    """Five drafts per step in every record, also where steps accepted seven; no request is near the target."""
    run = seen("spec-adaptive")
    records = [record for record in run.records if "spec_verify_ct" in record]
    assert {record["spec_num_proposed_drafts"] / record["spec_verify_ct"] for record in records} == {5.0}
    assert max(len(record["spec_correct_drafts_histogram"]) for record in records) == 8
    valid = [request for request in run.ended if request.completion_tokens >= 84 and request.verify_steps]
    lengths = sorted(1 + request.accepted / request.verify_steps for request in valid)
    assert lengths[len(lengths) // 50] > 2.6 / 0.9
