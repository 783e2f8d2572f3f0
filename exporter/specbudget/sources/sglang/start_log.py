"""SGLang's server log as events of a start-up, one per line that marks something.

Every process of the engine writes `[time ranks] text`; ranks stand only where there is more than one, and the main
process has none. A line counts only where the text follows the line's own prefix: prompts that the engine may log
are never looked into. A progress bar that was not ended may stand before a prefix on the same line.

Lines and their order: http_server.py, engine.py, scheduler.py, model_runner.py, memory_pool.py,
kv_cache_configurator.py, kv_pool_runtime.py, cuda_graph_setup.py, eagle_worker_v2.py, startup_weight_load.py,
weight_utils.py of SGLang 0.5.18 and 0.5.23, and the shapes of older ones (no elapsed time, other separators).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from specbudget.domain.start_events import Mark, StartEvent
from specbudget.sources.sglang.server_log import PREFIX
from specbudget.sources.sglang.start_lines import MARKERS, read_line

MAX_PREFIX_BYTES = 128
MAX_LINE_BYTES = 1 << 18
"""Of a line so much is read: arguments are some ten thousand bytes, everything else is short."""

MAX_BAR_BYTES = 4096
_BEFORE = re.compile(
    rb"[\r ]*+|(?!\[)(?:[^\r\n]*\r)*+ {0,8}[A-Za-z][A-Za-z0-9 _.-]{0,80}:\s{0,4}\d{1,3}%[^\r\n]*[\]|] *"
)
"""What may stand before a log line that is not at the beginning of its own: a progress bar of tqdm, with its
refreshes after carriage returns and no end of line."""

_ANSWER = rb'INFO:[ ]{1,8}[0-9a-fA-F.:\[\]]{0,50} - "POST '


def _search(*texts: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"\] (?=" + rb"|".join(texts) + rb")")


_MARKED = _search(*(marker.begins for marker in MARKERS))
_MARKED_OR_ANSWERED = _search(*(marker.begins for marker in MARKERS), _ANSWER)
_ANEW = (Mark.LAUNCH, Mark.LOAD_BEGIN)


@dataclass(slots=True)
class StartLines:
    """The events of a chunk in its order, and how many lines have a known beginning but no readable rest."""

    events: list[StartEvent] = field(default_factory=list)
    unknown: int = 0


def read_start_lines(data: bytes, *, answers: bool = True) -> StartLines:
    """Reads complete lines. `answers`: also the first generating request of a start that was answered with success.

    An engine under traffic logs every answer, so that nobody should ask for them once the first one is known.
    """
    found = StartLines()
    search, stop = (_MARKED_OR_ANSWERED if answers else _MARKED).search, len(data)
    place = 0
    while (mark := search(data, place, stop)) is not None:
        place = mark.end()
        prefix = _own_prefix(data, place)
        if prefix is None and place - data.rfind(b"\n", 0, place) <= MAX_BAR_BYTES + MAX_PREFIX_BYTES:
            continue
        end = data.find(b"\n", place)
        end = stop if end < 0 else end
        if prefix is None:
            # so far into a line no prefix can be its own any more
            place = end
            continue
        event = read_line(data[place : min(end, place + MAX_LINE_BYTES)].rstrip(b"\r"), prefix)
        if event is not None:
            found.events.append(event)
            if event.mark is Mark.ANSWERED:
                search = _MARKED.search
            elif event.mark in _ANEW and answers:
                search = _MARKED_OR_ANSWERED.search
        elif not data.startswith(b"INFO:", place):
            found.unknown += 1
        place = end
    return found


def _own_prefix(data: bytes, place: int) -> re.Match[bytes] | None:
    """The prefix that ends at `place`, if it begins the line or follows a progress bar; None otherwise."""
    opened = data.rfind(b"[", max(0, place - MAX_PREFIX_BYTES), place)
    prefix = PREFIX.match(data, opened, place) if opened >= 0 else None
    if prefix is None or prefix.end() != place:
        return None
    start = data.rfind(b"\n", max(0, opened - MAX_BAR_BYTES), opened) + 1
    if opened == start:
        return prefix
    if not start and opened > MAX_BAR_BYTES:
        return None
    return prefix if _BEFORE.fullmatch(data, start, opened) is not None else None
