"""The deployment that the stand-in plays: where its files are, what it was started with, what it weighs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specbudget.simulate.configs import GAMMA, TARGET_CONFIG, VERIFY_WINDOW
from specbudget.simulate.scenarios import Scenario
from specbudget.simulate.scheduler import MAX_RUNNING
from specbudget.simulate.sizing import B200, GIB, PAGE_TOKENS, REPLAY_RING_LENGTH, Gpu, Sizes, size_engine

VERSION = "0.5.23"
SERVICE = "ling-flash-chat"
SERVED_MODEL = "ling-3.0-flash"
EXAMPLE_KEY = "sk-EXAMPLE-not-a-secret"
"""What /server_info shows as api_key when the server runs without one: readers must strip it all the same."""

GRAPHS: dict[str, int] = {"target_verify": int(1.31 * GIB), "draft_decode": int(0.34 * GIB)}
GRAPH_SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48)


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
            "enable_linear_replayssm_spec": True,
            "linear_replayssm_cache_len": REPLAY_RING_LENGTH,
            "speculative_algorithm": "DSPARK",
            "weight_loader_prefetch_checkpoints": True,
            "enable_metrics": True,
            "export_metrics_to_file": True,
        }
        return arguments if limit is None else {**arguments, "max_total_tokens": limit}

    def command_line(self, life: int = 0) -> list[str]:
        """The arguments as given on the command line, without paths, address and key."""
        words: list[str] = []
        for name, value in self.arguments(life).items():
            if name == "dp_size" and value == 1:
                continue
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        return words

    def server_args(self, life: int = 0) -> dict[str, Any]:
        """The arguments as the engine reports them, resolved."""
        return {
            **self.arguments(life),
            "model_path": str(self.target),
            "tokenizer_path": str(self.target),
            "speculative_draft_model_path": str(self.drafter),
            "speculative_draft_model_revision": "main",
            "speculative_dspark_block_size": GAMMA,
            "speculative_num_draft_tokens": VERIFY_WINDOW,
            "speculative_num_steps": 1,
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
        }

    def free_after_start(self, life: int = 0) -> int:
        """Free memory of a GPU when everything is allocated, in bytes."""
        sizes = self.sizes(life)
        spent = sizes.target_weights + sizes.drafter_weights + sizes.state + sizes.target_kv + sizes.drafter_kv
        return sizes.free_before_load - spent - sum(GRAPHS.values())
