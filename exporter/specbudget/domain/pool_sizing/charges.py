"""What one token costs: in the target's pool, as the engine charges it for the drafter, and in the drafter's pool."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.drafter_cost import charged_bytes_per_token
from specbudget.domain.kv_geometry import bytes_per_token
from specbudget.domain.pool_sizing.inputs import PoolInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBytes:
    """Bytes per token on one device. `drafter` is of one row of its pool, which has `drafter_rows` per target row."""

    target: int
    charged: int
    drafter: int
    drafter_rows: int

    @property
    def cell(self) -> int:
        """What the engine divides its memory by."""
        return self.target + self.charged


def token_bytes(inputs: PoolInputs) -> TokenBytes | None:
    """The bytes per token of a deployment; None where the engine's charge is not known."""
    if inputs.target is None or inputs.target_element_bytes is None:
        return None
    target = bytes_per_token(
        inputs.target,
        tensor_parallel=inputs.target_ranks,
        element_bytes=inputs.target_element_bytes,
        scaled_fp8_latent=inputs.scaled_fp8_latent,
    )
    algorithm, drafter, element = inputs.algorithm, inputs.drafter, inputs.drafter_element_bytes
    if algorithm is None or algorithm is DraftAlgorithm.NGRAM or drafter is None or element is None:
        return TokenBytes(target=target, charged=0, drafter=0, drafter_rows=0)
    charged = charged_bytes_per_token(
        algorithm,
        version=inputs.release,
        target=inputs.target,
        drafter=drafter,
        tensor_parallel=inputs.tensor_parallel,
        # a block drafter is charged by its own split, the other families by the target's bytes
        attention_tensor_parallel=inputs.attention_ranks if algorithm.is_block else inputs.target_ranks,
        target_element_bytes=inputs.target_element_bytes,
        drafter_element_bytes=element,
        nextn_layers=inputs.nextn_layers,
        own_path=inputs.own_path,
        scaled_fp8_latent=inputs.scaled_fp8_latent,
    )
    if charged is None:
        return None
    # a drafter is not split over decode-context ranks: each holds the rows of all
    rows = inputs.decode_context_parallel
    return TokenBytes(
        target=target,
        charged=charged * rows if algorithm.is_block else charged,
        drafter=bytes_per_token(
            drafter,
            tensor_parallel=inputs.attention_ranks,
            element_bytes=element,
            scaled_fp8_latent=inputs.scaled_fp8_latent and element == 1,
        ),
        drafter_rows=rows,
    )
