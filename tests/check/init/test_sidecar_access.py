"""A sidecar behind TLS and a password, reached by `init` as a scraper reaches it; and why one is not, in words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.scripted_engine import Answer, ScriptedEngine
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import running
from tests.serve.web_client import NOBODY, USERS, written

from specbudget.check.init import sidecar_http
from specbudget.check.init.sidecar import read_sidecar
from specbudget.check.init.sidecar_http import PASSWORD_VARIABLE, SidecarAccess, SidecarSilent
from specbudget.cli import main

TLS = "tls_server_config: {cert_file: web.crt, key_file: web.key}\n"
MUTUAL = (
    "tls_server_config: {cert_file: web.crt, key_file: web.key, client_auth_type: RequireAndVerifyClientCert, "
    "client_ca_file: ca.pem}\n"
)
REACHED = "has counted no request yet"
"""What a sidecar that was just started answers to whoever may read it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A budget for an engine that nobody runs, an authority, its certificate web.crt and one of a client."""
    write_budget(tmp_path, NOBODY)
    authority = Authority(tmp_path)
    authority.pair("web")
    authority.pair("client")
    Authority(tmp_path, "other")
    (tmp_path / "password").write_text("open sesame\n")
    (tmp_path / "wrong").write_text("open sesam\n")
    return tmp_path


async def told(folder: Path, web: str | None, user: str = "", scheme: str = "", **files: str) -> str:
    """Why the sidecar behind this web configuration gave no lengths."""
    config = None if web is None else written(folder, web)
    async with running(folder / "budget.yaml", web=config) as sidecar:
        own, _, rest = sidecar.url.partition("://")
        access = SidecarAccess(
            url=f"{scheme or own}://{user}{rest}", **{name: folder / file for name, file in files.items()}
        )
        with pytest.raises(SidecarSilent) as caught:
            await asyncio.to_thread(read_sidecar, access)
        return str(caught.value)


@pytest.mark.parametrize(
    ("web", "user", "files", "words"),
    [
        pytest.param(TLS, "", {"ca": "ca.pem"}, REACHED, id="a certificate of the named authority"),
        pytest.param(TLS, "", {}, "give its authority with --sidecar-ca", id="an authority that nobody named"),
        pytest.param(TLS, "", {"ca": "other.pem"}, "certificate is not trusted", id="another authority"),
        pytest.param(TLS, "", {"ca": "none.pem"}, "--sidecar-ca: ", id="a file that is not there"),
        pytest.param(USERS, "watcher@", {"password_file": "password"}, REACHED, id="the right password"),
        pytest.param(USERS, "", {}, "asks for a user and a password (401)", id="no password"),
        pytest.param(
            USERS, "watcher@", {"password_file": "wrong"}, "does not take this user and password", id="a wrong one"
        ),
        pytest.param(USERS, "watcher@", {}, "no password for watcher", id="a user without one"),
        pytest.param(USERS, "", {"password_file": "password"}, "whose? write the user", id="a password of nobody"),
        pytest.param(USERS, "watcher@", {"password_file": "none"}, "cannot be read", id="no such file"),
        pytest.param(
            TLS + USERS, "watcher@", {"ca": "ca.pem", "password_file": "password"}, REACHED, id="both together"
        ),
        pytest.param(
            MUTUAL, "", {"ca": "ca.pem", "cert": "client.crt", "key": "client.key"}, REACHED, id="a certificate"
        ),
        pytest.param(
            MUTUAL, "", {"ca": "ca.pem"}, "--sidecar-cert and --sidecar-key", id="none where one is asked for"
        ),
        pytest.param(MUTUAL, "", {"ca": "ca.pem", "cert": "client.crt"}, "belong together", id="half of one"),
    ],
)
async def test_a_protected_sidecar_is_reached_as_by_its_scraper(
    folder: Path, web: str, user: str, files: dict[str, str], words: str
) -> None:
    """What is given opens it; what is missing is named with the option that gives it."""
    said = await told(folder, web, user, **files)
    assert words in said
    assert "sesam" not in said


@pytest.mark.parametrize(
    ("web", "scheme", "words"),
    [
        pytest.param(TLS, "http", "where it speaks TLS, write https://", id="http to one that speaks TLS"),
        pytest.param(None, "https", "does not speak TLS: write http://", id="https to one that does not"),
    ],
)
async def test_the_wrong_scheme_is_told(folder: Path, web: str | None, scheme: str, words: str) -> None:
    """The words name the scheme to write."""
    assert words in await told(folder, web, scheme=scheme, ca="ca.pem")


async def test_the_password_may_stand_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file comes first where both are given."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "open sesame")
    assert REACHED in await told(folder, USERS, "watcher@")
    assert "does not take" in await told(folder, USERS, "watcher@", password_file="wrong")


def test_a_password_in_the_address_is_refused_and_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever lists processes would read it: the line says where it belongs."""
    words = ["init", "--target", "x", "--sidecar", "https://watcher:open-sesame@127.0.0.1:9/"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "--sidecar https://watcher@127.0.0.1: no password belongs into an address" in said
    assert "--sidecar-password-file" in said
    assert PASSWORD_VARIABLE in said
    assert "open-sesame" not in said


def test_access_to_no_sidecar_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """An authority without an address does nothing, and says so."""
    assert main(["init", "--target", "x", "--sidecar-ca", "ca.pem"]) == 2
    assert "--sidecar-ca: of which sidecar?" in capsys.readouterr().err


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def refused(access: SidecarAccess) -> str:
    """Why nothing was read."""
    with pytest.raises(SidecarSilent) as caught:
        read_sidecar(access)
    return str(caught.value)


def test_a_sidecar_that_is_not_there_is_told_in_words(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No listener, no such host, no answer: never the name of an exception."""
    monkeypatch.setattr(sidecar_http, "ANSWER_SECONDS", 0.3)
    access = SidecarAccess(url=silent)
    assert refused(access) == f"--sidecar {silent}: no answer within 0.3 s"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert refused(replace(access, url=url)) == (
        f"--sidecar {url}: nobody listens there: start `specbudget serve`, or correct host and port"
    )
    assert "there is no host nowhere.invalid" in refused(replace(access, url="http://nowhere.invalid:9877"))


@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "is this a sidecar of specbudget?"), (302, "answers with status 302"), (429, "is asked too often")],
)
async def test_another_answer_is_told(status: int, words: str) -> None:
    """A redirect is not followed: it could take the password elsewhere."""
    async with ScriptedEngine({"/metrics": Answer(b"", status=status)}) as engine:
        said = await asyncio.to_thread(refused, SidecarAccess(url=engine.url))
    assert words in said


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9877", "ftp://h:1", "http://h:99999", "http://h:1/?a=b", "http://", "h\x1b"]
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    """How one is written, without repeating what was typed."""
    said = refused(SidecarAccess(url=url))
    assert said.startswith("--sidecar: write ")
    assert "\x1b" not in said
