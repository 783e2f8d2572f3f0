"""From two checkpoint folders and an engine to findings: the faults that published pairs have had."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specbudget.budget.model import Budget
from specbudget.domain.codesign import EngineFlags, EngineSetup, judge
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult, Finding, overall
from specbudget.domain.observation import EngineFacts
from specbudget.pair.facts import engine_setup, pair_facts, simulated_length, stated_algorithm
from specbudget.pair.side import Side, SideReader, locked_model, read_side
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
    facts = pair_facts(side(target), None if drafter is None else side(drafter), engine=engine)
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
    assert {name for name, finding in found.items() if finding.result is not PASS} == {"trained_for"}
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


def test_the_running_engine_wins_over_the_arguments() -> None:
    """What it reports replaces what was written down; silence does not."""
    flags = EngineFlags(linear_replayssm_cache_len=64, enable_linear_replayssm_spec=True)
    running = EngineFacts(version="0.5.23", num_draft_tokens=9, tensor_parallel=8)
    engine = engine_setup(budget(LING_ARGS, version="0.5.18"), running, flags)
    assert (engine.version, engine.running, engine.num_draft_tokens, engine.tensor_parallel) == ("0.5.23", True, 9, 8)
    assert (engine.flags.linear_replayssm_cache_len, engine.flags.startup_weight_load_mode) == (64, "serial")


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


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda folder: (folder / "config.json").write_text('{"num_hidden_layers": 3}'), {"whole", "config"}),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), {"tokenizer"}),
        (lambda folder: shutil.copy(PAIRS / "fused_projection/draft_bad/model.safetensors", folder),
         {"whole", "headers"}),
        (lambda folder: os.utime(folder / "config.json", (1, 1)), set()),
    ],
    ids=["another config", "a tokenizer beside it", "other tensors", "only touched"],
)  # fmt: skip
def test_the_digests_say_what_changed(tmp_path: Path, change: Any, parts: set[str]) -> None:
    """Each part has its own digest."""
    folder = tmp_path / "drafter"
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", folder)
    before = side(folder).fingerprints
    change(folder)
    after = side(folder).fingerprints
    differ = {name for name in ("whole", "config", "tokenizer", "index", "headers")
              if getattr(before, name) != getattr(after, name)}  # fmt: skip
    assert differ == parts


def test_weights_that_end_early_have_no_digest(tmp_path: Path) -> None:
    """A truncated file is unknown, not another model."""
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", tmp_path / "drafter")
    (tmp_path / "drafter" / "model.safetensors").write_bytes(b"\xff\x00\x00\x00\x00\x00\x00\x00{")
    found = side(tmp_path / "drafter").fingerprints
    assert (found.whole, found.headers) == (None, None)


def test_an_unchanged_checkpoint_is_not_read_again(tmp_path: Path) -> None:
    """The same checkpoint object gives the same side, until its tokenizer changes."""
    folder = tmp_path / "drafter"
    shutil.copytree(PAIRS / "fused_projection" / "draft_ok", folder)
    checkpoint, reader = read_checkpoint(folder), SideReader()
    first = reader.read(checkpoint)
    assert reader.read(checkpoint) is first
    (folder / "tokenizer.json").write_text('{"model": {}}')
    second = reader.read(checkpoint)
    assert second is not first
    assert second.fingerprints.tokenizer is not None
    assert reader.read(read_checkpoint(folder)) is not second


@pytest.mark.parametrize(
    "config",
    [
        {"rope_parameters": {"rope_theta": "much", "partial_rotary_factor": True}},
        {"rope_scaling": 7, "rope_theta": 10**400},
        {"eagle_config": ["nested"], "num_aux_hidden_states": -1, "num_loops": 0},
        {"dflash_config": {"target_layer_ids": "1, 2"}, "target_layer_ids": [True]},
        {"rope_parameters": {"full_attention": {"rope_theta": float("inf")}}},
    ],
    ids=["words for numbers", "a number without end", "sections of another kind", "taps as text", "infinity"],
)
def test_strange_configs_are_unknown_and_no_fault(tmp_path: Path, config: dict[str, Any]) -> None:
    """What cannot be read is None; nothing is raised."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = side(tmp_path)
    assert (found.rope, found.taps, found.tap_count, found.loops) == (None, (), None, 1)


def test_a_lock_records_a_model_whose_fingerprint_is_known(tmp_path: Path) -> None:
    """Sizes and digests as they are; a checkpoint that cannot be read is not recorded."""
    found = locked_model(side(PAIRS / "fused_projection" / "draft_ok"), kv_bytes_per_token=160)
    assert found is not None
    assert (found.hidden_size, found.kv_bytes_per_token, found.fingerprints.headers is None) == (64, 160, False)
    assert locked_model(side(tmp_path), kv_bytes_per_token=None) is None
