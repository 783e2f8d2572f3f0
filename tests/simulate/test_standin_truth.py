"""Records, counters, gauges, log lines and the truth of the stand-in come from one simulated engine."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture(scope="module")
def run(virtual):
    """Forty seconds of two ranks."""
    return virtual("dp2").until(40)


def summed(records, key):
    """The sum of a key over the records that have it."""
    return sum(record.get(key, 0) for record in records)


def test_the_truth_is_the_sum_over_the_records(run):
    """Counts, tokens, verify steps, accepted and proposed drafts and the histogram agree to the last one."""
    records, total = run.records, run.truth.total
    assert total.records == len(records) > 500
    assert total.verify_steps == summed(records, "spec_verify_ct")
    assert total.accepted_drafts == summed(records, "spec_num_correct_drafts")
    assert total.proposed_drafts == summed(records, "spec_num_proposed_drafts")
    assert total.prompt_tokens == summed(records, "prompt_tokens")
    ran = [record for record in records if "prompt_tokens" in record]
    assert total.completion_tokens == summed(ran, "completion_tokens")
    assert total.never_ran == len(records) - len(ran) > 0
    histogram = [0] * 9
    for record in records:
        for drafts, steps in enumerate(record.get("spec_correct_drafts_histogram", [])):
            histogram[drafts] += steps
    assert total.histogram == histogram
    assert total.aborted == sum(record["finish_reason"]["type"] == "abort" for record in records)


def test_ranks_and_profiles_partition_the_truth(run):
    """The parts by rank, by profile and by both each sum to the whole."""
    truth = run.truth
    both = [totals for profiles in truth.by_rank_and_profile.values() for totals in profiles.values()]
    for parts in (truth.by_rank.values(), truth.by_profile.values(), both):
        for name in ("records", "verify_steps", "accepted_drafts", "completion_tokens"):
            assert sum(getattr(part, name) for part in parts) == getattr(truth.total, name)
    for rank, totals in truth.by_rank.items():
        own = [record for record in run.records if record.get("dp_rank") == int(rank)]
        assert totals.verify_steps == summed(own, "spec_verify_ct")


def test_request_counters_are_the_sum_over_the_records(run, shapes):
    """The tokenizer's counters equal what the records say."""
    ours = shapes(run.exposition)
    ran = [record for record in run.records if "prompt_tokens" in record]
    wanted = {
        "num_requests_total": len(ran),
        "prompt_tokens_total": summed(ran, "prompt_tokens"),
        "generation_tokens_total": summed(ran, "completion_tokens"),
        "spec_verify_calls_total": summed(ran, "spec_verify_ct"),
        "cached_tokens_total": summed(ran, "cached_tokens"),
    }
    for name, value in wanted.items():
        assert sum(ours[f"sglang:{name}"].samples.values()) == value
    streamed = sum(json.loads(record["request_parameters"])["stream"] for record in ran)
    samples = ours["sglang:num_requests_total"].samples
    assert sum(value for sample, value in samples.items() if 'is_streaming="true"' in sample) == streamed


def test_decode_counters_hold_every_verify_step(run):
    """Tokens counted step by step are those of ended and of running requests, before any trimming."""
    for scheduler in run.process.schedulers:
        requests = [request for request in run.ended if request.rank == scheduler.rank] + scheduler.running
        steps = sum(request.verify_steps for request in requests)
        accepted = sum(request.accepted for request in requests)
        assert scheduler.stats.decode_tokens == steps + accepted


def test_batch_lines_report_every_closed_interval(run):
    """Weighted with their rows, the accept lengths of a rank's decode lines give its lifetime length."""
    for rank, scheduler in enumerate(run.process.schedulers):
        lines = [text for _, prefix, text in run.lines if text.startswith("Decode") and prefix.startswith(f" DP{rank}")]
        assert len(lines) == scheduler.stats.decode_passes // 40 > 20
        for line in lines:
            length = float(re.search(r"accept len: ([\d.]+)", line)[1])
            rate = float(re.search(r"accept rate: ([\d.]+)", line)[1])
            assert abs(1 + 8 * rate - length) < 0.05
        lifetime = scheduler.stats.lifetime
        assert 0 <= scheduler.stats.decode_tokens - (lifetime.rows + lifetime.accepted) < 40 * 48 * 9


def test_the_gauge_is_the_last_batch_line(virtual, shapes):
    """Gauge and log line of one report agree to the line's two decimals."""
    run = virtual("steady")
    for second in range(8, 30):
        ours = shapes(run.until(second).exposition)
        gauge = next(iter(ours["sglang:spec_accept_length"].samples.values()))
        line = run.texts("Decode batch")[-1]
        assert re.search(r"accept len: ([\d.]+)", line)[1] == f"{gauge:.2f}"


def test_the_same_seed_gives_the_same_run_however_time_is_cut(virtual):
    """Requests, draws, moments and batch lines do not depend on how often somebody looks."""
    fine, coarse = virtual("steady", seed=7).until(15, cut=0.03), virtual("steady", seed=7).until(15, cut=1.7)
    story = [(request.rid, request.finished, request.histogram) for request in fine.ended]
    assert story == [(request.rid, request.finished, request.histogram) for request in coarse.ended]
    assert fine.texts("Decode batch") == coarse.texts("Decode batch")
    other = virtual("steady", seed=8).until(15)
    assert story[0][0] != other.ended[0].rid


def test_steady_traffic_is_healthy(virtual):
    """At least 20 requests a second of 128 tokens or more, and nearly all far above the target."""
    run = virtual("steady").until(64)
    window = [request for request in run.ended if run.process.ready_at < request.finished <= run.process.ready_at + 60]
    assert sum(request.completion_tokens >= 128 for request in window) >= 20 * 60
    valid = [request for request in window if request.completion_tokens >= 84]
    lengths = sorted(1 + request.accepted / request.verify_steps for request in valid)
    assert lengths[len(lengths) // 50] > 2.6 / 0.9
    assert abs(run.truth.total.accepted_drafts / run.truth.total.verify_steps + 1 - 4.6) < 0.15
