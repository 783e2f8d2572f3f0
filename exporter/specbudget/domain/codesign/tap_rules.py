"""Which of the target's layers the drafter reads, and whether they exist.

One index space throughout: a tap is the output of a layer, counted from 0. A config states outputs (SGLang's
`target_layer_ids`), or inputs (the speculators format's `aux_hidden_state_layer_ids`: the input of layer n is the
output of layer n − 1), or, for EAGLE-3, either.
"""

from __future__ import annotations

from collections.abc import Sequence

from specbudget.domain.codesign.facts import PairFacts, TapStatement
from specbudget.domain.codesign.rule import TAPPED, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_TAPS_KEY = {
    DraftAlgorithm.DFLASH: "dflash_config.target_layer_ids",
    DraftAlgorithm.DSPARK: "dflash_config.target_layer_ids",
    DraftAlgorithm.EAGLE3: "eagle_config.eagle_aux_hidden_state_layer_ids",
}
_INPUTS_KEY = "aux_hidden_state_layer_ids"
_SPARE_TAPS = 3


def _listed(ids: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, ids)) + "]"


def fallback_ids(layers: int) -> tuple[int, int, int]:
    """The layers before which an engine captures for an EAGLE-3 head that states none: 2, L // 2, L − 3."""
    return 2, layers // 2, layers - 3


def states_inputs(statement: TapStatement, layers: int | None) -> bool:
    """Whether a statement counts inputs of layers: by its key, or because it is the fallback written out."""
    if statement.key == _INPUTS_KEY:
        return True
    if "eagle" not in statement.key or layers is None:
        return False
    return statement.ids == fallback_ids(layers)


def outputs_of(statement: TapStatement, layers: int | None) -> tuple[int, ...]:
    """The taps as outputs of layers, counted from 0."""
    if states_inputs(statement, layers):
        return tuple(index - 1 for index in statement.ids)
    return statement.ids


def taps_in_force(facts: PairFacts) -> tuple[int, ...] | None:
    """The tapped outputs: as stated first, for EAGLE-3 else the engine's fallback; None when neither is known."""
    layers = facts.target.layers
    if facts.drafter.taps:
        return outputs_of(facts.drafter.taps[0], layers)
    if facts.algorithm is DraftAlgorithm.EAGLE3 and layers is not None and facts.drafter.taps is not None:
        return tuple(index - 1 for index in fallback_ids(layers))
    return None


def tap_count(facts: PairFacts) -> int | None:
    """How many layers' features the drafter is built for by its config."""
    if facts.drafter.tap_count is not None:
        return facts.drafter.tap_count
    if facts.drafter.taps:
        return len(facts.drafter.taps[0].ids)
    return _SPARE_TAPS if facts.algorithm is DraftAlgorithm.EAGLE3 else None


def _present(facts: PairFacts) -> Outcome:
    drafter, layers = facts.drafter, facts.target.layers
    taps = drafter.taps or ()
    if drafter.uses_taps is False:
        return passes("eagle_config.use_aux_hidden_state is false: the head reads the last hidden state only")
    if len({outputs_of(taken, layers) for taken in taps}) > 1:
        places = " and ".join(f"{taken.key} says {_listed(taken.ids)}" for taken in taps)
        return fails(f"the taps are stated twice and differ: {places}; keep the list that the drafter was trained on")
    if taps:
        return passes(f"{taps[0].key} = {_listed(taps[0].ids)}", value=len(taps[0].ids))
    key = _TAPS_KEY[facts.algorithm] if facts.algorithm is not None else "target_layer_ids"
    if facts.algorithm is DraftAlgorithm.EAGLE3:
        guess = "" if layers is None else f" = {_listed(fallback_ids(layers))}"
        return warns(
            f"{key} is missing: the engine will fall back to the inputs of layers (2, L // 2, L - 3){guess}; "
            "confirm that the head was trained on these, or write the key"
        )
    hint = _fc_hint(facts)
    return fails(
        f"{key} is missing: the engine would guess evenly spaced layers, load the weights and accept next to nothing"
        f"{hint}; write the layers that the drafter was trained on"
    )


def _fc_hint(facts: PairFacts) -> str:
    fc, hidden = facts.drafter.fc, facts.target.hidden
    if fc is None or not hidden or fc[1] % hidden:
        return ""
    return f" (fc.weight takes {fc[1]} = {fc[1] // hidden} x {hidden}: there are {fc[1] // hidden} of them, not which)"


def _in_range(facts: PairFacts) -> Outcome:
    taps, layers = taps_in_force(facts), facts.target.layers
    if facts.drafter.uses_taps is False:
        return passes("the head taps no layer")
    if taps is None or layers is None:
        return unknown("the tapped layers are not known, so their range cannot be checked")
    beyond = [tap for tap in taps if not 0 <= tap < layers]
    if beyond:
        return fails(
            f"taps {_listed(beyond)} lie outside the target's layers 0 to {layers - 1}"
            f"{_features_left(facts, len(taps) - len(beyond))}; this drafter was made for another target: "
            "use the one trained on this target",
            value=max(beyond, key=abs),
            limit=layers - 1,
        )
    if max(taps) + 1 == layers:
        return warns(
            f"tap {max(taps)} is the output of the last layer: an engine that captures before layer "
            f"{max(taps) + 1} never reaches it, since there are only {layers}; confirm it with one request",
            value=max(taps),
            limit=layers - 1,
        )
    return passes(
        f"outputs of layers {_listed(taps)} exist among {layers} (captured before layers "
        f"{_listed([tap + 1 for tap in taps])})",
        value=max(taps),
        limit=layers - 1,
    )


def _features_left(facts: PairFacts, left: int) -> str:
    hidden, fc = facts.target.hidden, facts.drafter.fc
    if hidden is None:
        return ""
    expected = "" if fc is None else f" against the {fc[1]} that fc.weight takes"
    return f", which leaves {left} x {hidden} = {left * hidden} features{expected}"


def _ascending(facts: PairFacts) -> Outcome:
    for statement in facts.drafter.taps or ():
        if len(set(statement.ids)) < len(statement.ids):
            return fails(f"{statement.key} = {_listed(statement.ids)} names a layer twice; an engine captures it once")
        if list(statement.ids) != sorted(statement.ids):
            return warns(
                f"{statement.key} = {_listed(statement.ids)} is not in ascending order, in which engines concatenate "
                "the features; confirm the order of training"
            )
    return passes("each layer once, in ascending order")


def _offset(facts: PairFacts) -> Outcome:
    taps, layers = facts.drafter.taps or (), facts.target.layers
    if not taps or layers is None:
        return passes("no stated taps to shift")
    statement, key = taps[0], taps[0].key
    inputs = states_inputs(statement, layers)
    before = list(statement.ids) if inputs else [index + 1 for index in statement.ids]
    reading = (
        f"{key} = {_listed(statement.ids)} means outputs of layers {_listed([index - 1 for index in before])}, "
        f"captured before layers {_listed(before)}"
    )
    adds_one = facts.engine.kind in (None, "sglang")
    if inputs and key != _INPUTS_KEY and adds_one:
        shifted = _listed([index + 1 for index in statement.ids])
        return warns(
            f"{reading}, if it counts inputs of layers, as its first id 2 suggests; SGLang 0.5.18 and 0.5.23 add 1 and "
            f"capture before {shifted}; if the head was trained on inputs, write {_listed([i - 1 for i in before])}"
        )
    if facts.engine.kind == "vllm" and facts.algorithm is DraftAlgorithm.EAGLE3 and not inputs:
        return warns(
            f"{reading}, if it counts outputs of layers; vLLM captures before {_listed(statement.ids)}; "
            f"if the head was trained on outputs, write {_listed(before)}"
        )
    return passes(reading)


def _read_by_engine(facts: PairFacts) -> Outcome:
    taps = facts.drafter.taps or ()
    if not taps or facts.engine.kind != "sglang" or facts.engine.release is None:
        return passes("nothing is known of an engine that would look elsewhere")
    keys = {statement.key for statement in taps}
    if facts.algorithm is DraftAlgorithm.EAGLE3:
        read = {key for key in keys if key.startswith("eagle_config.")}
    else:
        read = {key for key in keys if key != _INPUTS_KEY}
    if read:
        return passes(f"SGLang reads {', '.join(sorted(read))}")
    layers = facts.target.layers
    stated = outputs_of(taps[0], layers)
    fallback = None if layers is None else tuple(index - 1 for index in fallback_ids(layers))
    if facts.algorithm is DraftAlgorithm.EAGLE3 and stated == fallback:
        return passes("SGLang does not read this key, and its fallback is the same")
    place = _TAPS_KEY[facts.algorithm] if facts.algorithm is not None else "target_layer_ids"
    return warns(
        f"SGLang reads the taps at {place}, not at {', '.join(sorted(keys))}; write {_listed(stated)} there, which are "
        "outputs of layers"
    )


SGLANG_TAPS = "SGLang 0.5.23 speculative/dflash_utils.py, model_runner_components/spec_aux_hidden_state.py"

RULES = (
    Rule(
        what="taps_present",
        asks="Does the drafter say which layers of the target it reads?",
        check=_present,
        evidence="every `target_layer_ids`, `eagle_aux_hidden_state_layer_ids` and `aux_hidden_state_layer_ids`",
        reads=("drafter.taps",),
        algorithms=TAPPED,
        source=f"{SGLANG_TAPS}: a block drafter's layers are guessed, an EAGLE-3 head's have a fallback",
    ),
    Rule(
        what="taps_range",
        asks="Do the tapped layers exist?",
        check=_in_range,
        evidence="the taps; the target's `num_hidden_layers`",
        reads=("drafter.taps", "target.layers"),
        algorithms=TAPPED,
        unit="layer",
        source=f"{SGLANG_TAPS}: nested ids are range-checked, prefixed ones are not",
    ),
    Rule(
        what="taps_order",
        asks="Is each layer tapped once, in the order in which engines concatenate?",
        check=_ascending,
        evidence="the taps",
        reads=("drafter.taps",),
        algorithms=TAPPED,
        source="SGLang 0.5.23 models/qwen3.py, models/llama.py: features are appended as the layers run",
    ),
    Rule(
        what="taps_offset",
        asks="Do config and engine count taps alike?",
        check=_offset,
        evidence="the taps and the key they stand at; the kind of engine",
        reads=("drafter.taps", "target.layers"),
        algorithms=TAPPED,
        source="SGLang 0.5.18 and 0.5.23 set_eagle3_layers_to_capture adds 1 to stated ids, not to its fallback",
    ),
    Rule(
        what="taps_key",
        asks="Do the taps stand where the engine reads them?",
        check=_read_by_engine,
        evidence="the key at which the taps stand; the engine's release",
        reads=("drafter.taps",),
        algorithms=TAPPED,
        source=f"{SGLANG_TAPS}: EAGLE-3 only eagle_config, block drafters never the speculators format's key",
    ),
)
