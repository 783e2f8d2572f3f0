"""What changed since a pair was approved, and which plan must be made again because of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    is in no other. `settings` are the values of config.json by dotted key, each as JSON or as a digest: they name
    what of it changed, and decide nothing.
    """

    whole: str | None = None
    config: str | None = None
    tokenizer: str | None = None
    index: str | None = None
    headers: str | None = None
    settings: Mapping[str, str] | None = field(default=None, compare=False)


_PARTS = ("whole", "config", "tokenizer", "index", "headers")
_DIGEST = "sha256:"
_MOST_SETTINGS = 6
"""So many are named; a drafter of another family differs in nearly all."""

_FEEDS_KV = frozenset(
    {
        *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size"),
        *("kv_lora_rank", "qk_rope_head_dim", "layer_types", "sliding_window", "use_sliding_window"),
        *("torch_dtype", "dtype", "num_nextn_predict_layers", "index_head_dim", "full_attention_interval"),
    }
)
"""Settings that size a token's KV, by the last part of their key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of config.json that is another one now; None on the side where it is not there."""

    key: str
    before: str | None
    now: str | None

    @property
    def sizes_kv(self) -> bool:
        """Whether it decides how large a token's KV is."""
        return self.key.rpartition(".")[2] in _FEEDS_KV

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.key} is gone"
        if self.before is None:
            return f"{self.key} is new" if self.now.startswith(_DIGEST) else f"{self.key} is new, {self.now}"
        if _DIGEST in (self.before[: len(_DIGEST)], self.now[: len(_DIGEST)]):
            return f"{self.key} is another"
        return f"{self.key} {self.before} → {self.now}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """How one model stands to what it was, the parts that differ, and the settings of its config that do.

    `settings` is empty where an earlier lock did not record them.
    """

    change: Change
    parts: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()


def compare(before: Fingerprints | None, now: Fingerprints | None) -> ModelChange:
    """Holds a model against an earlier one.

    Any part that is known on both sides and differs makes it changed. It is the same only when `whole` is known on
    both sides and no part that was recorded is missing now. A part that was never recorded says nothing.
    """
    if before is None or now is None:
        return ModelChange(change=Change.UNKNOWN)
    pairs = {part: (getattr(before, part), getattr(now, part)) for part in _PARTS}
    differ = tuple(name for name, (old, new) in pairs.items() if None not in (old, new) and old != new)
    if differ:
        parts = tuple(name for name in differ if name != "whole")
        return ModelChange(change=Change.CHANGED, parts=parts or differ, settings=_settings(before, now, differ))
    lost = tuple(name for name, (old, new) in pairs.items() if old is not None and new is None)
    if lost or before.whole is None:
        return ModelChange(change=Change.UNKNOWN, parts=lost)
    return ModelChange(change=Change.SAME)


def _settings(before: Fingerprints, now: Fingerprints, differ: tuple[str, ...]) -> tuple[Setting, ...]:
    """The settings that differ between two configs that do."""
    if "config" not in differ or before.settings is None or now.settings is None:
        return ()
    keys = sorted({*before.settings, *now.settings})
    pairs = ((key, before.settings.get(key), now.settings.get(key)) for key in keys)
    return tuple(Setting(key=key, before=old, now=new) for key, old, new in pairs if old != new)


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
                sized = _listed([setting for setting in self.target.settings if setting.sizes_kv])
                also = f"; {sized} sizes its KV too: judge the pools anew" if sized else ""
                return (
                    f"{what}: pair not validated together; acceptance check due: measure it and approve the pair{also}"
                )
            case RecheckPlan.KV:
                decided = _listed([setting for setting in self.drafter.settings if not setting.sizes_kv])
                also = f"{decided} may change" if decided else "another drafter changes"
                return (
                    f"{what}: pair not validated together; KV budget due: size both pools and approve the pair; {also} "
                    "what is accepted too: measure acceptance as well"
                )
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
            return f"{name} changed ({'; '.join(_part(part, side.settings) for part in side.parts)})"
        case Change.UNKNOWN:
            return f"{name} unknown" + (f" (no {', '.join(side.parts)})" if side.parts else "")


def _part(part: str, settings: tuple[Setting, ...]) -> str:
    """A part that differs, of the config with the settings that do."""
    if part != "config" or not settings:
        return part
    more = len(settings) - _MOST_SETTINGS
    told = ", ".join(str(setting) for setting in settings[:_MOST_SETTINGS])
    return f"config: {told}" + (f" and {more} more" if more > 0 else "")


def _listed(settings: list[Setting]) -> str:
    """The names of settings."""
    names = [setting.key for setting in settings]
    more = len(names) - _MOST_SETTINGS
    return ", ".join(names[:_MOST_SETTINGS]) + (f" and {more} more" if more > 0 else "")


def pair_change(
    *,
    target_before: Fingerprints | None,
    drafter_before: Fingerprints | None,
    target: Fingerprints | None,
    drafter: Fingerprints | None,
) -> PairChange:
    """Holds a pair as it is now against an earlier one. For a drafter that is part of the target give the target's."""
    return PairChange(target=compare(target_before, target), drafter=compare(drafter_before, drafter))
