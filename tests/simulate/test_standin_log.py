"""The server log of the stand-in and the captured one, held against the same patterns."""

from __future__ import annotations

import re

import pytest

from specbudget.simulate.scenarios import SCENARIOS

F = r"-?\d+\.\d+"
PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: DP\d+)?(?: TP\d+)?\] ")
PATTERNS = {
    "decode batch": (
        rf"Decode batch, #running-req: \d+, "
        rf"(?:#token: \d+, token usage: {F}, "
        rf"|#full token: \d+, full token usage: {F}, mamba num: \d+, mamba usage: {F}, )"
        rf"(?:accept len: {F}, accept rate: {F}, )?(?:cap len: {F}, )?(?:block accept len: {F}, )?"
        rf"cuda graph: (?:True|False), gen throughput \(token/s\): {F}, #queue-req: \d+"
    ),
    "prefill batch": (
        rf"Prefill batch, #new-seq: \d+, #new-token: \d+, #cached-token: \d+, "
        rf"(?:token usage: {F}, |full token usage: {F}, mamba usage: {F}, )"
        rf"#running-req: \d+, #queue-req: \d+, #pending-token: \d+, "
        rf"cuda graph: (?:True|False), input throughput \(token/s\): {F}"
    ),
    "load begin": rf"Load weight begin\. avail mem={F} GB",
    "load end": rf"Load weight end\. elapsed={F} s, type=\w+, avail mem={F} GB, mem usage={F} GB\.",
    "pool of keys and values": (
        rf"KV Cache is allocated\. dtype: torch\.\w+, #tokens: \d+, K size: {F} GB, V size: {F} GB"
    ),
    "pool of latents": rf"KV Cache is allocated\. dtype: torch\.\w+, #tokens: \d+, KV size: {F} GB",
    "pool end": rf"Memory pool end\. avail mem={F} GB",
    "capture begin": (
        rf"Capture (?:target|draft) verify CUDA graph begin\. backend=\w+, num_tokens_per_req=\d+, avail mem={F} GB"
    ),
    "capture end": (
        rf"Capture (?:target|draft) verify CUDA graph end\. bs=\[[\d, ]+\], elapsed={F} s, "
        rf"mem usage={F} GB, avail mem={F} GB\."
    ),
    "draft runner": (
        r"Initialized DSpark draft runner\. attention_backend=\w+, model=\w+, gamma=\d+, "
        r"verify_num_draft_tokens=\d+, query_token_num=\d+, sample_from_anchor=True, mask_token_id=\d+, "
        r"markov_head=VanillaMarkov"
    ),
    "capacity": (
        rf"max_total_num_tokens=\d+, chunked_prefill_size=\d+, max_prefill_tokens=\d+, "
        rf"max_running_requests=\d+, context_len=\d+, available_gpu_mem={F} GB"
    ),
    "timings": (
        rf"Engine startup timings \(s\): load_weight={F}, kv_cache_allocation={F}, scheduler_e2e={F}, "
        rf"cuda_graph=\{{prefill={F}, decode={F}, target_verify={F}, draft_prefill={F}, draft_decode={F}, "
        rf"draft_extend={F}\}}, tokenizer_e2e={F}"
    ),
    "fired up": r"The server is fired up and ready to roll!",
}
ONLY_OURS = {
    "state cache": (
        rf"Mamba Cache is allocated\. max_mamba_cache_size: \d+, conv_state size: {F}GB, ssm_state size: {F}GB "
        rf"intermediate_ssm_state_cache size: {F}GB intermediate_conv_window_cache size: {F}GB "
    ),
    "state cache without verify steps": (
        rf"Mamba Cache is allocated\. max_mamba_cache_size: \d+, conv_state size: {F}GB, ssm_state size: {F}GB "
    ),
    "retraction": (
        rf"KV cache pool is full\. Retract requests\. #retracted_reqs: \d+, #new_tokens_gained: \d+, "
        rf"#mamba_num_gained: \d+, #new_token_ratio: {F} -> {F}"
    ),
    "handing-over prefill batch": (
        rf"Prefill batch, #new-seq: \d+, #new-token: \d+, #cached-token: \d+, "
        rf"full token usage: {F}, mamba usage: {F}, #running-req: 0, #queue-req: \d+, #pending-token: \d+, "
        rf"#bootstrap-req: 0, #inflight-req: \d+, #optimistic-req: 0, "
        rf"cuda graph: True, input throughput \(token/s\): {F}"
    ),
    "handing-over warm-up": (
        r"Start of pd disaggregation warmup \.\.\.|End of disaggregation warmup|"
        r"Disaggregation warmup requests completed for all \d+ DP ranks"
    ),
    "adaptive policy": (
        rf"AdaptiveSpeculativeParams initialized: steps=\d+, candidate_steps=\[[\d, ]+\]|"
        rf"Adaptive spec params updated: steps \d+ -> \d+ \(ema_accept_len={F}\)|"
        rf"Built adaptive runtime state steps=\d+: elapsed={F}s, mem={F}GB|"
        r"Switch adaptive runtime state: steps \d+ -> \d+, draft_tokens \d+ -> \d+"
    ),
    "capture of a step-by-step drafter": (
        rf"Capture draft (?:decode|extend) CUDA graph (?:begin\. backend=full, num_tokens_per_req=\d+, "
        rf"bs=\[[\d, ]+\], avail mem={F} GB|end\. elapsed={F} s, mem usage={F} GB, avail mem={F} GB\.)"
    ),
    "arguments": r"server_args=ServerArgs\(.*\)",
    "access": r'INFO:     [\d.]+:\d+ - "(?:GET|POST) \S+ HTTP/1\.1" \d{3} [A-Za-z ]+',
    "uvicorn": r"INFO:     (?:Started server process \[\d+\]|Waiting for .*|Application .*|Uvicorn running on .*)",
}
"""Lines that no captured log holds, by their f-strings in memory_pool.py, scheduler.py,
metrics_reporter.py, adaptive_spec_params.py, eagle_worker_v2.py, http_server.py and uvicorn."""

REAL_LOGS = (
    "0.5.23/log_v0.5.23_dspark_tp2.batch_lines.log",
    "0.5.23/log_v0.5.23_dflash_tp1.batch_lines.log",
    "0.5.23/log_v0.5.23_nospec_tp1.batch_lines.log",
    "0.5.23/log_v0.5.23_dp2.batch_lines.log",
    "0.5.23/log_v0.5.23_dspark_tp2_startup.handfilled.log",
    "0.5.23/log_v0.5.23_kv_pool_lines_executed.log",
)


def kind_of(text: str, patterns: dict[str, str]) -> str | None:
    """The pattern that fits the whole text."""
    return next((kind for kind, pattern in patterns.items() if re.fullmatch(pattern, text)), None)


@pytest.mark.parametrize("name", REAL_LOGS)
def test_the_patterns_fit_every_captured_line(captured, name):
    """The patterns describe the engine's lines: each captured one fits exactly."""
    for line in captured(name).splitlines():
        prefix = PREFIX.match(line)
        assert prefix is not None, line
        assert kind_of(line[prefix.end() :], PATTERNS) is not None, line


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_every_line_of_the_stand_in_fits_a_pattern(seen, scenario):
    """No scenario prints a line of a shape of its own."""
    for _, _, text in seen(scenario).lines:
        assert kind_of(text, PATTERNS | ONLY_OURS) is not None, text


def test_every_kind_of_line_is_printed(seen):
    """Together the scenarios print each kind of line that is known."""
    found = {
        kind_of(text, PATTERNS | ONLY_OURS)
        for name in ("steady", "kv-pressure", "spec-adaptive", "pd-prefill")
        for _, _, text in seen(name).lines
    }
    assert found == set(PATTERNS) | set(ONLY_OURS)


def test_a_start_up_loads_target_then_drafter_on_every_gpu(virtual):
    """Within each GPU's prefix the first pair of load and pool lines is the target's, the second the drafter's."""
    lines = virtual("steady").until(6).lines
    for prefix in (" TP0", " TP1", " TP2", " TP3"):
        own = [text for _, line_prefix, text in lines if line_prefix == prefix]
        models = [match[1] for text in own if (match := re.search(r"type=(\w+)", text))]
        assert models == ["BailingMoeV3ForCausalLM", "LingDSparkModel"]
        pools = [text for text in own if text.startswith("KV Cache is allocated")]
        assert [" KV size" in text for text in pools] == [True, False]
        assert sum(text.startswith("Memory pool end") for text in own) == 2
        free = [float(match[1]) for text in own if (match := re.search(r"avail(?:able_gpu)?_?\s?mem=([\d.]+)", text))]
        assert free == sorted(free, reverse=True)


def test_prefixes_name_ranks_only_where_there_are_several(virtual):
    """One data-parallel rank: TP only. Two: DP and TP. The main process has neither."""
    assert {prefix for _, prefix, _ in virtual("steady").until(6).lines} == {"", " TP0", " TP1", " TP2", " TP3"}
    both = {prefix for _, prefix, _ in virtual("dp2").until(6).lines}
    assert both == {"", " DP0 TP0", " DP0 TP1", " DP1 TP0", " DP1 TP1"}


def test_lines_are_in_the_order_of_time_of_a_start(virtual):
    """A start-up's lines come in order, from the arguments to "fired up"."""
    lines = virtual("steady", rate=0.001).until(6).lines
    times = [when for when, _, _ in lines]
    assert times == sorted(times)
    assert lines[0][2].startswith("server_args=")
    assert lines[-1][2] == "The server is fired up and ready to roll!"
