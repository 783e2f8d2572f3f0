"""What changed since a pair was approved, and which plan must be made again because of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum


class RecheckPlan(StrEnum):
    """What must be done again because a model of the approved pair changed."""

    ACCEPTANCE = "acceptance"
    KV = "kv"
    TWO_MODEL = "two_model"


class Change(StrEnum):
    """Whether a model is still the one it was. Unknown is never the same."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Digests of one checkpoint as hexadecimal text; None where a part is not there or cannot be read.

    `whole` covers config, weight index and tensor headers; the parts say where a change lies, and `tokenizer`
    is in no other.
    """

    whole: str | None = None
    config: str | None = None
    tokenizer: str | None = None
    index: str | None = None
    headers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """How one model stands to what it was, and the parts that differ."""

    change: Change
    parts: tuple[str, ...] = ()


def compare(before: Fingerprints | None, now: Fingerprints | None) -> ModelChange:
    """Holds a model against an earlier one.

    Any part that is known on both sides and differs makes it changed. It is the same only when `whole` is known on
    both sides and no part that was recorded is missing now. A part that was never recorded says nothing.
    """
    if before is None or now is None:
        return ModelChange(change=Change.UNKNOWN)
    pairs = {part.name: (getattr(before, part.name), getattr(now, part.name)) for part in fields(Fingerprints)}
    differ = tuple(name for name, (old, new) in pairs.items() if None not in (old, new) and old != new)
    if differ:
        parts = tuple(name for name in differ if name != "whole")
        return ModelChange(change=Change.CHANGED, parts=parts or differ)
    lost = tuple(name for name, (old, new) in pairs.items() if old is not None and new is None)
    if lost or before.whole is None:
        return ModelChange(change=Change.UNKNOWN, parts=lost)
    return ModelChange(change=Change.SAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChange:
    """Both models against what was approved or seen before."""

    target: ModelChange
    drafter: ModelChange

    @property
    def plan(self) -> RecheckPlan | None:
        """The plan that is certainly due: the target's change calls for acceptance, the drafter's for KV, both for all.

        None: nothing is known to be due. With one model unknown the other's plan stands until more is known.
        """
        target, drafter = self.target.change is Change.CHANGED, self.drafter.change is Change.CHANGED
        if target and drafter:
            return RecheckPlan.TWO_MODEL
        if target:
            return RecheckPlan.ACCEPTANCE
        return RecheckPlan.KV if drafter else None

    @property
    def is_known(self) -> bool:
        """Whether both models could be compared."""
        return Change.UNKNOWN not in (self.target.change, self.drafter.change)

    @property
    def due(self) -> Mapping[RecheckPlan, bool]:
        """Each plan that can be answered: exactly one true when something changed, all false when nothing did.

        Left out where a model cannot be compared and the answer hangs on it.
        """
        plan = self.plan
        if self.is_known:
            return {each: each is plan for each in RecheckPlan}
        return {} if plan is None else {plan: True}

    def sentence(self) -> str:
        """What changed and what to do, for people."""
        told = [_told(name, side) for name, side in (("target", self.target), ("drafter", self.drafter))]
        what = ", ".join(told)
        match self.plan:
            case RecheckPlan.ACCEPTANCE:
                return f"{what}: pair not validated together; acceptance check due: measure it and approve the pair"
            case RecheckPlan.KV:
                return f"{what}: pair not validated together; KV budget due: size both pools and approve the pair"
            case RecheckPlan.TWO_MODEL:
                return f"{what}: whole two-model plan due: check acceptance, KV and staging and approve the pair"
            case None if self.is_known:
                return "the pair that was approved"
            case None:
                return f"{what}: cannot be compared with the approved pair"


def _told(name: str, side: ModelChange) -> str:
    match side.change:
        case Change.SAME:
            return f"{name} unchanged"
        case Change.CHANGED:
            return f"{name} changed ({', '.join(side.parts)})"
        case Change.UNKNOWN:
            return f"{name} unknown" + (f" (no {', '.join(side.parts)})" if side.parts else "")


def pair_change(
    *,
    target_before: Fingerprints | None,
    drafter_before: Fingerprints | None,
    target: Fingerprints | None,
    drafter: Fingerprints | None,
) -> PairChange:
    """Holds a pair as it is now against an earlier one. For a drafter that is part of the target give the target's."""
    return PairChange(target=compare(target_before, target), drafter=compare(drafter_before, drafter))
