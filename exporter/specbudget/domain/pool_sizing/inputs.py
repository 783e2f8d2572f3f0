"""What decides the size of SGLang's KV pool, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import ModelGeometry, attention_tensor_parallel
from specbudget.domain.pool_sizing.memory import ProfiledMemory

READ_RELEASES = ("0.5.18", "0.5.23")
"""The SGLang releases whose sizing was read; their post releases size alike."""

DEFAULT_RUNNING = 48
"""SGLang sets max_running_requests to this when it is not given and speculation is on."""

MULTIMODAL_EMBEDDING_MIB = 100
"""SGLANG_VLM_CACHE_SIZE_MB by default: what a multimodal model keeps free of KV."""

MULTIMODAL_TRANSPORT_MIB = 1024
"""SGLANG_MM_FEATURE_CACHE_MB by default, kept free besides with the transports cuda_ipc and cuda_vmm."""


def read_release(version: str) -> str | None:
    """Which of the releases that were read a version is; None for another."""
    release = ".".join(version.strip().removeprefix("v").split("+")[0].split(".")[:3])
    return release if release in READ_RELEASES else None


class ExtraBuffer(StrEnum):
    """The radix cache's strategy for recurrent state, resolved from `--mamba-radix-cache-strategy`.

    `auto` becomes `extra_buffer` for the families that support it on the triton backend, with overlap or with pages
    of more than one token, and else `no_buffer`, which turns overlap off (SGLang `_mamba_radix_cache_resolution`).
    """

    NONE = "no_buffer"
    PLAIN = "extra_buffer"
    LAZY = "extra_buffer_lazy"


class ServingRole(StrEnum):
    """What the server does of a request: `--disaggregation-mode`, null being unified."""

    UNIFIED = "unified"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlan:
    """How the engine plans recurrent state.

    `full_memory_ratio` is `--mamba-full-memory-ratio`, state to attention KV; `max_slots` is
    `--max-mamba-cache-size` over all attention-DP ranks. `ssm_bytes` and `conv_bytes` are the size of an element
    where `--mamba-ssm-dtype` or SGLANG_MAMBA_SSM_DTYPE and SGLANG_MAMBA_CONV_DTYPE ask for one. `replay` is
    `--enable-linear-replayssm-spec` with a ring of `replay_records`; `skip_decode_lock` is
    SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK.
    """

    full_memory_ratio: float = 0.9
    max_slots: int | None = None
    ssm_bytes: int | None = None
    conv_bytes: int | None = None
    extra_buffer: ExtraBuffer = ExtraBuffer.PLAIN
    replay: bool = False
    replay_records: int = 16
    skip_decode_lock: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolInputs:
    """One deployment, its arguments resolved as the engine resolves them.

    `algorithm` None is a run without speculation. `draft_tokens` is speculative_num_draft_tokens, the largest one
    where it adapts. Element sizes are of the KV, None where its dtype has no plain size. `fraction` is
    mem_fraction_static, None where it is not given and cannot be derived; `fraction_estimated` says that it was
    derived. `reserved_mib` is what is kept for multimodal inputs. `max_running` and `max_tokens` are
    `--max-running-requests` and `--max-total-tokens` as given, None for not given. `nextn_layers` and `own_path` are
    those of `charged_bytes_per_token`. `other_layouts` names arguments in force that lay the pools out in another way.
    """

    release: str
    memory: ProfiledMemory
    target: ModelGeometry | None
    drafter: ModelGeometry | None = None
    algorithm: DraftAlgorithm | None = None
    draft_tokens: int | None = None
    engine: str = "sglang"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    attention_data_parallel: int = 1
    context_parallel: int = 1
    decode_context_parallel: int = 1
    page: int = 1
    target_element_bytes: int | None = 2
    drafter_element_bytes: int | None = 2
    scaled_fp8_latent: bool = False
    fraction: float | None = None
    fraction_estimated: bool = False
    reserved_mib: int = 0
    max_running: int | None = None
    max_tokens: int | None = None
    context_length: int | None = None
    radix_cache: bool = True
    overlap_schedule: bool = True
    state: StatePlan = StatePlan()
    own_path: bool = True
    nextn_layers: int | None = None
    post_capture_sizing: bool = False
    role: ServingRole = ServingRole.UNIFIED
    hierarchical_cache: bool = False
    other_layouts: tuple[str, ...] = ()

    @property
    def read_release(self) -> str | None:
        """Which of the releases that were read this one is; None for another."""
        return read_release(self.release)

    @property
    def attention_ranks(self) -> int:
        """Ranks that share one copy of the attention heads."""
        return attention_tensor_parallel(
            self.tensor_parallel,
            attention_data_parallel=self.attention_data_parallel,
            context_parallel=self.context_parallel,
        )

    @property
    def target_ranks(self) -> int:
        """Ranks over which the target's KV heads are split: those of one decode-context group hold the same."""
        return max(1, self.attention_ranks // self.decode_context_parallel)

    def running_per_rank(self, *, speculative: bool) -> int | None:
        """The requests one data-parallel rank may run by its arguments; None for no limit."""
        running = self.max_running
        if running is None:
            running = DEFAULT_RUNNING if speculative else None
        if running is None:
            return None
        share = running // self.attention_data_parallel
        return share if self.read_release == "0.5.18" else max(1, share)
