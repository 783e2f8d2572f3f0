"""What holds for every pool: growth with memory, bounds that contain, a drafter that costs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.pool_sizing.deployments import DELTA, GATED, GIB, LATENT, LING_DRAFTER, attention, hybrid
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import ModelGeometry
from specbudget.domain.pool_sizing import (
    Certainty,
    ExtraBuffer,
    PoolInputs,
    PoolOutcome,
    Prediction,
    ProfiledMemory,
    Span,
    StatePlan,
    TokenSpan,
    exactly,
    memory_from_bytes,
    predict_pool,
)

PLAIN = (attention(36, 8), ModelGeometry(layers=(LATENT,) * 7))
HYBRID = (hybrid(DELTA), hybrid(GATED, layers=48, interval=4))


def tokens(outcome: PoolOutcome) -> TokenSpan:
    """The tokens, none where the engine refuses to start."""
    return outcome.tokens if isinstance(outcome, Prediction) else TokenSpan(low=0, point=0, high=0)


@st.composite
def deployments(draw: st.DrawFn, targets: tuple[ModelGeometry, ...]) -> PoolInputs:
    """A deployment of one of the targets, with memory that is known exactly."""
    before = draw(st.integers(20 * GIB, 180 * GIB))
    return PoolInputs(
        release=draw(st.sampled_from(["0.5.18", "0.5.23"])),
        memory=memory_from_bytes(
            before_load=before,
            target_weights=draw(st.integers(0, before)),
            drafter_weights=draw(st.integers(0, 4 * GIB)),
        ),
        target=draw(st.sampled_from(targets)),
        drafter=LING_DRAFTER,
        algorithm=draw(st.sampled_from([DraftAlgorithm.DSPARK, DraftAlgorithm.EAGLE3, DraftAlgorithm.NGRAM])),
        draft_tokens=draw(st.integers(2, 16)),
        tensor_parallel=draw(st.sampled_from([1, 2, 4])),
        page=draw(st.sampled_from([1, 16, 64])),
        fraction=draw(st.floats(0.5, 0.98)),
        max_running=draw(st.none() | st.integers(1, 256)),
        max_tokens=draw(st.none() | st.integers(0, 10**6)),
        state=StatePlan(
            full_memory_ratio=draw(st.floats(0.1, 5.0)),
            max_slots=draw(st.none() | st.integers(1, 300)),
            extra_buffer=draw(st.sampled_from(ExtraBuffer)),
            replay=draw(st.booleans()),
        ),
        radix_cache=draw(st.booleans()),
    )


@given(inputs=deployments(PLAIN), more=st.integers(1, 8 * GIB))
def test_more_free_memory_never_means_fewer_tokens(inputs: PoolInputs, more: int) -> None:
    """Of a target without recurrent state."""
    richer = replace(inputs.memory, before_load=exactly(inputs.memory.before_load.point + more))
    assert tokens(predict_pool(replace(inputs, memory=richer))).point >= tokens(predict_pool(inputs)).point


@given(inputs=deployments(PLAIN))
def test_a_drafter_never_gives_tokens(inputs: PoolInputs) -> None:
    """Each part of its cost is there or zero, and the parts make up the whole."""
    found = predict_pool(inputs)
    if isinstance(found, Prediction):
        assert found.without_drafter is not None
        assert found.cost is not None
        assert min(found.cost.kv_tokens, found.cost.weights_tokens) >= 0
        assert found.cost.state_tokens == 0
        assert found.tokens.point + found.cost.tokens == found.without_drafter.point


@given(inputs=deployments(PLAIN + HYBRID))
def test_exact_inputs_leave_nothing_open(inputs: PoolInputs) -> None:
    """And no figure of memory that is taken is negative."""
    found = predict_pool(inputs)
    if isinstance(found, Prediction):
        assert 0 < found.tokens.low == found.tokens.point == found.tokens.high
        assert min(found.target_pool_bytes, found.drafter_pool_bytes, found.charged_bytes) >= 0
        assert found.state is None or min(found.state.slots, found.state.state_bytes, found.state.scratch_bytes) >= 0
        taken = found.target_pool_bytes + found.charged_bytes - inputs.page * found.target_token_bytes
        if found.state is not None:
            taken += found.state.state_bytes + found.state.fixed_bytes + found.state.scratch_bytes
        assert taken <= found.rest_bytes.point + 1


@settings(max_examples=300)
@given(inputs=deployments(PLAIN + HYBRID), width=st.integers(0, 6 * GIB), place=st.floats(0, 1), point=st.floats(0, 1))
def test_bounds_contain_every_memory_within_them(inputs: PoolInputs, width: int, place: float, point: float) -> None:
    """Also where one more slot of recurrent state takes memory off the KV at once."""
    least = inputs.memory.before_load.point
    wide = _with_free(inputs, Span(low=least, point=least + int(width * point), high=least + width))
    found = tokens(predict_pool(wide))
    one = tokens(predict_pool(_with_free(inputs, exactly(least + int(width * place)))))
    assert found.low <= one.point <= found.high
    assert found.low <= found.point <= found.high


def _with_free(inputs: PoolInputs, before: Span) -> PoolInputs:
    memory = ProfiledMemory(
        before_load=before,
        target_weights=inputs.memory.target_weights,
        drafter_weights=inputs.memory.drafter_weights,
        certainty=Certainty.FROM_LOG,
    )
    return replace(inputs, memory=memory)
