"""The five budget lines, each declared once.

Series, findings, rules, panels and pages refer to these objects; a budget's key, unit, direction and words stand
nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """The base unit of a budget; it names the series of both sides."""

    BYTES = "bytes"
    SECONDS = "seconds"
    TOKENS = "tokens"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetDef:
    """One quantity with a limit: what is spent, against what. A floor must not fall below its limit.

    `title` is what people read where its line is named beside it. A mark is no hard limit: above it the line is at
    risk, and nothing below it is.
    """

    id: str
    title: str
    unit: Unit
    spent: str
    limit: str
    floor: bool = False
    mark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDef:
    """One budget line: its question, where its trouble shows, and its budgets."""

    id: str
    title: str
    question: str
    shows: str
    budgets: tuple[BudgetDef, ...]

    def budget(self, budget_id: str) -> BudgetDef:
        """The budget of that id; KeyError when the line has none."""
        for budget in self.budgets:
            if budget.id == budget_id:
                return budget
        raise KeyError(f"{self.id} has no budget {budget_id}")


_DISK = "loadable bytes on disk"
_LIMIT_BYTES = "the budget's bytes"

ARTIFACTS = LineDef(
    id="artifacts",
    title="Artifacts",
    question=(
        "Bytes and parameters of target and drafter, on disk and in device memory, "
        "against the image and storage budget."
    ),
    shows="memory bill",
    budgets=(
        BudgetDef(
            id="target", title="target on disk", unit=Unit.BYTES, spent=f"the target's {_DISK}", limit=_LIMIT_BYTES
        ),
        BudgetDef(
            id="drafter", title="drafter on disk", unit=Unit.BYTES, spent=f"the drafter's {_DISK}", limit=_LIMIT_BYTES
        ),
        BudgetDef(id="total", title="both on disk", unit=Unit.BYTES, spent=f"both models' {_DISK}", limit=_LIMIT_BYTES),
        BudgetDef(
            id="image",
            title="models in the image",
            unit=Unit.BYTES,
            spent="bytes of the artifacts that the image carries",
            limit=_LIMIT_BYTES,
        ),
    ),
)

KV = LineDef(
    id="kv",
    title="KV pools",
    question=(
        "Geometry, capacity and occupancy of the target's and of the drafter's KV; "
        "what the drafter needs, gets, and costs in target tokens."
    ),
    shows="memory graph",
    budgets=(
        BudgetDef(
            id="target",
            title="target's pool",
            unit=Unit.BYTES,
            spent="capacity of the target's pool, per device",
            limit=_LIMIT_BYTES,
        ),
        BudgetDef(
            id="drafter",
            title="drafter's pool",
            unit=Unit.BYTES,
            spent="capacity of the drafter's pool, per device",
            limit=_LIMIT_BYTES,
        ),
        BudgetDef(
            id="high_water",
            title="pool in use",
            unit=Unit.RATIO,
            spent="used ÷ capacity of the fuller pool",
            limit="high_water",
            mark=True,
        ),
        BudgetDef(
            id="min_target_tokens",
            title="target's tokens",
            unit=Unit.TOKENS,
            spent="tokens of the target's pool",
            limit="the budget's tokens",
            floor=True,
        ),
    ),
)

ACCEPTANCE = LineDef(
    id="acceptance",
    title="Acceptance",
    question="Acceptance length per request and per batch against a serving SLO and against break-even.",
    shows="latency graph",
    budgets=(
        BudgetDef(
            id="target_length",
            title="length reached",
            unit=Unit.TOKENS,
            spent="the length that `objective` of the last hour's valid events reach",
            limit="the target length",
            floor=True,
        ),
        BudgetDef(
            id="break_even",
            title="length against break-even",
            unit=Unit.TOKENS,
            spent="rolling length over 30 minutes",
            limit="break-even at the present batch",
            floor=True,
        ),
        BudgetDef(
            id="burn_fast",
            title="fast burn",
            unit=Unit.RATIO,
            spent="the smaller burn of the fast page's two windows",
            limit="the row's factor",
        ),
        BudgetDef(
            id="burn_slow",
            title="slow burn",
            unit=Unit.RATIO,
            spent="the smaller burn of the slow page's two windows",
            limit="the row's factor",
        ),
    ),
)

STAGING = LineDef(
    id="staging",
    title="Staging",
    question="Cold start, stage by stage and artifact by artifact, against the start-up budget.",
    shows="deploy log",
    budgets=(
        BudgetDef(
            id="cold_start",
            title="cold start",
            unit=Unit.SECONDS,
            spent="seconds of the latest start",
            limit="the budget's seconds",
        ),
    ),
)

CODESIGN = LineDef(
    id="codesign",
    title="Co-design",
    question="Does this drafter fit this target, and which plan must be redone when either changes.",
    shows="on change",
    budgets=(
        BudgetDef(
            id="pair",
            title="rules that fail",
            unit=Unit.RATIO,
            spent="failing rules: any makes the ratio 2",
            limit="0 failing rules",
        ),
    ),
)

LINES = (ARTIFACTS, KV, ACCEPTANCE, STAGING, CODESIGN)
"""In the order in which people read them."""
