"""The page as a whole: every declared series, exact labels, state sets, zeros at the start, both formats, its size."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from tests.prometheus_tools import tool
from tests.scripted_engine import CAPTURED, Answer, ScriptedEngine
from tests.serve.polled_desk import PolledDesk

from specbudget.catalog.series import BATCH_ACCEPTANCE_LENGTH, SERIES, SERVICE_LABEL, Kind
from specbudget.catalog.sets import (
    EXCLUSION_REASONS,
    REASONS_BY_SOURCE,
    RecordOutcome,
    Source,
    StartOutcome,
)
from specbudget.serve.collect import collect
from specbudget.serve.desk import ARTIFACT_OF
from specbudget.serve.families import Families
from specbudget.serve.ledger import Ledger
from specbudget.serve.publish import Page as Rendered
from specbudget.serve.publish import render
from specbudget.serve.start_view import ReadAt
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.sources.checkpoint import Checkpoint, read_checkpoint
from specbudget.sources.sglang.start_log import read_start_lines

STATES = {
    "line_state": {"ok", "at_risk", "breach", "unknown"},
    "speculation_state": {"no_data", "invalid", "frozen", "off", "capped", "idle", "active"},
}
FROM_THE_ENGINE = [
    "line_state",
    "budget_used_ratio",
    "budget_limit_bytes",
    "budget_spent_bytes",
    "budget_limit_tokens",
    "budget_spent_tokens",
    "budget_limit_ratio",
    "budget_spent_ratio",
    "budget_limit_seconds",
    "artifact_bytes",
    "artifact_parameters",
    "artifact_info",
    "weight_memory_bytes",
    "kv_bytes_per_token",
    "kv_pool_capacity_bytes",
    "kv_pool_used_bytes",
    "kv_pool_resident_bytes",
    "kv_pool_capacity_tokens",
    "kv_pool_used_tokens",
    "kv_need_bytes",
    "kv_cost_tokens",
    "kv_retractions_total",
    "request_acceptance_length",
    "batch_acceptance_length",
    "rolling_acceptance_length",
    "verify_steps_total",
    "proposed_draft_tokens_total",
    "accepted_draft_tokens_total",
    "generated_tokens_total",
    "draft_position_accepted_total",
    "slo_events_total",
    "slo_excluded_requests_total",
    "slo_objective_ratio",
    "acceptance_target_length",
    "break_even_acceptance_length",
    "acceptance_window_length",
    "speculation_state",
    "acceptance_source_info",
    "engine_info",
    "engine_running_requests",
    "engine_queued_requests",
    "source_up",
    "source_last_success_timestamp_seconds",
    "source_poll_duration_seconds",
    "source_errors_total",
    "source_lag_seconds",
    "source_backlog_bytes",
    "records_total",
    "config_last_reload_successful",
    "config_last_reload_success_timestamp_seconds",
    "build_info",
]
"""What a page must hold once the three endpoints, both checkpoints and the logs have been read."""

FROM_FILES = {"codesign_checks", "codesign_check", "recheck_due", "acceptance_suspect", "staging_info"}
"""Judgements that need no engine."""

PROFILES = {f"kind-{i}": {"match": {"model": f"model-{i}"}, "target_length": 2.0} for i in range(20)}
EVERY_LINE: dict[str, Any] = {
    "artifacts": {"image": "12GiB", "target": "260GiB", "drafter": "3GiB", "total": "275GiB"},
    "kv": {
        "target": "40GiB",
        "drafter": "12GiB",
        "high_water": 0.9,
        "concurrency": 48,
        "tokens_per_request": 8192,
        "min_target_tokens": 400000,
    },
    "acceptance": {
        "target_length": 2.6,
        "break_even": [{"running": 1, "length": 2.1}, {"running": 64, "length": 3.4}],
    },
    "staging": {"cold_start": "90s"},
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[Source, Checkpoint]:
    """A target with recurrent and latent layers, and its DSpark drafter, with tensor headers and no weights."""
    folder = tmp_path_factory.mktemp("models")
    write_target(folder / "target")
    write_drafter(folder / "drafter")
    return {
        Source.TARGET_CHECKPOINT: read_checkpoint(folder / "target"),
        Source.DRAFTER_CHECKPOINT: read_checkpoint(folder / "drafter"),
    }


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., PolledDesk]]:
    """Makes a desk beside an engine that answers nothing yet."""
    made: list[PolledDesk] = []
    async with ScriptedEngine() as engine:

        def build(**sections: Any) -> PolledDesk:
            made.append(PolledDesk(engine, tmp_path, **sections))
            return made[-1]

        yield build
        for polled in made:
            await polled.http.close()


async def full(
    make: Callable[..., PolledDesk], read: dict[Source, Checkpoint], *, ranks: int, profiles: int
) -> PolledDesk:
    """A desk with every source and line, all of whose endpoints have answered, twice and after work."""
    lines = EVERY_LINE | {
        "acceptance": {**EVERY_LINE["acceptance"], "profiles": dict(list(PROFILES.items())[: profiles - 1])}
    }
    polled = make(
        engine={"request_log": "requests", "server_log": "server.log"},
        target={"path": "target"},
        drafter={"path": "drafter", "algorithm": "dspark"},
        parallelism={"tensor": 4, "data": ranks},
        budget=lines,
    )
    busy = (CAPTURED / "0.5.23" / "metrics_v0.5.23_dp2.busy.prom").read_text()
    of_rank = "".join(line for line in busy.splitlines(keepends=True) if 'dp_rank="0"' in line)
    body = "".join(of_rank.replace('dp_rank="0"', f'dp_rank="{rank}"') for rank in range(ranks))
    body += "".join(f'sglang:num_retracted_requests_total{{dp_rank="{rank}"}} 3\n' for rank in range(ranks))
    polled.engine.answers["/server_info"] = Answer(
        (CAPTURED / "0.5.23" / "server_info_v0.5.23_dspark_dp2.json").read_bytes()
    )
    polled.engine.answers["/v1/loads"] = Answer((CAPTURED / "0.5.23" / "v1_loads_v0.5.23_dspark_dp2.json").read_bytes())
    for source, checkpoint in read.items():
        polled.desk.checkpoints[ARTIFACT_OF[source]] = checkpoint
    for source, health in polled.desk.health.items():
        if source not in (Source.METRICS, Source.LOADS, Source.SERVER_INFO):
            health.succeeded(polled.now, 0.1)
            polled.desk.lags.backlog_bytes[source] = 5
            polled.desk.lags.lag_seconds[source] = 1.0
    await polled.poll(Source.SERVER_INFO, Source.LOADS)
    for turn in range(2):
        polled.desk.book.count_batch("0", 2.5, 40.0, window=4, at=polled.now, now=polled.now)
        await polled.read(body, after=5.0 * turn)
    polled.desk.state_saved = True
    return polled


def rendered(polled: PolledDesk) -> Rendered:
    """Both formats of the page now."""
    return render(collect(polled.desk, polled.now))


async def pages(make: Callable[..., PolledDesk], read: dict[Source, Checkpoint]) -> dict[str, Rendered]:
    """A page before anything was read, and a full one."""
    first = rendered(make())
    return {"empty": first, "full": rendered(await full(make, read, ranks=2, profiles=3))}


async def test_every_series_is_announced_with_and_without_data(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]
) -> None:
    """HELP and TYPE of the whole catalog stand on every page, once each, in the catalog's order."""
    for page in (await pages(make, checkpoints)).values():
        text = page.text.decode()
        assert re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M) == [(s.full_name, str(s.kind)) for s in SERIES]
        assert re.findall(r"^# HELP (\S+) (.+)$", text, re.M) == [(s.full_name, s.help) for s in SERIES]


async def test_labels_are_exactly_the_declared_ones(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]
) -> None:
    """Each sample has its service and the catalog's labels, no more and no fewer, and no label is empty."""
    declared = {series.full_name: set(series.labels) for series in SERIES}
    page = (await pages(make, checkpoints))["full"]
    seen = set()
    for family in read_text(page.text.decode()):
        for sample in family.samples:
            series = next(s for s in (family.name, f"{family.name}_total") if s in declared)
            labels = set(sample.labels) - {"le"} if family.type == "histogram" else set(sample.labels)
            assert labels == declared[series] | {SERVICE_LABEL}, sample
            assert all(sample.labels.values()), sample
            assert sample.labels[SERVICE_LABEL] == "chat"
            seen.add(series)
    assert {f"specbudget_{name}" for name in FROM_THE_ENGINE} <= seen


async def test_state_sets_have_exactly_one_state(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]
) -> None:
    """Each line and each rank is in one state of the whole set; before any data the rank 0 has no data."""
    for name, page in (await pages(make, checkpoints)).items():
        sums: Counter[tuple[str, str]] = Counter()
        states: dict[tuple[str, str], set[str]] = {}
        for family in read_text(page.text.decode()):
            short = family.name.removeprefix("specbudget_")
            for sample in family.samples if short in STATES else ():
                of = (short, sample.labels.get("line") or sample.labels["rank"])
                assert sample.value in (0, 1)
                sums[of] += int(sample.value)
                states.setdefault(of, set()).add(sample.labels["state"])
        assert set(sums.values()) == {1}
        assert all(found == STATES[series] for (series, _), found in states.items())
        lines, ranks = 5, 1 if name == "empty" else 2
        assert len(sums) == lines + ranks


async def test_both_formats_hold_the_same_samples(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]
) -> None:
    """Text and OpenMetrics are read by the library's own parsers to the same values; no _created, no NaN, one EOF."""
    for page in (await pages(make, checkpoints)).values():
        text, openmetrics = page.text.decode(), page.openmetrics.decode()
        both = [
            {(s.name, frozenset(s.labels.items())): s.value for family in read(body) for s in family.samples}
            for read, body in ((read_text, text), (read_openmetrics, openmetrics))
        ]
        assert both[0] == both[1]
        assert both[0]
        for body in (text, openmetrics):
            assert "_created" not in body
            assert not re.search(r"(?i) [-+]?(nan|inf)$", body, re.M)
        assert openmetrics.endswith("# EOF\n")
        assert openmetrics.count("# EOF") == 1
        assert text.endswith("\n")


async def test_no_sample_stands_twice(make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]) -> None:
    """Two lines with the same name and labels make Prometheus refuse the whole page."""
    for page in (await pages(make, checkpoints)).values():
        names = [line.rpartition(" ")[0] for line in page.text.decode().splitlines() if not line.startswith("#")]
        assert [name for name, count in Counter(names).items() if count > 1] == []


async def test_no_sample_stands_twice_at_any_point_of_a_start(make: Callable[..., PolledDesk]) -> None:
    """Ranks load at different speed: a stage that one rank has finished and another has not is one stage."""
    captured = CAPTURED / "0.5.23" / "log_v0.5.23_dspark_tp2_startup.handfilled.log"
    polled = make()
    now = time.time()
    for line in captured.read_bytes().splitlines(keepends=True):
        read = ReadAt(epoch=now, monotonic=time.monotonic(), live=True, quiet=0.0)
        polled.desk.starts.see(read_start_lines(line, answers=True).events, read)
        text = rendered(polled).text.decode()
        names = [sample.rpartition(" ")[0] for sample in text.splitlines() if not sample.startswith("#")]
        assert [name for name, count in Counter(names).items() if count > 1] == [], line


async def test_promtool_has_nothing_to_say(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]
) -> None:
    """`promtool check metrics` is silent on the empty page and on the full one."""
    promtool = tool("promtool")
    for page in (await pages(make, checkpoints)).values():
        said = await asyncio.to_thread(
            subprocess.run, [promtool, "check", "metrics"], input=page.text, capture_output=True, timeout=60
        )
        assert (said.returncode, said.stdout.decode(), said.stderr.decode()) == (0, "", "")


async def test_counters_begin_at_zero(make: Callable[..., PolledDesk]) -> None:
    """On the first page, before the engine answered: every child of a closed set, so that increase() misses nothing."""
    page = make(
        parallelism={"data": 2},
        engine={"request_log": "requests"},
        budget={
            "acceptance": {
                "target_length": 2.6,
                "profiles": {"code": {"match": {"model": "x"}, "target_length": 3}},
            }
        },
    ).page()
    profiles, ranks = ["code", "default"], ["0", "1"]
    for profile in profiles:
        for verdict in ("good", "bad"):
            assert page.value("slo_events_total", sli="request", verdict=verdict, profile=profile) == 0
        for reason in EXCLUSION_REASONS:
            assert page.value("slo_excluded_requests_total", reason=reason, profile=profile) == 0
        assert page.value("request_acceptance_length_count", profile=profile) == 0
        for rank in ranks:
            for name in (
                "verify_steps",
                "proposed_draft_tokens",
                "accepted_draft_tokens",
                "generated_tokens",
            ):
                assert page.value(f"{name}_total", rank=rank, profile=profile) == 0
    for rank in ranks:
        assert page.value("kv_retractions_total", rank=rank) == 0
        assert page.value("batch_acceptance_length_bucket", rank=rank, le="+Inf") == 0
    for source in (Source.METRICS, Source.LOADS, Source.SERVER_INFO, Source.REQUEST_LOG):
        for reason in REASONS_BY_SOURCE[source]:
            assert page.value("source_errors_total", source=source, reason=reason) == 0
    for outcome in RecordOutcome:
        assert page.value("records_total", source="request_log", outcome=outcome) == 0
    for end in StartOutcome:
        assert page.value("startups_total", outcome=end) == 0
    assert page.label("slo_events_total", "sli") == ["request"]
    assert page.value("config_last_reload_successful") == 1


@pytest.mark.parametrize(("ranks", "profiles"), [(1, 1), (8, 1), (1, 21), (8, 21)])
async def test_the_page_keeps_its_budget(
    make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint], ranks: int, profiles: int
) -> None:
    """At most 300 series per replica, 60 more per rank and 30 more per profile, with every line and source in use."""
    polled = await full(make, checkpoints, ranks=ranks, profiles=profiles)
    assert len(list(polled.page())) <= 300 + 60 * ranks + 30 * profiles


async def test_accepted_drafts_are_absent_where_nobody_counts_them(make: Callable[..., PolledDesk]) -> None:
    """Without a request log SGLang tells steps and not what they accepted: 0 would be read as a length of 1."""
    polled = make()
    text = "sglang:num_running_reqs 1\nsglang:spec_verify_calls_total {}\n"
    await polled.read(text.format(100))
    page = await polled.see(text.format(900), after=5)
    assert page.of("verify_steps_total") == [800]
    assert page.of("accepted_draft_tokens_total") == []


async def test_unknown_is_absent_and_never_zero(make: Callable[..., PolledDesk]) -> None:
    """Before anything is read, the only gauges are states, limits and what the sidecar knows of itself."""
    page = make(target={"path": "target"}, drafter={"path": "drafter"}, budget=EVERY_LINE).page()
    gauges = {s.name for s in SERIES if s.kind is Kind.GAUGE}
    assert {name for name, _, _ in page if name in gauges - FROM_FILES} == {
        "line_state",
        "budget_limit_bytes",
        "budget_limit_seconds",
        "budget_limit_tokens",
        "budget_limit_ratio",
        "slo_objective_ratio",
        "acceptance_target_length",
        "speculation_state",
        "acceptance_source_info",
        "config_last_reload_successful",
        "config_last_reload_success_timestamp_seconds",
        "build_info",
    }
    states = {line: page.state("line_state", line=line) for line in page.label("line_state", "line")}
    assert set(states.values()) == {"unknown"}


async def test_a_line_that_is_not_budgeted_is_ok_and_has_no_budget(make: Callable[..., PolledDesk]) -> None:
    """Nothing is asked of it, so nothing is unknown."""
    page = make().page()
    states = {line: page.state("line_state", line=line) for line in page.label("line_state", "line")}
    assert states == dict.fromkeys(("artifacts", "kv", "acceptance", "staging", "codesign"), "ok")
    assert page.of("budget_limit_bytes") == page.of("budget_used_ratio") == []
    assert page.of("slo_objective_ratio") == []


async def test_figures_of_a_full_page(make: Callable[..., PolledDesk], checkpoints: dict[Source, Checkpoint]) -> None:
    """The engine's weights for the target, computed ones for the drafter; ratios are spent ÷ limit, floors turned."""
    page = (await full(make, checkpoints, ranks=2, profiles=1)).page()
    told = re.search(
        r"^sglang:weight_memory_usage_gb\{.* (\S+)$",
        (CAPTURED / "0.5.23" / "metrics_v0.5.23_dp2.busy.prom").read_text(),
        re.M,
    )
    assert told is not None
    assert page.value("weight_memory_bytes", artifact="target", rank="0") == float(told[1]) * (1 << 30)
    drafter = page.value("weight_memory_bytes", artifact="drafter", rank="1")
    on_disk = page.value("artifact_bytes", artifact="drafter")
    assert drafter is not None
    assert on_disk is not None
    assert 0 < drafter < on_disk
    for line, budget in (("artifacts", "target"), ("kv", "drafter"), ("kv", "high_water")):
        unit = "ratio" if budget == "high_water" else "bytes"
        spent = page.value(f"budget_spent_{unit}", line=line, budget=budget)
        limit = page.value(f"budget_limit_{unit}", line=line, budget=budget)
        assert spent is not None
        assert limit is not None
        assert page.value("budget_used_ratio", line=line, budget=budget) == pytest.approx(spent / limit)
    assert page.value("budget_used_ratio", line="kv", budget="min_target_tokens") == pytest.approx(400000 / 402176)
    assert page.value("break_even_acceptance_length") == pytest.approx(2.1 + 1.3 * 11 / 63)


def test_a_histogram_is_cumulated_and_a_length_on_its_bound_is_below_it() -> None:
    """2.5 counts under le 2.5; the buckets sum up to the count."""
    ledger = Ledger()
    ledger.begin(BATCH_ACCEPTANCE_LENGTH, ["0"])
    for length in (1.0, 2.5, 2.51, 17.0, 40.0):
        ledger.observe(BATCH_ACCEPTANCE_LENGTH, ("0",), np.array([length]))
    text = render(Families("chat").render_with(ledger)).text.decode()
    buckets = dict(re.findall(r'batch_acceptance_length_bucket\{le="([^"]+)".*\} (\S+)', text))
    assert buckets["1.0"] == "1.0"
    assert (buckets["2.0"], buckets["2.5"], buckets["3.0"]) == ("1.0", "2.0", "3.0")
    assert (buckets["17.0"], buckets["+Inf"]) == ("4.0", "5.0")
    assert float(re.findall(r"batch_acceptance_length_sum\S* (\S+)", text)[0]) == pytest.approx(63.01)
