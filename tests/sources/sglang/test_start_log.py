"""Start-up lines of SGLang's server log as events: every shape of both releases, and what must not count."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbudget.domain.stages import Stage, StageArtifact, StagingMode
from specbudget.domain.start_events import Mark
from specbudget.domain.start_memory import by_data_rank
from specbudget.domain.start_up import read_start_up
from specbudget.simulate.deployment import Deployment
from specbudget.simulate.process import Process
from specbudget.simulate.scenarios import SCENARIOS
from specbudget.sources.sglang.start_log import read_start_lines
from specbudget.sources.sglang.start_phases import read_phases

CAPTURED = Path(__file__).parents[2] / "fixtures" / "sglang"
STARTS = Path(__file__).parents[2] / "fixtures" / "starts"
HANDFILLED = CAPTURED / "0.5.23" / "log_v0.5.23_dspark_tp2_startup.handfilled.log"
GIB = 1 << 30
TARGET, DRAFTER = StageArtifact.TARGET, StageArtifact.DRAFTER


def one(text: str, prefix: str = "[2026-03-04 10:00:00 TP1] "):
    """The only event of one line."""
    found = read_start_lines((prefix + text + "\n").encode())
    assert found.unknown == 0
    (event,) = found.events
    return event


SHAPES = {
    "arguments as an object's text (0.5.18)": (
        "server_args=ServerArgs(model_path='/m', skip_server_warmup=True, weight_loader_prefetch_checkpoints=False, "
        "startup_weight_load_mode='serial')",
        {"mark": Mark.LAUNCH, "figures": {"skips_warmup": 1.0, "prefetches": 0.0, "overlaps": 0.0}},
    ),
    "arguments as a mapping's text (0.5.23)": (
        "server_args={'model_path': '/m', 'skip_server_warmup': False, 'weight_loader_prefetch_checkpoints': True}",
        {"mark": Mark.LAUNCH, "figures": {"skips_warmup": 0.0, "prefetches": 1.0}},
    ),
    "load begins": ("Load weight begin. avail mem=138.42 GB", {"mark": Mark.LOAD_BEGIN, "free_bytes": 138.42 * GIB}),
    "load ends": (
        "Load weight end. elapsed=31.42 s, type=DeepseekV4ForCausalLM, avail mem=67.14 GB, mem usage=71.28 GB.",
        {
            "mark": Mark.LOAD_END,
            "seconds": 31.42,
            "model": "DeepseekV4ForCausalLM",
            "role": None,
            "size_bytes": 71.28 * GIB,
            "free_bytes": 67.14 * GIB,
        },
    ),
    "load of a quantised model ends": (
        "Load weight end. elapsed=4.00 s, type=Qwen3MoeForCausalLM, quant=fp8, fmt=e4m3, avail mem=1.00 GB, "
        "mem usage=0.50 GB.",
        {"seconds": 4.0, "model": "Qwen3MoeForCausalLM", "size_bytes": 0.5 * GIB},
    ),
    "load ends without a time (older releases)": (
        "Load weight end. type=LumenForCausalLMMTP, dtype=torch.bfloat16, avail mem=44.40 GB, mem usage=2.50 GB.",
        {"mark": Mark.LOAD_END, "seconds": None, "role": DRAFTER, "size_bytes": 2.5 * GIB},
    ),
    "a load too small to print": (
        "Load weight end. elapsed=0.10 s, type=X, avail mem=1.00 GB, mem usage=0.00 GB.",
        {"size_bytes": None},
    ),
    "a load that freed memory": (
        "Load weight end. elapsed=0.10 s, type=X, avail mem=1.00 GB, mem usage=-0.01 GB.",
        {"size_bytes": None},
    ),
    "weights committed after capture": (
        "Load weight end. Committed real weights after CUDA graph capture in 3.10 s (capture overlap window 9.00 s, "
        "startup overlap total 12.10 s)",
        {"mark": Mark.LOAD_END, "seconds": None, "model": None},
    ),
    "a capture-safe model": ("Prepared capture-safe model in 1.20 s", {"mark": Mark.DEFERRED_LOAD}),
    "prefetch begins (0.5.18)": (
        "Rank 3: prefetching 4/16 checkpoint shards into page cache (background, 4 local ranks sharing the work, "
        "4 threads per rank)...",
        {"mark": Mark.PREFETCH_BEGIN},
    ),
    "prefetch goes on": ("Rank 3: prefetching checkpoint files: 40% (2/4)", {"mark": Mark.PREFETCH_PROGRESS}),
    "prefetch ends": (
        "Rank 3: prefetching checkpoint files into page cache finished in 12.50s",
        {"mark": Mark.PREFETCH_END, "seconds": 12.5},
    ),
    "pool of keys and values": (
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 612352, K size: 4.50 GB, V size: 4.25 GB",
        {"mark": Mark.KV_POOL, "label": "", "size_bytes": 8.75 * GIB},
    ),
    "pool of latents": (
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 612352, KV size: 45.11 GB",
        {"mark": Mark.KV_POOL, "size_bytes": 45.11 * GIB},
    ),
    "pool of sliding-window layers": (
        "SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, K size: 0.50 GB, V size: 0.50 GB",
        {"mark": Mark.KV_POOL, "label": "SWA", "size_bytes": 1.0 * GIB},
    ),
    "reserved address space is no size": (
        "Full KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 4096, K size: 50.00 GB, V size: 50.00 GB",
        {"mark": Mark.KV_POOL, "label": "Full", "size_bytes": None},
    ),
    "a pool of an older release": (
        "KV Cache is allocated. #tokens: 20480, K size: 1.25 GB, V size: 1.25 GB.",
        {"mark": Mark.KV_POOL, "size_bytes": 2.5 * GIB},
    ),
    "recurrent state with its copies per step": (
        "Mamba Cache is allocated. max_mamba_cache_size: 256, conv_state size: 0.50GB, ssm_state size: 8.00GB "
        "intermediate_ssm_state_cache size: 2.00GB intermediate_conv_window_cache size: 0.25GB ",
        {"mark": Mark.STATE_POOL, "size_bytes": 8.5 * GIB, "verify_bytes": 2.25 * GIB},
    ),
    "recurrent state alone": (
        "Mamba Cache is allocated. max_mamba_cache_size: 256, conv_state size: 0.50GB, ssm_state size: 8.00GB ",
        {"mark": Mark.STATE_POOL, "size_bytes": 8.5 * GIB, "verify_bytes": None},
    ),
    "the ring that replays verify steps": (
        "GDN ReplaySSM ring buffers allocated (record_len=8, fold=True): d=1.000GB, k=0.500GB, g=0.250GB "
        "rawv=0.125GB, rawk=0.125GB, beta=0.000GB",
        {"mark": Mark.STATE_POOL, "size_bytes": None, "verify_bytes": 2.0 * GIB},
    ),
    "a runner's pools end": ("Memory pool end. avail mem=19.78 GB", {"mark": Mark.POOLS_END}),
    "the target's pool sized after capture": (
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 9, KV size: 3.00 GB, "
        "avail mem=1.50 GB",
        {"mark": Mark.KV_RESIZED, "role": TARGET, "size_bytes": 3.0 * GIB, "free_bytes": 1.5 * GIB},
    ),
    "a drafter's pool sized after capture": (
        "Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 9, KV size: 0.50 GB",
        {"mark": Mark.KV_RESIZED, "role": DRAFTER, "size_bytes": 0.5 * GIB},
    ),
    "the target's capture begins": (
        "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, avail mem=10.31 GB",
        {"mark": Mark.CAPTURE_BEGIN, "role": TARGET, "label": "target verify"},
    ),
    "a drafter's capture ends": (
        "Capture draft extend CUDA graph end. step=2, elapsed=5.90 s, mem usage=0.34 GB, avail mem=8.66 GB.",
        {"mark": Mark.CAPTURE_END, "role": DRAFTER, "seconds": 5.9, "size_bytes": 0.34 * GIB},
    ),
    "capture of batch sizes ends": (
        "Capture target verify CUDA graph end. bs=[1, 2, 4], elapsed=21.70 s, mem usage=1.31 GB, avail mem=9.00 GB.",
        {"mark": Mark.CAPTURE_END, "role": TARGET, "seconds": 21.7, "size_bytes": 1.31 * GIB},
    ),
    "capture of a model that shares the target's pool": (
        "Capture Frozen-KV MTP draft cuda graph begin.",
        {"mark": Mark.CAPTURE_BEGIN, "role": DRAFTER},
    ),
    "a tree drafter's capture": (
        "Capture UNO tree draft CUDA graph end. elapsed=1.00 s, mem usage=0.10 GB, avail mem=1.00 GB.",
        {"mark": Mark.CAPTURE_END, "role": DRAFTER, "seconds": 1.0},
    ),
    "capture of an older release": (
        "Capture cuda graph end. Time elapsed: 12.34 s. mem usage=0.50 GB. avail mem=9.00 GB.",
        {"mark": Mark.CAPTURE_END, "role": TARGET, "seconds": 12.34, "size_bytes": 0.5 * GIB},
    ),
    "a draft runner": (
        "Initialized DFLASH draft runner. attention_backend=fa3, model=DFlashDraftModel, block_size=16, "
        "draft_window_size=None, compact_cache=False",
        {"mark": Mark.DRAFT_RUNNER, "model": "DFlashDraftModel"},
    ),
    "capacity": (
        "max_total_num_tokens=612352, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, "
        "context_len=40960, available_gpu_mem=7.41 GB",
        {"mark": Mark.CAPACITY, "free_bytes": 7.41 * GIB},
    ),
    "the engine's own timings": (
        "Engine startup timings (s): load_weight=35.30, kv_cache_allocation=1.73, scheduler_e2e=89.40, "
        "cuda_graph={prefill=0.00, target_verify=21.70}, tokenizer_e2e=97.90",
        {
            "mark": Mark.TIMINGS,
            "figures": {
                "load_weight": 35.3,
                "kv_cache_allocation": 1.73,
                "scheduler_e2e": 89.4,
                "tokenizer_e2e": 97.9,
                "graph/prefill": 0.0,
                "graph/target_verify": 21.7,
            },
        },
    ),
    "the HTTP server is up": ("INFO:     Application startup complete.", {"mark": Mark.HTTP_UP}),
    "a generating answer": ('INFO:     127.0.0.1:40102 - "POST /generate HTTP/1.1" 200 OK', {"mark": Mark.ANSWERED}),
    "a chat answer over IPv6": (
        'INFO:     [::1]:40102 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        {"mark": Mark.ANSWERED},
    ),
    "the warm-up of a split engine": ("End of disaggregation warmup", {"mark": Mark.ANSWERED}),
    "ready": ("The server is fired up and ready to roll!", {"mark": Mark.FIRED_UP}),
    "warm-up failed": ("Initialization failed. warmup error: Traceback", {"mark": Mark.FAILED}),
    "a child failed": (
        "Received sigquit from a child process. It usually means the child failed.",
        {"mark": Mark.FAILED},
    ),
}


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES)
def test_each_line_is_read_by_its_own_words(text, expected):
    """Every shape of a start-up line gives its mark and its figures, GiB as bytes."""
    event = one(text)
    for name, value in expected.items():
        got = getattr(event, name)
        assert dict(got) == value if name == "figures" else got == value, name
    assert event.rank == "TP1"
    assert event.at == datetime(2026, 3, 4, 10, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("prefix", "rank", "seconds"),
    [
        ("[2026-03-04 10:00:00] ", "", 0.0),
        ("[2026-03-04 10:00:00 DP1 PP0 ATTN_CP1 MOE_DP0 TP3 EP12] ", "DP1 PP0 ATTN_CP1 MOE_DP0 TP3 EP12", 0.0),
        ("[2026-03-04 10:00:00.250 TP0] ", "TP0", 0.25),
    ],
    ids=["the main process", "every kind of rank", "milliseconds"],
)
def test_prefixes_give_rank_and_time(prefix, rank, seconds):
    """Ranks are kept as they are written; milliseconds count where they are printed."""
    event = one("Memory pool end. avail mem=1.00 GB", prefix)
    assert (event.rank, event.at) == (rank, datetime(2026, 3, 4, 10, tzinfo=UTC).timestamp() + seconds)


NOT_EVENTS = {
    "a prompt that speaks like the engine": (
        "[2026-03-04 10:00:00] Receive: obj=GenerateReqInput(text='[2026-03-04 10:00:00 TP0] Load weight begin. x')"
    ),
    "a prompt with a progress bar in it": (
        "[2026-03-04 10:00:00] Receive: text='shards: 50% 1/2 [a]' [2026-03-04 10:00:00 TP0] Load weight begin. x"
    ),
    "a prompt with a raw carriage return": (
        "[2026-03-04 10:00:00] Receive: text='\rshards: 50% 1/2 [a][2026-03-04 10:00:00 TP0] Load weight begin. x"
    ),
    "no prefix": "Load weight begin. avail mem=1.00 GB",
    "a health probe": '[2026-03-04 10:00:00] INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
    "a failed request": '[2026-03-04 10:00:00] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 503 Unavailable',
    "an answer that generates nothing": '[2026-03-04 10:00:00] INFO:     127.0.0.1:1 - "POST /flush HTTP/1.1" 200 OK',
    "a hot reload": "[2026-03-04 10:00:00 TP0] Update engine weights online from disk begin. avail mem=1.00 GB",
    "a decode report": "[2026-03-04 10:00:00 TP0] Decode batch, #running-req: 1, #token: 5, token usage: 0.01",
}


@pytest.mark.parametrize("line", NOT_EVENTS.values(), ids=NOT_EVENTS)
def test_what_is_no_start_up_line_costs_nothing(line):
    """Text counts only behind the line's own prefix; other lines give no event and no complaint."""
    found = read_start_lines((line + "\n").encode())
    assert (found.events, found.unknown) == ([], 0)


UNKNOWN = {
    "a pool without a size": ("[2026-03-04 10:00:00 TP0] KV Cache is elsewhere.", 1),
    "timings without numbers": ("[2026-03-04 10:00:00] Engine startup timings: see the trace", 1),
    "a state cache in new words": ("[2026-03-04 10:00:00 TP0] Mamba Cache is allocated. slots: 4", 1),
    "a date that is none": ("[2026-13-44 10:00:00 TP0] Load weight begin. avail mem=1.00 GB", 1),
}


@pytest.mark.parametrize(("line", "count"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_shape_costs_nothing_but_its_number(line, count):
    """A line that begins in a known way and goes on in an unknown one is counted, the lines around it are read."""
    known = "[2026-03-04 10:00:01 TP0] Memory pool end. avail mem=1.00 GB\n"
    found = read_start_lines((known + line + "\n" + known).encode())
    assert (len(found.events), found.unknown) == (2, count)


def test_numbers_beyond_any_machine_are_unknown():
    """A figure that no device and no clock can have is None, its line still marks."""
    event = one(f"Load weight end. elapsed={'9' * 12} s, type=X, avail mem={'9' * 12} GB, mem usage={'9' * 12} GB.")
    assert (event.mark, event.seconds, event.size_bytes, event.free_bytes) == (Mark.LOAD_END, None, None, None)


def test_a_progress_bar_on_the_same_line_does_not_hide_a_mark():
    """A bar that another process had not ended stands before the prefix; the line counts all the same."""
    bar = "\rMulti-thread loading shards:  50% Completed | 2/4 [00:01<00:01,  1.61it/s]"
    data = f"{bar}{bar}[2026-03-04 10:00:00 TP1] Load weight begin. avail mem=1.00 GB\n"
    assert [event.mark for event in read_start_lines(data.encode()).events] == [Mark.LOAD_BEGIN]


def test_a_line_of_megabytes_is_passed_over():
    """A logged request of 8 MB that is full of closing brackets gives nothing and hides nothing."""
    request = b"[2026-03-04 10:00:00] Receive: obj=" + b"] Load weight begin [" * 400_000 + b"\n"
    line = b"[2026-03-04 10:00:01 TP0] Load weight begin. avail mem=1.00 GB\n"
    found = read_start_lines(request + line + request)
    assert (len(found.events), found.unknown) == (1, 0)


def test_of_a_start_only_the_first_answer_is_given():
    """Traffic does not become events; a second start in the same chunk asks again."""
    answer = b'[2026-03-04 10:00:00] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK\n'
    launch = b"[2026-03-04 10:00:00] server_args=ServerArgs()\n"
    marks = [event.mark for event in read_start_lines(launch + answer * 50 + launch + answer * 50).events]
    assert marks == [Mark.LAUNCH, Mark.ANSWERED, Mark.LAUNCH, Mark.ANSWERED]
    assert [event.mark for event in read_start_lines(launch + answer, answers=False).events] == [Mark.LAUNCH]


def test_a_chunk_may_end_after_any_line():
    """The events are the same wherever the log is cut between two lines."""
    data = HANDFILLED.read_bytes()
    whole = read_start_lines(data).events
    assert len(whole) == 24
    for cut in re.finditer(rb"\n", data):
        parts = (data[: cut.end()], data[cut.end() :])
        assert [event for part in parts for event in read_start_lines(part).events] == whole


@pytest.mark.parametrize("name", ["0.5.18", "0.5.23"])
def test_captured_pool_lines_are_read(name):
    """Lines that the engine's own pools printed are all known."""
    data = (CAPTURED / name / f"log_v{name}_kv_pool_lines_executed.log").read_bytes()
    found = read_start_lines(data)
    assert (len(found.events), found.unknown) == (data.count(b"\n"), 0)
    assert found.events[0].size_bytes == pytest.approx(1.12 * GIB)


@pytest.mark.parametrize("path", sorted(CAPTURED.glob("*/*batch_lines.log")), ids=lambda path: path.name)
def test_logs_of_serving_hold_no_start(path):
    """Decode and prefill reports are no start-up lines."""
    assert read_start_lines(path.read_bytes()).events == []


# Phases of /metrics ----------------------------------------------------------------------------------------------


def test_a_phase_of_zero_was_not_measured():
    """Before 0.5.18 the load stands at 0.0: the start took 221 s and how long the weights took is not known."""
    phases = read_phases((STARTS / "phases_before_0.5.18.prom").read_bytes())
    assert (phases.engine, phases.load, phases.rest, phases.hot_reload) == (221.0, None, None, None)


def test_phases_by_label_leave_a_rest_and_keep_the_hot_reload_apart():
    """Load 140 s and graphs 35 s of 221 s leave 46 s; the reload's 12 s are no part of any."""
    phases = read_phases((STARTS / "phases_by_label.prom").read_bytes())
    assert (phases.load, phases.captured(StageArtifact.BOTH), phases.engine) == (140.0, 35.0, 221.0)
    assert (phases.rest, phases.hot_reload) == (46.0, 12.0)


def test_captured_phases_split_graphs_by_model():
    """Graph phases tell target from drafter; a phase at 0.0 is absent."""
    phases = read_phases((CAPTURED / "0.5.23" / "metrics_v0.5.23_dspark_tp2.busy.prom").read_bytes())
    assert (phases.load, phases.kv_alloc, phases.scheduler, phases.engine) == (35.29, 1.73, 89.4, 97.9)
    assert (phases.captured(TARGET), phases.captured(DRAFTER)) == (21.7, 5.9)
    assert set(phases.graphs) == {"target_verify", "draft_decode"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300"])
def test_a_phase_that_is_no_duration_is_unknown(value):
    """Values that are no seconds are not measured."""
    phases = read_phases(f'sglang_startup_time_seconds{{phase="load_weight"}} {value}\n'.encode())
    assert phases is None


def test_a_body_without_phases_gives_none():
    """Nothing of a start is None, not zeros."""
    assert read_phases(b"sglang:num_running_reqs 3\n") is None


# The stand-in's own starts ---------------------------------------------------------------------------------------

FINISHING = [
    name for name, s in SCENARIOS.items() if math.isfinite(s.start_up.until_http) and s.start_up.until_http < 600
]


def stand_in(name: str) -> tuple[Process, bytes]:
    """One start of a scenario in virtual time at speed 1, and its log."""
    lines: list[tuple[float, str, str]] = []
    scenario = SCENARIOS[name]
    process = Process(
        Deployment(scenario=scenario, folder=Path("/srv/stand-in"), host="127.0.0.1", port=30000),
        seed=3,
        life=0,
        speed=1.0,
        requests_per_second=scenario.requests_per_second,
        started=1_795_968_000.37,
        first_ready=None,
        log=lambda when, text, prefix: lines.append((when, prefix, text)),
        ended=lambda request: None,
    )
    moment = process.started
    while process.ready_at is None or moment < process.ready_at + 5:
        moment += 0.25
        process.advance(moment)
    text = "".join(f"[{datetime.fromtimestamp(int(w), UTC):%Y-%m-%d %H:%M:%S}{p}] {t}\n" for w, p, t in lines)
    return process, text.encode()


@pytest.mark.parametrize("name", FINISHING)
def test_the_stand_ins_start_reads_as_planned(name):
    """Stated durations agree to the hundredth, moments to the second that the log is cut to."""
    process, data = stand_in(name)
    found = read_start_lines(data)
    assert found.unknown == 0
    last = next(place for place, event in enumerate(found.events) if event.mark is Mark.FIRED_UP)
    start = read_start_up(found.events[: last + 1])
    stages = process.deployment.scenario.start_up
    captures = [
        (Stage.GRAPH_CAPTURE, TARGET, stages.graphs_target),
        (Stage.GRAPH_CAPTURE, DRAFTER, stages.graphs_drafter),
    ]
    for stage, artifact, seconds in (
        (Stage.LOAD, TARGET, stages.load_target),
        (Stage.LOAD, DRAFTER, stages.load_drafter),
        *(captures if b"CUDA graph" in data else ()),
    ):
        # what is done in several pieces is a sum of hundredths
        assert start.stage(stage, artifact).seconds == pytest.approx(seconds, abs=0.031), (stage, artifact)
    if b"CUDA graph" not in data:
        assert all(start.stage(stage, artifact) is None for stage, artifact, _ in captures)
    begins = stages.imports, stages.imports + stages.load_target
    assert start.stage(Stage.LOAD, TARGET).offset == pytest.approx(begins[0], abs=1.0)
    assert start.stage(Stage.LOAD, DRAFTER).offset == pytest.approx(begins[1], abs=1.0)
    assert start.stage(Stage.POST_LOAD).seconds == pytest.approx(stages.pools, abs=1.0)
    assert start.stage(Stage.WARMUP).offset == pytest.approx(process.plan.http_up, abs=1.0)
    assert start.ready_seconds == pytest.approx(process.ready_at - process.started, abs=1.0)
    assert start.cold_start_seconds == pytest.approx(process.first_generation_at - process.started, abs=1.0)
    assert start.cold_start_seconds <= start.ready_seconds
    assert start.phases.engine == pytest.approx(process.plan.timings["tokenizer_e2e"], abs=0.0051)
    prefetches = process.deployment.server_args(0)["weight_loader_prefetch_checkpoints"]
    mode = StagingMode.PREFETCH if prefetches else StagingMode.SERIAL
    assert (start.overlap_ratio, start.order, start.mode) == (0.0, (TARGET, DRAFTER), mode)
    assert start.clock_steps == 0
    memories = by_data_rank(start.memory)
    assert set(memories) == {str(rank) for rank in range(process.deployment.scenario.data_parallel)}
    for memory in memories.values():
        sizes = process.sizes
        for got, size in (
            (memory.target_weights, sizes.target_weights),
            (memory.drafter_weights, sizes.drafter_weights + sizes.drafter_copies),
            (memory.target_kv, sizes.target_kv),
            (memory.drafter_kv, sizes.drafter_kv),
            (memory.target_state, sizes.conv_state + sizes.ssm_state),
            *([(memory.verify_state, sizes.conv_windows)] if process.deployment.verifies else ()),
        ):
            assert got == pytest.approx(size, abs=0.011 * GIB)
        assert (memory.verify_state is None) is not process.deployment.verifies
