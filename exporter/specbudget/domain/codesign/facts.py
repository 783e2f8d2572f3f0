"""The plain facts of a pair that the rules read. None: not known. An empty tuple: known to be none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from specbudget.domain.codesign.content import TokenComparison, VocabularyMap
from specbudget.domain.codesign.launch import EngineFlags
from specbudget.domain.drafter import DraftAlgorithm

FIRST_READ = (0, 5, 18)
LAST_READ = (0, 5, 23)
"""The releases of SGLang whose sources the rules were read from."""

_EMPTY: Mapping[str, str] = MappingProxyType({})


def _fact(words: str) -> Any:
    """A fact that is None until it is known; `words` say what to supply when it is missing."""
    return field(default=None, metadata={"words": words})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary fields of a config: base frequency, rotated share of the head, and the scaling's type."""

    theta: float | None = None
    partial: float | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """Steps, branches and draft tokens of one verify step, the anchor included."""

    steps: int | None = None
    topk: int | None = None
    draft_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TapStatement:
    """One list of tapped layers, under the dotted key at which the drafter's config states it."""

    key: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """The target. `layers` counts a looped model's layers once per loop, as taps do. `numbered_layers`
    are those that its tensors are numbered by, prediction layers included; None for a looped model.

    `nextn_layers` are prediction layers in its own checkpoint. `kv_heads` is None where its KV is not of heads, or of
    differing numbers of them. `kv_scales` says whether the checkpoint has scales for a quantised KV, `kv_quantization`
    the KV dtype that its quantisation asks for.
    """

    name: str | None = None
    architecture: str | None = _fact("architectures in the target's config.json")
    model_type: str | None = None
    layers: int | None = _fact("num_hidden_layers in the target's config.json")
    hidden: int | None = _fact("hidden_size in the target's config.json")
    numbered_layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocab: int | None = _fact("vocab_size in the target's config.json")
    positions: int | None = _fact("max_position_embeddings in the target's config.json")
    rope: Rope | None = None
    quantization: str | None = None
    nextn_layers: int | None = None
    dtype: str | None = None
    kv_quantization: str | None = None
    kv_scales: bool | None = None
    linear_layers: int | None = _fact("the target's layer kinds in its config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterFacts:
    """The drafter.

    `taps` are all statements of tapped layers in its config. `fc` is the shape of the fused projection as (out, in).
    `dtypes` are the safetensors names of its body's matrices. `weights_known` says whether tensors were read, so
    that an absent one is known to be absent. `bundled`: the drafter is part of the target's checkpoint, whose config
    then describes a block drafter (`bundled_block`) or whose folder holds one (`bundled_folder`).
    `sample_from_anchor`: whether the first slot of the block is a draft, None where the config does not say.
    `unseen`: it is a checkpoint of its own that the budget does not name, so that nothing of it is known.
    `vocabulary_bytes` are those of its embedding and head as stored; `windowed_layers` attend to a window only.
    """

    architecture: str | None = _fact("architectures in the drafter's config.json")
    model_type: str | None = None
    stated_algorithm: DraftAlgorithm | None = None
    taps: tuple[TapStatement, ...] | None = _fact("a readable config.json of the drafter")
    uses_taps: bool | None = None
    tap_count: int | None = None
    num_target_layers: int | None = None
    block_size: int | None = None
    sample_from_anchor: bool | None = None
    layers: int | None = _fact("num_hidden_layers in the drafter's config.json")
    hidden: int | None = _fact("hidden_size in the drafter's config.json")
    target_hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocab: int | None = _fact("vocab_size in the drafter's config.json")
    draft_vocab: int | None = None
    mask_token_id: int | None = None
    markov_rank: int | None = None
    markov_type: str | None = None
    positions: int | None = _fact("max_position_embeddings in the drafter's config.json")
    rope: Rope | None = None
    quantization: str | None = None
    target_name: str | None = None
    bundled: bool = False
    bundled_block: bool = False
    bundled_folder: bool = False
    unseen: bool = False
    tied: bool | None = None
    weights_known: bool = False
    dtypes: frozenset[str] | None = _fact("the drafter's tensor headers")
    fc: tuple[int, int] | None = _fact("fc.weight in the drafter's tensors")
    own_embedding: bool | None = _fact("the drafter's tensor headers")
    own_head: bool | None = None
    own_confidence: bool | None = None
    vocabulary_map_rows: int | None = None
    vocabulary_map: VocabularyMap | None = None
    vocabulary_bytes: int | None = None
    markov_shape: tuple[int, ...] | None = None
    dtype: str | None = None
    kv_quantization: str | None = None
    kv_scales: bool | None = None
    windowed_layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetup:
    """The engine, as it runs or as it will be started; the running engine's word comes first.

    `running`: it answered, so what it refuses at start did not happen. `num_draft_tokens` is as SGLang reports it,
    the anchor included. `planned_staging` is serial, prefetch or overlap. `draft_tensor_parallel` is what vLLM was
    asked for. `environment` is what the budget says of the engine's. `kv_dtype` and `draft_kv_dtype` are arguments,
    such as auto or fp8_e4m3. `default_shape` is what SGLang will choose of steps, branches and draft tokens where
    none of them is given; None where one is, or where the choice is not known.
    """

    kind: str | None = None
    version: str | None = None
    running: bool = False
    algorithm: DraftAlgorithm | None = None
    num_steps: int | None = None
    num_draft_tokens: int | None = None
    topk: int | None = None
    default_shape: DraftShape | None = None
    adaptive: bool | None = None
    draft_window: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    draft_tensor_parallel: int | None = None
    attention_dp: bool | None = None
    prefill_only: bool = False
    planned_staging: str | None = None
    kv_dtype: str | None = None
    draft_kv_dtype: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    flags: EngineFlags = field(default_factory=EngineFlags)

    @property
    def branches(self) -> int | None:
        """Branches per step, given or chosen by the engine."""
        return self.topk if self.default_shape is None else self.default_shape.topk

    @property
    def branches_words(self) -> str:
        """The branches and who chose them."""
        if self.default_shape is None:
            return f"--speculative-eagle-topk is {self.topk}"
        return f"--speculative-eagle-topk is {self.branches} by the engine's default for this target"

    @property
    def groups(self) -> int:
        """Groups of ranks that attend to requests of their own: data and context parallel ones."""
        data = self.flags.attn_dp_size or self.data_parallel or 1
        return (data if self.attention_dp else 1) * (self.flags.attn_cp_size or 1)

    @property
    def release(self) -> tuple[int, ...] | None:
        """The version as numbers, such as (0, 5, 23); None when unknown or of another form."""
        if self.version is None:
            return None
        parts = self.version.strip().removeprefix("v").split("+")[0].split(".")[:3]
        numbers = tuple(int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 6)
        return numbers if len(numbers) == 3 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFacts:
    """A target, its drafter and the engine. `algorithm` is the one in force, whoever said so.

    `budgeted` is the budget's word. `second_model` is False where the target runs alone, or with n-grams. `tokens`
    is the comparison of their tokenizers; None: nobody compared them.
    """

    algorithm: DraftAlgorithm | None
    target: TargetFacts
    drafter: DrafterFacts
    engine: EngineSetup
    budgeted: DraftAlgorithm | None = None
    second_model: bool = True
    tokens: TokenComparison | None = None


_PARTS: dict[str, Any] = {"target": TargetFacts, "drafter": DrafterFacts, "engine": EngineSetup}


def missing(facts: PairFacts, names: tuple[str, ...]) -> tuple[str, ...]:
    """Of the named facts those that are not known, each as the words that say what to supply."""
    return tuple(dict.fromkeys(fact_words(name) for name in names if attrgetter(name)(facts) is None))


def fact_words(name: str) -> str:
    """What to supply for a fact such as `target.layers`; KeyError for a name that is no fact with words."""
    part, _, key = name.partition(".")
    for declared in fields(_PARTS[part]):
        if declared.name == key and declared.default is not MISSING and "words" in declared.metadata:
            return str(declared.metadata["words"])
    raise KeyError(f"{name} is not a fact that can be required")
