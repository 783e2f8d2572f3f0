"""The texts of SGLang 0.5.23's log lines, without prefix: batches, start-up, access log.

Sources: metrics_reporter.py, pool_stats_observer.py, model_runner.py, memory_pool.py, cuda_graph_setup.py,
scheduler.py, dspark_worker_v2.py, http_server.py and the uvicorn formats of utils/common.py. Sizes are GiB,
which the engine prints as GB.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.simulate.drafters import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Occupancy of one rank's pools at a log line."""

    tokens: int
    capacity: int
    states: int
    state_capacity: int

    @property
    def token_usage(self) -> float:
        """Used KV slots over capacity."""
        return self.tokens / self.capacity

    @property
    def state_usage(self) -> float:
        """Used recurrent-state slots over capacity."""
        return self.states / self.state_capacity


def prefill_batch(
    *,
    sequences: int,
    new_tokens: int,
    cached_tokens: int,
    pool: PoolUse,
    running: int,
    queued: int,
    pending_tokens: int,
    inflight: int | None,
    throughput: float,
) -> str:
    """A prefill tick of a target with recurrent state; `inflight` is None but for a prefill engine."""
    queues = "" if inflight is None else f"#bootstrap-req: 0, #inflight-req: {inflight}, #optimistic-req: 0, "
    return (
        f"Prefill batch, #new-seq: {sequences}, #new-token: {new_tokens}, #cached-token: {cached_tokens}, "
        f"full token usage: {pool.token_usage:.2f}, mamba usage: {pool.state_usage:.2f}, "
        f"#running-req: {running}, #queue-req: {queued}, #pending-token: {pending_tokens}, "
        f"{queues}cuda graph: True, input throughput (token/s): {throughput:.2f}"
    )


def decode_batch(
    *, running: int, pool: PoolUse, length: float | None, rate: float | None, throughput: float, queued: int
) -> str:
    """A decode tick; `length` and `rate` are None without speculation."""
    spec = "" if length is None else f"accept len: {length:.2f}, accept rate: {rate:.2f}, "
    return (
        f"Decode batch, #running-req: {running}, "
        f"#full token: {pool.tokens}, full token usage: {pool.token_usage:.2f}, "
        f"mamba num: {pool.states}, mamba usage: {pool.state_usage:.2f}, "
        f"{spec}cuda graph: True, gen throughput (token/s): {throughput:.2f}, #queue-req: {queued}"
    )


def retraction(*, requests: int, tokens: int, states: int, ratio: float) -> str:
    """Requests go back to the queue because the pool is full."""
    return (
        f"KV cache pool is full. Retract requests. #retracted_reqs: {requests}, #new_tokens_gained: {tokens}, "
        f"#mamba_num_gained: {states}, #new_token_ratio: {ratio:.4f} -> {ratio:.4f}"
    )


def load_begin(available: int) -> str:
    """A checkpoint begins to load."""
    return f"Load weight begin. avail mem={available / GIB:.2f} GB"


def load_end(*, seconds: float, model: str, available: int, used: int) -> str:
    """A checkpoint is in device memory."""
    return (
        f"Load weight end. elapsed={seconds:.2f} s, type={model}, "
        f"avail mem={available / GIB:.2f} GB, mem usage={used / GIB:.2f} GB."
    )


def draft_runner(*, model: str, gamma: int, mask_token: int) -> str:
    """The DSpark drafter is set up (tensor rank 0 only)."""
    return (
        f"Initialized DSpark draft runner. attention_backend=flashinfer, model={model}, gamma={gamma}, "
        f"verify_num_draft_tokens={gamma + 1}, query_token_num={gamma}, sample_from_anchor=True, "
        f"mask_token_id={mask_token}, markov_head=VanillaMarkov"
    )


def state_cache(*, slots: int, conv: int, ssm: int, windows: int | None) -> str:
    """The recurrent-state pool of the KDA layers; `windows` None: nothing is kept per draft token."""
    kept = (
        f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: {conv / GIB:.2f}GB, "
        f"ssm_state size: {ssm / GIB:.2f}GB "
    )
    if windows is None:
        return kept
    return (
        f"{kept}intermediate_ssm_state_cache size: 0.00GB intermediate_conv_window_cache size: {windows / GIB:.2f}GB "
    )


def latent_pool(*, tokens: int, size: int) -> str:
    """A pool of MLA latents: the target's, or its MTP layer's."""
    return f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: {size / GIB:.2f} GB"


def key_value_pool(*, tokens: int, size: int) -> str:
    """The pool of a drafter with keys and values: equal halves."""
    half = size / 2 / GIB
    return (
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB"
    )


def pool_end(available: int) -> str:
    """One runner's pools are done."""
    return f"Memory pool end. avail mem={available / GIB:.2f} GB"


def capture_begin(role: str, *, tokens_per_request: int, available: int) -> str:
    """Graph capture begins; `role` is target or draft."""
    return (
        f"Capture {role} verify CUDA graph begin. backend=full, "
        f"num_tokens_per_req={tokens_per_request}, avail mem={available / GIB:.2f} GB"
    )


def capture_end(role: str, *, sizes: tuple[int, ...], seconds: float, used: int, available: int) -> str:
    """Graph capture is done."""
    return (
        f"Capture {role} verify CUDA graph end. bs={list(sizes)}, elapsed={seconds:.2f} s, "
        f"mem usage={used / GIB:.2f} GB, avail mem={available / GIB:.2f} GB."
    )


def capacity(*, tokens: int, running: int, context: int, available: int) -> str:
    """The summary of tensor rank 0."""
    return (
        f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        f"max_running_requests={running}, context_len={context}, available_gpu_mem={available / GIB:.2f} GB"
    )


def startup_timings(timings: dict[str, float], graphs: dict[str, float]) -> str:
    """The summary of the main process."""
    captured = ", ".join(f"{phase}={seconds:.2f}" for phase, seconds in graphs.items())
    return (
        f"Engine startup timings (s): load_weight={timings['load_weight']:.2f}, "
        f"kv_cache_allocation={timings['kv_cache_allocation']:.2f}, "
        f"scheduler_e2e={timings['scheduler_e2e']:.2f}, cuda_graph={{{captured}}}, "
        f"tokenizer_e2e={timings['tokenizer_e2e']:.2f}"
    )


def draft_capture_begin(phase: str, *, tokens_per_request: int, sizes: tuple[int, ...], available: int) -> str:
    """Capture of an EAGLE-like drafter's own graphs begins (tensor rank 0 only); `phase` is decode or extend."""
    return (
        f"Capture draft {phase} CUDA graph begin. backend=full, num_tokens_per_req={tokens_per_request}, "
        f"bs={list(sizes)}, avail mem={available / GIB:.2f} GB"
    )


def draft_capture_end(phase: str, *, seconds: float, used: int, available: int) -> str:
    """Capture of an EAGLE-like drafter's own graphs is done."""
    return (
        f"Capture draft {phase} CUDA graph end. elapsed={seconds:.2f} s, "
        f"mem usage={used / GIB:.2f} GB, avail mem={available / GIB:.2f} GB."
    )


def adaptive_initialized(*, steps: int, candidates: list[int]) -> str:
    """The adaptive policy is set up; the first range of batch sizes speaks for all."""
    return f"AdaptiveSpeculativeParams initialized: steps={steps}, candidate_steps={candidates}"


def adaptive_state(*, steps: int, seconds: float, used: int) -> str:
    """Graphs of another number of steps are captured."""
    return f"Built adaptive runtime state steps={steps}: elapsed={seconds:.2f}s, mem={used / GIB:.2f}GB"


def handover_warmup(ranks: int) -> tuple[str, str, str]:
    """The three lines of the warm-up of a disaggregated engine: its begin, and two at its end."""
    done = f"Disaggregation warmup requests completed for all {ranks} DP ranks"
    return "Start of pd disaggregation warmup ...", done, "End of disaggregation warmup"


FIRED_UP = "The server is fired up and ready to roll!"


def uvicorn(text: str) -> str:
    """A line of the HTTP server itself."""
    return f"INFO:     {text}"


def access(client: str, request_line: str, status: str) -> str:
    """One answered HTTP request; `status` is code and phrase."""
    return uvicorn(f'{client} - "{request_line}" {status}')


def rank_prefix(*, data_rank: int | None, tensor_rank: int | None) -> str:
    """What stands after the time in a line of a scheduler: ` DP0 TP1`, each only where there are several."""
    data = "" if data_rank is None else f" DP{data_rank}"
    tensor = "" if tensor_rank is None else f" TP{tensor_rank}"
    return data + tensor
