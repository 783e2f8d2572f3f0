"""What each scenario plants, and so the cause that its review must name first."""

from __future__ import annotations

from specbudget.review.model import Cause

PLANTED: dict[str, Cause] = {
    "steady": Cause.NOTHING,
    "dp2": Cause.NOTHING,
    "log-rotation": Cause.NOTHING,
    "spec-adaptive": Cause.NOTHING,
    "acceptance-drop": Cause.ACCEPTANCE_DROP,
    "collapse": Cause.COLLAPSE,
    "slow-decay": Cause.DECAY,
    "mix-shift": Cause.MIX,
    "over-strong": Cause.OVER_STRONG,
    "kv-pressure": Cause.KV_PRESSURE,
    "cold-start-slow": Cause.COLD_START,
    "stuck-start": Cause.STUCK_START,
    "drafter-swapped": Cause.DRAFTER_CHANGED,
    "pair-unfit": Cause.PAIR_UNFIT,
    "speculation-off": Cause.SPECULATION_OFF,
    "idle": Cause.IDLE,
    "frozen": Cause.FROZEN,
    "restart": Cause.ENGINE_RESTART,
    "pd-prefill": Cause.PREFILL_ONLY,
    "sidecar-blind": Cause.SIDECAR_BLIND,
    "capacity-shrank": Cause.CAPACITY_SHRANK,
}
