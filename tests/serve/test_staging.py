"""How a start was staged, and the split of device memory that it left."""

from __future__ import annotations

import pytest

from specbudget.budget.model import Budget
from specbudget.catalog.sets import StartKind
from specbudget.domain.codesign import EngineFlags
from specbudget.domain.device_memory import MemoryPart
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, ModelGeometry, RecurrentLayer
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.domain.stages import Stage, StageArtifact, StagingMode
from specbudget.domain.start_memory import RankMemory
from specbudget.domain.start_stages import StageTime
from specbudget.domain.start_up import StartUp
from specbudget.pair.kv import ModelFacts, Pair
from specbudget.serve.kv_figures import KvFigures, PoolFigures
from specbudget.serve.staging import AsRun, as_run, cold_start_seconds, device_memory, start_kind
from specbudget.serve.start_view import StartView

GIB = 1 << 30
PLAIN = ModelGeometry(layers=(AttentionLayer(kv_heads=8, head_dim=128, v_head_dim=128),))
HYBRID = ModelGeometry(layers=(*PLAIN.layers, RecurrentLayer()))


def view(**start: object) -> StartView:
    """A start with these facts."""
    return StartView(start=StartUp(basis=None, **start))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "facts", "expected"),
    [
        (None, EngineFacts(), None),
        (
            view(mode=StagingMode.PREFETCH, order=(StageArtifact.TARGET, StageArtifact.DRAFTER), warm_up=True),
            EngineFacts(prefetches=False),
            AsRun(mode="prefetch", order="target,drafter", warmup="done"),
        ),
        (
            None,
            EngineFacts(prefetches=True, skips_warmup=True),
            AsRun(mode="prefetch", order="unknown", warmup="skipped"),
        ),
        (None, EngineFacts(prefetches=False), AsRun(mode="serial", order="unknown", warmup="unknown")),
        (
            None,
            EngineFacts(prefetches=False, flags=EngineFlags(startup_weight_load_mode="overlap")),
            AsRun(mode="overlap", order="unknown", warmup="unknown"),
        ),
    ],
    ids=["nothing known", "the log's word", "prefetch by argument", "serial by argument", "overlap by argument"],
)
def test_staging_is_told_as_it_was_run(seen: StartView | None, facts: EngineFacts, expected: AsRun | None) -> None:
    """The start's own log first, then the engine's arguments; what nobody tells is unknown."""
    assert as_run(seen, facts) == expected


def test_a_start_that_goes_on_counts_as_far_as_it_is() -> None:
    """The cold start once there was a generation, what it has taken so far before."""
    assert cold_start_seconds(None) is None
    assert cold_start_seconds(view(cold_start_seconds=12.0)) == 12.0
    assert cold_start_seconds(StartView(start=StartUp(basis=None), running_seconds=30.0)) == 30.0


@pytest.mark.parametrize(
    ("seconds", "bandwidth", "kind"),
    [(10.0, 2 * GIB, StartKind.WARM), (60.0, 2 * GIB, StartKind.UNKNOWN), (10.0, None, StartKind.UNKNOWN)],
    ids=["faster than storage", "no faster", "bandwidth not stated"],
)
def test_a_warm_page_cache_is_told_by_evidence_alone(seconds: float, bandwidth: int | None, kind: StartKind) -> None:
    """100 GiB in 10 s did not come from a store of 2 GiB/s; a slow load proves nothing."""
    load = StageTime(stage=Stage.LOAD, artifact=StageArtifact.TARGET, offset=1.0, seconds=seconds)
    assert start_kind(view(stages=(load,)), 100 * GIB, bandwidth) is kind
    assert start_kind(view(), 100 * GIB, bandwidth) is StartKind.UNKNOWN


def split(geometry: ModelGeometry, log: RankMemory, **reading: object) -> dict[MemoryPart, int]:
    """The parts of rank 0 of a pair on an 80 GiB device."""
    pair = Pair(
        target=ModelFacts(geometry=geometry),
        drafter=ModelFacts(),
        algorithm=DraftAlgorithm.DSPARK,
        facts=EngineFacts(),
        budget=Budget.model_validate({"service": "a", "engine": {"gpu_memory": "80GiB"}}),
    )
    told: dict[str, object] = {
        "target_weight_bytes": 30.0 * GIB,
        "target_kv_bytes": 20.0 * GIB,
        "free_bytes": 5.0 * GIB,
        "graph_bytes": {"target_verify": 1.0 * GIB, "prefill": 0.5 * GIB, "draft_decode": 0.5 * GIB},
    }
    figures = KvFigures(drafter_pools={"0": PoolFigures(capacity_bytes=10.0 * GIB)})
    memory = device_memory(pair, {"0": RankReading(**(told | reading))}, {"0": log}, figures, 2 * GIB)  # type: ignore[arg-type]
    return dict(memory["0"])


def test_the_remainder_of_a_plain_target_is_named() -> None:
    """80 − 30 − 2 − 20 − 10 − 1.5 − 0.5 − 5 GiB are neither weights nor KV nor graphs nor free."""
    parts = split(PLAIN, RankMemory())
    assert parts[MemoryPart.TARGET_GRAPHS] == 1.5 * GIB
    assert parts[MemoryPart.OTHER] == 11 * GIB
    assert MemoryPart.TARGET_STATE not in parts


def test_without_the_state_of_a_hybrid_there_is_no_remainder() -> None:
    """What nobody told would hide in it."""
    assert MemoryPart.OTHER not in split(HYBRID, RankMemory())
    told = split(HYBRID, RankMemory(target_state=4.0 * GIB, verify_state=1.0 * GIB))
    assert (told[MemoryPart.TARGET_STATE], told[MemoryPart.OTHER]) == (4 * GIB, 6 * GIB)
    assert split(HYBRID, RankMemory(target_state=4.0 * GIB))[MemoryPart.OTHER] == 7 * GIB


def test_the_log_fills_what_metrics_do_not_say() -> None:
    """Exact figures first; the log's hundredths of a GiB where there is nothing else."""
    parts = split(PLAIN, RankMemory(target_kv=19.0 * GIB, free=6.0 * GIB), target_kv_bytes=None)
    assert (parts[MemoryPart.TARGET_KV], parts[MemoryPart.FREE]) == (19 * GIB, 5 * GIB)
