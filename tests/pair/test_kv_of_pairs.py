"""What turns tokens into bytes under context parallelism and with a sparse target in fp8."""

from __future__ import annotations

from specbudget.budget.model import Budget
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, ModelGeometry
from specbudget.domain.observation import EngineFacts
from specbudget.domain.sizing_arguments import SizingArguments
from specbudget.pair.kv import ModelFacts, Pair

DENSE = ModelFacts(geometry=ModelGeometry(layers=(AttentionLayer(kv_heads=8, head_dim=128, v_head_dim=128),) * 4))
SPARSE = ModelFacts(
    geometry=ModelGeometry(layers=(LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128),) * 61)
)


def pair(target: ModelFacts, *, kv_dtype: str = "bfloat16", **sizing: int | str) -> Pair:
    """A pair of eight ranks."""
    facts = EngineFacts(
        version="0.5.23",
        tensor_parallel=8,
        kv_dtype=kv_dtype,
        sizing=SizingArguments(**sizing),  # type: ignore[arg-type]
    )
    budget = Budget.model_validate({"service": "chat"})
    return Pair(target=target, drafter=DENSE, algorithm=DraftAlgorithm.DFLASH, facts=facts, budget=budget)


def test_ranks_of_one_context_group_hold_the_same_heads() -> None:
    """Eight heads over eight ranks are one each; with two ranks per context each holds two, of the target alone."""
    one = 4 * 1 * 256 * 2
    assert pair(DENSE).target_token_bytes == one
    assert pair(DENSE, dcp_size=2).target_token_bytes == 2 * one
    assert pair(DENSE, attn_cp_size=2).target_token_bytes == 2 * one
    # the drafter keeps the rows of both
    assert pair(DENSE, dcp_size=2).charged_token_bytes(one) == 2 * one


def test_a_sparse_target_in_fp8_keeps_scales() -> None:
    """512 B fp8, 16 B of scales, 64 x 2 B rope and 132 B of index keys in each of 61 layers."""
    backends = {"dsa_prefill_backend": "flashmla_sparse", "dsa_decode_backend": "flashmla_kv"}
    assert pair(SPARSE, kv_dtype="fp8_e4m3", **backends).target_token_bytes == (512 + 16 + 128 + 132) * 61
    # which of the two layouts it is hangs on the backend
    assert pair(SPARSE, kv_dtype="fp8_e4m3").target_token_bytes is None
    assert pair(SPARSE).target_token_bytes == (576 * 2 + 132) * 61
