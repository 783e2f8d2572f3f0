"""GET /server_info and /model_info of the stand-in (SGLang 0.5.23 entrypoints/http_server.py)."""

from __future__ import annotations

import functools
import json
from typing import Any

from specbudget.simulate.configs import TARGET_CONFIG
from specbudget.simulate.deployment import EXAMPLE_KEY, SERVED_MODEL, VERSION
from specbudget.simulate.drafters import GIB
from specbudget.simulate.exposition import data_text
from specbudget.simulate.process import Process
from specbudget.simulate.rankmetrics import GRAPH_PHASES
from specbudget.simulate.scheduler import MAX_RUNNING, Scheduler

_NOT_INTERNAL = ("custom_sigquit_handler", "hicache_object_layout", "launch_command")
"""Arguments that the top level shows and a rank's internal state does not."""


@functools.lru_cache(maxsize=1)
def default_arguments() -> dict[str, Any]:
    """Every argument of the engine with its default."""
    defaults: dict[str, Any] = json.loads(data_text("server_args.json"))
    return defaults


def arguments(process: Process) -> dict[str, Any]:
    """The arguments that the process runs with."""
    return {**default_arguments(), **process.deployment.server_args(process.life)}


def server_info(process: Process) -> dict[str, Any]:
    """The whole answer; like the engine's it holds the API key and the command line."""
    own = arguments(process)
    startup_time = {**process.plan.timings, "cuda_graph": process.plan.graphs}
    tokens = process.sizes.tokens
    command = ["python", "-m", "sglang.launch_server", "--model-path", str(process.deployment.target)]
    command += [*process.deployment.command_line(process.life), "--api-key", own["api_key"] or EXAMPLE_KEY]
    return {
        **own,
        "launch_command": " ".join(command),
        "status": "ready",
        "max_total_num_tokens": tokens,
        "max_req_input_len": min(process.deployment.context_tokens, tokens) - 6,
        "startup_time": startup_time,
        "internal_states": [internal_state(process, scheduler) for scheduler in process.schedulers],
        "version": VERSION,
        "kv_events": None,
        "frontend": "python",
    }


def internal_state(process: Process, scheduler: Scheduler) -> dict[str, Any]:
    """One rank's entry: its arguments again, its memory, its start-up and its lifetime acceptance length."""
    own = {name: value for name, value in arguments(process).items() if name not in _NOT_INTERNAL}
    graphs = process.deployment.graphs
    if scheduler.adaptive is not None:
        # Overrides at run time show here and not at the top level.
        own["speculative_num_steps"] = scheduler.adaptive.steps
        own["speculative_num_draft_tokens"] = scheduler.adaptive.window
    timings = {name: value for name, value in process.plan.timings.items() if name != "tokenizer_e2e"}
    state = {
        **own,
        "world_size": process.deployment.scenario.tensor_parallel,
        "startup_time": {**timings, "cuda_graph": process.plan.graphs},
        "memory_usage": {
            "weight": scheduler.sizes.target_weights / GIB,
            "kvcache": scheduler.sizes.target_kv / GIB,
            "startup_available": process.deployment.free_after_start(process.life) / GIB,
            "token_capacity": scheduler.sizes.tokens,
            "token_capacity_swa": None,
            "graph": {phase: graphs.get(phase, 0) / GIB for phase in GRAPH_PHASES},
        },
        "decode_cuda_graph_bs": list(process.deployment.graph_sizes),
        "decode_cuda_graph_memory_gb": sum(graphs.values()) / GIB,
        "effective_max_running_requests_per_dp": MAX_RUNNING,
        "last_gen_throughput": scheduler.stats.gauges["gen_throughput"],
    }
    length = scheduler.stats.lifetime_length
    return state if length is None else {**state, "avg_spec_accept_length": length}


def model_info(process: Process) -> dict[str, Any]:
    """What /model_info says: nothing about a drafter."""
    own = arguments(process)
    return {
        "model_path": own["model_path"],
        "served_model_name": SERVED_MODEL,
        "tokenizer_path": own["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": own["preferred_sampling_params"],
        "weight_version": own["weight_version"],
        "load_format": own["load_format"],
        "reasoning_parser": own["reasoning_parser"],
        "tool_call_parser": own["tool_call_parser"],
        "disaggregation_mode": own["disaggregation_mode"],
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": TARGET_CONFIG["model_type"],
        "architectures": TARGET_CONFIG["architectures"],
    }


def models(process: Process) -> dict[str, Any]:
    """What /v1/models says: the target, and an adapter per profile that has one."""
    context = process.deployment.context_tokens
    card = {"object": "model", "created": int(process.started), "owned_by": "sglang"}
    cards = [{"id": SERVED_MODEL, **card, "root": SERVED_MODEL, "parent": None, "max_model_len": context}]
    for profile in process.deployment.scenario.profiles.values():
        if profile.adapter is not None:
            own = {"id": profile.adapter, "root": profile.adapter, "parent": SERVED_MODEL}
            cards.append({**card, **own, "max_model_len": None})
    return {"object": "list", "data": cards}
