"""What a real Alertmanager sends with the generated configuration, and what it keeps to itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.generate.running_alertmanager import SETTLED, Running, alert, running, wait_until
from tests.prometheus_tools import Suite

from e2e.pace import Pace
from specbudget.budget.model import Budget
from specbudget.catalog.alerts import ALERTS, Severity
from specbudget.catalog.alerts.sidecar import ENGINE_DOWN as DOWN

pytestmark = pytest.mark.slow

ENGINE_DOWN = DOWN.name


@pytest.fixture(scope="module")
def alerting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One process for all tests; each has services of its own."""
    with running(tmp_path_factory.mktemp("alertmanager")) as process:
        yield process


def test_a_page_silences_tickets_of_its_line_and_service_only(alerting: Running) -> None:
    """Not those of another line, service, namespace or cluster, no note, and not itself."""
    here = {"cluster": "eu", "namespace": "llm", "specbudget_service": "page-a", "line": "acceptance"}
    there = {**here, "specbudget_service": "page-b"}
    alerting.post(
        alert("Burn", severity="page", **here),
        alert("Collapsed", severity="page", **here),
        alert("Decay", severity="ticket", **here),
        alert("Outlier", severity="ticket", instance="r1:9877", **here),
        alert("Strong", severity="info", **here),
        alert("OtherLine", severity="ticket", **{**here, "line": "kv"}),
        alert("OtherNamespace", severity="ticket", **{**here, "namespace": "test"}),
        alert("OtherCluster", severity="ticket", **{**here, "cluster": "us"}),
        alert("OtherService", severity="ticket", **there),
    )
    expected = {
        "Burn": False,
        "Collapsed": False,
        "Decay": True,
        "Outlier r1:9877": True,
        "Strong": False,
        "OtherLine": False,
        "OtherNamespace": False,
        "OtherCluster": False,
    }
    wait_until(lambda: alerting.suppressed("page-a") == expected)
    assert alerting.suppressed("page-a") == expected
    assert alerting.suppressed("page-b") == {"OtherService": False}


def test_services_are_told_apart_by_the_labels_that_the_budget_names(tmp_path: Path) -> None:
    """With `rules.labels` of its own a page of one region silences no ticket of another, and is told by itself."""
    budget = Budget.model_validate({"service": "any", "rules": {"labels": ["region", "specbudget_service"]}})
    with running(tmp_path, budget=budget) as process:
        eu = {"region": "eu", "specbudget_service": "regions", "line": "acceptance"}
        us = {**eu, "region": "us"}
        process.post(
            alert("Burn", severity="page", **eu),
            alert("Here", severity="ticket", **eu),
            alert("There", severity="ticket", **us),
        )
        expected = {"Burn": False, "Here": True, "There": False}
        wait_until(lambda: process.suppressed("regions") == expected)
        assert process.suppressed("regions") == expected


def test_one_engine_that_is_down_silences_its_replica_only(alerting: Running) -> None:
    """Not another replica, not the service as a whole, no page, and not its own alert on another replica."""
    here = {"namespace": "llm", "specbudget_service": "down-a"}
    first, second = {"instance": "r1:9877", **here}, {"instance": "r2:9877", **here}
    alerting.post(
        alert(ENGINE_DOWN, severity="ticket", line="sidecar", **first),
        alert("PoolHigh", severity="ticket", line="kv", **first),
        alert("Lag", severity="ticket", line="sidecar", **first),
        alert("Strong", severity="info", line="acceptance", **first),
        alert("PageOfReplica", severity="page", line="acceptance", **first),
        alert("PoolHigh", severity="ticket", line="kv", **second),
        alert("OfService", severity="ticket", line="kv", **here),
        alert("OfOther", severity="ticket", line="kv", **{**first, "specbudget_service": "down-b"}),
    )
    expected = {
        f"{ENGINE_DOWN} r1:9877": False,
        "PoolHigh r1:9877": True,
        "Lag r1:9877": True,
        "Strong r1:9877": True,
        "PageOfReplica r1:9877": False,
        "PoolHigh r2:9877": False,
        "OfService": False,
    }
    wait_until(lambda: alerting.suppressed("down-a") == expected)
    assert alerting.suppressed("down-a") == expected
    assert alerting.suppressed("down-b") == {"OfOther r1:9877": False}
    alerting.post(alert(ENGINE_DOWN, severity="ticket", line="sidecar", **second))
    expected |= {f"{ENGINE_DOWN} r2:9877": False, "PoolHigh r2:9877": True}
    wait_until(lambda: alerting.suppressed("down-a") == expected)
    assert alerting.suppressed("down-a") == expected


def test_an_engine_that_is_down_silences_the_catalogs_own_alerts_of_its_replica(alerting: Running) -> None:
    """As the rules label them: those that keep the replica, but no page, none of the service, and not itself."""
    labels = {"specbudget_service": "down-c", "cluster": "eu", "namespace": "llm"}
    replica = {"pod": "chat-7", "instance": "r1:9877"}
    alerting.post(
        *(
            alert(
                one.name,
                severity=one.severity,
                line=one.line,
                **labels,
                **{label: replica.get(label, "x") for label in one.keeps},
            )
            for one in ALERTS
        )
    )
    of_replica = [one for one in ALERTS if "instance" in one.keeps and one is not DOWN]
    assert of_replica
    paged = {one.line for one in ALERTS if one.severity is Severity.PAGE}
    expected = {
        " ".join((one.name, *(["r1:9877"] if "instance" in one.keeps else []))): one in of_replica
        or (one.severity is Severity.TICKET and one.line in paged)
        for one in ALERTS
    }
    wait_until(lambda: alerting.suppressed("down-c") == expected)
    assert alerting.suppressed("down-c") == expected


@pytest.mark.parametrize("without", ["instance", "specbudget_service"])
def test_a_label_that_is_missing_on_both_sides_silences_nothing(alerting: Running, without: str) -> None:
    """Alertmanager takes two missing labels for equal; an engine that is nobody's must not silence everything."""
    labels = {"instance": "r1:9877", "specbudget_service": "bare", "cluster": f"bare-{without}"}
    del labels[without]
    whole = {"instance": "r1:9877", "specbudget_service": f"whole-{without}"}
    alerting.post(
        alert(ENGINE_DOWN, severity="ticket", line="sidecar", **labels),
        alert("Lag", severity="ticket", line="sidecar", **labels),
        alert("Burn", severity="page", line="kv", **{**labels, "specbudget_service": ""}),
        alert("PoolHigh", severity="ticket", line="kv", **{**labels, "specbudget_service": ""}),
    )
    alerting.post(
        alert(ENGINE_DOWN, severity="ticket", line="sidecar", **whole),
        alert("Lag", severity="ticket", line="sidecar", **whole),
    )
    # Once the later ones are judged the earlier ones are, too.
    assert wait_until(lambda: alerting.suppressed(whole["specbudget_service"])["Lag r1:9877"])
    seen = {
        name: inhibited
        for service in ("", "bare")
        for name, inhibited in alerting.suppressed(service, cluster=labels["cluster"]).items()
    }
    assert len(seen) == 4
    assert not any(seen.values()), seen


def test_what_is_sent_when_a_page_and_tickets_come_together(alerting: Running) -> None:
    """The page, with its sibling in the same message; the ticket of its line is not sent, others are."""
    here = {"namespace": "llm", "specbudget_service": "sent-a", "line": "acceptance"}
    alerting.post(
        alert("Decay", severity="ticket", **here),
        alert("Burn", severity="page", **here),
        alert("Collapsed", severity="page", **here),
        alert("PoolHigh", severity="ticket", **{**here, "line": "kv"}),
        alert("Decay", severity="ticket", **{**here, "specbudget_service": "sent-b"}),
    )
    expected = [("specbudget-page", ["Burn", "Collapsed"]), ("specbudget-ticket-kv", ["PoolHigh"])]
    wait_until(lambda: len(alerting.notified("sent-a")) >= 2 and bool(alerting.notified("sent-b")))
    time.sleep(SETTLED)
    assert sorted(alerting.notified("sent-a")) == expected
    assert alerting.notified("sent-b") == [("specbudget-ticket-acceptance", ["Decay"])]


def test_a_ticket_that_came_first_does_not_hold_up_the_page(alerting: Running) -> None:
    """The page is sent although tickets of its line and an engine that is down were there before."""
    here = {"specbudget_service": "late", "line": "acceptance"}
    alerting.post(
        alert("Decay", severity="ticket", **here),
        alert(ENGINE_DOWN, severity="ticket", instance="r1:9877", **{**here, "line": "sidecar"}),
    )
    wait_until(lambda: len(alerting.notified("late")) == 2)
    alerting.post(alert("Burn", severity="page", **here))
    wait_until(lambda: len(alerting.notified("late")) == 3)
    assert ("specbudget-page", ["Burn"]) in alerting.notified("late")


@pytest.mark.parametrize("suite", Suite)
def test_a_ticket_that_fires_before_its_page_is_not_sent(tmp_path: Path, suite: Suite) -> None:
    """Tickets wait so long as generated that the page is there: a tenth of a minute is a second here.

    In every age of Alertmanager, which starts with the generated template and sends what it says.
    """
    here = {"namespace": "llm", "specbudget_service": "first", "line": "acceptance"}
    with running(tmp_path, suite=suite, paced=Pace(factor=60.0, scrape=1.0, evaluation=1.0).routes) as alerting:
        alerting.post(
            alert("BurnDay", severity="ticket", **here), alert("High", severity="ticket", **{**here, "line": "kv"})
        )
        time.sleep(1.0)
        assert alerting.notified("first") == []
        alerting.post(alert("FastBurn", severity="page", annotations={"summary": "first: 62% bad"}, **here))
        # the other line's ticket waits as long, and shows when the first would have been sent
        assert wait_until(lambda: len(alerting.notified("first")) >= 2)
        time.sleep(SETTLED)
        assert alerting.notified("first") == [("specbudget-page", ["FastBurn"]), ("specbudget-ticket-kv", ["High"])]
        (pager,) = alerting.receiver.of("/pagerduty", "62% bad")
        (chat, _) = alerting.receiver.of("/slack", "first")
        assert pager["payload"]["summary"] == chat["attachments"][0]["title"] == "PAGE first: 62% bad"


def test_one_message_for_a_service_however_many_replicas(alerting: Running) -> None:
    """Tickets of one line are one message for each service, cluster and namespace."""
    labels = {"severity": "ticket", "line": "kv"}
    alerting.post(
        *(
            alert("PoolHigh", instance=f"r{replica}:9877", specbudget_service=service, namespace=namespace, **labels)
            for service, namespace in (("many-a", "x"), ("many-a", "y"), ("many-b", "x"))
            for replica in range(12)
        )
    )
    wait_until(lambda: len(alerting.notified("many-a") + alerting.notified("many-b")) >= 3)
    time.sleep(SETTLED)
    assert alerting.notified("many-a") == [("specbudget-ticket-kv", ["PoolHigh"] * 12)] * 2
    assert alerting.notified("many-b") == [("specbudget-ticket-kv", ["PoolHigh"] * 12)]
