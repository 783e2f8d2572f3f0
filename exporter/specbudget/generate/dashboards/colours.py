"""Colours with a fixed meaning, told apart by every kind of colour vision (after Okabe and Ito).

A colour never speaks alone: states have their word beside it, lines their legend, limits are dashed.
"""

from __future__ import annotations

from collections.abc import Mapping

from specbudget.catalog.sets import Artifact, EventVerdict, StageArtifact, StartOutcome
from specbudget.domain.device_memory import MemoryPart
from specbudget.domain.line_state import LineState
from specbudget.domain.speculation import SpeculationState

TARGET = "#0072B2"
DRAFTER = "#E69F00"
OK = "#009E73"
AT_RISK = "#F0E442"
BREACH = "#D55E00"
UNKNOWN = "#CC79A7"
QUIET = "#7F7F7F"
"""What is there and asks for nothing: idle, free, a cause that is not suspected."""

LIMIT = "#D55E00"
"""Limits are dashed, in the colour of what lies beyond them."""

REFERENCE = "#7F7F7F"
"""What a value is read against without being a limit."""

SECOND = "#56B4E9"
"""The second line of a pair that is neither target nor drafter; the first is TARGET's blue."""

THIRD = "#AA4499"
"""The third line, such as break-even or a queue."""

WHOLE = "#B3B3B3"
"""A whole beside its parts, which have the colours of their models."""

OF_ARTIFACT: Mapping[str, str] = {Artifact.TARGET: TARGET, Artifact.DRAFTER: DRAFTER}
SHADES: Mapping[str, tuple[str, str, str]] = {
    Artifact.TARGET: (TARGET, "#56B4E9", "#9AD0F0"),
    Artifact.DRAFTER: (DRAFTER, "#F5C767", "#FBE3B3"),
}
"""Several quantities of one model, in its own family; the first is the model's colour."""

OF_STAGE_ARTIFACT: Mapping[str, str] = {
    StageArtifact.TARGET: TARGET,
    StageArtifact.DRAFTER: DRAFTER,
    StageArtifact.BOTH: QUIET,
}
OF_LINE_STATE: Mapping[LineState, str] = {
    LineState.OK: OK,
    LineState.UNKNOWN: UNKNOWN,
    LineState.AT_RISK: AT_RISK,
    LineState.BREACH: BREACH,
}
OF_SPECULATION: Mapping[SpeculationState, str] = {
    SpeculationState.NO_DATA: UNKNOWN,
    SpeculationState.INVALID: UNKNOWN,
    SpeculationState.FROZEN: BREACH,
    SpeculationState.OFF: BREACH,
    SpeculationState.CAPPED: AT_RISK,
    SpeculationState.IDLE: QUIET,
    SpeculationState.ACTIVE: OK,
}
OF_VERDICT: Mapping[str, str] = {EventVerdict.GOOD: OK, EventVerdict.BAD: BREACH}
OF_OUTCOME: Mapping[str, str] = {
    StartOutcome.OK: OK,
    StartOutcome.OVER_BUDGET: AT_RISK,
    StartOutcome.FAILED: BREACH,
    StartOutcome.STUCK: UNKNOWN,
}
OF_MEMORY: Mapping[str, str] = {
    MemoryPart.TARGET_WEIGHTS: TARGET,
    MemoryPart.DRAFTER_WEIGHTS: DRAFTER,
    MemoryPart.TARGET_KV: "#56B4E9",
    MemoryPart.DRAFTER_KV: "#F5C767",
    MemoryPart.TARGET_STATE: "#3D93C6",
    MemoryPart.VERIFY_STATE: "#9AD0F0",
    MemoryPart.TARGET_GRAPHS: "#00496F",
    MemoryPart.DRAFTER_GRAPHS: "#9A6A00",
    MemoryPart.FREE: "#B3B3B3",
    MemoryPart.OTHER: QUIET,
}
"""Blues are the target's, oranges the drafter's, greys nobody's."""
