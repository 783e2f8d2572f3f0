"""From two checkpoint folders and an engine to findings: the faults that published pairs have had."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specbudget.budget.model import Budget
from specbudget.domain.codesign import EngineSetup, judge
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult, Finding, overall
from specbudget.domain.observation import EngineFacts
from specbudget.pair.facts import engine_setup, pair_facts, stated_algorithm
from specbudget.pair.side import Side, read_side
from specbudget.pair.tokens import compare_tokenizers
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.sources.checkpoint import read_checkpoint

FIXTURES = Path(__file__).parents[1] / "fixtures"
PAIRS, CONFIGS = FIXTURES / "pairs", FIXTURES / "configs"
SGLANG = EngineSetup(kind="sglang")
LING_ARGS = "--tp 4 --speculative-algorithm DSPARK --enable-linear-replayssm-spec --linear-replayssm-cache-len 32"

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN


def side(folder: Path) -> Side:
    """The side of a folder."""
    return read_side(read_checkpoint(folder))


def findings(target: Path, drafter: Path | None, engine: EngineSetup = SGLANG) -> dict[str, Finding]:
    """The findings on a pair of folders, by check."""
    sides = side(target), None if drafter is None else side(drafter)
    tokens = None if sides[1] is None else compare_tokenizers(sides[0], sides[1])
    facts = pair_facts(*sides, engine=engine, tokens=tokens)
    assert facts is not None
    return {finding.check: finding for finding in judge(facts)}


def budget(args: str | None = None, **engine: Any) -> Budget:
    """A budget whose engine has these arguments."""
    return Budget.model_validate({"service": "chat", "engine": {"args": args, **engine}, "parallelism": {"tensor": 4}})


CASES = [
    ("taps are missing and the weights tell their number only", "block_without_taps", "target", "draft",
     "taps_present", FAIL, "320 = 5 x 64"),
    ("a tap lies beyond the target", "block_for_a_deeper_target", "target", "draft",
     "taps_range", FAIL, "4 x 64 = 256 features against the 320"),
    ("the last layer is tapped", "block_for_a_deeper_target", "edge_target", "draft", "taps_range", WARN, "34"),
    ("made for 36 layers, run on 32", "block_for_a_deeper_target", "target", "draft", "num_target_layers", WARN, "36"),
    ("made for 36 layers, run on 34", "block_for_a_deeper_target", "edge_target", "draft",
     "num_target_layers", WARN, "34"),
    ("EAGLE-3 taps are nested", "eagle3_tap_places", "target", "nested", "taps_present", PASS, "eagle_config."),
    ("EAGLE-3 taps stand at the top", "eagle3_tap_places", "target", "top", "taps_present", PASS, "[1, 19, 38]"),
    ("EAGLE-3 taps stand nowhere", "eagle3_tap_places", "target", "none", "taps_present", WARN, "[2, 20, 37]"),
    ("EAGLE-3 taps count outputs", "eagle3_tap_offsets", "target", "outputs", "taps_offset", PASS, "[2, 20, 37]"),
    ("EAGLE-3 taps count inputs", "eagle3_tap_offsets", "target", "inputs", "taps_offset", WARN, "[3, 21, 38]"),
    ("the projection fits five taps", "fused_projection", "target", "draft_ok", "taps_width", PASS, "5 x 64 = 320"),
    ("the projection fits three taps", "fused_projection", "target", "draft_bad", "taps_width", FAIL,
     "config lists 5 taps, fc was built for 3"),
    ("a narrower head with its own embedding", "narrower_eagle3_head", "target", "draft_own", "hidden_size", PASS, ""),
    ("a narrower head without one", "narrower_eagle3_head", "target", "draft_shared", "hidden_size", FAIL, "64 wide"),
    ("the target's partial rotation", "inherited_rotary", "target", "draft", "rotary", WARN, "0.25"),
    ("a class that fits any target", "generic_class", "target", "draft", "trained_for", UNKNOWN,
     "compatible shapes; trained-for target unknown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "target", "drafter", "check", "result", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_faults_of_real_pairs(
    kind: str, target: str, drafter: str, check: str, result: CheckResult, words: str
) -> None:
    """Each kind of fault is found from the files alone, with the numbers that explain it."""
    found = findings(PAIRS / kind / target, PAIRS / kind / drafter)[check]
    assert (found.result, words in found.message) == (result, True), found.message


@pytest.mark.parametrize(
    ("kind", "drafter"),
    [("eagle3_tap_places", "nested"), ("eagle3_tap_places", "top"), ("fused_projection", "draft_ok")],
    ids=lambda word: word,
)
def test_what_is_in_order_passes(kind: str, drafter: str) -> None:
    """What a checkpoint may lack (weights, a base model) makes no pair fail, warn or unknown."""
    assert overall(findings(PAIRS / kind / "target", PAIRS / kind / drafter).values()) is PASS


def test_a_generic_class_never_fails_by_its_name() -> None:
    """A llama head on another family is no misfit, and no proven pair either."""
    found = findings(PAIRS / "generic_class" / "target", PAIRS / "generic_class" / "draft")
    assert FAIL not in {finding.result for finding in found.values()}
    assert not found["trained_for"].required


def test_taps_stated_twice_that_differ(tmp_path: Path) -> None:
    """The nested and the top-level list must agree."""
    config = json.loads((PAIRS / "eagle3_tap_places" / "nested" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"eagle_aux_hidden_state_layer_ids": [1, 19, 37]}))
    found = findings(PAIRS / "eagle3_tap_places" / "target", tmp_path)["taps_present"]
    assert (found.result, "[1, 19, 37]" in found.message) == (FAIL, True)


def test_without_the_rotary_key_nothing_is_warned_of(tmp_path: Path) -> None:
    """The same base frequency alone is fine."""
    config = json.loads((PAIRS / "inherited_rotary" / "draft" / "config.json").read_text())
    del config["rope_parameters"]["partial_rotary_factor"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert findings(PAIRS / "inherited_rotary" / "target", tmp_path)["rotary"].result is PASS


def test_the_published_pair_passes_as_its_card_launches_it() -> None:
    """Ling-3.0-flash with its DSpark drafter, ring of 32, on the release that has both classes."""
    engine = engine_setup(budget(LING_ARGS, version="0.5.23"), EngineFacts())
    found = findings(PAIRS / "ling" / "target", PAIRS / "ling" / "drafter", engine)
    assert overall(found.values()) is PASS
    assert found["block"].value == 9
    assert found["replay_ring"].message == "a ring of 32 for a verify window of 9"


@pytest.mark.parametrize(
    ("args", "version", "check"),
    [
        (LING_ARGS, "0.5.18", "architecture"),
        (LING_ARGS.rpartition(" --linear")[0], "0.5.23", "replay_ring"),
        (LING_ARGS + " --startup-weight-load-mode overlap", "0.5.23", "staging_mode"),
        (LING_ARGS + " --speculative-num-draft-tokens 8", "0.5.23", "block"),
        (LING_ARGS + " --speculative-draft-load-format dummy", "0.5.23", "drafter_weights"),
    ],
    ids=["the older release", "the default ring of 16", "overlapped loading", "its bare block", "random weights"],
)
def test_the_published_pair_launched_otherwise_fails(args: str, version: str, check: str) -> None:
    """The arguments decide as much as the checkpoints."""
    engine = engine_setup(budget(args, version=version), EngineFacts())
    found = findings(PAIRS / "ling" / "target", PAIRS / "ling" / "drafter", engine)
    assert {name for name, finding in found.items() if finding.result is FAIL} == {check}


PUBLISHED = [
    ("targets/Qwen_Qwen3-4B.json", "specforge/qwen3-4b-dspark.json", PASS),
    ("targets/Qwen_Qwen3-4B.json", "specforge/qwen3-4b-dflash.json", PASS),
    ("targets/Qwen3-8B-class.FROM_DERIVATIVES.json", "specforge/qwen3-8b-dspark.json", PASS),
    ("targets/Qwen3-8B-class.FROM_DERIVATIVES.json", "specforge/qwen3-8b-dflash.json", PASS),
    ("targets/zai-org_GLM-5.2.PARTIAL.json", "specforge/glm-5.2-dspark.json", PASS),
    ("targets/moonshotai_Kimi-K3.PARTIAL.json", "drafters/RadixArk_Kimi-K3-DSpark.CONTRACT.json", PASS),
    ("targets/Qwen3-8B-class.FROM_DERIVATIVES.json", "specforge/qwen3-8b-eagle3.json", WARN),
    ("targets/zai-org_GLM-5.2.PARTIAL.json", "drafters/RedHatAI_GLM-5.2-speculator.dspark.TESTFIXTURE.json", WARN),
    ("targets/Qwen_Qwen3-4B.json", "specforge/qwen3-8b-dspark.json", FAIL),
    ("targets/zai-org_GLM-5.2.PARTIAL.json", "specforge/kimi-k3-dspark.json", FAIL),
]


@pytest.mark.parametrize(("target", "drafter", "verdict"), PUBLISHED, ids=[f"{t}+{d}" for t, d, _ in PUBLISHED])
def test_published_configs(tmp_path: Path, target: str, drafter: str, verdict: CheckResult) -> None:
    """Drafters pass on their own target; the taps that an engine would guess or miss are warned of; others fail."""
    for name, config in (("target", target), ("drafter", drafter)):
        (tmp_path / name).mkdir()
        shutil.copy(CONFIGS / config, tmp_path / name / "config.json")
    found = findings(tmp_path / "target", tmp_path / "drafter", EngineSetup(kind="sglang", version="0.5.23"))
    assert overall(found.values()) is verdict, [f.message for f in found.values() if f.result is not PASS]


def test_the_demo_pair_passes_with_its_weights(tmp_path: Path) -> None:
    """True tensor headers: projection, Markov head and stored precision are checked and fit."""
    write_target(tmp_path / "target")
    write_drafter(tmp_path / "drafter")
    engine = engine_setup(budget(LING_ARGS, version="0.5.23"), EngineFacts())
    found = findings(tmp_path / "target", tmp_path / "drafter", engine)
    assert {name for name, finding in found.items() if finding.result is not PASS} == {"tokenizer", "trained_for"}
    assert found["taps_width"].value == 5 * 2560


def test_a_drafter_within_the_target() -> None:
    """A bundled MTP layer fits its own model by construction."""
    engine = EngineSetup(kind="sglang", version="0.5.23", algorithm=DraftAlgorithm.MTP)
    found = findings(PAIRS / "ling" / "target", None, engine)
    assert overall(found.values()) is PASS


def test_nothing_points_to_a_second_model() -> None:
    """Without drafter and algorithm there is no pair, which is not the same as an unknown one."""
    assert pair_facts(side(PAIRS / "ling" / "target"), None, engine=SGLANG) is None


def test_checkpoints_that_are_not_there_are_unknown(tmp_path: Path) -> None:
    """Unknown is never a pass."""
    found = findings(tmp_path / "none", tmp_path / "neither", replace(SGLANG, algorithm=DraftAlgorithm.DSPARK))
    assert overall(found.values()) is UNKNOWN


@pytest.mark.parametrize(
    ("running", "budgeted", "algorithm"),
    [
        ("DSPARK", None, DraftAlgorithm.DSPARK),
        ("EAGLE", DraftAlgorithm.MTP, DraftAlgorithm.MTP),
        ("EAGLE", DraftAlgorithm.DSPARK, DraftAlgorithm.EAGLE),
        (None, DraftAlgorithm.DFLASH, DraftAlgorithm.DFLASH),
        (None, None, DraftAlgorithm.DSPARK),
    ],
    ids=["the engine's word", "EAGLE may be MTP", "the engine wins", "the budget's word", "the drafter's own word"],
)
def test_who_says_which_algorithm(
    running: str | None, budgeted: DraftAlgorithm | None, algorithm: DraftAlgorithm
) -> None:
    """The running engine, then the budget, then the drafter's config."""
    engine = engine_setup(budget(), EngineFacts(algorithm=running))
    ling = PAIRS / "ling"
    facts = pair_facts(side(ling / "target"), side(ling / "drafter"), engine=engine, budgeted=budgeted)
    assert facts is not None
    assert facts.algorithm is algorithm


@pytest.mark.parametrize(
    ("config", "algorithm"),
    [
        ("specforge/qwen3-8b-dspark.json", DraftAlgorithm.DSPARK),
        ("specforge/qwen3-8b-dflash.json", DraftAlgorithm.DFLASH),
        ("specforge/qwen3-8b-eagle3.json", DraftAlgorithm.EAGLE3),
        ("drafters/RedHatAI_GLM-5.2-speculator.dspark.TESTFIXTURE.json", DraftAlgorithm.DSPARK),
        ("targets/Qwen_Qwen3-4B.json", None),
    ],
)
def test_what_a_config_says_of_itself(tmp_path: Path, config: str, algorithm: DraftAlgorithm | None) -> None:
    """Class names and heads tell the algorithm; a plain model says nothing."""
    shutil.copy(CONFIGS / config, tmp_path / "config.json")
    assert stated_algorithm(read_checkpoint(tmp_path)) is algorithm


@pytest.mark.parametrize(
    ("name", "kv_dtype", "result"),
    [
        ("model.layers.0.self_attn.k_scale", "fp8_e4m3", PASS),
        ("model.layers.0.self_attn.v_proj.output_scale", "fp8_e4m3", PASS),
        ("model.layers.0.mlp.up_proj.weight_scale", "fp8_e4m3", WARN),
        ("model.layers.0.mlp.up_proj.weight_scale", "auto", PASS),
    ],
    ids=["a scale", "Quark's name", "the scale of a weight", "no fp8"],
)
def test_scales_of_the_kv_are_found_by_the_index_alone(
    tmp_path: Path, name: str, kv_dtype: str, result: CheckResult
) -> None:
    """The shards need not be there: the index names every tensor."""
    pair = PAIRS / "fused_projection"
    shutil.copytree(pair / "target", tmp_path / "target")
    (tmp_path / "target" / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {name: "a.safetensors"}})
    )
    engine = engine_setup(budget(f"--kv-cache-dtype {kv_dtype}"), EngineFacts())
    config = json.loads((tmp_path / "target" / "config.json").read_text())
    (tmp_path / "target" / "config.json").write_text(json.dumps(config | {"torch_dtype": "bfloat16"}))
    assert findings(tmp_path / "target", pair / "draft_ok", engine)["kv_scales"].result is result


def test_a_path_in_the_drafters_config_proves_no_pair(tmp_path: Path) -> None:
    """Where a config was saved says nothing of the target that it was trained on."""
    config = json.loads((PAIRS / "generic_class" / "draft" / "config.json").read_text())
    (tmp_path / "config.json").write_text(
        json.dumps(config | {"_name_or_path": str(PAIRS / "generic_class" / "target")})
    )
    found = findings(PAIRS / "generic_class" / "target", tmp_path)["trained_for"]
    assert (found.result, found.required) == (UNKNOWN, False)
