"""The map of a draft vocabulary, read from its two tensors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specbudget.domain.codesign import VocabularyMap
from specbudget.pair.vocabulary_map import read_vocabulary_map
from specbudget.sources.checkpoint import index_tensor, read_checkpoint

DTYPES = {"I64": np.int64, "I32": np.int32, "BOOL": np.bool_, "F32": np.float32}


def found(folder: Path, **tensors: tuple[str, list[int]]) -> VocabularyMap | None:
    """What is read of a checkpoint with these tensors, given as (dtype, values)."""
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        content = np.array(values, dtype=DTYPES[dtype]).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": [len(values)],
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return read_vocabulary_map(read_checkpoint(folder))


def test_offsets_become_tokens(tmp_path: Path) -> None:
    """Draft ids 0 to 3 stand for the tokens 0, 2, 3 and 7, which t2d marks."""
    read = found(tmp_path, d2t=("I64", [0, 1, 1, 4]), t2d=("BOOL", [1, 0, 1, 1, 0, 0, 0, 1]))
    assert read == VocabularyMap(rows=4, least=0, most=7, distinct=4, flags=8, flagged=4, agrees=True)


def test_smaller_whole_numbers(tmp_path: Path) -> None:
    """Four bytes each are read alike; without t2d its part is unknown."""
    assert found(tmp_path, d2t=("I32", [0, 1])) == VocabularyMap(rows=2, least=0, most=2, distinct=2)


@pytest.mark.parametrize(
    ("offsets", "flags", "expected"),
    [
        ([5, 0, 0], [0, 1, 1, 0, 0, 1], {"least": 1, "most": 5, "distinct": 3, "worst": (1, 5, 1), "agrees": True}),
        ([0, -1, 2], [1, 0, 0, 0, 1, 0], {"distinct": 2, "worst": (1, 0, 0), "agrees": True}),
        ([0, 0, 0], [1, 1, 0, 1], {"flagged": 3, "agrees": False}),
        ([-9, 0, 0], [1], {"least": -9}),
    ],
    ids=["out of order", "one token twice", "other tokens marked", "below zero"],
)
def test_faults_are_told(tmp_path: Path, offsets: list[int], flags: list[int], expected: dict[str, object]) -> None:
    """Each fault of a map shows in its figures."""
    read = found(tmp_path, d2t=("I64", offsets), t2d=("BOOL", flags))
    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize(
    "tensors",
    [{}, {"d2t": ("F32", [0, 1])}, {"d2t": ("I64", [])}, {"d2t": ("I64", [2**62, 0])}],
    ids=["no map", "no whole numbers", "nothing", "numbers without bound"],
)
def test_no_map_is_none(tmp_path: Path, tensors: dict[str, tuple[str, list[int]]]) -> None:
    """Unknown, not an empty map."""
    assert found(tmp_path, **tensors) is None


def test_large_tensors_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are never read, whatever they are called."""
    monkeypatch.setattr(index_tensor, "LARGEST_INDEX_TENSOR", 15)
    assert found(tmp_path, d2t=("I64", [0, 1])) is None
    read = found(tmp_path, d2t=("I32", [0, 1]), t2d=("BOOL", [1] * 16))
    assert read is not None
    assert read.flags is None
