"""One model of a pair: what its config says beside the budget's facts, and the digests that tell what changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from specbudget.pair.side import Side, SideReader, locked_model, read_side
from specbudget.sources.checkpoint import read_checkpoint

PAIRS = Path(__file__).parents[1] / "fixtures" / "pairs"


def side(folder: Path) -> Side:
    """The side of a folder."""
    return read_side(read_checkpoint(folder))


@pytest.mark.parametrize(
    ("config", "stated"),
    [
        ({"sample_from_anchor": False}, False),
        ({"dspark_config": {"sample_from_anchor": True}}, True),
        ({"sample_from_anchor": "no"}, None),
        ({}, None),
    ],
    ids=["at the top", "nested", "no flag", "not said"],
)
def test_whether_a_block_samples_from_its_anchor(tmp_path: Path, config: dict[str, Any], stated: bool | None) -> None:
    """Only true and false count."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert side(tmp_path).sample_from_anchor is stated


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda folder: (folder / "config.json").write_text('{"num_hidden_layers": 3}'), {"whole", "config"}),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), {"tokenizer"}),
        (lambda folder: shutil.copy(PAIRS / "fused_projection/draft_bad/model.safetensors", folder),
         {"whole", "headers"}),
        (lambda folder: os.utime(folder / "config.json", (1, 1)), set()),
    ],
    ids=["another config", "a tokenizer beside it", "other tensors", "only touched"],
)  # fmt: skip
def test_the_digests_say_what_changed(tmp_path: Path, change: Any, parts: set[str]) -> None:
    """Each part has its own digest."""
    folder = tmp_path / "drafter"
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", folder)
    before = side(folder).fingerprints
    change(folder)
    after = side(folder).fingerprints
    differ = {name for name in ("whole", "config", "tokenizer", "index", "headers")
              if getattr(before, name) != getattr(after, name)}  # fmt: skip
    assert differ == parts


def test_weights_that_end_early_have_no_digest(tmp_path: Path) -> None:
    """A truncated file is unknown, not another model."""
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", tmp_path / "drafter")
    (tmp_path / "drafter" / "model.safetensors").write_bytes(b"\xff\x00\x00\x00\x00\x00\x00\x00{")
    found = side(tmp_path / "drafter").fingerprints
    assert (found.whole, found.headers) == (None, None)


def test_an_unchanged_checkpoint_is_not_read_again(tmp_path: Path) -> None:
    """The same checkpoint object gives the same side, until its tokenizer changes."""
    folder = tmp_path / "drafter"
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", folder)
    checkpoint, reader = read_checkpoint(folder), SideReader()
    first = reader.read(checkpoint)
    assert reader.read(checkpoint) is first
    (folder / "tokenizer.json").write_text('{"model": {}}')
    second = reader.read(checkpoint)
    assert second is not first
    assert second.fingerprints.tokenizer is not None
    assert reader.read(read_checkpoint(folder)) is not second


@pytest.mark.parametrize(
    "config",
    [
        {"rope_parameters": {"rope_theta": "much", "partial_rotary_factor": True}},
        {"rope_scaling": 7, "rope_theta": 10**400},
        {"eagle_config": ["nested"], "num_aux_hidden_states": -1, "num_loops": 0},
        {"dflash_config": {"target_layer_ids": "1, 2"}, "target_layer_ids": [True]},
        {"rope_parameters": {"full_attention": {"rope_theta": float("inf")}}},
    ],
    ids=["words for numbers", "a number without end", "sections of another kind", "taps as text", "infinity"],
)
def test_strange_configs_are_unknown_and_no_fault(tmp_path: Path, config: dict[str, Any]) -> None:
    """What cannot be read is None; nothing is raised."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = side(tmp_path)
    assert (found.rope, found.taps, found.tap_count, found.loops) == (None, (), None, 1)


def test_a_lock_records_a_model_whose_fingerprint_is_known(tmp_path: Path) -> None:
    """Sizes and digests as they are; a checkpoint that cannot be read is not recorded."""
    found = locked_model(side(PAIRS / "fused_projection" / "draft_ok"), kv_bytes_per_token=160)
    assert found is not None
    assert (found.hidden_size, found.kv_bytes_per_token, found.fingerprints.headers is None) == (64, 160, False)
    assert locked_model(side(tmp_path), kv_bytes_per_token=None) is None
