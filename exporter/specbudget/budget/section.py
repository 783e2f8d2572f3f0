"""What every section of the budget file shares: strictness, and the kinds of numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from specbudget.budget.declared import Kind

Ratio = Annotated[float, Field(gt=0, le=1), Kind(words="number above 0, at most 1", unit="ratio")]
Positive = Annotated[int, Field(ge=1, le=10**15), Kind(words="whole number from 1 on")]
Length = Annotated[float, Field(ge=1, le=1024), Kind(words="number from 1 to 1024", unit="tokens per verify step")]
Milliseconds = Annotated[float, Field(gt=0), Kind(words="number above 0", unit="milliseconds")]
MaybeNoMilliseconds = Annotated[float, Field(ge=0), Kind(words="number from 0 on", unit="milliseconds")]

File = Annotated[str, Kind(words="path of a file")]
Folder = Annotated[str, Kind(words="path of a folder")]
Address = Annotated[str, Kind(words="address, http:// or https://")]


class Section(BaseModel):
    """A mapping of the file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, hide_input_in_errors=True)
