"""A start-up event as plain values, for keeping."""

from __future__ import annotations

from typing import Any

from specbudget.domain.stages import StageArtifact
from specbudget.domain.start_events import Mark, StartEvent

_PLAIN = ("label", "model", "seconds", "size_bytes", "verify_bytes", "free_bytes")


def event_to(event: StartEvent) -> dict[str, Any]:
    """What is not empty, by name. A monotonic second means nothing to another process and is left out."""
    kept: dict[str, Any] = {"mark": event.mark.value, "at": event.at}
    if event.rank:
        kept["rank"] = event.rank
    if event.role is not None:
        kept["role"] = event.role.value
    if event.figures:
        kept["figures"] = dict(event.figures)
    for name in _PLAIN:
        value = getattr(event, name)
        if value not in (None, ""):
            kept[name] = value
    return kept


def event_from(kept: dict[str, Any]) -> StartEvent:
    """The event that `event_to` gave; raises KeyError or ValueError for anything else."""
    values = {name: kept[name] for name in (*_PLAIN, "figures", "rank") if name in kept}
    role = kept.get("role")
    return StartEvent(
        mark=Mark(kept["mark"]), at=kept["at"], role=None if role is None else StageArtifact(role), **values
    )
