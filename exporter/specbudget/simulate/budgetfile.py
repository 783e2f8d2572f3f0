"""The budget file of the stand-in's deployment: limits under which the steady scenario is healthy."""

from __future__ import annotations

import math
import shlex
from typing import Any

import yaml

from specbudget.simulate.deployment import SERVICE, VERSION, Deployment
from specbudget.simulate.drafters import GIB
from specbudget.simulate.scenarios import start_up_speed
from specbudget.simulate.scheduler import MAX_RUNNING
from specbudget.simulate.steptime import BREAK_EVEN

SLOW_START_SECONDS = 7.0
"""What a slow start takes at least; a healthy one takes less than four."""

LOG_SECONDS = 1.0
"""By so much a log that tells whole seconds may call a start quicker than it was."""

TARGET_GIB = 270
"""The limit of the target on disk, which has 250 GB."""

HEADER = """\
# The budget of a simulated deployment: Ling-3.0-flash and its drafter on SGLang.
# Paths are relative to this file. `specbudget simulate` writes it anew at each start.
"""


def budget_text(deployment: Deployment, *, speed: float) -> str:
    """The file's text."""
    scenario, sizes = deployment.scenario, deployment.sizes()
    drafter_gib = math.ceil(sum(tensor.nbytes for tensor in deployment.drafting.tensors()) * 1.1 / GIB)
    tokens = min(deployment.sizes(life).tokens for life in (0, 1))
    per_request = max(512, int(tokens * 0.85 / MAX_RUNNING) // 256 * 256)
    profiles = {
        name: {
            "match": {"adapter": profile.adapter},
            "target_length": round(max(1.2, min(scenario.target_length, 0.6 * profile.length)), 1),
        }
        for name, profile in scenario.profiles.items()
        if profile.adapter is not None
    }
    acceptance: dict[str, Any] = {
        "target_length": scenario.target_length,
        "objective": 0.95,
        "window": "28d",
        "sli": "request",
        "break_even": [{"running": running, "length": length} for running, length in BREAK_EVEN],
    }
    budget: dict[str, Any] = {
        "service": SERVICE,
        "engine": {
            "kind": "sglang",
            "url": deployment.url,
            "version": VERSION,
            "args": shlex.join(deployment.command_line()),
            "env": {"SGLANG_RAGGED_VERIFY_MODE": "static"},
            "gpu_memory": f"{deployment.gpu.memory_gib:g}GiB",
            "free_before_load": f"{deployment.gpu.free_before_load_gib:g}GiB",
            **({} if deployment.api_key is None else {"api_key_file": "engine-key"}),
            "request_log": "requests",
            "server_log": "server.log",
        },
        "target": {"path": "target"},
        "drafter": {"path": "drafter", "algorithm": deployment.drafting.budgeted},
        "parallelism": {"tensor": scenario.tensor_parallel, "pipeline": 1, "data": scenario.data_parallel},
        "budget": {
            "artifacts": {
                "target": f"{TARGET_GIB}GiB",
                "drafter": f"{drafter_gib}GiB",
                "total": f"{TARGET_GIB + drafter_gib + 2}GiB",
            },
            "kv": {
                "target": _limit(sizes.target_kv),
                "drafter": _limit(sizes.drafter_kv),
                "high_water": 0.9,
                "concurrency": MAX_RUNNING,
                "tokens_per_request": per_request,
                "min_target_tokens": int(tokens * 0.85) // 1000 * 1000,
            },
            "acceptance": {**acceptance, **({"profiles": profiles} if profiles else {})},
            "staging": {
                "cold_start": f"{SLOW_START_SECONDS / start_up_speed(speed) - LOG_SECONDS:g}s",
                "mode": "prefetch",
                "order": ["target", "drafter"],
                "warmup": "required",
            },
        },
    }
    return HEADER + yaml.safe_dump(budget, sort_keys=False, default_flow_style=False, width=120)


def _limit(size: int) -> str:
    """A round limit with a fifth of headroom."""
    return f"{max(1, -(-int(size * 1.2) // GIB))}GiB"
