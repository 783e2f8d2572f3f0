"""Arbitrary content in the files of a checkpoint: never an exception, always bounded, always printable problems."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.pair.side import read_side
from specbudget.sources.checkpoint import Checkpoint, Role, loaded_weights, read_checkpoint, weights_per_device

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
CONFIG_KEYS = st.sampled_from(
    [
        *("architectures", "model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim"),
        *("num_key_value_heads", "kv_lora_rank", "qk_rope_head_dim", "layer_types", "sliding_window", "text_config"),
        *("dflash_config", "layer_group_size", "linear_attn_config", "kda_layers", "quantization_config"),
        *("full_attention_interval", "hybrid_override_pattern", "target_layer_ids", "thinker_config", "block_size"),
        *("num_nextn_predict_layers", "transformer_layer_config", "use_sliding_window", "num_kv_shared_layers"),
        *("dtype", "vocab_size", "index_topk", "indexer_types", "tie_word_embeddings", "dspark_block_size"),
    ]
)
WORDS = st.sampled_from(["full_attention", "sliding_attention", "linear_attention", "DeepseekV3ForCausalLM", "M*-E"])
JSON = st.recursive(
    SCALARS | WORDS | st.integers(0, 64),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(CONFIG_KEYS | st.text(max_size=4), inner, max_size=6),
    max_leaves=20,
)
NAMES = st.sampled_from(
    ["model.layers.0.self_attn.q_proj.weight", "embed_tokens.weight", "lm_head.weight", "mtp.fc.weight", "d2t", "x"]
) | st.text(max_size=12)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["BF16", "F32", "U8", "F4", "I64", "Q9", ""]) | SCALARS,
        "shape": st.lists(st.integers(-1, 9), max_size=4) | st.lists(SCALARS, max_size=3) | SCALARS,
        "data_offsets": st.lists(st.integers(-1, 99), min_size=1, max_size=3) | SCALARS,
    },
)


@contextmanager
def folder(**files: bytes) -> Iterator[Path]:
    """A folder with these files; hypothesis runs many examples in one test, so tmp_path does not do."""
    with tempfile.TemporaryDirectory() as name:
        for key, content in files.items():
            (Path(name) / key.replace("__", ".")).write_bytes(content)
        yield Path(name)


def check(checkpoint: Checkpoint) -> None:
    """What must hold whatever the files said."""
    for problem in checkpoint.problems:
        assert str(problem).isprintable()
        assert problem.message.isprintable()
        assert len(problem.message) < 1000
    assert len(checkpoint.problems) <= 21
    # What is not known has a reason, and whoever reads on finds everything else in order.
    assert checkpoint.problems or checkpoint.facts is not None
    assert checkpoint.problems or checkpoint.parameters is not None or checkpoint.shards == 0
    assert read_side(checkpoint).checkpoint is checkpoint
    assert checkpoint.parameters is None or checkpoint.parameters >= 0
    if checkpoint.geometry is not None:
        assert len(checkpoint.geometry.layers) <= 20_000
    for algorithm in DraftAlgorithm:
        for role in Role:
            loaded = loaded_weights(checkpoint, algorithm, role=role)
            device = weights_per_device(checkpoint, algorithm, 4, role)
            assert loaded is None or 0 <= loaded.resident_bytes <= loaded.charged_bytes
            assert device is None or 0 <= device.resident_bytes <= device.charged_bytes


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_as_config_index_and_weights(content: bytes) -> None:
    """Random bytes in each file."""
    with folder(config__json=content) as path:
        check(read_checkpoint(path))
    with folder(model__safetensors=content) as path:
        check(read_checkpoint(path))
    with folder(model__safetensors__index__json=content) as path:
        check(read_checkpoint(path))
    length = len(content).to_bytes(8, "little")
    with folder(model__safetensors=length + content) as path:
        check(read_checkpoint(path))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(CONFIG_KEYS, JSON, max_size=12))
def test_any_json_under_the_keys_of_a_config(config: dict[str, Any]) -> None:
    """Right keys with wrong values, at the top and nested."""
    with folder(config__json=json.dumps(config).encode()) as path:
        check(read_checkpoint(path))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAMES, ENTRIES | JSON, max_size=5), st.integers(0, 100), st.dictionaries(CONFIG_KEYS, JSON))
def test_any_json_as_a_header(entries: dict[str, Any], data: int, config: dict[str, Any]) -> None:
    """Entries that are nearly right, with too little, enough or too much data behind them."""
    text = json.dumps(entries).encode()
    content = len(text).to_bytes(8, "little") + text + b"\0" * data
    with folder(model__safetensors=content, config__json=json.dumps(config).encode()) as path:
        check(read_checkpoint(path))


@settings(max_examples=200, deadline=None)
@given(JSON | st.fixed_dictionaries({"weight_map": JSON | st.dictionaries(NAMES, NAMES | JSON, max_size=5)}))
def test_any_json_as_an_index(index: Any) -> None:
    """Maps that are nearly right."""
    with folder(model__safetensors__index__json=json.dumps(index).encode()) as path:
        checkpoint = read_checkpoint(path)
        check(checkpoint)
        assert checkpoint.parameters is None


KEYS = NAMES | st.sampled_from(["__metadata__", "a", "model.layers.1.mlp.experts.0.w1.weight"])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(KEYS, st.integers(0, 40), st.integers(0, 40)), max_size=8),
    st.sampled_from(["", " ", "\n"]),
    st.integers(0, 60),
)
def test_headers_of_any_ranges(tensors: list[tuple[str, int, int]], space: str, data: int) -> None:
    """Names may come twice, ranges may overlap, leave holes or end outside: sound is what covers each byte once."""
    entries = [
        f'{json.dumps(name)}:{space}{{"dtype":"U8","shape":[{max(0, end - begin)}],"data_offsets":[{begin},{end}]}}'
        for name, begin, end in tensors
    ]
    text = ("{" + f",{space}".join(entries) + "}").encode()
    with folder(model__safetensors=len(text).to_bytes(8, "little") + text + b"\0" * data) as path:
        checkpoint = read_checkpoint(path)
        check(checkpoint)
        ranges = sorted((begin, end) for name, begin, end in tensors if name != "__metadata__")
        edges = [0, *(edge for pair in ranges for edge in pair), data]
        whole = all(end == begin for end, begin in zip(edges[::2], edges[1::2], strict=True))
        ordered = all(begin <= end for begin, end in ranges)
        assert (checkpoint.parameters is not None) == (whole and ordered)
        assert checkpoint.parameters in (None, data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_tokenizer(content: bytes) -> None:
    """Only its bytes are looked at here."""
    with folder(config__json=b"{}", tokenizer__json=content) as path:
        check(read_checkpoint(path))
