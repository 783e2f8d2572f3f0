"""SGLang's /v1/loads: captured documents of both releases, and ranks that said nothing yet."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from tests.scripted_engine import CAPTURED

from specbudget.domain.observation import RankReading
from specbudget.sources.sglang.loads import read_loads
from specbudget.sources.sglang.metrics import GIB

ONE = RankReading(
    running=12,
    queued=3,
    used_tokens=14321,
    capacity_tokens=612352,
    target_weight_bytes=71.284 * GIB,
    target_kv_bytes=45.113 * GIB,
)


@pytest.mark.parametrize(
    "name",
    [
        "0.5.18/v1_loads_v0.5.18_include_core_memory_spec.json",
        "0.5.18/v1_loads_v0.5.18_before_first_window.json",
        "0.5.18/v1_loads_v0.5.18_nospec.json",
        "0.5.23/v1_loads_v0.5.23_include_core_memory_spec.json",
        "0.5.23/v1_loads_v0.5.23_nospec_or_before_first_window.json",
    ],
)
def test_a_captured_document_of_one_rank(name: str) -> None:
    """Requests, slots and the target's memory are read; the acceptance since start is no reading of now."""
    assert read_loads((CAPTURED / name).read_bytes(), at=5.0).ranks == {"0": ONE}


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_two_ranks_stay_apart(version: str) -> None:
    """Each data-parallel rank is its own reading, down to the one token by which they differ."""
    body = (CAPTURED / version / f"v1_loads_v{version}_dspark_dp2.json").read_bytes()
    assert read_loads(body, at=0.0).ranks == {"0": ONE, "1": replace(ONE, used_tokens=14322)}


def test_a_rank_that_has_not_published_is_not_there() -> None:
    """Zeros with timestamp 0 mean that the scheduler said nothing yet, not that its pool is empty."""
    loads = [{"dp_rank": 0, "timestamp": 0, "num_running_reqs": 0}, {"dp_rank": 1, "timestamp": 9.5}]
    assert list(read_loads(json.dumps({"loads": loads}).encode(), at=0.0).ranks) == ["1"]


def test_zero_slots_and_zero_bytes_are_not_said() -> None:
    """A capacity of 0 is no capacity; 0 used tokens are a fact."""
    load = {
        "dp_rank": 0,
        "max_total_num_tokens": 0,
        "num_used_tokens": 0,
        "memory": {"weight_gb": 0, "kv_cache_gb": 0},
    }
    assert read_loads(json.dumps({"loads": [load]}).encode(), at=0.0).ranks == {"0": RankReading(used_tokens=0)}


@pytest.mark.parametrize("rank", [-1, 256, 10**12])
def test_a_rank_beyond_the_cap_is_not_read(rank: int) -> None:
    """A rank becomes a label, so a document cannot make up as many as it likes."""
    assert read_loads(json.dumps({"loads": [{"dp_rank": rank}]}).encode(), at=0.0).ranks == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"loads": [1]}',
        b'{"loads": [{"num_running_reqs": "12"}]}',
        b'{"loads": [',
        b"<html>",
    ],
)
def test_what_is_not_the_document_is_refused(body: bytes) -> None:
    """Anything else than what SGLang answers raises the decoder's error, which the poll counts as malformed."""
    with pytest.raises(msgspec.DecodeError):
        read_loads(body, at=0.0)
