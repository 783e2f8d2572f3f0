"""The tokenizer side of the stand-in: per-request counters and histograms, counted when a request ends.

Mirrors TokenizerManager.collect_metrics and TokenizerMetricsCollector.observe_one_finished_request of
SGLang 0.5.23. These series carry no rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from specbudget.simulate.exposition import Histogram, Sample, families
from specbudget.simulate.request import Ending, Request

STREAMING = ("true", "false")


class Frontend:
    """Counters since the start of the process."""

    def __init__(self, *, model_name: str, engine_type: str) -> None:
        self._labels = {"engine_type": engine_type, "model_name": model_name}
        self._streams_tokens = engine_type != "prefill"
        self._by_stream: Counter[tuple[str, str]] = Counter()
        self._plain: Counter[str] = Counter()
        self._histograms: dict[tuple[str, str | None], Histogram] = {}

    def first_token(self, request: Request) -> None:
        """The first token of a request is there."""
        if request.first_token is not None and self._streams_tokens:
            self._observe("time_to_first_token_seconds", request, request.first_token - request.arrived)

    def finished(self, request: Request) -> None:
        """A request has ended; one that never ran counts as an abort only."""
        if request.ending in (Ending.ABORT_RUNNING, Ending.ABORT_WAITING):
            self._plain["num_aborted_requests_total"] += 1
        if request.first_token is None:
            return
        stream = _stream(request)
        self._by_stream["prompt_tokens_total", stream] += request.prompt_tokens
        self._by_stream["generation_tokens_total", stream] += request.completion_tokens
        self._by_stream["num_requests_total", stream] += 1
        if request.verify_steps:
            self._plain["spec_verify_calls_total"] += request.verify_steps
        if request.cached_tokens:
            self._plain["cached_tokens_total"] += request.cached_tokens
        if "json_schema" in request.sampling_params:
            self._plain["num_so_requests_total"] += 1
        self._observe("e2e_request_latency_seconds", request, request.finished - request.arrived)
        later = request.completion_tokens - 1
        if later > 0:
            per_token = (request.finished - request.first_token) / later
            self._child("inter_token_latency_seconds", None).observe(per_token, later)
            if request.ending in (Ending.STOP, Ending.LENGTH):
                self._observe("request_time_per_output_token_seconds", request, per_token)
        self._child("prompt_tokens_histogram", None).observe(request.prompt_tokens)
        uncached = request.prompt_tokens - request.cached_tokens
        self._child("uncached_prompt_tokens_histogram", None).observe(uncached)
        self._child("generation_tokens_histogram", None).observe(request.completion_tokens)

    def samples(self) -> Iterator[Sample]:
        """Everything counted so far; what was never counted has no sample, as in the engine."""
        for (family, child), histogram in self._histograms.items():
            yield Sample(family, self._with_stream(child), histogram)
        for (family, stream), count in self._by_stream.items():
            yield Sample(family, self._with_stream(stream), float(count))
        for family, count in self._plain.items():
            source = {"cache_source": "total"} if family == "cached_tokens_total" else {}
            yield Sample(family, {**self._labels, **source}, float(count))

    def _with_stream(self, stream: str | None) -> dict[str, str]:
        return self._labels if stream is None else {**self._labels, "is_streaming": stream}

    def _observe(self, family: str, request: Request, value: float) -> None:
        self._child(family, _stream(request)).observe(value)

    def _child(self, family: str, stream: str | None) -> Histogram:
        key = (family, stream)
        if key not in self._histograms:
            self._histograms[key] = Histogram(families()[family].buckets)
        return self._histograms[key]


def _stream(request: Request) -> str:
    return STREAMING[0] if request.stream else STREAMING[1]
