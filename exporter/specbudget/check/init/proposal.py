"""Limits that a plan keeps with room to spare, proposed from what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from specbudget.check.plan import DEFAULT_CONCURRENCY, Plan
from specbudget.check.rules.acceptance import MARGIN
from specbudget.domain.reference_lengths import ReferenceLengths

ROOM = 1.2
"""A proposed limit exceeds what is spent by this, so that it neither warns today nor hides a doubling."""

OBJECTIVE = 0.95
DEFAULT_TOKENS = 8192
_FILL = 0.85
"""Of the pool the planned requests may fill so much, a little below the high-water mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Proposed values; None where nothing is known to propose from. Bytes, seconds and tokens."""

    target_disk: int | None = None
    drafter_disk: int | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    tokens_per_request: int = DEFAULT_TOKENS
    min_target_tokens: int | None = None
    target_pool: int | None = None
    drafter_pool: int | None = None
    target_length: float | None = None
    measured: str = ""
    cold_start: float | None = None
    prefetches: bool | None = None
    arguments: tuple[str, ...] = field(default_factory=tuple)


def propose(plan: Plan) -> Proposal:
    """A proposal from a plan whose budget has no limits yet."""
    pool, target_token, draft = plan.pool.tokens, plan.kv.target_token_bytes, plan.draft_kv
    concurrency = plan.facts.max_running_requests or DEFAULT_CONCURRENCY
    per_request = DEFAULT_TOKENS
    least = None
    if pool is not None and pool.low > 0:
        per_request = max(1, min(DEFAULT_TOKENS, int(pool.low * _FILL / concurrency)))
        least = _rounded_down(pool.low / ROOM)
    reference = None if plan.reference is None else plan.reference.of("default")
    length, measured = _target_length(reference)
    return Proposal(
        target_disk=None if plan.target is None else plan.target.checkpoint.disk_bytes,
        drafter_disk=None if plan.drafter is None else plan.drafter.checkpoint.disk_bytes,
        concurrency=concurrency,
        tokens_per_request=per_request,
        min_target_tokens=least,
        target_pool=None if pool is None or target_token is None else (pool.high + plan.page) * target_token,
        drafter_pool=None if pool is None or draft is None else draft.allocated_bytes(pool.high),
        target_length=length,
        measured=measured,
        cold_start=_cold_start(plan),
        prefetches=plan.facts.prefetches,
        arguments=_arguments(plan),
    )


def _target_length(reference: ReferenceLengths | None) -> tuple[float | None, str]:
    """The length that nearly every request reached, less a margin; and where it comes from, in words."""
    if reference is None:
        return None, ""
    reached = reference.reached_by(OBJECTIVE)
    if reached is None:
        return None, f"the mean was {reference.length:.2f}; a target needs what {OBJECTIVE:.0%} of requests reach"
    target = math.floor(reached[0] / MARGIN * 10 + 1e-9) / 10
    if target < 1.1:
        return None, f"{OBJECTIVE:.0%} of requests reached only {reached[0]:.2f}: there is no target to keep"
    return target, f"{OBJECTIVE:.0%} of requests reached {reached[0]:.2f}, the mean was {reference.length:.2f}"


def _cold_start(plan: Plan) -> float | None:
    """Of the last start that is known of."""
    phases = None if plan.engine is None else plan.engine.phases
    if plan.start is not None and plan.start.cold_start is not None:
        return plan.start.cold_start
    return None if phases is None else phases.engine


def _arguments(plan: Plan) -> tuple[str, ...]:
    """The running engine's arguments that decide this budget; empty without one."""
    if plan.engine is None:
        return ()
    facts = plan.running
    words: list[str] = []

    def add(flag: str, value: object) -> None:
        if value is not None:
            words.extend((flag, str(value)))

    add("--tp", facts.tensor_parallel)
    for flag, value in (("--pp", facts.pipeline_parallel), ("--dp", facts.data_parallel)):
        if value is not None and value > 1:
            add(flag, value)
    add("--speculative-algorithm", facts.algorithm)
    block = plan.algorithm is not None and plan.algorithm.is_block
    if not block:
        add("--speculative-num-steps", facts.num_steps)
        add("--speculative-eagle-topk", facts.topk)
    add("--speculative-num-draft-tokens", facts.num_draft_tokens)
    add("--mem-fraction-static", facts.mem_fraction_static)
    add("--page-size", facts.page_tokens)
    add("--max-running-requests", facts.max_running_requests)
    if facts.flags.enable_linear_replayssm_spec:
        words.append("--enable-linear-replayssm-spec")
        add("--linear-replayssm-cache-len", facts.flags.linear_replayssm_cache_len)
    if facts.prefetches:
        words.append("--weight-loader-prefetch-checkpoints")
    return tuple(words)


def _rounded_down(tokens: float) -> int:
    """To two leading digits, so that people can remember it."""
    digits = max(0, len(str(int(tokens))) - 2)
    unit: int = 10**digits
    return max(1, int(tokens) // unit * unit)
