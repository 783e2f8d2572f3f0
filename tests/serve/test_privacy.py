"""Prompts and secrets never leave the line they came in on: not to disk, not to a log, not to a page, not to memory.

The token that is planted everywhere is made when it is needed, so that no object of the test itself holds it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from specbudget.budget.reading import load_budget
from specbudget.serve.ingest import RequestLoop, ServerLogLoop
from specbudget.serve.sidecar import Sidecar
from specbudget.sources.tail import Chunk

CAPTURED = Path(__file__).parent.parent / "fixtures" / "sglang" / "0.5.23"
RECORDS = 300


def token() -> str:
    """What is planted."""
    return "".join(map(chr, (122, 113, 55, 112, 108, 97, 110, 116, 101, 100)))


def planted_record(line: Callable[..., bytes], number: int) -> bytes:
    """A record with the token wherever a user's or an operator's text may stand."""
    plant = f"{token()}{number}"
    return line(
        f"rid-{plant}",
        parameters={
            "text": f'prompt {plant} ", "id": "{plant}"',
            "lora_path": f"code-{plant}",
            "sampling_params": {"stop": [plant], "json_schema": f'{{"title": "{plant}"}}'},
        },
        finish_reason={"type": ("stop", "abort")[number % 2], "matched": f"stop {plant}", "message": plant},
        input_token_logprobs=[[-0.5, 1, f"piece {plant}"], [float("-inf"), 2, "\ud83d"]],
        weight_version=f"v {plant}",
        **{f"key {plant}": plant},
    )


def plant_files(folder: Path, line: Callable[..., bytes]) -> None:
    """A request log and a server log full of it, torn and malformed lines too."""
    (folder / "requests").mkdir(exist_ok=True)
    with (folder / "requests" / "a.log").open("ab") as out:
        for number in range(RECORDS):
            out.write(planted_record(line, number))
        whole = planted_record(line, 0)
        out.write(whole[:200] + b"\n" + whole[200:] + token().encode() * 3 + b"\n")
        out.write(b'{"completion_tokens": "%s"}\n' % token().encode())
        out.write(b'{"finish_reason": {"type": 5}, "x": "%s\n' % token().encode())
        out.write(whole[:150])
    stamp = time.strftime("[%Y-%m-%d %H:%M:%S] ")
    with (folder / "server.log").open("a") as out:
        out.write(f"{stamp}Finish: obj=GenerateReqInput(text='{token()} accept len: 9.99')\n")
        out.write(f"{stamp}Decode batch, #running-req: 3, accept len: 2.50, note: {token()}\n")
        out.write(f"{stamp}Decode batch, #running-req: 3, accept len: {token()}\n")
        out.write(f"{stamp}Decode batch, {token()}")


def plant_answers(folder: Path, *, broken: bool) -> None:
    """What the engine's endpoints say: as captured with the secrets changed, or broken in the middle of them."""
    folder.mkdir(exist_ok=True)
    info = json.loads((CAPTURED / "server_info_v0.5.23_dspark.json").read_text())
    secrets = ("api_key", "admin_api_key", "ssl_keyfile_password", "launch_command", "watermark_key")
    for part in (info, *info["internal_states"]):
        part |= {key: f"{key} {token()}" for key in secrets}
    body = json.dumps(info)
    metrics = (CAPTURED / "metrics_v0.5.23_dspark_tp2.busy.prom").read_text()
    loads = (CAPTURED / "v1_loads_v0.5.23_include_core_memory_spec.json").read_text()
    if broken:
        body = json.dumps(info | {"tp_size": token(), "internal_states": token()})
        metrics += f'sglang:broken{{label="{token()}" {token()}\n'
        loads = f'{{"loads": [{{"dp_rank": "{token()}"}}], "{token()}": '
    (folder / "server_info").write_text(body)
    (folder / "metrics").write_text(metrics)
    (folder / "loads").write_text(loads)


ENGINE = """
    import sys
    from pathlib import Path
    from aiohttp import web

    folder = Path(sys.argv[1])
    names = {"/metrics": "metrics", "/v1/loads": "loads", "/server_info": "server_info"}

    async def answer(request):
        return web.Response(body=(folder / names[request.path]).read_bytes())

    async def tell(app):
        print(runner.addresses[0][1], flush=True)

    import asyncio
    async def main():
        global runner
        app = web.Application()
        for path in names:
            app.router.add_get(path, answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await tell(app)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[str]:
    """The address of an engine that answers from the folder `answers`, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(ENGINE), str(tmp_path / "answers")), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    yield f"http://127.0.0.1:{port}"
    process.kill()
    await process.wait()


def texts_in(seen: set[int], found: list[object]) -> Iterator[tuple[str, object]]:
    """Every text reachable from `found`, with the type of what holds it; `seen` are ids that are passed over."""
    todo = [(item, "root") for item in found]
    while todo:
        item, holder = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, str | bytes | bytearray):
            yield holder, item
        elif isinstance(item, memoryview):
            yield holder, bytes(item)
        else:
            name = type(item).__name__
            todo += [(part, name) for part in gc.get_referents(item)]
            if isinstance(item, msgspec.Struct):  # those without gc are not walked by it
                todo += [(getattr(item, key), name) for key in item.__struct_fields__]


def kept_in_memory() -> list[str]:
    """Where the token is in any object that this process keeps: the holder's type and some of the text."""
    for _ in range(3):
        gc.collect()
    roots: list[object] = [*gc.get_objects(), sys.exc_info(), getattr(sys, "last_value", None)]
    here = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        while thread != here and frame is not None:
            roots.append(dict(frame.f_locals))
            frame = frame.f_back  # type: ignore[assignment]
    word = token()
    wanted = word.encode()
    own = {id(word), id(wanted), id(roots)}
    hits = []
    for holder, text in texts_in(own, roots):
        held = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)  # type: ignore[arg-type]
        if wanted in held:
            hits.append(f"{holder}: {len(held)} bytes")
    return hits


def files_with_it(*folders: Path) -> list[str]:
    """Files whose bytes hold the token."""
    wanted = token().encode()
    files = [path for folder in folders for path in (folder.rglob("*") if folder.is_dir() else [folder])]
    return [str(path) for path in files if path.is_file() and wanted in path.read_bytes()]


async def drained(sidecar: Sidecar) -> None:
    """Waits until the sidecar has read everything and every endpoint once."""
    for _ in range(400):
        await asyncio.sleep(0.05)
        counted = sidecar.desk.ledger.counters["records_total"]
        asked = all(health.up is not None for health in sidecar.desk.health.values())
        if asked and counted["request_log", "ok"] >= RECORDS and counted["server_log", "ok"]:
            return
    raise AssertionError(f"not drained: {sidecar.desk.health}")


@pytest.mark.parametrize("broken", [False, True], ids=["good answers", "broken answers"])
async def test_nothing_of_a_line_or_an_answer_is_kept(
    broken: bool,
    engine: str,
    tmp_path: Path,
    budget_file: Callable[..., Path],
    record_line: Callable[..., bytes],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not by any object between two looks, not in the state folder, the log, the output or a page."""
    caplog.set_level(logging.DEBUG)
    plant_answers(tmp_path / "answers", broken=broken)
    plant_files(tmp_path, record_line)
    assert kept_in_memory() == []
    acceptance = {"target_length": 2.6, "profiles": {"code": {"match": {"adapter": "code-*"}, "target_length": 2.0}}}
    path = budget_file(engine={"url": engine, "server_log": "server.log"}, budget={"acceptance": acceptance})
    sidecar, started = Sidecar(load_budget(path), tmp_path / "state"), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(sidecar.serve("127.0.0.1", 0, started=started.set_result))
    url = f"http://127.0.0.1:{await started}"
    await drained(sidecar)
    await asyncio.sleep(1.2)  # a page and a saving later
    records = {k[1]: v for k, v in sidecar.desk.ledger.counters["records_total"].items() if k[0] == "request_log"}
    assert records == {"ok": RECORDS, "malformed": 5, "skipped": 0, "oversized": 0, "duplicate": 0}
    assert sidecar.desk.health["server_info"].up is not broken  # type: ignore[index]
    assert kept_in_memory() == []
    assert files_with_it(tmp_path / "state") == []
    async with aiohttp.ClientSession() as client:
        for where in ("/metrics", "/", "/-/healthy", "/-/ready", "/api/v1/status"):
            for accept in ("text/plain", "application/openmetrics-text"):
                async with client.get(url + where, headers={"Accept": accept}) as answer:
                    assert token() not in await answer.text(), where
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert files_with_it(tmp_path / "state") == []
    assert token() not in caplog.text
    said = capfd.readouterr()
    assert token() not in said.out + said.err
    assert kept_in_memory() == []


def in_a_list(chunk: Chunk, kept: list[Any]) -> None:
    """The chunk itself."""
    kept.append(chunk)


def as_a_view(chunk: Chunk, kept: list[Any]) -> None:
    """A view of a copy."""
    kept.append(memoryview(bytearray(chunk.data)))


def as_one_line(chunk: Chunk, kept: list[Any]) -> None:
    """One line, as text, in a tuple in a dictionary."""
    kept.append({"line": (1, chunk.data[: chunk.end].split(b"\n")[-2].decode())})


def in_a_generator(chunk: Chunk, kept: list[Any]) -> None:
    """A local variable of a suspended generator."""

    def suspended(data: bytes) -> Iterator[int]:
        yield 1
        yield len(data)

    generator = suspended(chunk.data)
    next(generator)
    kept.append(generator)


def in_an_exception(chunk: Chunk, kept: list[Any]) -> None:
    """A frame that an exception holds."""
    try:
        data = chunk.data
        raise ValueError(len(data))
    except ValueError as error:
        kept.append(error)


class Opaque(msgspec.Struct, gc=False):
    """An object that the collector does not know."""

    text: str


def in_a_struct(chunk: Chunk, kept: list[Any]) -> None:
    """A field of such an object."""
    kept.append(Opaque(chunk.data[: chunk.end].decode("ascii", "replace")))


@pytest.mark.parametrize("keep", [in_a_list, as_a_view, as_one_line, in_a_generator, in_an_exception, in_a_struct])
async def test_a_kept_line_would_be_found(
    keep: Callable[[Chunk, list[Any]], None],
    tmp_path: Path,
    budget_file: Callable[..., Path],
    record_line: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search above is no empty promise: whichever way the ingest loop kept a line, it would be seen."""
    plant_files(tmp_path, record_line)
    kept: list[Any] = []
    counting = RequestLoop.count

    def count(self: RequestLoop, chunk: Chunk, now: float) -> float:
        keep(chunk, kept)
        return counting(self, chunk, now)

    monkeypatch.setattr(RequestLoop, "count", count)
    path = budget_file(engine={"server_log": "server.log"})
    sidecar, started = Sidecar(load_budget(path), None), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(sidecar.serve("127.0.0.1", 0, started=started.set_result))
    await started
    await drained(sidecar)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert kept
    assert kept_in_memory() != []
    kept.clear()
    assert kept_in_memory() == []


@pytest.mark.parametrize("loop", [RequestLoop, ServerLogLoop])
async def test_a_fault_of_ours_repeats_nothing_of_the_line(
    loop: type[RequestLoop],
    tmp_path: Path,
    budget_file: Callable[..., Path],
    record_line: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception that quotes what it choked on is logged by its type and place only, and not held."""
    plant_files(tmp_path, record_line)
    counting = loop.count

    def count(self: RequestLoop, chunk: Chunk, now: float) -> float:
        counting(self, chunk, now)
        raise ValueError(chunk.data[:500])

    monkeypatch.setattr(loop, "count", count)
    path = budget_file(engine={"server_log": "server.log"})
    sidecar, started = Sidecar(load_budget(path), tmp_path / "state"), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(sidecar.serve("127.0.0.1", 0, started=started.set_result))
    await started
    await drained(sidecar)
    assert kept_in_memory() == []
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert "ValueError" in caplog.text
    assert token() not in caplog.text
    assert token().encode() not in sidecar.publisher.page.text
    assert files_with_it(tmp_path / "state") == []


@pytest.mark.slow
async def test_the_process_writes_nothing_of_it(
    engine: str,
    tmp_path: Path,
    budget_file: Callable[..., Path],
    record_line: Callable[..., bytes],
    serving: Callable[..., Any],
) -> None:
    """The real process beside a real engine: state folder, output and pages."""
    plant_answers(tmp_path / "answers", broken=False)
    plant_files(tmp_path, record_line)
    sidecar = serving(budget_file(engine={"url": engine, "server_log": "server.log"}))
    sidecar.start()
    assert sidecar.until(
        lambda: (
            sidecar.value("records_total", source="request_log", outcome="ok") == RECORDS
            and sidecar.value("source_up", source="server_info") == 1
        )
    )
    for accept in ("", "application/openmetrics-text"):
        assert token() not in (sidecar.get("/metrics", accept) or token())
    assert files_with_it(tmp_path / "state", sidecar.output) == []
    assert sidecar.end() == 0
    assert files_with_it(tmp_path / "state", sidecar.output) == []
    shutil.rmtree(tmp_path / "answers")
