"""The status page in a real browser, beside a real sidecar and the stand-in engine."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.chromium import Watched
from tests.chromium import browser as headless
from tests.e2e.deployment import Deployment, deployed, free_port, started, stop

from specbudget.catalog import series
from specbudget.demo.readings import fetch

AXE = Path(__file__).parents[2] / ".cache" / "axe-core" / "axe.min.js"
SEVERE = ("serious", "critical")
PATIENCE = 60_000.0
"""Milliseconds until a change that should come is given up: the machine may be busy."""

SPEED = 4.0

UNHURRIED = 1.5
"""Slow enough that the page is open before the trouble begins, on a busy machine too."""

LISTEN = """() => {
  window.heard = [];
  const said = document.getElementById("said");
  new MutationObserver(() => window.heard.push(said.textContent)).observe(said, {childList: true, characterData: true});
}"""
"""Notes what a screen reader is told."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, one for all tests here."""
    with headless() as one:
        yield one


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Opens a page of this host; in the end nothing was said in any console, and nobody else was asked."""
    contexts: list[BrowserContext] = []
    seen: list[tuple[str, Watched]] = []

    def make(url: str, *, width: int = 1366, height: int = 900, refused: bool = False, **options: Any) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        watched = Watched.of(page)
        if not refused:
            seen.append((url, watched))
        page.goto(url)
        return page

    yield make
    for url, watched in seen:
        assert watched.messages == []
        assert watched.requests
        assert all(asked.startswith(url) for asked in watched.requests)
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment under pressure for the tests that only look."""
    with deployed("kv-pressure", tmp_path_factory.mktemp("steady"), speed=SPEED) as running:
        running.wait_for("requests are counted", lambda reading: reading.total(series.VERIFY_STEPS) > 0, 60.0)
        running.wait_for("the cost is known", lambda reading: reading.all(series.KV_COST_TOKENS) != {}, 60.0)
        yield running


def line_in(page: Page, line: str, state: str) -> Any:
    """The ledger's row of a line while it is in a state."""
    return page.locator(f"#line-{line} tr.line[data-state='{state}']")


@pytest.mark.parametrize(
    ("scenario", "line", "title", "state", "word"),
    [
        ("acceptance-drop", "acceptance", "Acceptance", "breach", "breach"),
        ("kv-pressure", "kv", "KV pools", "at_risk", "at risk"),
    ],
)
def test_a_state_changes_on_the_open_page(
    tmp_path: Path, visit: Open, scenario: str, line: str, title: str, state: str, word: str
) -> None:
    """The demo as a user starts it: the open page turns by itself, in row, head, title and to a screen reader."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    arguments = ["--scenario", scenario, "--listen", f"127.0.0.1:{port}", "--dir", str(tmp_path / "demo")]
    with started(tmp_path, "demo", "demo", *arguments, "--speed", str(UNHURRIED)) as demo:
        page = visit_when_up(visit, url)
        page.evaluate(LISTEN)
        assert line_in(page, line, state).count() == 0
        expect(line_in(page, line, state)).to_have_count(1, timeout=PATIENCE)
        expect(page.locator(".verdict")).to_have_attribute("data-state", state)
        expect(page.locator(".verdict")).to_contain_text(title)
        expect(page).to_have_title(re.compile(f"^{word} · "))
        # gone after a reload
        assert any(f"{title}: {word}" in told for told in page.evaluate("window.heard"))
        expect(page.locator("#connection")).to_have_attribute("data-connection", "live")
        expect(page.get_by_role("slider", name="Acceptance length")).to_have_attribute(
            "aria-valuetext", re.compile(r"per request \d")
        )
        page.close()
        stop(demo)


def visit_when_up(visit: Open, url: str) -> Page:
    """Opens the page as soon as somebody answers."""
    end = time.monotonic() + 60
    while fetch(url.rstrip("/")) is None:
        assert time.monotonic() < end, "the demo does not answer"
        time.sleep(0.1)
    return visit(url)


def test_a_lost_connection_is_told_and_mended(tmp_path: Path, visit: Open) -> None:
    """Without the sidecar the page says so, with the time of what it shows, and looks old; then it goes on."""
    with deployed("steady", tmp_path, speed=SPEED) as running:
        running.wait_for("it answers", lambda _: True)
        page = visit(running.url + "/", refused=True)
        connection = page.locator("#connection")
        expect(connection).to_have_attribute("data-connection", "live")
        stop(running.sidecar)
        expect(connection).to_have_text(
            re.compile(r"^Connection lost, last seen \d\d:\d\d:\d\d UTC$"), timeout=PATIENCE
        )
        expect(page.locator("html[data-stale]")).to_have_count(1)
        listen = running.url.removeprefix("http://")
        budget, state = running.folder / "budget.yaml", running.folder / "state"
        again = ["serve", "--budget", str(budget), "--listen", listen, "--state", str(state)]
        with started(tmp_path, "again", *again):
            expect(connection).to_have_attribute("data-connection", "live", timeout=PATIENCE)
            expect(page.locator("html[data-stale]")).to_have_count(0)
            page.close()


def test_the_page_is_whole_without_scripts(steady: Deployment, visit: Open) -> None:
    """Who runs none reads states, numbers, the claim, the start and the trace, and is told how to read again."""
    page = visit(steady.url + "/", java_script_enabled=False)
    text = " ".join(page.locator("body").inner_text().split())
    for said in (
        "takes 71.7",
        "Artifacts",
        "KV pools",
        "Cold start",
        "target weights",
        "per request between",
        "Read again",
    ):
        assert said in text, said
    assert page.get_by_role("button").count() == 0
    assert page.locator("svg[aria-label^='Acceptance length: ']").is_visible()


def test_the_theme_is_chosen_and_remembered(steady: Deployment, visit: Open) -> None:
    """The browser's wish holds until the reader chooses; the choice is there after a reload."""
    page = visit(steady.url + "/", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    toggle = page.get_by_role("button", name="Colours")
    toggle.click()
    expect(toggle).to_contain_text("Light")
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    expect(page.get_by_role("button", name="Colours")).to_contain_text("Light")
    assert page.evaluate(ground) == light
    page.close()


def test_everything_is_reached_by_keyboard(steady: Deployment, visit: Open) -> None:
    """From the top with the tab key: the skip link first, then controls, the chart, what can be opened, the links."""
    page = visit(steady.url + "/")
    expect(page.get_by_role("slider")).to_be_visible()
    order = []
    for _ in range(40):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "() => { const a = document.activeElement;"
                " return a.getAttribute('role') ?? (a.localName === 'a' ? a.textContent.trim() : a.localName); }"
            )
        )
    assert order[0] == "To the five lines"
    for wanted in ("button", "slider", "summary", "Metrics", "Status as JSON"):
        assert wanted in order, (wanted, order)
    page.close()


def test_an_update_keeps_what_the_reader_opened(steady: Deployment, visit: Open) -> None:
    """Details that are open and the element that has the focus stay so while the page moves on."""
    page = visit(steady.url + "/")
    expect(page.locator("#connection")).to_have_attribute("data-connection", "live")
    details = page.locator("#region-start details")
    details.locator("summary").click()
    # a page that comes back gets all of itself anew
    page.evaluate("document.querySelector('#region-start h2').textContent = 'old'")
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator("#region-start h2")).to_have_text("Last start", timeout=PATIENCE)
    expect(details).to_have_attribute("open", "")
    assert page.evaluate("document.activeElement.localName") == "summary"
    page.close()


@pytest.mark.parametrize("width", [360, 1920])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_anybody(steady: Deployment, visit: Open, theme: str, width: int) -> None:
    """axe-core finds nothing serious in either theme, on a phone and on a wall; and no page is wider than it."""
    if not AXE.exists():
        missing = "no axe-core here: scripts/fetch-axe-core.sh"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    page = visit(steady.url + "/", width=width, height=800, color_scheme=theme)
    expect(page.locator("#connection")).to_have_attribute("data-connection", "live")
    expect(page.get_by_role("slider")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # over the debugger: the page's own policy lets no such script in
    debugger = page.context.new_cdp_session(page)
    debugger.send("Runtime.evaluate", {"expression": AXE.read_text()})
    told = debugger.send(
        "Runtime.evaluate",
        {"expression": "axe.run(document).then(JSON.stringify)", "awaitPromise": True, "returnByValue": True},
    )
    found = json.loads(told["result"]["value"])
    assert len(found["passes"]) > 20
    severe = {
        violation["id"]: [node["html"][:200] for node in violation["nodes"]]
        for violation in found["violations"]
        if violation["impact"] in SEVERE
    }
    assert severe == {}
    page.close()


def test_who_wants_no_motion_gets_none(steady: Deployment, visit: Open) -> None:
    """Bars move for those who did not say otherwise, and for nobody else."""
    duration = "getComputedStyle(document.querySelector('.used .fill')).transitionDuration"
    assert visit(steady.url + "/", reduced_motion="reduce").evaluate(duration) == "0s"
    assert visit(steady.url + "/", reduced_motion="no-preference").evaluate(duration) != "0s"


def test_it_prints_in_ink_on_paper(steady: Deployment, visit: Open) -> None:
    """From a dark screen the printed page is light, without controls, and on few sheets."""
    page = visit(steady.url + "/", color_scheme="dark")
    expect(page.get_by_role("slider")).to_be_visible()
    document = page.pdf(format="A4")
    assert document.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 4
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.get_by_role("button", name="Colours").is_visible()
    page.close()
