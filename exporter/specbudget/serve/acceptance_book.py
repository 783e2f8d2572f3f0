"""Counts finished requests and batch reports into the ledger and the rolling windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from specbudget.budget.slo_policy import SloPolicy
from specbudget.catalog import series
from specbudget.catalog.sets import EventVerdict, Scope, SliForm
from specbudget.domain.acceptance import Bools, Floats, Ints, acceptance_length, is_possible, steps_reaching
from specbudget.domain.observation import MAX_RANKS
from specbudget.domain.requests import EXCLUSIONS, RequestBatch, Verdict, judge
from specbudget.domain.rolling import LengthRing, SlotRing
from specbudget.serve.ledger import Ledger
from specbudget.serve.suspect_book import SuspectBook

RECENT_SECONDS = 3600.0
"""Older records enter the counters but no rolling window: they tell nothing of now."""

MAX_POSITIONS = 31
"""Draft positions that are kept apart; further ones would cost series and tell nothing."""

MAX_PAIRS = 36
"""Pairs of rank and profile that steps and tokens are kept apart by; profiles beyond count as `other` there."""

OTHER = "other"


class AcceptanceBook:
    """The acceptance line's counters and windows. One source counts requests, one counts batches."""

    def __init__(self, ledger: Ledger, policy: SloPolicy) -> None:
        self._ledger = ledger
        self._requests = SlotRing(5.0, 721, 2)
        self._batches = SlotRing(5.0, 721, 2)
        self._events = SlotRing(60.0, 6 * 60 + 1, 3)
        self._lengths: dict[str, LengthRing] = {}
        self.policy = policy
        self._ranks: set[str] = {"0"}
        self.suspects = SuspectBook(policy.profiles)
        self.use(policy)

    def use(self, policy: SloPolicy) -> None:
        """Takes a policy into force and begins its children at 0."""
        if policy.profiles != self.policy.profiles:
            self.suspects = SuspectBook(policy.profiles)
        self.policy = policy
        profiles, begin = policy.profiles, self._ledger.begin
        begin(series.SLO_EXCLUDED, [v.name.lower() for v in EXCLUSIONS], profiles)
        if policy.has_target:
            begin(series.SLO_EVENTS, [policy.sli], list(EventVerdict), profiles)
        begin(series.REQUEST_ACCEPTANCE_LENGTH, profiles)

    def know_ranks(self, ranks: Iterable[str], *, counts_drafts: bool) -> None:
        """Begins the children of data-parallel ranks at 0.

        `counts_drafts` False: the source tells steps and tokens but no drafts, so that those stay absent.
        """
        ranks = list(ranks)
        self._ranks.update(ranks)
        counters = [series.VERIFY_STEPS, series.GENERATED_TOKENS]
        if counts_drafts:
            counters += [series.PROPOSED_DRAFTS, series.ACCEPTED_DRAFTS]
        shown = dict.fromkeys(self._shown_profile(index) for index in range(len(self.policy.profiles)))
        for counter in counters:
            self._ledger.begin(counter, ranks, shown)
        self._ledger.begin(series.BATCH_ACCEPTANCE_LENGTH, ranks)

    def _shown_profile(self, index: int) -> str:
        """The profile's name beside a rank; with many ranks only the first profiles are kept apart there."""
        return self.policy.profiles[index] if index < max(1, MAX_PAIRS // len(self._ranks)) else OTHER

    def know_window(self, window: int) -> None:
        """Begins the draft positions of a verify window at 0."""
        positions = [str(i) for i in range(1, min(window - 1, MAX_POSITIONS) + 1)]
        self._ledger.begin(series.DRAFT_POSITION_ACCEPTED, positions)

    def count_requests(self, batch: RequestBatch, now: float) -> None:
        """Counts finished requests: tokens and steps of all of them, a verdict on each."""
        if not len(batch):
            return
        self._count_tokens(batch)
        inconsistent, lengths = batch.inconsistent(), batch.lengths()
        verdicts = judge(batch, self.policy.request, inconsistent)
        possible = np.isfinite(lengths) & ~inconsistent
        recent = batch.finished_at > now - RECENT_SECONDS
        for index, name in enumerate(self.policy.profiles):
            of_profile = batch.profile == index
            self._ledger.observe(series.REQUEST_ACCEPTANCE_LENGTH, (name,), lengths[of_profile & possible])
            counts = np.bincount(verdicts[of_profile], minlength=len(Verdict))
            for verdict in EXCLUSIONS:
                self._ledger.add(series.SLO_EXCLUDED, (verdict.name.lower(), name), int(counts[verdict]))
        for position, steps in enumerate(_reaching(batch.histogram)):
            if 1 <= position <= MAX_POSITIONS:
                self._ledger.add(series.DRAFT_POSITION_ACCEPTED, (str(position),), steps)
        rolling = possible & recent
        self.suspects.count(batch, rolling, now)
        told = rolling & (batch.accepted >= 0)
        sums = np.stack([batch.steps, batch.accepted], axis=1).astype(np.float64)
        self._requests.add(batch.finished_at[told], sums[told], now)
        if self.policy.has_target:
            match self.policy.sli:
                case SliForm.REQUEST:
                    self._request_events(batch, verdicts, lengths, recent, now)
                case SliForm.STEP:
                    self._step_events(batch, possible, recent, now)

    def _count_tokens(self, batch: RequestBatch) -> None:
        keys = batch.rank * len(self.policy.profiles) + batch.profile
        # steps of which no one says what they accepted would read as steps that accepted nothing
        steps = np.where(batch.accepted >= 0, batch.steps, 0)
        for key in np.unique(keys).tolist():
            rank, profile = divmod(key, len(self.policy.profiles))
            rows, labels = keys == key, (rank_label(rank), self._shown_profile(profile))
            for counter, column in (
                (series.VERIFY_STEPS, steps),
                (series.PROPOSED_DRAFTS, batch.proposed),
                (series.ACCEPTED_DRAFTS, batch.accepted),
                (series.GENERATED_TOKENS, batch.output_tokens),
            ):
                self._ledger.add(counter, labels, int(np.maximum(column[rows], 0).sum()))

    def _request_events(self, batch: RequestBatch, verdicts: Ints, lengths: Floats, recent: Bools, now: float) -> None:
        good, bad = verdicts == Verdict.GOOD, verdicts == Verdict.BAD
        for index, name in enumerate(self.policy.profiles):
            of_profile = batch.profile == index
            self._add_events(name, int((good & of_profile).sum()), int((bad & of_profile).sum()))
            valid = (good | bad) & of_profile & recent
            if valid.any():
                self._lengths.setdefault(name, LengthRing()).add(batch.finished_at[valid], lengths[valid], now)
        rows = (good | bad) & recent
        sums = np.stack([good, bad, np.maximum(batch.steps, 0)], axis=1).astype(np.float64)
        self._events.add(batch.finished_at[rows], sums[rows], now)

    def _step_events(self, batch: RequestBatch, possible: Bools, recent: Bools, now: float) -> None:
        """One event per verify step, good from ⌈target⌉ − 1 accepted drafts on."""
        needed = np.ceil(np.array(self.policy.targets)[batch.profile]) - 1
        accepted = np.arange(batch.histogram.shape[1])
        good = np.where(accepted >= needed[:, None], batch.histogram, 0).sum(axis=1) * possible
        bad = batch.histogram.sum(axis=1) * possible - good
        for index, name in enumerate(self.policy.profiles):
            of_profile = batch.profile == index
            self._add_events(name, int(good[of_profile].sum()), int(bad[of_profile].sum()))
        sums = np.stack([good, bad, good + bad], axis=1).astype(np.float64)
        self._events.add(batch.finished_at[recent], sums[recent], now)

    def count_batch(self, rank: str, length: float, steps: float, *, window: int | None, at: float, now: float) -> None:
        """Counts one batch report of `steps` verify steps that emitted `length` tokens each.

        Under a verify window below the target no batch can be good: such a report is no event.
        """
        self._ledger.observe(series.BATCH_ACCEPTANCE_LENGTH, (rank,), np.array([length]))
        if at <= now - RECENT_SECONDS:
            recent = False
        else:
            recent = True
            self.suspects.count_report(length, steps, at=at, now=now)
            self._batches.add(np.array([at]), np.array([[steps, steps * (length - 1.0)]]), now)
        reachable = window is None or window >= self.policy.targets[0]
        if self.policy.has_target and self.policy.sli == SliForm.BATCH and reachable:
            good = length >= self.policy.targets[0]
            self._add_events(self.policy.profiles[0], int(good), int(not good))
            if recent:
                self._events.add(np.array([at]), np.array([[float(good), float(not good), steps]]), now)
                self._lengths.setdefault(self.policy.profiles[0], LengthRing()).add(
                    np.array([at]), np.array([length]), now
                )

    def _add_events(self, profile: str, good: int, bad: int) -> None:
        self._ledger.add(series.SLO_EVENTS, (self.policy.sli, EventVerdict.GOOD, profile), good)
        self._ledger.add(series.SLO_EVENTS, (self.policy.sli, EventVerdict.BAD, profile), bad)

    def rolling_length(self, scope: Scope, seconds: float, now: float) -> float | None:
        """Acceptance length over the last `seconds`, a ratio of sums; None without a step."""
        ring = self._requests if scope is Scope.REQUEST else self._batches
        steps, accepted = ring.total(seconds, now)
        length = acceptance_length(float(accepted), float(steps))
        return length if length is not None and is_possible(length, None) else None

    def length_trace(self, scope: Scope, seconds: float, now: float) -> Floats:
        """The rolling length over `seconds` as it was at the end of each slot of the last hour, oldest first.

        The last value is of the present slot; NaN where no step was.
        """
        steps, accepted = (self._requests if scope is Scope.REQUEST else self._batches).trace(seconds, now).T
        lengths: Floats = 1.0 + np.divide(accepted, steps, out=np.full_like(steps, np.nan), where=steps > 0)
        return np.where(lengths >= 1.0, lengths, np.nan)

    def events(self, seconds: float, now: float) -> tuple[float, float, float]:
        """Good events, bad events and verify steps of the last `seconds`."""
        good, bad, steps = self._events.total(max(seconds, 60.0), now).tolist()
        return good, bad, steps

    def length_reached(self, now: float) -> tuple[float, float] | None:
        """(length that `objective` of the last hour's events reach, target) of the profile that is worst off."""
        worst: tuple[float, float] | None = None
        for name, target in zip(self.policy.profiles, self.policy.targets, strict=True):
            ring = self._lengths.get(name)
            reached = None if ring is None or math.isnan(target) else ring.reached_by(self.policy.objective, now)
            if reached is not None and (worst is None or target / reached > worst[1] / worst[0]):
                worst = (reached, target)
        return worst

    def dump(self) -> dict[str, Any]:
        """The windows, for keeping beside the ledger."""
        return {
            "requests": self._requests.dump(),
            "batches": self._batches.dump(),
            "events": self._events.dump(),
            "lengths": {name: ring.dump() for name, ring in self._lengths.items()},
        }

    def load(self, kept: dict[str, Any]) -> None:
        """Takes up what `dump` gave."""
        self._requests.load(*kept["requests"])
        self._batches.load(*kept["batches"])
        self._events.load(*kept["events"])
        for name, slots in kept["lengths"].items():
            if name in self.policy.profiles:
                self._lengths.setdefault(name, LengthRing()).load(slots)


def rank_label(rank: int) -> str:
    """The label of a data-parallel rank; one that no deployment has counts as `other`."""
    return str(rank) if rank < MAX_RANKS else OTHER


def _reaching(histogram: Ints) -> list[int]:
    """Steps by least accepted drafts; a negative count is no step."""
    reaching: list[int] = steps_reaching(np.maximum(histogram, 0)).tolist() if histogram.size else []
    return reaching
