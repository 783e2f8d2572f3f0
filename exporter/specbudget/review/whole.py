"""Puts a review together: tracks and events from samples, then the findings."""

from __future__ import annotations

from dataclasses import replace

from specbudget.errors import SpecbudgetError
from specbudget.review.events import fired_alerts, gaps, marks
from specbudget.review.findings import findings
from specbudget.review.model import EngineStart, Review, ReviewSource
from specbudget.review.reading import SeriesReader
from specbudget.review.request_evidence import RequestEvidence
from specbudget.review.samples import Samples
from specbudget.review.seen import seen
from specbudget.review.starts import SAME_START_SECONDS, starts
from specbudget.review.tracks import acceptance_track, memory_tracks, traffic_track


class ServiceError(SpecbudgetError):
    """Which service is meant cannot be told."""


def chosen_service(samples: Samples, asked: str | None) -> str:
    """The service that was asked for, or the only one there is. Raises ServiceError and lists them."""
    found = samples.services()
    listed = ", ".join(found[:20]) + (", …" if len(found) > 20 else "")
    if asked is None:
        if len(found) == 1:
            return found[0]
        if not found:
            raise ServiceError(f"{samples.place}: no specbudget sidecar was recorded between --start and --end")
        raise ServiceError(f"{samples.place}: several services: give --service, one of: {listed}")
    if asked not in found:
        known = f"there: {listed}" if found else "there is none between --start and --end"
        raise ServiceError(f"--service {asked}: not in {samples.place}; {known}")
    return asked


def review_of(
    samples: Samples,
    service: str,
    start: float,
    end: float,
    *,
    requests: RequestEvidence | None = None,
    logged: tuple[EngineStart, ...] = (),
    more_sources: tuple[ReviewSource, ...] = (),
) -> Review:
    """The review of one service. `logged` are starts that logs tell of, `requests` what records say."""
    reader = SeriesReader(samples, service, start, end)
    told = with_logged(starts(reader), logged)
    review = Review(
        service=service,
        start=start,
        end=end,
        axis=reader.axis,
        sources=(),
        memory=memory_tracks(reader),
        acceptance=acceptance_track(reader),
        traffic=traffic_track(reader),
        starts=told,
        alerts=fired_alerts(reader),
        marks=marks(reader, told),
        gaps=gaps(reader),
    )
    known = samples.extent(service)
    every = f"every {reader.interval:g} s" if known is not None else "no sample"
    own = ReviewSource(
        kind=samples.kind,
        place=samples.place,
        told=f"{len(reader.presence)} replica{'s' if len(reader.presence) != 1 else ''}, {every}, "
        f"looked at every {reader.axis.step:g} s",
    )
    return replace(review, sources=(own, *more_sources), findings=findings(seen(reader, review, requests)))


def with_logged(series: tuple[EngineStart, ...], logged: tuple[EngineStart, ...]) -> tuple[EngineStart, ...]:
    """The starts of both; one that both tell of is the log's where the series do not know its stages."""
    found = list(series)
    for start in logged:
        same = [s for s in found if abs(s.started_at - start.started_at) <= SAME_START_SECONDS]
        if not same:
            found.append(start)
        elif not same[0].stages:
            found[found.index(same[0])] = replace(start, replica=same[0].replica, budget_seconds=same[0].budget_seconds)
    return tuple(sorted(found, key=lambda start: (start.started_at, start.replica)))
