"""The wording of SGLang's start-up lines: how each begins, and what of it is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from specbudget.domain.stages import StageArtifact
from specbudget.domain.start_events import OVERLAPS, POOL_TOKENS, PREFETCHES, SKIPS_WARMUP, Mark, StartEvent

GIB = 1 << 30
"""SGLang prints GiB and calls it GB."""

MAX_GIB = 1e6
MAX_SECONDS = 1e7
"""More memory in one device, or longer in one stage, than there is."""

_NUMBER = rb"([0-9]{1,12}(?:\.[0-9]{1,6})?+)"
_ELAPSED = re.compile(rb"(?:elapsed(?:=|: )|finished in |graph capture in )" + _NUMBER + rb" ?s")
_FREE = re.compile(rb"(?:avail mem|available_[a-z]{1,8}_mem)=" + _NUMBER + rb" ?GB")
_USED = re.compile(rb"mem usage=" + _NUMBER + rb" ?GB")
_MODEL = re.compile(rb"(?:type|model)=([A-Za-z_][A-Za-z0-9_]{0,99})\b")
_SIZE = re.compile(rb"([A-Za-z_]{1,40}) size: " + _NUMBER + rb" ?GB")
_RING_PART = re.compile(rb"\b[a-z]{1,8}=" + _NUMBER + rb"GB")
_TOKENS = re.compile(rb"max_total_num_tokens=(\d{1,12})\b")
_TIMING = re.compile(rb"([a-z][a-z0-9_]{0,40})=" + _NUMBER)
_DRAFT_MODEL = re.compile(r"NextN|MTP|D[Ss]park|DFlash|Draft|^Eagle3|Eagle3?$|EagleModel$")
"""Names of drafters' classes, for logs that lost the lines before."""

_KV = re.compile(rb"((?:[A-Za-z0-9][A-Za-z0-9_.-]{0,20} ){0,6}?)KV Cache (is allocated|VA upper bound|skipped)")
_CAPTURE = re.compile(rb"Capture ((?:[A-Za-z-]{1,20} ){0,6}?)[A-Za-z]{2,8} graph (begin|end)\.")
_PREFETCH = re.compile(rb"Rank \d{1,6}: prefetching (?:(\d{1,7})/\d{1,7} checkpoint shards|checkpoint files(:| into))")
_HTTP_UP = re.compile(rb"INFO:[ ]{1,8}(?:Application startup complete|Uvicorn running on )")
_ANSWERED = re.compile(
    rb'INFO:[ ]{1,8}[0-9a-fA-F.:\[\]]{0,50} - "POST '
    rb"/(?:generate|encode|invocations|v1/(?:chat/completions|completions|responses|messages|embeddings|systemone))"
    rb'(?:\?\S{0,200})? HTTP/[0-9.]{1,4}" 200\b'
)
_ARGUMENTS = {
    SKIPS_WARMUP: re.compile(rb"\bskip_server_warmup'?[=:] ?(True|False)\b"),
    PREFETCHES: re.compile(rb"\bweight_loader_prefetch_checkpoints'?[=:] ?(True|False)\b"),
    OVERLAPS: re.compile(rb"\bstartup_weight_load_mode'?[=:] ?'(overlap|serial)'"),
}

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Marker:
    """`begins` is an expression for the beginning of the text; `read` gives the event's fields, None if unreadable."""

    begins: bytes
    read: Callable[[bytes], Fields | None]


def read_line(text: bytes, prefix: re.Match[bytes]) -> StartEvent | None:
    """The event of a line's text behind its prefix; None for a shape that is not known."""
    at = _wall_seconds(prefix)
    if at is None:
        return None
    for expression, read in _READERS:
        if expression.match(text):
            fields = read(text)
            return None if fields is None else StartEvent(at=at, rank=prefix[2].decode().strip(), **fields)
    return None


def _wall_seconds(prefix: re.Match[bytes]) -> float | None:
    """The wall time as if it were UTC; None for a date that is none."""
    stamp = prefix[0][1 : prefix.start(2) - prefix.start()].decode()
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _number(expression: re.Pattern[bytes], text: bytes, limit: float) -> float | None:
    found = expression.search(text)
    value = None if found is None else float(found[1])
    return value if value is not None and value <= limit else None


def _gib(value: float | None) -> float | None:
    """Bytes; None for less than the line can print, and for no line."""
    return value * GIB if value is not None and 0 < value <= MAX_GIB else None


def _free(text: bytes) -> float | None:
    return _gib(_number(_FREE, text, MAX_GIB))


def _mark(mark: Mark) -> Callable[[bytes], Fields | None]:
    return lambda text: {"mark": mark}


def _launch(text: bytes) -> Fields:
    figures = {}
    for name, expression in _ARGUMENTS.items():
        given = expression.search(text)
        if given is not None:
            figures[name] = 1.0 if given[1] in (b"True", b"overlap") else 0.0
    return {"mark": Mark.LAUNCH, "figures": figures}


def _load(text: bytes) -> Fields | None:
    if text.startswith(b"Load weight begin"):
        return {"mark": Mark.LOAD_BEGIN, "free_bytes": _free(text)}
    if b"Committed real weights" in text[:60]:
        # what it states is the commit alone, and the load began before the capture
        return {"mark": Mark.LOAD_END}
    model = _MODEL.search(text)
    name = None if model is None else model[1].decode()
    return {
        "mark": Mark.LOAD_END,
        "seconds": _number(_ELAPSED, text, MAX_SECONDS),
        "model": name,
        "role": StageArtifact.DRAFTER if name is not None and _DRAFT_MODEL.search(name) else None,
        "size_bytes": _gib(_number(_USED, text, MAX_GIB)),
        "free_bytes": _free(text),
    }


def _sizes(text: bytes) -> dict[bytes, float]:
    return {name: float(size) for name, size in _SIZE.findall(text[:2000]) if float(size) <= MAX_GIB}


def _kv_pool(text: bytes) -> Fields | None:
    shape = _KV.match(text)
    if shape is None:
        return None
    label, kind = shape[1].decode().strip(), shape[2]
    size = _kv_size(text) if kind == b"is allocated" else None
    return {"mark": Mark.KV_POOL, "label": label, "size_bytes": size}


def _kv_size(text: bytes) -> float | None:
    sizes = _sizes(text)
    whole = sizes.get(b"KV")
    if whole is None and b"K" in sizes and b"V" in sizes:
        whole = sizes[b"K"] + sizes[b"V"]
    return _gib(whole)


def _state_pool(text: bytes) -> Fields | None:
    sizes = _sizes(text)
    if b"conv_state" not in sizes and b"ssm_state" not in sizes:
        return None
    copies = [
        sizes[name] for name in (b"intermediate_ssm_state_cache", b"intermediate_conv_window_cache") if name in sizes
    ]
    return {
        "mark": Mark.STATE_POOL,
        "size_bytes": (sizes.get(b"conv_state", 0.0) + sizes.get(b"ssm_state", 0.0)) * GIB,
        "verify_bytes": sum(copies) * GIB if copies else None,
    }


def _replay_ring(text: bytes) -> Fields | None:
    """Inputs of past steps, from which a verify step's state is made again instead of being kept."""
    parts = [float(size) for size in _RING_PART.findall(text[:1000])]
    return {"mark": Mark.STATE_POOL, "verify_bytes": sum(parts) * GIB} if parts else None


def _resized(text: bytes) -> Fields | None:
    size = _kv_size(text)
    if size is None:
        return None
    drafted = text.startswith(b"Post-capture KV sizing: draft ")
    role = StageArtifact.DRAFTER if drafted else StageArtifact.TARGET
    return {"mark": Mark.KV_RESIZED, "role": role, "size_bytes": size, "free_bytes": _free(text)}


def _capture(text: bytes) -> Fields | None:
    shape = _CAPTURE.match(text)
    if shape is None:
        return None
    label = shape[1].decode().strip()
    role = StageArtifact.DRAFTER if "draft" in label.split() else StageArtifact.TARGET
    if shape[2] == b"begin":
        return {"mark": Mark.CAPTURE_BEGIN, "label": label, "role": role, "free_bytes": _free(text)}
    return {
        "mark": Mark.CAPTURE_END,
        "label": label,
        "role": role,
        "seconds": _number(_ELAPSED, text, MAX_SECONDS),
        "size_bytes": _gib(_number(_USED, text, MAX_GIB)),
        "free_bytes": _free(text),
    }


def _prefetch(text: bytes) -> Fields | None:
    shape = _PREFETCH.match(text)
    if shape is None:
        return None
    if shape[1] is not None:
        return {"mark": Mark.PREFETCH_BEGIN}
    if shape[2] == b":":
        return {"mark": Mark.PREFETCH_PROGRESS}
    return {"mark": Mark.PREFETCH_END, "seconds": _number(_ELAPSED, text, MAX_SECONDS)}


def _draft_runner(text: bytes) -> Fields:
    model = _MODEL.search(text)
    return {"mark": Mark.DRAFT_RUNNER, "model": None if model is None else model[1].decode()}


def _timings(text: bytes) -> Fields | None:
    head, _, rest = text.partition(b"cuda_graph={")
    graphs, _, tail = rest.partition(b"}")
    figures = {
        name.decode(): float(value) for name, value in _TIMING.findall(head[:1000]) + _TIMING.findall(tail[:1000])
    }
    figures |= {f"graph/{name.decode()}": float(value) for name, value in _TIMING.findall(graphs[:1000])}
    return {"mark": Mark.TIMINGS, "figures": figures} if figures else None


def _with_free(mark: Mark) -> Callable[[bytes], Fields | None]:
    return lambda text: {"mark": mark, "free_bytes": _free(text)}


def _capacity(text: bytes) -> Fields | None:
    tokens = _TOKENS.match(text)
    figures = {} if tokens is None else {POOL_TOKENS: float(tokens[1])}
    return {"mark": Mark.CAPACITY, "free_bytes": _free(text), "figures": figures}


MARKERS = (
    Marker(rb"server_args=", _launch),
    Marker(rb"Load weight (?:begin|end)\b", _load),
    Marker(rb"(?:Prepared capture-safe model|Started checkpoint prefetching) ", _mark(Mark.DEFERRED_LOAD)),
    Marker(rb"Rank \d{1,6}: prefetching ", _prefetch),
    Marker(rb"(?:Full |SWA |MiniMax [A-Za-z0-9_ .-]{1,60}?)?KV Cache (?:is|VA|skipped)", _kv_pool),
    Marker(rb"Mamba Cache is allocated", _state_pool),
    Marker(rb"GDN ReplaySSM ring buffers allocated", _replay_ring),
    Marker(rb"Memory pool end", _with_free(Mark.POOLS_END)),
    Marker(rb"Post-capture KV sizing: (?:draft )?KV cache allocated", _resized),
    Marker(rb"Capture (?=[^.\n]{0,80} ?graph (?:begin|end)\.)", _capture),
    Marker(rb"Initialized (?:DFLASH|DSpark) draft runner", _draft_runner),
    Marker(rb"max_total_num_tokens=", _capacity),
    Marker(rb"Engine startup timings", _timings),
    Marker(_HTTP_UP.pattern, _mark(Mark.HTTP_UP)),
    Marker(rb"End of (?:pd )?disaggregation warmup", _mark(Mark.ANSWERED)),
    Marker(rb"The server is fired up and ready to roll!", _mark(Mark.FIRED_UP)),
    Marker(rb"Initialization failed\. ", _mark(Mark.FAILED)),
    Marker(rb"Received sigquit from a child process", _mark(Mark.FAILED)),
    Marker(rb"Scheduler hit an exception", _mark(Mark.FAILED)),
    Marker(rb"Subprocess \S{1,60} \(pid=\d{1,10}\) crashed", _mark(Mark.FAILED)),
)
"""Everything that is looked for, in the order in which it is tried."""

_READERS = (
    *((re.compile(marker.begins), marker.read) for marker in MARKERS),
    (_ANSWERED, _mark(Mark.ANSWERED)),
)
