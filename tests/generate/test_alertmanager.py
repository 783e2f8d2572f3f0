"""Who is notified by the generated configuration, and of what kind of file it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.generate.running_alertmanager import amtool
from tests.prometheus_tools import Suite

from specbudget.budget.model import Budget
from specbudget.budget.reading import load_budget
from specbudget.catalog.alerts import ALERT_LINES, ALERTS, Severity
from specbudget.catalog.labels import DEFAULT_LABELS
from specbudget.catalog.lines import LINES
from specbudget.generate import alertmanager
from specbudget.generate.command import run_generate
from specbudget.generate.files import write

AGES = pytest.mark.parametrize("suite", Suite)
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "budget.yaml"


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    """The configuration with its template beside it."""
    write(alertmanager.files(Budget(service="any")), tmp_path)
    return tmp_path / alertmanager.CONFIG


def leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every plain value with its key."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    else:
        yield key, str(value)


def test_the_committed_files_are_those_of_the_example() -> None:
    """`specbudget generate alertmanager --budget examples/budget.yaml --out .` writes them anew."""
    assert run_generate("alertmanager", EXAMPLE, ROOT, check=True) == 0


def test_a_file_that_somebody_changed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check names the file and the command, and changes nothing."""
    assert run_generate("alertmanager", EXAMPLE, tmp_path, check=False) == 0
    assert run_generate("alertmanager", EXAMPLE, tmp_path, check=True) == 0
    changed = tmp_path / alertmanager.CONFIG
    changed.write_text("route: {}\n")
    capsys.readouterr()
    assert run_generate("alertmanager", EXAMPLE, tmp_path, check=True) == 1
    assert str(changed) in capsys.readouterr().err
    assert changed.read_text() == "route: {}\n"


def test_the_labels_that_tell_services_apart_are_the_budgets() -> None:
    """Groups, inhibitions and the end of a message follow `rules.labels`, as the alerts do."""
    labels = ("region", "specbudget_service")
    files = alertmanager.files(Budget.model_validate({"service": "any", "rules": {"labels": labels}}))
    document = yaml.safe_load(files[alertmanager.CONFIG])
    assert tuple(document["route"]["group_by"]) == labels
    assert [rule["equal"] for rule in document["inhibit_rules"]] == [[*labels, "line"], [*labels, "instance"]]
    assert "Region: {{ . }}" in files[alertmanager.TEMPLATES]
    assert "namespace" not in files[alertmanager.TEMPLATES]


def test_one_file_serves_every_service() -> None:
    """It names no service and holds nothing of a budget but the labels by which services are told apart."""
    example = load_budget(EXAMPLE).budget
    assert alertmanager.files(example) == alertmanager.files(Budget(service="other"))
    assert example.service not in "".join(alertmanager.files(example).values())


@AGES
def test_amtool_finds_no_fault(generated: Path, suite: Suite) -> None:
    """`amtool check-config` of every age, the template included."""
    checked = amtool("check-config", generated, suite=suite)
    assert checked.returncode == 0, checked.stderr
    assert "1 templates" in checked.stdout


def test_amtool_finds_no_fault_in_the_other_receivers(generated: Path) -> None:
    """What stands as a comment at the end can be used as it stands."""
    comment = generated.read_text().rpartition("in a file 0.28:\n")[2]
    others = yaml.safe_load("\n".join(line.removeprefix("#")[1:] for line in comment.splitlines()))
    assert set(others) == {"webhook_configs", "telegram_configs", "email_configs"}
    document = yaml.safe_load(generated.read_text())
    document["receivers"][0].update(others)
    generated.write_text(yaml.safe_dump(document))
    checked = amtool("check-config", generated)
    assert checked.returncode == 0, checked.stderr


def test_every_secret_is_in_a_file() -> None:
    """No address that is a secret and no key, only the names of files in one folder."""
    document = yaml.safe_load(alertmanager.config())
    values = [*leaves(document), *leaves(alertmanager.OTHER_RECEIVERS)]
    assert {key for key, _ in values} & {"api_url", "slack_api_url", "url", "routing_key", "bot_token"} == set()
    in_files = [value for key, value in values if key.endswith("_file")]
    assert len(in_files) >= 5
    assert all(Path(value).parent == Path(alertmanager.SECRETS) for value in in_files)


@AGES
@pytest.mark.parametrize("line", ALERT_LINES)
@pytest.mark.parametrize("severity", Severity)
def test_every_alert_has_its_receiver(generated: Path, severity: str, line: str, suite: Suite) -> None:
    """Pages and notes by severity, tickets by line; each exactly one."""
    expected = f"specbudget-ticket-{line}" if severity == "ticket" else f"specbudget-{severity}"
    routed = amtool(
        "config", "routes", "test", f"--config.file={generated}", f"--verify.receivers={expected}",
        f"severity={severity}", f"line={line}", "specbudget_service=chat", "alertname=Any", suite=suite,
    )  # fmt: skip
    assert (routed.returncode, routed.stdout.split()) == (0, [expected]), routed.stderr


@pytest.mark.parametrize("labels", [["severity=page"], ["severity=critical", "line=kv"], ["severity=ticket", "line=x"]])
def test_what_no_route_knows_is_a_ticket(generated: Path, labels: list[str]) -> None:
    """A label that is missing or unheard of loses no alert."""
    routed = amtool("config", "routes", "test", f"--config.file={generated}", *labels)
    assert routed.stdout.split() == ["specbudget-ticket"]


def test_no_receiver_is_without_a_route_and_none_is_missing() -> None:
    """Each receiver is named once and each has its title and text."""

    def named(route: dict[str, Any]) -> Iterator[str]:
        yield route["receiver"]
        for child in route.get("routes", ()):
            yield from named(child)

    document = yaml.safe_load(alertmanager.config())
    receivers = [target["name"] for target in document["receivers"]]
    assert len(set(receivers)) == len(receivers)
    assert set(named(document["route"])) == set(receivers)


def test_no_inhibition_has_a_page_as_its_target(generated: Path) -> None:
    """A ticket never silences a page, nor does anything else; every rule compares the whole service."""
    for rule in yaml.safe_load(generated.read_text())["inhibit_rules"]:
        assert {'severity="ticket"', 'severity!="page"'} & set(rule["target_matchers"])
        assert set(DEFAULT_LABELS) < set(rule["equal"])


def test_every_alert_of_the_catalog_has_a_route() -> None:
    """The lines that are routed are the five and the sidecar, whatever order the files list them in."""
    assert sorted(ALERT_LINES) == sorted([*(line.id for line in LINES), "sidecar"])
    assert {alert.line for alert in ALERTS} <= set(ALERT_LINES)


def test_the_engine_that_is_down_is_told_with_its_replica() -> None:
    """What silences a replica's tickets is an alert of the catalog that keeps the replica, or it would silence none."""
    sources = [rule["source_matchers"][0] for rule in yaml.safe_load(alertmanager.config())["inhibit_rules"]]
    (named,) = (source.partition('"')[2].rstrip('"') for source in sources if source.startswith("alertname"))
    (alert,) = (alert for alert in ALERTS if alert.name == named)
    assert {"instance", "pod"} <= set(alert.keeps)
    assert alert.severity is not Severity.PAGE
