"""The report as a file: whole without a network, safe with any words, small, and true to what was read."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.review.reviews import START, sample_review

from specbudget.catalog.sets import StageArtifact
from specbudget.domain.axis import Axis
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.model import (
    AcceptanceTrack,
    Cause,
    EngineStart,
    Finding,
    MemoryTrack,
    Place,
    PoolTrack,
    ProfileTrack,
    Review,
    ReviewSource,
    StartStage,
    TrafficTrack,
)
from specbudget.review.page.charts import Section, scale, sections
from specbudget.review.page.render import render
from specbudget.review.page.starts import timelines
from specbudget.review.page.thinned import MOST_POINTS, thinned

MOST_BYTES = 5_000_000
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \"&'\u2028"


def first_section(review: Review) -> Section:
    return sections(review, scale(review))[0]


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="review-data">(.*?)</script>', page, re.S)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_the_file_names_no_other_place() -> None:
    """No address is fetched: no link, no source, no import of another file."""
    page = render(sample_review())
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.S)
    assert not re.search(r'\b(?:src|href)="(?!#|data:)', markup)
    assert "@import" not in page
    assert not re.search(r"url\(\s*['\"]?(?!data:)", re.sub(r"<script.*?</script>", "", page, flags=re.S))


def test_only_our_own_scripts_may_run() -> None:
    """The policy names the digest of each script and style that the file holds, and nothing else."""
    page = render(sample_review())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    said = policy.group(1).replace("&#39;", "'")
    assert "unsafe" not in said
    assert said.startswith("default-src 'none'")
    for kind, directive in (("script", "script-src"), ("style", "style-src")):
        for text in re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.S):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in said.split(directive)[1].split(";")[0]


def test_words_of_an_engine_are_words() -> None:
    """What a service, a replica or a finding is called never becomes markup or script."""
    whole = sample_review()
    finding = replace(whole.findings[0], title=HOSTILE, evidence=(HOSTILE,), ruled_out=(HOSTILE,))
    track = replace(whole.memory[0], place=Place(replica=HOSTILE, rank=HOSTILE))
    source = ReviewSource(kind=HOSTILE, place=HOSTILE, told=HOSTILE)
    profiles = tuple(replace(whole.acceptance.profiles[0], name=HOSTILE + str(n)) for n in range(2))
    page = render(
        replace(
            whole,
            service=HOSTILE,
            findings=(finding,),
            memory=(track, track),
            sources=(source,),
            acceptance=replace(whole.acceptance, profiles=profiles),
            starts=(replace(whole.starts[0], replica=HOSTILE, mode=HOSTILE),),
            marks=tuple(replace(mark, text=HOSTILE, replica=HOSTILE) for mark in whole.marks),
            gaps=tuple(replace(gap, reason=HOSTILE) for gap in whole.gaps),
        )
    )
    assert "<img" not in page
    assert "alert(1)</script>" not in page
    assert page.count("<script") == page.count("</script>") == 3
    assert HOSTILE + "0" in json.dumps(data_of(page), ensure_ascii=False).replace('\\"', '"').replace(
        "\\u2028", "\u2028"
    )


def test_what_is_not_known_stays_empty() -> None:
    """A point of which nothing is known is null in a chart's data, and a track that is not known is no line."""
    whole = sample_review()
    data = data_of(render(replace(whole, acceptance=replace(whole.acceptance, break_even=None))))
    lines = {line["id"]: line for line in data["charts"]["acceptance"]["lines"]}  # type: ignore[index]
    assert "break_even" not in lines
    unknown = np.isnan(whole.acceptance.request_length)
    assert unknown.any()
    assert [value is None for value in lines["request"]["values"]] == unknown.tolist()


def test_a_review_of_nothing_says_so() -> None:
    """Without any track the report has no charts, and says what is missing: tracks, starts, alerts."""
    unknown = Finding(
        id="sidecar.unknown",
        line="sidecar",
        cause=Cause.UNKNOWN,
        title="Nothing is known of this stretch",
        evidence=(),
        ruled_out=(),
        start=START,
        end=START + 60,
    )
    axis = Axis(start=START, step=15.0, count=5)
    page = render(Review(service="s", start=START, end=START + 60, axis=axis, sources=(), findings=(unknown,)))
    for said in ("Nothing in this stretch can be drawn", "No start of an engine was seen", "keeps no alerts"):
        assert said in page
    assert data_of(page)["charts"] == {}


def long_review(points: int, ranks: int) -> Review:
    """Every track known at every point."""
    random = np.random.default_rng(0)

    def track(scale: float) -> np.ndarray:
        return random.uniform(0.5, 1.0, points) * scale

    def pool() -> PoolTrack:
        return PoolTrack(
            capacity_bytes=track(1e10), used_bytes=track(1e10), resident_bytes=track(1e10), capacity_tokens=track(1e6),
            used_tokens=track(1e6),
        )  # fmt: skip

    memory = tuple(
        MemoryTrack(
            place=Place(replica=f"replica-{rank}", rank=str(rank)),
            device={part: track(1e10) for part in MemoryPart},
            target=pool(),
            drafter=pool(),
            cost_tokens=track(1e6),
            high_water=track(0.9),
        )
        for rank in range(ranks)
    )
    profiles = tuple(
        ProfileTrack(name=f"p{n}", steps=track(1e3), accepted=track(3e3), length=track(4), target_length=track(2))
        for n in range(20)
    )
    return Review(
        service="long",
        start=START,
        end=START + 300.0 * points,
        axis=Axis(start=START, step=300.0, count=points),
        sources=(),
        memory=memory,
        acceptance=AcceptanceTrack(
            request_length=track(4), batch_length=track(4), steps=track(1e3), accepted=track(3e3),
            target_length=track(2), break_even=track(2), expected=track(4), window=track(8), profiles=profiles,
            bad_share=track(0.1), positions={place: track(1.0) for place in range(1, 17)}, objective=track(0.95),
            budget_spent=track(1.0),
        ),
        traffic=TrafficTrack(
            running=track(60), queued=track(9), tokens_per_second=track(1e4), retractions=track(3),
            requests={name: track(10) for name in ("good", "bad", "aborted", "invalid", "few_tokens")},
        ),
        starts=tuple(replace(sample_review().starts[0], started_at=START + n) for n in range(200)),
        alerts=(),
        findings=sample_review().findings,
    )  # fmt: skip


def test_a_month_of_a_fleet_is_a_small_file() -> None:
    """Thirty days at five minutes with sixteen ranks and twenty profiles stay under five megabytes."""
    assert len(render(long_review(8640, 16)).encode()) < MOST_BYTES


@pytest.mark.parametrize("count", [1, 7, MOST_POINTS, MOST_POINTS + 1, 8640])
def test_thinned_tracks_tell_the_truth(count: int) -> None:
    """Peaks are kept, sums are kept, and a length is the ratio of sums of its stretch, whatever its size."""
    random = np.random.default_rng(count)
    thin = thinned(Axis(start=0.0, step=15.0, count=count))
    assert len(thin.times) <= MOST_POINTS
    values, steps = random.uniform(0, 9, count), random.integers(0, 50, count).astype(float)
    peak, total = thin.peak(values), thin.total(steps)
    assert peak is not None
    assert total is not None
    assert len(peak) == len(total) == len(thin.times)
    assert peak.max() == values.max()
    assert total.sum() == pytest.approx(steps.sum())
    length = thin.length(steps * 3, steps, None)
    assert length is not None
    assert np.allclose(length[np.isfinite(length)], 4.0)
    assert (np.isnan(length) == (total == 0)).all()


def test_a_stretch_of_unknown_points_stays_unknown() -> None:
    """Sums, peaks and means of points of which none is known are not known; one known point is enough."""
    thin = thinned(Axis(start=0.0, step=1.0, count=6), most=3)
    values = np.array([np.nan, np.nan, 2.0, np.nan, 1.0, 3.0])
    for found, wanted in ((thin.peak(values), 3.0), (thin.total(values), 4.0), (thin.mean(values), 2.0)):
        assert found is not None
        assert np.isnan(found[0])
        assert found[1] == 2.0
        assert found[2] == wanted


def test_memory_stands_first_with_acceptance_beside_it() -> None:
    """The first section pairs the fullest rank's device with the acceptance length."""
    whole = sample_review()
    empty = replace(whole.memory[0], place=Place(replica="a", rank="0"))
    used = whole.memory[0].target.capacity_tokens
    full = replace(empty, place=Place(replica="b", rank="1"), target=replace(empty.target, used_tokens=used))
    first = first_section(replace(whole, memory=(empty, full)))
    assert [chart.id for chart in first.charts] == ["device-1", "acceptance"]
    assert "rank 1 of b" in first.charts[0].title


def test_the_section_of_the_finding_comes_next() -> None:
    """What is asked next follows the first pair: pools after a finding on KV, lengths after one on acceptance."""
    whole = sample_review()
    for line, wanted in (("kv", "memory"), ("acceptance", "acceptance")):
        found = replace(whole, findings=(replace(whole.findings[0], line=line),))
        assert [section.id for section in sections(found, scale(found))][:2] == ["first", wanted]


def test_the_areas_of_a_device_are_its_bytes() -> None:
    """Stacked, held and empty of both pools, and the weights, make up what the parts say without the free."""
    whole = sample_review()
    chart = first_section(whole).charts[0]
    stacked = sum(np.nan_to_num(line.values) for line in chart.lines)  # type: ignore[misc]
    parts = sum(np.nan_to_num(v) for part, v in whole.memory[0].device.items() if part is not MemoryPart.FREE)
    assert np.allclose(stacked, parts)


def test_a_total_is_drawn_only_where_all_parts_are_known() -> None:
    """Without the remainder the device's total is not known: no line, and the note says so."""
    whole = sample_review()
    chart = first_section(whole).charts[0]
    assert chart.rules == ()
    assert "total is not known" in chart.note
    other = {**whole.memory[0].device, MemoryPart.OTHER: np.full(whole.axis.count, 1e9)}
    complete = first_section(replace(whole, memory=(replace(whole.memory[0], device=other),))).charts[0]
    assert complete.rules[0][1] == pytest.approx(sum(values[0] for values in other.values()))


def test_starts_share_one_scale() -> None:
    """A start that took twice as long is drawn twice as wide, and the budget's end stands at the same place in both."""
    stage = StartStage(artifact=StageArtifact.DRAFTER, stage="load", offset=0.0, seconds=10.0)
    slow = replace(stage, seconds=20.0)
    starts = [
        EngineStart(replica="r", started_at=at, basis=None, stages=(one,), seconds=one.seconds, budget_seconds=15.0)
        for at, one in ((1.0, stage), (2.0, slow))
    ]
    quick, long = timelines(tuple(starts))
    assert long.lanes[0].blocks[0].width == pytest.approx(2 * quick.lanes[0].blocks[0].width)
    assert quick.limit == long.limit == 75.0
    assert "over budget" in long.head
    assert "over budget" not in quick.head
