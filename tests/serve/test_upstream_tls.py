"""TLS towards the engine in a running sidecar: a file that goes away and comes back, a budget that names a bad one."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.scripted_engine import Answer, ScriptedEngine
from tests.serve.polled_desk import Page, write_budget
from tests.serve.running_sidecar import running


def shown(authority: Authority) -> ssl.SSLContext:
    """The engine's context, with a certificate of this authority."""
    pair = authority.pair("engine")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    return context


async def test_a_ca_file_that_goes_away_is_a_source_that_is_down_and_heals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While a rotation leaves no file the source is down and says so; the sidecar goes on, and the file mends it."""
    authority = Authority(tmp_path)
    answers = {"/metrics": Answer(b"sglang:num_running_reqs 3\n")}
    async with ScriptedEngine(answers, tls=shown(authority)) as engine:
        path = write_budget(tmp_path, engine.url, engine={"tls": {"ca_file": "ca.pem"}, "poll_interval": "1s"})
        async with running(path) as sidecar:

            async def turns(up: int) -> Page:
                page = await sidecar.page_when(lambda page: page.value("source_up", source="metrics") == up)
                assert page.value("source_up", source="metrics") == up
                return page

            await turns(1)
            (tmp_path / "ca.pem").rename(tmp_path / "away.pem")
            await turns(0)
            (tmp_path / "away.pem").rename(tmp_path / "ca.pem")
            page = await turns(1)
            assert page.value("source_errors_total", source="metrics", reason="secret") >= 1
            assert page.value("config_last_reload_successful") == 1
    assert f"engine.tls.ca_file: {tmp_path}/ca.pem cannot be read: No such file or directory" in caplog.text


async def test_a_new_budget_that_names_a_bad_ca_file_leaves_the_old_in_force(tmp_path: Path) -> None:
    """As any other fault of a new file; but a budget that says the same as before is no reason to look."""
    authority = Authority(tmp_path)
    answers = {"/metrics": Answer(b"sglang:num_running_reqs 3\n")}
    async with ScriptedEngine(answers, tls=shown(authority)) as engine:
        path = write_budget(tmp_path, engine.url, engine={"tls": {"ca_file": "ca.pem"}, "poll_interval": "1s"})
        async with running(path) as sidecar:
            write_budget(tmp_path, engine.url, engine={"tls": {"ca_file": "none.pem"}, "poll_interval": "1s"})
            status, text = await sidecar.post("/-/reload")
            assert status == 400
            assert f"{path}: engine.tls.ca_file: {tmp_path}/none.pem cannot be read" in text
            assert sidecar.sidecar.desk.loaded.budget.engine.tls.ca_file == "ca.pem"
            (tmp_path / "ca.pem").rename(tmp_path / "away.pem")
            write_budget(tmp_path, engine.url, engine={"tls": {"ca_file": "ca.pem"}, "poll_interval": "2s"})
            assert (await sidecar.post("/-/reload"))[0] == 200
