"""The closed set of likely causes, each with what it means, what speaks for it and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specbudget.catalog.sets import Suspect
from specbudget.domain.suspects import (
    CLEARLY_LOWER,
    CONTRIBUTES_NOTHING,
    MIN_REQUESTS,
    MIN_STEPS,
    NEAR_WINDOW,
    NOTABLE_CHANGE,
    STEADY_REPORTS,
)
from specbudget.words import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseText:
    """One cause for people. `actions` hold marks of `EngineWords` and of commands."""

    means: str
    evidence: str
    actions: tuple[str, ...]


def named(cause: Suspect) -> str:
    """A cause as texts name it."""
    return f"`{cause}`"


CAUSES: Mapping[Suspect, CauseText] = MappingProxyType(
    {
        Suspect.FROM_BOOT: CauseText(
            means="It was never good since the engine started: the pair or the rollout is wrong, and nothing broke.",
            evidence=(
                f"Over {MIN_STEPS} verify steps or more since the start no window reached the target (without one: "
                f"{CONTRIBUTES_NOTHING:g})."
            ),
            actions=(
                "Undo the rollout.",
                "`specbudget check --budget [budget]`: look at taps, quantisation and tokenizer of the pair.",
            ),
        ),
        Suspect.DRAFTER_CHANGED: CauseText(
            means="The drafter on disk is not the one that was approved.",
            evidence=(
                "Its fingerprint differs from budget.lock, or from what the sidecar saw first where there is no lock."
            ),
            actions=(
                "Put the approved drafter back and restart, replica by replica.",
                "Or approve the new one: `specbudget check --budget [budget] --approve` once it passes.",
            ),
        ),
        Suspect.TARGET_CHANGED: CauseText(
            means="The target on disk is not the one that was approved; the drafter was trained for the old one.",
            evidence=(
                "Its fingerprint differs from budget.lock, or from what the sidecar saw first where there is no lock."
            ),
            actions=(
                "Put the approved target back, or bring the drafter that belongs to the new one.",
                "Then `specbudget check --budget [budget] --approve`.",
            ),
        ),
        Suspect.CAPPED: CauseText(
            means=(
                "Under load the engine verifies fewer drafts than the drafter proposes. The drafter is as good as ever."
            ),
            evidence="The whole block would reach the target, the cap in force does not let it.",
            actions=(
                "Add replicas or lower the limit of running requests: the cap follows the load.",
                "If the cap is meant, lower target_length, or judge with `sli: step`.",
            ),
        ),
        Suspect.MIX: CauseText(
            means="Other traffic, not a worse drafter: more requests of a kind that drafts badly.",
            evidence=(
                f"The length fell by {percent(NOTABLE_CHANGE)} or more, and most of the fall comes from the shares "
                f"of the "
                "profiles, not from their own lengths. Without profiles: the same two groups of requests in other "
                "shares."
            ),
            actions=(
                "Nothing is broken: find the caller whose traffic grew.",
                "Give that traffic a profile with a target of its own (`budget.acceptance.profiles`).",
            ),
        ),
        Suspect.PREFIX_HITS: CauseText(
            means="For prompts whose beginning came from the prefix cache the drafter's KV is missing.",
            evidence=(
                f"Requests with a cached prefix reach less than {percent(CLEARLY_LOWER)} of the length of the "
                f"others, with "
                f"{MIN_REQUESTS} requests and {MIN_STEPS} verify steps or more on each side."
            ),
            actions=(
                "Look for a fault of the engine's release that is known; another release may not have it.",
                "To be sure, restart one replica without the prefix cache and compare.",
            ),
        ),
        Suspect.LONG_CONTEXT: CauseText(
            means="With long prompts the drafter sees only part of the context, or has left the positions it knows.",
            evidence=(
                f"Requests with long prompts reach less than {percent(CLEARLY_LOWER)} of the length of the others, "
                f"with "
                f"{MIN_REQUESTS} requests and {MIN_STEPS} verify steps or more on each side."
            ),
            actions=(
                "Give long prompts a profile with a target of its own, or a service of their own without a drafter.",
                "`specbudget check --budget [budget] --explain codesign.positions` says what the drafter knows.",
            ),
        ),
        Suspect.KV_PRESSURE: CauseText(
            means="The KV pool is full: requests lose their KV to others, start again, and their steps are paid twice.",
            evidence="Requests were retracted, or the fuller pool is above high_water.",
            actions=(
                "Add replicas or lower the limit of running requests.",
                "See what the drafter costs in target tokens, and whether it pays.",
            ),
        ),
        Suspect.DECAY: CauseText(
            means="The length goes down steadily: something drifts or wears. A step or a new mix is none.",
            evidence="Its values over minutes to hours lie on a falling line.",
            actions=(
                "Restart one replica. If it starts high again, the engine's state wears: restart the others one by "
                "one.",
                "If not, the target, its adapters or the contexts drift: compare now with the morning, by profile.",
            ),
        ),
        Suspect.REPETITION: CauseText(
            means="Nearly every draft is accepted, as in text that repeats itself.",
            evidence=f"The length is within the last {percent(1 - NEAR_WINDOW)} of the verify window.",
            actions=(
                "Look at the answers: a model in a loop helps nobody.",
                "If the answers are good, the window is too small for this traffic: draft more tokens a step.",
            ),
        ),
        Suspect.SIMULATED: CauseText(
            means="The length does not come from a drafter: the engine is told to simulate one.",
            evidence=f"The engine says so, or {STEADY_REPORTS} batch reports in a row agree to the digit.",
            actions=("Take the simulation away ([simulated]) and restart. Nothing measured meanwhile counts.",),
        ),
    }
)
