"""How far and how the drafter reads the context: positions, rotary fields, stored precision."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.parallel_rules import is_on
from specbudget.domain.codesign.rule import SGLANG, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_FULL_ROTARY_MODELS = frozenset({None, "llama", "qwen2", "qwen3"})
"""Families of draft layers that rotate whole heads; a None is a head of the target's own family or unnamed."""

LONGER_CONTEXT = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
"""Environment variable with which SGLang serves more positions than the config has."""

_UNSTRETCHED = frozenset({None, "default", "llama3", "mrope"})
"""Rotary scalings that do not widen the context that SGLang derives from the config."""

_WIDE = frozenset({"BF16", "F16", "F32", "F64"})
_INTERNAL_QUANTIZATION = frozenset({"bitsandbytes", "torchao"})
"""Methods that quantise while loading: wide tensors under them are no contradiction."""


def _positions(facts: PairFacts) -> Outcome:
    own, target = facts.drafter.positions, facts.target.positions
    served = facts.engine.flags.context_length or target
    if own is None or served is None:
        return unknown("max_position_embeddings of one of the two is not recorded", required=False)
    if own < served:
        refused = _refuses_longer_drafts(facts)
        beyond = f"the drafter knows {own} positions, the target serves {served}: "
        serve = f"serve --context-length {own}"
        return (fails if refused else warns)(
            beyond + f"SGLang refuses to start; {serve}, or set {LONGER_CONTEXT}=1 in engine.env"
            if refused
            else beyond + f"drafts beyond {own} are guesses; {serve} or use a drafter trained on longer text",
            value=own,
            limit=served,
        )
    return passes(f"{own} positions for {served} served", value=own, limit=served)


def _refuses_longer_drafts(facts: PairFacts) -> bool:
    """Whether the engine stops at a drafter of fewer positions: SGLang gives the target's context to its config."""
    rope = facts.drafter.rope
    return (
        facts.engine.kind in (None, "sglang")
        and not facts.engine.running
        and not is_on(facts, LONGER_CONTEXT)
        and (rope is None or rope.kind in _UNSTRETCHED)
    )


def _context(facts: PairFacts) -> Outcome:
    asked, known = facts.engine.flags.context_length, facts.target.positions
    if asked is None or known is None or asked <= known:
        return passes("" if known is None else f"{asked or known} of the target's {known} positions", value=asked)
    if facts.engine.running:
        return passes(f"the engine started with a context of {asked}")
    beyond = f"--context-length {asked} is beyond the target's max_position_embeddings of {known}"
    rope = facts.target.rope
    if is_on(facts, LONGER_CONTEXT):
        return warns(
            f"{beyond}, which {LONGER_CONTEXT} allows: answers beyond it are guesses", value=asked, limit=known
        )
    if rope is not None and rope.kind not in _UNSTRETCHED:
        return warns(
            f"{beyond}: SGLang starts only if its rotary scaling ({rope.kind}) stretches that far; lower it",
            value=asked,
            limit=known,
        )
    return fails(
        f"{beyond}: SGLang refuses to start; set --context-length {known}, or {LONGER_CONTEXT}=1 in engine.env",
        value=asked,
        limit=known,
    )


def _rotary(facts: PairFacts) -> Outcome:
    own, target = facts.drafter.rope, facts.target.rope
    if own is None or own.partial is None or own.partial == 1.0:
        return passes(f"no partial rotation{_other_theta(facts)}")
    if facts.algorithm is DraftAlgorithm.MTP or facts.drafter.model_type not in _FULL_ROTARY_MODELS:
        return passes(f"partial_rotary_factor {own.partial:g}, as its family {facts.drafter.model_type} has it")
    inherited = " as the target's" if target is not None and target.partial == own.partial else ""
    return warns(
        f"partial_rotary_factor {own.partial:g}{inherited}, in a drafter whose layers rotate whole heads: "
        "a runtime that honours it rotates wrongly; remove the key from the drafter's config.json",
        value=own.partial,
        limit=1.0,
    )


def _other_theta(facts: PairFacts) -> str:
    own, target = facts.drafter.rope, facts.target.rope
    if own is None or target is None or own.theta is None or target.theta is None or own.theta == target.theta:
        return ""
    return f"; rope_theta {own.theta:g} beside the target's {target.theta:g} is the drafter's own affair"


def _quantization(facts: PairFacts) -> Outcome:
    method, dtypes = facts.drafter.quantization, facts.drafter.dtypes
    flags = facts.engine.flags
    if dtypes is None:
        return unknown("the drafter's tensors are not known", required=False)
    narrow = sorted(dtypes - _WIDE)
    if method is None and narrow:
        return fails(
            f"config.json names no quantization_config and the weights are {', '.join(narrow)}: read as they stand "
            "they mean nothing; restore quantization_config",
            value=narrow[0],
        )
    if method is not None and not narrow and method not in _INTERNAL_QUANTIZATION:
        return fails(
            f"config.json says {method} and all weights are {', '.join(sorted(dtypes))}: "
            "the engine would look for scales that do not exist; remove quantization_config",
            value=method,
        )
    asked = flags.speculative_draft_model_quantization
    # vLLM gives a drafter no quantisation but its own
    inherits = asked is None and facts.engine.kind in (None, "sglang")
    inherited = flags.quantization if inherits else None
    if method is None and inherited not in (None, "", "unquant"):
        return warns(
            f"--quantization {inherited} holds for the drafter too, whose weights are not quantised; "
            "give --speculative-draft-model-quantization unquant",
            value=inherited,
        )
    return passes(f"{method or 'not quantised'}, weights {', '.join(sorted(dtypes))}")


RULES = (
    Rule(
        what="context_length",
        asks="Is the served context within the target's positions?",
        check=_context,
        evidence="`--context-length`; the target's `max_position_embeddings`, `rope_scaling`; `engine.env`",
        engines=SGLANG,
        alone=True,
        unit="tokens",
        source="SGLang 0.5.23 configs/model_config.py (_derive_context_length)",
    ),
    Rule(
        what="positions",
        asks="Does the drafter know as many positions as are served?",
        check=_positions,
        evidence="both `max_position_embeddings`; `--context-length`",
        required=False,
        unit="tokens",
        source="SGLang 0.5.23 speculative/draft_worker_common.py, configs/model_config.py (_derive_context_length)",
    ),
    Rule(
        what="rotary",
        asks="Do the drafter's rotary fields fit its own layers?",
        check=_rotary,
        evidence="`rope_parameters`, `rope_scaling`, `partial_rotary_factor`, `rope_theta` of both",
        source="NVIDIA-NeMo/Automodel issue 3605: drafter configs that inherit the target's fields",
    ),
    Rule(
        what="quantization",
        asks="Are the drafter's weights stored as its config says?",
        check=_quantization,
        evidence="the drafter's `quantization_config`; the dtypes of its tensors; `--quantization`",
        required=False,
        source="SGLang 0.5.23 --speculative-draft-model-quantization: inherits --quantization when not given",
    ),
)
