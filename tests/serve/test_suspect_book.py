"""The evidence that finished requests leave, and the causes that it speaks for."""

from __future__ import annotations

import re

import numpy as np
import pytest

from specbudget.domain.requests import RequestBatch
from specbudget.domain.suspects import Evidence, Suspect
from specbudget.serve.suspect_book import SuspectBook

NOW = 1_800_000_000.0
KNOWN = Evidence(target_length=2.6, window=8)


def count(
    book: SuspectBook, length: float, *, requests: int = 60, profile: int = 0, cached: int = 0, prompt: int = 600,
    at: float = NOW,
) -> None:  # fmt: skip
    """Requests of 40 verify steps each at one acceptance length."""
    n = requests
    full = np.full(n, 40, dtype=np.int64)
    accepted = np.full(n, round(40 * (length - 1)), dtype=np.int64)
    batch = RequestBatch(
        finished_at=np.full(n, at),
        output_tokens=full + accepted,
        prompt_tokens=np.full(n, prompt, dtype=np.int64),
        cached_tokens=np.full(n, cached, dtype=np.int64),
        aborted=np.zeros(n, dtype=np.bool_),
        steps=full,
        accepted=accepted,
        proposed=full * 7,
        window=np.full(n, 8, dtype=np.int64),
        bound=np.full(n, 8, dtype=np.int64),
        rank=np.zeros(n, dtype=np.int64),
        profile=np.full(n, profile, dtype=np.int64),
        histogram=np.zeros((n, 0), dtype=np.int64),
    )
    book.count(batch, np.ones(n, dtype=np.bool_), at)


def test_a_healthy_engine_has_no_suspect() -> None:
    """Lengths above the target, the same as ever."""
    book = SuspectBook(("default",))
    book.begin_life()
    for minute in range(10):
        count(book, 4.5, at=NOW - 60 * minute)
    assert book.suspects(KNOWN, NOW) == {}


def test_low_from_the_first_request_on_is_from_boot() -> None:
    """Only where the start was seen: otherwise nobody knows what was before."""
    book = SuspectBook(("default",))
    count(book, 1.5)
    assert Suspect.FROM_BOOT not in book.suspects(KNOWN, NOW)
    book.begin_life()
    count(book, 1.5)
    assert Suspect.FROM_BOOT in book.suspects(KNOWN, NOW)


def test_moved_shares_of_unchanged_profiles_are_the_mix() -> None:
    """Nine to one in the first requests, one to nine now, each profile as long as before."""
    book = SuspectBook(("default", "hard"))
    early = NOW - 1800
    count(book, 5.0, requests=100, at=early)
    count(book, 2.0, requests=30, profile=1, at=early)
    count(book, 5.0, requests=170, at=early)
    count(book, 5.0, requests=30)
    count(book, 2.0, requests=270, profile=1)
    assert Suspect.MIX in book.suspects(KNOWN, NOW)
    expected = book.expected({}, NOW)
    assert expected is not None
    assert abs(expected - 2.3) < 1e-9


def test_expected_length_takes_the_lock_s_lengths_first() -> None:
    """What was measured at approval stands before what this process has seen."""
    book = SuspectBook(("default",))
    count(book, 4.0, requests=250)
    assert book.expected({"default": 4.6}, NOW) == 4.6


def test_cached_prefixes_and_long_prompts_are_compared_with_the_others() -> None:
    """A group of requests whose length is clearly lower than the other's."""
    book = SuspectBook(("default",))
    count(book, 4.5)
    count(book, 2.0, cached=400)
    assert Suspect.PREFIX_HITS in book.suspects(KNOWN, NOW)
    other = SuspectBook(("default",))
    count(other, 4.5)
    count(other, 2.0, prompt=100_000)
    assert Suspect.LONG_CONTEXT in other.suspects(KNOWN, NOW)


def test_a_new_life_forgets_the_old_baseline() -> None:
    """After a restart the engine is judged by what it does since."""
    book = SuspectBook(("default", "hard"))
    count(book, 5.0, requests=300, at=NOW - 1800)
    book.begin_life()
    assert book.expected({}, NOW) is None


LEAK = [3.4, 3.36, 3.25, 3.1, 2.9, 2.7, 2.45, 2.2, 1.9]
"""An acceptance length every quarter of an hour, falling although nothing fails."""


@pytest.mark.parametrize("by_request", [True, False], ids=["of requests", "of batch reports"])
@pytest.mark.parametrize("points", [5, 9], ids=["an hour, all above the target", "two hours"])
def test_a_length_that_falls_for_hours_is_decay(points: int, by_request: bool) -> None:
    """From 3.4 to 2.9 within an hour is told while the target of 2.5 is still met: -0.504, then -0.765 an hour."""
    book = SuspectBook(("default",))
    book.by_request = by_request
    at = NOW
    for quarter, length in enumerate(LEAK[:points]):
        at = NOW + 900 * quarter
        if by_request:
            count(book, length, at=at)
        else:
            book.count_report(length, 2400.0, at=at, now=at)
    found = book.suspects(Evidence(target_length=2.5, window=8), at)
    assert set(found) == {Suspect.DECAY}
    slope = re.search(r"(-\d\.\d+) an hour", found[Suspect.DECAY])
    assert slope is not None
    # requests accept whole drafts, so that their lengths are not quite those of the list
    assert float(slope[1]) == pytest.approx(-0.504 if points == 5 else -0.765, abs=0.005)


def test_batch_reports_are_no_evidence_beside_a_request_log() -> None:
    """The same steps would count twice; what a row of reports says of itself still counts."""
    book = SuspectBook(("default",))
    book.begin_life()
    for place in range(40):
        book.count_report(1.5, 800.0, at=NOW - place, now=NOW)
    assert set(book.suspects(KNOWN, NOW)) == {Suspect.SIMULATED}
    assert book.evidence(KNOWN, NOW).recent is not None
    assert book.evidence(KNOWN, NOW).recent.steps == 0
