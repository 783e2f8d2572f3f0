"""Which files of a folder count as weights, and when a folder is read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specbudget.sources.checkpoint import CheckpointReader, ProblemKind, read_checkpoint

Writer = Callable[..., Path]
Sharder = Callable[[Path, list[dict[str, tuple[str, tuple[int, ...]]]]], None]

ONE = {"a.weight": ("BF16", (8, 8))}
TWO = {"b.weight": ("BF16", (8, 4)), "c.weight": ("F32", (2,))}
CONFIG = '{"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 512}'


@pytest.fixture
def sharded(tmp_path: Path, write_sharded: Sharder) -> Path:
    """A checkpoint of two shards and an index."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [ONE, TWO])
    return tmp_path


def test_shards_of_an_index_add_up(sharded: Path) -> None:
    """Parameters and bytes are sums over the shards; metadata of the header is no tensor."""
    checkpoint = read_checkpoint(sharded)
    assert checkpoint.problems == ()
    assert checkpoint.parameters == 64 + 32 + 2
    assert checkpoint.disk_bytes == sum(path.stat().st_size for path in sharded.glob("*.safetensors"))
    assert checkpoint.dtype == "bfloat16"


def test_copies_beside_an_index_are_not_counted(sharded: Path, write_safetensors: Writer) -> None:
    """consolidated.safetensors, original/ and pytorch_model.bin hold the same weights once more."""
    before = read_checkpoint(sharded)
    write_safetensors(sharded / "consolidated.safetensors", ONE)
    write_safetensors(sharded / "model.safetensors", ONE)
    (sharded / "pytorch_model.bin").write_bytes(b"x" * 100)
    (sharded / "original").mkdir()
    write_safetensors(sharded / "original" / "model.safetensors", ONE)
    after = read_checkpoint(sharded)
    assert (after.parameters, after.disk_bytes, after.fingerprint) == (
        before.parameters,
        before.disk_bytes,
        before.fingerprint,
    )


def test_single_file(tmp_path: Path, write_safetensors: Writer) -> None:
    """model.safetensors alone is the whole checkpoint, whatever lies beside it."""
    path = write_safetensors(tmp_path / "model.safetensors", TWO)
    write_safetensors(tmp_path / "consolidated.safetensors", ONE)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.parameters == 34
    assert checkpoint.disk_bytes == path.stat().st_size


def test_consolidated_file_counts_when_nothing_else_is_there(tmp_path: Path, write_safetensors: Writer) -> None:
    """A checkpoint in Mistral's own layout has only that file."""
    write_safetensors(tmp_path / "consolidated.safetensors", ONE)
    assert read_checkpoint(tmp_path).parameters == 64


def test_shards_without_an_index(tmp_path: Path, write_safetensors: Writer) -> None:
    """Numbered shards are summed, and their names still say when one is missing."""
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", ONE)
    incomplete = read_checkpoint(tmp_path)
    assert incomplete.parameters is None
    assert ProblemKind.MISSING in {problem.kind for problem in incomplete.problems}
    (tmp_path / "config.json").write_text(CONFIG)
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", TWO)
    whole = read_checkpoint(tmp_path)
    assert whole.problems == ()
    assert whole.parameters == 98


def test_config_alone_has_unknown_weights(tmp_path: Path) -> None:
    """No weights beside a config is no problem, and unknown, not zero."""
    (tmp_path / "config.json").write_text(CONFIG)
    checkpoint = read_checkpoint(tmp_path)
    assert (checkpoint.parameters, checkpoint.disk_bytes, checkpoint.tensor_groups) == (None, None, None)
    assert checkpoint.problems == ()
    assert checkpoint.fingerprint is not None


def test_pickled_weights_have_a_size_and_no_parameters(tmp_path: Path) -> None:
    """Tensors of a pickle cannot be read without running it; its bytes on disk can be counted."""
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / "pytorch_model-00001-of-00002.bin").write_bytes(b"x" * 10)
    (tmp_path / "pytorch_model-00002-of-00002.bin").write_bytes(b"x" * 20)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.disk_bytes == 30
    assert checkpoint.parameters is None
    assert checkpoint.fingerprint is None
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.UNSUPPORTED]


def test_symlinked_snapshot(sharded: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A Hugging Face cache keeps the files elsewhere and links to them."""
    snapshot = tmp_path_factory.mktemp("snapshot")
    for path in sharded.iterdir():
        (snapshot / path.name).symlink_to(path)
    original, linked = read_checkpoint(sharded), read_checkpoint(snapshot)
    assert linked.problems == ()
    assert linked.disk_bytes == original.disk_bytes
    assert linked.fingerprint == original.fingerprint


def test_packed_weights_are_marked(tmp_path: Path, write_safetensors: Writer) -> None:
    """A matrix of int32 or uint8 holds several quantised elements in each; vocabulary maps do not."""
    write_safetensors(tmp_path / "model.safetensors", {**ONE, "d2t": ("I64", (8,))})
    assert not read_checkpoint(tmp_path).packed
    write_safetensors(tmp_path / "model.safetensors", {**ONE, "q_proj.qweight": ("I32", (8, 8))})
    assert read_checkpoint(tmp_path).packed


def test_layers_are_counted_by_the_names_of_tensors(tmp_path: Path, write_safetensors: Writer) -> None:
    """So that a config that counts others is noticed."""
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 4}))
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(3)]
    write_safetensors(tmp_path / "model.safetensors", dict.fromkeys(names, ("BF16", (8, 24))))
    assert read_checkpoint(tmp_path).numbered_layers == 3


def test_landmarks_tell_shape_and_place(tmp_path: Path, write_safetensors: Writer) -> None:
    """The co-design rules find fc and d2t by name, with the bytes where their data stand."""
    path = write_safetensors(tmp_path / "model.safetensors", {"fc.weight": ("BF16", (8, 24)), "d2t": ("I64", (32,))})
    checkpoint = read_checkpoint(tmp_path)
    fc, d2t = checkpoint.landmark("fc"), checkpoint.landmark("d2t")
    assert fc is not None
    assert d2t is not None
    assert fc.shape == (8, 24)
    assert (d2t.file, d2t.end) == (path, path.stat().st_size)
    assert d2t.end - d2t.begin == 32 * 8
    assert checkpoint.landmark("lm_head") is None


def test_fingerprint_follows_content_not_place(sharded: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same content elsewhere, at another time and with another spacing has the same fingerprint."""
    copy = tmp_path_factory.mktemp("copy")
    for path in sharded.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
        os.utime(copy / path.name, (1, 1))
    (copy / "config.json").write_text(json.dumps(dict(reversed(json.loads(CONFIG).items())), indent=4))
    assert read_checkpoint(copy).fingerprint == read_checkpoint(sharded).fingerprint


@pytest.mark.parametrize("change", ["config", "shape", "dtype", "name"])
def test_fingerprint_changes_with(change: str, tmp_path: Path, write_safetensors: Writer) -> None:
    """A setting, a shape, a dtype or a name that differs makes another checkpoint of it."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_safetensors(tmp_path / "model.safetensors", ONE)
    before = read_checkpoint(tmp_path).fingerprint
    if change == "config":
        (tmp_path / "config.json").write_text(CONFIG.replace("512", "1024"))
    else:
        tensors = {
            "shape": {"a.weight": ("BF16", (4, 16))},
            "dtype": {"a.weight": ("F16", (8, 8))},
            "name": {"b.weight": ("BF16", (8, 8))},
        }[change]
        write_safetensors(tmp_path / "model.safetensors", tensors)
    after = read_checkpoint(tmp_path).fingerprint
    assert before is not None
    assert after is not None
    assert before != after


def test_unchanged_folder_gives_the_same_object(sharded: Path) -> None:
    """Nothing is read twice, and a new file that does not matter changes nothing."""
    reader = CheckpointReader(sharded)
    first = reader.read()
    (sharded / "README.md").write_text("hello")
    assert reader.read() is first


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors"])
def test_a_file_that_goes_is_noticed(name: str, sharded: Path) -> None:
    """Each file the checkpoint was made of is watched."""
    reader = CheckpointReader(sharded)
    first = reader.read()
    (sharded / name).unlink()
    assert reader.read() is not first


def test_a_file_that_comes_is_noticed(tmp_path: Path, write_safetensors: Writer) -> None:
    """Weights that arrive after the config are seen, and so is a whole folder."""
    folder = tmp_path / "late"
    reader = CheckpointReader(folder)
    assert [problem.kind for problem in reader.read().problems] == [ProblemKind.MISSING]
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    assert reader.read().parameters is None
    write_safetensors(folder / "model.safetensors", ONE)
    assert reader.read().parameters == 64


def test_replaced_file_of_the_same_size_is_noticed(sharded: Path) -> None:
    """A swap by rename may keep size and time; the inode tells."""
    reader = CheckpointReader(sharded)
    first = reader.read()
    other = sharded / "new.json"
    other.write_text(CONFIG.replace("512", "256"))
    status = (sharded / "config.json").stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(sharded / "config.json")
    second = reader.read()
    assert second is not first
    assert second.facts is not None
    assert second.facts.hidden_size == 256
