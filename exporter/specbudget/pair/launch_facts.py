"""What a server will say of itself once it runs, as far as its launch arguments and the checkpoints tell.

Names and defaults: SGLang 0.5.18 and 0.5.23 server_args.py and arg_groups/speculative_hook.py
(`_auto_choose_speculative_params`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from specbudget.budget.model import Budget
from specbudget.domain.codesign import EngineFlags, read_launch_args
from specbudget.domain.codesign.adaptive_steps import hindrances, most_steps
from specbudget.domain.codesign.vllm_launch import read_vllm_args
from specbudget.domain.drafter import DraftAlgorithm, block_draft_tokens, parse_algorithm
from specbudget.domain.launch_arguments import launch_arguments, read_arguments, spelled_out
from specbudget.domain.observation import EngineFacts
from specbudget.domain.sizing_arguments import SizingArguments

_TREE = (5, 4, 8)
_CHAIN = (3, 1, 4)
_TREE_ARCHITECTURES = frozenset({"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"})
_NGRAM_TOKENS = 12
_DEFAULT_BLOCK = {DraftAlgorithm.DSPARK: 7, DraftAlgorithm.DFLASH: 16}


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def _size(text: str) -> int | None:
    """Of ranks or of a page: at least one, or it is not known."""
    return _whole(text) or None


def _real(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _given(text: str) -> bool:
    return True


_FACTS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "speculative_algorithm": ("algorithm", str),
    "served_model_name": ("served_model", str),
    "model_path": ("target_path", str),
    "model": ("target_path", str),
    "speculative_draft_model_path": ("drafter_path", str),
    "speculative_draft_model": ("drafter_path", str),
    "tp_size": ("tensor_parallel", _size),
    "tp": ("tensor_parallel", _size),
    "tensor_parallel_size": ("tensor_parallel", _size),
    "pp_size": ("pipeline_parallel", _size),
    "pp": ("pipeline_parallel", _size),
    "pipeline_parallel_size": ("pipeline_parallel", _size),
    "dp_size": ("data_parallel", _size),
    "dp": ("data_parallel", _size),
    "data_parallel_size": ("data_parallel", _size),
    "enable_dp_attention": ("attention_dp", _given),
    "page_size": ("page_tokens", _size),
    "speculative_num_steps": ("num_steps", _whole),
    "speculative_num_draft_tokens": ("num_draft_tokens", _whole),
    "speculative_eagle_topk": ("topk", _whole),
    "speculative_adaptive": ("adaptive", _given),
    "speculative_draft_window_size": ("draft_window", _whole),
    "speculative_draft_sink_size": ("draft_sink", _whole),
    "kv_cache_dtype": ("kv_dtype", str),
    "speculative_draft_kv_cache_dtype": ("draft_kv_dtype", str),
    "dtype": ("dtype", str),
    "max_running_requests": ("max_running_requests", _whole),
    "mem_fraction_static": ("mem_fraction_static", _real),
    "mamba_full_memory_ratio": ("mamba_full_memory_ratio", _real),
    "decode_log_interval": ("decode_report_passes", _whole),
    "moe_a2a_backend": ("moe_backend", str),
    "weight_loader_prefetch_checkpoints": ("prefetches", _given),
    "skip_server_warmup": ("skips_warmup", _given),
}


def launch_facts(budget: Budget) -> EngineFacts:
    """What the arguments of an SGLang or vLLM engine say, nothing filled in but what they settle.

    `speculates` stays None where no algorithm is named: the budget may still name one.
    """
    engine = budget.engine
    if engine.args is not None and engine.kind == "vllm":
        return _vllm_facts(engine.args, engine.version)
    if engine.args is None or engine.kind != "sglang":
        return EngineFacts(version=engine.version)
    words = spelled_out(engine.args, engine.version or "")
    given = launch_arguments(words)
    values: dict[str, Any] = {}
    for name, text in given.items():
        fact = _FACTS.get(name)
        if fact is not None:
            values[fact[0]] = fact[1](text) if text or fact[1] is _given else None
    # a switch that is not given is off
    switches = {"attention_dp": False, "prefetches": False, "skips_warmup": False, "adaptive": False}
    flags: EngineFlags = read_launch_args(words)
    sizing = read_arguments(SizingArguments, given)
    return EngineFacts(version=engine.version, flags=flags, sizing=sizing, **{**switches, **values})


def _vllm_facts(args: str | list[str], version: str | None) -> EngineFacts:
    """vLLM counts drafts without the token that the target adds; its numbers are turned into SGLang's words."""
    asked = read_vllm_args(args)
    flags, drafts = asked.flags, asked.num_speculative_tokens
    block = asked.algorithm is not None and asked.algorithm.is_block
    return EngineFacts(
        version=version,
        algorithm=asked.algorithm,
        tensor_parallel=flags.tp_size,
        pipeline_parallel=flags.pp_size,
        num_steps=None if block else drafts,
        num_draft_tokens=None if drafts is None else drafts + 1,
        topk=1,
        kv_dtype=flags.kv_cache_dtype,
        draft_kv_dtype=flags.speculative_draft_kv_cache_dtype,
        drafter_path=flags.speculative_draft_model_path,
        flags=flags,
    )


def with_defaults(
    facts: EngineFacts, *, algorithm: DraftAlgorithm | None, architecture: str | None, block_size: int | None
) -> EngineFacts:
    """The facts with the steps and draft tokens that SGLang chooses where nobody gives them.

    `architecture` is the target's, `block_size` the drafter checkpoint's. An adaptive drafter chooses at run time: it
    has the most steps that it may take, for which the engine sizes its memory.
    """
    if algorithm is None:
        return facts
    if facts.adaptive and not hindrances(
        algorithm, topk=facts.topk, attention_dp=facts.attention_dp, flags=facts.flags
    ):
        most = most_steps(facts.flags)
        return facts if most is None else replace(facts, num_steps=most, topk=1, num_draft_tokens=most + 1)
    # what the engine turns off is off
    facts = replace(facts, adaptive=False) if facts.adaptive else facts
    if algorithm is DraftAlgorithm.NGRAM:
        return replace(facts, num_draft_tokens=facts.num_draft_tokens or _NGRAM_TOKENS)
    if algorithm.is_block:
        flag = (
            facts.flags.speculative_dspark_block_size
            if algorithm is DraftAlgorithm.DSPARK
            else facts.flags.speculative_dflash_block_size
        )
        block = flag or block_size or _DEFAULT_BLOCK[algorithm]
        tokens = facts.num_draft_tokens or block_draft_tokens(algorithm, block)
        return replace(facts, num_steps=1, topk=1, num_draft_tokens=tokens)
    if algorithm.is_chain:
        tree = algorithm is not DraftAlgorithm.STANDALONE and architecture in _TREE_ARCHITECTURES
        steps, topk, tokens = _TREE if tree else _CHAIN
        if facts.num_steps is not None:
            steps, topk = facts.num_steps, facts.topk or 1
            tokens = facts.num_draft_tokens or steps + 1
            # a chain verifies every draft and one token more, whatever was asked
            tokens = steps + 1 if topk == 1 else tokens
        return replace(facts, num_steps=steps, topk=topk, num_draft_tokens=tokens)
    return facts


def planned_algorithm(facts: EngineFacts, budget: Budget) -> DraftAlgorithm | None:
    """The engine's word, else the budget's."""
    return parse_algorithm(facts.algorithm) or budget.drafter.algorithm
