"""What an engine really loads of a checkpoint, in total and on one device.

Sources: SGLang 0.5.18 and 0.5.23 `models/dspark.py`, `models/dflash.py` (skipped tensors), 0.5.23
`models/deepseek_v4_dspark.py` and `models/dspark_minimax.py` (drafters inside their target), `models/llama.py`
and `models/llama_eagle3.py` (copies that are freed), `speculative/eagle_worker_v2.py` (`init_lm_head`) and
`speculative/standalone_worker_v2.py` (which frees nothing), `layers/vocab_parallel_embedding.py` (padding).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, kv_element_bytes, kv_heads_per_device, serving_dtype
from specbudget.sources.checkpoint.model import Checkpoint, Sharding, TensorPart

_VOCABULARY_PADDING = 64


class Role(StrEnum):
    """Which side of the pair a checkpoint is loaded as; a bundled MTP head makes one checkpoint both."""

    TARGET = "target"
    DRAFTER = "drafter"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWeights:
    """Totals over all ranks of one copy of the model.

    `charged_*` is what is allocated while the engine sizes its KV pool: an EAGLE or MTP drafter still holds
    its own embedding and head then. `resident_*` is what stays.
    """

    charged_parameters: int
    charged_bytes: int
    resident_parameters: int
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWeights:
    """Bytes on one device of a tensor-parallel group, charged and resident as in `LoadedWeights`."""

    charged_bytes: int
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Tensors that are loaded: how they are spread, and whether they stay. `rows` only for vocabulary
    tensors.
    """

    sharding: Sharding
    parameters: int
    bytes: int
    stays: bool
    rows: int | None = None


def loaded_weights(checkpoint: Checkpoint, algorithm: DraftAlgorithm | None, *, role: Role) -> LoadedWeights | None:
    """Parameters and bytes that are loaded; None when the tensors are not known, or for an n-gram drafter's
    role.

    `algorithm` decides for a drafter what is skipped and freed; without it nothing can be said of a drafter.
    """
    pieces = _pieces(checkpoint, algorithm, role)
    if pieces is None:
        return None
    stay = [piece for piece in pieces if piece.stays]
    return LoadedWeights(
        charged_parameters=sum(piece.parameters for piece in pieces),
        charged_bytes=sum(piece.bytes for piece in pieces),
        resident_parameters=sum(piece.parameters for piece in stay),
        resident_bytes=sum(piece.bytes for piece in stay),
    )


def weights_per_device(
    checkpoint: Checkpoint,
    algorithm: DraftAlgorithm | None,
    tensor_parallel: int,
    role: Role,
    *,
    attention_data_parallel: int = 1,
) -> DeviceWeights | None:
    """Bytes on one device; None when they cannot be computed, as with tensors of unknown sharding.

    Attention-DP replicates the attention weights over its groups, which needs their share and is not
    computed. Quantised weights are counted as stored: an engine that re-packs them differs by per cent.
    """
    pieces = _pieces(checkpoint, algorithm, role)
    if pieces is None or (attention_data_parallel > 1 and tensor_parallel > 1):
        return None
    charged = resident = 0
    for piece in pieces:
        size = _device_bytes(checkpoint, piece, tensor_parallel)
        if size is None:
            return None
        charged += size
        resident += size if piece.stays else 0
    return DeviceWeights(charged_bytes=charged, resident_bytes=resident)


def _pieces(checkpoint: Checkpoint, algorithm: DraftAlgorithm | None, role: Role) -> list[_Piece] | None:
    if checkpoint.tensor_groups is None or checkpoint.facts is None:
        return None
    if role is Role.TARGET:
        tied = checkpoint.facts.tie_word_embeddings is True
        pieces = list(_stored(checkpoint, (TensorPart.BODY,)))
        pieces += _vocabulary(checkpoint, TensorPart.EMBEDDING, stays=True)
        if not tied:
            pieces += _vocabulary(checkpoint, TensorPart.HEAD, stays=True)
        return pieces
    match algorithm:
        case None | DraftAlgorithm.NGRAM:
            return None
        case DraftAlgorithm.DSPARK | DraftAlgorithm.DFLASH:
            if checkpoint.facts.bundles_dspark or _has(checkpoint, TensorPart.DSPARK):
                return _bundled_block_drafter(checkpoint)
            return _block_drafter(checkpoint)
        case _:
            return _chain_drafter(checkpoint, algorithm)


def _block_drafter(checkpoint: Checkpoint) -> list[_Piece]:
    """Embedding and head are the target's. Only attention and MLP are parallel, all other modules are plain."""
    pieces = _plain_where_unknown(_stored(checkpoint, (TensorPart.BODY, TensorPart.MTP)))
    if _keeps_embedding(checkpoint):
        pieces += _vocabulary(checkpoint, TensorPart.EMBEDDING, stays=True)
    return pieces


def _bundled_block_drafter(checkpoint: Checkpoint) -> list[_Piece] | None:
    """The drafter's part of a target's own files; copies of embedding and head in it are never loaded.

    DeepSeek V4 keeps it under `mtp.`, where its modules are those of the target, MiniMax M3 under `dspark.`. None
    where no name tells.
    """
    if _has(checkpoint, TensorPart.DSPARK):
        return _plain_where_unknown(_stored(checkpoint, (TensorPart.DSPARK,)))
    return list(_stored(checkpoint, (TensorPart.MTP,))) or None


def _plain_where_unknown(pieces: Iterable[_Piece]) -> list[_Piece]:
    return [
        replace(piece, sharding=Sharding.REPLICATED) if piece.sharding is Sharding.UNKNOWN else piece
        for piece in pieces
    ]


def _keeps_embedding(checkpoint: Checkpoint) -> bool:
    """Nemotron 3.5's drafts own their embedding (`is_nemotron_35_draft_config`)."""
    facts = checkpoint.facts
    return (
        facts is not None
        and not {"DFlashDraftModel", "Qwen3DSparkModel"}.isdisjoint(facts.architectures or ())
        and facts.has_embed_tokens is True
        and facts.has_lm_head is not True
        and facts.quantization_method == "W4A16_NVFP4"
    )


def _chain_drafter(checkpoint: Checkpoint, algorithm: DraftAlgorithm) -> list[_Piece] | None:
    facts = checkpoint.facts
    if facts is None:
        return None
    bundled = algorithm in (DraftAlgorithm.MTP, DraftAlgorithm.EAGLE) and _has(checkpoint, TensorPart.MTP)
    pieces = list(_stored(checkpoint, (TensorPart.MTP,) if bundled else (TensorPart.BODY,)))
    own_width = (
        algorithm is DraftAlgorithm.EAGLE3
        and facts.target_hidden_size is not None
        and facts.target_hidden_size != facts.hidden_size
    )
    keeps_embedding = algorithm is DraftAlgorithm.STANDALONE or own_width
    keeps_head = algorithm is DraftAlgorithm.STANDALONE or (
        algorithm is DraftAlgorithm.EAGLE3 and facts.draft_vocab_size is not None
    )
    embedding = _vocabulary(checkpoint, TensorPart.EMBEDDING, stays=keeps_embedding)
    head_rows = facts.vocab_size if facts.draft_vocab_size is None else facts.draft_vocab_size
    embedding = embedding or _allocated(checkpoint, facts.vocab_size, stays=keeps_embedding)
    if not embedding:
        return None
    pieces += embedding
    if facts.tie_word_embeddings is True:
        return pieces
    head = _vocabulary(checkpoint, TensorPart.HEAD, stays=keeps_head)
    head = head or _allocated(checkpoint, head_rows, stays=keeps_head)
    return [*pieces, *head] if head else None


def _has(checkpoint: Checkpoint, part: TensorPart) -> bool:
    return any(group.part is part for group in checkpoint.tensor_groups or ())


def _stored(checkpoint: Checkpoint, parts: Iterable[TensorPart]) -> Iterable[_Piece]:
    wanted = tuple(parts)
    for group in checkpoint.tensor_groups or ():
        if group.part in wanted:
            size = _served_bytes(checkpoint, group.dtype, group.parameters, group.bytes)
            yield _Piece(sharding=group.sharding, parameters=group.parameters, bytes=size, stays=True)


def _vocabulary(checkpoint: Checkpoint, part: TensorPart, *, stays: bool) -> list[_Piece]:
    """Embedding or head as stored; empty when the checkpoint has none."""
    rows = None
    for module in ("embed_tokens", "word_embeddings") if part is TensorPart.EMBEDDING else ("lm_head",):
        mark = checkpoint.landmark(module)
        if mark is not None and len(mark.shape) == 2:
            rows = mark.shape[0]
    return [
        _Piece(
            sharding=Sharding.VOCABULARY,
            parameters=group.parameters,
            bytes=_served_bytes(checkpoint, group.dtype, group.parameters, group.bytes),
            stays=stays,
            rows=rows,
        )
        for group in checkpoint.tensor_groups or ()
        if group.part is part
    ]


def _allocated(checkpoint: Checkpoint, rows: int | None, *, stays: bool) -> list[_Piece]:
    """An embedding or head that the engine allocates although the checkpoint does not store it."""
    hidden = None if checkpoint.facts is None else checkpoint.facts.hidden_size
    element = kv_element_bytes("auto", model_dtype=_model_dtype(checkpoint))
    if rows is None or hidden is None or element is None:
        return []
    count = rows * hidden
    return [_Piece(sharding=Sharding.VOCABULARY, parameters=count, bytes=count * element, stays=stays, rows=rows)]


def _model_dtype(checkpoint: Checkpoint) -> str | None:
    config = None if checkpoint.facts is None else checkpoint.facts.dtype
    return config or checkpoint.dtype


def _served_bytes(checkpoint: Checkpoint, dtype: str, parameters: int, stored: int) -> int:
    """A model stored in float32 as a whole is served in 16 bit; single float32 tensors of others stay."""
    if dtype != "F32" or checkpoint.dtype != "float32":
        return stored
    element = kv_element_bytes(serving_dtype(_model_dtype(checkpoint) or "float32"))
    return stored if element is None else parameters * element


def _device_bytes(checkpoint: Checkpoint, piece: _Piece, ranks: int) -> int | None:
    if ranks == 1:
        return piece.bytes
    match piece.sharding:
        case Sharding.REPLICATED:
            return piece.bytes
        case Sharding.SPLIT:
            return -(-piece.bytes // ranks)
        case Sharding.VOCABULARY:
            return _vocabulary_bytes(piece, ranks)
        case Sharding.KV | Sharding.QKV:
            return _head_bytes(checkpoint, piece, ranks)
        case Sharding.UNKNOWN:
            return None


def _vocabulary_bytes(piece: _Piece, ranks: int) -> int:
    """Rows are padded to whole blocks before they are split; tensors beside the matrix (scales) are just
    split.
    """
    if piece.rows is None or piece.rows == 0 or piece.bytes % piece.rows:
        return -(-piece.bytes // ranks)
    block = _VOCABULARY_PADDING
    if -(-piece.rows // block) * block % ranks:
        block *= ranks
    return -(-piece.rows // block) * block // ranks * (piece.bytes // piece.rows)


def _head_bytes(checkpoint: Checkpoint, piece: _Piece, ranks: int) -> int | None:
    """KV heads are replicated once there are more ranks than heads."""
    facts, geometry = checkpoint.facts, checkpoint.geometry
    layers = () if geometry is None else geometry.kv_layers
    heads = {layer.kv_heads for layer in layers if isinstance(layer, AttentionLayer)}
    if not heads or all(kv_heads_per_device(count, ranks) * ranks == count for count in heads):
        # Latent and linear layers split these projections by query heads.
        return -(-piece.bytes // ranks)
    if len(heads) > 1:
        return None
    count = heads.pop()
    kept = kv_heads_per_device(count, ranks)
    if piece.sharding is Sharding.KV:
        return piece.bytes * kept // count
    queries = None if facts is None else facts.num_attention_heads
    if queries is None:
        return None
    return round(piece.bytes * (queries / ranks + 2 * kept) / (queries + 2 * count))
