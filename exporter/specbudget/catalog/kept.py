"""The series that a review reads and that the sidecar's history keeps, and how their samples become one."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog import series
from specbudget.catalog.lines import Unit
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import Scope
from specbudget.domain.reduction import Reduction


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSeries:
    """One series of /metrics. `only` are labels of the children that are kept; the rest is for people."""

    series: SeriesDef
    reduction: Reduction = Reduction.LAST
    only: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self.series.full_name


def _last(*several: SeriesDef) -> tuple[KeptSeries, ...]:
    return tuple(KeptSeries(series=one) for one in several)


def _highest(*several: SeriesDef) -> tuple[KeptSeries, ...]:
    return tuple(KeptSeries(series=one, reduction=Reduction.HIGHEST) for one in several)


BATCH_LENGTH = KeptSeries(
    series=series.ROLLING_ACCEPTANCE_LENGTH, only=(("scope", Scope.BATCH.value), ("window", "1m"))
)

KEPT: tuple[KeptSeries, ...] = (
    *_last(*(series.BUDGET_LIMIT[unit] for unit in Unit)),
    *_last(series.ARTIFACT_INFO, series.KV_BYTES_PER_TOKEN),
    *_last(series.KV_POOL_CAPACITY_BYTES, series.KV_POOL_CAPACITY_TOKENS),
    *_highest(series.KV_POOL_USED_BYTES, series.KV_POOL_RESIDENT_BYTES, series.KV_POOL_USED_TOKENS),
    *_last(series.KV_NEED_BYTES, series.KV_COST_TOKENS, series.DEVICE_MEMORY_BYTES, series.KV_RETRACTIONS),
    BATCH_LENGTH,
    *_last(series.VERIFY_STEPS, series.PROPOSED_DRAFTS, series.ACCEPTED_DRAFTS, series.GENERATED_TOKENS),
    *_last(series.DRAFT_POSITION_ACCEPTED, series.SLO_EVENTS, series.SLO_EXCLUDED),
    *_last(series.SLO_OBJECTIVE, series.ACCEPTANCE_TARGET, series.BREAK_EVEN, series.ACCEPTANCE_WINDOW),
    *_last(series.ACCEPTANCE_EXPECTED, series.SPECULATION_STATE, series.ACCEPTANCE_SOURCE_INFO),
    *_highest(series.ACCEPTANCE_SUSPECT),
    *_last(series.ENGINE_INFO, series.ENGINE_START_TIME),
    *_highest(series.ENGINE_RUNNING, series.ENGINE_QUEUED),
    *_last(series.STARTUP_STAGE_OFFSET, series.STARTUP_STAGE_DURATION, series.COLD_START, series.STARTUPS),
    *_last(series.STAGING_INFO, series.STAGING_OVERLAP),
    *_last(series.CODESIGN_CHECK, series.RECHECK_DUE),
    *_last(series.SOURCE_UP, series.SOURCE_LAG, series.CONFIG_RELOAD_TIME, series.BUILD_INFO),
)
"""Every name stands once."""

KEPT_BY_NAME = {kept.name: kept for kept in KEPT}

ALERTS = "ALERTS"
"""The series in which Prometheus and vmalert say what fired. No other source has it."""
