"""Sum the tensors of a checkpoint into groups as they stream by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from operator import getitem
from typing import Any

from specbudget.sources.checkpoint.bounded_file import printable
from specbudget.sources.checkpoint.kv_scale_names import is_kv_scale
from specbudget.sources.checkpoint.model import Landmark, Sharding, TensorGroup, TensorPart
from specbudget.sources.checkpoint.placement import place
from specbudget.sources.checkpoint.quantization import Quantization, logical_parameters
from specbudget.sources.checkpoint.tensor_header import Header, TensorBatch, check_stored

_LANDMARKS = frozenset(
    {"fc", "d2t", "t2d", "embed_tokens", "word_embeddings", "lm_head", "markov_w1", "confidence_head"}
)
_MOST_LANDMARKS = 16
_MOST_EXAMPLES = 5
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


_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(0{1,9})\.")
_IN_WORD = re.compile(r"(?<=[A-Za-z_])0+|0+(?=[A-Za-z_])")
_SAME_DIGIT = str.maketrans("123456789", "000000000")
_MOST_CACHED = 20_000


@dataclass(slots=True)
class _Sum:
    tensors: int = 0
    parameters: int = 0
    logical: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Family:
    """Tensors alike in everything but the numbers of their layer and expert."""

    sum: _Sum
    parameters: int
    logical: int | None
    landmark: bool


class TensorTotals:
    """Running sums; memory does not grow with the number of tensors.

    Layers from `num_hidden_layers` on are bundled MTP layers.
    """

    def __init__(self, num_hidden_layers: int | None, quantization: Quantization) -> None:
        self._quantization = quantization
        self._details = _Details(num_hidden_layers)
        self._families: dict[tuple[Any, ...], _Family] = {}
        self._sums: dict[tuple[TensorPart, Sharding, str], _Sum] = {}
        self._logical_known = True
        self.landmarks: list[Landmark] = []
        self.unclassified: list[str] = []
        self.packed = False
        self.kv_scales = False

    def add(self, batch: TensorBatch, header: Header) -> int:
        """Take tensors of one file into the sums; returns how many there were. Raises CheckpointError."""
        # A name with all digits alike says where its numbers stand: few patterns, however many tensors there are.
        patterns = "\n".join(batch.names).translate(_SAME_DIGIT).split("\n")
        if len(patterns) != len(batch.names):
            patterns = [name.translate(_SAME_DIGIT) for name in batch.names]
        details = self._details.of(batch.names, patterns)
        columns = (patterns, details, batch.dtypes, batch.shapes, batch.sizes)
        places: dict[tuple[Any, ...], list[int]] = {}
        for key, count in Counter(zip(*columns, strict=True)).items():
            family = self._families.get(key)
            if family is None or (family.landmark and len(self.landmarks) < _MOST_LANDMARKS):
                # Where the tensors of each kind stand is asked for in few batches, and found for all kinds at once.
                places = places or _places(columns)
            if family is None:
                family = self._new_family(header, batch.names[places[key][0]], key)
                if len(self._families) < _MOST_CACHED:
                    self._families[key] = family
            total = family.sum
            total.tensors += count
            total.parameters += count * family.parameters
            total.bytes += count * key[4]
            if family.logical is None:
                self._logical_known = False
            else:
                total.logical += count * family.logical
            if family.landmark and len(self.landmarks) < _MOST_LANDMARKS:
                self._mark(batch, header, places[key])
        return len(patterns)

    def _mark(self, batch: TensorBatch, header: Header, indexes: list[int]) -> None:
        for index in indexes[: _MOST_LANDMARKS - len(self.landmarks)]:
            self.landmarks.append(
                Landmark(
                    name=printable(batch.names[index], 400),
                    dtype=batch.dtypes[index],
                    shape=batch.shapes[index],
                    file=header.path,
                    begin=header.start + batch.begins[index],
                    end=header.start + batch.ends[index],
                )
            )

    def _new_family(self, header: Header, name: str, key: tuple[Any, ...]) -> _Family:
        _, detail, dtype, shape, stored = key
        check_stored(header.path, name, dtype, shape, stored)
        self.kv_scales = self.kv_scales or is_kv_scale(name)
        flat, words, elements = len(shape) < 2, name.split("."), prod(shape)
        part, sharding = place(name, flat=flat, extra_layer=detail.startswith(_EXTRA))
        if part is not TensorPart.SIDE and dtype in _PACKED_DTYPES and not flat:
            self.packed = True
        if sharding is Sharding.UNKNOWN and len(self.unclassified) < _MOST_EXAMPLES:
            self.unclassified.append(printable(name, 80))
        logical: int | None = 0
        if part is not TensorPart.SIDE:
            logical = logical_parameters(self._quantization, words, dtype=dtype, flat=flat, elements=elements)
        if len(self._sums) >= _MOST_CACHED:
            part, sharding, dtype = TensorPart.BODY, Sharding.UNKNOWN, "OTHER"
        total = self._sums.setdefault((part, sharding, dtype), _Sum())
        return _Family(total, elements, logical, not _LANDMARKS.isdisjoint(words))

    @property
    def numbered_layers(self) -> int | None:
        """One more than the highest number of a layer among the names; None without any, or beyond reckoning."""
        return self._details.numbered_layers

    @property
    def tensors(self) -> int:
        """How many tensors there are."""
        return sum(total.tensors for total in self._sums.values())

    @property
    def bytes(self) -> int:
        """Bytes of data over all tensors."""
        return sum(total.bytes for total in self._sums.values())

    @property
    def logical_parameters(self) -> int | None:
        """Weights of the model over all tensors; None where a packed format does not tell how many it holds."""
        return sum(total.logical for total in self._sums.values()) if self._logical_known else None

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
                logical=total.logical,
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


def _places(columns: tuple[list[Any], ...]) -> dict[tuple[Any, ...], list[int]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(zip(*columns, strict=True)):
        found.setdefault(row, []).append(index)
    return found


_EXTRA = "+"
"""Begins the detail of a tensor whose layer lies beyond the model's own ones; the digits inside words, as in w1 and
d2t, follow.
"""

_Reading = slice | Callable[[str], str]
"""How to read the detail off names of one pattern: where their layer stands, or more than that."""


class _Details:
    """What a name says beyond its pattern."""

    def __init__(self, layers: int | None) -> None:
        self._layers = layers
        self._by_pattern: dict[str, _Reading] = {}
        self._by_layer = _ByLayer(layers)

    @property
    def numbered_layers(self) -> int | None:
        """One more than the highest number of a layer that was met."""
        numbers = [int(layer) for layer in self._by_layer if layer]
        return max(numbers) + 1 if numbers and len(self._by_layer) < _MOST_CACHED else None

    def of(self, names: list[str], patterns: list[str]) -> list[str]:
        """The detail of each name."""
        readings, by_layer, distinct = self._by_pattern, self._by_layer, set(patterns)
        new = distinct.difference(readings)
        if len(readings) + len(new) > _MOST_CACHED:
            readings.clear()
            new = distinct
        readings.update((pattern, self._reading(pattern)) for pattern in new)
        found = map(readings.__getitem__, patterns)
        if all(type(readings[pattern]) is slice for pattern in distinct):
            layers: Iterable[str] = map(getitem, names, found)  # type: ignore[arg-type]
            return list(map(by_layer.__getitem__, layers))
        return [
            by_layer[name[reading]] if isinstance(reading, slice) else reading(name)
            for name, reading in zip(names, found, strict=True)
        ]

    def _reading(self, pattern: str) -> _Reading:
        layer = _LAYER.search(pattern) if self._layers is not None else None
        place = slice(0, 0) if layer is None else slice(*layer.span(1))
        inside = [match.span() for match in _IN_WORD.finditer(pattern)]
        if not inside:
            return place
        return lambda name: self._by_layer[name[place]] + ".".join(name[a:b] for a, b in inside)


class _ByLayer(dict[str, str]):
    """The detail of each layer number; one that is not there is computed, and kept while there is room."""

    def __init__(self, layers: int | None) -> None:
        super().__init__({"": ""})
        self._layers = layers or 0

    def __missing__(self, layer: str) -> str:
        detail = _EXTRA if int(layer) >= self._layers else ""
        if len(self) < _MOST_CACHED:
            self[layer] = detail
        return detail
