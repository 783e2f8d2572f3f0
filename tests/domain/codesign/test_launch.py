"""Launch arguments, as text or as a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.codesign import DEFAULTS, EngineFlags, read_launch_args

LING = (
    "--tp 4 --speculative-algorithm DSPARK --enable-linear-replayssm-spec --linear-replayssm-cache-len 32 "
    "--speculative-draft-model-path inclusionAI/Ling-3.0-flash-dspark --mem-fraction-static=0.85"
)


@pytest.mark.parametrize("args", [LING, LING.split()], ids=["text", "list"])
def test_flags_are_read_in_both_forms(args: str | list[str]) -> None:
    """A published launch line gives its algorithm, its ring and its ranks."""
    assert read_launch_args(args) == EngineFlags(
        tp_size=4,
        speculative_algorithm="DSPARK",
        speculative_draft_model_path="inclusionAI/Ling-3.0-flash-dspark",
        enable_linear_replayssm_spec=True,
        linear_replayssm_cache_len=32,
    )


@pytest.mark.parametrize(
    ("args", "flags"),
    [
        ("--tp-size 2 --tp=8", EngineFlags(tp_size=8)),
        ("--tensor-parallel-size 2", EngineFlags(tp_size=2)),
        ("--context-length eight", EngineFlags()),
        ("--context-length --tp 2", EngineFlags(tp_size=2)),
        ("--enable-gdn-replayssm-spec", EngineFlags(enable_linear_replayssm_spec=True)),
        ('--load-format "dummy" --open "quote', EngineFlags(load_format='"dummy"')),
        ("", EngineFlags()),
    ],
    ids=[
        "the last one counts",
        "long name",
        "a value that is no number",
        "no value at all",
        "deprecated name",
        "an open quote is split at spaces",
        "nothing",
    ],
)
def test_what_stands_there_is_what_is_read(args: str, flags: EngineFlags) -> None:
    """Names have several spellings; a value that cannot be read leaves its flag unknown."""
    assert read_launch_args(args) == flags


def test_defaults_fill_what_is_not_given() -> None:
    """Arguments that are known and silent mean the engine's defaults."""
    flags = read_launch_args("--startup-weight-load-mode overlap").filled_from(DEFAULTS)
    assert (flags.startup_weight_load_mode, flags.linear_replayssm_cache_len) == ("overlap", 16)
    assert flags.enable_linear_replayssm_spec is False


@given(st.text(max_size=200))
def test_no_text_is_a_fault(text: str) -> None:
    """Whatever stands in the budget, reading it ends."""
    assert isinstance(read_launch_args(text), EngineFlags)
