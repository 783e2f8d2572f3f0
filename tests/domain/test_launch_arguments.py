"""Launch arguments as names and values."""

from collections.abc import Sequence

import pytest

from specbudget.domain.launch_arguments import launch_arguments, read_arguments, spelled_out
from specbudget.domain.sglang_options import ALIASES, option_names
from specbudget.domain.sizing_arguments import SizingArguments


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ("--tp 4 --page-size=64", {"tp": "4", "page_size": "64"}),
        (["--tp", "4", "--trust"], {"tp": "4", "trust": ""}),
        ("--tp 4 --tp 8", {"tp": "8"}),
        ("--a --b c d", {"a": "", "b": "c"}),
        ("serve model --port 1", {"port": "1"}),
        ("--name 'two words'", {"name": "two words"}),
        ("--name 'open --tp 2", {"name": "'open", "tp": "2"}),
        ("", {}),
    ],
)
def test_names_and_values(args: str | Sequence[str], found: dict[str, str]) -> None:
    """The last one counts, an equals sign is a space, and a flag is never a value."""
    assert launch_arguments(args) == found


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("--speculative-algo EAGLE3", ["--speculative-algorithm", "EAGLE3"]),
        ("--mem-fraction=0.8", ["--mem-fraction-static=0.8"]),
        ("--tp 4", ["--tp-size", "4"]),
        ("--speculative-draft x", ["--speculative-draft", "x"]),
        ("--unheard-of 1", ["--unheard-of", "1"]),
        ("--model m", ["--model-path", "m"]),
        ("--nsa-prefill-backend=x", ["--nsa-prefill-backend=x"]),
    ],
)
def test_abbreviations_are_spelled_out(args: str, words: list[str]) -> None:
    """Where an option's beginning can mean only one, as the engine's own parser has it."""
    assert spelled_out(args, "0.5.23") == words


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"max_total_tokens": "1000"}, "max_total_tokens", 1000),
        ({"max_total_tokens": "many"}, "max_total_tokens", None),
        ({"max_total_tokens": "²"}, "max_total_tokens", None),
        ({"max_total_tokens": "-1"}, "max_total_tokens", None),
        ({"disable_radix_cache": ""}, "disable_radix_cache", True),
        ({"disable_radix_cache": "false"}, "disable_radix_cache", False),
        ({"mamba_ssm_dtype": "float32"}, "mamba_ssm_dtype", "float32"),
        ({}, "disable_radix_cache", None),
    ],
)
def test_fields_are_filled_with_what_is_given(given: dict[str, str], field: str, value: object) -> None:
    """A switch is true, a number must be one, and the rest stays not known."""
    assert getattr(read_arguments(SizingArguments, given), field) == value


def test_what_one_does_not_say_the_other_fills() -> None:
    """The first one's word wins, a false one too."""
    first = SizingArguments(disable_radix_cache=False)
    second = SizingArguments(disable_radix_cache=True, dcp_size=2)
    assert first.filled_from(second) == SizingArguments(disable_radix_cache=False, dcp_size=2)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_a_second_name_is_read_under_the_first(alias: str, name: str) -> None:
    """Whoever reads the arguments meets one name only; both are options of some release, and the first has no other."""
    known = option_names("")
    assert {alias, name} <= known
    assert name not in ALIASES
    release = next(each for each in ("0.5.23", "0.5.18") if alias in option_names(each))
    assert spelled_out(f"--{alias} 4", release) == [f"--{name}", "4"]


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        ("--nsa-prefill-backend flashmla_kv", "dsa_prefill_backend", "flashmla_kv"),
        ("--nsa-decode-backend fa3", "dsa_decode_backend", "fa3"),
        ("--decode-context-parallel-size 2", "dcp_size", 2),
        ("--attention-context-parallel-size 2", "attn_cp_size", 2),
        ("--mamba-scheduler-strategy no_buffer", "mamba_radix_cache_strategy", "no_buffer"),
        ("--cuda-graph-max-bs-decode 64", "cuda_graph_max_bs", 64),
    ],
)
def test_what_sizes_a_pool_is_read_under_either_name(args: str, field: str, value: object) -> None:
    """An argument in its old spelling decides as much as in the new one."""
    assert getattr(read_arguments(SizingArguments, launch_arguments(spelled_out(args, "0.5.18"))), field) == value
