"""The page as it leaves the sidecar: whole without a script, honest about what is not known, and safe to open."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from tests.serve.page.statuses import NOW, a_desk, a_line, a_model, a_start, a_status, rendered

from specbudget.catalog.lines import LINES
from specbudget.catalog.memory_names import PART_NAMES
from specbudget.domain.device_memory import MemoryPart
from specbudget.serve.headline import headline
from specbudget.serve.page import render
from specbudget.serve.page.timeline import BASES, ROW_NAMES
from specbudget.serve.page.tree import tree
from specbudget.serve.page.words import STATE_WORDS
from specbudget.serve.status import status
from specbudget.serve.status_model import Cause, FindingStatus, LinksStatus, MemoryStatus, PairStatus, SourceStatus

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def words(page: str) -> str:
    """What a reader sees: the text without tags, spaces as one."""
    body = re.sub(r"<[^>]+>", " ", page[page.index("<body>") :])
    return re.sub(r"\s+", " ", body)


@pytest.mark.parametrize("state", ["ok", "at_risk", "breach", "unknown", "not_budgeted"])
def test_each_state_is_a_sign_and_a_word(tmp_path: Path, state: str) -> None:
    """A state is never told by colour alone: its own sign and its word stand in the head and in every row of it."""
    page = rendered(tmp_path, a_status((state,) * 5))
    assert page.count(f'href="#i-{state}"') >= 1 + 2 * len(LINES)
    assert f'id="i-{state}"' in page
    assert words(page).count(STATE_WORDS[state]) >= 1 + 2 * len(LINES)
    others = [other for other in STATE_WORDS if other != state]
    assert not any(f'href="#i-{other}"' in page for other in others)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("ok",) * 5, "All 5 lines are within their limits."),
        (
            ("ok", "not_budgeted", "ok", "not_budgeted", "ok"),
            "Every line that has a limit is within it; KV pools and Staging have none.",
        ),
        (("not_budgeted",) * 5, "No line has a limit, so there is nothing to hold the numbers against."),
        (
            ("ok", "ok", "breach", "ok", "ok"),
            "Acceptance is in breach: length reached is 667 tokens, at least 1,000 tokens is budgeted.",
        ),
        (("ok", "at_risk", "breach", "unknown", "ok"), "Also KV pools at risk. Also Staging not known."),
        (
            ("ok", "at_risk", "ok", "ok", "ok"),
            "KV pools are at risk: target's pool is 950 B, at most 1000 B is budgeted.",
        ),
        (("breach", "breach", "ok", "ok", "ok"), "Artifacts and KV pools are in breach. Artifacts: target on disk is"),
        (("ok", "ok", "ok", "unknown", "ok"), "Staging is not known: nobody tells."),
    ],
)
def test_one_sentence_says_how_it_stands(tmp_path: Path, states: tuple[str, ...], said: str) -> None:
    """The worst line, its number and its limit, and what else is wrong; the page and the JSON say the same."""
    told = a_status(states)
    assert said in told.sentence
    assert told.sentence in words(rendered(tmp_path, told)).replace("&#39;", "'")


def test_speculation_that_is_off_is_the_reason() -> None:
    """Where all budgets are fine and the line is not, the sentence says what speculation does."""
    lines = [a_line(i, "ok") for i in range(5)]
    lines[2] = a_line(2, "at_risk", state_of_budgets="ok")
    ranks = [msgspec.structs.replace(a_status().acceptance.ranks[0], speculation="off")]
    assert headline(lines, ranks)[1] == "Acceptance is at risk: speculation is off on rank 0."


def test_the_claim_of_the_product(tmp_path: Path) -> None:
    """What the drafter's KV takes of the target's budget, with the numbers behind it."""
    said = words(rendered(tmp_path, a_status()))
    assert "The drafter’s KV takes 71.7 % of the target’s token budget." in said
    assert "A token costs 8,064 B of KV for the target and 20,480 B for the drafter" in said
    assert "hold 154,112 tokens more than the 49,152 that it holds" in said


def test_nothing_known_yet(tmp_path: Path) -> None:
    """Before anything is read the page stands, says of each thing why it is not known, and shows no zero for it."""
    desk = a_desk(
        tmp_path,
        budget={
            "artifacts": {"target": "1GiB"},
            "kv": {"min_target_tokens": 1000},
            "acceptance": {"target_length": 2.6},
            "staging": {"cold_start": "90s"},
        },
        target={"path": "nothing"},
    )
    told = status(desk, NOW)
    said = words(rendered(tmp_path, told))
    assert told.state == "unknown"
    for why in (
        "No start seen",
        "too few valid events in the last hour",
        "the engine does not say how large its pool is",
        "no start of the engine was observed",
        "What the drafter’s KV costs the target is not known",
        "no rank of the engine answers",
        "no verify step in the last hour",
        "is not read yet",
    ):
        assert why in said, why
    assert not re.search(r" 0(?:\.0)?\s(?:B|%|s|tokens)", said)


def test_what_is_missing_of_memory_is_named(tmp_path: Path) -> None:
    """A use that nobody tells the size of is named, and so is a total that the budget does not give."""
    parts = {"target_weights": 1 << 30}
    without = MemoryStatus(rank="0", total_bytes=None, parts=parts, missing=["target_state"])
    assert "Not known: target recurrent state" in words(rendered(tmp_path, a_status(memory=[without])))
    whole = MemoryStatus(rank="0", total_bytes=None, parts=parts, missing=[])
    assert "names no engine.gpu_memory" in words(rendered(tmp_path, a_status(memory=[whole]))).replace(" . ", ".")


def test_several_ranks_have_a_bar_each(tmp_path: Path) -> None:
    """Eight data-parallel ranks are eight bars, each with its figures."""
    memory = [
        MemoryStatus(rank=str(rank), total_bytes=10, parts={"target_weights": 4, "free": 6}, missing=[])
        for rank in range(8)
    ]
    page = rendered(tmp_path, a_status(memory=memory))
    assert len(re.findall(r'class="bar" width="100%" height="34"', page)) == 8
    assert "Rank 7 by use" in page


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (a_start(), "Cold start 6.0 s."),
        (a_start(over_budget=True), "Cold start 6.0 s, over its budget."),
        (a_start(ready=False, cold_start_seconds=30.0), "Starting for 30 s."),
        (a_start(ready=False, stuck=True), "Stuck: the log tells nothing new of this start."),
        (a_start(cold_start_seconds=None), "how long the cold start took is not known"),
        (a_start(stages=[]), "Cold start 6.0 s."),
        (a_start(attempts=2), "attempt 2 since the last start that came to a generation"),
    ],
    ids=["over", "over budget", "going on", "stuck", "no length", "no stages", "attempts"],
)
def test_a_start_is_told_as_far_as_it_is_known(tmp_path: Path, start: object, said: str) -> None:
    """The head of the timeline says how the start went, also where stages or lengths are missing."""
    assert said in words(rendered(tmp_path, a_status(start=start)))


def test_stages_are_rows_by_artifact(tmp_path: Path) -> None:
    """Target, drafter and engine have a row; a stage of no length is there; moments at one time share a label."""
    page = rendered(tmp_path, a_status())
    assert re.findall(r'class="lane-name">(\w+)<', page) == ["target", "drafter", "engine"]
    assert page.count('class="stage"') == 3
    assert "first generation, ready 6.0 s" in page or "ready, first generation 6.0 s" in page


def test_nothing_that_was_told_becomes_markup(tmp_path: Path) -> None:
    """Whatever an engine, a checkpoint or the budget says is text, in the page and in what is sent to open ones."""
    ranks = [msgspec.structs.replace(a_status().acceptance.ranks[0], rank=HOSTILE, speculation=HOSTILE)]
    told = a_status(
        ("breach", "unknown", "at_risk", "ok", "ok"),
        service=HOSTILE,
        sentence=HOSTILE,
        engine=msgspec.structs.replace(
            a_status().engine, version=HOSTILE, algorithm=HOSTILE, role=HOSTILE, kind=HOSTILE
        ),
        models=[msgspec.structs.replace(a_model(a, 1), name=HOSTILE) for a in ("target", "drafter")],
        acceptance=msgspec.structs.replace(
            a_status().acceptance, ranks=ranks, source=HOSTILE, causes=[Cause(cause=HOSTILE, evidence=HOSTILE)]
        ),
        memory=[MemoryStatus(rank=HOSTILE, total_bytes=None, parts={"free": 1}, missing=[])],
        pair=PairStatus(
            results={HOSTILE: 1},
            findings=[FindingStatus(id=HOSTILE, result=HOSTILE, message=HOSTILE)],
            due=[HOSTILE],
        ),
        sources=[SourceStatus(source=HOSTILE, up=False, last_success=NOW, reason=HOSTILE, problem=HOSTILE)],
        links=LinksStatus(runbook=HOSTILE, dashboards="javascript:alert(1)"),
        start=a_start(mode=HOSTILE, order=HOSTILE, warmup=HOSTILE),
    )
    told.lines[1].budgets[0].why = HOSTILE
    page = rendered(tmp_path, told)
    assert page.count("<script") == 1 + len(render.SCRIPTS)
    assert "<img" not in page
    assert "alert(1)&lt;/script&gt;" in page
    assert 'href="javascript' not in page
    for markup in render.regions(a_desk(tmp_path), told).values():
        assert not any(name.startswith("on") or name == "style" for name in _attributes(tree(markup)))


def _attributes(nodes: list[object]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, list):
            names |= set(node[1]) | _attributes(node[2:])
    return names


def test_links_of_the_budget(tmp_path: Path) -> None:
    """Runbook and dashboards are links where the budget names them; the runbook is at hand when something is wrong."""
    links = LinksStatus(runbook="https://wiki.example/runbook.md", dashboards="https://grafana.example/d")
    page = rendered(tmp_path, a_status(("breach",) * 5, links=links))
    assert page.count('href="https://wiki.example/runbook.md"') == 2
    assert 'href="https://grafana.example/d"' in page
    assert 'href="metrics"' in page
    assert 'href="api/v1/status"' in page


def test_every_word_of_a_closed_set_has_a_name() -> None:
    """A new use of memory, artifact or basis does not reach the page without a name."""
    assert set(PART_NAMES) == set(MemoryPart)
    assert len(ROW_NAMES) == 3
    assert len(BASES) == 4


def test_the_page_has_no_style_and_no_script_of_its_own(tmp_path: Path) -> None:
    """The policy forbids both, so that what is written into the page would silently not work."""
    page = rendered(tmp_path, a_status(("breach", "unknown", "at_risk", "ok", "not_budgeted")))
    assert " style=" not in page
    assert "<style" not in page
    assert re.search(r"<script(?![^>]*\ssrc=)", page) is None
    assert re.search(r"\son\w+=", page) is None


def test_every_file_that_the_page_names_is_served(tmp_path: Path) -> None:
    """Each address of an asset is one of those that the route knows, and names the build."""
    page = rendered(tmp_path, a_status())
    named = re.findall(r'(?:href|src)="assets/([^"?]+)\?v=([0-9a-f]+)"', page)
    assert {name for name, _ in named} <= set(render.SERVED)
    assert {digest for _, digest in named} == {render.build()}
    assert len(named) == len(render.STYLES) + len(render.SCRIPTS) + 2
