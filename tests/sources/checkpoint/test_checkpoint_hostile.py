"""Files made to break a reader: wrong types at every key it looks at, lies about lengths, text meant for terminals."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.pair.side import read_side
from specbudget.sources.checkpoint import Checkpoint, ProblemKind, Role, loaded_weights, read_checkpoint
from specbudget.sources.checkpoint.config_file import ConfigReader

INDEX = "model.safetensors.index.json"
MOST_MEMORY = 100 * 2**20
MOST_SECONDS = 20.0
"""Generous beside the tenths of a second that reading takes: a hang is what must not happen."""

ESCAPE = "\x1b[31m\x07\u202e\u0085"

WRONG: list[Any] = [
    *(True, -1, 0, 2**70, 10**400, 0.5, math.nan, math.inf),
    *("", ESCAPE, "\ud800", "A" * 1000, [], [[]], [-1], [2**70], ["x", 1], [ESCAPE]),
    *({}, {"a": {"a": []}}, {ESCAPE: ESCAPE}, {"group_0": {"weights": {"num_bits": "four"}}}),
]


@contextmanager
def bounded() -> Iterator[None]:
    """Whatever runs inside takes neither much memory nor forever."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        yield
        assert time.perf_counter() - start < MOST_SECONDS
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


def check(checkpoint: Checkpoint) -> None:
    """Problems are short lines that a terminal can show, and everything computed from the rest still works."""
    for problem in checkpoint.problems:
        assert str(problem).isprintable()
        assert problem.message.isprintable()
        assert len(problem.message) < 1000
    assert all(name.isprintable() for name in checkpoint.missing)
    assert all(unused.name.isprintable() for unused in checkpoint.not_loaded)
    assert all(mark.name.isprintable() for mark in checkpoint.landmarks)
    for algorithm in DraftAlgorithm:
        for role in Role:
            loaded_weights(checkpoint, algorithm, role=role)
    read_side(checkpoint)


def looked_up(configs: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> set[tuple[str, ...]]:
    """Every place in a config that the reader asks for over all published configs."""
    places: set[tuple[str, ...]] = set()
    real = ConfigReader.lookup

    def recording(self: ConfigReader, *asked: tuple[str, ...]) -> tuple[str, Any] | None:
        places.update(asked)
        return real(self, *asked)

    with monkeypatch.context() as patch:
        patch.setattr(ConfigReader, "lookup", recording)
        for path in configs.glob("*/*.json"):
            (folder / "config.json").write_bytes(path.read_bytes())
            read_side(read_checkpoint(folder))
    return places


def test_wrong_types_at_every_key(configs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each value that no key expects, under each key that is read, in an otherwise sound config."""
    base = json.loads((configs / "targets" / "inclusionAI_Ling-3.0-flash.TESTFIXTURE.json").read_text())
    places = looked_up(configs, monkeypatch, tmp_path)
    assert len(places) > 100
    for place in sorted(places):
        for value in WRONG:
            config = json.loads(json.dumps(base))
            section = config
            for step in place[:-1]:
                section = section.setdefault(step, {})
                if not isinstance(section, dict):
                    break
            else:
                section[place[-1]] = value
            (tmp_path / "config.json").write_text(json.dumps(config))
            check(read_checkpoint(tmp_path))


def nested(opening: str, closing: str, size: int) -> bytes:
    """A value nested as deep as fits."""
    depth = size // (len(opening) + len(closing))
    return (opening * depth + "1" + closing * depth).encode()


def filled(item: str, size: int) -> bytes:
    """An object with a list of as many items as fit."""
    return ('{"num_hidden_layers": [' + ",".join([item] * (size // (len(item) + 1))) + "]}").encode()


LIMIT = 2 * 2**20 - 64
HOSTILE_CONFIGS: list[tuple[str, bytes]] = [
    ("nested lists", nested("[", "]", LIMIT)),
    ("nested objects", nested('{"a":', "}", LIMIT)),
    ("nesting just below the decoder's own limit", b'{"a":' + nested("[", "]", 1600) + b"}"),
    ("many empty objects", filled("{}", LIMIT)),
    ("many empty lists", filled("[]", LIMIT)),
    ("many numbers", filled("1e9", LIMIT)),
    ("a number without end", b'{"num_hidden_layers": ' + b"9" * 1_000_000 + b"}"),
    ("a number that Python still reads", b'{"num_hidden_layers": ' + b"9" * 4000 + b"}"),
    ("one key many times", b"{" + b'"a":1,' * 300_000 + b'"a":1}'),
    ("a long word", b'{"model_type": "' + b"x" * 2_000_000 + b'"}'),
    ("layers without end", b'{"num_hidden_layers": 1000000000, "hidden_size": 64, "num_attention_heads": 1}'),
    ("layers below none", b'{"num_hidden_layers": -5, "hidden_size": 64, "num_attention_heads": 1}'),
    ("as many layers as are read", b'{"num_hidden_layers": 10000, "hidden_size": 64, "num_attention_heads": 1}'),
    ("not a number", b'{"num_hidden_layers": NaN, "rope_theta": -Infinity}'),
    ("surrogates", b'{"model_type": "\\ud800", "architectures": ["\\udfff"], "mamba\\u001b[31m": 1}'),
    ("a key for terminals", json.dumps({"num_hidden_layers": 2, f"mamba{ESCAPE}": 1}).encode()),
]


@pytest.mark.parametrize("content", [case[1] for case in HOSTILE_CONFIGS], ids=[case[0] for case in HOSTILE_CONFIGS])
def test_hostile_config(content: bytes, tmp_path: Path) -> None:
    """Bounded in time and memory; a config that cannot be used is a problem."""
    (tmp_path / "config.json").write_bytes(content)
    with bounded():
        checkpoint = read_checkpoint(tmp_path)
    check(checkpoint)
    assert checkpoint.problems or checkpoint.geometry is not None


def index(weight_map: str) -> bytes:
    """An index around the text of a map."""
    return ('{"metadata": {"total_size": 1e400}, "weight_map": ' + weight_map + "}").encode()


NAME = "model-00001-of-00001.safetensors"
HOSTILE_INDEXES: list[tuple[str, bytes]] = [
    ("nested", nested('{"a":', "}", 4_000_000)),
    ("a nested map", index(nested('{"a":', "}", 100_000).decode())),
    ("nested metadata", b'{"metadata": ' + nested("[", "]", 900) + b', "weight_map": {"a": "x.safetensors"}}'),
    ("one name many times", index("{" + ",".join([f'"a": "{NAME}"'] * 100_000) + "}")),
    ("a name for terminals", index(json.dumps({"a": f"{ESCAPE}.safetensors"}))),
    ("a name of surrogates", index('{"a": "\\ud800.safetensors"}')),
    ("names with ends inside", index(json.dumps({f'k{i}",': f'a",{i}.safetensors' for i in range(9000)}))),
    ("files without end", index(json.dumps({str(i): f"{i}.safetensors" for i in range(50_000)}))),
    ("a long name", index(json.dumps({"a": "x" * 100_000 + ".safetensors"}))),
    ("an open string", index('{"a": "' + "b" * 1_000_000)),
    ("a comma too many", index('{"a": "x.safetensors",}')),
    ("a path that leaves", index('{"a": "..\\/x.safetensors"}')),
]


@pytest.mark.parametrize("content", [case[1] for case in HOSTILE_INDEXES], ids=[case[0] for case in HOSTILE_INDEXES])
def test_hostile_index(content: bytes, tmp_path: Path) -> None:
    """No weights are known, and at least one problem says why."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / INDEX).write_bytes(content)
    with bounded():
        checkpoint = read_checkpoint(tmp_path)
    check(checkpoint)
    assert checkpoint.parameters is None
    assert any(problem.kind is not ProblemKind.INCOMPLETE for problem in checkpoint.problems)


def header(text: bytes, data: int = 0, *, length: int | None = None) -> Callable[[Path], None]:
    """A writer of a file with this header, a stated length and so many bytes of data, which are not written."""

    def write(path: Path) -> None:
        with path.open("wb") as file:
            file.write((len(text) if length is None else length).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + data)

    return write


def tensor(begin: int, end: int, *, dtype: str = "U8") -> dict[str, Any]:
    """One tensor's entry."""
    return {"dtype": dtype, "shape": [end - begin], "data_offsets": [begin, end]}


def entries(**tensors: Any) -> bytes:
    """The text of a header."""
    return json.dumps(tensors).encode()


EACH = [f'"t{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(20_000)]
MANY = ",".join(EACH)
HOSTILE_HEADERS: list[tuple[str, Callable[[Path], None]]] = [
    ("a length of 99 MB in a short file", header(b"{}", length=99_000_000)),
    ("a length of 99 MB in a sparse file", header(b"{}", 99_000_000, length=99_000_000)),
    ("tensors that overlap", header(entries(a=tensor(0, 8), b=tensor(4, 12)), 12)),
    ("tensors that overlap out of order", header(entries(a=tensor(4, 12), b=tensor(0, 8)), 12)),
    ("one tensor twice", header(entries(a=tensor(0, 8), b=tensor(0, 8)), 16)),
    ("a hole", header(entries(a=tensor(0, 4), b=tensor(8, 12)), 12)),
    ("data that no tensor has", header(entries(a=tensor(0, 4)), 12)),
    ("data of what only looks like a tensor", header(entries(a=tensor(0, 4), __metadata__=tensor(4, 8)), 8)),
    ("data before the first tensor", header(entries(a=tensor(4, 8)), 8)),
    ("one name twice", header(b"{" + b",".join([entries(a=tensor(0, 4))[1:-1]] * 2) + b"}", 8)),
    ("a key for terminals", header(entries(**{ESCAPE: tensor(0, 9)}), 4)),
    ("a dtype for terminals", header(entries(a=tensor(0, 4, dtype=ESCAPE)), 4)),
    ("many tensors and a broken last one", header(b"{" + MANY.encode() + b',"x":1}', 20_000)),
    ("many tensors and a comma too many", header(b"{" + MANY.encode() + b",}", 20_000)),
    ("many tensors and no end", header(b"{" + MANY.encode(), 20_000)),
    ("nested without end", header(nested('{"a":', "}", 1_000_000))),
    ("a string without end", header(b'{"' + b"a" * 1_000_000)),
    ("many braces", header(b"{" * 1_000_000)),
    ("metadata nested", header(b'{"__metadata__":' + nested('{"a":', "}", 1_000_000) + b"}")),
    ("metadata that is broken", header(b'{"__metadata__":{"a":"},"},}')),
    ("surrogates in UTF-8", header(b'{"\xed\xa0\x80":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4)),
]


@pytest.mark.parametrize("write", [case[1] for case in HOSTILE_HEADERS], ids=[case[0] for case in HOSTILE_HEADERS])
def test_hostile_header(write: Callable[[Path], None], tmp_path: Path) -> None:
    """A problem, bounded work, and no sum of what is there."""
    (tmp_path / "config.json").write_text("{}")
    write(tmp_path / "model.safetensors")
    with bounded():
        checkpoint = read_checkpoint(tmp_path)
    check(checkpoint)
    assert checkpoint.parameters is None
    assert {problem.kind for problem in checkpoint.problems} & {ProblemKind.MALFORMED, ProblemKind.TRUNCATED}


SOUND_HEADERS: list[tuple[str, Callable[[Path], None], int]] = [
    ("tensors in another order than their data", header(entries(a=tensor(4, 12), b=tensor(0, 4)), 12), 12),
    ("empty tensors", header(entries(a=tensor(0, 0), b=tensor(0, 4), c=tensor(4, 4)), 4), 4),
    ("metadata that looks like a tensor", header(entries(a=tensor(0, 4), __metadata__=tensor(4, 8)), 4), 4),
    ("spaces everywhere", header(json.dumps({"a": tensor(0, 4)}, indent=8).encode() + b"   ", 4), 4),
    ("a name of surrogates", header(b'{"\\ud800":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4), 4),
    ("a name of two lines", header(entries(**{"a\nb": tensor(0, 4), "c": tensor(4, 8)}), 8), 8),
    ("many tensors", header(b"{" + MANY.encode() + b"}", 20_000), 20_000),
    ("many tensors in another order", header(b"{" + ",".join(reversed(EACH)).encode() + b"}", 20_000), 20_000),
]


@pytest.mark.parametrize(
    ("write", "count"), [case[1:] for case in SOUND_HEADERS], ids=[case[0] for case in SOUND_HEADERS]
)
def test_unusual_headers_that_are_sound(write: Callable[[Path], None], count: int, tmp_path: Path) -> None:
    """What the format allows is read, however unusual."""
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 1}')
    write(tmp_path / "model.safetensors")
    with bounded():
        checkpoint = read_checkpoint(tmp_path)
    check(checkpoint)
    assert checkpoint.problems == ()
    assert checkpoint.parameters == count


def test_names_in_the_folder_reach_no_terminal(tmp_path: Path) -> None:
    """A folder may hold files with any name; they are told with the signs a terminal would obey left out."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / INDEX).write_bytes(index(json.dumps({"a": "gone.safetensors"})))
    (tmp_path / f"stale{ESCAPE}.safetensors").write_bytes(b"")
    checkpoint = read_checkpoint(tmp_path)
    check(checkpoint)
    assert [unused.name for unused in checkpoint.not_loaded] == ["stale?[31m???.safetensors"]
