"""Plans made to measure: two small checkpoints with true headers, a budget file, and what the gate says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from specbudget.check.gather import gather
from specbudget.check.plan import Plan
from specbudget.check.report import Report, judge_plan
from specbudget.domain.finding import Finding

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOBODY = "http://127.0.0.1:9"
"""An address where no engine listens."""

TARGET = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""8 layers x 2 x 4 heads x 16 x 2 B = 2,048 B of KV per token."""

DFLASH = {
    **TARGET,
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 2,
    "num_target_layers": 8,
    "block_size": 8,
    "dflash_config": {"target_layer_ids": [1, 4], "mask_token_id": 1000},
}
"""2 layers: 512 B of KV per token; a verify window of 8."""

EAGLE3 = {
    **TARGET,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 1024,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]},
}
"""1 layer: 256 B of KV per token."""

BUDGET: dict[str, Any] = {
    "service": "chat",
    "engine": {
        "url": NOBODY,
        "version": "0.5.23",
        "args": "--speculative-algorithm DFLASH --mem-fraction-static 0.8 --weight-loader-prefetch-checkpoints",
        "free_before_load": "1024MiB",
        "request_log": "requests",
    },
    "target": {"path": "target"},
    "drafter": {"path": "drafter", "algorithm": "dflash"},
    "budget": {},
}
"""A plan that passes; each test adds the lines it is about."""

TOKENIZER = json.dumps({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}, "added_tokens": []})

Tensors = Mapping[str, tuple[int, ...]]


def layer_tensors(config: Mapping[str, Any], prefix: str) -> dict[str, tuple[int, ...]]:
    """The tensors of the plain attention layers of a config."""
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    return {
        f"{prefix}layers.{layer}.{name}.weight": shape
        for layer in range(config["num_hidden_layers"])
        for name, shape in {
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, queries),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }.items()
    }


def target_tensors(config: Mapping[str, Any] = TARGET) -> dict[str, tuple[int, ...]]:
    """The tensors of a whole target."""
    wide = (config["vocab_size"], config["hidden_size"])
    return {
        "model.embed_tokens.weight": wide,
        **layer_tensors(config, "model."),
        "model.norm.weight": (config["hidden_size"],),
        "lm_head.weight": wide,
    }


def dflash_tensors(config: Mapping[str, Any] = DFLASH) -> dict[str, tuple[int, ...]]:
    """The tensors of a block drafter."""
    hidden, taps = config["hidden_size"], len(DFLASH["dflash_config"]["target_layer_ids"])  # type: ignore[arg-type]
    return {
        "fc.weight": (hidden, taps * hidden),
        **layer_tensors(config, ""),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }


def eagle3_tensors(config: Mapping[str, Any] = EAGLE3) -> dict[str, tuple[int, ...]]:
    """The tensors of an EAGLE-3 head with a head of its own over the draft vocabulary."""
    hidden = config["hidden_size"]
    return {
        "fc.weight": (hidden, 3 * hidden),
        **layer_tensors(config, "mid"),
        "norm.weight": (hidden,),
        "lm_head.weight": (config["draft_vocab_size"], hidden),
    }


def write_weights(path: Path, tensors: Tensors, *, dtype: str = "BF16", bits: int = 16) -> Path:
    """A sparse safetensors file with a true header."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in tensors.items():
        begin, end = end, end + prod(shape) * bits // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return path


def write_checkpoint(folder: Path, config: Mapping[str, Any], tensors: Tensors | None = None) -> Path:
    """A checkpoint in one file, its tokenizer that of all others here; without tensors no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(TOKENIZER)
    if tensors is not None:
        write_weights(folder / "model.safetensors", tensors)
    return folder


@dataclass(frozen=True)
class Judged:
    """A plan and what the gate says of it."""

    plan: Plan
    report: Report

    def __getitem__(self, wanted: str) -> Finding:
        return next(finding for finding in self.report.findings if finding.id == wanted)

    def __contains__(self, wanted: str) -> bool:
        return any(finding.id == wanted for finding in self.report.findings)


class PlanFolder:
    """A folder with `target/`, `drafter/` and `budget.yaml`; tests change what they are about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "budget.yaml"
        self.lock = folder / "budget.lock"
        self.target = write_checkpoint(folder / "target", TARGET, target_tensors())
        self.drafter = write_checkpoint(folder / "drafter", DFLASH, dflash_tensors())

    def write(self, **changes: Any) -> Path:
        """The budget file with some keys replaced: `engine__args="..."`; None takes a key away."""
        document = deepcopy(BUDGET)
        for dotted, value in changes.items():
            *path, last = dotted.split("__")
            place = document
            for key in path:
                place = place.setdefault(key, {})
            if value is None:
                place.pop(last, None)
            else:
                place[last] = value
        self.file.write_text(json.dumps(document))
        return self.file

    def judge(self, **changes: Any) -> Judged:
        """The verdict on the budget with these changes."""
        plan = gather(self.write(**changes))
        return Judged(plan, judge_plan(plan))

    def use_eagle3(self) -> dict[str, Any]:
        """An EAGLE-3 head in place of the block drafter; returns the changes that the budget needs."""
        write_checkpoint(self.drafter, EAGLE3, eagle3_tensors())
        return {
            "drafter__algorithm": "eagle3",
            "engine__args": "--speculative-algorithm EAGLE3 --mem-fraction-static 0.8 --speculative-num-steps 3",
        }
