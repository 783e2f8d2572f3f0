"""The verdict as JSON: stable keys and ids, for pipelines."""

from __future__ import annotations

import json
import math
from typing import Any

from specbudget.budget.waiver import Waiver
from specbudget.check.report import Report
from specbudget.domain.finding import Exactness, Finding


def render_json(report: Report) -> str:
    """`verdict` and `lines`, each with its findings; a predicted number carries `low` and `high`.

    A finding that is waived carries `waived`, and its verdict all the same.
    """
    told = {
        "verdict": report.verdict,
        "lines": [
            {
                "line": line.line.id,
                "budgeted": line.budgeted,
                "verdict": line.verdict,
                "findings": [_finding(finding, report.waiver(finding)) for finding in line.findings],
            }
            for line in report.lines
        ],
    }
    return json.dumps(told, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _finding(finding: Finding, waiver: Waiver | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": finding.id,
        "verdict": finding.result,
        "required": finding.required,
        "message": finding.message,
        "value": _finite(finding.value),
        "limit": _finite(finding.limit),
        "unit": finding.unit or None,
        "class": finding.exactness or (Exactness.EXACT if isinstance(finding.value, int | float) else None),
    }
    if finding.low is not None or finding.high is not None:
        told |= {"low": _finite(finding.low), "high": _finite(finding.high)}
    if waiver is not None:
        told["waived"] = {"reason": waiver.reason, "until": waiver.until.isoformat()}
    return told


def _finite(value: Any) -> Any:
    """JSON has no infinity: a bound that is none is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
