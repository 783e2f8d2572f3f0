"""What the sidecar concludes where /metrics is all that there is: no request log, no server log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import READINGS, ScriptedEngine
from tests.serve.polled_desk import Page, PolledDesk

LABELS = 'model_name="lumen",engine_type="unified",tp_rank="0",pp_rank="0"'
POLL = 5.0


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., PolledDesk]]:
    """Makes the desk of a budget with a length target in the batch form, beside an engine without any endpoint."""
    made: list[PolledDesk] = []
    async with ScriptedEngine() as engine:

        def build(target: float = 2.5, **budget: Any) -> PolledDesk:
            acceptance = {"target_length": target, "sli": "batch"}
            made.append(PolledDesk(engine, tmp_path, budget={"acceptance": acceptance, **budget}))
            return made[-1]

        yield build
        for polled in made:
            await polled.http.close()


def body(**values: float) -> str:
    """A body of these families."""
    return "".join(f"sglang:{name}{{{LABELS}}} {value}\n" for name, value in values.items())


def work(passes: int, tokens: float) -> str:
    """The counters of decode passes and of emitted tokens."""
    labels = f'mode="decode",{LABELS}'
    return f"sglang:cuda_graph_passes_total{{{labels}}} {passes}\nsglang:realtime_tokens_total{{{labels}}} {tokens}\n"


async def serve(polled: PolledDesk, text: str, *, length: float, polls: int = 12, running: int = 8) -> Page:
    """So many polls of an engine that reports `length` of `running` requests, 40 passes between two polls."""
    for turn in range(1, polls + 1):
        page = await polled.see(text + work(40 * turn, 40 * turn * running * length), after=POLL)
    return page


def suspected(page: Page) -> set[str]:
    """The causes that are 1."""
    causes = page.label("acceptance_suspect", "cause")
    return {cause for cause in causes if page.value("acceptance_suspect", cause=cause) == 1}


@pytest.mark.parametrize("length", [1.0, 1.6], ids=["nothing is accepted", "a fifth is accepted"])
async def test_low_since_a_start_that_was_seen_is_from_boot(
    make: Callable[..., PolledDesk], caplog: pytest.LogCaptureFixture, length: float
) -> None:
    """A length of 1.0 is a length and no gap in the data: both burn, and the cause is named."""
    polled = make()
    polled.desk.starts.see_engine(answers=False, epoch=polled.now)
    page = await serve(polled, body(spec_accept_length=length, spec_num_draft_tokens=4), length=length)
    assert page.state("speculation_state", rank="0") == "active"
    assert page.value("slo_events_total", sli="batch", verdict="bad", profile="default") == 11
    assert page.value("rolling_acceptance_length", scope="batch", window="5m") == pytest.approx(length)
    assert suspected(page) == {"from_boot"}
    assert ("contributes nothing" in caplog.text) is (length == 1.0)


async def test_low_since_a_start_that_nobody_saw_is_not_from_boot(make: Callable[..., PolledDesk]) -> None:
    """The engine was up before: what it did then is not known."""
    page = await serve(make(), body(spec_accept_length=1.0, spec_num_draft_tokens=4), length=1.0)
    assert suspected(page) == set()


@pytest.mark.parametrize(
    ("cap", "block", "causes"), [(3.2, 5.6, {"capped"}), (0.0, 0.0, set())], ids=["capped", "no cap at all"]
)
async def test_a_cap_is_the_cause_only_where_there_is_one(
    make: Callable[..., PolledDesk], cap: float, block: float, causes: set[str]
) -> None:
    """3.0 of a cap of 3.2 under a target of 4.0, and the whole block would reach 5.6; a cap of 0 is no cap."""
    text = body(spec_accept_length=3.0, spec_cap_length=cap, spec_block_accept_length=block)
    page = await serve(make(4.0), text, length=3.0)
    assert suspected(page) == causes
    assert page.state("speculation_state", rank="0") == ("capped" if causes else "active")
    assert page.value("slo_events_total", sli="batch", verdict="bad", profile="default") == 11


async def test_retractions_are_kv_pressure_below_the_high_water_mark(make: Callable[..., PolledDesk]) -> None:
    """92 % used under a mark of 95 %, and four requests lost their slots: told for five minutes, not for ever."""
    polled = make(kv={"high_water": 0.95})
    text = body(max_total_num_tokens=100_000, num_used_tokens=92_000)
    assert suspected(await polled.see(text + body(num_retracted_requests_total=11))) == set()
    page = await polled.see(text + body(num_retracted_requests_total=15), after=POLL)
    assert page.value("kv_retractions_total", rank="0") == 4
    assert page.state("line_state", line="kv") == "ok"
    assert suspected(page) == {"kv_pressure"}
    page = await polled.see(text + body(num_retracted_requests_total=15), after=360)
    assert suspected(page) == set()


@pytest.mark.parametrize(("steps", "events"), [(1, 0), (3, 1), (7, 1)])
async def test_a_target_beyond_the_window_is_no_breach(
    make: Callable[..., PolledDesk], steps: int, events: int
) -> None:
    """2.5 cannot be reached in a window of 2: such a report is no event; in one of 4 or 8 a length of 1.9 is bad."""
    text = (READINGS / "adaptive_window" / f"steps{steps}.prom").read_text()
    page = await serve(make(), text, length=1.9, polls=2)
    assert page.value("acceptance_window_length", rank="0") == steps + 1
    assert page.value("batch_acceptance_length_count", rank="0") == 1
    told = {v: page.value("slo_events_total", sli="batch", verdict=v, profile="default") for v in ("good", "bad")}
    assert told == {"good": 0, "bad": events}


@pytest.mark.parametrize(
    ("name", "length", "rate"), [("old_engine", 2.2, 0.4), ("new_engine", 2.2, 0.4), ("zero_old", 1.0, 0.0)]
)
async def test_the_rate_is_the_lengths_own(
    make: Callable[..., PolledDesk], name: str, length: float, rate: float
) -> None:
    """Two meanings of the engine's rate, one drafter: length and window give (2.2 − 1) ÷ 3 in both releases."""
    text = (READINGS / "two_meanings_of_rate" / f"{name}.prom").read_text()
    page = await serve(make(2.0), text, length=length, polls=2)
    shown = page.value("rolling_acceptance_length", scope="batch", window="1m")
    window = page.value("acceptance_window_length", rank="0")
    assert shown is not None
    assert window == 4
    assert (shown - 1) / (window - 1) == pytest.approx(rate, abs=1e-9)
    # neither 0.55 nor 0.25 stands anywhere
    assert not {0.55, 0.25} & {value for sample, _, value in page if "budget" not in sample}


async def test_two_minutes_without_a_token_earn_nothing_at_any_poll(make: Callable[..., PolledDesk]) -> None:
    """Polled every 5 s: no longer active after 30 s, frozen at every poll from 60 s on, no event all the time."""
    polled, states = make(), []
    for turn in range(25):
        name = "t120" if turn == 24 else "t0"
        text = (READINGS / "frozen_with_a_queue" / f"{name}.prom").read_bytes()
        page = await polled.see(text, after=POLL if turn else 0)
        states.append(page.state("speculation_state", rank="0"))
        assert page.of("slo_events_total") == [0, 0]
    assert states == ["active"] * 6 + ["idle"] * 6 + ["frozen"] * 13
    assert page.state("line_state", line="acceptance") == "at_risk"


async def test_a_running_gauge_that_lags_behind_freezes_nothing(make: Callable[..., PolledDesk]) -> None:
    """24 running for 30 s after the last token, then 0: idle from then on, for minutes, and never frozen."""
    polled, states = make(), []
    held = body(spec_accept_length=2.7)
    for turn in range(60):
        name = f"t{min(40, turn * 5 // 10 * 10):02}"
        text = (READINGS / "idle_after_work" / f"{name}.prom").read_text()
        states.append((await polled.see(text + held, after=POLL if turn else 0)).state("speculation_state", rank="0"))
    assert states == ["active"] * 6 + ["idle"] * 54
