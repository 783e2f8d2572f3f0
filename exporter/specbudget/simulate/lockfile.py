"""The lock beside the budget of the stand-in's deployment: the pair as it was when it passed its checks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from specbudget.budget.lock import Lock, LockedEngine, LockedModel, lock_path, write_lock
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.pair.side import locked_model, read_side
from specbudget.simulate.deployment import SERVICE, VERSION, Deployment
from specbudget.sources.checkpoint import read_checkpoint


def write_pair_lock(deployment: Deployment, *, now: float) -> None:
    """Locks the pair as it is on disk, approved at `now` (epoch seconds). Raises BudgetError where it cannot."""
    sizes = deployment.sizes()
    lock = Lock(
        lock=1,
        service=SERVICE,
        approved_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        target=_model(deployment.target, sizes.target_token_bytes),
        drafter=_model(deployment.drafter, sizes.drafter_token_bytes),
        engine=LockedEngine(
            version=VERSION,
            algorithm=DraftAlgorithm(deployment.drafting.budgeted),
            num_draft_tokens=deployment.drafting.window,
            tensor_parallel=deployment.scenario.tensor_parallel,
        ),
    )
    write_lock(lock_path(deployment.budget), lock)


def _model(folder: Path, token_bytes: int) -> LockedModel:
    model = locked_model(read_side(read_checkpoint(folder)), kv_bytes_per_token=token_bytes)
    if model is None:
        raise RuntimeError(f"{folder}: the stand-in wrote a checkpoint that cannot be read")
    return model.model_copy(update={"path": folder.name})
