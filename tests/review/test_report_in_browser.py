"""The report in a real browser, opened from disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.chromium import Watched
from tests.chromium import browser as headless
from tests.review.reviews import sample_review

from specbudget.review.page.render import render

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[2] / ".cache" / "axe-core" / "axe.min.js"
SEVERE = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, one for all tests here."""
    with headless() as one:
        yield one


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on disk."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    whole = sample_review()
    # asked for a little more than there are points, as a review is that does not begin at a step
    path.write_text(render(replace(whole, start=whole.start - 7, end=whole.end + 7)), encoding="utf-8")
    return path


def opened(browser: Browser, file: Path, *, width: int = 1366, scheme: str = "light", scripts: bool = True) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        java_script_enabled=scripts,
    )
    page = context.new_page()
    page.goto(file.as_uri())
    return page


def test_it_draws_every_chart_and_asks_nobody(browser: Browser, file: Path) -> None:
    """Each chart has a canvas and a read-out; the only request is for the file, and no console has a word."""
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    page = context.new_page()
    watched = Watched.of(page)
    page.goto(file.as_uri())
    charts = page.locator("[data-chart]")
    expect(charts.first.locator("canvas").last).to_be_visible()
    assert charts.count() > 8
    for place in range(charts.count()):
        assert charts.nth(place).locator(".sbchart-plot canvas").count() == 1
        assert "UTC" in charts.nth(place).locator(".sbchart-read").inner_text()
    expect(page.locator("#view")).to_have_text("The whole stretch is shown.")
    assert watched.messages == []
    assert watched.requests == [file.as_uri()]
    context.close()


def test_one_zoom_holds_for_all_charts(browser: Browser, file: Path) -> None:
    """A drag over one chart, a finding's button and the keys change what every chart shows, and it is told in words."""
    page = opened(browser, file)
    view = page.locator("#view")
    before = [page.locator("[data-chart]").nth(place).screenshot() for place in (0, 3)]
    plot = page.locator('[data-chart="acceptance"] .u-over')
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=5)
    page.mouse.up()
    expect(view).to_contain_text("Shown:")
    page.mouse.move(5, 5)
    after = [page.locator("[data-chart]").nth(place).screenshot() for place in (0, 3)]
    assert all(one != other for one, other in zip(before, after, strict=True))
    page.get_by_role("button", name="Whole stretch").click()
    expect(view).to_contain_text("whole stretch is shown")
    page.locator('[data-chart="load"] .sbchart-plot').focus()
    page.keyboard.press("+")
    expect(view).to_contain_text("Shown:")
    page.keyboard.press("0")
    expect(view).to_contain_text("whole stretch is shown")
    page.locator("[data-zoom-from]").first.click()
    expect(view).to_contain_text("Shown:")
    page.context.close()


def test_keys_read_values_and_switch_lines(browser: Browser, file: Path) -> None:
    """An arrow on a plot reads the value before in words, and a line's key takes it out of the words."""
    page = opened(browser, file)
    chart = page.locator('[data-chart="acceptance"]')
    plot = chart.locator(".sbchart-plot")
    plot.focus()
    page.keyboard.press("Home")
    assert "per request 4.60" in str(plot.get_attribute("aria-valuetext"))
    page.keyboard.press("End")
    assert "per request 1.90" in str(plot.get_attribute("aria-valuetext"))
    chart.get_by_role("button", name="per request").click()
    assert "per request" not in str(plot.get_attribute("aria-valuetext"))
    page.context.close()


def test_without_scripts_it_is_read_in_words(browser: Browser, file: Path) -> None:
    """Findings, the numbers of each chart, starts, alerts and sources stand in the file itself."""
    page = opened(browser, file, scripts=False)
    expect(page.get_by_role("heading", name="The acceptance length fell from 4.60 to 1.90")).to_be_visible()
    page.locator("#first .summary summary").last.click()
    expect(page.get_by_role("row", name="per request").first).to_contain_text("1.90")
    expect(page.locator(".stage").first).to_be_visible()
    page.context.close()


@pytest.mark.parametrize("width", [360, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_shuts_people_out(browser: Browser, file: Path, width: int, scheme: str) -> None:
    """axe-core finds nothing serious, and nothing is wider than the screen."""
    if not AXE.exists():
        pytest.skip("axe-core is not there: scripts/fetch-axe-core.sh")
    page = opened(browser, file, width=width, scheme=scheme)
    expect(page.locator("[data-chart] canvas").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    session = page.context.new_cdp_session(page)  # the file's own policy lets no other script in
    session.send("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    told = session.send(
        "Runtime.evaluate",
        {
            "expression": "axe.run(document).then(found => JSON.stringify(found.violations.map(v => "
            "[v.id, v.impact, v.nodes[0].html])))",
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    found = json.loads(told["result"]["value"])
    assert [one for one in found if one[1] in SEVERE] == []
    page.context.close()


def test_it_prints(browser: Browser, file: Path) -> None:
    """A printed report has its pages, and no key of the screen on them."""
    page = opened(browser, file, scheme="dark")
    expect(page.locator("[data-chart] canvas").first).to_be_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator(".tools").is_visible()
    assert not page.locator("[data-zoom-from]").first.is_visible()
    page.context.close()
