"""Damaged checkpoints: one clear problem each, everything else still read, never an exception."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from specbudget.sources.checkpoint import Checkpoint, ProblemKind, read_checkpoint

Writer = Callable[..., Path]
Sharder = Callable[[Path, list[dict[str, tuple[str, tuple[int, ...]]]]], None]

CONFIG = '{"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 512}'
INDEX = "model.safetensors.index.json"
SHARD = "model-00002-of-00002.safetensors"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 4969539560\n"


def header(entries: object) -> bytes:
    """A safetensors header without any data behind it."""
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


def entry(dtype: object = "BF16", shape: object = (2,), offsets: object = (0, 4)) -> dict[str, object]:
    """One tensor's entry in a header."""
    return {"t.weight": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def only_problem(checkpoint: Checkpoint) -> tuple[ProblemKind, str]:
    """Kind and text of the one problem, which must be a single printable line that names a file."""
    assert len(checkpoint.problems) == 1, [str(problem) for problem in checkpoint.problems]
    text = str(checkpoint.problems[0])
    assert text.isprintable()
    assert text.startswith(str(checkpoint.path))
    return checkpoint.problems[0].kind, text


CONFIG_DAMAGE: list[tuple[str, bytes, ProblemKind]] = [
    ("no JSON", b"hello", ProblemKind.MALFORMED),
    ("empty", b"", ProblemKind.MALFORMED),
    ("cut off", CONFIG.encode()[:-5], ProblemKind.MALFORMED),
    ("a list", b"[1, 2]", ProblemKind.MALFORMED),
    ("null", b"null", ProblemKind.MALFORMED),
    ("not UTF-8", b'{"a": "\xff\xfe"}', ProblemKind.MALFORMED),
    ("UTF-16", CONFIG.encode("utf-16"), ProblemKind.MALFORMED),
    ("nested without end", b'{"a":' * 100_000, ProblemKind.MALFORMED),
    ("closed nesting", b'{"a":' * 50_000 + b"1" + b"}" * 50_000, ProblemKind.MALFORMED),
    ("an endless number", b'{"a": ' + b"9" * 100_000 + b"}", ProblemKind.MALFORMED),
    ("a git-lfs pointer", LFS.encode(), ProblemKind.LFS_POINTER),
    ("far too large", b" " * (5 * 2**20), ProblemKind.TOO_LARGE),
]


@pytest.mark.parametrize(
    ("content", "kind"), [case[1:] for case in CONFIG_DAMAGE], ids=[case[0] for case in CONFIG_DAMAGE]
)
def test_damaged_config(content: bytes, kind: ProblemKind, tmp_path: Path, write_safetensors: Writer) -> None:
    """A config that cannot be used is named, and the weights beside it are read all the same."""
    (tmp_path / "config.json").write_bytes(content)
    write_safetensors(tmp_path / "model.safetensors", {"a.weight": ("BF16", (8, 8))})
    checkpoint = read_checkpoint(tmp_path)
    found, text = only_problem(checkpoint)
    assert found is kind
    assert "config.json" in text
    assert checkpoint.facts is None
    assert checkpoint.fingerprint is None
    assert checkpoint.parameters == 64


HEADER_DAMAGE: list[tuple[str, bytes, ProblemKind]] = [
    ("empty file", b"", ProblemKind.TRUNCATED),
    ("seven bytes", b"1234567", ProblemKind.TRUNCATED),
    ("cut off inside the header", header(entry())[:-3], ProblemKind.TRUNCATED),
    ("a length beyond the format's limit", (100_000_001).to_bytes(8, "little"), ProblemKind.MALFORMED),
    ("the largest length", b"\xff" * 8, ProblemKind.MALFORMED),
    ("a length beyond the file", (100_000_000).to_bytes(8, "little") + b"{}", ProblemKind.TRUNCATED),
    ("data beyond the end of the file", header(entry()), ProblemKind.TRUNCATED),
    ("no object", header([1, 2]), ProblemKind.MALFORMED),
    ("an entry that is a number", header({"t": 1}), ProblemKind.MALFORMED),
    ("an entry without shape", header({"t": {"dtype": "BF16", "data_offsets": [0, 0]}}), ProblemKind.MALFORMED),
    ("a nested entry", header({"t": {"dtype": {"x": 1}}}), ProblemKind.MALFORMED),
    ("a dtype that is a number", header(entry(dtype=16)), ProblemKind.MALFORMED),
    ("a shape of words", header(entry(shape=["two"])), ProblemKind.MALFORMED),
    ("a negative shape", header(entry(shape=[-2], offsets=[0, 0])), ProblemKind.MALFORMED),
    ("one offset", header(entry(offsets=[0])), ProblemKind.MALFORMED),
    ("reversed offsets", header(entry(offsets=[4, 0])), ProblemKind.MALFORMED),
    ("negative offsets", header(entry(offsets=[-4, 0])), ProblemKind.MALFORMED),
    ("a shape that does not fit its data", header(entry(shape=[3])) + b"\0" * 4, ProblemKind.MALFORMED),
    ("an unknown dtype with an endless shape", header(entry("Q7", [2**62] * 60)) + b"\0" * 4, ProblemKind.MALFORMED),
    (
        "tensors that overlap",
        header({name: entry()["t.weight"] for name in "abc"}) + b"\0" * 4,
        ProblemKind.MALFORMED,
    ),
    ("a huge offset", header(entry(offsets=[0, 10**30])), ProblemKind.MALFORMED),
    ("text after the object", b"\x04" + b"\0" * 7 + b"{}{}", ProblemKind.MALFORMED),
    ("not UTF-8", b"\x09" + b"\0" * 7 + b'{"\xff\xfe":{}}', ProblemKind.MALFORMED),
    ("a git-lfs pointer", LFS.encode(), ProblemKind.LFS_POINTER),
    ("nested without end", b"\x40\x9c" + b"\0" * 6 + b'{"a":' * 8000, ProblemKind.MALFORMED),
]


@pytest.mark.parametrize(
    ("content", "kind"), [case[1:] for case in HEADER_DAMAGE], ids=[case[0] for case in HEADER_DAMAGE]
)
def test_damaged_header(content: bytes, kind: ProblemKind, tmp_path: Path) -> None:
    """Weights that cannot be read are unknown, and the geometry of the config beside them stays."""
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / "model.safetensors").write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    found, text = only_problem(checkpoint)
    assert found is kind
    assert "model.safetensors" in text
    assert checkpoint.parameters is None
    assert checkpoint.tensor_groups is None
    assert checkpoint.fingerprint is None
    assert checkpoint.geometry is not None


def test_header_padded_with_spaces(tmp_path: Path) -> None:
    """Writers align the data by spaces behind the object; an empty table of tensors is sound."""
    text = b"{}      "
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.problems == ()
    assert checkpoint.parameters == 0


def test_metadata_may_hold_braces_and_quotes(tmp_path: Path) -> None:
    """Training tools store JSON as text in the metadata."""
    metadata = {"format": "pt", "args": '{"a": {"b": "\\"}"}}'}
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / "model.safetensors").write_bytes(header({"__metadata__": metadata, **entry()}) + b"\0" * 4)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.problems == ()
    assert checkpoint.parameters == 2


INDEX_DAMAGE: list[tuple[str, object]] = [
    ("no map", {"metadata": {}}),
    ("an empty map", {"weight_map": {}}),
    ("a list", {"weight_map": ["a"]}),
    ("numbers for names", {"weight_map": {"a": 1}}),
    ("nested maps", {"weight_map": {"a": {"b": {"c": "d"}}}}),
    ("a path outside", {"weight_map": {"a": "../../secret.safetensors"}}),
    ("an absolute path", {"weight_map": {"a": "/etc/passwd.safetensors"}}),
    ("another kind of file", {"weight_map": {"a": "config.json"}}),
    ("an empty name", {"weight_map": {"a": ""}}),
    ("a name with a null byte", {"weight_map": {"a": "x\0y.safetensors"}}),
    ("more files than a model has", {"weight_map": {str(i): f"{i}.safetensors" for i in range(10_001)}}),
]


@pytest.mark.parametrize("index", [case[1] for case in INDEX_DAMAGE], ids=[case[0] for case in INDEX_DAMAGE])
def test_damaged_index(index: object, tmp_path: Path, write_safetensors: Writer) -> None:
    """An index that cannot be used is one problem; the files beside it are not guessed at."""
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / INDEX).write_text(json.dumps(index))
    write_safetensors(tmp_path / "model.safetensors", {"a.weight": ("BF16", (8, 8))})
    checkpoint = read_checkpoint(tmp_path)
    _, text = only_problem(checkpoint)
    assert INDEX in text
    assert (checkpoint.parameters, checkpoint.disk_bytes, checkpoint.fingerprint) == (None, None, None)
    assert checkpoint.geometry is not None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, LFS.encode()])
def test_index_that_is_no_json(content: bytes, tmp_path: Path) -> None:
    """Garbage, deep nesting and a git-lfs pointer in the index's place."""
    (tmp_path / "config.json").write_text(CONFIG)
    (tmp_path / INDEX).write_bytes(content)
    _, text = only_problem(read_checkpoint(tmp_path))
    assert INDEX in text


def test_missing_shard(tmp_path: Path, write_sharded: Sharder) -> None:
    """A shard that the index names and the folder lacks makes the sums unknown, not small."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{"a.weight": ("BF16", (8, 8))}, {"b.weight": ("BF16", (8, 8))}])
    (tmp_path / SHARD).unlink()
    checkpoint = read_checkpoint(tmp_path)
    kind, text = only_problem(checkpoint)
    assert kind is ProblemKind.MISSING
    assert SHARD in text
    assert (checkpoint.parameters, checkpoint.disk_bytes) == (None, None)


def test_shard_that_lost_a_tensor(tmp_path: Path, write_sharded: Sharder, write_safetensors: Writer) -> None:
    """A shard of another upload is sound by itself, but does not hold what the index says."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(
        tmp_path, [{"a.weight": ("BF16", (8, 8))}, {"b.weight": ("BF16", (8, 8)), "c.weight": ("BF16", (8,))}]
    )
    write_safetensors(tmp_path / SHARD, {"b.weight": ("BF16", (8, 8))})
    kind, text = only_problem(read_checkpoint(tmp_path))
    assert kind is ProblemKind.MALFORMED
    assert "holds 1 tensors, while the index lists 2" in text


def test_truncated_shard_leaves_the_size_of_the_artifact_unknown(tmp_path: Path, write_sharded: Sharder) -> None:
    """What is there so far is not what the artifact takes: it is no pass of its budget."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{"a.weight": ("BF16", (8, 8))}, {"b.weight": ("BF16", (8, 8))}])
    os.truncate(tmp_path / SHARD, (tmp_path / SHARD).stat().st_size - 1)
    checkpoint = read_checkpoint(tmp_path)
    kind, text = only_problem(checkpoint)
    assert kind is ProblemKind.TRUNCATED
    assert "b.weight" in text
    assert checkpoint.disk_bytes is None


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", INDEX])
@pytest.mark.parametrize("what", ["directory", "loop", "pipe", "broken link"])
def test_something_else_in_the_place_of_a_file(name: str, what: str, tmp_path: Path) -> None:
    """A directory, a symlink loop, a pipe and a dangling link are refused without waiting."""
    place = tmp_path / name
    match what:
        case "directory":
            place.mkdir()
        case "loop":
            place.symlink_to(place)
        case "pipe":
            os.mkfifo(place)
        case _:
            place.symlink_to(tmp_path / "nowhere")
    if name != "config.json":
        (tmp_path / "config.json").write_text(CONFIG)
    checkpoint = read_checkpoint(tmp_path)
    _, text = only_problem(checkpoint)
    assert name in text
    assert checkpoint.parameters is None


@pytest.mark.parametrize("what", ["missing", "file", "null byte", "too long"])
def test_no_folder(what: str, tmp_path: Path) -> None:
    """A path that is no folder is one problem that says so."""
    (tmp_path / "file").write_text("")
    name = {"missing": "none", "file": "file", "null byte": "a\0b", "too long": "x" * 5000}[what]
    checkpoint = read_checkpoint(tmp_path / name)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.MISSING]
    assert checkpoint.facts is None


def test_many_broken_shards_do_not_flood(tmp_path: Path, write_sharded: Sharder) -> None:
    """The first problems stand one by one, the rest as a number."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{f"t{number}.weight": ("BF16", (8,))} for number in range(100)])
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(b"")
    problems = read_checkpoint(tmp_path).problems
    assert len(problems) == 21
    assert "80 more" in problems[-1].message


def test_a_large_header_is_never_held_as_objects(tmp_path: Path, write_safetensors: Writer) -> None:
    """Memory stays near the header's own size, however many tensors it names."""
    path = write_safetensors(
        tmp_path / "model.safetensors",
        {f"model.layers.0.mlp.experts.{number}.up_proj.weight": ("BF16", (8, 8)) for number in range(20_000)},
    )
    size = int.from_bytes(path.read_bytes()[:8], "little")
    tracemalloc.start()
    try:
        checkpoint = read_checkpoint(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert checkpoint.parameters == 20_000 * 64
    assert peak < 4 * size
