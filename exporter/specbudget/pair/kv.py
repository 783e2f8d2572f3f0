"""A pair's KV as the engine runs it: what turns tokens into bytes, from checkpoints, budget and engine together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specbudget.budget.model import Budget
from specbudget.domain.drafter import DraftAlgorithm, DraftKv, step_rows
from specbudget.domain.drafter_cost import charged_bytes_per_token
from specbudget.domain.kv_geometry import (
    ModelGeometry,
    attention_tensor_parallel,
    bytes_per_token,
    kv_element_bytes,
    serving_dtype,
)
from specbudget.domain.observation import EngineFacts
from specbudget.sources.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a checkpoint says of one model; None where it is not known."""

    geometry: ModelGeometry | None = None
    dtype: str | None = None
    kv_quantization: str | None = None
    quantization: str | None = None
    nextn_layers: int | None = None
    charged_weight_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A target and its drafter as the engine runs them: what turns tokens into bytes."""

    target: ModelFacts
    drafter: ModelFacts
    algorithm: DraftAlgorithm | None
    facts: EngineFacts
    budget: Budget

    @property
    def tensor_parallel(self) -> int:
        """The running engine's word wins over the budget's."""
        return self.facts.tensor_parallel or self.budget.parallelism.tensor

    @property
    def attention_ranks(self) -> int:
        """Ranks that share one copy of the attention heads."""
        groups, context = attention_groups(self.facts, self.budget), self.facts.sizing.attn_cp_size or 1
        return attention_tensor_parallel(self.tensor_parallel, attention_data_parallel=groups, context_parallel=context)

    @property
    def decode_context_parallel(self) -> int:
        """Ranks that each hold a part of every context while decoding."""
        return self.facts.sizing.dcp_size or 1

    @property
    def target_ranks(self) -> int:
        """Ranks over which the target's KV heads are split: those of one decode-context group hold the same."""
        return max(1, self.attention_ranks // self.decode_context_parallel)

    @property
    def target_element_bytes(self) -> int | None:
        """Bytes of one element of the target's KV."""
        return _element_bytes(self.facts.kv_dtype, self.target, self.facts.dtype)

    @property
    def drafter_element_bytes(self) -> int | None:
        """Bytes of one element of the drafter's KV: its own dtype argument, else the target's."""
        return _element_bytes(self.facts.draft_kv_dtype or self.facts.kv_dtype, self.drafter, self.facts.dtype)

    @property
    def pipeline_parallel(self) -> int:
        """The running engine's word wins over the budget's."""
        return self.facts.pipeline_parallel or self.budget.parallelism.pipeline

    @property
    def target_token_bytes(self) -> int | None:
        """KV of one token of the target, per device; with pipeline stages not known, for each has its own layers."""
        element = self.target_element_bytes
        scaled = self.scaled_fp8_latent
        if self.target.geometry is None or element is None or scaled is None or self.pipeline_parallel > 1:
            return None
        return bytes_per_token(
            self.target.geometry,
            tensor_parallel=self.target_ranks,
            element_bytes=element,
            scaled_fp8_latent=scaled,
        )

    @property
    def scaled_fp8_latent(self) -> bool | None:
        """Whether a sparse latent in fp8 has scales beside it; None where the attention backend is not known.

        Source: SGLang 0.5.18 and 0.5.23 mem_cache/kv_cache_configurator.py, on CUDA: trtllm keeps it plain, and
        tilelang, where it serves both phases.
        """
        geometry, dtype = self.target.geometry, (self.facts.kv_dtype or "auto").lower()
        if geometry is None or not geometry.is_sparse or self.target_element_bytes != 1 or "e5m2" in dtype:
            return False
        sizing, role = self.facts.sizing, self.facts.role or self.facts.flags.disaggregation_mode
        prefill, decode = sizing.dsa_prefill_backend, sizing.dsa_decode_backend
        phases = {"prefill": (prefill,), "decode": (decode,)}.get(role or "", (prefill, decode))
        if "trtllm" in phases:
            return False
        if None in phases or (prefill is None and decode == "tilelang") or (decode is None and prefill == "tilelang"):
            return None
        return not prefill == decode == "tilelang"

    def draft_kv(self, page: int, window: int | None) -> DraftKv | None:
        """What sizes the drafter's KV; None where something of it is not known."""
        element = self.drafter_element_bytes
        if self.algorithm is None or self.drafter.geometry is None or element is None:
            return None
        rows = step_rows(
            self.algorithm,
            num_steps=self.facts.num_steps if self.facts.num_steps is not None else _chain_steps(window),
            topk=self.facts.topk,
            num_draft_tokens=self.facts.num_draft_tokens if self.facts.num_draft_tokens is not None else window,
        )
        if rows is None:
            return None
        return DraftKv(
            algorithm=self.algorithm,
            geometry=self.drafter.geometry,
            step_rows=rows,
            tensor_parallel=self.attention_ranks,
            element_bytes=element,
            page=page,
            draft_window=self.facts.draft_window,
            draft_sink=self.facts.draft_sink or 0,
        )

    def charged_token_bytes(self, drafter_token_bytes: int) -> int | None:
        """What the engine takes off the KV budget per token for the drafter.

        For a release whose rule was not read, a block drafter counts with what its pool really costs, which is
        how both known releases charge it; the other families have no such rule, so their charge is not known.
        """
        target_element, drafter_element = self.target_element_bytes, self.drafter_element_bytes
        if self.target.geometry is None or target_element is None or drafter_element is None:
            return None
        charged = charged_bytes_per_token(
            self.algorithm,
            version=self.facts.version or self.budget.engine.version or "",
            target=self.target.geometry,
            drafter=self.drafter.geometry,
            tensor_parallel=self.tensor_parallel,
            attention_tensor_parallel=self.attention_ranks
            if self.algorithm is not None and self.algorithm.is_block
            else self.target_ranks,
            target_element_bytes=target_element,
            drafter_element_bytes=drafter_element,
            nextn_layers=self.drafter.nextn_layers,
            own_path=self.facts.drafter_path is not None or self.budget.drafter.path is not None,
            scaled_fp8_latent=bool(self.scaled_fp8_latent),
        )
        if charged is not None and self.algorithm is not None and self.algorithm.is_block:
            # the drafter is not split over decode-context ranks: each holds the rows of all
            charged *= self.decode_context_parallel
        if charged is None and self.algorithm is not None and self.algorithm.is_block:
            return drafter_token_bytes
        return charged


def attention_groups(facts: EngineFacts, budget: Budget) -> int:
    """Groups of ranks that each hold all attention heads: the data-parallel ranks with attention data parallelism."""
    return (facts.data_parallel or budget.parallelism.data) if facts.attention_dp else 1


def _element_bytes(kv_dtype: str | None, model: ModelFacts, dtype: str | None) -> int | None:
    name = kv_dtype or "auto"
    if name == "auto" and model.kv_quantization is not None:
        name = model.kv_quantization
    if name == "auto" and model.dtype is not None:
        name = serving_dtype(model.dtype, requested=dtype or "auto")
    return kv_element_bytes(name, model_dtype=model.dtype)


def _chain_steps(window: int | None) -> int | None:
    return None if window is None else window - 1


def model_facts(checkpoint: Checkpoint | None) -> ModelFacts:
    """What a checkpoint says of its KV; nothing where there is none."""
    if checkpoint is None:
        return ModelFacts()
    facts = checkpoint.facts
    return ModelFacts(
        geometry=checkpoint.geometry,
        dtype=(facts.dtype if facts is not None else None) or checkpoint.dtype,
        kv_quantization=None if facts is None else facts.kv_quantization,
        quantization=None if facts is None else facts.quantization_method,
        nextn_layers=None if facts is None else facts.num_nextn_predict_layers,
    )


def drafter_model_facts(
    target: Checkpoint | None, drafter: Checkpoint | None, algorithm: DraftAlgorithm | None, weight_bytes: int | None
) -> ModelFacts:
    """The drafter's own checkpoint, or the prediction layers that its checkpoint or the target's carries."""
    holder = drafter if drafter is not None else target
    facts = replace(model_facts(holder), charged_weight_bytes=weight_bytes)
    if holder is None or algorithm is None or not algorithm.is_chain:
        return facts if drafter is not None else ModelFacts()
    if holder.mtp_geometry is not None:
        return replace(facts, geometry=holder.mtp_geometry)
    return facts if drafter is not None else ModelFacts()
