"""What the running engine, the arguments and the budget say together of how the pair is run."""

from __future__ import annotations

from typing import Any

import pytest

from specbudget.budget.model import Budget
from specbudget.domain.codesign import EngineFlags
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.observation import EngineFacts
from specbudget.pair.facts import engine_setup, simulated_length

LING_ARGS = "--tp 4 --speculative-algorithm DSPARK --enable-linear-replayssm-spec --linear-replayssm-cache-len 32"


def budget(args: str | None = None, **engine: Any) -> Budget:
    """A budget whose engine has these arguments."""
    return Budget.model_validate({"service": "chat", "engine": {"args": args, **engine}, "parallelism": {"tensor": 4}})


def test_the_running_engine_wins_over_the_arguments() -> None:
    """What it reports replaces what was written down; silence does not."""
    flags = EngineFlags(linear_replayssm_cache_len=64, enable_linear_replayssm_spec=True)
    running = EngineFacts(version="0.5.23", num_draft_tokens=9, tensor_parallel=8)
    engine = engine_setup(budget(LING_ARGS, version="0.5.18"), running, flags)
    assert (engine.version, engine.running, engine.num_draft_tokens, engine.tensor_parallel) == ("0.5.23", True, 9, 8)
    assert (engine.flags.linear_replayssm_cache_len, engine.flags.startup_weight_load_mode) == (64, "serial")


def test_vllm_arguments_set_up_the_engine() -> None:
    """Drafts are counted with the target's token, as everywhere here, and the drafter's ranks are kept apart."""
    args = """--kv-cache-dtype fp8 --speculative-config '{"method": "eagle3", "model": "/d",
              "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}'"""
    engine = engine_setup(budget(args, kind="vllm"), EngineFacts())
    assert (engine.algorithm, engine.num_draft_tokens, engine.draft_tensor_parallel) == (DraftAlgorithm.EAGLE3, 4, 1)
    assert (engine.kv_dtype, engine.flags.speculative_draft_model_path, engine.tensor_parallel) == ("fp8", "/d", 4)


def test_the_newer_spelling_of_data_parallel_attention() -> None:
    """Ranks of attention, given as a number, mean that it is on."""
    engine = engine_setup(budget("--attn-dp-size 4", env={"SGLANG_RAGGED_VERIFY_MODE": "compact"}), EngineFacts())
    assert (engine.attention_dp, dict(engine.environment)) == (True, {"SGLANG_RAGGED_VERIFY_MODE": "compact"})


def test_without_arguments_no_default_is_taken_for_granted() -> None:
    """An engine that nobody described may run anything."""
    engine = engine_setup(budget(), EngineFacts())
    assert (engine.running, engine.flags) == (False, EngineFlags())


@pytest.mark.parametrize(
    ("value", "length"),
    [("3.5", 3.5), ("-1", None), ("", None), ("nan", None), ("three", None), (None, None)],
)
def test_the_simulated_length_of_an_environment(value: str | None, length: float | None) -> None:
    """SGLang's own default is -1: off."""
    assert simulated_length({} if value is None else {"SGLANG_SIMULATE_ACC_LEN": value}) == length
