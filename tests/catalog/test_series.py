"""The catalog against the published contract of /metrics: the same names, types and labels, nothing besides."""

from __future__ import annotations

import re

import pytest

from specbudget.catalog.lines import LINES
from specbudget.catalog.series import LABELS, LENGTH_BUCKETS, PREFIX, SERIES, SETS_OF_SERIES, Kind, SeriesDef
from specbudget.catalog.sets import REASONS_BY_SOURCE, ROLLING_WINDOWS, ErrorReason, Source

CONTRACT: dict[str, tuple[str, ...]] = {
    "line_state": ("line", "state"),
    "budget_used_ratio": ("line", "budget"),
    "budget_limit_bytes": ("line", "budget"),
    "budget_spent_bytes": ("line", "budget"),
    "budget_limit_seconds": ("line", "budget"),
    "budget_spent_seconds": ("line", "budget"),
    "budget_limit_tokens": ("line", "budget"),
    "budget_spent_tokens": ("line", "budget"),
    "budget_limit_ratio": ("line", "budget"),
    "budget_spent_ratio": ("line", "budget"),
    "artifact_bytes": ("artifact",),
    "artifact_parameters": ("artifact",),
    "artifact_info": ("artifact", "architecture", "dtype", "fingerprint"),
    "weight_memory_bytes": ("artifact", "rank"),
    "kv_bytes_per_token": ("artifact",),
    "kv_pool_capacity_bytes": ("artifact", "rank"),
    "kv_pool_used_bytes": ("artifact", "rank"),
    "kv_pool_resident_bytes": ("artifact", "rank"),
    "kv_pool_capacity_tokens": ("artifact", "rank"),
    "kv_pool_used_tokens": ("artifact", "rank"),
    "kv_need_bytes": ("artifact", "basis"),
    "kv_cost_tokens": ("rank",),
    "device_memory_bytes": ("rank", "use"),
    "kv_retractions_total": ("rank",),
    "request_acceptance_length": ("profile",),
    "batch_acceptance_length": ("rank",),
    "rolling_acceptance_length": ("scope", "window"),
    "verify_steps_total": ("rank", "profile"),
    "proposed_draft_tokens_total": ("rank", "profile"),
    "accepted_draft_tokens_total": ("rank", "profile"),
    "generated_tokens_total": ("rank", "profile"),
    "draft_position_accepted_total": ("position",),
    "slo_events_total": ("sli", "verdict", "profile"),
    "slo_excluded_requests_total": ("reason", "profile"),
    "slo_objective_ratio": ("profile",),
    "acceptance_target_length": ("profile",),
    "break_even_acceptance_length": (),
    "acceptance_window_length": ("rank",),
    "acceptance_expected_length": (),
    "acceptance_suspect": ("cause",),
    "speculation_state": ("rank", "state"),
    "engine_info": ("engine", "version", "algorithm", "role", "moe_backend"),
    "engine_start_time_seconds": ("basis",),
    "engine_running_requests": ("rank",),
    "engine_queued_requests": ("rank",),
    "startup_stage_offset_seconds": ("artifact", "stage"),
    "startup_stage_duration_seconds": ("artifact", "stage"),
    "cold_start_seconds": ("kind",),
    "startups_total": ("outcome",),
    "staging_info": ("mode", "order", "warmup"),
    "staging_overlap_ratio": (),
    "codesign_checks": ("result",),
    "codesign_check": ("check", "result"),
    "recheck_due": ("plan",),
    "source_up": ("source",),
    "source_last_success_timestamp_seconds": ("source",),
    "source_poll_duration_seconds": ("source",),
    "source_errors_total": ("source", "reason"),
    "source_lag_seconds": ("source",),
    "source_backlog_bytes": ("source",),
    "acceptance_source_info": ("source",),
    "records_total": ("source", "outcome"),
    "config_last_reload_successful": (),
    "config_last_reload_success_timestamp_seconds": (),
    "build_info": ("version", "pythonversion"),
}
"""Every name that /metrics is promised to have, with its labels beside the service."""

BESIDES = {"state_saved": ()}
"""Declared and not promised: whether the sidecar's own state could be written."""

FREE = {
    "architecture",
    "dtype",
    "fingerprint",
    "engine",
    "version",
    "algorithm",
    "moe_backend",
    "pythonversion",
    "mode",
    "order",
    "warmup",
}
"""Labels that take one value at a time."""

CLOSED_SETS = {
    ("line_state", "line"): "artifacts kv acceptance staging codesign",
    ("line_state", "state"): "ok at_risk breach unknown",
    ("speculation_state", "state"): "no_data invalid frozen off capped idle active",
    ("artifact_bytes", "artifact"): "target drafter",
    ("startup_stage_offset_seconds", "artifact"): "target drafter both",
    ("kv_need_bytes", "basis"): "block_floor planned live_upper",
    ("device_memory_bytes", "use"): (
        "target_weights drafter_weights target_kv drafter_kv target_state verify_state target_graphs drafter_graphs "
        "free other"
    ),
    ("rolling_acceptance_length", "scope"): "request batch",
    ("rolling_acceptance_length", "window"): "1m 5m 30m 1h",
    ("slo_events_total", "sli"): "request batch step",
    ("slo_events_total", "verdict"): "good bad",
    (
        "slo_excluded_requests_total",
        "reason",
    ): "aborted invalid no_speculation few_tokens window_below_target",
    ("acceptance_suspect", "cause"): (
        "from_boot drafter_changed target_changed capped mix prefix_hits long_context kv_pressure decay repetition "
        "simulated"
    ),
    ("engine_info", "role"): "unified prefill decode",
    ("engine_start_time_seconds", "basis"): "pid_namespace launch first_log_line observed",
    ("cold_start_seconds", "kind"): "cold warm unknown",
    ("startups_total", "outcome"): "ok over_budget failed stuck",
    ("recheck_due", "plan"): "acceptance kv two_model",
    ("records_total", "outcome"): "ok skipped malformed oversized duplicate",
}
"""Promised values by (series, label)."""

HISTOGRAMS = {"request_acceptance_length", "batch_acceptance_length"}
PROMISED_BUCKETS = (1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 12, 14, 17)
UNITS = ("bytes", "seconds", "tokens", "ratio")

EACH = pytest.mark.parametrize("series", SERIES, ids=[series.name for series in SERIES])


def test_the_catalog_and_the_contract_name_the_same_series() -> None:
    """A name of one that the other lacks is a promise broken or a series that nobody promised."""
    declared = {series.name for series in SERIES}
    assert declared == set(CONTRACT) | set(BESIDES)


@EACH
def test_labels_are_the_promised_ones(series: SeriesDef) -> None:
    """The label set is exact: dashboards and rules join on it."""
    assert series.labels == (CONTRACT | BESIDES)[series.name]


@EACH
def test_a_name_tells_its_type(series: SeriesDef) -> None:
    """Counters and nothing else end in _total; the two length histograms have the promised buckets."""
    assert (series.kind is Kind.COUNTER) == series.name.endswith("_total")
    assert (series.kind is Kind.HISTOGRAM) == (series.name in HISTOGRAMS)
    assert series.buckets == (PROMISED_BUCKETS if series.kind is Kind.HISTOGRAM else ())
    assert series.full_name == PREFIX + series.name


@EACH
def test_every_series_says_what_it_means(series: SeriesDef) -> None:
    """One sentence of help on one line, and every label is a closed set or explained."""
    assert len(series.help) > 10
    assert series.help.endswith(".")
    assert "\n" not in series.help
    assert all(label in LABELS or label in FREE or (series.name, label) in SETS_OF_SERIES for label in series.labels)


def closed_set(name: str, label: str) -> set[str]:
    """What a label of a series can be, as declared."""
    declared = SETS_OF_SERIES.get((name, label)) or LABELS[label]
    assert isinstance(declared, tuple)
    assert len(declared) == len(set(declared))
    return {str(value) for value in declared}


@pytest.mark.parametrize(("where", "values"), CLOSED_SETS.items(), ids=[".".join(where) for where in CLOSED_SETS])
def test_closed_sets_are_the_promised_ones(where: tuple[str, str], values: str) -> None:
    """Rules and dashboards name these values; one that is spelled otherwise matches nothing."""
    assert closed_set(*where) == set(values.split())


def test_stages_hold_at_least_the_promised_ones() -> None:
    """Further stages are what an engine's log names."""
    promised = {"load", "post_load", "kv_alloc", "graph_capture", "warmup", "ready", "first_generation"}
    assert closed_set("startup_stage_offset_seconds", "stage") >= promised


def test_sources_are_among_the_promised_ones() -> None:
    """The gateway's posts are `api`."""
    promised = [
        "metrics",
        "loads",
        "server_info",
        "request_log",
        "server_log",
        "target_checkpoint",
        "drafter_checkpoint",
        "api",
    ]
    assert closed_set("source_up", "source") <= set(promised)


def test_names_are_unique_and_plain() -> None:
    """No name stands twice, and each is one that Prometheus takes without quotes."""
    names = [series.full_name for series in SERIES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"specbudget_[a-z][a-z0-9_]*", name) for name in names)


def test_buckets_rise_and_tell_the_targets_apart() -> None:
    """From nothing accepted to the longest usual window."""
    assert list(LENGTH_BUCKETS) == sorted(set(LENGTH_BUCKETS))
    assert (LENGTH_BUCKETS[0], LENGTH_BUCKETS[-1]) == (1, 17)


def test_every_source_has_its_reasons() -> None:
    """Each pair of source and reason is a counter from the start, so the set must be complete and closed."""
    assert set(REASONS_BY_SOURCE) == set(Source)
    for reasons in REASONS_BY_SOURCE.values():
        assert len(reasons) == len(set(reasons))
        assert set(reasons) <= set(ErrorReason)


def test_rolling_windows_are_what_their_labels_say() -> None:
    """1m 5m 30m 1h, in seconds."""
    assert ROLLING_WINDOWS == {"1m": 60.0, "5m": 300.0, "30m": 1800.0, "1h": 3600.0}


def test_lines_and_their_budgets_are_the_promised_ones() -> None:
    """Five lines in reading order; a floor where the limit must not be fallen below."""
    found = {line.id: [(b.id, str(b.unit), b.floor) for b in line.budgets] for line in LINES}
    assert list(found) == ["artifacts", "kv", "acceptance", "staging", "codesign"]
    assert found == {
        "artifacts": [
            ("target", "bytes", False),
            ("drafter", "bytes", False),
            ("total", "bytes", False),
            ("image", "bytes", False),
        ],
        "kv": [
            ("target", "bytes", False),
            ("drafter", "bytes", False),
            ("high_water", "ratio", False),
            ("min_target_tokens", "tokens", True),
        ],
        "acceptance": [
            ("target_length", "tokens", True),
            ("break_even", "tokens", True),
            ("burn_fast", "ratio", False),
            ("burn_slow", "ratio", False),
        ],
        "staging": [("cold_start", "seconds", False)],
        "codesign": [("pair", "ratio", False)],
    }
    assert {unit for budgets in found.values() for _, unit, _ in budgets} <= set(UNITS)


def test_a_budget_that_a_line_lacks_is_an_error() -> None:
    """Asking a line for another line's budget is a fault in the code that asks."""
    with pytest.raises(KeyError, match="staging has no budget high_water"):
        LINES[3].budget("high_water")
