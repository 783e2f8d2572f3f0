"""Plans that keep each rule of each line, and plans that do not: one row for each kind of verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.check.plans import TARGET, PlanFolder, target_tensors, write_checkpoint

from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN

Change = Callable[[PlanFolder], Any]


@dataclass(frozen=True)
class Row:
    """A rule, what it must say, in which words, and the budget that makes it so. `change` alters the files first."""

    id: str
    result: CheckResult
    words: str
    budget: dict[str, Any] = field(default_factory=dict)
    change: Change = lambda plans: None

    def __str__(self) -> str:
        return f"{self.id}-{self.result}-{self.words[:30]}"


def no_weights(name: str) -> Change:
    """Leaves a checkpoint with its config alone."""
    return lambda plans: (plans.folder / name / "model.safetensors").unlink()


def second_copy(name: str) -> Change:
    """Puts a second copy of the weights beside them, as many repositories do."""
    return lambda plans: (plans.folder / name / "consolidated.safetensors").write_bytes(b"x" * 1000)


def truncated(name: str) -> Change:
    """Cuts a weight file short."""

    def cut(plans: PlanFolder) -> None:
        file = plans.folder / name / "model.safetensors"
        with file.open("r+b") as opened:
            opened.truncate(file.stat().st_size - 1)

    return cut


def config(name: str, **changes: Any) -> Change:
    """Replaces keys of a config; None takes one away."""

    def change(plans: PlanFolder) -> None:
        path = plans.folder / name / "config.json"
        told = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({key: value for key, value in told.items() if value is not None}))

    return change


def eagle3(plans: PlanFolder) -> None:
    """An EAGLE-3 head in place of the block drafter."""
    plans.use_eagle3()


def swapped(plans: PlanFolder) -> None:
    """The two folders in each other's place."""
    plans.target.rename(plans.folder / "held")
    plans.drafter.rename(plans.target)
    (plans.folder / "held").rename(plans.drafter)


def larger_drafter(plans: PlanFolder) -> None:
    """Two plain models, the larger one as the drafter."""
    small = {**TARGET, "num_hidden_layers": 2}
    write_checkpoint(plans.drafter, TARGET, target_tensors())
    write_checkpoint(plans.target, small, target_tensors(small))


def reference(**profiles: Any) -> Change:
    """A reference in our own form."""
    return lambda plans: (plans.folder / "bench.json").write_text(json.dumps({"profiles": profiles}))


def scaled(plans: PlanFolder) -> None:
    """A target whose weights hold scales of its KV."""
    scales = {f"model.layers.0.self_attn.{name}": (1,) for name in ("k_scale", "v_scale")}
    write_checkpoint(plans.target, TARGET, {**target_tensors(), **scales})


def start_log(tokens: int, *, seconds: int = 20) -> Change:
    """A log of the last start of these two models on a device with 1 GiB free."""
    lines = [
        "[2026-11-29 15:50:00 TP0] Load weight begin. avail mem=1.00 GB",
        "[2026-11-29 15:50:01 TP0] Load weight end. elapsed=1.00 s, type=Qwen3ForCausalLM, avail mem=0.99 GB, "
        "mem usage=0.01 GB.",
        "[2026-11-29 15:50:01 TP0] Load weight begin. avail mem=0.99 GB",
        "[2026-11-29 15:50:02 TP0] Load weight end. elapsed=1.00 s, type=DFlashDraftModel, avail mem=0.98 GB, "
        "mem usage=0.01 GB.",
        f"[2026-11-29 15:50:03 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: 0.70 GB",
        f"[2026-11-29 15:50:03 TP0] max_total_num_tokens={tokens}, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=48, context_len=4096, available_gpu_mem=0.20 GB",
        f"[2026-11-29 15:50:{seconds:02}] The server is fired up and ready to roll!",
    ]
    return lambda plans: (plans.folder / "server.log").write_text("\n".join(lines) + "\n")


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""
    return lambda plans: [change(plans) for change in changes]


def artifacts(**keys: Any) -> dict[str, Any]:
    """A budget with this artifacts line."""
    return {"budget__artifacts": keys}


def kv(args: str = "", **keys: Any) -> dict[str, Any]:
    """A budget with this KV line and these arguments more."""
    return {"budget__kv": keys, **({"engine__args": f"{ARGS} {args}"} if args else {})}


def acceptance(**keys: Any) -> dict[str, Any]:
    """A budget with this acceptance line."""
    return {"budget__acceptance": keys}


def staging(args: str = "", **keys: Any) -> dict[str, Any]:
    """A budget with this staging line and these arguments more."""
    return {"budget__staging": keys, **({"engine__args": f"{ARGS} {args}"} if args else {})}


ARGS = "--speculative-algorithm DFLASH --mem-fraction-static 0.8"
PREFETCH = "--weight-loader-prefetch-checkpoints"
FP8: dict[str, Any] = {
    "drafter__path": None,
    "drafter__algorithm": None,
    "engine__args": "--kv-cache-dtype fp8_e4m3",
    "budget__kv": {},
}
NO_DRAFTER: dict[str, Any] = {"drafter__path": None, "drafter__algorithm": None, "engine__args": "--tp 1"}
NO_MEMORY: dict[str, Any] = {"engine__free_before_load": None}
CHAIN = {"engine__args": "--speculative-algorithm EAGLE3 --mem-fraction-static 0.8", "drafter__algorithm": "eagle3"}
VLLM: dict[str, Any] = {"engine__kind": "vllm", "engine__version": "0.32.0", "engine__args": "--max-model-len 4096"}
NARROW = config("target", num_key_value_heads=1)
ROWS = [
    # artifacts
    Row("artifacts.target_complete", PASS, "there and whole"),
    Row("artifacts.target_complete", FAIL, "model.safetensors", change=truncated("target")),
    Row("artifacts.target_complete", WARN, "num_key_value_heads", change=config("target", num_attention_heads=None,
                                                                             num_key_value_heads=None)),
    Row("artifacts.target_complete", UNKNOWN, "a config and no weights", change=no_weights("target")),
    Row("artifacts.drafter_complete", PASS, "there and whole"),
    Row("artifacts.drafter_complete", FAIL, "model.safetensors", change=truncated("drafter")),
    Row("artifacts.drafter_complete", UNKNOWN, "a config and no weights", change=no_weights("drafter")),
    Row("artifacts.target_parameters", PASS, "525,376"),
    Row("artifacts.target_parameters", UNKNOWN, "target.path is not in the budget", {"target__path": None}),
    Row("artifacts.drafter_parameters", PASS, "106,880"),
    Row("artifacts.drafter_parameters", PASS, "are loaded, by its config", change=no_weights("drafter")),
    Row("artifacts.drafter_parameters", UNKNOWN, "are not known", change=both(
        no_weights("drafter"), config("drafter", intermediate_size=None)
    )),
    Row("artifacts.target_not_loaded_bytes", PASS, "consolidated.safetensors", change=second_copy("target")),
    Row("artifacts.target_not_loaded_bytes", WARN, "out of the image", artifacts(image="2MiB"), second_copy("target")),
    Row("artifacts.drafter_not_loaded_bytes", PASS, "consolidated.safetensors", change=second_copy("drafter")),
    Row("artifacts.drafter_not_loaded_bytes", WARN, "out of the image", artifacts(image="2MiB"),
        second_copy("drafter")),
    Row("artifacts.target_bytes", PASS, "1.0 MiB", artifacts(target="2MiB")),
    Row("artifacts.target_bytes", WARN, "left", artifacts(target="1.02MiB")),
    Row("artifacts.target_bytes", FAIL, "raise artifacts.target", artifacts(target="1MiB")),
    Row("artifacts.target_bytes", UNKNOWN, "unknown size", artifacts(target="1MiB"), no_weights("target")),
    Row("artifacts.drafter_bytes", PASS, "210.9 KiB", artifacts(drafter="1MiB")),
    Row("artifacts.drafter_bytes", WARN, "left", artifacts(drafter="220KiB")),
    Row("artifacts.drafter_bytes", FAIL, "raise artifacts.drafter", artifacts(drafter="200KiB")),
    Row("artifacts.drafter_bytes", UNKNOWN, "unknown size", artifacts(drafter="1MiB"), no_weights("drafter")),
    Row("artifacts.total_bytes", PASS, "both models", artifacts(total="2MiB")),
    Row("artifacts.total_bytes", WARN, "left", artifacts(total="1.3MiB")),
    Row("artifacts.total_bytes", FAIL, "raise artifacts.total", artifacts(total="1.2MiB")),
    Row("artifacts.total_bytes", UNKNOWN, "unknown size", artifacts(total="2MiB"), no_weights("drafter")),
    Row("artifacts.image_bytes", PASS, "in the image", artifacts(image="2MiB")),
    Row("artifacts.image_bytes", WARN, "left", artifacts(image="1.3MiB")),
    Row("artifacts.image_bytes", FAIL, "raise artifacts.image", artifacts(image="1.2MiB")),
    Row("artifacts.image_bytes", UNKNOWN, "unknown size", artifacts(image="2MiB"), no_weights("target")),
    Row("artifacts.drafter_resident_bytes", PASS, "208.8 KiB of the drafter stay"),
    Row("artifacts.drafter_resident_bytes", PASS, "freed afterwards", CHAIN, eagle3),
    Row("codesign.agreement", WARN, "engine.args says other-drafter", {
        "engine__args": f"{ARGS} --speculative-draft-model-path other-drafter",
    }),
    Row("codesign.agreement", WARN, "engine.args says org/Other-Target", {
        "engine__args": f"{ARGS} --model-path org/Other-Target",
    }),
    # kv
    Row("kv.target_bytes_per_token", PASS, "2,048 B"),
    Row("kv.target_bytes_per_token", PASS, "4,096 B", {"engine__args": f"{ARGS} --dtype float32"}),
    Row("kv.target_bytes_per_token", UNKNOWN, "target.path is not in the budget", {"target__path": None}),
    Row("kv.drafter_bytes_per_token", PASS, "512 B"),
    Row("kv.drafter_bytes_per_token", UNKNOWN, "num_hidden_layers", change=config("drafter", num_hidden_layers=None)),
    Row("kv.scales", PASS, "k_scale", FP8, scaled),
    Row("kv.scales", WARN, "fp8 KV, no KV scales found", FP8),
    Row("kv.scales", UNKNOWN, "tensor names are not known", FP8, no_weights("target")),
    Row("kv.drafter_kv_dtype", PASS, "512 B", {"engine__args": f"{ARGS} --kv-cache-dtype fp8_e4m3"}),
    Row("kv.min_target_tokens", PASS, "335,050", kv(min_target_tokens=300_000)),
    Row("kv.min_target_tokens", WARN, "left", kv(min_target_tokens=330_000)),
    Row("kv.min_target_tokens", FAIL, "raise --mem-fraction-static", kv(min_target_tokens=400_000)),
    Row("kv.min_target_tokens", FAIL, "not enough memory", {"engine__free_before_load": "1MiB"}),
    Row("kv.min_target_tokens", UNKNOWN, "engine.free_before_load", {**kv(min_target_tokens=1), **NO_MEMORY}),
    Row("kv.min_target_tokens", FAIL, "no --mem-fraction-static up to 0.97 holds so many",
        kv("--dtype float32", min_target_tokens=300_000)),
    Row("kv.min_target_tokens", UNKNOWN, "--quantization fp8 makes the target's weights smaller",
        kv("--quantization fp8", min_target_tokens=1)),
    Row("kv.min_target_tokens", UNKNOWN, "--speculative-draft-model-quantization fp8 makes the drafter's",
        kv("--speculative-draft-model-quantization fp8", min_target_tokens=1)),
    Row("kv.min_target_tokens", UNKNOWN, "--cpu-offload-gb keeps a part",
        kv("--cpu-offload-gb 1", min_target_tokens=1)),
    Row("kv.min_target_tokens", UNKNOWN, "--tp $TP", kv("--tp $TP", min_target_tokens=1)),
    Row("kv.target_pool_bytes", PASS, "654.4 MiB", kv(target="800MiB")),
    Row("kv.target_pool_bytes", WARN, "left", kv(target="700MiB")),
    Row("kv.target_pool_bytes", FAIL, "raise kv.target", kv(target="600MiB")),
    Row("kv.target_pool_bytes", UNKNOWN, "engine.free_before_load", {**kv(target="1GiB"), **NO_MEMORY}),
    Row("kv.high_water", PASS, "90%", kv(tokens_per_request=1024)),
    Row("kv.high_water", WARN, "retracted", kv(tokens_per_request=4096, concurrency=90)),
    Row("kv.step_reserve_tokens", PASS, "16 each"),
    Row("kv.prediction", PASS, "327,000", {"engine__server_log": "server.log"}, start_log(327_000)),
    Row("kv.prediction", WARN, "something else takes memory", {"engine__server_log": "server.log"}, start_log(200_000)),
    Row("kv.drafter_block_floor_bytes", PASS, "192.0 KiB"),
    Row("kv.drafter_need_bytes", PASS, "24.2 MiB", kv(tokens_per_request=1024)),
    Row("kv.drafter_need_bytes", UNKNOWN, "set kv.tokens_per_request", kv()),
    Row("kv.drafter_allocated_bytes", PASS, "163.6 MiB", kv(drafter="200MiB")),
    Row("kv.drafter_allocated_bytes", WARN, "left", kv(drafter="170MiB")),
    Row("kv.drafter_allocated_bytes", FAIL, "raise kv.drafter", kv(drafter="100MiB")),
    Row("kv.drafter_allocated_bytes", UNKNOWN, "engine.free_before_load", {**kv(drafter="1GiB"), **NO_MEMORY}),
    Row("kv.drafter_cost_tokens", PASS, "20.0% of the target's token budget"),
    Row("kv.drafter_cost_tokens", UNKNOWN, "20.0% of the target's token budget", NO_MEMORY),
    Row("kv.drafter_idle_bytes", PASS, "139.4 MiB", kv(tokens_per_request=1024)),
    Row("kv.drafter_idle_bytes", PASS, "beyond the planned need", kv(tokens_per_request=6000)),
    Row("kv.drafter_idle_bytes", PASS, "nothing of the drafter's pool is idle", kv(tokens_per_request=30_000)),
    Row("kv.unpriced_bytes", PASS, "keeps for the drafter what its pool takes"),
    Row("kv.unpriced_bytes", WARN, "beside activations and graphs",
        {**CHAIN, "engine__args": CHAIN["engine__args"].replace("0.8", "0.4")}, both(eagle3, NARROW)),
    Row("kv.unpriced_bytes", FAIL, "lower --mem-fraction-static", CHAIN, both(eagle3, NARROW)),
    Row("kv.duplicate_vocabulary", PASS, "56 tokens", CHAIN, eagle3),
    # acceptance
    Row("acceptance.window", PASS, "above 8"),
    Row("acceptance.window", PASS, "no second model", NO_DRAFTER),
    Row("acceptance.window", PASS, "above 8", {"engine__args": f"{ARGS} --speculative-adaptive"}),
    Row("acceptance.window", UNKNOWN, "moves the window",
        {**CHAIN, "engine__args": f"{CHAIN['engine__args']} --speculative-adaptive"}, eagle3),
    Row("acceptance.unattainable", FAIL, "above the verify window of 8",
        {**CHAIN, "engine__args": f"{CHAIN['engine__args']} --speculative-adaptive", **acceptance(target_length=9)},
        eagle3),
    Row("acceptance.unattainable", FAIL, "above the verify window of 12", {
        "engine__args": "--speculative-algorithm NGRAM", "drafter__algorithm": "ngram", "drafter__path": None,
        **acceptance(target_length=20),
    }),
    Row("acceptance.unattainable", PASS, "reach 3.00", acceptance(target_length=2.0, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.05": 3.0}})),
    Row("acceptance.unattainable", FAIL, "above the verify window", acceptance(target_length=9)),
    Row("acceptance.unattainable", FAIL, "lower it to at most 3.00",
        acceptance(target_length=3.5, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.05": 3.0}})),
    Row("acceptance.unattainable", FAIL, "the reference's mean is 3.00",
        acceptance(target_length=3.5, reference="bench.json"), reference(default={"length": 3.0})),
    Row("acceptance.unattainable", FAIL, "another drafter's bench",
        acceptance(target_length=2.0, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.05": 3.0, "0.99": 9.0}})),
    Row("acceptance.unattainable", FAIL, "speculation is not configured",
        {**acceptance(target_length=2.0), **NO_DRAFTER}),
    Row("acceptance.unattainable", UNKNOWN, "set engine.args",
        {**acceptance(target_length=2.0), **NO_DRAFTER, "engine__args": None}),
    Row("acceptance.unattainable", UNKNOWN, "set engine.args",
        {**acceptance(target_length=2.0), **NO_DRAFTER, "engine__args": "--speculative-algorithm LATER"}),
    Row("acceptance.unattainable", UNKNOWN, "set engine.args",
        {**acceptance(target_length=2.0), **NO_DRAFTER, "engine__kind": "tensorrt-llm"}),
    Row("acceptance.unattainable", UNKNOWN, "name a bench file", acceptance(target_length=2.0)),
    Row("acceptance.unattainable", UNKNOWN, "lies in between", acceptance(target_length=2.5, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.01": 2.0, "0.1": 3.0}})),
    Row("acceptance.no_margin", PASS, "more than 10%", acceptance(target_length=2.0, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.05": 3.0}})),
    Row("acceptance.no_margin", WARN, "lower it to 2.73", acceptance(target_length=2.9, reference="bench.json"),
        reference(default={"length": 4.0, "quantiles": {"0.05": 3.0}})),
    Row("acceptance.no_margin", UNKNOWN, "not of this pair", acceptance(target_length=2.0, reference="bench.json"),
        reference(default={"length": 8.5, "quantiles": {"0.05": 3.0}})),
    Row("acceptance.break_even", PASS, "pays at 48", acceptance(break_even=2.0, reference="bench.json"),
        reference(default={"length": 4.0})),
    Row("acceptance.break_even", WARN, "buys 5%", acceptance(break_even=2.0, reference="bench.json"),
        reference(default={"length": 2.1})),
    Row("acceptance.break_even", FAIL, "slower than one", acceptance(break_even=2.0, reference="bench.json"),
        reference(default={"length": 1.9})),
    Row("acceptance.break_even", FAIL, "above the verify window", acceptance(break_even=9.5)),
    Row("acceptance.break_even", UNKNOWN, "measure a point at 48 running requests",
        acceptance(break_even=[{"running": 8, "length": 2.0}], reference="bench.json"),
        reference(default={"length": 4.0})),
    Row("acceptance.break_even", FAIL, "slower than one",
        acceptance(break_even=[{"running": 8, "length": 2.0}], reference="bench.json"),
        reference(default={"length": 1.9})),
    Row("acceptance.break_even", FAIL, "another drafter's bench", acceptance(break_even=2.0, reference="bench.json"),
        reference(default={"length": 8.5})),
    Row("acceptance.break_even", FAIL, "speculation is not configured",
        {**acceptance(break_even=2.0), **NO_DRAFTER}),
    Row("acceptance.break_even", UNKNOWN, "without a reference", acceptance(break_even=2.0)),
    Row("acceptance.objective", PASS, "burn reaches 20.0", acceptance(target_length=2.0)),
    Row("acceptance.objective", FAIL, "choose at least", acceptance(target_length=2.0, objective=0.4)),
    Row("acceptance.events", PASS, "has its source", acceptance(target_length=2.0)),
    Row("acceptance.events", FAIL, "there will be no events", {**acceptance(target_length=2.0), **NO_DRAFTER}),
    Row("acceptance.events", WARN, "--export-metrics-to-file",
        {**acceptance(target_length=2.0), "engine__request_log": None}),
    # staging: 1.27 MB of weights
    Row("staging.cold_start", PASS, "at most 30",
        {**staging(PREFETCH, cold_start="30s", storage_bandwidth="1MB/s"), "engine__server_log": "server.log"},
        start_log(327_000)),
    Row("staging.cold_start", WARN, "left",
        {**staging(PREFETCH, cold_start="20s", storage_bandwidth="1MB/s"), "engine__server_log": "server.log"},
        start_log(327_000)),
    Row("staging.cold_start", UNKNOWN, "what follows it was not measured",
        staging(PREFETCH, cold_start="10s", storage_bandwidth="1MB/s")),
    Row("staging.cold_start", FAIL, "raise staging.cold_start",
        staging(PREFETCH, cold_start="1s", storage_bandwidth="1MB/s")),
    Row("staging.cold_start", UNKNOWN, "state readers",
        staging("--tp 1", cold_start="5s", storage_bandwidth="1MB/s", readers=8)),
    Row("staging.cold_start", UNKNOWN, "storage_bandwidth is not in the budget", staging(cold_start="5s")),
    Row("staging.probe_budget", PASS, "at most 10", staging(PREFETCH, probe_budget="10s", storage_bandwidth="1MB/s")),
    Row("staging.probe_budget", WARN, "left", staging(PREFETCH, probe_budget="1400ms", storage_bandwidth="1MB/s")),
    Row("staging.probe_budget", FAIL, "failureThreshold",
        staging(PREFETCH, probe_budget="1s", storage_bandwidth="1MB/s")),
    Row("staging.probe_budget", UNKNOWN, "state readers",
        staging("--tp 1", probe_budget="5s", storage_bandwidth="1MB/s", readers=8)),
    Row("staging.cold_start", PASS, "the last start took 20 s",
        {**staging(cold_start="30s"), "engine__server_log": "server.log"}, start_log(327_000)),
    Row("staging.cold_start", FAIL, "the last start took 20 s",
        {**staging(cold_start="10s"), "engine__server_log": "server.log"}, start_log(327_000)),
    Row("staging.mode", PASS, "prefetch", staging(PREFETCH, mode="prefetch")),
    Row("staging.mode", WARN, f"add {PREFETCH}", staging("--tp 1", mode="prefetch")),
    Row("staging.mode", WARN, f"drop {PREFETCH}", staging(PREFETCH, mode="serial")),
    Row("staging.mode", FAIL, "codesign.staging_mode says why: plan serial or prefetch", staging(mode="overlap")),
    Row("staging.mode", UNKNOWN, "was read of SGLang only, not of vllm", {**staging(mode="overlap"), **VLLM}),
    Row("staging.mode", UNKNOWN, "was read of SGLang only, not of vllm", {**staging(mode="prefetch"), **VLLM}),
    Row("staging.order", UNKNOWN, "not of vllm", {**staging(order=["drafter", "target"]), **VLLM}),
    Row("staging.warmup", UNKNOWN, "not of vllm", {**staging(warmup="required"), **VLLM}),
    Row("kv.min_target_tokens", UNKNOWN, "set --mem-fraction-static in engine.args, or engine.gpu_memory",
        {**kv(min_target_tokens=1), "engine__args": "--speculative-algorithm DFLASH"}),
    Row("staging.mode", UNKNOWN, "set engine.args", {**staging(mode="serial"), "engine__args": None}),
    Row("staging.order", PASS, "target, then drafter", staging(order=["target", "drafter"])),
    Row("staging.order", FAIL, "loads the target first", staging(order=["drafter", "target"])),
    Row("staging.warmup", PASS, "warms itself up", staging(warmup="required")),
    Row("staging.warmup", FAIL, "drop the argument", staging("--skip-server-warmup", warmup="required")),
    Row("staging.warmup", UNKNOWN, "set engine.args", {**staging(warmup="required"), "engine__args": None}),
    # co-design, beside the rules on the pair
    Row("codesign.roles", PASS, "the target is the larger model"),
    Row("codesign.roles", PASS, "the drafter calls itself one", change=no_weights("drafter")),
    Row("codesign.roles", FAIL, "drafter is none (Qwen3ForCausalLM of 525,376 parameters beside 106,880): swap target",
        change=swapped),
    Row("codesign.roles", FAIL, "drafter is none (Qwen3ForCausalLM): swap target",
        change=both(swapped, no_weights("drafter"))),
    Row("codesign.roles", WARN, "is the larger model, of 525,376 parameters beside", change=larger_drafter),
    Row("codesign.approved", UNKNOWN, "--approve"),
    Row("codesign.arguments", PASS, "every argument can be read"),
    Row("codesign.arguments", WARN, "add --speculative-algorithm DFLASH",
        {"engine__args": "--mem-fraction-static 0.8", "drafter__algorithm": "dflash"}),
    Row("codesign.arguments", WARN, "did you mean --mem-fraction-static?",
        {"engine__args": f"{ARGS} --mem-fracton 1", "engine__version": "0.5.99"}),
    Row("codesign.arguments", FAIL, "did you mean --mem-fraction-static?", {"engine__args": f"{ARGS} --mem-fracton 1"}),
    Row("codesign.arguments", WARN, "does not start, or takes another: add --speculative-draft-model-path drafter,",
        {"engine__args": f"{ARGS} --model-path /models/target"}),
    Row("codesign.arguments", WARN, "drafts with the prediction layers of the target instead",
        {"engine__args": "--speculative-algorithm EAGLE --model /models/target", "drafter__algorithm": "mtp"},
        config("target", num_nextn_predict_layers=1)),
    Row("codesign.arguments", PASS, "every argument can be read",
        {"engine__args": f"{ARGS} --model-path target --speculative-draft-model-path drafter"}),
    Row("codesign.arguments", FAIL, "EAGEL3: SGLang refuses an unknown algorithm; did you mean EAGLE3?",
        {"engine__args": "--speculative-algorithm EAGEL3"}),
    Row("codesign.arguments", UNKNOWN, "--tp $TP is no whole number from 1", {"engine__args": f"{ARGS} --tp $TP"}),
    Row("codesign.arguments", UNKNOWN, "engine.yaml is not read", {"engine__args": "--config engine.yaml"}),
    Row("codesign.agreement", PASS, "agree"),
    Row("codesign.agreement", WARN, "engine.args --tp says 2",
        {"parallelism__tensor": 4, "engine__args": f"{ARGS} --tp 2"}),
    Row("codesign.agreement", FAIL, "more than the 0.50 GiB", {"engine__gpu_memory": "512MiB"}),
    Row("codesign.agreement", WARN, "drafter.algorithm is dspark", {"drafter__algorithm": "dspark"}),
]  # fmt: skip
