"""Why a line is not ok, in one short sentence, from what the sidecar answers at /api/v1/status."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

import msgspec

from specbudget.catalog.lines import ACCEPTANCE, CODESIGN, LINES
from specbudget.demo.readings import BudgetRow
from specbudget.demo.wording import budget_text
from specbudget.domain.finding import CheckResult
from specbudget.domain.line_state import LineState
from specbudget.serve.headline import deciding
from specbudget.serve.status_model import BudgetStatus, LineStatus, Status

MOST_LETTERS = 240


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one line is as it is. `subject` stays the same while only the numbers in `text` move."""

    line: str
    state: str
    subject: tuple[str, ...]
    text: str


def fetch_status(url: str) -> Status | None:
    """Reads the status of the sidecar at `url`; None while nobody answers."""
    try:
        with urlopen(f"{url}/api/v1/status", timeout=2.0) as response:
            return msgspec.json.decode(response.read(), type=Status)
    except (URLError, OSError, msgspec.MsgspecError):
        return None


def reasons(status: Status) -> list[Reason]:
    """One for each line that is not ok, in the order of the lines."""
    return [_reason(line, status) for line in status.lines if line.state != LineState.OK]


def _reason(line: LineStatus, status: Status) -> Reason:
    subject, text = _told(line, status)
    shown = "".join(char if char.isprintable() else "?" for char in text)
    if len(shown) > MOST_LETTERS:
        shown = f"{shown[:MOST_LETTERS].rpartition(' ')[0]} …"
    return Reason(line.line, line.state, subject, shown)


def _told(line: LineStatus, status: Status) -> tuple[tuple[str, ...], str]:
    """What is told, by name, and the sentence."""
    if line.state == LineState.UNKNOWN:
        missing = [budget for budget in line.budgets if budget.used_ratio is None]
        return tuple(b.budget for b in missing), _unknown(missing, status)
    if line.line == CODESIGN.id:
        return _pair(status)
    speaking = deciding(line)
    first = speaking if speaking is not None and speaking.state == line.state else None
    parts = [] if first is None else [budget_text(_row(line, first))]
    causes = status.acceptance.causes if line.line == ACCEPTANCE.id else []
    if causes:
        parts.append(f"likely {causes[0].cause}: {causes[0].evidence}")
    elif first is None:
        parts.append(f"speculation {', '.join(sorted({rank.speculation for rank in status.acceptance.ranks}))}")
    names = () if first is None else (first.budget,)
    return (*names, *(cause.cause for cause in causes[:1])), "; ".join(parts)


def _unknown(missing: list[BudgetStatus], status: Status) -> str:
    """Why the first of the budgets is not known, and which source does not answer."""
    if any(source.up is None for source in status.sources):
        return "not everything was read yet"
    why = next((budget.why for budget in missing if budget.why), "not known yet")
    down = [source.source for source in status.sources if source.up is False]
    return f"{why} ({', '.join(down)} down)" if down else why


def _pair(status: Status) -> tuple[tuple[str, ...], str]:
    """The worst rule on the pair, or what is due."""
    pair = status.pair
    if pair is None:
        return (), "the pair is not known"
    for result in (CheckResult.FAIL, CheckResult.WARN):
        found = [finding for finding in pair.findings if finding.result == result]
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            return tuple(f.id for f in found), f"{found[0].id}{more}: {found[0].message}"
    return tuple(pair.due), f"a model changed since the pair was approved; due: {', '.join(pair.due)}"


def _row(line: LineStatus, budget: BudgetStatus) -> BudgetRow:
    declared = next(each for each in LINES if each.id == line.line).budget(budget.budget)
    return BudgetRow(declared, budget.spent, budget.limit or 0.0, budget.used_ratio)
