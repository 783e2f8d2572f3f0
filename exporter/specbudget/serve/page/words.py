"""Words and forms of the page that are no figure's own."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from specbudget.domain.line_state import LineState
from specbudget.serve.headline import NOT_BUDGETED

STATE_WORDS = {
    LineState.OK: "ok",
    LineState.AT_RISK: "at risk",
    LineState.BREACH: "breach",
    LineState.UNKNOWN: "unknown",
    NOT_BUDGETED: "not budgeted",
}
"""Each stands beside a sign of its own shape: a state is never told by colour alone."""

ENGINE_NAMES = {"sglang": "SGLang", "vllm": "vLLM", "tensorrt-llm": "TensorRT-LLM"}

LINK_SCHEMES = ("http", "https")


def clock(at: float) -> str:
    """A moment as people at several places read it: hours, minutes, seconds, UTC."""
    return time.strftime("%H:%M:%S UTC", time.gmtime(at))


def iso(at: float) -> str:
    """A moment for a machine that reads the page."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def percent(share: float, digits: int = 1) -> str:
    """A share with its sign; the space does not break."""
    return f"{share * 100:.{digits}f}\u00a0%"


def plain(name: str) -> str:
    """A word of a closed set as people write it."""
    return name.replace("_", " ")


def is_link(address: str | None) -> bool:
    """True for what a browser may follow: a budget's own words could also be a script."""
    return address is not None and urlsplit(address.strip()).scheme.lower() in LINK_SCHEMES
