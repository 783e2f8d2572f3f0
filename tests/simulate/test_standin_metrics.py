"""/metrics of the stand-in, held against what a real engine printed."""

from __future__ import annotations

import re

import pytest

from specbudget.simulate.scenarios import SCENARIOS

BUSY = "0.5.23/metrics_v0.5.23_dspark_tp2.busy.prom"
BUSY_DP2 = "0.5.23/metrics_v0.5.23_dp2.busy.prom"
PLAIN = "0.5.23/metrics_v0.5.23_nospec_tp1.busy.prom"

RETRACTED = ("requests", "input_tokens", "output_tokens")
SCHEDULER = {"engine_type", "model_name", "moe_ep_rank", "pp_rank", "tp_rank"}
NOT_CAPTURED = {
    "sglang:num_so_requests_total": {"engine_type", "model_name"},
    **dict.fromkeys((f"sglang:num_retracted_{what}_total" for what in RETRACTED), SCHEDULER),
    **dict.fromkeys((f"sglang:lora_pool_{what}" for what in ("slots_used", "slots_total", "utilization")), SCHEDULER),
    **dict.fromkeys((f"sglang:kv_transfer_{what}" for what in ("latency_ms", "speed_gb_s", "total_mb")), SCHEDULER),
}
"""Families of metrics_collector.py that the captured runs had no reason to count, and their labels."""

BEFORE_THE_WARM_UP = {
    "sglang:max_total_num_tokens",
    "sglang:weight_memory_usage_gb",
    "sglang:kv_cache_memory_usage_gb",
    "sglang:graph_memory_usage_gb",
    "sglang:page_size",
    "sglang:num_pages",
    "sglang:context_len",
    "sglang:startup_available_gpu_memory_gb",
    "sglang:startup_time_seconds",
    "sglang:startup_cuda_graph_time_seconds",
}


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "stuck-start"])
def test_families_are_those_of_the_engine(seen, shapes, captured, scenario):
    """Every family has the engine's type, HELP, label names and buckets, and none is made up."""
    ours = shapes(seen(scenario).exposition)
    theirs = shapes(captured(BUSY_DP2 if scenario == "dp2" else BUSY))
    for name, shape in ours.items():
        if name in NOT_CAPTURED:
            assert {frozenset(NOT_CAPTURED[name])} == shape.labels
            continue
        assert name in theirs
        assert (name, shape.type, shape.help) == (name, theirs[name].type, theirs[name].help)
        assert (name, shape.labels) == (name, theirs[name].labels)
        assert (name, shape.buckets) == (name, theirs[name].buckets)


@pytest.mark.parametrize(
    ("scenario", "real"),
    [
        pytest.param("steady", BUSY, id="one data-parallel rank"),
        pytest.param("dp2", BUSY_DP2, id="two data-parallel ranks"),
    ],
)
def test_a_busy_stand_in_prints_every_family_of_a_busy_engine(virtual, shapes, captured, scenario, real):
    """Nothing that a busy engine prints is missing."""
    assert set(shapes(captured(real))) <= set(shapes(virtual(scenario).until(60).exposition))


def test_families_appear_in_the_order_and_number_format_of_the_engine(virtual, captured):
    """HELP, TYPE and samples follow one another as the multiprocess collector prints them."""
    text = virtual("steady").until(30).exposition
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    own = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    real = [line.split()[2] for line in captured(BUSY).splitlines() if line.startswith("# TYPE")]
    assert [name for name in own if name not in NOT_CAPTURED] == [name for name in real if name in own]
    assert 'le="1e+06"' in text
    for line in text.splitlines():
        names = re.findall(r'(\w+)="', line) if line[0] != "#" else []
        assert names == sorted(names)
    labels = 'engine_type="unified",model_name="ling-3.0-flash",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    assert f"sglang:page_size{{{labels}}} 64.0\n" in text


def test_before_the_warm_up_there_are_constants_and_no_batch(virtual, shapes):
    """Between listening and the first request only constants and zeroed counters exist."""
    run = virtual("steady")
    ours = shapes(run.until(run.process.plan.http_up + 0.05).exposition)
    assert set(ours) >= BEFORE_THE_WARM_UP
    assert "sglang:spec_accept_length" not in ours
    assert "sglang:num_requests_total" not in ours


def test_after_the_warm_up_the_spec_gauges_are_zero(virtual, shapes):
    """A prefill report publishes 0.0 as acceptance length until 40 decode iterations have gone by."""
    run = virtual("steady", rate=0.001)
    ours = shapes(run.until(5).exposition)
    assert list(ours["sglang:spec_accept_length"].samples.values()) == [0.0]
    assert sum(ours["sglang:num_requests_total"].samples.values()) == 1


def test_only_the_first_gpu_of_a_rank_reports_its_batch(virtual, shapes):
    """Capacity is told by every GPU, usage and acceptance by one of each data-parallel rank."""
    ours = shapes(virtual("dp2").until(20).exposition)
    assert len(ours["sglang:max_total_num_tokens"].samples) == 4
    assert len(ours["sglang:kv_used_tokens"].samples) == 2
    assert all('tp_rank="0"' in sample for sample in ours["sglang:spec_accept_length"].samples)


def test_slots_add_up_to_the_capacity(virtual, shapes):
    """Used, evictable and available slots of each rank sum to its capacity, whenever one looks."""
    run = virtual("dp2")
    for second in range(5, 40, 3):
        ours = shapes(run.until(second).exposition)
        for rank in ('dp_rank="0"', 'dp_rank="1"'):
            slots = [
                value
                for name in ("kv_used_tokens", "kv_evictable_tokens", "kv_available_tokens")
                for sample, value in ours[f"sglang:{name}"].samples.items()
                if rank in sample
            ]
            assert len(slots) == 3
            assert sum(slots) == run.process.sizes.tokens


def test_without_speculation_the_gauges_are_those_of_a_plain_engine(virtual, shapes, captured):
    """Once the drafter is not asked, the spec gauges say 0.0 like those of an engine without one."""
    ours = shapes(virtual("speculation-off").until(45).exposition)
    plain = shapes(captured(PLAIN))
    for name in ("accept_length", "accept_rate", "num_steps", "num_draft_tokens", "cap_length"):
        family = f"sglang:spec_{name}"
        assert set(ours[family].samples.values()) == set(plain[family].samples.values()) == {0.0}


def test_idle_keeps_the_last_acceptance_and_clears_the_load(virtual, shapes):
    """When traffic ends the batch gauges fall to zero and spec gauges hold their last value."""
    run = virtual("idle")
    busy = shapes(run.until(24).exposition)
    idle = shapes(run.until(60).exposition)
    assert sum(busy["sglang:num_running_reqs"].samples.values()) > 0
    for name in ("num_running_reqs", "gen_throughput", "kv_used_tokens"):
        assert set(idle[f"sglang:{name}"].samples.values()) == {0.0}
    later = shapes(run.until(120).exposition)
    assert later["sglang:spec_accept_length"].samples == idle["sglang:spec_accept_length"].samples
    assert 3.0 < next(iter(later["sglang:spec_accept_length"].samples.values())) < 7.0
    assert later["sglang:realtime_tokens_total"].samples == idle["sglang:realtime_tokens_total"].samples


def test_free_memory_after_the_start_is_the_same_everywhere(virtual, shapes):
    """The gauge, the line with the capacity and what the line before left say one number of free memory."""
    run = virtual("steady").until(6)
    gauge = set(shapes(run.exposition)["sglang:startup_available_gpu_memory_gb"].samples.values())
    assert len(gauge) == 1
    free = f"{gauge.pop():.2f} GB"
    assert run.texts("max_total_num_tokens=")[0].endswith(f"available_gpu_mem={free}")
    assert run.texts("Capture draft verify CUDA graph end")[0].endswith(f"avail mem={free}.")
