"""What SGLang chooses by itself, and which of it is told as a default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specbudget.budget.model import Budget
from specbudget.domain.codesign import DraftShape, EngineFlags, EngineSetup
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.observation import EngineFacts
from specbudget.pair.facts import engine_setup, pair_facts
from specbudget.pair.launch_facts import with_defaults
from specbudget.pair.side import Side, read_side
from specbudget.sources.checkpoint import read_checkpoint

LLAMA = "LlamaForCausalLM"
ADAPTIVE = EngineFacts(adaptive=True)


@pytest.mark.parametrize(
    ("facts", "algorithm", "adaptive", "tokens"),
    [
        (ADAPTIVE, DraftAlgorithm.DSPARK, False, 8),
        (ADAPTIVE, DraftAlgorithm.DFLASH, False, 16),
        (ADAPTIVE, DraftAlgorithm.STANDALONE, False, 4),
        (ADAPTIVE, DraftAlgorithm.EAGLE3, True, 8),
        (replace(ADAPTIVE, num_steps=3, topk=1, num_draft_tokens=4), DraftAlgorithm.EAGLE, True, 8),
        (replace(ADAPTIVE, attention_dp=True), DraftAlgorithm.EAGLE3, False, 8),
        (replace(ADAPTIVE, flags=EngineFlags(speculative_adaptive_config="/c")), DraftAlgorithm.EAGLE3, True, None),
        (EngineFacts(), DraftAlgorithm.NGRAM, None, 12),
        (EngineFacts(num_draft_tokens=6), DraftAlgorithm.NGRAM, None, 6),
    ],
)
def test_what_the_engine_turns_off_is_off(
    facts: EngineFacts, algorithm: DraftAlgorithm, adaptive: bool | None, tokens: int | None
) -> None:
    """Adaptive speculation stays only where the engine keeps it, and then has the most steps it may take."""
    found = with_defaults(facts, algorithm=algorithm, architecture=LLAMA, block_size=None)
    assert (found.adaptive, found.num_draft_tokens) == (adaptive, tokens)


def setup(args: str, **changes: Any) -> EngineSetup:
    """The engine that these arguments start."""
    budget = Budget.model_validate({"service": "chat", "engine": {"kind": "sglang", "args": args}})
    return replace(engine_setup(budget, EngineFacts()), **changes)


def side(folder: Path, architecture: str) -> Side:
    """A target that is a config alone."""
    folder.joinpath("config.json").write_text(f'{{"architectures": ["{architecture}"]}}')
    return read_side(read_checkpoint(folder))


EAGLE3_ARGS = "--speculative-algorithm EAGLE3 --speculative-draft-model-path /d"


@pytest.mark.parametrize(
    ("args", "changes", "architecture", "shape"),
    [
        (EAGLE3_ARGS, {}, LLAMA, DraftShape(steps=5, topk=4, draft_tokens=8)),
        (EAGLE3_ARGS, {}, "Qwen3ForCausalLM", DraftShape(steps=3, topk=1, draft_tokens=4)),
        (f"{EAGLE3_ARGS} --speculative-num-steps 3", {}, LLAMA, None),
        (f"{EAGLE3_ARGS} --speculative-adaptive", {}, LLAMA, None),
        (EAGLE3_ARGS, {"running": True}, LLAMA, None),
        (EAGLE3_ARGS, {"kind": "vllm"}, LLAMA, None),
        ("--speculative-algorithm DSPARK", {}, LLAMA, None),
    ],
)
def test_the_shape_that_the_engine_chooses(
    args: str, changes: dict[str, Any], architecture: str, shape: DraftShape | None, tmp_path: Path
) -> None:
    """Only where nothing of it is given; what is given stays apart from what is chosen."""
    pair = pair_facts(side(tmp_path, architecture), None, engine=setup(args, **changes))
    assert pair is not None
    assert (pair.engine.default_shape, pair.engine.topk) == (shape, None)


def test_a_drafter_that_the_budget_does_not_name_is_not_read_off_the_target(tmp_path: Path) -> None:
    """An EAGLE-3 head is never part of its target's checkpoint."""
    pair = pair_facts(side(tmp_path, LLAMA), None, engine=setup(EAGLE3_ARGS))
    assert pair is not None
    assert (pair.drafter.unseen, pair.drafter.architecture) == (True, None)


def test_data_parallel_ranks_of_the_arguments() -> None:
    """They count before the budget's, as the tensor-parallel ones do."""
    engine = setup("--tp 8 --dp 2 --enable-dp-attention")
    assert (engine.data_parallel, engine.groups) == (2, 2)
    assert setup("--tp 8 --attn-dp-size 4 --attn-cp-size 2").groups == 8
