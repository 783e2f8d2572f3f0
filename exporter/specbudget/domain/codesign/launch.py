"""Launch arguments of an SGLang server that decide whether a pair fits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """Arguments beyond the ones every reading has; None: not known. Names: SGLang 0.5.23 server arguments."""

    speculative_algorithm: str | None = None
    speculative_num_steps: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_dspark_block_size: int | None = None
    speculative_dflash_block_size: int | None = None
    speculative_draft_window_size: int | None = None
    speculative_draft_model_quantization: str | None = None
    speculative_draft_load_format: str | None = None
    quantization: str | None = None
    load_format: str | None = None
    context_length: int | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    enable_dp_attention: bool | None = None
    enable_linear_replayssm: bool | None = None
    enable_linear_replayssm_spec: bool | None = None
    linear_replayssm_cache_len: int | None = None
    startup_weight_load_mode: str | None = None
    disaggregation_mode: str | None = None

    def filled_from(self, other: EngineFlags) -> EngineFlags:
        """These flags, with what they do not say taken from `other`."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return EngineFlags(**{name: theirs if own is None else own for name, (own, theirs) in pairs.items()})


DEFAULTS = EngineFlags(
    enable_dp_attention=False,
    enable_linear_replayssm=False,
    enable_linear_replayssm_spec=False,
    linear_replayssm_cache_len=16,
    startup_weight_load_mode="serial",
    speculative_draft_load_format="auto",
    load_format="auto",
    disaggregation_mode="null",
    pp_size=1,
    tp_size=1,
)
"""What SGLang 0.5.18 and 0.5.23 take where an argument is not given."""

_OTHER_NAMES = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "enable_gdn_replayssm_spec": "enable_linear_replayssm_spec",
}
_KINDS = {f.name: str(f.type) for f in fields(EngineFlags)}
_AT_LEAST_ONE = frozenset({"tp_size", "pp_size", "dp_size", "attn_cp_size", "dcp_size"})


def read_launch_args(args: str | Sequence[str]) -> EngineFlags:
    """The flags that stand in launch arguments, the last one of each counting; unknown ones are passed over.

    A value that is no number where one belongs, and a group of no ranks, leave their flag unknown. Text with an open
    quote is split at spaces.
    """
    values: dict[str, str | int | bool] = {}
    words = launch_words(args)
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        name = _OTHER_NAMES.get(name, name)
        kind = _KINDS.get(name)
        if kind is None:
            continue
        if kind.startswith("bool"):
            values[name] = True
            continue
        if not equals:
            value = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("--") else ""
        if kind.startswith("str"):
            values[name] = value
        elif value.isascii() and value.isdigit() and len(value) <= 12:
            values[name] = int(value)
            if name in _AT_LEAST_ONE and not int(value):
                del values[name]
    return EngineFlags(**values)  # type: ignore[arg-type]


def launch_words(args: str | Sequence[str]) -> list[str]:
    """The words of launch arguments; text with an open quote is split at spaces."""
    if not isinstance(args, str):
        return [str(word) for word in args]
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()
