"""A review's findings as JSON, for pipelines and for people's own scripts."""

from __future__ import annotations

import json

from specbudget.review.model import Review


def as_json(review: Review) -> str:
    """Service, stretch, findings and sources. Times are seconds since the epoch."""
    document = {
        "service": review.service,
        "start": review.start,
        "end": review.end,
        "findings": [
            {
                "id": finding.id,
                "line": finding.line,
                "cause": finding.cause.value,
                "title": finding.title,
                "evidence": list(finding.evidence),
                "ruled_out": list(finding.ruled_out),
                "start": finding.start,
                "end": finding.end,
            }
            for finding in review.findings
        ],
        "sources": [{"kind": source.kind, "place": source.place, "told": source.told} for source in review.sources],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
