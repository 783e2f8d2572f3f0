"""Labels that stand around the series: the service's own, and those by which replicas are told apart and summed."""

from __future__ import annotations

SERVICE_LABEL = "specbudget_service"
"""On every series. The name is long so that no label of a target can collide with it."""

DEFAULT_LABELS = ("cluster", "namespace", SERVICE_LABEL)
"""What pages and tickets keep apart unless the budget says otherwise."""

REPLICA_LABELS = ("pod", "instance")
"""What tells the replicas of a service apart; where there is no pod the label is empty and does no harm."""
