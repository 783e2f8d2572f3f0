"""How many layers of the target the drafter was built for, by its config, its weights and its own record."""

from __future__ import annotations

from specbudget.domain.codesign.architectures import IN_BOTH, ONLY_IN_LAST
from specbudget.domain.codesign.capture_classes import CAPTURES, MAY_CAPTURE
from specbudget.domain.codesign.facts import FIRST_READ, LAST_READ, PairFacts
from specbudget.domain.codesign.rule import SGLANG, TAPPED, Rule
from specbudget.domain.codesign.tap_rules import SGLANG_TAPS, tap_count
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns


def _count(facts: PairFacts) -> Outcome:
    stated, taps = facts.drafter.tap_count, facts.drafter.taps or ()
    if stated is None or not taps:
        return passes("the number of taps is stated once at most")
    listed = len(taps[0].ids)
    if stated != listed:
        return fails(
            f"num_aux_hidden_states is {stated} and {taps[0].key} lists {listed} layers: the engine builds the fused "
            f"projection for {stated} and hands it {listed}; write the same number",
            value=stated,
            limit=listed,
        )
    return passes(f"num_aux_hidden_states {stated}, as many as are listed", value=stated, limit=listed)


def _width(facts: PairFacts) -> Outcome:
    fc, hidden, count = facts.drafter.fc, facts.target.hidden, tap_count(facts)
    if fc is None or hidden is None:
        return unknown("the fused projection's shape is not known", required=False)
    if count is None:
        return unknown("the number of taps is not known, so the fused projection cannot be checked")
    if fc[1] != count * hidden:
        built = f"{fc[1] // hidden}" if fc[1] % hidden == 0 else f"{fc[1]} features, no multiple of {hidden}"
        return fails(
            f"config lists {count} taps, fc was built for {built}: fc.weight takes {fc[1]}, {count} x {hidden} is "
            f"{count * hidden}; config and weights belong to different drafters",
            value=fc[1],
            limit=count * hidden,
        )
    if facts.drafter.hidden is not None and fc[0] != facts.drafter.hidden:
        return fails(
            f"fc.weight gives {fc[0]} features, hidden_size is {facts.drafter.hidden}; config and weights differ",
            value=fc[0],
            limit=facts.drafter.hidden,
        )
    return passes(f"fc.weight takes {count} x {hidden} = {fc[1]}", value=fc[1], limit=count * hidden)


def _made_for(facts: PairFacts) -> Outcome:
    recorded, layers = facts.drafter.num_target_layers, facts.target.layers
    if recorded is None:
        return passes("num_target_layers is not recorded")
    if recorded != layers:
        return warns(
            f"num_target_layers is {recorded} and the target has {layers} layers: the drafter was made for another "
            "target; engines only warn, and accept little",
            value=recorded,
            limit=layers,
        )
    return passes(f"made for a target of {recorded} layers", value=recorded, limit=layers)


_CAPTURED_BY = {
    DraftAlgorithm.EAGLE3: ("eagle3",),
    DraftAlgorithm.DFLASH: ("dflash",),
    DraftAlgorithm.DSPARK: ("dspark", "dflash"),
}


def _capture(facts: PairFacts) -> Outcome:
    name, release = facts.target.architecture, facts.engine.release
    if facts.engine.running:
        return passes("the engine started, so it captures the layers")
    if facts.drafter.uses_taps is False:
        return passes("the head taps no layer")
    if facts.algorithm is None or release not in (FIRST_READ, LAST_READ) or name is None or name in MAY_CAPTURE:
        return unknown("which targets hand out their layers is not known of this class and release", required=False)
    known = IN_BOTH if release == FIRST_READ else IN_BOTH | ONLY_IN_LAST
    if name not in known:
        return unknown(f"{name} is none of the classes that were read", required=False)
    words = _CAPTURED_BY[facts.algorithm]
    first = any(name in CAPTURES[word][0] for word in words)
    later = any(name in CAPTURES[word][1] for word in words)
    if first or (later and release == LAST_READ):
        return passes(f"{name} hands out its layers to {facts.algorithm}")
    upgrade = "upgrade to 0.5.23" if later else "use another kind of drafter"
    return fails(
        f"{name} has no set_{words[0]}_layers_to_capture in SGLang {'.'.join(map(str, release))}: the engine refuses "
        f"{facts.algorithm} on this target; {upgrade}",
        value=name,
    )


RULES = (
    Rule(
        what="taps_capture",
        asks="Can this target hand out its layers to such a drafter?",
        check=_capture,
        evidence="the target's `architectures`; the engine's release",
        algorithms=TAPPED,
        engines=SGLANG,
        required=False,
        source="SGLang 0.5.18 and 0.5.23 attention_backend_setup.py: set_{eagle3,dflash,dspark}_layers_to_capture",
    ),
    Rule(
        what="taps_count",
        asks="Are as many layers listed as the drafter says it reads?",
        check=_count,
        evidence="`num_aux_hidden_states`; the taps",
        algorithms=TAPPED,
        unit="layers",
        source="SGLang 0.5.23 models/llama_eagle3.py: num_aux_hidden_states sizes fc, else the listed layers",
    ),
    Rule(
        what="taps_width",
        asks="Was the fused projection built for that many taps of this width?",
        check=_width,
        evidence="shape of `fc.weight`; the number of taps; both `hidden_size`",
        reads=("target.hidden",),
        algorithms=TAPPED,
        unit="features",
        source="SGLang 0.5.23 models/dflash.py: fc.weight shape mismatch at load",
    ),
    Rule(
        what="num_target_layers",
        asks="Was the drafter made for a target of this depth?",
        check=_made_for,
        evidence="`num_target_layers`; the target's `num_hidden_layers`",
        reads=("target.layers",),
        algorithms=TAPPED,
        unit="layers",
        source=f"{SGLANG_TAPS}: a difference is a warning in the log",
    ),
)
