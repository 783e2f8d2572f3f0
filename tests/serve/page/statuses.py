"""A status by hand, and a desk to show it with: what the page is made of, without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.serve.polled_desk import write_budget

from specbudget.budget.reading import load_budget
from specbudget.catalog.lines import LINES
from specbudget.serve.desk import Desk
from specbudget.serve.headline import headline
from specbudget.serve.page import render
from specbudget.serve.page.trace import acceptance_trace
from specbudget.serve.status_model import (
    AcceptanceStatus,
    BudgetStatus,
    EngineStatus,
    KvStatus,
    LineStatus,
    LinksStatus,
    MemoryStatus,
    ModelStatus,
    PoolStatus,
    RankStatus,
    SourceStatus,
    StageStatus,
    StartStatus,
    Status,
)

NOW = 1_800_000_000.0
GIB = 1 << 30
NOBODY = "http://127.0.0.1:9"

RATIOS = {"ok": 0.5, "at_risk": 0.95, "breach": 1.5, "unknown": None}


def a_line(index: int, state: str, *, why: str = "", state_of_budgets: str | None = None) -> LineStatus:
    """The line at `index` with all its budgets in a state; `not_budgeted` has none."""
    line, inner = LINES[index], state_of_budgets or state
    ratio = RATIOS.get(inner)
    return LineStatus(
        line=line.id,
        title=line.title,
        budgeted=state != "not_budgeted",
        state="ok" if state == "not_budgeted" else state,
        budgets=[]
        if state == "not_budgeted"
        else [
            BudgetStatus(
                budget=budget.id,
                state=inner,
                unit=budget.unit,
                spent=None if ratio is None else 1000.0 / ratio if budget.floor else 1000.0 * ratio,
                limit=1000.0,
                floor=budget.floor,
                used_ratio=ratio,
                why=why if inner == "unknown" else "",
            )
            for budget in line.budgets
        ],
    )


def a_status(states: tuple[str, ...] = ("ok",) * 5, **changes: Any) -> Status:
    """A status whose lines are in these states; keywords replace parts."""
    lines = [a_line(index, state, why="nobody tells") for index, state in enumerate(states)]
    ranks = [
        RankStatus(rank="0", speculation="active", window=9, running=3.0, queued=0.0, length_since_start=None),
    ]
    state, sentence = headline(lines, ranks)
    whole = Status(
        service="chat",
        version="0.1.0",
        at=NOW,
        state=state,
        sentence=sentence,
        engine=EngineStatus(kind="sglang", version="0.5.23", algorithm="dspark", role="unified"),
        models=[a_model("target", 8064), a_model("drafter", 20480)],
        lines=lines,
        kv=KvStatus(
            drafter_share=20480 / 28544,
            why="",
            cost_tokens={"0": 154_112},
            drafter_needs={},
            pools=[
                PoolStatus(
                    artifact="target",
                    rank="0",
                    capacity_tokens=49_152.0,
                    used_tokens=12_288.0,
                    capacity_bytes=None,
                    used_bytes=None,
                )
            ],
        ),
        memory=[
            MemoryStatus(
                rank="0",
                total_bytes=80 * GIB,
                parts={"target_weights": 40 * GIB, "drafter_kv": 30 * GIB, "free": 10 * GIB},
                missing=[],
            )
        ],
        acceptance=AcceptanceStatus(
            source="request_log",
            scope="request",
            rolling={"1m": 4.6, "5m": 4.5, "30m": None, "1h": None},
            target_length=2.6,
            objective=0.95,
            break_even=2.1,
            expected=None,
            ranks=ranks,
            causes=[],
        ),
        start=a_start(),
        pair=None,
        sources=[SourceStatus(source="metrics", up=True, last_success=NOW, reason="", problem="")],
        links=LinksStatus(runbook=None, dashboards=None),
    )
    return msgspec.structs.replace(whole, **changes)


def a_model(artifact: str, token_bytes: int | None) -> ModelStatus:
    """One model of the pair."""
    return ModelStatus(
        artifact=artifact,
        name=f"{artifact}-model",
        architecture=None,
        dtype=None,
        parameters=None,
        disk_bytes=None,
        token_bytes=token_bytes,
    )


def a_start(**changes: Any) -> StartStatus:
    """A start that is over, in six seconds."""
    stages = [
        StageStatus(artifact="target", stage="load", offset=0.0, seconds=2.0, open=False),
        StageStatus(artifact="drafter", stage="load", offset=2.0, seconds=3.0, open=False),
        StageStatus(artifact="both", stage="warmup", offset=5.0, seconds=0.0, open=False),
        StageStatus(artifact="both", stage="ready", offset=6.0, seconds=None, open=False),
        StageStatus(artifact="both", stage="first_generation", offset=6.0, seconds=None, open=False),
    ]
    start = StartStatus(
        basis="launch",
        ready=True,
        ready_seconds=6.0,
        cold_start_seconds=6.0,
        over_budget=False,
        stuck=False,
        mode="prefetch",
        order="target,drafter",
        warmup="done",
        attempts=0,
        trying_seconds=None,
        unexplained_seconds=None,
        hot_reload_seconds=None,
        stages=stages,
    )
    return msgspec.structs.replace(start, **changes)


def a_desk(folder: Path, **sections: Any) -> Desk:
    """A desk that nothing was read onto."""
    return Desk(load_budget(write_budget(folder, NOBODY, **sections)), NOW)


def rendered(folder: Path, status: Status) -> str:
    """The whole page."""
    desk = a_desk(folder)
    return render.document(status, render.regions(desk, status), acceptance_trace(desk, status.at)).decode()
