"""Incidents as they were reported of real engines: the right cause is named and the wrong ones are ruled out."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.review.made import START, made

from specbudget.catalog.sets import Artifact, StartBasis
from specbudget.domain.break_even import from_step_times
from specbudget.review.findings import findings
from specbudget.review.findings.break_even import measured_by_batch
from specbudget.review.findings.reuse import recompute_factor, reuse
from specbudget.review.model import Cause, EngineStart, Finding
from specbudget.review.request_evidence import ServedRequest, evidence_of
from specbudget.sources.exposition import read_samples
from specbudget.sources.sglang.start_phases import read_phases

CASES = Path(__file__).parents[1] / "fixtures" / "review_cases"
PAIR = {Artifact.TARGET: ["aaaa1111"] * 20, Artifact.DRAFTER: ["dddd2222"] * 20}


def records(case: str) -> list[dict[str, float]]:
    text = (CASES / case / "requests.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def ruled_out(finding: Finding, name: str) -> str:
    return next(told for told in finding.ruled_out if told.startswith(name))


def test_a_moved_mix_is_no_regression() -> None:
    """2.85 → 2.10, all of it from the mix: no language became worse."""
    rows = list(csv.DictReader((CASES / "mix" / "mix.csv").read_text().splitlines()))
    days = {day: {r["segment"]: r for r in rows if r["day"] == day} for day in ("A", "B")}
    lengths = {s: [float(days[d][s]["accept_length"]) for d in "A" * 10 + "B" * 10] for s in ("en", "zh")}
    steps = {s: [float(days[d][s]["verify_steps"]) / 10 for d in "A" * 10 + "B" * 10] for s in ("en", "zh")}
    (found,) = findings(made(lengths=lengths, steps=steps, fingerprints=PAIR))
    assert found.cause is Cause.MIX
    assert "2.85 to 2.10" in found.title
    assert "-0.75 of -0.75 comes from moved shares and +0.00" in found.evidence[0]
    assert "en 3.00 → 3.00 (90% → 40% of steps)" in found.evidence[0]
    assert "dddd2222 before and after" in ruled_out(found, "another drafter")


def test_prefix_hits_are_named_and_not_the_drafter() -> None:
    """Requests with a cached prefix 1.467, without 3.10: 0.47 of it, and the checkpoint is ruled out."""
    told = evidence_of(
        [
            ServedRequest(
                prompt_tokens=record["prompt_tokens"],
                cached_tokens=record["cached_tokens"],
                length=record["spec_accept_length"],
            )
            for record in records("prefix_hits")
        ]
    )
    assert told.uncached.length == pytest.approx(3.10)
    assert told.cached.length == pytest.approx(1.467, abs=0.0005)
    seen = made(lengths={"default": [2.28] * 20}, steps={"default": [1000.0] * 20}, fingerprints=PAIR)
    (found,) = findings(replace(seen, requests=told))
    assert found.cause is Cause.PREFIX_HITS
    assert "1.47 (n=3), without 3.10 (n=3), 0.47 of it" in found.evidence[0]
    assert "dddd2222 before and after" in ruled_out(found, "another drafter")


def test_a_reloaded_target_is_named_and_its_reload_is_no_cold_start() -> None:
    """Target changed, drafter the same, 3.0 → 2.3 (−23.3 %); 41.5 s are a hot reload."""
    before, after = (json.loads((CASES / "target_changed" / f"{n}.json").read_text()) for n in ("before", "after"))
    phases = read_phases((CASES / "target_changed" / "reload.prom").read_bytes())
    assert phases is not None
    lengths = [before["accept_length"]] * 10 + [after["accept_length"]] * 10
    held = {
        Artifact.TARGET: [before["target_sha"]] * 10 + [after["target_sha"]] * 10,
        Artifact.DRAFTER: [before["draft_sha"]] * 10 + [after["draft_sha"]] * 10,
    }
    seen = made(lengths={"default": lengths}, steps={"default": [1000.0] * 20}, fingerprints=held)
    begun = EngineStart(replica="", started_at=START - 9000, basis=StartBasis.LAUNCH, stages=(), seconds=60.0)
    review = replace(seen.review, starts=(begun,))
    (found,) = findings(replace(seen, review=review, reload_seconds=phases.hot_reload))
    assert found.cause is Cause.TARGET_CHANGED
    told = "\n".join(found.evidence)
    assert "aaaa1111 became bbbb3333" in told
    assert "-23.3%" in told
    assert "a hot reload of 41.5 s, no cold start" in told
    assert "dddd2222 before and after" in ruled_out(found, "another drafter")


def test_a_good_length_can_be_a_loss_at_a_large_batch() -> None:
    """2.8 is 1.87x at one request and 0.82x at 64, where break-even is 3.40: the batch, not the length."""
    rows = list(csv.DictReader((CASES / "by_batch" / "points.csv").read_text().splitlines()))
    points = {
        int(r["batch"]): (float(r["accept_length"]), float(r["spec_step_ms"]), float(r["plain_step_ms"])) for r in rows
    }
    gains = {
        batch: measured_by_batch(batch=batch, length=length, spec_step_ms=spec, plain_step_ms=plain)[0]
        for batch, (length, spec, plain) in points.items()
    }
    assert gains[1] == pytest.approx(1.87, abs=0.005)
    assert gains[64] == pytest.approx(0.82, abs=0.005)
    needed = {
        batch: from_step_times(plain_ms=plain, draft_ms=0, verify_ms=spec, overhead_ms=0).at(batch)
        for batch, (_, spec, plain) in points.items()
    }
    (found,) = findings(
        made(
            lengths={"default": [points[1][0]] * 10 + [points[64][0]] * 10},
            steps={"default": [1000.0] * 20},
            break_even=[needed[1]] * 10 + [needed[64]] * 10,
            running=[1.0] * 10 + [64.0] * 10,
            target=2.6,
        )
    )
    assert found.cause is Cause.BREAK_EVEN
    assert "0.82x at 64 running requests" in found.title
    told = "\n".join(found.evidence)
    assert "break-even 3.40" in told
    assert "At 1 running requests: 2.80 against break-even 1.50, 1.87x." in told
    assert found.ruled_out[0].startswith(
        "a lower acceptance length: 2.80, otherwise 2.80; break-even rose with the batch"
    )


def test_prefix_reuse_that_fell_with_speculation_is_a_finding_though_acceptance_is_green() -> None:
    """Hit rate 0.97 → 0.45, −0.52: 18.3 times the prefill tokens at a length of 3.1."""
    before, after = (
        {sample.name: sample.value for sample in read_samples((CASES / "prefix_reuse" / f"{name}.prom").read_bytes())}
        for name in ("before", "after")
    )
    found = reuse(
        before=before["sglang:cache_hit_rate"],
        after=after["sglang:cache_hit_rate"],
        length=after["sglang:spec_accept_length"],
        target=2.6,
        start=START,
        end=START + 60,
    )
    assert found is not None
    assert "Prefix reuse fell with speculation" in found.title
    assert "(-0.52)" in found.evidence[0]
    assert "18.3x" in found.evidence[1]
    assert "3.10 is as it should be" in found.ruled_out[0]


@pytest.mark.parametrize(("before", "after", "factor"), [(0.97, 0.45, 18.333), (0.5, 0.0, 2.0), (1.0, 0.5, None)])
def test_recompute_factor(before: float, after: float, factor: float | None) -> None:
    """(1 − after) ÷ (1 − before); nothing to divide by at a perfect hit rate."""
    assert recompute_factor(before, after) == (None if factor is None else pytest.approx(factor, abs=0.001))


def test_a_hit_rate_that_stayed_is_no_finding() -> None:
    """Nor one that is not known on one side: unknown is no fall."""
    assert reuse(before=0.5, after=0.45, length=3.0, target=2.0, start=0, end=1) is None
    assert reuse(before=None, after=0.1, length=3.0, target=2.0, start=0, end=1) is None


def test_lengths_are_taken_from_rounds_and_not_from_emitted_tokens() -> None:
    """r1 has one round and is left out; r2 emitted 4.00 a round where the drafter counts 4.60."""
    requests = {
        record["rid"]: ServedRequest(
            output_tokens=record["completion_tokens"],
            steps=record["draft_rounds"],
            accepted=record["draft_n_accepted"],
        )
        for record in records("overshoot")
    }
    assert requests["r1"].emitted_per_round is None
    assert requests["r2"].emitted_per_round == pytest.approx(4.00)
    assert requests["r2"].drafter_length == pytest.approx(4.60)
    told = evidence_of(list(requests.values()))
    assert told.left_out == 1
    seen = made(lengths={"default": [4.6] * 20}, steps={"default": [1000.0] * 20})
    (found,) = findings(replace(seen, requests=told))
    assert found.cause is Cause.NOTHING
    sentence = next(told for told in found.evidence if "per verify step" in told)
    assert "4.00 tokens" in sentence
    assert "counts 4.60" in sentence
    assert "left out are 1 of fewer than 2 steps" in sentence


def test_profiles_that_fell_alike_are_no_mix() -> None:
    """The shares stayed: the mix is ruled out with both parts of the change, and what is left is the drafter."""
    lengths = {"en": [3.0] * 10 + [2.0] * 10, "zh": [2.4] * 10 + [1.6] * 10}
    steps = {"en": [900.0] * 20, "zh": [300.0] * 20}
    (found,) = findings(made(lengths=lengths, steps=steps, fingerprints=PAIR))
    assert found.cause is Cause.ACCEPTANCE_DROP
    assert "+0.00 of -0.95 comes from moved shares" in ruled_out(found, "traffic mix")
