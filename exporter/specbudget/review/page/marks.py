"""What is drawn over the charts: pages, stretches of which nothing is known, and what changed."""

from __future__ import annotations

from typing import Any

from specbudget.catalog.alerts import Severity
from specbudget.review.model import MarkKind, Review

MOST_LABELS = 12
"""So many marks at most have their words in the chart; the table has them all."""

MOST_MARKS = 60
"""More lines than this hide what they stand beside."""

SHORT = {
    MarkKind.CONFIG: "budget",
    MarkKind.TARGET_LENGTH: "target",
    MarkKind.PAIR: "pair",
    MarkKind.ENGINE_START: "start",
    MarkKind.SIDECAR_START: "sidecar",
    MarkKind.SPECULATION: "speculation",
    MarkKind.CAPACITY: "pool",
}


def overlay(review: Review) -> dict[str, Any]:
    """Spans and marks as chart.js takes them."""
    pages = [alert for alert in review.alerts or () if alert.severity == Severity.PAGE]
    spans: list[dict[str, Any]] = [
        {"from": gap.start, "to": gap.end, "label": "", "colour": "grid"} for gap in review.gaps if not gap.replica
    ]
    if pages:
        first = min(alert.start for alert in pages)
        last = max(alert.end for alert in pages)
        spans.append({"from": first, "to": last, "label": "paged", "colour": "bad"})
    inside = [mark for mark in review.marks if review.start <= mark.at <= review.end][:MOST_MARKS]
    named = len(inside) <= MOST_LABELS
    marks = [{"at": mark.at, "label": SHORT[mark.kind] if named else "", "colour": "text"} for mark in inside]
    return {"spans": spans, "marks": marks}
