"""The chart in a real browser: it draws, it can be read without seeing it, it follows keys, toggles and the theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.chromium import Watched

from specbudget.assets import CONTENT_TYPES, asset

ORIGIN = "http://chart.test"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
)
STYLES = ("theme.css", "uplot/uPlot.min.css", "chart.css")
SCRIPTS = ("theme.js", "uplot/uPlot.iife.min.js", "chart.js")
DOCUMENT = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>chart</title>"
    + "".join(f"<link rel='stylesheet' href='{name}'>" for name in STYLES)
    + "".join(f"<script src='{name}'></script>" for name in SCRIPTS)
    + "<main><div id='here'></div></main></html>"
)
HOUR = [1_764_500_000 + 60 * i for i in range(61)]
LENGTHS = [None if 20 <= i < 25 else 4.6 - 0.04 * i for i in range(61)]

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the chart's files, under a policy as strict as that of the status page."""
    context = browser.new_context(viewport={"width": 800, "height": 600}, timezone_id="UTC")
    page = context.new_page()
    watched = Watched.of(page)

    def answer(route: Any) -> None:
        name = route.request.url.removeprefix(f"{ORIGIN}/")
        kind = CONTENT_TYPES.get(name.rpartition(".")[2], "text/html")
        body = asset(name) if name else DOCUMENT
        route.fulfill(body=body, headers={"Content-Type": kind, "Content-Security-Policy": CSP})

    context.route(f"{ORIGIN}/**", answer)
    page.goto(f"{ORIGIN}/")
    yield page
    assert watched.messages == []
    assert all(url.startswith(ORIGIN) for url in watched.requests)
    context.close()


@pytest.fixture
def draw(page: Page) -> Callable[..., None]:
    """Draws a chart; keywords replace or add to its settings."""

    def make(**settings: Any) -> None:
        given = {
            "title": "Acceptance length",
            "times": HOUR,
            "lines": [{"id": "request", "label": "per request", "values": LENGTHS, "colour": 1}],
            "rules": [{"value": 2.6, "label": "target", "colour": "target", "dash": [6, 4]}],
            "format": "length",
            "utc": True,
            **settings,
        }
        page.evaluate(
            "given => { window.chart = specbudgetChart.create(document.getElementById('here'), given); }", given
        )

    return make


def pixels(page: Page) -> int:
    """How many different colours the plot holds."""
    return int(
        page.evaluate(
            """() => {
              const canvas = document.querySelector('.sbchart-plot canvas');
              const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )


def test_it_draws_and_says_what_it_shows(page: Page, draw: Callable[..., None]) -> None:
    """Lines are on the canvas; who sees none reads the range, the last value and the rule in a sentence."""
    draw()
    assert pixels(page) > 10
    slider = page.get_by_role("slider", name="Acceptance length")
    assert slider.get_attribute("aria-valuetext") == "11:53:20 UTC: per request 2.20"
    words = page.locator(".sbchart-words").text_content()
    assert words is not None
    assert "per request between 2.20 and 4.60, at last 2.20; target at 2.60" in words


def test_keys_walk_through_the_values(page: Page, draw: Callable[..., None]) -> None:
    """Home, arrows and End read single values, a gap says that it is not known, Escape goes back to the newest."""
    draw()
    slider = page.get_by_role("slider")
    slider.focus()
    for key, value in (("Home", "4.60"), ("ArrowRight", "4.56"), ("Shift+ArrowRight", "4.16"), ("End", "2.20")):
        page.keyboard.press(key)
        assert str(slider.get_attribute("aria-valuetext")).endswith(f"per request {value}"), key
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    assert str(slider.get_attribute("aria-valuetext")).endswith("per request not known")
    expect(page.locator(".sbchart-read")).to_contain_text("not known")
    page.keyboard.press("Escape")
    assert str(slider.get_attribute("aria-valuetext")).endswith("2.20")


def test_a_key_switches_its_line_off(page: Page, draw: Callable[..., None]) -> None:
    """The button says so, and the line is gone from read-out and sentence; the table keeps every line."""
    draw(
        lines=[
            {"id": "request", "label": "per request", "values": LENGTHS, "colour": 1},
            {"id": "batch", "label": "per batch", "values": [3.0] * 61, "colour": 2, "dash": [6, 4]},
        ]
    )
    button = page.get_by_role("button", name="per batch")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert "batch" not in str(page.locator(".sbchart-words").text_content())
    assert "batch" not in str(page.locator(".sbchart-read").text_content())
    page.get_by_text("Values as a table").click()
    assert page.locator(".sbchart-table th").all_text_contents()[:3] == ["time", "per request", "per batch"]


def test_new_values_keep_the_readers_place(page: Page, draw: Callable[..., None]) -> None:
    """Who reads a moment goes on reading it while the chart moves on."""
    draw()
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    before = slider.get_attribute("aria-valuetext")
    page.evaluate(
        "([times, values]) => window.chart.update({times, lines: {request: values}})",
        [[at + 180 for at in HOUR], [*LENGTHS[3:], 1.9, 1.8, 1.7]],
    )
    assert slider.get_attribute("aria-valuetext") == before


def test_colours_follow_the_theme(page: Page, draw: Callable[..., None]) -> None:
    """What is on the canvas is drawn anew when the reader changes the theme or the system does."""
    draw()
    picture = "document.querySelector('.sbchart-plot canvas').toDataURL()"
    light = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => {picture} !== before", arg=light)
    dark = page.evaluate(picture)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.wait_for_function(f"before => {picture} !== before", arg=dark)
    assert page.evaluate(picture) == light


def test_a_stack_of_areas_reads_single_values(page: Page, draw: Callable[..., None]) -> None:
    """Areas lie upon each other, hatched ones too; the read-out tells each one's own value, not the sum."""
    gib = 1 << 30
    draw(
        stack=True,
        format="bytes",
        rules=[],
        range={"low": 0, "high": 80 * gib},
        lines=[
            {"id": "target", "label": "target KV", "values": [20 * gib] * 61, "colour": 1},
            {"id": "drafter", "label": "drafter KV", "values": [40 * gib] * 61, "colour": 2, "hatch": True},
        ],
        bands=[{"from": 72 * gib, "to": None, "colour": "bad"}],
        spans=[{"from": HOUR[10], "to": HOUR[20], "label": "incident", "colour": "bad"}],
        marks=[{"at": HOUR[30], "label": "restart"}],
    )
    assert pixels(page) > 20
    expect(page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", "11:53:20 UTC: target KV 20.0 GiB, drafter KV 40.0 GiB"
    )
    page.get_by_role("button", name="target KV").click()
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", "11:53:20 UTC: drafter KV 40.0 GiB")


def test_nothing_known_yet_is_said(page: Page, draw: Callable[..., None]) -> None:
    """Without a value the chart stands there and says so; the first values then appear."""
    draw(times=[], lines=[{"id": "request", "label": "per request", "values": []}])
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", "no value yet")
    page.evaluate("window.chart.update({times: [1764500000, 1764500005], lines: {request: [4.5, null]}})")
    assert "at last 4.50" in str(page.locator(".sbchart-words").text_content())
