"""What lies beside the weights that are loaded, and how much of a broken checkpoint is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specbudget.sources.checkpoint import StoredWeights, stored_weights

Write = Callable[..., Path]


def test_copies_are_listed_and_other_files_are_not(tmp_path: Path, write_safetensors: Write) -> None:
    """Weights in other formats and one folder below count as copies; optimizer states and hidden folders do not."""
    write_safetensors(tmp_path / "model.safetensors", {"w": ("BF16", (2, 2))})
    write_safetensors(tmp_path / "consolidated.safetensors", {"w": ("BF16", (2, 2))})
    for name in ("pytorch_model.bin", "training_args.bin", "model.gguf", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    for folder in ("original", ".cache"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "consolidated.00.pth").write_bytes(b"x")
    found = stored_weights(tmp_path, measured=False)
    assert found.named == 1
    assert found.ignored == (
        "consolidated.safetensors",
        "model.gguf",
        "original/consolidated.00.pth",
        "pytorch_model.bin",
    )
    assert (found.tensor_bytes, found.declared_bytes, found.present_share) == (None, None, None)


@pytest.mark.parametrize(
    ("metadata", "declared", "share"),
    [
        ({"total_size": 16}, 16, 0.5),
        ({"total_size": 4}, 4, None),
        ({"total_size": 0}, 0, None),
        ({"total_size": "16"}, None, None),
        ({}, None, None),
        (None, None, None),
    ],
)
def test_the_part_that_is_here(
    tmp_path: Path, write_safetensors: Write, metadata: object, declared: int | None, share: float | None
) -> None:
    """Bytes of whole files against what the index declares; a declaration that cannot be gives no share."""
    write_safetensors(tmp_path / "a.safetensors", {"a": ("BF16", (2, 2))})
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}, "metadata": metadata}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found = stored_weights(tmp_path, measured=True)
    assert (found.tensor_bytes, found.declared_bytes, found.present_share) == (8, declared, share)


def test_a_folder_that_is_none_holds_nothing(tmp_path: Path) -> None:
    """Neither a missing folder nor a file raises."""
    (tmp_path / "file").write_text("")
    for name in ("gone", "file"):
        assert stored_weights(tmp_path / name, measured=False) == StoredWeights()
    assert stored_weights(tmp_path, measured=False) == StoredWeights()
