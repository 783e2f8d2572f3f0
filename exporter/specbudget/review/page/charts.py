"""The charts of a report: which tracks stand in which chart, in which form, and how to read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from specbudget.catalog.lines import ACCEPTANCE, KV
from specbudget.domain.acceptance import Floats
from specbudget.review.model import Review
from specbudget.review.page.marks import overlay
from specbudget.review.page.memory_charts import memory_charts
from specbudget.review.page.parts import Chart, Line
from specbudget.review.page.thinned import MOST_POINTS, Thinned, known, thinned

MOST_VALUES = 380_000
"""Values in one report, of up to eleven signs each."""

NEXT = {KV.id: "memory", ACCEPTANCE.id: "acceptance"}
"""The section that answers the next question of a line's finding; it stands before the others."""

MOST_LINES = 8
"""As many as there are colours that are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Charts that answer one question."""

    id: str
    title: str
    charts: tuple[Chart, ...]


def scale(review: Review) -> Thinned:
    """The points that are drawn: fewer where there are many lines, so that the file stays small."""
    lines = sum(len(chart.lines) for section in sections(review, thinned(review.axis, 2)) for chart in section.charts)
    return thinned(review.axis, min(MOST_POINTS, MOST_VALUES // max(1, lines)))


def sections(review: Review, thin: Thinned) -> tuple[Section, ...]:
    """The sections that have something to show, in the order in which a team asks.

    First the memory graph of the fullest rank with the acceptance length beside it: most incidents are seen there.
    """
    memory, acceptance = tuple(memory_charts(review, thin)), tuple(_acceptance(review, thin))
    first = (*memory[:1], *acceptance[:1])
    found = (
        Section(id="first", title="Memory, and acceptance beside it", charts=first),
        Section(id="traffic", title="Traffic", charts=tuple(_traffic(review, thin))),
        Section(id="acceptance", title="Acceptance in detail", charts=acceptance[1:]),
        Section(id="memory", title="KV pools and devices", charts=memory[1:]),
    )
    asked = NEXT.get(review.findings[0].line) if review.findings else None
    ordered = (found[0], *sorted(found[1:], key=lambda section: section.id != asked))
    return tuple(section for section in ordered if section.charts)


def configuration(review: Review, shown: tuple[Section, ...], thin: Thinned) -> dict[str, Any]:
    """Everything that the report's script needs, as JSON can hold it."""
    return {
        "times": thin.times,
        "from": review.start,
        "to": review.end,
        **overlay(review),
        "charts": {chart.id: chart.config() for section in shown for chart in section.charts},
    }


def _acceptance(review: Review, thin: Thinned) -> Iterator[Chart]:
    told = review.acceptance
    request = thin.length(told.accepted, told.steps, told.request_length)
    lines = [
        Line("request", "per request", request, colour=1),
        Line("batch", "per batch", thin.mean(told.batch_length), colour=4, dash=(2, 3)),
        Line("target", "target", thin.mean(told.target_length), colour="target", dash=(6, 4)),
        Line("break_even", "break-even", thin.mean(told.break_even), colour="limit", dash=(8, 3, 2, 3)),
        Line("expected", "expected of this mix", thin.mean(told.expected), colour=5, dash=(3, 3), shown=False),
        Line("window", "verify window", thin.mean(told.window), colour=7, dash=(1, 4), shown=False),
    ]
    yield from _chart(
        "acceptance",
        "Acceptance length",
        "Tokens per verify step. Above the target the promise is kept; below break-even one model would be faster.",
        "length",
        lines,
        low=1.0,
        marked=True,
    )
    profiles = sorted(told.profiles, key=lambda profile: -float(np.nansum(profile.steps)))
    if len(profiles) > 1:
        left_out = len(profiles) - MOST_LINES // 2
        rest = f" {left_out} profiles with fewer steps are left out." if left_out > 0 else ""
        each = []
        for place, profile in enumerate(profiles[: MOST_LINES // 2], 1):
            length = thin.length(profile.accepted, profile.steps, profile.length)
            each.append(Line(f"p{place}", profile.name, length, colour=place))
            wanted = thin.mean(profile.target_length)
            each.append(Line(f"t{place}", f"{profile.name}, target", wanted, colour=place, dash=(6, 4)))
        why = "A service whose length falls while no profile's does has another mix of traffic."
        yield from _chart("profiles", "Length by profile", why + rest, "length", each, low=1.0)
        share = _shares(thin, [profile.steps for profile in profiles[:MOST_LINES]])
        mix = [
            Line(f"s{place}", profile.name, one, colour=place, shape="area")
            for place, (profile, one) in enumerate(zip(profiles[:MOST_LINES], share, strict=True), 1)
        ]
        yield from _chart("mix", "Mix of traffic", "Each profile's share of verify steps.", "ratio", mix, stack=True)
    if told.positions:
        wanted_places = [place for place in (1, 2, 3, 4, 6, 8, 12, 16) if place in told.positions]
        places = [
            Line(f"d{place}", f"draft {place}", thin.mean(told.positions[place]), colour=colour)
            for colour, place in enumerate(wanted_places, 1)
        ]
        why = "The share of verify steps that accepted at least so many drafts. Late places fall first."
        yield from _chart("positions", "Drafts accepted, by position", why, "ratio", places, low=0.0)
    allowed = None if told.objective is None else 1 - told.objective
    bad = [
        Line("bad", "bad events", thin.mean(told.bad_share), colour=2),
        Line("allowed", "allowed", thin.mean(allowed), colour="limit", dash=(8, 3, 2, 3)),
    ]
    if known(told.bad_share):
        why = "The share of valid events that missed their target. Above what is allowed the error budget is spent."
        yield from _chart("bad", "Events that missed the target", why, "ratio", bad, low=0.0)
    spent = [Line("spent", "spent", thin.peak(told.budget_spent), colour=2)]
    why = "Since the start of this review, in multiples of what the objective allows for the events seen so far."
    yield from _chart("spent", "Error budget spent", why, "times", spent, low=0.0)


def _traffic(review: Review, thin: Thinned) -> Iterator[Chart]:
    told = review.traffic
    load = [
        Line("running", "running", thin.peak(told.running), colour=1),
        Line("queued", "queued", thin.peak(told.queued), colour=2, dash=(6, 3)),
    ]
    why = "Requests in the batch and waiting. Break-even grows with the batch."
    yield from _chart("load", "Running and queued requests", why, "count", load, low=0.0)
    speed = [Line("tokens", "tokens a second", thin.mean(told.tokens_per_second), colour=1)]
    yield from _chart("tokens", "Generated tokens a second", "Over all replicas.", "count", speed, low=0.0)
    ordered = sorted(told.requests.items(), key=lambda one: -float(np.nansum(one[1])))[:MOST_LINES]
    became = [
        Line(name, name.replace("_", " "), thin.mean(values), colour=place)
        for place, (name, values) in enumerate(ordered, 1)
    ]
    why = "Finished requests a second, by what became of them: good and bad count for the SLO, the others do not."
    yield from _chart("requests", "Finished requests", why, "count", became, low=0.0)
    if told.retractions is not None and np.nansum(told.retractions) > 0:
        lost = [Line("retractions", "retracted", thin.total(told.retractions), colour=2, shape="steps")]
        why = "Requests that lost their KV and start again, in each step of this chart."
        yield from _chart("retractions", "Retractions", why, "count", lost, low=0.0)


def _shares(thin: Thinned, counts: list[Floats]) -> list[Floats]:
    summed = [thin.total(one) for one in counts]
    whole = np.nansum(np.vstack([one for one in summed if one is not None]), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return [np.where(whole > 0, one / whole, np.nan) for one in summed if one is not None]


def _chart(
    id_: str,
    title: str,
    why: str,
    form: str,
    lines: list[Line],
    *,
    low: float | None = None,
    stack: bool = False,
    marked: bool = False,
) -> Iterator[Chart]:
    """The chart, if any line of it is known."""
    there = tuple(line for line in lines if known(line.values))
    if there:
        yield Chart(id=id_, title=title, note=why, format=form, lines=there, low=low, stack=stack, marked=marked)
