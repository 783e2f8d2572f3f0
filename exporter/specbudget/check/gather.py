"""Reads everything that a plan is made of: budget, checkpoints, lock, reference, and the engine if it answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from specbudget.budget.engine import Tls, engine_address
from specbudget.budget.lock import LoadedLock, is_named_as_lock, load_lock, lock_path
from specbudget.budget.model import Budget, resolve
from specbudget.budget.reading import LoadedBudget
from specbudget.check.plan import EngineAnswer, Plan
from specbudget.check.reference import Reference, read_reference
from specbudget.check.start_figures import StartFigures, read_start_figures
from specbudget.errors import BudgetError, Problem, SourceError, SpecbudgetError
from specbudget.pair.launch_facts import launch_facts
from specbudget.pair.nested_drafter import load_deployment
from specbudget.pair.side import Side, read_side
from specbudget.pair.tokens import compare_tokenizers
from specbudget.sources.checkpoint import read_checkpoint

CONNECT_SECONDS = 1.0
NAMED_SECONDS, UNASKED_SECONDS = 10.0, 2.5
"""How long an engine may take for all that it is asked: one that was named, and one that is read only if it answers."""


class EngineSilent(SpecbudgetError):
    """An engine that was named on the command line does not answer."""


def gather(
    budget_file: Path,
    *,
    engine_url: str | None = None,
    asks_engine: bool = True,
    lock: Path | None = None,
    approving: bool = False,
    working: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The plan of a budget file.

    `engine_url` stands in for `engine.url` and must answer; without it the engine of the budget is read if it
    answers, unless `asks_engine` is False. `lock` stands in for the one beside the budget and must be there unless
    `approving`. `working` is told what is being read.
    Raises BudgetError for a budget or lock that cannot be used, EngineSilent.
    """
    loaded = load_deployment(budget_file)
    locked, problem = _lock(loaded, lock, approving=approving)
    plan = gather_for(
        loaded.budget, budget_file, engine_url=engine_url, asks_engine=asks_engine, lock=locked, working=working
    )
    return plan if problem is None else replace(plan, lock_problem=problem)


def gather_for(
    budget: Budget,
    budget_file: Path,
    *,
    engine_url: str | None = None,
    asks_engine: bool = True,
    lock: LoadedLock | None = None,
    working: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The plan of a budget whose relative paths are taken from the folder of `budget_file`; raises EngineSilent."""
    engine = _engine(budget, budget_file, engine_url, working) if asks_engine else None
    served = (engine.facts.served_model if engine is not None else None) or launch_facts(budget).served_model
    reference, problem = _reference(budget, budget_file, served, working)
    target = _side(budget.target.path, budget_file, working)
    drafter = _side(budget.drafter.path, budget_file, working)
    if target is not None and drafter is not None:
        working("comparing tokenizers")
    return Plan(
        budget=budget,
        budget_file=budget_file,
        target=target,
        drafter=drafter,
        tokens=None if target is None or drafter is None else compare_tokenizers(target, drafter),
        engine=engine,
        lock=lock,
        reference=reference,
        reference_problem=problem,
        start=_start(budget, budget_file, working),
    )


def _lock(loaded: LoadedBudget, given: Path | None, *, approving: bool) -> tuple[LoadedLock | None, str | None]:
    """The lock, and why one cannot be read that approving will replace."""
    path = given or lock_path(loaded.path)
    try:
        lock = load_lock(path)
    except BudgetError as error:
        if not path.is_file() or not is_named_as_lock(path):
            raise
        if approving:
            return None, str(error.problems[0])
        message = "cannot be used: approve the pair again with `specbudget check --approve`, or delete the file"
        raise BudgetError([*error.problems, Problem(str(path), None, "", message)]) from error
    if lock is None and given is not None and not approving:
        message = "no such lock: write it with `specbudget check --approve`, or leave --lock out"
        raise BudgetError([Problem(str(given), None, "", message)])
    if lock is not None and lock.lock.service != loaded.budget.service:
        message = f"is the lock of {lock.lock.service}, the budget is of {loaded.budget.service}: name the right file"
        raise BudgetError([Problem(str(path), None, "service", message)])
    return lock, None


def _side(path: str | None, budget_file: Path, working: Callable[[str], None]) -> Side | None:
    if path is None:
        return None
    folder = resolve(path, budget_file)
    working(f"reading {folder}")

    def progress(done: int, total: int) -> None:
        working(f"reading {folder}: {done} of {total} files")

    return read_side(read_checkpoint(folder, progress))


def _start(budget: Budget, budget_file: Path, working: Callable[[str], None]) -> StartFigures | None:
    """What the engine's log tells of its last start; a log that cannot be read tells nothing."""
    if budget.engine.server_log is None or budget.engine.kind != "sglang":
        return None
    path = resolve(budget.engine.server_log, budget_file)
    working(f"reading {path}")
    try:
        return read_start_figures(path) if path.is_file() else None
    except OSError:
        return None


def _reference(
    budget: Budget, budget_file: Path, served_model: str | None, working: Callable[[str], None]
) -> tuple[Reference | None, str | None]:
    line = budget.budget.acceptance
    if line is None or line.reference is None:
        return None, None
    path = resolve(line.reference, budget_file)
    working(f"reading {path}")
    try:
        return read_reference(path, budget, served_model=served_model), None
    except BudgetError as error:
        return None, f"acceptance.reference: {error.problems[0]}"


def _engine(
    budget: Budget, budget_file: Path, given: str | None, working: Callable[[str], None]
) -> EngineAnswer | None:
    try:
        url = budget.engine.url if given is None else engine_address(given)
    except ValueError as error:
        raise EngineSilent(f"--engine: {error}") from None
    if budget.engine.tls != Tls():
        from specbudget.sources.upstream_tls import check_tls_files

        check_tls_files(budget, budget_file)
    if budget.engine.kind != "sglang":
        if given is not None:
            raise EngineSilent(f"--engine {given}: a running {budget.engine.kind} engine is not read yet")
        return None
    if not _listens(url):
        if given is not None:
            raise EngineSilent(f"--engine {given}: does not answer; start the engine or leave --engine out")
        return None
    working(f"asking {url}")
    try:
        answer = asyncio.run(_ask(budget, budget_file, url, NAMED_SECONDS if given is not None else UNASKED_SECONDS))
    except SourceError as error:
        if given is not None:
            raise EngineSilent(f"--engine {given}: {error}") from error
        return None
    return answer


def _listens(url: str) -> bool:
    """Whether somebody accepts connections there; spares the HTTP client's start where nobody does."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


async def _ask(budget: Budget, budget_file: Path, url: str, within: float) -> EngineAnswer:
    """What /server_info says, and /metrics where it is open, both `within` so many seconds.

    Raises SourceError when /server_info cannot be read.
    """
    import msgspec

    from specbudget.sources.exposition import ExpositionError
    from specbudget.sources.http import EngineHttp
    from specbudget.sources.sglang.metrics import MetricsReader
    from specbudget.sources.sglang.server_info import read_server_info
    from specbudget.sources.sglang.start_phases import read_phases
    from specbudget.sources.upstream_tls import tls_files

    end = time.monotonic() + within
    key_file = budget.engine.api_key_file
    http = EngineHttp(
        url.rstrip("/"),
        api_key_file=None if key_file is None else resolve(key_file, budget_file),
        tls=tls_files(budget, budget_file),
    )
    try:
        try:
            facts = read_server_info(await http.get("/server_info", within=within, key_required=True))
        except msgspec.DecodeError as error:
            raise SourceError("malformed", f"/server_info: not what SGLang answers: {error}") from None
        with contextlib.suppress(SourceError, ExpositionError):
            body = await http.get("/metrics", within=max(end - time.monotonic(), 0.1), key_required=False)
            reading = MetricsReader().read(body, at=time.time())
            return EngineAnswer(facts=facts, ranks=dict(reading.ranks), phases=read_phases(body))
        return EngineAnswer(facts=facts)
    finally:
        await http.close()
