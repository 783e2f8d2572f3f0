"""Why a line is not ok, as the demo's plain lines say it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.serve.page.statuses import a_status

from specbudget.demo.reasons import MOST_LETTERS, Reason, reasons
from specbudget.serve.status_model import Status

UNITS = {"target": "bytes", "target_length": "tokens", "burn_fast": "ratio", "high_water": "ratio", "pair": "ratio"}


def budget(name: str, spent: float | None, limit: float, ratio: float | None, why: str = "") -> dict[str, Any]:
    """One budget of a line, as the status shows it."""
    state = "unknown" if ratio is None else "breach" if ratio > 1 else "at_risk" if ratio > 0.9 else "ok"
    return {
        "budget": name,
        "state": state,
        "unit": UNITS[name],
        "spent": spent,
        "limit": limit,
        "floor": name == "target_length",
        "used_ratio": ratio,
        "why": why,
    }


def told(
    line: str, state: str, *budgets: dict[str, Any], down: str = "", waiting: bool = False, **parts: Any
) -> Reason:
    """The one reason of a status in which only this line is not ok."""
    lines = [
        {"line": line, "title": line, "budgeted": True, "state": state, "budgets": list(budgets)},
        {"line": "staging", "title": "staging", "budgeted": True, "state": "ok", "budgets": []},
    ]
    source = {"source": "metrics", "last_success": None, "reason": "", "problem": ""}
    acceptance: dict[str, Any] = {
        "source": "request_log",
        "scope": "request",
        "rolling": {},
        "target_length": 2.6,
        "objective": 0.95,
        "break_even": None,
        "expected": None,
        "ranks": [],
        "causes": parts.get("causes", []),
    }
    status = {
        **msgspec.to_builtins(a_status()),
        "lines": lines,
        "acceptance": acceptance | {"ranks": parts.get("ranks", [])},
        "start": None,
        "pair": parts.get("pair"),
        "sources": [source | {"up": None if waiting else not down}],
    }
    (reason,) = reasons(msgspec.convert(status, type=Status))
    return reason


LOW = budget("target_length", 1.72, 2.6, 1.51)
BURN = budget("burn_fast", 20.0, 13.4, 1.49)


def pair(*findings: tuple[str, str, str], due: tuple[str, ...] = ()) -> dict[str, Any]:
    """The pair's part of the status."""
    found = [{"id": rule, "result": result, "message": message} for rule, result, message in findings]
    return {"results": {}, "findings": found, "due": list(due)}


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        pytest.param(
            lambda: told("acceptance", "breach", LOW, BURN),
            "target_length 1.72, limit at least 2.60",
            id="a breach names the first budget that is over and its limit",
        ),
        pytest.param(
            lambda: told("acceptance", "breach", LOW, causes=[{"cause": "mix", "evidence": "two groups"}]),
            "target_length 1.72, limit at least 2.60; likely mix: two groups",
            id="a likely cause stands behind the number",
        ),
        pytest.param(
            lambda: told("kv", "at_risk", budget("target", 2**30, 2**30, 0.95), budget("high_water", 0.1, 0.9, 0.11)),
            "target 1.0 GiB, limit at most 1.0 GiB",
            id="at risk names the budget above its mark, not the one far from it",
        ),
        pytest.param(
            lambda: told("kv", "unknown", budget("target", None, 1.0, None, "the pool is not known"), down="metrics"),
            "the pool is not known (metrics down)",
            id="unknown says why and which source is down",
        ),
        pytest.param(
            lambda: told("kv", "unknown", budget("target", None, 1.0, None, "not readable"), waiting=True),
            "not everything was read yet",
            id="before the first reading nothing is blamed",
        ),
        pytest.param(
            lambda: told(
                "codesign",
                "breach",
                pair=pair(("codesign.a", "warn", "odd"), ("codesign.b", "fail", "wrong"), ("codesign.c", "fail", "x")),
            ),
            "codesign.b (and 1 more): wrong",
            id="the pair's failing rule comes before a warning",
        ),
        pytest.param(
            lambda: told("codesign", "at_risk", pair=pair(("codesign.t", "unknown", "no"), due=("kv",))),
            "a model changed since the pair was approved; due: kv",
            id="a plan that is due is named",
        ),
    ],
)
def test_each_state_has_its_sentence(reason: Any, text: str) -> None:
    """One short sentence per line that is not ok; a line that is ok has none."""
    assert reason().text == text


def test_a_reason_is_short_and_prints_as_it_stands() -> None:
    """A long finding is cut at a word, and nothing in it moves a terminal's cursor."""
    reason = told("codesign", "breach", pair=pair(("codesign.b", "fail", "word\x1b[2J " * 100)))
    assert len(reason.text) <= MOST_LETTERS + 2
    assert reason.text.endswith(" …")
    assert reason.text.isprintable()


def test_the_subject_stays_while_numbers_move() -> None:
    """Told again only when it is for something else: the same budget with another number is the same subject."""
    again = budget("target_length", 1.5, 2.6, 1.7)
    assert told("acceptance", "breach", LOW).subject == told("acceptance", "breach", again).subject
    assert told("acceptance", "breach", LOW).subject != told("acceptance", "breach", BURN).subject
