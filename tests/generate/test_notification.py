"""What the notifications say: rendered by amtool, and as a real Alertmanager sends them to a pager and to a chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.generate.running_alertmanager import Running, alert, amtool, running, wait_until

from specbudget.generate.notification import MOST_ALERTS, template

BURN = {
    "summary": "chat: the acceptance SLO burns fast, 62% of events are bad",
    "description": (
        "62% of the valid events of 1h missed their target length; allowed is 5%. Likely cause: drafter_changed; "
        "Shortest: chat-7 1.20; chat-9 1.41; "
        "To turn speculation off: restart the engine without --speculative-algorithm."
    ),
    "runbook_url": "https://runbooks.example/specbudget.md#burn",
    "dashboard_url": "https://grafana.example/d/acceptance?var-service=chat&from=now-6h",
}
ODD = '{{ odd }}: 100% "quoted" café-模型 <b>&amp; \\n'

Render = Callable[..., str]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Renders one of the template's definitions for alerts of one service."""
    (tmp_path / "specbudget.tmpl").write_text(template())

    def rendered(name: str, *alerts: dict[str, Any], kind: str = "text") -> str:
        firing = any(one["status"] == "firing" for one in alerts)
        data = tmp_path / "data.json"
        common = set.intersection(*(set(one["labels"].items()) for one in alerts))
        document = {
            "receiver": "any",
            "status": "firing" if firing else "resolved",
            "alerts": alerts,
            "groupLabels": {},
            "commonLabels": dict(common),
            "commonAnnotations": {},
            "externalURL": "http://alertmanager.example",
        }
        data.write_text(json.dumps(document))
        done = amtool(
            "template", "render", f"--template.glob={tmp_path}/*.tmpl", f"--template.data={data}",
            f"--template.type={kind}", f'--template.text={{{{ template "specbudget.{name}" . }}}}',
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.removesuffix("\n")

    return rendered


def one(name: str, annotations: dict[str, str], *, status: str = "firing", **labels: str) -> dict[str, Any]:
    """One alert of the data that a template sees."""
    labels = {"alertname": name, "severity": "page", "specbudget_service": "chat", **labels}
    return {"status": status, "labels": labels, "annotations": annotations}


def test_a_page_on_a_phone(render: Render) -> None:
    """Service, what and number first; then cause, way out, replicas, links; nothing else."""
    said = render("message", one("Burn", BURN, cluster="eu-1", namespace="llm"))
    assert said.splitlines() == [
        "PAGE chat: the acceptance SLO burns fast, 62% of events are bad",
        "62% of the valid events of 1h missed their target length; allowed is 5%.",
        "Likely cause: drafter_changed;",
        "Shortest: chat-7 1.20; chat-9 1.41;",
        "To turn speculation off: restart the engine without --speculative-algorithm.",
        "Runbook: https://runbooks.example/specbudget.md#burn",
        "Dashboard: https://grafana.example/d/acceptance?var-service=chat&from=now-6h",
        "Cluster: eu-1",
        "Namespace: llm",
    ]


def test_what_an_alert_does_not_have_leaves_no_line(render: Render) -> None:
    """Without a cause, links or labels there is one line, and without a summary the alert's name."""
    assert render("message", one("Burn", {"summary": "length 1.9"})) == "PAGE chat: length 1.9"
    assert render("message", one("Burn", {}, severity="", specbudget_service="")) == "Burn"
    assert render("link", one("Burn", {})) == ""


def test_the_link_is_the_dashboard_or_else_the_runbook(render: Render) -> None:
    """A title leads somewhere as soon as there is an address to lead to; a path alone is none."""
    assert render("link", one("Burn", BURN)) == BURN["dashboard_url"]
    assert render("link", one("Burn", {"runbook_url": "https://r"})) == "https://r"
    assert render("link", one("Burn", {"dashboard_url": "/d/a", "runbook_url": "docs/runbook.md#burn"})) == ""


def test_replicas_with_the_same_trouble_are_explained_once(render: Render) -> None:
    """Each replica has a line, each kind of alert its links once, and a long list ends with where the rest is."""
    alerts = [one("High", {"summary": f"pool {n} %", "runbook_url": "#high"}, instance=f"r{n}") for n in range(12)]
    alerts.insert(3, one("High2", {"summary": "other", "runbook_url": "#high2"}, instance="r3"))
    lines = render("text", *alerts).splitlines()
    assert lines[:3] == ["• pool 0 % (r0)", "Runbook: #high", "• pool 1 % (r1)"]
    assert (lines.count("Runbook: #high"), lines.count("Runbook: #high2")) == (1, 1)
    assert len([line for line in lines if line.startswith("•")]) == MOST_ALERTS
    assert lines[-1] == f"… {13 - MOST_ALERTS} more in Alertmanager: http://alertmanager.example"
    assert render("title", *alerts) == "PAGE chat: pool 0 % (r0) (and 12 more)"


def test_a_replica_is_named_by_its_pod_where_it_has_one(render: Render) -> None:
    """That is the name which other commands take."""
    pod = one("High", {"summary": "pool 99 %"}, instance="10.0.0.7:9877", pod="chat-7f9c")
    assert render("title", pod) == "PAGE chat: pool 99 % (chat-7f9c)"
    named = one("High", {"summary": "chat: pool of chat-7f9c 99 %"}, pod="chat-7f9c")
    assert render("title", named) == "PAGE chat: pool of chat-7f9c 99 %"


@pytest.mark.parametrize("name", ["[::1]:9877", "[b-a]", "(replica", "a.b+c", "\\\\q"])
def test_a_name_that_is_no_pattern_breaks_no_message(render: Render, name: str) -> None:
    """A service or a replica of any name is looked for in the summary without being taken for a pattern."""
    odd = one("High", {"summary": f"{name}: high"}, instance=name, specbudget_service=name)
    assert render("title", odd) == f"PAGE {name}: high ({name})"


def test_what_is_over_says_so(render: Render) -> None:
    """In the title when all is over, else in a line of its own."""
    over = one("High", {"summary": "pool 99 %", "runbook_url": "#high"}, status="resolved", instance="r1")
    assert render("message", over).splitlines() == ["RESOLVED chat: pool 99 % (r1)", "Over: pool 99 % (r1)"]
    both = render("message", over, one("Burn", {"summary": "length 1.9"}))
    assert both.splitlines() == ["PAGE chat: length 1.9", "Over: pool 99 % (r1)"]


def test_odd_texts_come_out_as_they_are(render: Render) -> None:
    """Braces of an annotation are no template, and mail escapes what HTML would take for a tag."""
    odd = one("Odd", dict.fromkeys(BURN, ODD))
    assert render("title", odd) == f"PAGE chat: {ODD}"
    assert render("text", odd).count(ODD) == len(BURN) - 1
    mail = render("html", odd, kind="html")
    assert "{{ odd }}" in mail
    assert "<b>&amp;" not in mail.replace("<p><b>", "")
    assert mail.count("<") == 6


@pytest.fixture(scope="module")
def alerting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One process for all tests; each has services of its own."""
    with running(tmp_path_factory.mktemp("alertmanager")) as process:
        yield process


@pytest.mark.slow
def test_a_page_reaches_the_pager_and_the_chat(alerting: Running) -> None:
    """Both get title, text and link, with the secrets read from their files; then both hear that it is over."""
    labels = {"severity": "page", "line": "acceptance", "specbudget_service": "pager"}
    texts = {**BURN, "summary": BURN["summary"].replace("chat", "pager")}
    alerting.post(alert("Burn", annotations=texts, **labels))
    wait_until(lambda: bool(alerting.receiver.of("/pagerduty", "pager") and alerting.receiver.of("/slack", "pager")))
    (event,) = alerting.receiver.of("/pagerduty", "pager")
    (message,) = alerting.receiver.of("/slack", "pager")
    title = "PAGE pager: the acceptance SLO burns fast, 62% of events are bad"
    payload = event["payload"]
    assert (event["event_action"], event["routing_key"]) == ("trigger", "key-of-the-test")
    assert (payload["summary"], payload["severity"]) == (title, "critical")
    assert (payload["component"], payload["class"]) == ("pager", "acceptance")
    assert event["client_url"] == BURN["dashboard_url"]
    text = payload["custom_details"]["firing"]
    assert text.splitlines()[:3] == [
        "62% of the valid events of 1h missed their target length; allowed is 5%.",
        "Likely cause: drafter_changed;",
        "Shortest: chat-7 1.20; chat-9 1.41;",
    ]
    (attachment,) = message["attachments"]
    assert (attachment["title"], attachment["fallback"]) == (title, title)
    assert attachment["title_link"] == BURN["dashboard_url"]
    assert attachment["text"].strip() == text.strip()

    alerting.post(alert("Burn", annotations=texts, resolved=True, **labels))
    wait_until(lambda: len(alerting.receiver.of("/pagerduty", "pager") + alerting.receiver.of("/slack", "pager")) == 4)
    assert alerting.receiver.of("/pagerduty", "pager")[1]["event_action"] == "resolve"
    assert alerting.receiver.of("/slack", "pager")[1]["attachments"][0]["title"].startswith("RESOLVED pager: ")


@pytest.mark.slow
def test_a_page_without_links_is_sent_all_the_same(alerting: Running) -> None:
    """A budget without `links` leaves no empty link in what a pager's service checks."""
    alerting.post(alert("Burn", severity="page", line="acceptance", specbudget_service="linkless"))
    wait_until(lambda: bool(alerting.receiver.of("/pagerduty", "linkless")))
    (event,) = alerting.receiver.of("/pagerduty", "linkless")
    assert event.get("client_url", "") == ""
    assert event.get("links", []) == []


@pytest.mark.slow
def test_a_note_goes_to_the_chat_only_and_says_nothing_when_it_is_over(alerting: Running) -> None:
    """Information wakes nobody, twice less."""
    labels = {"severity": "info", "line": "acceptance", "specbudget_service": "noted"}
    alerting.post(alert("Strong", **labels))
    wait_until(lambda: bool(alerting.receiver.of("/slack", "noted")))
    alerting.post(alert("Strong", resolved=True, **labels))
    # The webhook of the tests hears that it is over.
    assert wait_until(lambda: len(alerting.receiver.of("/webhook/specbudget-info", "noted")) == 2)
    assert len(alerting.receiver.of("/slack", "noted")) == 1
    assert alerting.receiver.of("/pagerduty", "noted") == []
