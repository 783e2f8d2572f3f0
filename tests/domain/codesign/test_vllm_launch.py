"""vLLM's launch arguments: as JSON, dotted, or all of them as one object."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.codesign import EngineFlags, VllmArguments, read_vllm_args
from specbudget.domain.drafter import DraftAlgorithm

SECTION = {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}
READ = VllmArguments(
    algorithm=DraftAlgorithm.EAGLE3,
    num_speculative_tokens=3,
    draft_tensor_parallel=1,
    flags=EngineFlags(speculative_draft_model_path="/d", tp_size=4),
)


@pytest.mark.parametrize(
    "args",
    [
        f"-tp 4 --speculative-config '{json.dumps(SECTION)}'",
        ["--tensor-parallel-size=4", "--speculative_config", json.dumps(SECTION)],
        "--tensor-parallel-size 4 " + " ".join(f"--speculative-config.{key} {value}" for key, value in SECTION.items()),
        json.dumps({"tensor_parallel_size": 4, "speculative_config": SECTION}),
        f"-tp 4 -sc '{json.dumps(SECTION | {'num_speculative_tokens': 9})}' -sc.num_speculative_tokens=3",
    ],
    ids=["as JSON", "as a list", "dotted", "one object", "the last one counts"],
)
def test_every_form_says_the_same(args: str | list[str]) -> None:
    """What vLLM reads, is read."""
    assert read_vllm_args(args) == READ


@pytest.mark.parametrize(
    ("method", "algorithm"),
    [
        ("mtp", DraftAlgorithm.MTP),
        ("deepseek_mtp", DraftAlgorithm.MTP),
        ("draft_model", DraftAlgorithm.STANDALONE),
        ("suffix", DraftAlgorithm.NGRAM),
        ("dspark", DraftAlgorithm.DSPARK),
        ("medusa", None),
    ],
)
def test_methods_by_their_words(method: str, algorithm: DraftAlgorithm | None) -> None:
    """An unknown one is not guessed."""
    assert read_vllm_args(f"-sc.method {method}").algorithm is algorithm


@pytest.mark.parametrize(
    "args",
    [
        "",
        "--",
        "--speculative-config {",
        "--speculative-config.num_speculative_tokens many",
        "-sc.draft_tensor_parallel_size -1",
        "--speculative-config '{\"num_speculative_tokens\": true}'",
    ],
)
def test_what_is_not_understood_is_not_known(args: str) -> None:
    """Nothing is raised and nothing made up."""
    read = read_vllm_args(args)
    assert (read.num_speculative_tokens, read.draft_tensor_parallel) == (None, None)


@given(st.text(max_size=200))
def test_no_text_is_a_fault(text: str) -> None:
    """Whatever stands in the budget, reading it ends."""
    assert isinstance(read_vllm_args(text), VllmArguments)
