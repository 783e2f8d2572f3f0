"""The deployment that the stand-in plays: where its files are, what it was started with, what it weighs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specbudget.simulate.configs import GAMMA, TARGET_CONFIG
from specbudget.simulate.drafters import DRAFTERS, Drafter
from specbudget.simulate.scenarios import Algorithm, Role, Scenario
from specbudget.simulate.scheduler import MAX_RUNNING
from specbudget.simulate.sizing import B200, PAGE_TOKENS, REPLAY_RING_LENGTH, Gpu, Sizes, size_engine

VERSION = "0.5.23"
SERVICE = "ling-flash-chat"
SERVED_MODEL = "ling-3.0-flash"
EXAMPLE_KEY = "sk-EXAMPLE-not-a-secret"
"""What /server_info shows as api_key when the server runs without one: readers must strip it all the same."""

ADAPTER_FOLDER = "/models/adapters"
REPLAY = {"enable_linear_replayssm_spec": True, "linear_replayssm_cache_len": REPLAY_RING_LENGTH}
GRAPH_SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48)


def adapter_id(name: str) -> str:
    """The lora_id of an adapter (lora_registry.py `deterministic_id`): the same at every start."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{name}\0{ADAPTER_FOLDER}/{name}").hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One engine deployment; `api_key` None serves everybody."""

    scenario: Scenario
    folder: Path
    host: str
    port: int
    api_key: str | None = None
    gpu: Gpu = B200

    @property
    def drafting(self) -> Drafter:
        """The drafter as the engine knows it."""
        return DRAFTERS[self.scenario.algorithm]

    @property
    def graphs(self) -> Mapping[str, int]:
        """Memory of the captured graphs by phase; a prefill engine captures none of these."""
        return {} if self.scenario.role is Role.PREFILL else self.drafting.graphs

    @property
    def graph_sizes(self) -> tuple[int, ...]:
        """Batch sizes with a captured graph."""
        return GRAPH_SIZES if self.graphs else ()

    @property
    def verifies(self) -> bool:
        """Whether this engine runs verify steps; a prefill engine leaves them to the decode engine."""
        return self.scenario.role is not Role.PREFILL

    @property
    def engine_type(self) -> str:
        """The label of that name on every series."""
        return "prefill" if self.scenario.role is Role.PREFILL else "unified"

    @property
    def adapters(self) -> tuple[str, ...]:
        """LoRA adapters of the profiles."""
        return tuple(profile.adapter for profile in self.scenario.profiles.values() if profile.adapter is not None)

    @property
    def target(self) -> Path:
        """The target's checkpoint."""
        return self.folder / "target"

    @property
    def drafter(self) -> Path:
        """The drafter's checkpoint."""
        return self.folder / "drafter"

    @property
    def requests(self) -> Path:
        """The folder of the request log."""
        return self.folder / "requests"

    @property
    def server_log(self) -> Path:
        """The server log."""
        return self.folder / "server.log"

    @property
    def budget(self) -> Path:
        """The budget file."""
        return self.folder / "budget.yaml"

    @property
    def adaptive_config(self) -> Path:
        """The configuration of the adaptive verify window, where there is one."""
        return self.folder / "adaptive.json"

    @property
    def truth(self) -> Path:
        """The exact totals."""
        return self.folder / "truth.json"

    @property
    def context_tokens(self) -> int:
        """The model's context length."""
        return int(TARGET_CONFIG["max_position_embeddings"])

    @property
    def url(self) -> str:
        """Where a client on this machine reaches the engine."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def max_total_tokens(self, life: int) -> int | None:
        """The --max-total-tokens of the start number `life`, from 0."""
        later = self.scenario.restart_total_tokens
        return later if life > 0 and later is not None else self.scenario.max_total_tokens

    def sizes(self, life: int = 0) -> Sizes:
        """Device memory of one rank at the start number `life`."""
        return size_engine(
            gpu=self.gpu,
            tensor_parallel=self.scenario.tensor_parallel,
            memory_fraction=self.scenario.memory_fraction,
            speculation=True,
            max_total_tokens=self.max_total_tokens(life),
            drafter=self.drafting,
            verifies=self.verifies,
        )

    def arguments(self, life: int = 0) -> dict[str, Any]:
        """What differs from SGLang's defaults, under the names of its arguments; ports and keys left out."""
        limit = self.max_total_tokens(life)
        arguments: dict[str, Any] = {
            "served_model_name": SERVED_MODEL,
            "tp_size": self.scenario.tensor_parallel,
            "dp_size": self.scenario.data_parallel,
            "mem_fraction_static": self.scenario.memory_fraction,
            "page_size": PAGE_TOKENS,
            "max_running_requests": MAX_RUNNING,
            "mamba_radix_cache_strategy": "extra_buffer",
            # SGLang refuses to start a prefill engine with the ring
            **(REPLAY if self.verifies else {}),
            "speculative_algorithm": self.drafting.argument,
            "speculative_adaptive": self.drafting.adaptive,
            "disaggregation_mode": self.scenario.role.value,
            "lora_paths": [f"{name}={ADAPTER_FOLDER}/{name}" for name in self.adapters],
            "weight_loader_prefetch_checkpoints": True,
            "enable_metrics": True,
            "export_metrics_to_file": True,
        }
        return arguments | ({} if limit is None else {"max_total_tokens": limit})

    def command_line(self, life: int = 0) -> list[str]:
        """The arguments as given on the command line, without paths, address and key."""
        words: list[str] = []
        for name, value in self.arguments(life).items():
            if value in (False, [], Role.UNIFIED.value) or (name == "dp_size" and value == 1):
                continue
            flag = "--" + name.replace("_", "-")
            words.append(flag)
            if value is not True:
                words += value if isinstance(value, list) else [str(value)]
        return words

    def server_args(self, life: int = 0) -> dict[str, Any]:
        """The arguments as the engine reports them, resolved."""
        return {
            **self.arguments(life),
            "model_path": str(self.target),
            "tokenizer_path": str(self.target),
            "speculative_draft_model_path": str(self.drafter),
            "speculative_draft_model_revision": "main",
            "speculative_algorithm": self.drafting.reported,
            "speculative_dspark_block_size": GAMMA if self.scenario.algorithm is Algorithm.DSPARK else None,
            "speculative_adaptive_config": str(self.adaptive_config) if self.drafting.adaptive else None,
            "speculative_num_draft_tokens": self.drafting.window,
            "speculative_num_steps": self.drafting.steps,
            "speculative_eagle_topk": 1,
            "moe_a2a_backend": "none",
            "attention_backend": "flashinfer",
            "sampling_backend": "flashinfer",
            "chunked_prefill_size": 8192,
            "export_metrics_to_file_dir": str(self.requests),
            "host": self.host,
            "port": self.port,
            "api_key": self.api_key or EXAMPLE_KEY,
            "random_seed": 42,
            **self._adapter_args(),
        }

    def _adapter_args(self) -> dict[str, Any]:
        """LoRA arguments as resolved; without adapters the defaults stay."""
        if not self.adapters:
            return {"lora_paths": None}
        paths = {name: f"{ADAPTER_FOLDER}/{name}" for name in self.adapters}
        references = [
            {"lora_id": adapter_id(name), "lora_name": name, "lora_path": path, "pinned": False}
            for name, path in paths.items()
        ]
        return {"enable_lora": True, "max_lora_rank": 16, "max_loras_per_batch": 8, "lora_paths": references}

    def free_after_start(self, life: int = 0) -> int:
        """Free memory of a GPU when everything is allocated, in bytes."""
        sizes = self.sizes(life)
        spent = sizes.target_weights + sizes.drafter_weights + sizes.state + sizes.target_kv + sizes.drafter_kv
        return sizes.free_before_load - spent - sum(self.graphs.values())
