"""Faults that monitors of this kind are known to miss, each on a plan of its own, told by the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.check.plans import (
    DFLASH,
    EAGLE3,
    FIXTURES,
    TARGET,
    PlanFolder,
    eagle3_tensors,
    target_tensors,
    write_checkpoint,
    write_weights,
)

from specbudget.domain.finding import CheckResult
from specbudget.domain.pool_sizing import Prediction

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN
GIB = 2**30

WIDE = {
    **TARGET,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128_000,
}
"""A target of usual width; layers are added by the tests."""

HEAD = {**EAGLE3, **{key: WIDE[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads")},
        "head_dim": 128, "vocab_size": 128_000, "draft_vocab_size": 32_000}  # fmt: skip


def measured(
    plans: PlanFolder, *, left: int, target: dict[str, Any], drafter: dict[str, Any], drafter_bytes: int
) -> dict[str, Any]:
    """A plan whose engine has exactly `left` bytes for KV beside the target's weights, the drafter's not yet off."""
    write_checkpoint(plans.target, target, {"model.embed_tokens.weight": (128_000, 4096)})
    write_checkpoint(plans.drafter, drafter, {"layers.0.mlp.down_proj.weight": (4096, drafter_bytes // 8192)})
    whole = 2 * (128_000 * 4096 * 2 + left)
    return {"engine__free_before_load": f"{whole}B"}


def test_weights_and_kv_of_the_drafter_are_part_of_the_budget(plans: PlanFolder) -> None:
    """40 GiB beside the target's weights: 436,906 tokens alone, 410,641 with a drafter of 900 MB, 4,096 B a token."""
    drafter = {**DFLASH, **{key: HEAD[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads")},
               "head_dim": 128, "num_hidden_layers": 1}  # fmt: skip
    left = 40 * GIB
    budget = measured(plans, left=left, target={**WIDE, "num_hidden_layers": 48}, drafter=drafter,
                      drafter_bytes=899_997_696)  # fmt: skip
    args = "--mem-fraction-static 0.5 --speculative-algorithm DFLASH --kv-cache-dtype fp8_e4m3"
    judged = plans.judge(**budget, engine__args=f"{args} --speculative-draft-kv-cache-dtype bfloat16")
    assert judged["kv.target_bytes_per_token"].value == 98_304
    assert judged["kv.drafter_bytes_per_token"].value == 4_096
    tokens = judged["kv.min_target_tokens"].value
    assert tokens == (left - 899_997_696) // (98_304 + 4_096) == 410_641
    outcome = judged.plan.pool.outcome
    assert isinstance(outcome, Prediction)
    assert outcome.without_drafter is not None
    assert outcome.without_drafter.point == left // 98_304 == 436_906
    assert judged["kv.drafter_cost_tokens"].value == 436_906 - 410_641


def test_a_head_that_is_charged_less_than_its_pool_takes_is_told(plans: PlanFolder) -> None:
    """SGLang charges EAGLE-3 as a layer of the fp8 target, 2,048 B, and allocates 4,096 B in bfloat16."""
    budget = measured(plans, left=40 * GIB, target={**WIDE, "num_hidden_layers": 48}, drafter=HEAD,
                      drafter_bytes=899_997_696)  # fmt: skip
    args = "--mem-fraction-static 0.5 --speculative-algorithm EAGLE3 --kv-cache-dtype fp8_e4m3"
    budget["engine__args"] = f"{args} --speculative-draft-kv-cache-dtype bfloat16"
    judged = plans.judge(**budget, drafter__algorithm="eagle3")
    tokens, unpriced = judged["kv.min_target_tokens"].value, judged["kv.unpriced_bytes"]
    assert isinstance(tokens, int)
    assert "2,048 of 100,352 B" in judged["kv.drafter_cost_tokens"].message
    assert unpriced.value == (tokens + 1) * 4_096 - tokens * 2_048
    assert unpriced.result is WARN


def test_layers_of_the_drafter_are_its_own_and_not_its_draft_length(plans: PlanFolder) -> None:
    """Four drafts per step, one layer: 4,096 B beside 131,072 B, and both pools come out of one budget of 100 GiB."""
    budget = measured(plans, left=100 * GIB + 1_500_004_352, target={**WIDE, "num_hidden_layers": 32}, drafter=HEAD,
                      drafter_bytes=0)  # fmt: skip
    args = "--mem-fraction-static 0.5 --speculative-algorithm EAGLE3 --speculative-num-steps 4"
    judged = plans.judge(**budget, engine__args=f"{args} --speculative-eagle-topk 1", drafter__algorithm="eagle3")
    assert judged["kv.drafter_bytes_per_token"].value == 4_096
    weights = judged.plan.drafter_device_weights
    tokens = judged["kv.min_target_tokens"].value
    assert weights is not None
    assert tokens == (100 * GIB + 1_500_004_352 - weights.charged_bytes) // 135_168
    assert 100 * GIB // 135_168 == 794_375
    assert "3.0% of the target's token budget" in judged["kv.drafter_cost_tokens"].message


def test_latent_attention_is_whole_on_every_rank_and_linear_layers_hold_no_kv(plans: PlanFolder) -> None:
    """Five latent layers of twenty at 896 B: 4,480 B on each of two ranks."""
    kinds = (["linear_attention"] * 3 + ["full_attention"]) * 5
    latent = {**WIDE, "num_hidden_layers": 20, "layer_types": kinds, "kv_lora_rank": 384, "qk_rope_head_dim": 64}
    write_checkpoint(plans.target, latent)
    judged = plans.judge(engine__args="--tp 2", drafter__path=None, drafter__algorithm=None, budget__kv={})
    told = judged["kv.target_bytes_per_token"]
    assert told.value == 4_480
    assert any("15 x recurrent, no KV" in step for step in told.arithmetic)
    assert any("5 x latent attention, (384 + 64) x 2 B, on every rank" in step for step in told.arithmetic)


def test_an_fp8_cache_takes_the_drafter_along(plans: PlanFolder) -> None:
    """Both sizes are shown where the drafter's dtype is not given: 10,240 B and 20,480 B beside 98,304 B."""
    write_checkpoint(plans.target, {**WIDE, "num_hidden_layers": 48})
    write_checkpoint(plans.drafter, {**WIDE, **{key: DFLASH[key] for key in ("architectures", "block_size")},
                                     "num_hidden_layers": 5})  # fmt: skip
    judged = plans.judge(engine__args="--kv-cache-dtype fp8_e4m3 --speculative-algorithm DFLASH")
    told = judged["kv.drafter_kv_dtype"]
    assert judged["kv.target_bytes_per_token"].value == 98_304
    assert judged["kv.drafter_bytes_per_token"].value == told.value == 10_240
    assert "10,240 B per token (9.4% of both); in bfloat16 20,480 B per token (17.2% of both)" in told.message


@pytest.mark.parametrize(("ranks", "freed", "lost"), [(1, 2_621_440_000, 150_588), (2, 1_310_720_000, 150_588)])
def test_copies_of_the_vocabulary_cost_tokens(plans: PlanFolder, ranks: int, freed: int, lost: int) -> None:
    """Embedding and head of an MTP drafter are charged while the pool is sized; two ranks hold half of each."""
    target = {**WIDE, "num_hidden_layers": 16, "num_key_value_heads": 4, "vocab_size": 160_000,
              "num_nextn_predict_layers": 1, "architectures": ["DeepseekV3ForCausalLM"]}  # fmt: skip
    write_checkpoint(plans.target, target, {
        **{f"model.{name}": shape for name, shape in target_tensors(TARGET).items() if "layers" in name},
        "model.embed_tokens.weight": (160_000, 4096),
        "lm_head.weight": (160_000, 4096),
        "model.layers.16.eh_proj.weight": (4096, 8192),
    })  # fmt: skip
    judged = plans.judge(
        engine__args=f"--tp {ranks} --kv-cache-dtype fp8_e4m3 --speculative-algorithm NEXTN --mem-fraction-static 0.8",
        engine__free_before_load="40GiB",
        drafter__path=None,
        drafter__algorithm="mtp",
    )
    told = judged["kv.duplicate_vocabulary"]
    assert any(f"{freed:,} B, freed after the pool is made" in step for step in told.arithmetic)
    assert told.value == lost


@pytest.mark.parametrize(
    ("release", "reserved", "each"), [("0.5.9", 1024, 16), ("0.5.18", 2048, 32), ("0.5.23", 2048, 32)]
)
def test_reserved_slots_are_more_than_the_drafter_writes(
    plans: PlanFolder, release: str, reserved: int, each: int
) -> None:
    """64 requests, four steps, top-k 4: 12 slots are written per request; what is reserved follows the release."""
    plans.use_eagle3()
    told = plans.judge(
        drafter__algorithm="eagle3",
        engine__version=release,
        engine__args="--speculative-algorithm EAGLE3 --speculative-num-steps 4 --speculative-eagle-topk 4 "
        "--speculative-num-draft-tokens 8 --page-size 1 --max-running-requests 64",
    )["kv.step_reserve_tokens"]
    assert told.value == reserved
    assert f"{each} each; the drafter writes 12 of them" in told.message
    assert any("768 written" in step for step in told.arithmetic)


def shards(folder: Path, count: int, *, missing: int = 0) -> None:
    """Shards of one tensor of 200 B each and their index; the last ones may be missing."""
    names = [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    index = {f"model.layers.{number}.w": name for number, name in enumerate(names)}
    metadata = {"metadata": {"total_size": 200 * count}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(metadata))
    for number, name in enumerate(names[: count - missing]):
        write_weights(folder / name, {f"model.layers.{number}.w": (10, 10)})


def test_copies_in_the_folder_are_named_and_not_counted(plans: PlanFolder) -> None:
    """Files that the index names count; a consolidated copy, pickles and another folder's do not."""
    (plans.target / "model.safetensors").unlink()
    shards(plans.target, 3)
    write_weights(plans.target / "consolidated.safetensors", {"w": (30, 10)})
    (plans.target / "original").mkdir()
    (plans.target / "original" / "consolidated.00.pth").write_bytes(b"\0" * 600)
    judged = plans.judge(budget__artifacts={})
    assert judged["artifacts.target_complete"].result is PASS
    told, size = judged["artifacts.target_not_loaded_bytes"], judged["artifacts.target_bytes"]
    assert "consolidated.safetensors (a second copy" in told.message
    assert "original/consolidated.00.pth" in told.message
    assert size.value == sum(file.stat().st_size for file in plans.target.glob("model-*.safetensors"))
    assert any("of which tensors 600 B" in step for step in size.arithmetic)


def test_a_shard_that_was_not_downloaded_fails_and_no_size_is_told(plans: PlanFolder) -> None:
    """Half of what the index declares is here: the missing file is named, the size stays unknown."""
    (plans.target / "model.safetensors").unlink()
    shards(plans.target, 2, missing=1)
    judged = plans.judge(budget__artifacts={"target": "1GiB"})
    told = judged["artifacts.target_complete"]
    assert told.result is FAIL
    assert "model-00002-of-00002.safetensors: the file is missing" in told.message
    assert "200 of 400 bytes of tensors are here, 50.0 %" in told.message
    assert judged["artifacts.target_bytes"].result is UNKNOWN
    assert judged.report.exit_code(strict=False) == 1


PAIRS = [
    ("block_without_taps", "target", "draft", "taps_present", FAIL, "320 = 5 x 64"),
    ("block_for_a_deeper_target", "target", "draft", "taps_range", FAIL, "[33]"),
    ("block_for_a_deeper_target", "edge_target", "draft", "taps_range", WARN, "34"),
    ("block_for_a_deeper_target", "edge_target", "draft", "num_target_layers", WARN, "36"),
    ("eagle3_tap_places", "target", "nested", "taps_present", PASS, "[1, 19, 38]"),
    ("eagle3_tap_places", "target", "top", "taps_present", PASS, "[1, 19, 38]"),
    ("eagle3_tap_places", "target", "none", "taps_present", WARN, "[2, 20, 37]"),
    ("eagle3_tap_offsets", "target", "outputs", "taps_offset", PASS, "[2, 20, 37]"),
    ("eagle3_tap_offsets", "target", "inputs", "taps_offset", WARN, "[3, 21, 38]"),
    ("fused_projection", "target", "draft_ok", "taps_width", PASS, ""),
    ("fused_projection", "target", "draft_bad", "taps_width", FAIL, "config lists 5 taps, fc was built for 3"),
    ("narrower_eagle3_head", "target", "draft_own", "hidden_size", PASS, "48 wide with its own embedding"),
    ("narrower_eagle3_head", "target", "draft_shared", "hidden_size", FAIL, "no embedding"),
    ("inherited_rotary", "target", "draft", "rotary", WARN, "partial_rotary_factor 0.25"),
    ("generic_class", "target", "draft", "trained_for", UNKNOWN, "trained-for target unknown"),
]


@pytest.mark.parametrize(("pair", "target", "drafter", "rule", "result", "words"), PAIRS)
def test_a_pair_that_does_not_fit_is_told(
    plans: PlanFolder, pair: str, target: str, drafter: str, rule: str, result: CheckResult, words: str
) -> None:
    """The published misfits, through the gate: a fail decides its exit code, a warning and a missing record do not."""
    algorithm = "dflash" if pair.startswith(("block", "fused", "inherited")) else "eagle3"
    judged = plans.judge(
        target__path=str(FIXTURES / "pairs" / pair / target),
        drafter__path=str(FIXTURES / "pairs" / pair / drafter),
        drafter__algorithm=algorithm,
        engine__args=f"--speculative-algorithm {algorithm}",
    )
    told = judged[f"codesign.{rule}"]
    assert (told.result, words in told.message) == (result, True), told.message
    if result is FAIL:
        assert judged.report.exit_code(strict=False) == 1


def test_two_statements_of_the_taps_that_differ_fail(plans: PlanFolder) -> None:
    """Nested and at the top: nobody knows which one was trained."""
    config = {**EAGLE3, "eagle_aux_hidden_state_layer_ids": [1, 3, 5]}
    write_checkpoint(plans.drafter, config, eagle3_tensors())
    args = "--speculative-algorithm EAGLE3"
    told = plans.judge(drafter__algorithm="eagle3", engine__args=args)["codesign.taps_present"]
    assert told.result is FAIL
    assert "[1, 3, 4]" in told.message
    assert "[1, 3, 5]" in told.message


@pytest.mark.parametrize(
    ("drafter", "vocabulary", "result", "rule"),
    [
        ({"a": 0, "b": 1, "c": 2}, 1000, WARN, "vocabulary"),
        ({"b": 0, "a": 1, "c": 2}, 1024, FAIL, "tokenizer"),
        ({"a": 0, "b": 1, "c": 2}, 1024, PASS, "tokenizer"),
    ],
)
def test_tokens_are_compared_by_content_and_not_by_number(
    plans: PlanFolder, drafter: dict[str, int], vocabulary: int, result: CheckResult, rule: str
) -> None:
    """Rows of padding are a warning, swapped tokens of equal vocabularies fail the pair."""
    for folder, tokens in ((plans.target, {"a": 0, "b": 1, "c": 2}), (plans.drafter, drafter)):
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": tokens, "merges": []}}))
    config = json.loads((plans.drafter / "config.json").read_text())
    (plans.drafter / "config.json").write_text(json.dumps({**config, "vocab_size": vocabulary}))
    assert plans.judge()[f"codesign.{rule}"].result is result
