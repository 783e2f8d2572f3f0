"""Launch arguments of a vLLM server that decide whether a pair fits, read into what SGLang's are called.

Source: vLLM 0.32.0 `config/speculative.py` (SpeculativeConfig), `engine/arg_utils.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specbudget.domain.codesign.launch import EngineFlags
from specbudget.domain.drafter import DraftAlgorithm, parse_algorithm
from specbudget.domain.launch_arguments import launch_words

_METHODS = {
    "draft_model": DraftAlgorithm.STANDALONE,
    "ngram_gpu": DraftAlgorithm.NGRAM,
    "suffix": DraftAlgorithm.NGRAM,
}
_SECTION = "speculative_config"
_SHORT = {"sc": _SECTION, "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size"}
_LARGEST_TEXT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmArguments:
    """What the arguments say; None: not given. `num_speculative_tokens` counts drafts, without the target's token."""

    algorithm: DraftAlgorithm | None = None
    num_speculative_tokens: int | None = None
    draft_tensor_parallel: int | None = None
    flags: EngineFlags = field(default_factory=EngineFlags)


def read_vllm_args(args: str | Sequence[str]) -> VllmArguments:
    """The arguments: `--speculative-config '{...}'`, its dotted form, or all of them as one JSON object.

    The last one of each counts; what is not understood is passed over.
    """
    given: dict[str, Any] = {}
    section: dict[str, Any] = {}
    for name, value in _pairs(args):
        first, dot, key = name.partition(".")
        first = _SHORT.get(first, first)
        if first != _SECTION:
            given[first] = value
        elif dot:
            section[key] = value
        elif (whole := _object(value)) is not None:
            section = dict(whole)
    drafts = _count(section.get("num_speculative_tokens"))
    return VllmArguments(
        algorithm=_algorithm(_text(section.get("method"))),
        num_speculative_tokens=drafts,
        # a group of no ranks is none
        draft_tensor_parallel=_count(section.get("draft_tensor_parallel_size")) or None,
        flags=EngineFlags(
            speculative_draft_model_path=_text(section.get("model")),
            speculative_draft_model_quantization=_text(section.get("quantization")),
            speculative_draft_kv_cache_dtype=_text(section.get("kv_cache_dtype")),
            quantization=_text(given.get("quantization")),
            kv_cache_dtype=_text(given.get("kv_cache_dtype")),
            load_format=_text(given.get("load_format")),
            context_length=_count(given.get("max_model_len")),
            tp_size=_count(given.get("tensor_parallel_size")) or None,
            pp_size=_count(given.get("pipeline_parallel_size")) or None,
        ),
    )


def _pairs(args: str | Sequence[str]) -> Iterator[tuple[str, Any]]:
    whole = _object(args) if isinstance(args, str) else None
    if whole is not None:
        yield from ((str(name).replace("-", "_"), value) for name, value in whole.items())
        return
    words = launch_words(args)
    for index, word in enumerate(words):
        if not word.startswith("-") or len(word) < 2:
            continue
        name, equals, value = word.lstrip("-").partition("=")
        following = words[index + 1] if index + 1 < len(words) else ""
        yield name.replace("-", "_"), value if equals else "" if following.startswith("--") else following


def _object(value: object) -> Mapping[str, Any] | None:
    """A JSON object, whether given as text or as one; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{") and len(value) <= _LARGEST_TEXT:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _algorithm(method: str | None) -> DraftAlgorithm | None:
    if method is None:
        return None
    if method.endswith("_mtp"):
        return DraftAlgorithm.MTP
    return _METHODS.get(method) or parse_algorithm(method)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 12:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None
