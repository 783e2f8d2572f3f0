"""Writes the pair's checkpoints: configurations, true tensor headers, and holes where the weights would be."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from specbudget.simulate.configs import TARGET_CONFIG
from specbudget.simulate.drafters import DRAFTERS, Drafter
from specbudget.simulate.scenarios import Algorithm
from specbudget.simulate.tensors import Tensor, target_layers


def safetensors_header(tensors: Iterable[Tensor]) -> tuple[bytes, int]:
    """The header of a safetensors file (length prefix included) and the size of its data section in bytes.

    Tensors lie one after the other; the header is padded with spaces to a multiple of eight bytes.
    """
    entries = ['"__metadata__":{"format":"pt"}']
    end = 0
    for tensor in tensors:
        begin, end = end, end + tensor.nbytes
        shape = ",".join(map(str, tensor.shape))
        entries.append(f'"{tensor.name}":{{"dtype":"{tensor.dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]}}')
    text = ("{" + ",".join(entries) + "}").encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, end


def write_shard(path: Path, header: bytes, data_bytes: int) -> None:
    """Write one file whose data section is a hole: its size counts, its blocks do not exist."""
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + data_bytes)


@functools.lru_cache(maxsize=1)
def _target_shards() -> tuple[tuple[list[str], bytes, int], ...]:
    """Names, header and data size of each target shard: one per layer, so that every one stays below 7 GB."""
    shards = []
    for tensors in target_layers():
        header, size = safetensors_header(tensors)
        shards.append(([tensor.name for tensor in tensors], header, size))
    return tuple(shards)


def write_target(folder: Path) -> None:
    """Write the target's checkpoint: config.json, index and shards."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", TARGET_CONFIG)
    shards = _target_shards()
    entries = []
    total = 0
    for number, (names, header, size) in enumerate(shards, start=1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write_shard(folder / name, header, size)
        entries += [f'"{tensor}":"{name}"' for tensor in names]
        total += size
    index = f'{{"metadata":{{"total_size":{total}}},"weight_map":{{' + ",\n".join(entries) + "}}\n"
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")


def write_drafter(
    folder: Path, *, drafter: Drafter = DRAFTERS[Algorithm.DSPARK], changes: dict[str, Any] | None = None
) -> None:
    """Write the drafter's checkpoint in one file; `changes` replace keys of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {**drafter.config, **(changes or {})}
    header, size = safetensors_header(drafter.tensors())
    write_shard(folder / "model.safetensors", header, size)
    _write_json(folder / "config.json", config)


def _write_json(path: Path, value: object) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
