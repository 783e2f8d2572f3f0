"""What every section of the budget file shares: strictness, and the kinds of numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Ratio = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[int, Field(ge=1, le=10**15)]
Length = Annotated[float, Field(ge=1, le=1024)]


class Section(BaseModel):
    """A mapping of the file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, hide_input_in_errors=True)
