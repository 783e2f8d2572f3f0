"""Passwords: who is admitted, at what cost, and what is kept of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import bcrypt
import pytest
from tests.serve.web_client import basic, hashed

from specbudget.serve.web_auth import MAX_KEPT, MAX_WAITING, Logins, TooBusyError


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The hashes against which something was checked."""
    seen: list[str] = []
    real = bcrypt.checkpw

    def counted(password: bytes, against: bytes) -> bool:
        seen.append(against.decode())
        return real(password, against)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    return seen


@pytest.mark.parametrize("version", ["2a", "2b", "2y"])
async def test_only_the_right_password_of_a_known_user_is_admitted(version: str) -> None:
    """Wrong, empty and foreign passwords are not, nor is another user with a right one."""
    logins = Logins({"watcher": hashed("open sesame", version=version), "other": hashed("dütel:dütel")})
    assert await logins.admits(basic("watcher", "open sesame"))
    assert await logins.admits(basic("other", "dütel:dütel"))
    for user, password in (
        ("watcher", "open sesam"),
        ("watcher", "open sesame "),
        ("watcher", ""),
        ("watcher", "dütel:dütel"),
        ("nobody", "open sesame"),
        ("", ""),
        ("Watcher", "open sesame"),
        ("watcher", "open sesame\0"),
    ):
        assert not await logins.admits(basic(user, password)), (user, password)


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic ", "Basic !!!!", "Bearer d2F0Y2hlcjpvcGVuIHNlc2FtZQ==", "Basic d2F0Y2hlcg==", "Basic ü",
     "Basic /w==", "Digest username=watcher"],
)  # fmt: skip
async def test_what_is_no_user_and_password_is_not_admitted(header: str, checks: list[str]) -> None:
    """Another scheme, no base64, no colon: refused without a check."""
    assert not await Logins({"watcher": hashed("open sesame")}).admits(header)
    assert checks == []


async def test_the_scheme_is_read_in_any_case() -> None:
    """RFC 7617 leaves the case of `Basic` to the client."""
    logins = Logins({"watcher": hashed("open sesame")})
    assert await logins.admits(basic("watcher", "open sesame").replace("Basic", "bASIC"))


async def test_a_long_password_counts_with_what_bcrypt_reads() -> None:
    """htpasswd takes the first 72 bytes of a longer one; so is it checked, and not refused for its length."""
    logins = Logins({"watcher": hashed("x" * 100)})
    assert await logins.admits(basic("watcher", "x" * 100))
    assert not await logins.admits(basic("watcher", "x" * 71))


async def test_a_right_password_is_checked_once_and_a_wrong_one_each_time(checks: list[str]) -> None:
    """A scraper costs one check; a guesser pays for each guess."""
    logins = Logins({"watcher": hashed("open sesame")})
    for _ in range(5):
        assert await logins.admits(basic("watcher", "open sesame"))
    assert len(checks) == 1
    for _ in range(3):
        assert not await logins.admits(basic("watcher", "x"))
    assert len(checks) == 4
    assert await logins.admits(basic("watcher", "open sesame"))
    assert len(checks) == 4


async def test_first_requests_that_come_at_once_are_checked_once(checks: list[str]) -> None:
    """Who waits for a turn looks again whether it was meanwhile found right."""
    logins = Logins({"watcher": hashed("open sesame")})
    assert all(await asyncio.gather(*(logins.admits(basic("watcher", "open sesame")) for _ in range(8))))
    assert len(checks) == 1


async def test_an_unknown_user_costs_what_a_known_one_costs(checks: list[str]) -> None:
    """The same work with the cost of the users' hashes, always the same for one name; nobody learns who exists."""
    logins = Logins({"cheap": hashed("a", cost=4), "dear": hashed("b", cost=6)})
    for name in [f"guess{number}" for number in range(40)]:
        before = len(checks)
        assert not await logins.admits(basic(name, "x"))
        assert not await logins.admits(basic(name, "y"))
        assert len(checks) == before + 2
        assert checks[-1] == checks[-2]
    assert {check[4:6] for check in checks} == {"04", "06"}


async def test_an_unknown_user_is_refused_whatever_the_check_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of an unknown user is for its time only."""
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, against: True)
    logins = Logins({"watcher": hashed("open sesame")})
    for _ in range(2):
        assert not await logins.admits(basic("nobody", "x"))


async def test_a_check_does_not_hold_up_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a password is being checked, others are answered."""
    release = threading.Event()

    def slow(password: bytes, against: bytes) -> bool:
        return release.wait(10)

    monkeypatch.setattr(bcrypt, "checkpw", slow)
    logins = Logins({"watcher": hashed("open sesame")})
    waiting = asyncio.create_task(logins.admits(basic("watcher", "open sesame")))
    started = time.monotonic()
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert time.monotonic() - started < 5
    assert not waiting.done()
    release.set()
    assert await waiting


async def test_guesses_wait_in_a_short_queue_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of guesses takes one thread and bounded memory; who is known already passes by."""
    release, running, most = threading.Event(), [0], [0]

    def slow(password: bytes, against: bytes) -> bool:
        running[0] += 1
        most[0] = max(most[0], running[0])
        release.wait(10)
        running[0] -= 1
        return False

    logins = Logins({"watcher": hashed("open sesame")})
    assert await logins.admits(basic("watcher", "open sesame"))
    monkeypatch.setattr(logins, "_check", slow)
    guesses = [asyncio.create_task(logins.admits(basic("watcher", str(number)))) for number in range(MAX_WAITING)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        with pytest.raises(TooBusyError):
            await logins.admits(basic("watcher", "one more"))
    assert await logins.admits(basic("watcher", "open sesame"))
    release.set()
    assert not any(await asyncio.gather(*guesses))
    assert most == [1]
    monkeypatch.undo()
    assert not await logins.admits(basic("watcher", "again"))


async def test_what_is_remembered_is_bounded_and_is_no_password() -> None:
    """Digests with a key of this process; two processes remember nothing alike."""
    users = {f"user{number}": hashed("made-up-word") for number in range(MAX_KEPT + 5)}
    logins, other = Logins(users), Logins(users)
    for name in users:
        assert await logins.admits(basic(name, "made-up-word"))
    await other.admits(basic("user0", "made-up-word"))
    await logins.admits(basic("user0", "made-up-word"))
    assert len(logins._right) == MAX_KEPT
    assert not set(logins._right) & set(other._right)
    assert all(b"made-up" not in kept for kept in logins._right)


def test_bcrypt_is_loaded_only_for_users() -> None:
    """A sidecar without users does not load it."""
    said = subprocess.run(
        [sys.executable, "-c", "import sys, specbudget.serve.command; print('bcrypt' in sys.modules)"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert said.strip() == "False"
