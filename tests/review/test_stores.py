"""The same stretch from Prometheus of three ages, from VictoriaMetrics and from the own history reads the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.prometheus_tools import Suite
from tests.recordings import kept_rows, recording
from tests.review.planted import PLANTED
from tests.review.stores import prometheus, service_of, victoria_metrics
from tests.review.test_scenarios import reviewed

from specbudget.review.model import Cause, Finding
from specbudget.review.whole import review_of
from specbudget.sources.prometheus.client import PrometheusClient
from specbudget.sources.prometheus.client_config import ClientConfig
from specbudget.sources.prometheus.samples import PrometheusSamples

pytestmark = pytest.mark.slow
FEW = ("steady", "acceptance-drop", "kv-pressure", "dp2", "restart")


def from_store(url: str, scenario: str) -> tuple[Finding, ...]:
    rows = kept_rows(recording(scenario))
    start, end = rows[0][0], rows[-1][0]
    samples = PrometheusSamples(PrometheusClient(url, ClientConfig()), start, end)
    assert service_of(scenario) in samples.services()
    return review_of(samples, service_of(scenario), start, end).findings


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prometheus(tmp_path_factory.mktemp("prometheus"), PLANTED) as url:
        yield url


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria_metrics(tmp_path_factory.mktemp("vm"), PLANTED) as url:
        yield url


@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_prometheus_and_history_give_the_same_findings(scenario: str, usual: str, tmp_path: Path) -> None:
    """Titles, evidence, numbers and times are equal, word for word."""
    assert from_store(usual, scenario) == reviewed(scenario, tmp_path).findings


@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_victoria_metrics_and_history_give_the_same_findings(scenario: str, victoria: str, tmp_path: Path) -> None:
    """Titles, evidence, numbers and times are equal, word for word."""
    assert from_store(victoria, scenario) == reviewed(scenario, tmp_path).findings


@pytest.mark.parametrize("suite", [Suite.OLDEST, Suite.NEWEST])
def test_other_ages_give_the_same_findings(suite: Suite, tmp_path: Path) -> None:
    """Prometheus 2.42 and 3 include other borders of a range, and say the same."""
    with prometheus(tmp_path, FEW, suite) as url:
        for scenario in FEW:
            assert from_store(url, scenario) == reviewed(scenario, tmp_path / scenario).findings


def test_a_scrape_a_minute_names_the_same_causes(tmp_path: Path) -> None:
    """Prometheus is mostly set up so; a review takes its step from what it finds.

    The larger pool of capacity-shrank lived half a minute: no scrape saw it, and only the restart can be told.
    """
    with prometheus(tmp_path, PLANTED, every=4) as url:
        named = {scenario: from_store(url, scenario)[0].cause for scenario in PLANTED}
    assert named == PLANTED | {"capacity-shrank": Cause.ENGINE_RESTART}


def test_alerts_are_read_where_they_are_kept(usual: str) -> None:
    """What fired has its interval and severity; a history keeps none and says so."""
    rows = kept_rows(recording("acceptance-drop"))
    start, end = rows[0][0], rows[-1][0]
    samples = PrometheusSamples(PrometheusClient(usual, ClientConfig()), start, end)
    alerts = review_of(samples, service_of("acceptance-drop"), start, end).alerts
    assert alerts is not None
    fast = [alert for alert in alerts if alert.name == "SpecbudgetAcceptanceFastBurn"]
    assert [(alert.severity, alert.line) for alert in fast] == [("page", "acceptance")]
    assert fast[0].start - start == pytest.approx(150, abs=30)
    assert fast[0].end == pytest.approx(end, abs=30)
