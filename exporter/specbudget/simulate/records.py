"""The record that SGLang 0.5.23 writes for a request: request_parameters and meta_info, keys in its order.

Sources: observability/request_metrics_exporter.py and managers/tokenizer_manager.py
(`_handle_batch_output`, `_calculate_spec_decoding_metrics`, `_handle_abort_req`).
"""

from __future__ import annotations

import json
from typing import Any

from specbudget.simulate.deployment import adapter_id
from specbudget.simulate.request import Ending, Request
from specbudget.simulate.traffic import STOP_TOKEN

DISPATCH_SECONDS = 0.002
RESPONSE_SECONDS = 0.0004
WEIGHT_VERSION = "default"

_BEFORE_STREAM: dict[str, Any] = {
    "return_text_in_logprobs": False,
    "return_flat_raw_top_logprobs": False,
    "return_flat_raw_output_top_logprobs": False,
    "return_flat_raw_top_logprobs_b64": False,
}
_BEFORE_ADAPTER: dict[str, Any] = {
    "log_metrics": True,
    "return_hidden_states": False,
    "return_routed_experts": False,
    "routed_experts_start_len": 0,
    "return_indexer_topk": False,
}
_AFTER_ADAPTER: dict[str, Any] = {
    "background": False,
    "require_reasoning": False,
    "no_logs": False,
    "return_bytes": False,
    "return_entropy": False,
    "return_prompt_token_ids": False,
}


def request_parameters(request: Request) -> str:
    """The request as JSON text inside the record: with the prompt, as the engine writes it by default."""
    adapter = {} if request.adapter is None else {"lora_path": request.adapter, "lora_id": adapter_id(request.adapter)}
    peer = {} if request.bootstrap is None else request.bootstrap.parameters
    prompt = {"text": request.text} if request.input_ids is None else {"input_ids": list(request.input_ids)}
    return json.dumps(
        {
            "rid": request.rid,
            **prompt,
            "use_audio_in_video": False,
            "sampling_params": request.sampling_params,
            **_BEFORE_STREAM,
            "stream": request.stream,
            **_BEFORE_ADAPTER,
            **adapter,
            **peer,
            **_AFTER_ADAPTER,
        }
    )


def finish_reason(request: Request) -> dict[str, Any]:
    """Why the request ended."""
    match request.ending:
        case Ending.STOP:
            return {"type": "stop", "matched": STOP_TOKEN}
        case Ending.LENGTH:
            return {"type": "length", "length": request.completion_tokens}
        case Ending.HANDED_OVER:
            return {"type": "length", "length": 0}
        case Ending.ABORT_WAITING:
            return {"type": "abort", "message": "Abort in waiting queue"}
        case Ending.ABORT_RUNNING:
            return {"type": "abort", "message": "Abort by user", "status_code": None, "err_type": None}
        case Ending.POOL_FULL:
            return {
                "type": "abort",
                "message": "KV cache pool is full. Aborted",
                "status_code": 500,
                "err_type": "InternalServerError",
            }


def speculation_fields(request: Request) -> dict[str, Any]:
    """The spec_* part of a record; empty when the request had no verify step."""
    steps = request.verify_steps
    if steps == 0:
        return {}
    return {
        "spec_accept_rate": request.accepted / request.proposed,
        "spec_accept_length": request.completion_tokens / steps,
        "spec_num_correct_drafts": request.accepted,
        "spec_num_proposed_drafts": request.proposed,
        "spec_verify_ct": steps,
        "spec_correct_drafts_histogram": request.histogram,
    }


def record(request: Request, rank: int) -> dict[str, Any]:
    """The whole record of a request that has ended."""
    head = {
        "request_parameters": request_parameters(request),
        "id": request.rid,
        "finish_reason": finish_reason(request),
    }
    latency = request.finished - request.arrived
    responded = request.finished + RESPONSE_SECONDS
    if request.first_token is None or request.entered is None:
        return {
            **head,
            "weight_version": WEIGHT_VERSION,
            "e2e_latency": latency,
            "completion_tokens": 1,
            "response_sent_to_client_ts": responded,
        }
    streamed = request.stream and request.completion_tokens > 1
    result = {
        **head,
        "prompt_tokens": request.prompt_tokens,
        "weight_version": WEIGHT_VERSION,
        "num_retractions": request.retractions,
        "forward_entry_time": request.entered,
        "prefill_finished_time": request.first_token,
        "queue_time": request.entered - request.arrived,
        "reasoning_tokens": 0,
        "completion_tokens": request.completion_tokens,
        "cached_tokens": request.cached_tokens,
        "dp_rank": rank,
        "e2e_latency": latency,
        **speculation_fields(request),
        "request_received_ts": request.arrived,
        "first_token_latency": request.first_token - request.arrived,
        "api_server_dispatch_finish_ts": request.arrived + DISPATCH_SECONDS,
    }
    if streamed:
        result["response_sent_to_client_ts"] = request.first_token + RESPONSE_SECONDS
    result["request_finished_ts"] = request.finished
    if request.completion_tokens > 1:
        decoding = max(request.finished - request.first_token, 1e-6)
        result["decode_throughput"] = (request.completion_tokens - 1) / decoding
    if not streamed:
        result["response_sent_to_client_ts"] = responded
    return result
