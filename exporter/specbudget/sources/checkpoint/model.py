"""What is known about a checkpoint once its folder has been read. Values only; nothing here reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from specbudget.domain.kv_geometry import ModelGeometry


class ProblemKind(StrEnum):
    """What is wrong with a file, for those who must tell a broken checkpoint from a sparse one."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    LFS_POINTER = "lfs_pointer"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    INCOMPLETE = "incomplete"
    """The files are sound, but a fact that the geometry needs is not in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointProblem:
    """One thing that is wrong: the file, the key or tensor in it where there is one, and what to do."""

    file: Path
    key: str | None = None
    message: str
    kind: ProblemKind

    def __str__(self) -> str:
        place = f"{self.file}: {self.key}" if self.key else str(self.file)
        # Names of files come from an index or a folder: nothing in them may reach a terminal as a command.
        return "".join(char if char.isprintable() else "?" for char in f"{place}: {self.message}")


class CheckpointError(Exception):
    """A file cannot be used; carries the problem. Never leaves this package."""

    def __init__(self, problem: CheckpointProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class TensorPart(StrEnum):
    """What a tensor belongs to."""

    EMBEDDING = "embedding"
    HEAD = "head"
    BODY = "body"
    MTP = "mtp"
    """The multi-token-prediction layers bundled with a target."""
    MTP_COPY = "mtp_copy"
    """Embedding or head stored once more beside the MTP layers or the bundled block drafter."""
    DSPARK = "dspark"
    """A block drafter bundled with a target under names of its own (`dspark.`)."""
    SIDE = "side"
    """Vocabulary maps (d2t, t2d) and rotary caches: stored, never a parameter of the model."""


class Unused(StrEnum):
    """Why weights on disk are not loaded."""

    STALE = "stale"
    COPY = "copy"
    UNINDEXED_COPY = "unindexed_copy"
    OTHER_SPLIT = "other_split"
    PICKLE = "pickle"
    GGUF = "gguf"
    OTHER_FORMAT = "other_format"
    UNFINISHED = "unfinished"

    @property
    def words(self) -> str:
        """The reason for people."""
        return _UNUSED_WORDS[self]


_UNUSED_WORDS = {
    Unused.STALE: "the index does not name it",
    Unused.COPY: "a second copy of the weights",
    Unused.UNINDEXED_COPY: "beside model.safetensors; without an index SGLang loads it as well",
    Unused.OTHER_SPLIT: "a shard of another split than the index's",
    Unused.PICKLE: "pickled, beside safetensors",
    Unused.GGUF: "GGUF, loaded only when it is asked for by name",
    Unused.OTHER_FORMAT: "of a format that the engine does not load",
    Unused.UNFINISHED: "left over from a download that did not end",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLoaded:
    """Weights on disk that no engine loads: name in the folder, file bytes (None when unknown) and reason."""

    name: str
    bytes: int | None
    why: Unused


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFolder:
    """A drafter with a config of its own in a folder inside the target's.

    `read_without_path` says whether SGLang 0.5.23 finds it when no drafter path is given; one that it does not find
    must be named by path.
    """

    path: Path
    read_without_path: bool


class Sharding(StrEnum):
    """How SGLang places a tensor over tensor-parallel ranks."""

    SPLIT = "split"
    KV = "kv"
    """Split by KV heads: k_proj, v_proj."""
    QKV = "qkv"
    """Queries, keys and values stored as one."""
    VOCABULARY = "vocabulary"
    REPLICATED = "replicated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """All tensors of one part, sharding and dtype, as sums; dtype is a safetensors name such as BF16.

    `parameters` are stored elements; `logical` are weights of the model, with packed ones counted out and scales left
    out.
    """

    part: TensorPart
    sharding: Sharding
    dtype: str
    tensors: int
    parameters: int
    bytes: int
    logical: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Landmark:
    """A tensor whose shape or place others need: embedding, head, fc, vocabulary maps.

    `file` and the byte range `begin`-`end` in it locate the data; this package never reads it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFacts:
    """Facts of config.json; None when absent or of the wrong type.

    `found` says where each fact stood, such as ("block_size", "dflash_config.block_size").
    """

    architectures: tuple[str, ...] | None = None
    model_type: str | None = None
    dtype: str | None = None
    num_hidden_layers: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    max_position_embeddings: int | None = None
    sliding_window: int | None = None
    tie_word_embeddings: bool | None = None
    num_nextn_predict_layers: int | None = None
    block_size: int | None = None
    target_layer_ids: tuple[int, ...] | None = None
    num_target_layers: int | None = None
    mask_token_id: int | None = None
    markov_rank: int | None = None
    markov_head_type: str | None = None
    confidence_head: bool | None = None
    confidence_with_markov: bool | None = None
    attention_bias: bool | None = None
    extra_modules: bool = False
    """Whether a block drafter has modules beside the plain ones: convolutions, a selector, sinks, Domino's."""
    projector_type: str | None = None
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
    bundles_dspark: bool = False
    """Whether `dspark_*` keys say that the drafter lies in this checkpoint's own files."""
    has_embed_tokens: bool | None = None
    has_lm_head: bool | None = None
    """What a Nemotron drafter says of its own matrices."""
    algorithm: str | None = None
    """The word of a speculators-format config, such as dspark."""
    target_name: str | None = None
    """The target that the config itself records, as a repository name or a path."""
    quantization_method: str | None = None
    kv_quantization: str | None = None
    """The KV dtype that the quantisation asks for; with an `auto` KV dtype the engine follows it."""
    found: tuple[tuple[str, str], ...] = ()

    def where(self, fact: str) -> str | None:
        """The dotted key under which a fact was found; None when it was not."""
        return dict(self.found).get(fact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """SHA-256 by part, in hexadecimal: the config whatever its spacing, the index and the headers as they stand."""

    config: str | None = None
    index: str | None = None
    headers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint folder. Anything not readable is None and named in `problems`.

    Bytes are said of two things: files (`disk_bytes`, `not_loaded_bytes`) as the file system has them, and tensors
    (`tensor_bytes`, `present_bytes`, `declared_bytes`), which are the data without headers.
    """

    path: Path
    architecture: str | None = None
    dtype: str | None = None
    """The dtype most weight bytes have, as torch names it; the config's without tensors."""
    storage: str | None = None
    """`dtype` in words that say what packed elements hold, such as `gptq int4 in int32`."""
    facts: ConfigFacts | None = None
    geometry: ModelGeometry | None = None
    mtp_geometry: ModelGeometry | None = None
    """Geometry of the bundled MTP layers as a drafter; None when the config declares none."""
    disk_bytes: int | None = None
    """Bytes of the files that are loaded; None unless all of them are there and whole."""
    tensor_bytes: int | None = None
    """Bytes of the tensors in them, as the headers say."""
    declared_bytes: int | None = None
    """Bytes of tensors that the index declares (`metadata.total_size`); it may be absent, and wrong."""
    present_bytes: int | None = None
    """Bytes of the tensors in those files that are there and whole; None without weights."""
    kv_scales: bool | None = None
    """Whether there are scales for a quantised KV, by the headers or else by the index; None when neither is known."""
    shards: int = 0
    """Files that hold the weights, whether they are there or not."""
    missing: tuple[str, ...] = ()
    """Names of the first files that are not there."""
    missing_count: int = 0
    not_loaded: tuple[NotLoaded, ...] = ()
    """Weights that are there and not loaded, the largest ones."""
    not_loaded_count: int = 0
    not_loaded_bytes: int = 0
    """Number and file bytes of all of them."""
    bundled: tuple[BundledFolder, ...] = ()
    """Drafters in folders of their own inside this one."""
    tokenizers: tuple[str, ...] = ()
    """Files of the tokenizer that are there."""
    parameters: int | None = None
    """Elements over all tensors, as the headers say; with `packed` the logical count is larger."""
    logical_parameters: int | None = None
    """Weights of the model: packed elements counted out, scales and vocabulary maps left out; None where the format
    does not tell.
    """
    packed: bool = False
    tensor_groups: tuple[TensorGroup, ...] | None = None
    numbered_layers: int | None = None
    unclassified: tuple[str, ...] = ()
    """Examples of tensor names whose sharding is not known."""
    landmarks: tuple[Landmark, ...] = ()
    fingerprint: str | None = None
    digests: Digests = field(default_factory=Digests)
    problems: tuple[CheckpointProblem, ...] = ()

    def landmark(self, module: str) -> Landmark | None:
        """The landmark of a module, such as `embed_tokens`, `lm_head`, `fc`, `d2t`; None when absent."""
        for mark in self.landmarks:
            if module in mark.name.split("."):
                return mark
        return None
