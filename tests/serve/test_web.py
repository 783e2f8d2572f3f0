"""The sidecar's own HTTP: it reads memory, answers while others work, and shows nothing that it should not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from tests.scripted_engine import CAPTURED, Answer, ScriptedEngine
from tests.serve.polled_desk import Page, write_budget
from tests.serve.running_sidecar import running

from specbudget.budget.reading import load_budget
from specbudget.catalog.sets import Source
from specbudget.serve.desk import Desk
from specbudget.serve.listener import listen
from specbudget.serve.page.board import Board
from specbudget.serve.page.viewers import Viewers
from specbudget.serve.publish import OPENMETRICS, TEXT, Publisher
from specbudget.serve.web import make_app

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3"
)
NOBODY = "http://127.0.0.1:9"


def app_of(publisher: Publisher, folder: Path, *, service: str = "chat") -> web.Application:
    """The routes around a publisher."""
    board = Board(Desk(load_budget(write_budget(folder, NOBODY, service=service)), 0.0))
    return make_app(publisher=publisher, board=board, viewers=Viewers(board), reload=list)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("", TEXT), ("text/plain", TEXT), ("*/*", TEXT), ("text/html", TEXT), (PROMETHEUS_3, OPENMETRICS)],
    ids=["none", "text", "anything", "a browser", "Prometheus"],
)
async def test_the_format_is_negotiated(tmp_path: Path, accept: str, content_type: str) -> None:
    """OpenMetrics to whoever asks for it, the text format to all others, each with its own content type."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        status, told, text = await sidecar.get("/metrics", accept=accept)
    assert (status, told) == (200, content_type)
    assert text.endswith("# EOF\n") == (content_type == OPENMETRICS)
    if content_type == OPENMETRICS:
        assert list(read_openmetrics(text))


async def test_healthy_and_ready_and_the_landing_page(tmp_path: Path) -> None:
    """Both probes answer at once, whatever the engine does; the page links to what there is and names its service."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        for path in ("/-/healthy", "/-/ready"):
            assert (await sidecar.get(path))[0] == 200
        status, content_type, text = await sidecar.get("/")
        assert (status, content_type.split(";")[0]) == (200, "text/html")
        assert 'href="metrics"' in text
        assert "<h1>chat</h1>" in text
        assert (await sidecar.get("/nothing"))[0] == 404


async def test_not_ready_before_anything_is_rendered(tmp_path: Path) -> None:
    """A page without a byte would be read as an engine without series, so readiness waits for the first rendering."""
    publisher = Publisher(
        settle=lambda _: None, collect=lambda _: [], keep=lambda _: {}, store=None, saved=lambda _: None
    )
    runner, port = await listen(app_of(publisher, tmp_path), "127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            async with client.get("/-/ready") as response:
                assert response.status == 503
            async with client.get("/-/healthy") as response:
                assert response.status == 200
            async with client.get("/") as response:
                assert response.status == 200
            async with client.get("/-/reload") as response:
                assert response.status == 405
    finally:
        await runner.cleanup()


async def test_metrics_answer_while_a_backlog_is_read(tmp_path: Path) -> None:
    """Some 60 MB of records wait; page after page is answered before they are counted, and then all of them are."""
    log = tmp_path / "requests"
    log.mkdir()
    lines = next((CAPTURED / "0.5.23" / "requests_dspark_static").glob("*.log")).read_bytes()
    copies = (60 << 20) // len(lines)
    with (log / "sglang-request-metrics-20261129_16.log").open("wb") as file:
        for _ in range(copies):
            file.write(lines)
    expected = copies * lines.count(b"\n")
    budget = write_budget(tmp_path, NOBODY, engine={"request_log": str(log), "poll_interval": "300s"})
    async with running(budget) as sidecar:
        answered_meanwhile = 0
        desk = sidecar.sidecar.desk
        records = desk.ledger.counters["records_total"]

        def counted() -> float:
            return sum(v for labels, v in records.items() if labels[0] == Source.REQUEST_LOG)

        while counted() < expected:
            before = counted()
            status, _, _ = await sidecar.get("/metrics")
            assert status == 200
            answered_meanwhile += 0 < before < expected
        assert answered_meanwhile >= 2
        page = await sidecar.page_when(lambda page: sum(page.of("records_total", source="request_log")) == expected)
        assert sum(page.of("records_total", source="request_log")) == expected
        assert page.value("source_backlog_bytes", source="request_log") == 0


async def test_metrics_answer_while_the_engine_hangs(tmp_path: Path) -> None:
    """An engine that answers nobody delays no page, and no source is up or down before it ended."""
    hanging = {path: Answer(b"", seconds=60) for path in ("/metrics", "/v1/loads", "/server_info")}
    async with ScriptedEngine(hanging) as engine, running(write_budget(tmp_path, engine.url)) as sidecar:
        pages = await asyncio.gather(*(sidecar.page() for _ in range(20)))
        assert all(page.of("source_up") == [] for page in pages)
        assert all(page.state("speculation_state", rank="0") == "no_data" for page in pages)


async def test_what_two_read_at_once_is_one_rendering(tmp_path: Path) -> None:
    """A page is made once and handed out; reading it computes nothing, so it is the same object of bytes."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        page = sidecar.sidecar.publisher.page
        text = (await sidecar.get("/metrics"))[2]
        assert Page(text.encode()).value("config_last_reload_successful") == 1
        if sidecar.sidecar.publisher.page is page:
            assert text.encode() == page.text


async def test_a_taken_port_is_an_error(tmp_path: Path) -> None:
    """The second sidecar on a port says so instead of serving nothing."""
    publisher = Publisher(
        settle=lambda _: None, collect=lambda _: [], keep=lambda _: {}, store=None, saved=lambda _: None
    )
    app = app_of(publisher, tmp_path)
    runner, port = await listen(app, "127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="address already in use"):
            await listen(
                app_of(publisher, tmp_path),
                "127.0.0.1",
                port,
            )
    finally:
        await runner.cleanup()
