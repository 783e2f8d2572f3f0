"""A start-up out of its events: stages by artifact and rank, missing lines, clocks that step, second starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.domain.log_clock import Moment, between
from specbudget.domain.stages import Stage, StageArtifact, StagingMode, StartBasis
from specbudget.domain.start_events import Mark, StartEvent
from specbudget.domain.start_log import StartLog
from specbudget.domain.start_memory import by_data_rank, data_rank
from specbudget.domain.start_phases import StartPhases
from specbudget.domain.start_stages import hidden_ratio
from specbudget.domain.start_up import StartUp, read_start_up, start_of_phases
from specbudget.sources.sglang.start_log import read_start_lines

FIXTURES = Path(__file__).parent.parent / "fixtures"
HANDFILLED = FIXTURES / "sglang" / "0.5.23" / "log_v0.5.23_dspark_tp2_startup.handfilled.log"
TARGET, DRAFTER, BOTH = StageArtifact.TARGET, StageArtifact.DRAFTER, StageArtifact.BOTH
GIB = 1 << 30


def events_of(*lines: str) -> list[StartEvent]:
    """Events of lines `HH:MM:SS ranks| text`, all of one day."""
    texts = []
    for line in lines:
        moment, _, text = line.partition("| ")
        texts.append(f"[2026-03-04 {moment}] {text}\n")
    found = read_start_lines("".join(texts).encode())
    assert found.unknown == 0
    assert len(found.events) == len(lines)
    return found.events


def times(start: StartUp) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """(offset, seconds) by stage and artifact."""
    return {(s.stage.value, s.artifact.value): (s.offset, s.seconds) for s in start.stages}


TWO_RANKS = (
    "10:00:00| server_args=ServerArgs(skip_server_warmup=False, weight_loader_prefetch_checkpoints=False)",
    "10:00:10 TP0| Load weight begin. avail mem=78.00 GB",
    "10:00:11 TP1| Load weight begin. avail mem=78.00 GB",
    "10:00:40 TP0| Load weight end. elapsed=30.00 s, type=A, avail mem=46.00 GB, mem usage=32.00 GB.",
    "10:00:43 TP1| Load weight end. elapsed=32.00 s, type=A, avail mem=46.00 GB, mem usage=32.00 GB.",
    "10:00:44 TP0| Load weight begin. avail mem=46.00 GB",
    "10:00:44 TP1| Load weight begin. avail mem=46.00 GB",
    "10:00:50 TP0| Load weight end. elapsed=6.00 s, type=B, avail mem=43.00 GB, mem usage=3.00 GB.",
    "10:00:48 TP1| Load weight end. elapsed=4.00 s, type=B, avail mem=43.00 GB, mem usage=3.00 GB.",
    "10:00:52 TP0| KV Cache is allocated. dtype: x, #tokens: 9, KV size: 20.00 GB",
    "10:00:53 TP1| KV Cache is allocated. dtype: x, #tokens: 9, KV size: 20.00 GB",
    "10:00:53 TP0| Memory pool end. avail mem=23.00 GB",
    "10:00:54 TP1| Memory pool end. avail mem=23.00 GB",
    "10:00:55 TP0| KV Cache is allocated. dtype: x, #tokens: 9, K size: 2.00 GB, V size: 2.00 GB",
    "10:00:55 TP1| KV Cache is allocated. dtype: x, #tokens: 9, K size: 2.00 GB, V size: 2.00 GB",
    "10:00:55 TP0| Memory pool end. avail mem=19.00 GB",
    "10:00:57 TP1| Memory pool end. avail mem=19.00 GB",
    "10:01:00 TP0| Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=19.00 GB",
    "10:01:00 TP1| Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=19.00 GB",
    "10:01:20 TP0| Capture target verify CUDA graph end. elapsed=20.00 s, mem usage=1.00 GB, avail mem=18.00 GB.",
    "10:01:22 TP1| Capture target verify CUDA graph end. elapsed=22.00 s, mem usage=1.50 GB, avail mem=17.50 GB.",
    "10:01:22 TP0| Capture draft decode CUDA graph begin. backend=full, avail mem=18.00 GB",
    "10:01:25 TP0| Capture draft decode CUDA graph end. elapsed=3.00 s, mem usage=0.25 GB, avail mem=17.75 GB.",
    "10:01:25 TP0| Capture draft extend CUDA graph begin. backend=full, avail mem=17.75 GB",
    "10:01:27 TP0| Capture draft extend CUDA graph end. elapsed=2.00 s, mem usage=0.25 GB, avail mem=17.50 GB.",
    "10:01:28 TP0| max_total_num_tokens=9, context_len=4, available_gpu_mem=17.25 GB",
    "10:01:30| INFO:     Application startup complete.",
    '10:01:42| INFO:     127.0.0.1:40102 - "POST /generate HTTP/1.1" 200 OK',
    "10:01:43| The server is fired up and ready to roll!",
)

N = len(TWO_RANKS)


def test_a_whole_start_in_exact_numbers():
    """Two ranks, two models: maxima over ranks, earliest begins, the drafter's two captures added up."""
    start = read_start_up(events_of(*TWO_RANKS))
    assert times(start) == {
        ("load", "target"): (10.0, 32.0),
        ("load", "drafter"): (44.0, 6.0),
        ("post_load", "both"): (48.0, 5.0),
        ("kv_alloc", "target"): (52.0, 1.0),
        ("kv_alloc", "drafter"): (53.0, 3.0),
        ("graph_capture", "target"): (60.0, 22.0),
        ("graph_capture", "drafter"): (82.0, 5.0),
        ("warmup", "both"): (90.0, 12.0),
        ("ready", "both"): (103.0, None),
        ("first_generation", "both"): (102.0, None),
    }
    assert (start.basis, start.cold_start_seconds, start.ready_seconds) == (StartBasis.LAUNCH, 102.0, 103.0)
    assert (start.warm_up, start.mode, start.overlap_ratio) == (True, StagingMode.SERIAL, 0.0)
    assert (start.open_stage, start.failed, start.clock_steps) == (None, False, 0)
    memory = by_data_rank(start.memory)["0"]
    assert memory.target_weights == 32.0 * GIB
    assert memory.drafter_weights == 3.0 * GIB
    assert (memory.target_kv, memory.drafter_kv) == (20.0 * GIB, 4.0 * GIB)
    assert (memory.target_graphs, memory.drafter_graphs) == (1.5 * GIB, 0.5 * GIB)
    assert (memory.target_state, memory.verify_state, memory.free) == (None, None, 17.25 * GIB)


def test_the_engines_own_two_artifact_log_in_exact_numbers():
    """Two ranks of a DSpark pair: 32.42 s and 2.88 s are the slower rank's, ready 79 s after the first line."""
    start = read_start_up(read_start_lines(HANDFILLED.read_bytes()).events)
    assert times(start) == {
        ("load", "target"): (0.0, 32.42),
        ("load", "drafter"): (32.0, 2.88),
        ("post_load", "both"): (35.0, 1.0),
        ("kv_alloc", "target"): (36.0, 0.0),
        ("kv_alloc", "drafter"): (36.0, 1.0),
        ("graph_capture", "target"): (39.0, 21.7),
        ("graph_capture", "drafter"): (61.0, 5.9),
        ("ready", "both"): (79.0, None),
        ("first_generation", "both"): (79.0, None),
    }
    assert (start.basis, start.order, start.mode) == (StartBasis.FIRST_LOG_LINE, (TARGET, DRAFTER), None)
    assert start.phases.load == 35.3
    assert start.memory["TP0"].drafter_weights == pytest.approx(2.12 * GIB)
    assert start.memory["TP1"].drafter_kv == pytest.approx(9.34 * GIB)
    assert start.memory["TP1"].target_graphs is None


def test_interleaved_ranks_without_stated_times():
    """Older lines state no time: 150 s and 6 s are end − begin of the slower rank, though lines are out of order."""
    start = read_start_up(read_start_lines((FIXTURES / "starts" / "interleaved_ranks.log").read_bytes()).events)
    assert start.stage(Stage.LOAD, TARGET).seconds == 150.0
    assert start.stage(Stage.LOAD, DRAFTER).seconds == 6.0
    for memory in start.memory.values():
        assert (memory.target_weights, memory.drafter_weights) == (32.0 * GIB, 2.5 * GIB)
    assert start.overlap_ratio == 0.0


def test_a_start_that_goes_silent_after_its_load_has_an_open_stage():
    """The load's 360 s are over; what follows the load is open since 365 s after launch."""
    start = read_start_up(read_start_lines((FIXTURES / "starts" / "silent_after_load.log").read_bytes()).events)
    assert start.stage(Stage.LOAD, TARGET).seconds == 360.0
    assert (start.open_stage.stage, start.open_stage.offset) == (Stage.POST_LOAD, 365.0)
    assert (start.progress, start.ready, start.cold_start_seconds) == (365.0, False, None)


OPEN = {
    "the arguments": (1, None),
    "the target loads on one rank": (4, (Stage.LOAD, TARGET, 11.0)),
    "the drafter loads": (6, (Stage.LOAD, DRAFTER, 44.0)),
    "everything is loaded": (9, (Stage.POST_LOAD, BOTH, 50.0)),
    "pools": (10, (Stage.KV_ALLOC, BOTH, 52.0)),
    "the target is captured": (18, (Stage.GRAPH_CAPTURE, TARGET, 60.0)),
    "the drafter is captured": (22, (Stage.GRAPH_CAPTURE, DRAFTER, 82.0)),
    "between capture and HTTP": (26, (Stage.READY, BOTH, 88.0)),
    "warm-up": (27, (Stage.WARMUP, BOTH, 90.0)),
    "ready": (29, None),
}


@pytest.mark.parametrize(("lines", "expected"), OPEN.values(), ids=OPEN)
def test_the_open_stage_follows_the_log(lines, expected):
    """After each line it is known in which stage the start is, and since when."""
    found = read_start_up(events_of(*TWO_RANKS[:lines])).open_stage
    assert (found and (found.stage, found.artifact, found.offset)) == expected


# Missing lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", range(len(TWO_RANKS)), ids=[line[:36] for line in TWO_RANKS])
def test_a_missing_line_costs_only_its_numbers(missing):
    """Whatever line is lost, no stage becomes longer, and no weight or pool goes to the wrong model."""
    whole = times(read_start_up(events_of(*TWO_RANKS), lead=0.0))
    # without the answer the ready line, a second later, ends the warm-up
    whole["warmup", "both"] = (90.0, 13.0)
    lines = [line for place, line in enumerate(TWO_RANKS) if place != missing]
    start = read_start_up(events_of(*lines), lead=0.0)
    for key, (_, seconds) in times(start).items():
        assert key in whole
        if seconds is not None:
            assert seconds <= whole[key][1], key
    for memory in start.memory.values():
        assert memory.target_weights in (None, 32.0 * GIB)
        assert memory.drafter_weights in (None, 3.0 * GIB)
        assert memory.target_kv in (None, 20.0 * GIB)
        assert memory.drafter_kv in (None, 4.0 * GIB)


def test_a_lost_pair_of_one_rank_is_known_by_the_models_name():
    """A rank that shows only the drafter's load does not give the target its time and size."""
    lines = [line for line in TWO_RANKS if not (" TP1" in line and "type=A" in line) and "10:00:11 TP1" not in line]
    start = read_start_up(events_of(*lines))
    assert start.stage(Stage.LOAD, TARGET).seconds == 30.0
    assert start.memory["TP1"].target_weights is None
    assert start.memory["TP1"].drafter_weights == 3.0 * GIB


def without(*parts: str) -> StartUp:
    """The whole start without the lines of TP0 that hold one of the parts."""
    return read_start_up(
        events_of(*(line for line in TWO_RANKS if " TP0|" not in line or not any(part in line for part in parts)))
    )


def test_a_begin_is_not_paired_with_the_end_of_another_load():
    """The target's end and the drafter's begin are lost: 40 s lie between what is left, 6 s are stated."""
    start = without("elapsed=30.00", "avail mem=46.00 GB")
    assert start.memory["TP0"].drafter_weights == 3.0 * GIB
    assert start.memory["TP0"].target_weights is None
    assert start.stage(Stage.LOAD, TARGET).seconds == 32.0
    assert times(start)["load", "drafter"] == (44.0, 6.0)


def test_a_lost_end_of_the_targets_pools_leaves_two_pools():
    """A second pool of the same kind is the next runner's."""
    memory = without("Memory pool end. avail mem=23.00 GB").memory["TP0"]
    assert (memory.target_kv, memory.drafter_kv) == (20.0 * GIB, 4.0 * GIB)


def test_of_one_pool_beside_two_loads_nothing_says_whose_it_is():
    """All lines of the target's pools are lost: the drafter's pool is not taken for the target's."""
    memory = without("KV size: 20.00 GB", "Memory pool end. avail mem=23.00 GB").memory["TP0"]
    assert (memory.target_kv, memory.drafter_kv) == (None, None)


def test_a_load_that_ends_first_began_its_duration_earlier():
    """Where the log begins with an end line, what it states reaches back to the load's begin."""
    start = read_start_up(events_of(*TWO_RANKS[3:]))
    assert (start.basis, start.cold_start_seconds) == (StartBasis.FIRST_LOG_LINE, 92.0)
    assert start.stage(Stage.LOAD, TARGET).offset == 0.0


def test_a_single_load_of_a_drafters_class_is_the_drafters():
    """Where the target's lines are lost on every rank the class name tells whose load is left."""
    line = "10:00:00| Load weight end. elapsed=2.00 s, type=DeepseekV3ForCausalLMNextN, mem usage=1.00 GB."
    start = read_start_up(events_of(line))
    assert start.stage(Stage.LOAD, TARGET) is None
    assert start.stage(Stage.LOAD, DRAFTER).seconds == 2.0


def test_a_log_that_begins_in_the_middle_gives_no_offsets():
    """Without a beginning nothing tells how long ago it was; durations stay."""
    start = read_start_up(events_of(*TWO_RANKS[17:]))
    assert (start.basis, start.cold_start_seconds, start.ready_seconds) == (None, None, None)
    assert start.stage(Stage.GRAPH_CAPTURE, TARGET).seconds == 22.0
    assert start.stage(Stage.READY) is None


def test_the_engines_own_clock_tells_when_a_log_without_a_beginning_began():
    """The engine says 90 s from launch to its timings line, 20 s after the first line that is left."""
    timings = "10:01:20| Engine startup timings (s): load_weight=30.00, cuda_graph={decode=1.00}, tokenizer_e2e=90.00"
    start = read_start_up(events_of("10:01:00 TP0| Memory pool end. avail mem=1.00 GB", timings, TWO_RANKS[-1]))
    assert (start.basis, start.ready_seconds) == (StartBasis.LAUNCH, 113.0)


def test_several_drafters_add_up():
    """Each layer of a multi-layer drafter loads by itself; the drafter's stage is their sum."""
    lines = [
        "10:00:00| Load weight begin. avail mem=78.00 GB",
        "10:00:30| Load weight end. elapsed=30.00 s, type=A, avail mem=46.00 GB, mem usage=32.00 GB.",
    ]
    for second in (30, 33, 36):
        lines.append(f"10:00:{second}| Load weight begin. avail mem=46.00 GB")
        lines.append(
            f"10:00:{second + 2}| Load weight end. elapsed=2.50 s, type=MiMoMTP, avail mem=45.00 GB, mem usage=1.00 GB."
        )
    start = read_start_up(events_of(*lines))
    assert start.stage(Stage.LOAD, DRAFTER).seconds == 7.5
    assert start.memory[""].drafter_weights == 3.0 * GIB


def test_hybrid_pools_of_one_runner_are_one_pool():
    """Full and sliding-window parts and the state belong to the target; the final size replaces reserved space."""
    lines = (
        "10:00:00| Load weight begin. avail mem=78.00 GB",
        "10:00:02| Mamba Cache is allocated. max_mamba_cache_size: 9, conv_state size: 0.50GB, ssm_state size: 8.00GB "
        "intermediate_ssm_state_cache size: 2.00GB intermediate_conv_window_cache size: 0.25GB ",
        "10:00:02| GDN ReplaySSM ring buffers allocated (record_len=8, fold=True): d=1.000GB, k=0.500GB, g=0.000GB ",
        "10:00:03| Full KV Cache VA upper bound. dtype: x, #tokens: 9, K size: 40.00 GB, V size: 40.00 GB",
        "10:00:03| SWA KV Cache VA upper bound. dtype: x, #tokens: 9, K size: 40.00 GB, V size: 40.00 GB",
        "10:00:04| Memory pool end. avail mem=46.00 GB",
        "10:00:05| KV Cache is allocated. dtype: x, #tokens: 9, K size: 2.00 GB, V size: 2.00 GB",
        "10:00:05| Memory pool end. avail mem=42.00 GB",
    )
    memory = read_start_up(events_of(*lines)).memory[""]
    assert (memory.target_state, memory.verify_state) == (8.5 * GIB, 3.75 * GIB)
    assert (memory.target_kv, memory.drafter_kv) == (None, 4.0 * GIB)
    sized = "10:00:09| Post-capture KV sizing: KV cache allocated. dtype: x, #tokens: 9, KV size: 21.00 GB"
    assert read_start_up(events_of(*lines, sized)).memory[""].target_kv == 21.0 * GIB


@pytest.mark.parametrize(
    ("prefix", "rank"), [("", "0"), ("TP3", "0"), ("DP2 TP1", "2"), ("DP10 PP0 MOE_DP1 TP0", "10"), ("MOE_DP1", "0")]
)
def test_the_data_parallel_rank_is_read_from_the_prefix(prefix, rank):
    """Only DP names it; there is one rank where it is not named."""
    assert data_rank(prefix) == rank


# The first generation --------------------------------------------------------------------------------------------

READY_AT_180 = (
    "10:00:00| server_args={'skip_server_warmup': %s}",
    "10:01:00| INFO:     Application startup complete.",
    "10:03:00| The server is fired up and ready to roll!",
)
ANSWER_AT_305 = '10:05:05| INFO:     10.0.0.9:1 - "POST /generate HTTP/1.1" 200 OK'


def skipping(skips: bool, *more: str) -> list[StartEvent]:
    """A start that is ready after 180 s, with or without the engine's own warm-up."""
    return events_of(READY_AT_180[0] % skips, *READY_AT_180[1:], *more)


GENERATIONS = {
    "ready comes after the engine's own warm-up": (False, (), {}, 180.0),
    "a later answer is somebody else's": (False, (ANSWER_AT_305,), {}, 180.0),
    "without a warm-up ready is not enough": (True, (), {}, None),
    "the first request ends it": (True, (), {"generation_after_ready": 125.0}, 305.0),
    "an answer of unknown waiting shows that it generates": (True, (ANSWER_AT_305,), {}, 180.0),
    "a request log has the last word": (True, (ANSWER_AT_305,), {"records": True}, None),
}


@pytest.mark.parametrize(("skips", "more", "given", "expected"), GENERATIONS.values(), ids=GENERATIONS)
def test_a_cold_start_ends_with_the_first_generation(skips, more, given, expected):
    """Port up at 60 s is no end; the server's own warm-up counts, waiting for traffic does not."""
    start = read_start_up(skipping(skips, *more), **given)
    assert (start.cold_start_seconds, start.ready_seconds) == (expected, 180.0)
    assert start.warm_up is not skips


def test_a_known_process_start_comes_before_the_first_line():
    """Imports take 14.5 s before the engine prints anything."""
    start = read_start_up(events_of(*TWO_RANKS), lead=14.5)
    assert (start.basis, start.cold_start_seconds) == (StartBasis.PID_NAMESPACE, 116.5)
    assert start.stage(Stage.LOAD, TARGET).offset == 24.5


def test_phases_fill_in_what_the_log_does_not_tell():
    """Of phases of both models a stage is made only where the log has no split."""
    phases = StartPhases(load=35.0, kv_alloc=2.0, graphs={"target_verify": 20.0, "draft_decode": 4.0})
    alone = start_of_phases(phases)
    assert times(alone) == {
        ("load", "both"): (None, 35.0),
        ("kv_alloc", "both"): (None, 2.0),
        ("graph_capture", "target"): (None, 20.0),
        ("graph_capture", "drafter"): (None, 4.0),
    }
    assert (alone.cold_start_seconds, alone.basis) == (None, None)
    beside = read_start_up(events_of(*TWO_RANKS), phases=phases)
    assert beside.stage(Stage.LOAD, BOTH) is None
    bare = read_start_up(events_of(TWO_RANKS[0], TWO_RANKS[-1]), phases=phases)
    assert bare.stage(Stage.LOAD, BOTH).seconds == 35.0
    late = read_start_up(events_of(TWO_RANKS[-1]), phases=StartPhases(engine=221.0))
    assert (late.stage(Stage.READY).offset, late.ready_seconds, late.cold_start_seconds) == (221.0, None, None)


# Clocks ----------------------------------------------------------------------------------------------------------


def shifted(events: list[StartEvent], first: int, by: float) -> list[StartEvent]:
    """The events with the clock stepped before one of them."""
    return [e if place < first else replace(e, at=e.at + by) for place, e in enumerate(events)]


@pytest.mark.parametrize("by", [3600.0, -3600.0], ids=["an hour forward", "an hour back"])
@pytest.mark.parametrize("first", [3, 7, 19, 20, 22], ids=lambda place: TWO_RANKS[place][:40])
def test_a_change_of_the_season_inside_a_stage_changes_nothing(first, by):
    """The line states how long the stage took, so that the hour is known and taken out."""
    events = shifted(events_of(*TWO_RANKS), first, by)
    start = read_start_up(events)
    assert start.clock_steps == 1
    expected = read_start_up(events_of(*TWO_RANKS))
    got, want = times(start), times(expected)
    assert {key: seconds for key, (_, seconds) in got.items()} == {key: seconds for key, (_, seconds) in want.items()}
    assert start.cold_start_seconds == pytest.approx(102.0, abs=1.0)


@pytest.mark.parametrize("by", [3600.0, -3600.0, -37.0], ids=["an hour forward", "an hour back", "37 s back"])
@pytest.mark.parametrize("first", range(2, N), ids=lambda place: TWO_RANKS[place][:40])
def test_a_step_between_lines_that_are_read_live_changes_nothing(first, by):
    """Read as they are written, lines tell by the reader's own clock how far the log's clock stepped."""
    events = [replace(e, seen=5000.0 + e.at - 1.7e9) for e in events_of(*TWO_RANKS)]
    start = read_start_up(shifted(events, first, by))
    for key, (offset, seconds) in times(read_start_up(events)).items():
        got = start.stage(Stage(key[0]), StageArtifact(key[1]))
        # a step back by less than lie between the lines cannot be seen, and is no more than that
        slack = 37.0 if by == -37.0 else 2.0
        assert got.offset == pytest.approx(offset, abs=slack), key
        assert (got.seconds is None) is (seconds is None), key
        assert seconds is None or got.seconds == pytest.approx(seconds, abs=slack), key


@pytest.mark.parametrize("by", [-3600.0, -37.0, -2000.0], ids=["an hour", "37 s", "more than half an hour"])
@pytest.mark.parametrize("first", range(2, N), ids=lambda place: TWO_RANKS[place][:40])
def test_a_clock_that_was_set_back_makes_nothing_longer_or_negative(first, by):
    """Wherever the clock is set back, a number is what it was, less, or None, and never negative."""
    start = read_start_up(shifted(events_of(*TWO_RANKS), first, by))
    whole = times(read_start_up(events_of(*TWO_RANKS)))
    for key, (offset, seconds) in times(start).items():
        # times are cut to seconds, so that an hour taken out again may be a second off
        assert seconds is None or 0 <= seconds <= (whole[key][1] or 0.0) + 1.0, key
        assert offset is None or 0 <= offset <= whole[key][0] + 1.0, key


def test_the_engines_own_time_shows_a_jump_that_nothing_else_does():
    """The log spans an hour more than the engine says: its longest silence was a jump."""
    timings = "10:01:29| Engine startup timings (s): load_weight=38.00, cuda_graph={decode=27.00}, tokenizer_e2e=89.10"
    events = events_of(*TWO_RANKS[:26], timings, *TWO_RANKS[26:])
    for first in (5, 9, 17):
        start = read_start_up(shifted(events, first, 3600.0))
        assert (start.clock_steps, start.cold_start_seconds) == (1, 102.0)
        assert times(start) == times(read_start_up(events))


def test_a_stage_that_really_takes_an_hour_keeps_it():
    """The line states 3600 s: the clock did not step."""
    start = read_start_up(
        events_of(
            "10:00:00| Load weight begin. avail mem=78.00 GB",
            "11:00:00| Load weight end. elapsed=3600.20 s, type=A, avail mem=46.00 GB, mem usage=32.00 GB.",
            "11:00:05| The server is fired up and ready to roll!",
        )
    )
    assert (start.clock_steps, start.ready_seconds) == (0, 3605.0)


def test_lines_read_as_they_are_written_tell_how_far_a_clock_stepped():
    """Set back by 200 s between two lines that were read 10 s apart: the stage took 10 s."""
    begin, end = events_of(
        "10:05:00 TP0| Capture target verify CUDA graph begin. avail mem=1.00 GB",
        "10:01:50 TP0| Capture target verify CUDA graph end. mem usage=1.00 GB, avail mem=1.00 GB.",
    )
    live = [replace(begin, seen=1000.0), replace(end, seen=1010.0)]
    start = read_start_up(live, lead=0.0)
    assert start.stage(Stage.GRAPH_CAPTURE, TARGET).seconds == pytest.approx(10.0)
    assert read_start_up([begin, end], lead=0.0).stage(Stage.GRAPH_CAPTURE, TARGET).seconds is None


def test_moments_of_two_eras_have_no_distance():
    """Nothing is made up across a step of unknown size, and no distance is negative."""
    assert between(Moment(5.0, 0), Moment(9.0, 1)) is None
    assert between(Moment(9.0), Moment(5.0)) == 0.0


# Overlap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drafter", "ratio"),
    [((30, 40), 0.0), ((35, 45), 0.0), ((25, 35), 0.5), ((15, 25), 1.0), ((20, 30), 1.0), ((12, 12), 0.0)],
    ids=["at once after", "later", "half beside", "within", "ends together", "takes no time"],
)
def test_the_overlap_is_the_hidden_share_of_the_shorter_load(drafter, ratio):
    """(T_target + T_drafter − span) ÷ the shorter, from 0 to 1, beside a target that loads from 0 to 30."""
    assert hidden_ratio((0, 30), drafter) == ratio
    assert hidden_ratio(drafter, (0, 30)) == ratio


# Where a start ends ----------------------------------------------------------------------------------------------


def split(events: list[StartEvent]) -> list[int]:
    """How many events each start has."""
    logs = [StartLog()]
    for event in events:
        if logs[-1].ends_before(event):
            logs.append(StartLog())
        logs[-1].add(event)
    return [len(log.events) for log in logs]


STARTS = {
    "one start": (TWO_RANKS, [N]),
    "a second launch": (TWO_RANKS * 2, [N, N]),
    "a second start without its launch line": ((*TWO_RANKS, *TWO_RANKS[1:]), [N, N - 1]),
    "abandoned while it loads, then anew": ((*TWO_RANKS[:3], *TWO_RANKS), [3, N]),
    "abandoned while it loads, no launch line": ((*TWO_RANKS[1:3], *TWO_RANKS[1:]), [2, N - 1]),
    "abandoned between the two loads, no launch line": ((*TWO_RANKS[1:5], *TWO_RANKS[1:]), [4, N - 1]),
    "abandoned at graph capture, no launch line": ((*TWO_RANKS[1:18], *TWO_RANKS[1:]), [17, N - 1]),
    "abandoned at graph capture, older lines": (
        ("10:00:10 TP0| Load weight begin.", *TWO_RANKS[9:18], "10:05:00 TP0| Load weight begin."),
        [10, 1],
    ),
    "restarted after ready, older lines": ((TWO_RANKS[-1], "10:05:00 TP0| Load weight begin."), [1, 1]),
    "restarted after it failed": (
        (TWO_RANKS[0], "10:00:09| Received sigquit from a child process.", "10:05:00 TP0| Load weight begin."),
        [2, 1],
    ),
    "arguments printed twice by an embedded engine": ((TWO_RANKS[0], *TWO_RANKS), [N + 1]),
    "a lost end of the first load is no new start": (
        tuple(line for line in TWO_RANKS if "elapsed=30.00" not in line),
        [N - 1],
    ),
}


@pytest.mark.parametrize(("lines", "sizes"), STARTS.values(), ids=STARTS)
def test_another_beginning_begins_another_start(lines, sizes):
    """A launch, or a rank that begins to load with its memory free again, is another start; nothing else is."""
    assert split(events_of(*lines)) == sizes


def test_what_comes_after_ready_is_no_part_of_the_start():
    """Pools and captures long after ready (a hot reload) change no figure of the start."""
    log = StartLog()
    late = [StartEvent(mark=mark, at=2e9, rank="TP0") for mark in (Mark.POOLS_END, Mark.KV_POOL, Mark.CAPTURE_END)]
    for event in [*events_of(*TWO_RANKS), *late]:
        assert not log.ends_before(event)
        log.add(event)
    assert (len(log.events), log.dropped) == (N, 3)


# Anything --------------------------------------------------------------------------------------------------------

ALL = events_of(*TWO_RANKS) + read_start_lines(HANDFILLED.read_bytes()).events


def check_sane(events: list[StartEvent]) -> None:
    """No exception, no negative number."""
    if not events:
        return
    for lead in (None, 3.5):
        start = read_start_up(events, lead=lead)
        numbers = [number for stage in start.stages for number in (stage.offset, stage.seconds)]
        numbers += [start.progress, start.ready_seconds, start.cold_start_seconds, start.overlap_ratio]
        if start.open_stage is not None:
            numbers.append(start.open_stage.offset)
        assert all(number is None or number >= 0 for number in numbers)
        assert start.overlap_ratio is None or start.overlap_ratio <= 1


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_subset_with_any_swaps_of_ranks_is_read(data):
    """Lost lines and lines of different ranks in another order never raise and never give negative numbers."""
    events = list(events_of(*TWO_RANKS))
    events = [event for event in events if data.draw(st.integers(0, 5)) > 0]
    for place in range(len(events) - 1):
        if events[place].rank != events[place + 1].rank and data.draw(st.booleans()):
            events[place], events[place + 1] = events[place + 1], events[place]
    check_sane(events)
    split(events)


@given(st.lists(st.sampled_from(ALL), max_size=40))
@settings(max_examples=300, deadline=None)
def test_lines_in_any_order_are_read(events):
    """Even two logs shuffled into each other give a start, with nothing negative."""
    check_sane(events)
    split(events)
