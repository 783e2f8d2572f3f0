"""What people must know of each kind of engine when its pair is in trouble: flags, settings and commands, as words.

Sources: SGLang 0.5.18 and 0.5.23 server_args.py and arg_groups/; vLLM 0.32.0 engine/arg_utils.py and
v1/spec_decode/metrics.py; TensorRT-LLM docs/source/commands/trtllm-serve and tensorrt_llm/metrics/collector.py. The
last two were read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWords:
    """Words and commands of one kind of engine.

    Commands hold marks of their own: [curl] a request with the engine's key, [curl open] one without, [engine] its
    address. `off_prints` and `on_prints` are what `is_off` prints in either case. `draft_flags` are launch arguments
    that belong to the drafter besides those that begin with one of `draft_prefixes`; names without dashes in front.
    """

    title: str
    launch: str
    model_flag: str
    off: str
    off_how: str
    is_off: str
    off_prints: str
    on_prints: str
    concurrency: str
    answers: str
    names: str
    length: str
    no_metrics: str
    no_records: str
    records: str
    simulated: str
    no_warmup: str
    pool_limit: str
    draft_prefixes: tuple[str, ...] = ()
    draft_flags: tuple[str, ...] = ()

    @property
    def marks(self) -> Mapping[str, str]:
        """The words by the marks that stand for them in commands, causes and remedies."""
        return {
            "[is off]": self.is_off,
            "[answers]": self.answers,
            "[names]": self.names,
            "[length]": self.length,
            "[no metrics]": self.no_metrics,
            "[no records]": self.no_records,
            "[records]": self.records,
            "[simulated]": self.simulated,
            "[no warm-up]": self.no_warmup,
            "[pool limit]": self.pool_limit,
        }


_CODE = "-o /dev/null -w '%{http_code}\\n'"

ENGINES: Mapping[str, EngineWords] = MappingProxyType(
    {
        "sglang": EngineWords(
            title="SGLang",
            launch="python3 -m sglang.launch_server",
            model_flag="--model-path",
            off="restart the engine without --speculative-algorithm",
            off_how="Leave out every launch argument that belongs to the drafter: all that begin with `--speculative-`",
            # one field only: the whole answer holds the engine's keys in clear text
            is_off="[curl] [engine]/server_info | grep -o '\"speculative_algorithm\": *[^,}]*' | sort -u",
            off_prints='"speculative_algorithm":null',
            on_prints='"speculative_algorithm":"…"',
            concurrency=(
                "without a drafter SGLang no longer holds running requests down to 48: set `--max-running-requests` if "
                "the load should stay what it was"
            ),
            answers=f"[curl open] {_CODE} [engine]/metrics",
            names="[curl open] [engine]/metrics | grep -cE '^sglang[:_]'",
            length="[curl open] [engine]/metrics | grep -E '^sglang[:_]spec_accept_(length|rate)'",
            no_metrics="a flag such as `--enable-metrics` is missing",
            no_records="the engine was started without `--export-metrics-to-file`",
            records="the engine's `--export-metrics-to-file-dir`",
            simulated="`SGLANG_SIMULATE_ACC_LEN` is set",
            no_warmup="`--skip-server-warmup` in the launch arguments",
            pool_limit="`--max-total-tokens`",
            draft_prefixes=("speculative-", "decoupled-spec-"),
            draft_flags=(
                "enable-linear-replayssm-spec",
                "enable-gdn-replayssm-spec",
                "linear-replayssm-cache-len",
                "enable-multi-layer-eagle",
                "enable-draft-weights-cpu-backup",
                "decrypted-draft-config-file",
                "uno-lora-path",
            ),
        ),
        "vllm": EngineWords(
            title="vLLM",
            launch="vllm serve",
            model_flag="",
            off="restart the engine without --speculative-config",
            off_how="Leave out every launch argument that belongs to the drafter: `--speculative-config` or `-sc`",
            # vLLM has these series only where a drafter is configured
            is_off="[curl open] [engine]/metrics | grep -c '^vllm:spec_decode_num_drafts_total'",
            off_prints="0",
            on_prints="1 or more",
            concurrency="running requests are limited as before: `--max-num-seqs` holds with and without a drafter",
            answers=f"[curl open] {_CODE} [engine]/metrics",
            names="[curl open] [engine]/metrics | grep -c '^vllm:'",
            length="[curl open] [engine]/metrics | grep -E '^vllm:spec_decode_num_(drafts|accepted_tokens)_total'",
            no_metrics="`--disable-log-stats` is set, which takes the engine's metrics away",
            no_records="nothing writes request records where the sidecar looks",
            records="the folder into which records are written",
            simulated="`rejection_sample_method` is `synthetic`",
            no_warmup="a launch argument that skips the warm-up",
            pool_limit="`--num-gpu-blocks-override`",
            draft_prefixes=("speculative-",),
            # the second is refused at the start where there is no drafter
            draft_flags=("sc", "per-request-spec-decode-metrics"),
        ),
        "tensorrt-llm": EngineWords(
            title="TensorRT-LLM",
            launch="trtllm-serve",
            model_flag="",
            off="restart the engine without speculative_config",
            off_how=(
                "Take the section `speculative_config` out of the YAML file that `--config` "
                "(or `--extra_llm_api_options`) names"
            ),
            # never GET /metrics: reading it takes the records away from whoever counts them
            is_off="[curl open] [engine]/prometheus/metrics | grep '^trtllm_spec_decode_num_draft_tokens_total'",
            off_prints="nothing, or a number that no longer grows",
            on_prints="a number that grows",
            concurrency="running requests are limited as before: `--max_batch_size` holds with and without a drafter",
            answers=f"[curl open] {_CODE} [engine]/prometheus/metrics",
            names="[curl open] [engine]/prometheus/metrics | grep -c '^trtllm_'",
            length="[curl open] [engine]/prometheus/metrics | grep '^trtllm_spec_decode_acceptance_length'",
            no_metrics="`return_perf_metrics` or `enable_iter_perf_stats` is not set",
            no_records="nothing writes request records where the sidecar looks",
            records="the folder into which records are written",
            simulated="acceptance is simulated for a measurement",
            no_warmup="a setting that skips the warm-up",
            pool_limit="`kv_cache_config.max_tokens`",
        ),
    }
)
"""By `engine.kind`."""
