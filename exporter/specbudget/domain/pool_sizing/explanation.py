"""The arithmetic of a prediction in words, with the deployment's own numbers, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator

from specbudget.domain.pool_sizing.charges import TokenBytes
from specbudget.domain.pool_sizing.inputs import PoolInputs
from specbudget.domain.pool_sizing.outcome import StatePool, Step, TokenCost
from specbudget.domain.pool_sizing.sizing import PoolSizing
from specbudget.domain.pool_sizing.span import Certainty, Span

_NOTABLE_SHARE = 0.01
"""Of the pool, from which on tokens moved between KV and state are worth a word."""


def explain(
    inputs: PoolInputs,
    cells: TokenBytes,
    sizing: PoolSizing,
    rest_bytes: Span,
    state: StatePool | None,
    fraction: float,
) -> tuple[Step, ...]:
    """The steps in the engine's order, at the most likely inputs."""
    return (
        *_memory(inputs, fraction, rest_bytes),
        *_state(state),
        *_tokens(inputs, cells, sizing, rest_bytes),
    )


def _memory(inputs: PoolInputs, fraction: float, rest_bytes: Span) -> Iterator[Step]:
    memory = inputs.memory
    yield _bytes("free before any weight is loaded", memory.before_load.point)
    yield _bytes("weights of the target", memory.target_weights.point)
    if inputs.algorithm is not None and memory.drafter_weights is not None:
        yield _bytes("weights of the drafter while the pool is sized", memory.drafter_weights.point)
    if memory.other.point:
        yield _bytes("allocated besides", memory.other.point)
    yield _bytes("free after the loads", memory.free().point)
    yield Step(words="mem_fraction_static", value=fraction, unit="of what was free")
    yield _bytes("kept for activations and graphs", memory.before_load.point * (1 - fraction))
    if inputs.reserved_mib:
        yield _bytes("kept for multimodal inputs", inputs.reserved_mib * 2**20)
    yield _bytes("left for KV and recurrent state", rest_bytes.point)


def _state(state: StatePool | None) -> Iterator[Step]:
    if state is None:
        return
    yield _bytes("recurrent state of one request slot", state.bytes_per_slot)
    yield Step(words="slots per running request", value=state.ratio, unit="slots")
    yield Step(words="request slots", value=state.slots, unit="slots")
    yield _bytes("recurrent state, with one padding slot", state.state_bytes)
    if state.fixed_bytes:
        yield _bytes("replay ring of the running requests", state.fixed_bytes)
    if state.scratch_bytes:
        yield _bytes("states that a verify step keeps", state.scratch_bytes)


def _tokens(inputs: PoolInputs, cells: TokenBytes, sizing: PoolSizing, rest_bytes: Span) -> Iterator[Step]:
    kv_bytes = sizing.kv_bytes(rest_bytes.point / 2**30)
    rows = sizing.rows(rest_bytes.point / 2**30)
    yield _bytes("left for KV", kv_bytes)
    yield _bytes("KV of one token of the target", cells.target)
    if inputs.algorithm is not None:
        yield _bytes("charged per token for the drafter", cells.charged)
    yield Step(words="whole pages of tokens that fit", value=rows, unit="tokens")
    if sizing.most_tokens is not None:
        yield Step(words="cap by --max-total-tokens", value=sizing.most_tokens, unit="tokens")
    yield Step(words="max_total_num_tokens", value=rows * sizing.reported_per_row, unit="tokens")
    if cells.drafter:
        pool = (rows + inputs.page) * cells.drafter_rows * cells.drafter
        yield _bytes("KV of one token of the drafter", cells.drafter)
        yield _bytes("the drafter's pool", pool)
        yield _bytes("of it not kept by the charge", pool - rows * cells.charged)


def _bytes(words: str, value: float) -> Step:
    return Step(words=words, value=round(value), unit="bytes")


def warnings_of(
    inputs: PoolInputs,
    cells: TokenBytes,
    *,
    unpriced_bytes: int,
    slack_bytes: float,
    tokens: int,
    may_refuse: bool,
    cost: TokenCost | None,
) -> Iterator[str]:
    """What a reader of the prediction must mind, most pressing first."""
    if may_refuse:
        yield "at the lower bound of the memory the engine refuses to start"
    padding = inputs.page * cells.drafter_rows * cells.drafter
    if unpriced_bytes > padding:
        yield (
            f"{unpriced_bytes} bytes of the drafter's pool are not charged: they must fit beside activations and "
            f"graphs in the {round(slack_bytes)} bytes that mem_fraction_static leaves"
        )
    if unpriced_bytes < 0:
        yield f"{-unpriced_bytes} bytes are kept for the drafter's pool beyond what it takes, and lie idle"
    if cost is not None and cost.state_tokens < -_NOTABLE_SHARE * tokens:
        yield (
            f"speculation moves {-cost.state_tokens} tokens of memory from recurrent state to KV: the plan of slots "
            "sets aside more for the states of a verify step than the running requests take"
        )
    if inputs.target is not None and inputs.target.is_sparse and inputs.target_element_bytes == 1:
        yield "the bytes of a sparse latent in fp8 follow the attention backend: scaled ones take more than plain ones"
    if inputs.decode_context_parallel > 1 and inputs.read_release == "0.5.18":
        yield "under decode context parallelism SGLang 0.5.18 reports the rows of one rank"
    memory = inputs.memory
    if memory.certainty is not Certainty.ESTIMATE and memory.after_load is None and not memory.other.high:
        yield "nothing but the weights is taken to be allocated before the pool is sized"
    if inputs.post_capture_sizing:
        yield "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING has no effect on this target"
