"""Puts a review together: tracks and events from samples, then the findings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specbudget.domain.acceptance import Floats
from specbudget.errors import SpecbudgetError
from specbudget.review.engine_log import LogEvidence
from specbudget.review.events import fired_alerts, gaps, marks
from specbudget.review.findings import findings
from specbudget.review.model import AcceptanceTrack, EngineStart, Review, ReviewSource, TrafficTrack
from specbudget.review.reading import SeriesReader
from specbudget.review.request_evidence import RequestEvidence
from specbudget.review.samples import Samples
from specbudget.review.seen import seen
from specbudget.review.starts import SAME_START_SECONDS, starts
from specbudget.review.tracks import acceptance_track, memory_tracks, traffic_track


class ServiceError(SpecbudgetError):
    """Which service is meant cannot be told."""


def chosen_service(samples: Samples, asked: str | None, *, has_logs: bool = False) -> str:
    """The service that was asked for, or the only one there is. Raises ServiceError and lists them.

    With logs a service may be named that no sidecar saw.
    """
    found = samples.services()
    listed = ", ".join(found[:20]) + (", …" if len(found) > 20 else "")
    if asked is None:
        if len(found) == 1:
            return found[0]
        if not found:
            raise ServiceError(f"{samples.place}: no specbudget sidecar was recorded between --start and --end")
        raise ServiceError(f"{samples.place}: several services: give --service, one of: {listed}")
    if asked not in found and not has_logs:
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
    logged: LogEvidence | None = None,
    more_sources: tuple[ReviewSource, ...] = (),
) -> Review:
    """The review of one service. `logged` is what engine logs tell, `requests` what records say."""
    reader = SeriesReader(samples, service, start, end)
    told = with_logged(starts(reader), logged.starts if logged is not None else ())
    review = Review(
        service=service,
        start=start,
        end=end,
        axis=reader.axis,
        sources=(),
        memory=memory_tracks(reader),
        acceptance=_with_reports(acceptance_track(reader), logged, reader),
        traffic=_with_running(traffic_track(reader), logged, reader),
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
    if logged is not None:
        more_sources = (ReviewSource(kind="engine log", place="--log", told=logged.told()), *more_sources)
    if requests is not None:
        told_of = f"{requests.requests:,} requests in the stretch"
        more_sources = (*more_sources, ReviewSource(kind="requests", place="--requests", told=told_of))
    return replace(review, sources=(own, *more_sources), findings=findings(seen(reader, review, requests)))


def _reported(times: Floats, values: Floats, reader: SeriesReader) -> Floats:
    """The mean of a step's batch reports, each of which stands for about the same work."""
    axis = reader.axis
    places = np.ceil((times - axis.start) / axis.step).astype(np.int64)
    good = ~np.isnan(values) & (places >= 0) & (places < axis.count)
    sums = np.bincount(places[good], weights=values[good], minlength=axis.count)
    counts = np.bincount(places[good], minlength=axis.count)
    found: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return found


def _filled(track: Floats | None, more: Floats) -> Floats | None:
    """A track with what logs tell where no sidecar saw anything; None where neither knows anything."""
    if track is None:
        return None if np.isnan(more).all() else more
    whole: Floats = np.where(np.isnan(track), more, track)
    return whole


def _with_reports(track: AcceptanceTrack, logged: LogEvidence | None, reader: SeriesReader) -> AcceptanceTrack:
    if logged is None:
        return track
    # an engine without speculation prints 0.0, which is no length
    lengths = np.where(logged.report_lengths >= 1.0, logged.report_lengths, np.nan)
    more = _reported(logged.report_times, lengths, reader)
    return replace(track, batch_length=_filled(track.batch_length, more))


def _with_running(track: TrafficTrack, logged: LogEvidence | None, reader: SeriesReader) -> TrafficTrack:
    if logged is None:
        return track
    more = _reported(logged.report_times, logged.report_running, reader)
    return replace(track, running=_filled(track.running, more))


def with_logged(series: tuple[EngineStart, ...], logged: tuple[EngineStart, ...]) -> tuple[EngineStart, ...]:
    """The starts of both; one that both tell of is the log's where the series do not know its stages."""
    found = list(series)
    for start in logged:
        same = [s for s in found if abs(s.started_at - start.started_at) <= SAME_START_SECONDS]
        if not same:
            found.append(start)
        elif not same[0].stages:
            found[found.index(same[0])] = replace(start, replica=same[0].replica, budget_seconds=same[0].budget_seconds)
        elif same[0].target_tokens is None:
            found[found.index(same[0])] = replace(same[0], target_tokens=start.target_tokens)
    return tuple(sorted(found, key=lambda start: (start.started_at, start.replica)))
