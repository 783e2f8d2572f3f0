"""Start-up phases that an engine measures itself, without a split into artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specbudget.domain.stages import StageArtifact
from specbudget.domain.start_events import NO_FIGURES

GRAPH_OWNERS = {
    "prefill": StageArtifact.TARGET,
    "decode": StageArtifact.TARGET,
    "target_verify": StageArtifact.TARGET,
    "draft_prefill": StageArtifact.DRAFTER,
    "draft_decode": StageArtifact.DRAFTER,
    "draft_extend": StageArtifact.DRAFTER,
}
"""Whose graphs a phase of graph capture makes (SGLang cuda_graph_setup.py: draft runners use draft_* keys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPhases:
    """Seconds by phase, None where not measured: an engine that never set a phase says 0.0.

    `load` and `kv_alloc` are of target and drafter together. `engine` is from the launch to ready for requests
    (SGLang tokenizer_e2e, else its older engine_startup_time), `scheduler` the part up to the end of graph capture.
    `graphs` is by phase, `graph_capture` their sum where only that is told. `hot_reload` is the latest swap of
    weights in the live process: no part of a start.
    """

    load: float | None = None
    kv_alloc: float | None = None
    graph_capture: float | None = None
    graphs: Mapping[str, float] = field(default_factory=lambda: NO_FIGURES)
    scheduler: float | None = None
    engine: float | None = None
    hot_reload: float | None = None

    def captured(self, owner: StageArtifact) -> float | None:
        """Seconds of graph capture of the target, of the drafter, or of both."""
        if owner is StageArtifact.BOTH:
            return sum(self.graphs.values()) if self.graphs else self.graph_capture
        own = [seconds for phase, seconds in self.graphs.items() if GRAPH_OWNERS.get(phase) is owner]
        return sum(own) if own else None

    @property
    def rest(self) -> float | None:
        """What of `engine` no phase explains; None while the load, its largest part, was not measured."""
        if self.engine is None or self.load is None:
            return None
        known = self.load + (self.kv_alloc or 0.0) + (self.captured(StageArtifact.BOTH) or 0.0)
        return self.engine - known if known <= self.engine else None

    @property
    def any_of_a_start(self) -> bool:
        """True when something of a start was measured."""
        times = (self.load, self.kv_alloc, self.graph_capture, self.scheduler, self.engine)
        return bool(self.graphs) or any(seconds is not None for seconds in times)
