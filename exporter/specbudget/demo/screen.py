"""The live one-screen summary, with rich on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from specbudget.catalog import series
from specbudget.demo.readings import LineRow, Reading, fetch, line_rows
from specbudget.demo.reasons import Reason, fetch_status, reasons
from specbudget.demo.tree import Tree
from specbudget.demo.wording import budget_text, legend, sentence, timeline
from specbudget.words import bar

REFRESH_SECONDS = 1.0
PLAIN_SECONDS = 5.0
TRACE_CELLS = 60
STYLES = {"ok": "green", "at_risk": "yellow", "breach": "bold red", "unknown": "dim"}
_LEVELS = "▁▂▃▄▅▆▇█"


def watch_live(console: Console, tree: Tree, scenario: str) -> None:
    """Refreshes one screen until interrupted; raises DemoError when a process ends."""
    trace: deque[float | None] = deque(maxlen=TRACE_CELLS)
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            tree.check()
            reading = fetch(tree.sidecar_url)
            if reading is not None:
                trace.append(reading.value(series.ROLLING_ACCEPTANCE_LENGTH, scope="request", window="1m"))
            live.update(screen(tree, scenario, reading, list(trace)), refresh=True)
            time.sleep(REFRESH_SECONDS)


def watch_plain(tree: Tree, scenario: str) -> None:
    """Prints flushed lines until interrupted; raises DemoError when a process ends."""
    print(f"scenario {scenario}  engine {tree.engine_url}  sidecar {tree.sidecar_url}/metrics", flush=True)
    print(f"folder {tree.folder}", flush=True)
    told: dict[str, Reason] = {}
    while True:
        tree.check()
        reading = fetch(tree.sidecar_url)
        if reading is not None:
            states = "  ".join(f"{row.line.id} {row.state}" for row in line_rows(reading))
            print(f"{time.strftime('%H:%M:%S')}  {states}  | {_requests(reading)}", flush=True)
            told = _print_reasons(told, tree.sidecar_url)
        time.sleep(PLAIN_SECONDS if reading is not None else REFRESH_SECONDS)


def _print_reasons(told: dict[str, Reason], url: str) -> dict[str, Reason]:
    """Says of each line that is not ok why, once until it is for something else; returns what was said so far."""
    status = fetch_status(url)
    if status is None:
        return told
    now = {reason.line: reason for reason in reasons(status)}
    for line, reason in now.items():
        before = told.get(line)
        if before is None or (before.state, before.subject) != (reason.state, reason.subject):
            print(f"          {line} {reason.state}: {reason.text}", flush=True)
    return now


def screen(tree: Tree, scenario: str, reading: Reading | None, trace: list[float | None]) -> RenderableType:
    """One screenful: addresses, the five lines, the acceptance trace; `trace` is a length per second, newest last."""
    head = Text.assemble(
        ("specbudget demo", "bold"),
        f"  scenario {scenario}\nengine  {tree.engine_url}\nsidecar {tree.sidecar_url}/metrics\nfolder  {tree.folder}",
    )
    if reading is None:
        return Group(head, Text("waiting for the sidecar", "dim"))
    rows: list[RenderableType] = []
    for row in line_rows(reading):
        rows.extend(_line(row, reading))
    return Group(
        head,
        Text(),
        *rows,
        Text(),
        *_start_up(reading),
        _trace(reading, trace),
        Text(_requests(reading)),
        Text("Ctrl-C ends it", "dim"),
    )


def _start_up(reading: Reading) -> list[RenderableType]:
    """The latest start as a timeline by artifact."""
    rows = timeline(reading)
    if not rows:
        return []
    total = reading.largest(series.COLD_START)
    taken = "" if total is None else f", {total:.1f} s"
    head = Text(f"start-up{taken}: {legend()}", "dim")
    return [head, *(Text.assemble((f"{artifact:>27}  ", "dim"), (cells, "magenta")) for artifact, cells in rows)]


def _line(row: LineRow, reading: Reading) -> list[RenderableType]:
    """A line's state, bar and tightest budget, and below it the sentence that people want first."""
    style, tight = STYLES.get(row.state, ""), row.tightest
    ratio = None if tight is None else tight.ratio
    first = Text.assemble(
        (f"{row.line.title:<12}", "bold"),
        (f"{row.state.replace('_', ' '):<9}", style),
        f"{'' if ratio is None else f'{ratio:.0%}':>5} ",
        (bar(ratio), style),
        f"  {budget_text(tight)}",
    )
    return [first, Padding(Text(sentence(row, reading), "dim"), (0, 0, 0, 12))]


def _trace(reading: Reading, trace: list[float | None]) -> Text:
    """The last minute's acceptance length, second by second, from 1 to the verify window."""
    top = reading.largest(series.ACCEPTANCE_WINDOW) or 8.0
    cells = "".join(
        " " if value is None else _LEVELS[min(7, max(0, int((value - 1.0) / max(top - 1.0, 1.0) * 8)))]
        for value in trace
    )
    return Text.assemble(("acceptance length, 1 to ", "dim"), (f"{top:.0f}  ", "dim"), (cells, "cyan"))


def _requests(reading: Reading) -> str:
    """Traffic and events in one line."""
    events = reading.all(series.SLO_EVENTS)
    good = sum(value for key, value in events.items() if ("verdict", "good") in key)
    bad = sum(value for key, value in events.items() if ("verdict", "bad") in key)
    records = reading.value(series.RECORDS, source="request_log", outcome="ok")
    return (
        f"requests {records or 0:,.0f}: {good:,.0f} good, {bad:,.0f} bad, "
        f"{reading.total(series.SLO_EXCLUDED):,.0f} left out; "
        f"verify steps {reading.total(series.VERIFY_STEPS):,.0f}; "
        f"running {reading.largest(series.ENGINE_RUNNING) or 0:.0f}"
    )
