"""A running sidecar's metrics as a reference."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scripted_engine import Answer, ScriptedEngine
from specbudget.check.init.sidecar import read_sidecar
from specbudget.check.init.sidecar_http import SidecarAccess, SidecarSilent

METRICS = """\
# TYPE specbudget_verify_steps_total counter
specbudget_verify_steps_total{specbudget_service="chat",rank="0",profile="default"} 1000
specbudget_verify_steps_total{specbudget_service="chat",rank="1",profile="default"} 1000
# TYPE specbudget_accepted_draft_tokens_total counter
specbudget_accepted_draft_tokens_total{specbudget_service="chat",rank="0",profile="default"} 3000
specbudget_accepted_draft_tokens_total{specbudget_service="chat",rank="1",profile="default"} 4000
# TYPE specbudget_request_acceptance_length histogram
specbudget_request_acceptance_length_bucket{specbudget_service="chat",profile="default",le="2.5"} 0
specbudget_request_acceptance_length_bucket{specbudget_service="chat",profile="default",le="3.0"} 2
specbudget_request_acceptance_length_bucket{specbudget_service="chat",profile="default",le="3.5"} 10
specbudget_request_acceptance_length_bucket{specbudget_service="chat",profile="default",le="5.0"} 100
specbudget_request_acceptance_length_bucket{specbudget_service="chat",profile="default",le="+Inf"} 100
"""


async def read(body: str) -> object:
    """What `read_sidecar` makes of a page; the server runs beside it."""
    async with ScriptedEngine({"/metrics": Answer(body.encode())}) as engine:
        return await asyncio.to_thread(read_sidecar, SidecarAccess(url=engine.url))


async def test_lengths_by_ratio_of_sums_and_quantiles_by_bounds() -> None:
    """The length sums over ranks; what 95 % of requests reach lies between two bounds of the histogram."""
    service, reference = await read(METRICS)  # type: ignore[misc]
    measured = reference.of("default")
    assert service == "chat"
    assert measured.length == pytest.approx(1 + 7000 / 2000)
    assert measured.reached_by(0.95) == (3.0, 3.5)
    assert measured.reached_by(0.98) == (3.0, 3.0)
    assert measured.reached_by(0.995) == (2.5, 3.0)


@pytest.mark.parametrize(
    "body", ["", "# nothing yet\n", METRICS.replace("1000", "0"), "<html>login</html>", 'broken{le="1" 3\n']
)
async def test_a_page_that_tells_nothing_is_one_line(body: str) -> None:
    """No counts, another page, or a broken one: said in one line, never a guess."""
    with pytest.raises(SidecarSilent, match="--sidecar http"):
        await read(body)


def test_only_http_is_read(tmp_path: Path) -> None:
    """An address that is a file is refused."""
    with pytest.raises(SidecarSilent, match="http://HOST:PORT"):
        read_sidecar(SidecarAccess(url=(tmp_path / "x").as_uri()))
