"""The phases of a start-up in SGLang's /metrics: seconds by phase, set once before the server is ready.

`startup_time_seconds{phase}` and `startup_cuda_graph_time_seconds{phase}` (0.5.18 and 0.5.23, largest of the ranks;
`load_weight` is target and drafter together), `engine_startup_time` and `engine_load_weights_time` (0.5.13 and
before, where the latter may stand at 0.0: not measured). `weight_load_duration_seconds` is the latest hot reload.
"""

from __future__ import annotations

import math

from specbudget.domain.start_phases import StartPhases
from specbudget.domain.start_told import phases_of
from specbudget.sources.exposition import read_samples

_FAMILIES = {
    "startup_time_seconds": "",
    "startup_cuda_graph_time_seconds": "graph/",
    "engine_startup_time": "engine_startup",
    "engine_load_weights_time": "engine_load",
    "weight_load_duration_seconds": "hot_reload",
}
_BY_PHASE = ("startup_time_seconds", "startup_cuda_graph_time_seconds")
_OLD = {"engine_startup": "tokenizer_e2e", "engine_load": "load_weight"}
"""Names of older families, by the phase that replaced them."""

HOT_RELOAD_NAMES = ("sglang:weight_load_duration_seconds", "sglang_weight_load_duration_seconds")
"""What a storage may call the latest hot reload, where it scrapes the engine, too."""
WANTED = frozenset(prefix + name for prefix in ("sglang:", "sglang_") for name in _FAMILIES)
MAX_SECONDS = 1e7


def read_phases(body: bytes) -> StartPhases | None:
    """The phases, None where the body has none of them; raises ExpositionError for a broken line of one."""
    figures: dict[str, float] = {}
    for sample in read_samples(body, WANTED):
        name = sample.name[len("sglang:") :]
        key = _FAMILIES[name] + (sample.labels.get("phase", "")[:60] if name in _BY_PHASE else "")
        # copies of other ranks and spellings: the slowest counts
        if math.isfinite(sample.value) and 0 <= sample.value <= MAX_SECONDS:
            figures[key] = max(sample.value, figures.get(key, 0.0))
    if not figures:
        return None
    for old, phase in _OLD.items():
        figures.setdefault(phase, figures.pop(old, 0.0))
    return phases_of(figures)
