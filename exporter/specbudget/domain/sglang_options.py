"""The options that SGLang's launch command knows, by release: for abbreviations, which argparse resolves, and for
misspelt names.

Source: the fields and `add_argument` calls of SGLang 0.5.18 `server_args.py` and of 0.5.23 `server_args.py` and
`arg_groups/fields/`. Names are without their dashes.
"""

from __future__ import annotations

from specbudget.domain.pool_sizing.inputs import read_release

_BOTH_VALUES = """
admin-api-key allowed-media-domains api-key asr-max-buffer-seconds asr-max-concurrent-sessions attention-backend
attention-context-parallel-size attn-cp-size base-gpu-id batch-notify-size bf16-gemm-backend
bucket-e2e-request-latency bucket-inter-token-latency bucket-time-to-first-token c128-page-size chat-template
chunked-prefill-size completion-template config constrained-json-whitespace-pattern context-length cp-strategy
cpu-offload-gb crash-dump-folder cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-bs-decode
cuda-graph-bs-prefill cuda-graph-config cuda-graph-max-bs-decode cuda-graph-max-bs-prefill custom-weight-loader
data-parallel-size dcp-comm-backend dcp-size debug-tensor-dump-input-file debug-tensor-dump-layers
debug-tensor-dump-output-folder decode-attention-backend decode-context-parallel-size decode-log-interval
decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints decoupled-spec-rank decoupled-spec-role
decrypted-config-file decrypted-draft-config-file deepep-config deepep-dispatcher-output-dtype deepep-mode
default-chat-template-kwargs default-priority-value detokenizer-worker-num device disaggregation-bootstrap-port
disaggregation-decode-extra-slots disaggregation-decode-polling-interval disaggregation-decode-retraction-backup
disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend dist-init-addr dist-timeout
dllm-algorithm dllm-algorithm-config download-dir dp-size dsa-decode-backend dsa-paged-mqa-logits-backend
dsa-prefill-backend dsa-topk-backend dtype dwdp-size dynamic-batch-tokenizer-batch-size
dynamic-batch-tokenizer-batch-timeout elastic-ep-backend elastic-ep-initial-size elastic-ep-join-mode
elastic-ep-join-rank-offset elastic-ep-scale-timeout encoder-bootstrap-port encoder-register-urls
encoder-transfer-backend encoder-urls engine-info-bootstrap-port ep ep-dispatch-algorithm
ep-num-redundant-experts ep-size eplb-algorithm eplb-min-rebalancing-utilization-threshold
eplb-rebalance-layers-per-chunk eplb-rebalance-num-iterations expert-balancedness-report-mode
expert-distribution-recorder-buffer-size expert-distribution-recorder-mode expert-parallel-size
export-metrics-to-file-dir extra-metric-labels fastapi-root-path file-storage-path
flashinfer-allreduce-fusion-backend flashinfer-autotune-skip-ops flashinfer-mxfp4-moe-precision
flexkv-config-file forward-hooks forward-pass-metrics-ipc-name forward-pass-metrics-worker-id fp4-gemm-backend
fp8-gemm-backend fuseep-mode gc-threshold gc-warning-threshold-secs generation-tokens-buckets gpu-id-step
grammar-backend grpc-http-sidecar-port grpc-port hf-chat-template-name hicache-io-backend hicache-mem-layout
hicache-ratio hicache-size hicache-storage-backend hicache-storage-backend-extra-config
hicache-storage-prefetch-policy hicache-write-policy hierarchical-sparse-attention-extra-config hisparse-config
host http2-max-concurrent-streams image-processor-backend init-expert-location int8-mamba-ckpt-size
json-model-override-args kt-cpuinfer kt-max-deferred-experts-per-token kt-method kt-num-gpu-experts
kt-threadpool-count kt-weight-path kv-cache-dtype kv-canary kv-canary-real-data kv-canary-sweep-interval
kv-events-config limit-mm-data-per-request linear-attn-backend linear-attn-decode-backend
linear-attn-prefill-backend linear-attn-verify-backend linear-replayssm-cache-len lmcache-config-file
load-balance-method load-format load-snapshot-publish-interval log-level log-level-http log-requests-format
log-requests-level log-requests-target lora-backend lora-drain-wait-threshold lora-eviction-policy lora-paths
lora-target-modules mamba-backend mamba-cache-philox-rounds mamba-full-memory-ratio mamba-max-states-per-path
mamba-radix-cache-strategy mamba-ssm-dtype mamba-track-interval max-ep-size max-loaded-loras max-lora-chunk-size
max-lora-rank max-loras-per-batch max-mamba-cache-size max-prefill-tokens max-queued-requests
max-running-requests max-total-tokens media-url-max-file-size-mb mem-fraction-static min-free-slots-delay
mm-attention-backend mm-feature-transport mm-global-cache-backend mm-io-worker-num mm-preprocess-cache-size-mb
mm-process-config mm-processor-worker-num model model-checksum model-config-parser model-impl
model-loader-extra-config model-path modelexpress-config modelopt-checkpoint-restore-path
modelopt-checkpoint-save-path modelopt-export-path modelopt-quant moe-a2a-backend moe-data-parallel-size
moe-dense-tp-size moe-dp-size moe-runner-backend mooncake-ib-device msprobe-dump-config nccl-init-addr nccl-port
nnodes node-rank num-continuous-decode-steps num-reserved-decode-tokens numa-node offload-group-size
offload-mode offload-num-in-group offload-prefetch-step optimistic-prefill-attempts otlp-traces-endpoint
page-size pdmux-config-path pipeline-parallel-size port pp-async-batch-depth pp-max-micro-batch-size pp-size
preferred-sampling-params prefill-attention-backend prefill-delayer-forward-passes-buckets
prefill-delayer-max-delay-ms prefill-delayer-max-delay-passes prefill-delayer-queue-min-ratio
prefill-delayer-token-usage-low-watermark prefill-delayer-wait-seconds-buckets prefill-max-requests
priority-scheduling-preemption-threshold prompt-tokens-buckets quantization quantization-param-path
radix-cache-backend radix-eviction-policy random-seed reasoning-parser remote-instance-weight-loader-backend
remote-instance-weight-loader-seed-instance-ip remote-instance-weight-loader-seed-instance-service-port
remote-instance-weight-loader-send-weights-group-ports retraction-policy return-hidden-states-mode revision
rl-on-policy-target rl-quant-profile sampling-backend sampling-defaults schedule-conservativeness
schedule-policy scheduler-recv-interval served-model-name sidecar sidecar-args sm-group-num
smg-http-sidecar-port soft-watchdog-timeout spec-trace-dir speculative-accept-threshold-acc
speculative-accept-threshold-single speculative-adaptive-config speculative-algorithm speculative-attention-mode
speculative-dflash-block-size speculative-draft-attention-backend speculative-draft-kv-cache-dtype
speculative-draft-load-format speculative-draft-model speculative-draft-model-path
speculative-draft-model-quantization speculative-draft-model-revision speculative-draft-window-size
speculative-dspark-block-size speculative-dspark-confidence-sts-path speculative-dspark-sps-table-path
speculative-eagle-topk speculative-moe-a2a-backend speculative-moe-runner-backend speculative-ngram-capacity
speculative-ngram-external-corpus-max-tokens speculative-ngram-external-corpus-path
speculative-ngram-external-sam-budget speculative-ngram-match-type speculative-ngram-max-bfs-breadth
speculative-ngram-max-trie-depth speculative-ngram-min-bfs-breadth speculative-num-draft-tokens
speculative-num-steps speculative-token-map ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password
startup-weight-load-mode stream-interval swa-full-tokens-ratio tbo-token-distribution-threshold
tensor-parallel-size tokenizer-backend tokenizer-metrics-allowed-custom-labels
tokenizer-metrics-custom-labels-header tokenizer-mode tokenizer-path tokenizer-worker-num tool-call-parser
tool-server torch-compile-max-bs tp-size trace-modules triton-attention-num-kv-splits
triton-attention-split-tile-size uvicorn-access-log-exclude-prefixes warmups watchdog-timeout weight-cache-mode
weight-cache-socket weight-cache-timeout weight-loader-prefetch-num-threads weight-version
"""

_BOTH_SWITCHES = """
abort-on-priority-when-disabled allow-auto-truncate checkpoint-engine-wait-weights-before-ready
constrained-json-disable-any-whitespace dcp-replicate-q-proj debug-cuda-graph delete-ckpt-after-loading
disable-attn-tp-gather disable-chunked-prefix-cache disable-cuda-graph disable-cuda-graph-padding
disable-custom-all-reduce disable-decode-cuda-graph disable-fast-image-processor disable-flashinfer-autotune
disable-flashinfer-cutlass-moe-fp4-allgather disable-hybrid-swa-memory disable-outlines-disk-cache
disable-overlap-schedule disable-prefill-cuda-graph disable-priority-preemption disable-radix-cache
disable-shared-experts-fusion disable-tokenizer-batch-decode disaggregation-decode-enable-offload-kvcache
disaggregation-decode-enable-radix-cache dllm-fdfo enable-adaptive-dispatch-to-encoder
enable-aiter-allreduce-fusion enable-attn-tp-input-scattered enable-broadcast-mm-inputs-process
enable-cache-report enable-cp-decode-attn-tp enable-cudagraph-gc enable-custom-logit-processor
enable-deepseek-v4-fp4-indexer enable-deterministic-inference enable-dp-attention
enable-dp-attention-local-control-broadcast enable-dp-lm-head enable-draft-weights-cpu-backup
enable-dsa-cache-layer-split enable-dynamic-batch-tokenizer enable-dynamic-chunking enable-elastic-expert-backup
enable-eplb enable-flashinfer-allreduce-fusion enable-flexkv enable-forward-pass-metrics enable-fp32-lm-head
enable-fused-moe-sum-all-reduce enable-fused-qk-norm-rope enable-hierarchical-cache enable-hisparse enable-http2
enable-int8-mamba-checkpoint enable-layerwise-nvtx-marker enable-linear-replayssm enable-linear-replayssm-spec
enable-lmcache enable-lora enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding
enable-memory-saver enable-metrics enable-metrics-for-all-schedulers enable-mfu-metrics enable-mis
enable-mixed-chunk enable-mm-global-cache enable-mscclpp enable-multi-layer-eagle enable-multimodal
enable-nccl-nvls enable-p2p-check enable-page-major-kv-layout enable-pdmux
enable-precise-embedding-interpolation enable-prefill-cp enable-prefill-delayer enable-prefix-mm-cache
enable-priority-scheduling enable-profile-cuda-graph enable-quant-communications
enable-request-time-stats-logging enable-return-hidden-states enable-return-indexer-topk
enable-return-routed-experts enable-scattered-sconv enable-session-radix-cache enable-single-batch-overlap
enable-ssl-refresh enable-streaming-session enable-strict-thinking enable-symm-mem enable-tf32-matmul
enable-tokenizer-batch-encode enable-torch-compile enable-torch-compile-debug-mode enable-torch-symm-mem
enable-tp-lm-head-all-to-all enable-trace enable-two-batch-overlap enable-unified-memory enable-waterfill
enable-weights-cpu-backup encoder-only enforce-disable-flashinfer-allreduce-fusion enforce-shared-experts-fusion
experts-shared-outer-loras export-metrics-to-file flashinfer-mla-disable-ragged grpc-mode
incremental-streaming-output is-embedding language-model-only language-only log-requests lora-strict-loading
lora-use-virtual-experts mlx-enable-sampling mm-enable-dp-encoder no-dcp-replicate-q-proj no-dllm-fdfo
no-enable-tp-lm-head-all-to-all no-experts-shared-outer-loras no-lora-strict-loading pre-warm-nccl
prefill-only-disable-kv-cache quantize-and-serve remote-instance-weight-loader-start-seed-via-transfer-engine
schedule-low-priority-values-first show-time-cost skip-server-warmup skip-tokenizer-init sleep-on-idle
smg-grpc-mode speculative-adaptive speculative-dspark-align-verify-tokens-to-graph-tier
speculative-use-rejection-sampling stream-response-default-include-usage strip-thinking-cache
triton-attention-reduce-in-fp32 trust-mm-content-hashes trust-remote-code use-ray weight-loader-disable-mmap
weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints
"""

_EARLY_VALUES = """
cuda-graph-bs cuda-graph-max-bs cuda-graph-tc-compiler dsa-prefill-cp-mode mamba-scheduler-strategy
nsa-decode-backend nsa-prefill-backend nsa-prefill-cp-mode piecewise-cuda-graph-compiler
piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens prefill-cp-mode speculative-dflash-draft-window-size
"""

_EARLY_SWITCHES = """
collect-tokens-histogram disable-piecewise-cuda-graph elastic-ep-rejoin enable-breakable-cuda-graph
enable-dsa-prefill-context-parallel enable-expert-distribution-metrics enable-gdn-replayssm-spec
enable-nsa-prefill-context-parallel enable-prefill-context-parallel enforce-piecewise-cuda-graph
keep-mm-feature-on-device prefill-round-robin-balance speculative-skip-dp-mlp-sync stream-output
"""

_LATE_VALUES = """
attention-data-parallel-size attn-dp-size boundary-reduction constrained-json-max-whitespace-cnt context-bucket
cuda-graph-max-seq-len-prefill cuda-graph-prefill-max-context deepep-v2-mode
disaggregation-decode-allocation-policy disaggregation-decode-host-receive-threshold dsa-triton-union
dsv4-attn-backend dsv4-prefill-backend flashinfer-a2a-dispatch-type gated-launch-port grpc-response-timeout-secs
hicache-host-memory-fraction hicache-host-memory-mode hicache-storage-prefetch-retry-max-attempts
hicache-storage-prefetch-retry-poll-interval http2-initial-connection-window-size load-publish-endpoint
otlp-service-name paged-experts-num-resident ple-offload-backend ple-offload-dir prefill-decode-interval
prefill-decode-interval-min-bs prefill-kv-cache-dequant-dtype qsa-indexer-dtype radix-eviction-policy-config
return-aux-hidden-state-layer-ids sampling-mask-max-tokens shared-experts-tp-size
speculative-domino-candidate-pool-size speculative-draft-sink-size speculative-dsa-topk-backend swa-prefix-tails
unified-cache-external-linker-backend unified-cache-external-linker-config uno-lora-path watermark-config
"""

_LATE_SWITCHES = """
disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill
disaggregation-enable-kv-checksum enable-amd-monokernel enable-decoder-swa-bounded-replay
enable-dense-mlp-attn-tp enable-dsa-fused-indexer enable-encoder-swa-bounded-replay enable-hicache
enable-http-worker-reuseport enable-kv-cache-sharding enable-layernorm-sp enable-lean-attention
enable-linker-mla-dedup enable-megamoe-for-layernorm-sp enable-nvidia-megakernel enable-paged-experts
enable-pd-role-switch enable-response-store enable-return-aux-hidden-states enable-shared-experts-attn-tp
enable-unified-cache-external-linker enable-w4a4-mxfp4-megamoe enable-watermark monokernel-backend
no-enable-decoder-swa-bounded-replay no-enable-dsa-fused-indexer no-enable-fused-qk-norm-rope
no-enable-tf32-matmul no-mm-enable-dp-encoder no-ple-offload-embedding no-speculative-enable-w4a4-mxfp4-megamoe
ple-offload-embedding return-input-ids return-output-ids speculative-enable-w4a4-mxfp4-megamoe
speculative-use-block-verification trust-request-chat-template
"""

ALIASES = {
    "attention-context-parallel-size": "attn-cp-size",
    "attention-data-parallel-size": "attn-dp-size",
    "cuda-graph-max-bs-decode": "cuda-graph-max-bs",
    "data-parallel-size": "dp-size",
    "decode-context-parallel-size": "dcp-size",
    "enable-gdn-replayssm-spec": "enable-linear-replayssm-spec",
    "enable-hicache": "enable-hierarchical-cache",
    "mamba-scheduler-strategy": "mamba-radix-cache-strategy",
    "model": "model-path",
    "nsa-decode-backend": "dsa-decode-backend",
    "nsa-prefill-backend": "dsa-prefill-backend",
    "pipeline-parallel-size": "pp-size",
    "speculative-dflash-draft-window-size": "speculative-draft-window-size",
    "speculative-draft-model": "speculative-draft-model-path",
    "tensor-parallel-size": "tp-size",
}
"""Second names of options that are read here, each with the one name under which they are read.

Source: the aliases and DeprecatedAlias actions of 0.5.18 `server_args.py` and 0.5.23 `arg_groups/fields/`. What 0.5.18
calls cuda-graph-max-bs too is cuda-graph-max-bs-decode since.
"""

_MAY_BE_BARE = frozenset({"model-checksum", "lora-paths"})
_TOOLS = frozenset({"help", "version"})
_VALUES = {word for block in (_BOTH_VALUES, _EARLY_VALUES, _LATE_VALUES) for word in block.split()}


def option_names(release: str) -> frozenset[str]:
    """The options of a release, without dashes; those of both that were read for another release."""
    early = (_EARLY_VALUES, _EARLY_SWITCHES)
    late = (_LATE_VALUES, _LATE_SWITCHES)
    of_release = {"0.5.18": early, "0.5.23": late}.get(read_release(release) or "", (*early, *late))
    return _TOOLS.union(*(block.split() for block in (_BOTH_VALUES, _BOTH_SWITCHES, *of_release)))


def takes_value(name: str) -> bool:
    """Whether an option must have a value behind it."""
    return name in _VALUES and name not in _MAY_BE_BARE


def meanings(name: str, release: str) -> tuple[str, ...]:
    """The options that a name stands for: itself, else those that begin with it, as argparse has it."""
    known = option_names(release)
    if name in known:
        return (name,)
    return tuple(sorted(option for option in known if option.startswith(name))) if name else ()
