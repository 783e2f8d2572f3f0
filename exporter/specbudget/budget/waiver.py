"""The `waivers` of a budget: findings that somebody looked at and accepts until a day."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from specbudget.budget.declared import CHECK, Kind, key
from specbudget.budget.section import Section

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def parse_day(value: Any) -> date:
    """A day as `2027-03-31`; anything else that a date could be read from is a slip."""
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("write a day, like 2027-03-31")


Day = Annotated[date, PlainValidator(parse_day), Kind(words="day")]
FindingId = Annotated[
    str,
    Field(pattern=r"^[a-z_]{1,40}\.[a-z0-9_]{1,80}$"),
    Kind(words="id of a finding", asks="write the id of a finding, like codesign.trained_for"),
]
Reason = Annotated[
    str, Field(min_length=1, max_length=500), Kind(words="text", asks="say why, in at most 500 characters")
]


class Waiver(Section):
    """A warning, or a fact that nobody requires and nobody knows, at which `check --strict` does not stop. It is told
    as waived and changes no verdict; neither a failure nor a required fact can be waived. After its day it is an error.
    """

    finding: FindingId = key(
        ..., "The id of the finding, as `check` prints it.", example="codesign.trained_for", read_by=(CHECK,)
    )
    reason: Reason = key(
        ...,
        "Why it is accepted, for whoever reads the verdict.",
        example='"the drafter records no base model; its card names this target"',
        read_by=(CHECK,),
    )
    until: Day = key(
        ...,
        "The last day on which it holds; from the next one on the gate refuses it.",
        example="2027-03-31",
        read_by=(CHECK,),
    )
