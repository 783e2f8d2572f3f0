"""A real sidecar, killed and ended under load: every record once, and no counter ever goes back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specbudget.serve.store import FILE_NAME

pytestmark = pytest.mark.slow
Make = Callable[..., Any]


class Writer(threading.Thread):
    """Appends records of one of three ranks, and rotates: the next hour's file, and renames of the last."""

    def __init__(self, folder: Path, line: Callable[..., bytes], rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._folder, self._line, self._rng = folder, line, rng
        self._ending = threading.Event()
        self.written = [0, 0, 0]
        self.torn = 0

    def run(self) -> None:
        """Until told to end; about 2,000 records a second."""
        hour, turn = 0, 0
        name = self._folder / "requests_000.log"
        while not self._ending.is_set():
            with name.open("ab", buffering=0) as out:
                for _ in range(self._rng.randrange(1, 40)):
                    rank = self._rng.randrange(3)
                    number = sum(self.written)
                    line = self._line(
                        f"{number:032d}", parameters={"text": "x" * self._rng.randrange(3000)}, dp_rank=rank
                    )
                    cut = self._rng.randrange(1, len(line))
                    out.write(line[:cut])
                    if self._rng.random() < 0.2:
                        time.sleep(0.002)
                    out.write(line[cut:])
                    self.written[rank] += 1
            time.sleep(0.01)
            turn += 1
            if turn % 10 == 0:
                hour += 1
                if self._rng.random() < 0.5:
                    name.rename(f"{name}.{hour}")
                name = self._folder / f"requests_{hour:03d}.log"

    def end(self) -> list[int]:
        """Ends it; returns the records written, by rank."""
        self._ending.set()
        self.join()
        return self.written


@pytest.fixture
def load(tmp_path: Path, record_line: Callable[..., bytes]) -> Iterator[Callable[[int], Writer]]:
    """Starts a writer of the folder `requests`, by seed."""
    (tmp_path / "requests").mkdir()
    started: list[Writer] = []

    def start(seed: int) -> Writer:
        started.append(Writer(tmp_path / "requests", record_line, random.Random(seed)))
        started[-1].start()
        return started[-1]

    yield start
    for writer in started:
        writer.end()


def counters(serving: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float] | None:
    """Counters and histogram buckets as scraped; None when nobody answers."""
    found = serving.samples()
    if found is None:
        return None
    ends = ("_total", "_bucket", "_count", "_sum")
    return {key: value for key, value in found.items() if key[0].endswith(ends)}


def test_killed_at_any_point_it_counts_every_record_once(
    serving: Make, budget_file: Make, load: Callable[[int], Writer], record_line: Callable[..., bytes]
) -> None:
    """Twenty kills under load; what was scraped before a kill is never more than what is scraped after it."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}")
    rng = random.Random(seed)
    sidecar = serving(budget_file(parallelism={"data": 3}))
    writer = load(rng.randrange(1 << 32))
    shown: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    scrapes = 0
    for kill in range(20):
        # some die before they answer
        sidecar.start(wait=kill % 4 != 3)
        life = time.monotonic() + 1.2 * rng.random()
        while True:
            now = counters(sidecar)
            if now:
                scrapes += 1
                assert [(key, value, now.get(key)) for key, value in shown.items() if now.get(key, -1) < value] == []
                shown = now
            if time.monotonic() > life:
                break
            time.sleep(rng.random() * 0.1)
        sidecar.end(signal.SIGKILL)
    written = writer.end()
    assert scrapes >= 15
    sidecar.start()

    def drained() -> bool:
        return bool(sidecar.value("records_total", source="request_log", outcome="ok") == sum(written))

    sidecar.until(drained, 15)
    found = counters(sidecar)
    assert found is not None
    records = {dict(k[1])["outcome"]: v for k, v in found.items() if k[0] == "specbudget_records_total"}
    assert records == {"ok": sum(written), "skipped": 0, "malformed": 0, "oversized": 0, "duplicate": 0}
    for rank, count in enumerate(written):
        labels = {"rank": str(rank), "profile": "default"}
        assert sidecar.value("verify_steps_total", **labels) == 10 * count
        assert sidecar.value("generated_tokens_total", **labels) == 100 * count
    assert sidecar.value("slo_events_total", sli="request", verdict="good", profile="default") == sum(written)
    assert all(found[key] >= value for key, value in shown.items())


def test_sigterm_ends_within_two_seconds_with_everything_saved(
    serving: Make, budget_file: Make, load: Callable[[int], Writer]
) -> None:
    """In the middle of catching up; the next start goes on from exactly there."""
    sidecar = serving(budget_file(parallelism={"data": 3}))
    writer = load(1)
    sidecar.start()
    time.sleep(1.5)
    started = time.monotonic()
    assert sidecar.end(signal.SIGTERM) == 0
    ended = time.monotonic() - started
    written = sum(writer.end())
    sidecar.start()
    first = sidecar.value("records_total", source="request_log", outcome="ok")
    assert first is not None
    assert first > 0
    assert sidecar.until(lambda: sidecar.value("records_total", source="request_log", outcome="ok") == written)
    assert ended < 2.0
    assert "everything that was counted is saved" in sidecar.output.read_text()


def test_a_second_sidecar_on_the_state_folder_is_refused(serving: Make, budget_file: Make, free_port: int) -> None:
    """Exit code 2 and one line that says what to do; the first goes on."""
    sidecar = serving(budget_file())
    sidecar.start()
    second = subprocess.run(
        [
            *(sys.executable, "-m", "specbudget", "serve", "--budget", str(sidecar.budget)),
            *("--state", str(sidecar.state), "--listen", "127.0.0.1:0"),
        ],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert second.returncode == 2
    assert len(second.stderr.splitlines()) == 1
    assert str(sidecar.process.pid) in second.stderr
    assert "--state" in second.stderr
    assert sidecar.get("/-/healthy") is not None


def test_another_identity_goes_on_in_the_files_and_counts_from_zero(
    serving: Make, budget_file: Make, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    """A new pod on an old volume reads no record again and takes over no counter."""
    (tmp_path / "requests").mkdir()
    log = tmp_path / "requests" / "a.log"
    log.write_bytes(b"".join(record_line(f"{n:032d}") for n in range(5)))

    def ok(sidecar: Any) -> float | None:
        return sidecar.value("records_total", source="request_log", outcome="ok")

    for pod, appended, expected in (("one", 0, 5), ("one", 2, 7), ("two", 3, 3)):
        with log.open("ab") as out:
            out.write(b"".join(record_line(f"{pod}{n}") for n in range(appended)))
        sidecar = serving(budget_file(), POD_UID=pod)
        sidecar.start()
        assert sidecar.until(lambda one=sidecar, all=expected: ok(one) == all), (pod, ok(sidecar))
        time.sleep(1.1)  # another look
        assert ok(sidecar) == expected
        assert sidecar.end() == 0


def test_a_damaged_state_does_not_stop_the_sidecar(serving: Make, budget_file: Make, tmp_path: Path) -> None:
    """It is moved aside with one line and the sidecar serves."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE_NAME).write_bytes(b"no database" * 1000)
    sidecar = serving(budget_file())
    sidecar.start()
    assert sidecar.value("state_saved") == 1
    assert list((tmp_path / "state").glob("*.unreadable-*"))
    assert "Traceback" not in sidecar.output.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_full_disk_stops_neither_counting_nor_serving(
    serving: Make, budget_file: Make, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    """The page says that nothing is saved; once there is space all is, also across a kill."""
    state = tmp_path / "state"
    state.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(state)]).returncode:
        pytest.skip("no right to mount")
    try:
        (tmp_path / "requests").mkdir()
        log = tmp_path / "requests" / "a.log"
        sidecar = serving(budget_file())
        sidecar.start()
        filler = state / "filler"
        with filler.open("ab", buffering=0) as file:
            try:
                while file.write(b"x" * 512):
                    pass
            except OSError:
                pass
        written = 0

        def write_until(saved: int) -> bool:
            nonlocal written
            with log.open("ab") as out:
                for _ in range(20):
                    out.write(record_line(f"{written:032d}"))
                    written += 1
            time.sleep(0.3)
            return bool(sidecar.value("state_saved") == saved)

        assert sidecar.until(lambda: write_until(0), 30)

        def counted() -> bool:
            return bool(sidecar.value("records_total", source="request_log", outcome="ok") == written)

        assert sidecar.until(counted)
        filler.unlink()
        assert sidecar.until(lambda: write_until(1))
        assert sidecar.until(counted)
        sidecar.end(signal.SIGKILL)
        sidecar.start()
        assert sidecar.until(counted)
        text = sidecar.output.read_text()
        assert "Traceback" not in text
        assert text.count("state is not saved") < 5
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)
