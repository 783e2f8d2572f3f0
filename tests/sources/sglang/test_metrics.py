"""SGLang's /metrics: captured bodies to the digit, copies that are never summed, and bodies that lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.scripted_engine import CAPTURED, READINGS

from specbudget.domain.acceptance import rate_at_length
from specbudget.domain.observation import EngineReading, RankReading
from specbudget.sources.exposition import ExpositionError
from specbudget.sources.sglang.metrics import GIB, MAX_RANKS, MetricsReader

VERSIONS = ("0.5.18", "0.5.23")
ONE_RANK = ("dflash_tp1", "dspark_tp2", "nospec_tp1")


def read(path: Path) -> EngineReading:
    """The reading of a file's body."""
    return MetricsReader().read(path.read_bytes(), at=0.0)


def read_text(*lines: str) -> EngineReading:
    """The reading of a body of these lines."""
    return MetricsReader().read("".join(f"{line}\n" for line in lines).encode(), at=0.0)


def truth(version: str, deployment: str, rank: str) -> dict[str, float]:
    """What the engine's own bookkeeping said at the last decode report before the capture."""
    path = CAPTURED / version / f"metrics_v{version}_{deployment}.tp0dp{rank}.truth.json"
    last: dict[str, float] = json.loads(path.read_text())[-1]
    return last


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("deployment", ONE_RANK)
def test_a_captured_body_reads_as_the_engine_counted(version: str, deployment: str) -> None:
    """Length, cap, block length, use and decode passes are those of the engine's own truth, to the last digit."""
    reading, told = (
        read(CAPTURED / version / f"metrics_v{version}_{deployment}.busy.prom"),
        truth(version, deployment, "None"),
    )
    assert list(reading.ranks) == ["0"]
    rank = reading.ranks["0"]
    assert rank.length == told["spec_accept_length"]
    assert rank.cap_length == told["cap"]
    assert rank.block_length == told["block"]
    assert rank.used_tokens == told["kv_used"]
    assert rank.decode_passes == told["iter"]
    assert rank.running == 12
    assert reading.role == "unified"
    assert (reading.not_finite, reading.ambiguous) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_data_parallel_ranks_stay_apart(version: str) -> None:
    """Each of two ranks has its own length, use and token counts; nothing is averaged or added."""
    ranks = read(CAPTURED / version / f"metrics_v{version}_dp2.busy.prom").ranks
    assert list(ranks) == ["0", "1"]
    for rank, decoded in (("0", 11237), ("1", 11328)):
        told = truth(version, "dp2", rank)
        assert ranks[rank].length == told["spec_accept_length"]
        assert ranks[rank].used_tokens == told["kv_used"]
        assert ranks[rank].decode_tokens == decoded
        assert ranks[rank].capacity_tokens == 402176
        assert ranks[rank].prefill_tokens == 6144 + 1536


@pytest.mark.parametrize("version", VERSIONS)
def test_copies_of_tensor_parallel_ranks_are_one_value(version: str) -> None:
    """Capacity, weights, pool, graphs and passes that both tensor-parallel ranks publish are not added."""
    rank = read(CAPTURED / version / f"metrics_v{version}_dspark_tp2.busy.prom").ranks["0"]
    assert rank.capacity_tokens == 612352
    assert rank.target_weight_bytes == pytest.approx(71.284 * GIB)
    assert rank.target_kv_bytes == pytest.approx(45.113 * GIB)
    assert rank.free_bytes == pytest.approx(7.41 * GIB)
    assert rank.decode_passes == 240
    assert rank.graph_bytes["target_verify"] == pytest.approx(1.31 * GIB)
    assert rank.graph_bytes["draft_decode"] == pytest.approx(0.34 * GIB)
    assert rank.page_tokens == 64
    assert rank.evictable_tokens == 9000
    assert (rank.num_steps, rank.num_draft_tokens) == (1, 8)


@pytest.mark.parametrize("version", VERSIONS)
def test_counters_of_the_tokenizer_are_summed_over_their_labels(version: str) -> None:
    """Streaming and other requests are parts of one total: 3277 + 5904 generated, 19082 + 42077 prompt tokens."""
    reading = read(CAPTURED / version / f"metrics_v{version}_dspark_tp2.busy.prom")
    assert reading.generation_tokens == 9181
    assert reading.prompt_tokens == 61159
    assert reading.verify_steps == 2338


@pytest.mark.parametrize("body", ["colon", "underscore", "both"])
def test_both_spellings_of_a_name_read_the_same(body: str) -> None:
    """A router that turns colons into underscores changes nothing, and both at once double nothing."""
    reading = read(READINGS / "two_spellings" / f"{body}.prom")
    assert reading.ranks == {"0": RankReading(length=2.75, capacity_tokens=180000, used_tokens=45000)}
    assert reading.ambiguous == 0


def test_the_native_spelling_counts_where_the_other_one_differs() -> None:
    """An escaped copy that lags behind is not believed, and a counter in both spellings is one counter."""
    labels = '{engine_type="unified",tp_rank="0"}'
    reading = read_text(
        f"sglang_spec_accept_length{labels} 1.5",
        f"sglang:spec_accept_length{labels} 2.5",
        'sglang_generation_tokens_total{is_streaming="true"} 40',
        'sglang:generation_tokens_total{is_streaming="true"} 50',
        'sglang_generation_tokens_total{is_streaming="false"} 7',
    )
    assert reading.ranks["0"].length == 2.5
    assert reading.generation_tokens == 57


@pytest.mark.parametrize(("body", "capacity", "used"), [("tp4", 240000, 60000), ("tp2pp2", 232000, 58000)])
def test_stages_hold_other_layers_of_the_same_slots(body: str, capacity: int, used: int) -> None:
    """Four copies are one pool; of two pipeline stages the smaller capacity holds. Both are 25 % full."""
    rank = read(READINGS / "copies_of_tensor_and_pipeline_ranks" / f"{body}.prom").ranks["0"]
    assert (rank.capacity_tokens, rank.used_tokens) == (capacity, used)
    assert used / capacity == 0.25


def test_memory_of_stages_is_that_of_the_fullest_device() -> None:
    """Weights and pool: the largest of stages and ranks; what is free: the smallest."""
    lines = [
        f'sglang:{family}{{tp_rank="{tp}",pp_rank="{pp}"}} {10 * pp + tp + 1}'
        for family in (
            "weight_memory_usage_gb",
            "kv_cache_memory_usage_gb",
            "startup_available_gpu_memory_gb",
        )
        for pp in (0, 1)
        for tp in (0, 1)
    ]
    rank = read_text(*lines).ranks["0"]
    assert (rank.target_weight_bytes, rank.target_kv_bytes, rank.free_bytes) == (12 * GIB, 12 * GIB, GIB)


def test_the_tenth_rank_comes_after_the_ninth() -> None:
    """Ranks are numbers: the lowest one speaks for the copies, and they are listed in their order."""
    lines = [f'sglang:num_running_reqs{{tp_rank="{tp}",dp_rank="{dp}"}} {tp}' for dp in (10, 9, 2) for tp in (10, 2)]
    ranks = read_text(*lines).ranks
    assert list(ranks) == ["2", "9", "10"]
    assert {rank.running for rank in ranks.values()} == {2}


def test_a_writer_is_believed_from_its_first_movement_on() -> None:
    """Of two processes' copies nothing is taken until one moves; then its value holds, also while it stands still."""
    reader, folder = MetricsReader(), READINGS / "writers_by_pid"
    first = reader.read((folder / "scrape1.prom").read_bytes(), at=0.0)
    assert first.ranks == {}
    assert first.ambiguous == 1
    for at in (5.0, 10.0, 15.0):
        later = reader.read((folder / "scrape2.prom").read_bytes(), at=at)
        assert later.ranks["0"].used_tokens == 5
        assert later.ambiguous == 0


def test_a_writer_that_joins_a_dead_one_is_the_living_one() -> None:
    """A second process that appears beside one that stands still has just written, so it is believed."""
    reader = MetricsReader()
    old = 'sglang:kv_used_tokens{tp_rank="0",pid="1"} 7\n'
    assert reader.read(old.encode(), at=0.0).ranks["0"].used_tokens == 7
    assert (
        reader.read(f'{old}sglang:kv_used_tokens{{tp_rank="0",pid="2"}} 3\n'.encode(), at=5.0).ranks["0"].used_tokens
        == 3
    )


def test_two_writers_that_both_move_are_ambiguous() -> None:
    """Two processes at work under one set of ranks: no value is right, and it is counted, not added or picked."""
    reader = MetricsReader()
    for at in range(4):
        body = f'sglang:kv_used_tokens{{pid="1"}} {at}\nsglang:kv_used_tokens{{pid="2"}} {10 + at}\n'
        reading = reader.read(body.encode(), at=float(at))
        assert "0" not in reading.ranks
        assert reading.ambiguous == 1


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    """NaN and infinities of families that are read become no value; those of others are not even looked at."""
    reading = read(READINGS / "not_finite" / "metrics.prom")
    assert reading.ranks["0"] == RankReading(length=2.75, capacity_tokens=180000, used_tokens=45000)
    assert reading.not_finite == 0
    assert read(READINGS / "not_finite" / "nan_accept.prom") == EngineReading(at=0.0, not_finite=1)
    assert read_text("sglang:kv_used_tokens +Inf", "sglang:generation_tokens_total -Inf").not_finite == 2


@pytest.mark.parametrize(
    ("body", "rate"),
    [("new_engine", 0.4), ("old_engine", 0.4), ("zero_old", 0.0)],
    ids=[
        "an engine that counts drafts alone",
        "one that counts the bonus too",
        "a useless drafter on the old one",
    ],
)
def test_the_acceptance_rate_comes_from_the_length(body: str, rate: float) -> None:
    """(L − 1) / (D − 1), whatever the engine's own rate says: 0.4 for L 2.2 of 4, 0 for L 1."""
    rank = read(READINGS / "two_meanings_of_rate" / f"{body}.prom").ranks["0"]
    assert rank.length is not None
    assert rank.num_draft_tokens == 4
    assert rate_at_length(rank.length, rank.num_draft_tokens) == pytest.approx(rate)


@pytest.mark.parametrize("body", ["empty", "headers_only"])
def test_a_body_without_samples_is_a_reading_of_nothing(body: str) -> None:
    """No rank, no counter and no fault: the engine answered and said nothing."""
    assert read(READINGS / "nothing_to_read" / f"{body}.prom") == EngineReading(at=0.0)


def test_a_body_that_ends_inside_a_line_is_refused() -> None:
    """45000 cut to 450 is a number like any other, so a body without its last line end is no reading."""
    whole = (READINGS / "two_spellings" / "colon.prom").read_bytes()
    with pytest.raises(ExpositionError, match="ends inside a line"):
        MetricsReader().read(whole[:-3], at=0.0)


def test_a_web_page_is_no_reading_of_nothing() -> None:
    """A proxy that asks to log in answers 200."""
    with pytest.raises(ExpositionError, match="a web page"):
        MetricsReader().read(b"<!doctype html>\n<html>log in</html>\n", at=0.0)


def test_a_value_that_nothing_can_have_is_counted_and_left_out() -> None:
    """Negative or absurdly large: neither a gauge nor a counter of an engine."""
    body = b"sglang:kv_cache_memory_usage_gb 1e300\nsglang:num_running_reqs -2\nsglang:num_queue_reqs 1\n"
    reading = MetricsReader().read(body, at=0.0)
    rank = reading.ranks["0"]
    assert (rank.target_kv_bytes, rank.running, rank.queued) == (None, None, 1)
    assert reading.out_of_bounds == 2


def test_the_role_is_the_schedulers() -> None:
    """The tokenizer of a decode pod says unified; the scheduler, which has ranks, says decode."""
    reading = read(READINGS / "role_in_two_places" / "metrics.prom")
    assert reading.role == "decode"
    assert reading.generation_tokens == 42000
    assert reading.ranks["0"].length == 2.9


def test_prefill_and_decode_work_are_told_apart() -> None:
    """All decode modes are decode passes, both prefill modes prefill tokens."""
    reading = read_text(
        'sglang:cuda_graph_passes_total{mode="decode_cuda_graph"} 30',
        'sglang:cuda_graph_passes_total{mode="decode_none"} 4',
        'sglang:cuda_graph_passes_total{mode="prefill_cuda_graph"} 100',
        'sglang:realtime_tokens_total{mode="decode"} 60',
        'sglang:realtime_tokens_total{mode="prefill_compute"} 5',
        'sglang:realtime_tokens_total{mode="prefill_cache"} 6',
    )
    assert reading.ranks == {"0": RankReading(decode_passes=34, decode_tokens=60, prefill_tokens=11)}


def test_a_priority_is_a_part_and_not_a_copy() -> None:
    """Queues by priority are parts of the whole that stands beside them, under an empty priority."""
    reading = read_text(
        'sglang:num_queue_reqs{priority=""} 9',
        'sglang:num_queue_reqs{priority="1"} 4',
        'sglang:num_queue_reqs{priority="2"} 5',
    )
    assert reading.ranks["0"].queued == 9
    assert reading.ambiguous == 0


def test_pool_use_has_an_older_name() -> None:
    """kv_used_tokens is the pool's own; num_used_tokens stands where that is not there."""
    assert read_text("sglang:num_used_tokens 7").ranks["0"].used_tokens == 7
    assert read_text("sglang:num_used_tokens 7", "sglang:kv_used_tokens 5").ranks["0"].used_tokens == 5


@pytest.mark.parametrize("label", ["x", "-1", "007", "256", "99999999999999999999", "٣", ""])
def test_what_is_no_rank_does_not_become_one(label: str) -> None:
    """A rank becomes a label of ours: anything but a plain number below the cap is counted and not read."""
    reading = read_text(f'sglang:num_running_reqs{{dp_rank="{label}"}} 3', 'sglang:num_running_reqs{dp_rank="255"} 4')
    assert reading.ranks == {"255": RankReading(running=4)}
    assert reading.ambiguous == 1
    assert MAX_RANKS == 256


def test_five_hundred_model_names_are_one_engine() -> None:
    """Clients that make up model names add no rank and no name of ours, and leave nothing behind in the reader."""
    reader = MetricsReader()
    for turn in range(20):
        body = "".join(
            f'sglang:spec_accept_length{{model_name="typo-{turn}-{i}",engine_type="unified"}} 2.5\n' for i in range(500)
        )
        reading = reader.read(body.encode(), at=float(turn))
        assert reading.ranks == {"0": RankReading(length=2.5)}
        assert reading.model is None
    remembered = sum(len(held) for held in (reader._copies, reader._believed))
    assert remembered <= 501
