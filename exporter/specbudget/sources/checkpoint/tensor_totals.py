"""Sum the tensors of a checkpoint into groups as they stream by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from specbudget.sources.checkpoint.kv_scale_names import is_kv_scale
from specbudget.sources.checkpoint.model import Landmark, Sharding, TensorGroup, TensorPart
from specbudget.sources.checkpoint.placement import place
from specbudget.sources.checkpoint.tensor_header import Tensor, readable_name

_LANDMARKS = frozenset(
    {"fc", "d2t", "t2d", "embed_tokens", "word_embeddings", "lm_head", "markov_w1", "confidence_head"}
)
_MOST_LANDMARKS = 16
_MOST_EXAMPLES = 5
_HASH_BLOCK = 2**20
_PACKED_DTYPES = frozenset({"I32", "U8"})
"""Matrices of these hold several quantised elements in each stored one."""
_TORCH_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "BOOL": "bool",
}


class Hash(Protocol):
    """The part of hashlib that is needed."""

    def update(self, data: bytes | bytearray, /) -> None: ...


_LAYER = re.compile(rb"(?:^\"|\.)(?:layers|h|blocks)\.(\d{1,9})\.")
_DIGITS = b"0123456789"
_DIGIT_IN_WORD = re.compile(rb"[A-Za-z_]\d|\d[A-Za-z_]")
_MOST_CACHED = 20_000


@dataclass(slots=True)
class _Sum:
    tensors: int = 0
    parameters: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Family:
    """Tensors whose names differ in layer and expert numbers only."""

    sum: _Sum
    landmark: bool


class TensorTotals:
    """Running sums; memory does not grow with the number of tensors.

    Layers from `num_hidden_layers` on are bundled MTP layers.
    """

    def __init__(self, num_hidden_layers: int | None, digest: Hash) -> None:
        self._layers = num_hidden_layers
        self._digest = digest
        self._families: dict[tuple[bytes, str, bool, bool], _Family] = {}
        self._sums: dict[tuple[TensorPart, Sharding, str], _Sum] = {}
        self.landmarks: list[Landmark] = []
        self.unclassified: list[str] = []
        self.packed = False
        self.kv_scales = False

    def add_file(self, tensors: Iterable[Tensor], file: Path) -> int:
        """Take the tensors of one file into the sums; returns how many there were."""
        count = 0
        text = bytearray()
        try:
            for tensor in tensors:
                self._add(tensor, file)
                text += b"%b %b %b\n" % (tensor.raw_name, tensor.dtype.encode(), repr(tensor.shape).encode())
                if len(text) > _HASH_BLOCK:
                    self._digest.update(text)
                    text.clear()
                count += 1
        finally:
            self._digest.update(text)
        return count

    def _add(self, tensor: Tensor, file: Path) -> None:
        raw = tensor.raw_name
        # Numbers within words, as in w1 and d2t, tell tensors apart; those of layers and experts do not.
        stem = raw if _DIGIT_IN_WORD.search(raw) else raw.translate(None, _DIGITS)
        key = (stem, tensor.dtype, len(tensor.shape) < 2, self._is_extra_layer(raw))
        family = self._families.get(key)
        if family is None:
            family = self._new_family(tensor, extra_layer=key[3])
            if len(self._families) < _MOST_CACHED:
                self._families[key] = family
        total = family.sum
        total.tensors += 1
        total.parameters += tensor.parameters
        total.bytes += tensor.end - tensor.begin
        if family.landmark and len(self.landmarks) < _MOST_LANDMARKS:
            self.landmarks.append(
                Landmark(
                    name=tensor.name,
                    dtype=tensor.dtype,
                    shape=tensor.shape,
                    file=file,
                    begin=tensor.begin,
                    end=tensor.end,
                )
            )

    def _is_extra_layer(self, raw: bytes) -> bool:
        if self._layers is None:
            return False
        match = _LAYER.search(raw)
        return match is not None and int(match[1]) >= self._layers

    def _new_family(self, tensor: Tensor, *, extra_layer: bool) -> _Family:
        name, dtype = tensor.name, tensor.dtype
        self.kv_scales = self.kv_scales or is_kv_scale(tensor.raw_name)
        flat = len(tensor.shape) < 2
        part, sharding = place(name, flat=flat, extra_layer=extra_layer)
        if part is not TensorPart.SIDE and dtype in _PACKED_DTYPES and not flat:
            self.packed = True
        if sharding is Sharding.UNKNOWN and len(self.unclassified) < _MOST_EXAMPLES:
            self.unclassified.append(readable_name(tensor.raw_name))
        if len(self._sums) >= _MOST_CACHED:
            part, sharding, dtype = TensorPart.BODY, Sharding.UNKNOWN, "OTHER"
        total = self._sums.setdefault((part, sharding, dtype), _Sum())
        return _Family(total, not _LANDMARKS.isdisjoint(name.split(".")))

    @property
    def parameters(self) -> int:
        """Elements over all tensors."""
        return sum(total.parameters for total in self._sums.values())

    def groups(self) -> tuple[TensorGroup, ...]:
        """The sums, in a stable order."""
        return tuple(
            TensorGroup(
                part=part,
                sharding=sharding,
                dtype=dtype,
                tensors=total.tensors,
                parameters=total.parameters,
                bytes=total.bytes,
            )
            for (part, sharding, dtype), total in sorted(self._sums.items(), key=lambda item: item[0])
        )

    def dominant_dtype(self) -> str | None:
        """The dtype most bytes have, as torch names it; None without tensors."""
        by_dtype: Counter[str] = Counter()
        for (_, _, dtype), total in self._sums.items():
            by_dtype[dtype] += total.bytes
        if not by_dtype:
            return None
        dtype = max(sorted(by_dtype), key=by_dtype.__getitem__)
        return _TORCH_NAMES.get(dtype, dtype.lower())
