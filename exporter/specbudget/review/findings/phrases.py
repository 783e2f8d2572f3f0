"""Moments and amounts as findings say them."""

from __future__ import annotations

import time

import numpy as np

from specbudget.domain.acceptance import Bools, Floats
from specbudget.review.model import Review
from specbudget.words import seconds


def moment(at: float, review: Review) -> str:
    """A moment in UTC, with its day where the review is longer than one."""
    form = "%Y-%m-%d %H:%M UTC" if review.end - review.start > 86400 else "%H:%M:%S UTC"
    return time.strftime(form, time.gmtime(at))


def lasting(start: float, end: float, review: Review) -> str:
    """A stretch: from when, and for how long or until the end of the review."""
    if end >= review.axis.end - review.step:
        return f"from {moment(start, review)} to the end of the review"
    return f"from {moment(start, review)} on for {seconds(max(end - start, review.step))}"


def stretch(held: Bools, review: Review) -> tuple[float, float] | None:
    """The first and last moment at which something held; None where it never did."""
    places = np.flatnonzero(held)
    if not len(places):
        return None
    times = review.axis.times
    return float(times[places[0]]), float(times[places[-1]])


def highest(track: Floats | None) -> float | None:
    """The highest known value of a track; None where there is none."""
    if track is None or np.isnan(track).all():
        return None
    return float(np.nanmax(track))


def middle(track: Floats | None, held: Bools | None = None) -> float | None:
    """The median of the known values, where something holds; None where there is none."""
    if track is None:
        return None
    values = track if held is None else track[held]
    values = values[~np.isnan(values)]
    return float(np.median(values)) if len(values) else None


def bad_share(review: Review, held: Bools) -> float | None:
    """Bad ÷ valid events of all profiles where something holds; None without events."""
    bad = valid = 0.0
    for profile in review.acceptance.profiles:
        if profile.bad is not None and profile.good is not None:
            bad += float(np.nansum(profile.bad[held]))
            valid += float(np.nansum((profile.bad + profile.good)[held]))
    return bad / valid if valid else None
