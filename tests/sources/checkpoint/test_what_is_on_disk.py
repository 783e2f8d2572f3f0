"""What lies in a checkpoint's folder: all of its shards or some, weights nobody loads, drafters inside, links."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specbudget.sources.checkpoint import CheckpointReader, NotLoaded, ProblemKind, Unused, read_checkpoint

Writer = Callable[..., Path]
Sharder = Callable[..., None]

CONFIG = '{"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 512}'
INDEX = "model.safetensors.index.json"
HUNDRED = ("BF16", (10, 10))
"""A tensor of 200 bytes."""

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 4969539560\n"


@pytest.fixture
def three(tmp_path: Path, write_sharded: Sharder) -> Path:
    """A checkpoint of three shards of 200 bytes of tensors each, whose index says so."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{f"{name}.weight": HUNDRED} for name in "abc"], total_size=600)
    return tmp_path


def shard(number: int, total: int = 3) -> str:
    """The name of a shard."""
    return f"model-{number:05d}-of-{total:05d}.safetensors"


def test_bytes_of_tensors_and_of_files_are_told_apart(three: Path) -> None:
    """Headers say how large the tensors are, the file system how large the files; the index's word is a third."""
    checkpoint = read_checkpoint(three)
    assert (checkpoint.tensor_bytes, checkpoint.declared_bytes, checkpoint.present_bytes) == (600, 600, 600)
    assert checkpoint.disk_bytes == sum(path.stat().st_size for path in three.glob("*.safetensors"))
    assert (checkpoint.shards, checkpoint.missing, checkpoint.not_loaded) == (3, (), ())


@pytest.mark.parametrize(
    "content", [None, '{"total_size": 600.0}', '{"total_size": "600"}', '{"total_size": -1}', "[]"]
)
def test_an_index_may_say_nothing_usable_of_its_size(content: str | None, three: Path) -> None:
    """The declared size is a hint: without it, or with one that is no size, everything else is read."""
    weight_map = json.loads((three / INDEX).read_text())["weight_map"]
    metadata = {} if content is None else {"metadata": json.loads(content)}
    (three / INDEX).write_text(json.dumps({**metadata, "weight_map": weight_map}))
    checkpoint = read_checkpoint(three)
    assert checkpoint.problems == ()
    assert checkpoint.tensor_bytes == 600
    assert checkpoint.declared_bytes == (600 if content is not None and "600.0" in content else None)


def test_missing_shards_are_named_once_with_what_is_there(three: Path) -> None:
    """Two of three shards: one problem, both names, and the share of the declared bytes that is there."""
    for number in (1, 3):
        (three / shard(number)).unlink()
    checkpoint = read_checkpoint(three)
    assert len(checkpoint.problems) == 1
    assert checkpoint.problems[0].kind is ProblemKind.MISSING
    text = str(checkpoint.problems[0])
    assert text == (
        f"{three / shard(1)}: 2 of 3 weight files are missing: {shard(1)}, {shard(3)}; download the checkpoint again "
        "(200 of 600 bytes of tensors are here, 33.3 %)"
    )
    assert checkpoint.missing == (shard(1), shard(3))
    assert (checkpoint.present_bytes, checkpoint.declared_bytes, checkpoint.disk_bytes) == (200, 600, None)


def test_half_a_checkpoint(tmp_path: Path, write_sharded: Sharder) -> None:
    """One of two shards is half of what the index declares."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{"a.weight": HUNDRED}, {"b.weight": HUNDRED}], total_size=400)
    (tmp_path / shard(2, 2)).unlink()
    checkpoint = read_checkpoint(tmp_path)
    assert "200 of 400 bytes of tensors are here, 50.0 %" in checkpoint.problems[0].message
    assert (checkpoint.missing, checkpoint.missing_count) == ((shard(2, 2),), 1)


def test_a_declared_size_that_lies_gives_no_share(tmp_path: Path, write_sharded: Sharder) -> None:
    """More bytes than declared cannot be a part of them."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{"a.weight": HUNDRED}, {"b.weight": HUNDRED}], total_size=100)
    (tmp_path / shard(2, 2)).unlink()
    checkpoint = read_checkpoint(tmp_path)
    assert "%" not in checkpoint.problems[0].message
    assert (checkpoint.present_bytes, checkpoint.declared_bytes) == (200, 100)


def test_many_missing_shards_are_a_bounded_list(tmp_path: Path, write_sharded: Sharder) -> None:
    """The first names and the number of all."""
    (tmp_path / "config.json").write_text(CONFIG)
    write_sharded(tmp_path, [{f"t{number}.weight": HUNDRED} for number in range(100)])
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    checkpoint = read_checkpoint(tmp_path)
    assert len(checkpoint.problems) == 1
    assert "100 of 100 weight files are missing" in checkpoint.problems[0].message
    assert " and 97 more" in checkpoint.problems[0].message
    assert (len(checkpoint.missing), checkpoint.missing_count) == (20, 100)


def test_missing_shards_without_an_index_are_named_too(three: Path) -> None:
    """The names of the others say which ones there must be."""
    (three / INDEX).unlink()
    (three / shard(2)).unlink()
    checkpoint = read_checkpoint(three)
    assert checkpoint.missing == (shard(2),)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.MISSING]


def test_two_splits_without_an_index_are_not_added_up(three: Path, write_safetensors: Writer) -> None:
    """Nothing says which of the splits counts, so the sums are unknown."""
    (three / INDEX).unlink()
    write_safetensors(three / shard(1, 5), {"a.weight": HUNDRED})
    checkpoint = read_checkpoint(three)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.MALFORMED]
    assert "of 00003 and of 00005 files" in checkpoint.problems[0].message
    assert checkpoint.parameters is None


def unused(*entries: tuple[str, Unused], size: int) -> dict[str, NotLoaded]:
    """Files of the same size, by name."""
    return {name: NotLoaded(name=name, bytes=size, why=why) for name, why in entries}


def test_weights_that_nobody_loads_are_listed_apart(three: Path) -> None:
    """Each with its bytes and its reason; none of them counts as part of the checkpoint."""
    before = read_checkpoint(three)
    expected = unused(
        ("consolidated.safetensors", Unused.COPY),
        ("model.safetensors", Unused.COPY),
        (shard(1, 5), Unused.OTHER_SPLIT),
        ("model-00004-of-00003.safetensors", Unused.STALE),
        ("extra.safetensors", Unused.STALE),
        ("pytorch_model.bin", Unused.PICKLE),
        ("consolidated.00.pth", Unused.PICKLE),
        ("model-q4.gguf", Unused.GGUF),
        ("flax_model.msgpack", Unused.OTHER_FORMAT),
        ("model-00002-of-00003.safetensors.incomplete", Unused.UNFINISHED),
        ("original/consolidated.00.pth", Unused.COPY),
        ("consolidated/model.safetensors", Unused.COPY),
        size=7,
    )
    for folder in ("original", "consolidated"):
        (three / folder).mkdir()
    for name in expected:
        (three / name).write_bytes(b"content")
    (three / "original" / "params.json").write_text("{}")
    checkpoint = read_checkpoint(three)
    assert {entry.name: entry for entry in checkpoint.not_loaded} == expected
    assert (checkpoint.not_loaded_count, checkpoint.not_loaded_bytes) == (12, 84)
    assert all(entry.why.words for entry in checkpoint.not_loaded)
    assert checkpoint.problems == ()
    assert (checkpoint.disk_bytes, checkpoint.fingerprint) == (before.disk_bytes, before.fingerprint)


def test_a_long_list_of_unused_weights_is_bounded(three: Path) -> None:
    """The largest ones by name, and number and bytes of all."""
    for number in range(50):
        (three / f"old-{number}.safetensors").write_bytes(b"x" * (number + 1))
    checkpoint = read_checkpoint(three)
    assert [entry.name for entry in checkpoint.not_loaded[:2]] == ["old-49.safetensors", "old-48.safetensors"]
    assert (len(checkpoint.not_loaded), checkpoint.not_loaded_count) == (20, 50)
    assert checkpoint.not_loaded_bytes == sum(range(51))


def test_without_an_index_a_second_file_is_said_to_be_loaded_too(tmp_path: Path, write_safetensors: Writer) -> None:
    """The engine takes every file that it finds then, which is worth knowing."""
    write_safetensors(tmp_path / "model.safetensors", {"a.weight": HUNDRED})
    write_safetensors(tmp_path / "old.safetensors", {"a.weight": HUNDRED})
    checkpoint = read_checkpoint(tmp_path)
    assert [(entry.name, entry.why) for entry in checkpoint.not_loaded] == [("old.safetensors", Unused.UNINDEXED_COPY)]


def test_beside_a_broken_index_nothing_is_said_of_the_files(three: Path) -> None:
    """Which of them are loaded is not known."""
    (three / INDEX).write_text("{")
    assert read_checkpoint(three).not_loaded == ()


def test_an_mtp_file_that_the_index_forgets_is_loaded_for_glm(three: Path, write_safetensors: Writer) -> None:
    """SGLang adds it for this family alone; for others it is a file that nobody loads."""
    write_safetensors(three / "mtp.safetensors", {"model.layers.1.eh_proj.weight": HUNDRED})
    assert [entry.name for entry in read_checkpoint(three).not_loaded] == ["mtp.safetensors"]
    config = json.loads(CONFIG) | {"architectures": ["Glm4MoeForCausalLM"], "num_nextn_predict_layers": 1}
    (three / "config.json").write_text(json.dumps(config))
    checkpoint = read_checkpoint(three)
    assert checkpoint.not_loaded == ()
    assert checkpoint.tensor_bytes == 800


def test_a_new_stale_file_is_noticed(three: Path, write_safetensors: Writer) -> None:
    """Weights that come or go change what is told, other files do not."""
    reader = CheckpointReader(three)
    first = reader.read()
    (three / "README.md").write_text("hello")
    assert reader.read() is first
    write_safetensors(three / "extra.safetensors", {"a.weight": HUNDRED})
    assert [entry.name for entry in reader.read().not_loaded] == ["extra.safetensors"]


def test_a_drafter_in_a_folder_inside_the_target(three: Path, write_safetensors: Writer) -> None:
    """SGLang finds `dspark/` by itself, `mtp/` only by path; a folder without a config is no drafter."""
    for name in ("dspark", "mtp"):
        (three / name).mkdir()
        write_safetensors(three / name / "model.safetensors", {"fc.weight": ("BF16", (4, 12))})
    assert read_checkpoint(three).bundled == ()
    for name in ("dspark", "mtp"):
        (three / name / "config.json").write_text('{"markov_rank": 2}')
    checkpoint = read_checkpoint(three)
    found = [(folder.path, folder.read_without_path) for folder in checkpoint.bundled]
    assert found == [(three / "dspark", True), (three / "mtp", False)]
    assert checkpoint.tensor_bytes == 600
    assert read_checkpoint(checkpoint.bundled[0].path).parameters == 48


def test_a_folder_of_a_drafter_that_comes_later_is_noticed(three: Path) -> None:
    """Its config is one of the files that are watched."""
    (three / "dspark").mkdir()
    reader = CheckpointReader(three)
    assert reader.read().bundled == ()
    (three / "dspark" / "config.json").write_text("{}")
    assert len(reader.read().bundled) == 1


def cached(folder: Path, three: Path) -> Path:
    """The layout of a Hugging Face cache: blobs by hash, and links to them in a snapshot."""
    root = folder / "models--org--name"
    snapshot = root / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (root / "blobs").mkdir()
    for number, path in enumerate(sorted(three.iterdir())):
        (root / "blobs" / f"blob{number}").write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(f"../../blobs/blob{number}")
    return snapshot


def test_links_of_a_cache_are_followed(three: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A snapshot holds links only; sizes are those of the files behind them."""
    snapshot = cached(tmp_path_factory.mktemp("cache"), three)
    checkpoint = read_checkpoint(snapshot)
    assert checkpoint.problems == ()
    assert checkpoint.disk_bytes == read_checkpoint(three).disk_bytes


def test_a_link_to_nothing_is_a_missing_file_and_says_so(three: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The name is there and the file is not: the words say which of the two is gone."""
    snapshot = cached(tmp_path_factory.mktemp("cache"), three)
    blob = Path(os.path.realpath(snapshot / shard(1)))
    blob.unlink()
    checkpoint = read_checkpoint(snapshot)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.MISSING]
    assert f"the file that this link points to is missing: ../../blobs/{blob.name}" in checkpoint.problems[0].message
    assert checkpoint.missing == (shard(1),)
    Path(os.path.realpath(snapshot / shard(2))).unlink()
    assert "are missing, links that point to nothing" in read_checkpoint(snapshot).problems[0].message


def test_the_folder_around_a_cache_is_recognised(three: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """People give the folder with `snapshots` in it; the problem says where the checkpoint is."""
    snapshot = cached(tmp_path_factory.mktemp("cache"), three)
    problems = read_checkpoint(snapshot.parents[1]).problems
    assert len(problems) == 1
    assert "inside its snapshots/" in problems[0].message


def test_an_empty_folder_says_that_it_is_empty(tmp_path: Path) -> None:
    """One problem, not one for each file that is not there."""
    problems = read_checkpoint(tmp_path).problems
    assert [problem.message for problem in problems] == ["the folder is empty; download the checkpoint into it"]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """A path to a weight file is a common slip."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    problems = read_checkpoint(tmp_path / "model.gguf").problems
    assert len(problems) == 1
    assert problems[0].message.startswith("is a file, not a folder")


def test_permission_denied_is_told_apart_from_missing(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a config and a shard that may not be read are there all the same."""
    real = os.open

    def denied(path: str | Path, *rest: int, **more: int) -> int:
        if str(path).endswith(("config.json", shard(2))):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", denied)
    checkpoint = read_checkpoint(three)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.UNREADABLE] * 2
    assert all("permission denied" in problem.message for problem in checkpoint.problems)
    assert checkpoint.missing == ()


@pytest.mark.parametrize("call", ["stat", "scandir"])
def test_a_folder_that_may_not_be_entered(call: str, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its path or its listing is refused, the folder is named with that reason."""
    real = getattr(os, call)

    def denied(path: str | Path, **more: object) -> object:
        if Path(path) == three:
            raise PermissionError(13, "Permission denied")
        return real(path, **more)

    monkeypatch.setattr(os, call, denied)
    problem = read_checkpoint(three).problems[0]
    assert (problem.file, problem.kind) == (three, ProblemKind.UNREADABLE)
    assert "permission denied" in problem.message


def test_rights_that_change_are_noticed(three: Path) -> None:
    """`chmod` changes neither size nor time of a file."""
    reader = CheckpointReader(three)
    first = reader.read()
    (three / shard(1)).chmod(0o600)
    assert reader.read() is not first


@pytest.mark.parametrize("name", ["config.json", INDEX, shard(2), "tokenizer.json", "tokenizer.model"])
def test_a_git_lfs_pointer_is_named_with_the_size_it_stands_for(name: str, three: Path) -> None:
    """Each kind of file that may be one."""
    (three / name).write_text(LFS)
    checkpoint = read_checkpoint(three)
    assert [problem.kind for problem in checkpoint.problems] == [ProblemKind.LFS_POINTER]
    assert checkpoint.problems[0].file == three / name
    assert "of 4969539560 bytes" in checkpoint.problems[0].message


def test_tokenizer_files_are_listed(three: Path) -> None:
    """Those that are there, by name."""
    for name in ("tokenizer.json", "merges.txt", "README.md"):
        (three / name).write_text("{}")
    assert read_checkpoint(three).tokenizers == ("tokenizer.json", "merges.txt")


def test_progress_is_told_after_each_weight_file(three: Path) -> None:
    """Missing ones count too, so that the last call is always all of all."""
    (three / shard(2)).unlink()
    seen: list[tuple[int, int]] = []
    read_checkpoint(three, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_reading_ahead_changes_nothing_but_the_time(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With slow storage several files are touched at a time; the result is the same."""
    expected = read_checkpoint(three)
    monkeypatch.setattr("specbudget.sources.checkpoint.weights._SLOW_SECONDS", -1.0)
    monkeypatch.setattr("specbudget.sources.checkpoint.weights._TRIED", 1)
    for _ in range(20):
        assert read_checkpoint(three) == expected
