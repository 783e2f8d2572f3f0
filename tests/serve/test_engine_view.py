"""What the sidecar says of an engine from its three endpoints: fresh, by rank, and never a held value for now."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import CAPTURED, READINGS, Answer, ScriptedEngine
from tests.serve.polled_desk import PolledDesk

from specbudget.catalog.sets import Source

LENGTH_TARGET = {"budget": {"acceptance": {"target_length": 2.5, "sli": "batch"}}}
LOADS = b'{"loads": [{"dp_rank": 0, "max_total_num_tokens": 1000, "num_used_tokens": 250, "num_running_reqs": 3}]}'


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., PolledDesk]]:
    """Makes the desk of a budget beside an engine without any endpoint."""
    made: list[PolledDesk] = []
    async with ScriptedEngine() as engine:

        def build(**sections: Any) -> PolledDesk:
            made.append(PolledDesk(engine, tmp_path, **sections))
            return made[-1]

        yield build
        for polled in made:
            await polled.http.close()


def body(name: str) -> bytes:
    """A body of the readings that go wrong."""
    return (READINGS / name).read_bytes()


async def test_gauges_are_by_rank_and_the_length_is_a_ratio_of_sums(make: Callable[..., PolledDesk]) -> None:
    """Each of four ranks has its own use, and the length over them weighs by steps: 1.97, not the mean 2.55."""
    polled = make(parallelism={"data": 4})
    lengths, running = (3.1, 2.9, 1.2, 3.0), (10, 10, 40, 10)

    def counters(passes: int) -> bytes:
        return b"".join(
            f'sglang:cuda_graph_passes_total{{mode="decode",dp_rank="{rank}"}} {passes}\n'
            f'sglang:realtime_tokens_total{{mode="decode",dp_rank="{rank}"}} {passes * run * length}\n'.encode()
            for rank, (length, run) in enumerate(zip(lengths, running, strict=True))
        )

    gauges = body("four_ranks/dp4.prom")
    await polled.see(gauges + counters(1000))
    page = await polled.see(gauges + counters(1040), after=5)
    used = [page.value("kv_pool_used_tokens", artifact="target", rank=str(rank)) for rank in range(4)]
    assert used == [20000, 22000, 90000, 18000]
    assert page.of("kv_pool_capacity_tokens", artifact="target") == [100000] * 4
    assert page.value("rolling_acceptance_length", scope="batch", window="1m") == pytest.approx(138 / 70)
    for rank, length in enumerate(lengths):
        assert page.value("batch_acceptance_length_sum", rank=str(rank)) == length
        assert page.value("batch_acceptance_length_count", rank=str(rank)) == 1
    assert page.value("engine_running_requests", rank="2") == 40


async def test_a_broken_metrics_endpoint_is_that_and_nothing_else(make: Callable[..., PolledDesk]) -> None:
    """500 on /metrics: its source is down at once, its gauges go when stale, the other endpoints stay up."""
    polled = make()
    polled.engine.answers["/v1/loads"] = Answer(LOADS)
    polled.engine.answers["/server_info"] = Answer(
        (CAPTURED / "0.5.23" / "server_info_v0.5.23_dspark.json").read_bytes()
    )
    await polled.poll()
    page = await polled.see((CAPTURED / "0.5.23" / "metrics_v0.5.23_dspark_tp2.busy.prom").read_bytes())
    assert page.state("speculation_state", rank="0") == "capped"
    assert page.value("kv_pool_resident_bytes", artifact="target", rank="0") is not None
    polled.engine.answers["/metrics"] = Answer(b"Internal Server Error", status=500)
    for _ in range(13):
        polled.now += 5
        await polled.poll(Source.METRICS, Source.LOADS)
    page = polled.page()
    up = {source: page.value("source_up", source=source) for source in ("metrics", "loads", "server_info")}
    assert up == {"metrics": 0, "loads": 1, "server_info": 1}
    assert page.value("source_errors_total", source="metrics", reason="http_status") == 13
    assert page.state("speculation_state", rank="0") == "no_data"
    assert page.value("kv_pool_resident_bytes", artifact="target", rank="0") is None
    assert page.value("kv_pool_capacity_tokens", artifact="target", rank="0") == 1000
    assert "Internal Server Error" not in page.text


async def test_gauges_vanish_when_every_source_is_stale(make: Callable[..., PolledDesk]) -> None:
    """Nothing of the engine is left, not even a 0, once three polls and a minute went by; counters stay."""
    polled = make()
    polled.engine.answers["/v1/loads"] = Answer(LOADS)
    await polled.poll(Source.LOADS)
    await polled.see((CAPTURED / "0.5.23" / "metrics_v0.5.23_dspark_tp2.busy.prom").read_bytes())
    polled.now += 60
    assert polled.page().value("engine_running_requests", rank="0") == 12
    polled.now += 0.5
    page = polled.page()
    for name in (
        "kv_pool_capacity_tokens",
        "kv_pool_used_tokens",
        "acceptance_window_length",
        "engine_running_requests",
    ):
        assert page.of(name) == []
    assert page.of("engine_info") == []
    assert page.state("speculation_state", rank="0") == "no_data"
    assert page.value("kv_retractions_total", rank="0") == 0


async def test_a_slow_poll_stays_fresh_for_three_of_its_intervals(make: Callable[..., PolledDesk]) -> None:
    """With a poll every 100 s, a reading of 290 s ago is the latest word; one of 301 s ago is not."""
    polled = make(engine={"poll_interval": "100s"})
    await polled.see(body("pinned_and_resident/metrics.prom"))
    polled.now += 290
    assert polled.page().of("kv_pool_used_tokens") == [10000]
    polled.now += 11
    assert polled.page().of("kv_pool_used_tokens") == []


async def test_an_idle_gauge_earns_and_burns_nothing(make: Callable[..., PolledDesk]) -> None:
    """Six readings, three of them of work: 1 of 3 reports is bad, and 400 of 6400 tokens; not 4 of 6."""
    polled = make(**LENGTH_TARGET)
    states = []
    for second in ("00", "15", "30", "45", "60", "75"):
        page = await polled.see(body(f"idle_gauge/s{second}.prom"), after=0 if second == "00" else 15)
        states.append(page.state("speculation_state", rank="0"))
    events = {v: page.value("slo_events_total", sli="batch", verdict=v, profile="default") for v in ("good", "bad")}
    assert events == {"good": 2, "bad": 1}
    # the report of 1.6 stands for 400 tokens, the two of 3.1 for 3000 each
    steps = [400 / 1.6, 3000 / 3.1, 3000 / 3.1]
    assert page.value("rolling_acceptance_length", scope="batch", window="5m") == pytest.approx(6400 / sum(steps))
    assert states == ["active", "active", "active", "idle", "active", "active"]


async def test_flat_counters_make_an_engine_idle_and_not_hung(make: Callable[..., PolledDesk]) -> None:
    """A running gauge that lags behind for half a minute freezes nothing; 40 s without a token are idle."""
    polled = make()
    states = []
    for second in (0, 10, 20, 30, 40):
        page = await polled.see(body(f"idle_after_work/t{second:02}.prom"), after=10 if second else 0)
        states.append(page.state("speculation_state", rank="0"))
    assert states == ["no_data", "no_data", "no_data", "idle", "idle"]
    assert page.value("engine_running_requests", rank="0") == 0


async def test_requests_that_run_without_a_token_are_frozen(make: Callable[..., PolledDesk]) -> None:
    """Two minutes, sixteen running, a growing queue, no token: frozen, and the held 2.9 counts for nothing."""
    polled = make(**LENGTH_TARGET)
    page = await polled.see(body("frozen_with_a_queue/t0.prom"))
    assert page.state("speculation_state", rank="0") == "active"
    page = await polled.see(body("frozen_with_a_queue/t120.prom"), after=120)
    assert page.state("speculation_state", rank="0") == "frozen"
    assert page.value("engine_queued_requests", rank="0") == 55
    assert page.of("slo_events_total") == [0, 0]
    assert page.value("batch_acceptance_length_count", rank="0") == 0


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
@pytest.mark.parametrize("deployment", ["dflash_tp1", "dspark_tp2", "nospec_tp1", "dp2"])
async def test_a_captured_idle_engine_earns_no_credit(
    make: Callable[..., PolledDesk], version: str, deployment: str
) -> None:
    """The gauges of an idle engine hold their last value; polled for minutes, they are no report and no burn."""
    polled = make(**LENGTH_TARGET)
    idle = (CAPTURED / version / f"metrics_v{version}_{deployment}.idle.prom").read_bytes()
    await polled.see((CAPTURED / version / f"metrics_v{version}_{deployment}.busy.prom").read_bytes())
    for _ in range(30):
        await polled.read(idle, after=5)
    page = polled.page()
    assert sum(page.of("slo_events_total")) == 0
    assert sum(page.of("batch_acceptance_length_count")) == 0
    assert page.of("rolling_acceptance_length") == []
    assert sum(page.of("verify_steps_total")) == 0
    # in this capture rank 0 still says 12 running while no token moves any more
    found = [page.state("speculation_state", rank=rank) for rank in page.label("speculation_state", "rank")]
    assert found == (["frozen", "idle"] if deployment == "dp2" else ["idle"])


@pytest.mark.parametrize("name", ["empty", "headers_only"])
async def test_an_answer_without_samples_is_up_and_knows_nothing(make: Callable[..., PolledDesk], name: str) -> None:
    """The source is up with 0 samples; that differs from a source that was never read and from one that failed."""
    polled = make(budget={"kv": {"target": "1GiB"}, "acceptance": {"target_length": 2.5}})
    assert polled.page().value("source_up", source="metrics") is None
    page = await polled.see(body(f"nothing_to_read/{name}.prom"))
    assert page.value("source_up", source="metrics") == 1
    assert page.state("speculation_state", rank="0") == "no_data"
    assert page.state("line_state", line="kv") == "unknown"
    assert page.of("kv_pool_used_tokens") == []
    assert page.of("rolling_acceptance_length") == []
    assert page.value("source_last_success_timestamp_seconds", source="metrics") == polled.now
    polled.engine.answers["/metrics"] = Answer(status=503)
    await polled.poll(Source.METRICS)
    assert polled.page().value("source_up", source="metrics") == 0


async def test_a_decode_pod_is_one_engine_with_one_role(make: Callable[..., PolledDesk]) -> None:
    """Tokens under unified and acceptance under decode are one engine, and /server_info says which."""
    polled = make()
    polled.engine.answers["/server_info"] = Answer(body("role_in_two_places/server_info.json"))
    page = await polled.see(body("role_in_two_places/metrics.prom"))
    assert page.label("engine_info", "role") == ["decode"]
    await polled.poll(Source.SERVER_INFO)
    page = polled.page()
    assert page.label("engine_info", "role") == ["decode"]
    assert page.of("engine_info") == [1]
    page = await polled.see(body("role_in_two_places/metrics.prom").replace(b"42000", b"42050"), after=5)
    assert page.value("generated_tokens_total", rank="0", profile="default") == 50


async def test_a_prefill_pod_is_idle_and_not_off(make: Callable[..., PolledDesk]) -> None:
    """It never decodes; its growing prefill is no speculation that was switched off."""
    polled = make()
    polled.engine.answers["/server_info"] = Answer(b'{"disaggregation_mode":"prefill","speculative_algorithm":"EAGLE"}')
    await polled.poll(Source.SERVER_INFO)
    for turn in range(1, 5):
        page = await polled.see(
            f'sglang:spec_accept_length{{tp_rank="0"}} 0\nsglang:num_running_reqs{{tp_rank="0"}} 1\n'
            f'sglang:realtime_tokens_total{{mode="prefill_compute",tp_rank="0"}} {turn * 9000}\n',
            after=5,
        )
        assert page.state("speculation_state", rank="0") == "idle"
    assert page.label("engine_info", "role") == ["prefill"]


async def test_a_gauge_that_is_never_set_is_off_and_burns_nothing(make: Callable[..., PolledDesk]) -> None:
    """0.0 under 250000 tokens is no length below 1: speculation is off or not reported."""
    polled = make(**LENGTH_TARGET)
    page = await polled.see(body("gauge_never_set/t0.prom"))
    assert page.state("speculation_state", rank="0") == "no_data"
    page = await polled.see(body("gauge_never_set/t1.prom"), after=15)
    assert page.state("speculation_state", rank="0") == "off"
    assert page.of("slo_events_total") == [0, 0]
    assert page.value("source_errors_total", source="metrics", reason="out_of_bounds") == 0


async def test_a_long_first_prefill_is_not_off(make: Callable[..., PolledDesk]) -> None:
    """Before its first decode pass an engine has no decode counter at all; a prefill of minutes proves nothing."""
    polled = make()
    for turn in range(1, 20):
        page = await polled.see(
            "sglang:num_running_reqs 1\nsglang:spec_accept_length 0\n"
            f'sglang:realtime_tokens_total{{mode="prefill_compute"}} {turn * 8192}\n',
            after=5,
        )
        assert page.state("speculation_state", rank="0") == "no_data"


async def test_a_fresh_engines_first_request_is_not_frozen(make: Callable[..., PolledDesk]) -> None:
    """Ten quiet minutes without any counter, then the first tokens: that is work."""
    polled = make()
    for _ in range(10):
        await polled.see("sglang:num_running_reqs 0\n", after=60)
    page = await polled.see(
        'sglang:num_running_reqs 2\nsglang:spec_accept_length 2.2\nsglang:realtime_tokens_total{mode="decode"} 90\n',
        after=5,
    )
    assert page.state("speculation_state", rank="0") == "active"


@pytest.mark.parametrize(
    ("name", "invalid"),
    [("too_big", True), ("too_small", True), ("edge", False)],
    ids=["5 of 4", "0.75", "4 of 4"],
)
async def test_a_length_outside_its_window_is_counted_and_not_used(
    make: Callable[..., PolledDesk], name: str, invalid: bool
) -> None:
    """An impossible length is an error of the source, no report and no event; the full window is possible."""
    polled = make(**LENGTH_TARGET)
    work = 'sglang:cuda_graph_passes_total{{mode="decode",tp_rank="0",pp_rank="0"}} {}\n'
    text = body(f"length_out_of_bounds/{name}.prom").decode()
    await polled.see(text + work.format(100))
    page = await polled.see(text + work.format(200), after=5)
    assert page.state("speculation_state", rank="0") == ("invalid" if invalid else "active")
    assert page.value("source_errors_total", source="metrics", reason="out_of_bounds") == (2 if invalid else 0)
    assert sum(page.of("slo_events_total")) == (0 if invalid else 1)
    assert page.value("batch_acceptance_length_count", rank="0") == (0 if invalid else 1)


async def test_nothing_that_is_not_finite_reaches_the_page(make: Callable[..., PolledDesk]) -> None:
    """NaN is counted once per value, becomes no state but no_data, and is printed nowhere."""
    polled = make(**LENGTH_TARGET)
    page = await polled.see(body("not_finite/nan_accept.prom") + b"sglang:kv_used_tokens +Inf\n")
    assert page.value("source_errors_total", source="metrics", reason="not_finite") == 2
    assert page.state("speculation_state", rank="0") == "no_data"
    assert page.of("slo_events_total") == [0, 0]
    assert not re.search(r"(?i) [-+]?(nan|inf)$", page.text, re.M)
    page = await polled.see(body("not_finite/metrics.prom"), after=5)
    assert page.value("kv_pool_used_tokens", artifact="target", rank="0") == 45000


async def test_the_window_follows_an_adaptive_drafter(make: Callable[..., PolledDesk]) -> None:
    """1, 3 and 7 steps are windows of 2, 4 and 8; a window that moves at run time bounds no finished step."""
    polled = make()
    for steps in (1, 3, 7):
        page = await polled.see(body(f"adaptive_window/steps{steps}.prom"), after=5)
        assert page.value("acceptance_window_length", rank="0") == steps + 1
        assert polled.desk.view.widest_window(polled.now) == steps + 1
        reading = polled.desk.view.ranks(polled.now)["0"]
        assert polled.desk.view.bound(reading, polled.now) == steps + 1
    polled.engine.answers["/server_info"] = Answer(b'{"speculative_adaptive": true, "speculative_algorithm": "EAGLE"}')
    await polled.poll(Source.SERVER_INFO)
    assert polled.desk.view.is_adaptive(polled.now)
    assert polled.desk.view.bound(polled.desk.view.ranks(polled.now)["0"], polled.now) is None
    assert polled.page().value("acceptance_window_length", rank="0") == 8


@pytest.mark.parametrize(("name", "state"), [("capped", "capped"), ("uncapped", "active")])
async def test_a_cap_is_told_from_a_drafter(make: Callable[..., PolledDesk], name: str, state: str) -> None:
    """A cap of 3.2 explains a length of 3.0; a cap of 0 is none."""
    page = await make().see(body(f"capped_window/{name}.prom"))
    assert page.state("speculation_state", rank="0") == state


async def test_pinned_and_resident_slots_are_two_numbers(make: Callable[..., PolledDesk]) -> None:
    """10000 of 500000 are held by requests, 360000 hold something: 2 % is used, 72 % resident."""
    polled = make(budget={"kv": {"high_water": 0.9}})
    text = body("pinned_and_resident/metrics.prom").decode()
    page = await polled.see(f'{text}sglang:kv_cache_memory_usage_gb{{tp_rank="0",pp_rank="0"}} 4\n')
    capacity = page.value("kv_pool_capacity_bytes", artifact="target", rank="0")
    used = page.value("kv_pool_used_bytes", artifact="target", rank="0")
    resident = page.value("kv_pool_resident_bytes", artifact="target", rank="0")
    assert capacity == 4 << 30
    assert used is not None
    assert resident is not None
    assert used / capacity == pytest.approx(0.02, rel=1e-3)
    assert resident / capacity == pytest.approx(0.72, rel=1e-3)
    assert page.value("budget_spent_ratio", line="kv", budget="high_water") == pytest.approx(0.02)


async def test_retractions_come_from_the_counter(make: Callable[..., PolledDesk]) -> None:
    """The gauge is 0 at both readings and the counter grew by 4: four requests lost their slots."""
    polled = make()
    assert (await polled.see(body("retractions/t0.prom"))).value("kv_retractions_total", rank="0") == 0
    assert (await polled.see(body("retractions/t1.prom"), after=5)).value("kv_retractions_total", rank="0") == 4


async def test_the_first_retraction_of_all_counts(make: Callable[..., PolledDesk]) -> None:
    """Engines make the counter when it first counts; on which rank that is, is not known before."""
    polled = make(parallelism={"data": 2})
    both = 'sglang:num_running_reqs{dp_rank="0"} 1\nsglang:num_running_reqs{dp_rank="1"} 1\n'
    await polled.see(both)
    page = await polled.see(f'{both}sglang:num_retracted_requests_total{{dp_rank="1"}} 3\n', after=5)
    assert [page.value("kv_retractions_total", rank=rank) for rank in ("0", "1")] == [0, 3]


async def test_copies_of_tensor_ranks_retract_once(make: Callable[..., PolledDesk]) -> None:
    """Every tensor-parallel rank may publish the same retractions."""
    polled = make()
    text = "".join(f'sglang:num_retracted_requests_total{{tp_rank="{tp}"}} {{0}}\n' for tp in range(4))
    await polled.see(text.replace("{0}", "10"))
    assert (await polled.see(text.replace("{0}", "12"), after=5)).value("kv_retractions_total", rank="0") == 2


async def test_a_rank_that_vanishes_takes_its_gauges_and_leaves_its_counters(
    make: Callable[..., PolledDesk],
) -> None:
    """After a scale-down the next page has no gauge of the lost rank, although /v1/loads still shows it."""
    polled = make(parallelism={"data": 2})
    text = (CAPTURED / "0.5.23" / "metrics_v0.5.23_dp2.busy.prom").read_text()
    polled.engine.answers["/v1/loads"] = Answer((CAPTURED / "0.5.23" / "v1_loads_v0.5.23_dspark_dp2.json").read_bytes())
    await polled.poll(Source.LOADS)
    page = await polled.see(f'{text}sglang:num_retracted_requests_total{{dp_rank="1"}} 5\n')
    assert page.label("speculation_state", "rank") == ["0", "1"]
    await polled.see(f'{text}sglang:num_retracted_requests_total{{dp_rank="1"}} 7\n', after=5)
    alone = "".join(line for line in text.splitlines(keepends=True) if 'dp_rank="1"' not in line)
    page = await polled.see(alone, after=5)
    gone = [name for name, labels, _ in page if ("rank", "1") in labels]
    counters = ("_total", "_bucket", "_count", "_sum")
    assert gone
    assert all(name.endswith(counters) for name in gone)
    assert page.value("kv_retractions_total", rank="1") == 2
    page = await polled.see(f'{text}sglang:num_retracted_requests_total{{dp_rank="1"}} 8\n', after=5)
    assert page.value("kv_retractions_total", rank="1") == 3
    assert page.value("engine_running_requests", rank="1") == 12


async def test_metrics_come_first_and_loads_fill_up(make: Callable[..., PolledDesk]) -> None:
    """What /metrics does not say of a rank is taken from /v1/loads; what both say is /metrics' own."""
    polled = make()
    polled.engine.answers["/v1/loads"] = Answer(LOADS)
    await polled.poll(Source.LOADS)
    page = await polled.see("sglang:num_running_reqs 7\n")
    assert page.value("engine_running_requests", rank="0") == 7
    assert page.value("kv_pool_capacity_tokens", artifact="target", rank="0") == 1000


async def test_an_engine_without_metrics_is_read_from_its_loads(make: Callable[..., PolledDesk]) -> None:
    """404 on /metrics: capacity and use still show, and the hint is logged."""
    polled = make()
    polled.engine.answers["/v1/loads"] = Answer(LOADS)
    await polled.poll()
    page = polled.page()
    assert page.value("source_errors_total", source="metrics", reason="not_found") == 1
    assert page.value("source_up", source="loads") == 1
    assert page.value("kv_pool_used_tokens", artifact="target", rank="0") == 250
    assert "--enable-metrics" in polled.desk.health[Source.METRICS].problem


async def test_a_refused_key_costs_its_endpoint_only(
    make: Callable[..., PolledDesk], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """401 on /server_info: acceptance and KV go on, the capacity comes from the gauge, the key is printed nowhere."""
    (tmp_path / "key.txt").write_text("made-up-key-0001\n")
    polled = make(engine={"api_key_file": "key.txt"})
    polled.engine.answers["/server_info"] = Answer(body("key_refused/server_info.body"), status=401)
    polled.engine.answers["/metrics"] = Answer(body("key_refused/metrics.prom"))
    with caplog.at_level("DEBUG"):
        await polled.poll()
    page = polled.page()
    assert page.value("source_errors_total", source="server_info", reason="unauthorized") == 1
    assert page.value("source_up", source="server_info") == 0
    assert page.state("speculation_state", rank="0") == "active"
    assert page.value("kv_pool_capacity_tokens", artifact="target", rank="0") == 180000
    assert page.value("kv_pool_used_tokens", artifact="target", rank="0") == 45000
    assert "made-up-key" not in page.text + caplog.text
    assert "made-up-key" not in repr(polled.desk)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"<html>busy</html>"), "malformed"),
        (Answer(b'{"tp_size": "sk-EXAMPLE-secret"}'), "malformed"),
        (Answer(b'{"internal_states": "sk-EXAMPLE-secret"}'), "malformed"),
    ],
)
async def test_a_document_that_is_not_one_is_malformed(
    make: Callable[..., PolledDesk], caplog: pytest.LogCaptureFixture, answer: Answer, reason: str
) -> None:
    """Its source is down with one line in the log that repeats nothing of the body, however often it is read."""
    polled = make()
    polled.engine.answers["/server_info"] = answer
    for _ in range(3):
        await polled.poll(Source.SERVER_INFO)
    page = polled.page()
    assert page.value("source_errors_total", source="server_info", reason=reason) == 3
    assert page.value("source_up", source="server_info") == 0
    assert len([record for record in caplog.records if "server_info" in record.getMessage()]) == 1
    assert "EXAMPLE" not in caplog.text
    assert "busy" not in caplog.text


async def test_model_names_that_clients_make_up_add_no_series(make: Callable[..., PolledDesk]) -> None:
    """Ten readings of 500 new names each: the same series as with one name, and no name on the page."""
    polled = make()
    one = 'sglang:spec_accept_length{model_name="real",engine_type="unified"} 2.5\n'
    series = len(list(await polled.see(one)))
    for turn in range(10):
        page = await polled.see(
            "".join(
                f'sglang:spec_accept_length{{model_name="typo-{turn}-{i}",engine_type="unified"}} 2.5\n'
                for i in range(500)
            ),
            after=5,
        )
        assert len(list(page)) == series
        assert "typo" not in page.text
    assert page.state("speculation_state", rank="0") == "active"


async def test_steps_are_the_increase_since_the_first_poll(make: Callable[..., PolledDesk]) -> None:
    """The engine's own counters count where no request log is given, from the first reading on, through restarts."""
    polled = make()
    text = "sglang:num_running_reqs 1\nsglang:spec_verify_calls_total {}\nsglang:generation_tokens_total {}\n"
    pages = [await polled.see(text.format(*one), after=5) for one in ((5000, 9000), (5100, 9250), (40, 90), (40, 91))]
    labels = {"rank": "0", "profile": "default"}
    assert [page.value("verify_steps_total", **labels) for page in pages] == [0, 100, 140, 140]
    assert [page.value("generated_tokens_total", **labels) for page in pages] == [0, 250, 340, 341]
    assert pages[-1].label("acceptance_source_info", "source") == ["metrics"]


async def test_a_request_log_makes_the_engines_counters_no_count(
    make: Callable[..., PolledDesk], tmp_path: Path
) -> None:
    """Counts come from one source; when a reload makes these the source, only what they grow by from then on counts."""
    polled = make(engine={"request_log": str(tmp_path)})
    text = "sglang:num_running_reqs 1\nsglang:spec_verify_calls_total {}\n"
    await polled.see(text.format(1_000_000))
    page = await polled.see(text.format(1_000_500), after=5)
    labels = {"rank": "0", "profile": "default"}
    assert page.value("verify_steps_total", **labels) == 0
    without_log = PolledDesk(polled.engine, tmp_path)
    await without_log.http.close()
    polled.desk.use(without_log.loaded, polled.now)
    page = await polled.see(text.format(1_000_510), after=5)
    assert page.value("verify_steps_total", **labels) == 10


async def test_counters_without_a_rank_are_not_given_to_one_of_several(
    make: Callable[..., PolledDesk],
) -> None:
    """With two ranks it is not known whose steps they were; when one is left, only its own growth counts."""
    polled = make(parallelism={"data": 2})
    two = 'sglang:num_running_reqs{dp_rank="0"} 1\nsglang:num_running_reqs{dp_rank="1"} 1\n'
    one = 'sglang:num_running_reqs{dp_rank="0"} 1\n'
    await polled.see(f"{two}sglang:spec_verify_calls_total 100\n")
    page = await polled.see(f"{two}sglang:spec_verify_calls_total 900\n", after=5)
    assert sum(page.of("verify_steps_total")) == 0
    page = await polled.see(f"{one}sglang:spec_verify_calls_total 950\n", after=5)
    assert page.value("verify_steps_total", rank="0", profile="default") == 50


async def test_another_engine_starts_its_own_baseline(make: Callable[..., PolledDesk], tmp_path: Path) -> None:
    """A reload that points to another engine forgets what was read of the old one and counts nothing twice."""
    polled = make()
    text = "sglang:num_running_reqs 1\nsglang:spec_verify_calls_total {}\n"
    await polled.see(text.format(10))
    async with ScriptedEngine({"/metrics": Answer(text.format(7000).encode())}) as other:
        second = PolledDesk(other, tmp_path)
        polled.desk.use(second.loaded, polled.now)
        assert polled.page().of("engine_running_requests") == []
        second.desk = polled.desk
        second.loops._desk = polled.desk
        second.now = polled.now
        await second.poll(Source.METRICS)
        assert sum(polled.page().of("verify_steps_total")) == 0
        await second.http.close()


@pytest.mark.parametrize(
    ("args", "adaptive"),
    [
        ("--speculative-algorithm EAGLE --speculative-adaptive", True),
        (["--speculative-algorithm", "EAGLE", "--speculative-adaptive"], True),
        ("--speculative-adaptive-config steps.json", False),
        ("--tool-server=--speculative-adaptive", False),
        ("--speculative-adaptive=1", True),
        (None, False),
    ],
)
async def test_before_the_engine_says_so_its_arguments_say_whether_the_window_moves(
    make: Callable[..., PolledDesk], args: object, adaptive: bool
) -> None:
    """They are read as arguments, not searched for a word; a budget that is read anew is asked anew."""
    polled = make(engine={} if args is None else {"args": args})
    view = polled.desk.view
    assert view.is_adaptive(polled.now) is adaptive
    view.budget = view.budget.model_copy(update={"engine": view.budget.engine.model_copy(update={"args": None})})
    assert view.is_adaptive(polled.now) is False
