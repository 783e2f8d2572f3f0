"""The queries that may give nothing: in which recorded scenarios, and why. All others must give something in each."""

from __future__ import annotations

from e2e.scenario_rows import ROWS
from generate.recorded_prometheus import SCENARIOS
from specbudget.catalog.lines import CODESIGN

QUIET = (*(scenario for scenario in SCENARIOS if not ROWS[scenario].alerts), "over-strong")
"""Nothing fires; of too long a window it is told after days."""

FITTING = tuple(scenario for scenario in SCENARIOS if CODESIGN.id not in ROWS[scenario].lines)
NO_STEPS = ("pd-prefill", "speculation-off", "stuck-start")
NO_EVENTS = ("pd-prefill", "stuck-start")
NOT_JUDGED = (*NO_STEPS, "pair-unfit")
UNREAD = ("sidecar-blind", "stuck-start")
NO_ENGINE = ("stuck-start",)

SILENT: tuple[tuple[tuple[str, ...], str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        SCENARIOS,
        "the engine itself was not scraped, and the recording is shorter than the hour of the change",
        (("acceptance", "Time per output token", "BC"), ("overview", "Ledger of the five lines", "B")),
    ),
    (
        SCENARIOS,
        "no reading failed; of what has no length there is no bar",
        (
            ("overview", "Unknown or down", "A"),
            ("overview", "Replicas", "H"),
            ("overview", "Errors of readings in this time range", "A"),
            ("startup", "The latest start, stage by stage", "D"),
        ),
    ),
    (QUIET, "no alert fires", (("overview", "Firing alerts", "A"), ("memory", "Alerts that fired", "A"))),
    (FITTING, "every rule that could be judged passes", (("overview", "Rules that do not pass", "A"),)),
    (("pair-unfit",), "an unfit pair is never approved", (("overview", "Plans to make again", "A"),)),
    (
        ("idle", "frozen", *NO_STEPS),
        "no verify step within five minutes",
        (("overview", "Replicas", "C"),),
    ),
    (
        ("idle", *NO_STEPS),
        "no verify step in the range",
        (("acceptance", "Drafts accepted, by position", "A"),),
    ),
    (
        NO_STEPS,
        "no verify step is counted after the first scrape",
        (
            ("overview", "Acceptance length", "A"),
            ("acceptance", "Length over 5m", "A"),
            ("acceptance", "Error budget of 28d", "A"),
            ("acceptance", "Acceptance length against target and break-even", "A"),
            ("acceptance", "Length that requests reach", "ABC"),
            ("acceptance", "Acceptance rate", "A"),
            ("acceptance", "Length by profile", "A"),
            ("acceptance", "Length by replica", "AB"),
            ("acceptance", "Length and window by rank", "AB"),
        ),
    ),
    (
        NO_EVENTS,
        "no verify step was ever made",
        (
            ("acceptance", "Acceptance length against target and break-even", "BC"),
            ("acceptance", "Length by profile", "B"),
            ("memory", "Device memory by use, over starts", "F"),
        ),
    ),
    (
        NOT_JUDGED,
        "no event may page: there is none, or the replica was bad since its start",
        (
            ("acceptance", "Fast burn: 1h and 5m", "AB"),
            ("acceptance", "Slow burn: 6h and 30m", "AB"),
            ("acceptance", "Burn of the tickets", "AB"),
        ),
    ),
    (
        ("pair-unfit",),
        "a replica that was bad since its start is held back",
        (("acceptance", "Traffic to page", "A"), ("acceptance", "Enough traffic to page", "AB")),
    ),
    (
        UNREAD,
        "the engine does not answer: what it has now is unknown",
        (
            ("overview", "The drafter takes", "A"),
            ("overview", "Replicas", "DEFI"),
            ("memory", "The drafter takes", "A"),
            ("memory", "Cost in target tokens", "A"),
            ("memory", "Target tokens", "A"),
            ("memory", "Device memory at engine start, by rank", "A"),
            ("memory", "The drafter's KV, per device", "ABCD"),
        ),
    ),
    (
        NO_ENGINE,
        "the engine never came up: nothing about it was ever known",
        (
            ("overview", "Acceptance length", "C"),
            ("overview", "KV pools in use", "A"),
            ("acceptance", "Acceptance length against target and break-even", "E"),
            ("acceptance", "Time per output token", "A"),
            ("acceptance", "Running and queued requests", "AB"),
            ("acceptance", "Lines of logs read", "A"),
            ("memory", "Fullest pool", "A"),
            ("memory", "Device memory by use, over starts", "ABCDEGHIJ"),
            ("memory", "Used ÷ capacity", "A"),
            ("memory", "Pools in bytes, per device", "ABC"),
            ("memory", "Running and queued requests", "AB"),
            ("memory", "Cost in target tokens, over starts", "AB"),
            ("memory", "Capacity of the target's pool, by rank", "A"),
            ("memory", "Weights in device memory", "A"),
            ("startup", "Overlap of the loads", "A"),
        ),
    ),
)
"""Scenarios, reason, and the queries: dashboard, panel, and the letters of its queries."""

UNMARKED = ("Replicas differ in a model", "Recheck due", "Pages", "Tickets")
"""Marks of what does not happen in most scenarios."""


def may_be_empty() -> dict[tuple[str, str, str], set[str]]:
    """The scenarios in which a query may give nothing, by dashboard, panel and letter."""
    found: dict[tuple[str, str, str], set[str]] = {
        (dashboard, name, "mark"): set(SCENARIOS)
        for dashboard in ("overview", "acceptance", "memory", "startup")
        for name in UNMARKED
    }
    for scenarios, _, queries in SILENT:
        for dashboard, panel, refs in queries:
            for ref in refs:
                found.setdefault((dashboard, panel, ref), set()).update(scenarios)
    return found
