"""The acceptance line before rollout: can the target be met, does it pay, and will there be events to judge by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from specbudget.budget.acceptance import DEFAULT_PROFILE, AcceptanceLine
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.check.plan import Plan
from specbudget.check.rules.engine_words import set_draft_tokens
from specbudget.check.rules.rule import GateRule, told
from specbudget.domain.burn import LEAST_OBJECTIVE, REACHABLE
from specbudget.domain.finding import CheckResult, Exactness, Outcome, RuleText, fails, passes, unknown, warns

MARGIN = 1.1
"""A reference that exceeds what is asked by less than this leaves no room for a day that differs from the bench."""

_ROUNDING = 1e-9


def _line(plan: Plan) -> AcceptanceLine | None:
    return plan.budget.budget.acceptance


def _targets(line: AcceptanceLine) -> dict[str, float]:
    """Target length by profile; empty without an SLO."""
    if line.target_length is None:
        return {}
    return {DEFAULT_PROFILE: line.target_length, **{name: p.target_length for name, p in line.profiles.items()}}


def _without_speculation(plan: Plan) -> Outcome | None:
    """What an SLO comes to where nothing drafts; None where something does."""
    if plan.pair is not None:
        return None
    engine = plan.budget.engine
    silent = plan.engine is None and engine.args is None
    # another engine's arguments are not read for this, and a word that is not known may be an algorithm of tomorrow
    if silent or engine.kind != "sglang" or plan.facts.algorithm is not None:
        return unknown(
            "whether speculation is configured is not known, and without it there are no events: set engine.args, or "
            "drafter.path and drafter.algorithm"
        )
    return fails(
        "speculation is not configured: there will be no events; add --speculative-algorithm to engine.args, or take "
        "the acceptance line out of the budget"
    )


def _of_another_drafter(plan: Plan) -> Outcome | None:
    """What a reference comes to whose lengths this pair cannot have; None where it can."""
    if plan.reference is None or plan.window is None:
        return None
    longest, name = max((measured.longest, name) for name, measured in plan.reference.profiles.items())
    if longest <= plan.window + _ROUNDING:
        return None
    return fails(
        f"the reference has a length of {longest:.2f} in profile {name}, above the verify window of {plan.window}: it "
        "is another drafter's bench, or one of other arguments; measure this pair",
        value=round(longest, 4),
        limit=plan.window,
    )


def _window(plan: Plan) -> Outcome:
    if not plan.has_drafter:
        return passes("no second model")
    if plan.facts.adaptive:
        return unknown("--speculative-adaptive moves the window at run time: no single bound holds", required=False)
    if plan.window is None:
        return unknown(
            f"the verify window is not known: {set_draft_tokens(plan)}",
            required=_line(plan) is not None,
        )
    facts, algorithm = plan.facts, plan.algorithm
    given = plan.running.filled_from(plan.launch)
    chosen = given.num_draft_tokens is None and given.num_steps is None
    whose = ", the engine's default for this pair" if chosen else ""
    if algorithm is not None and algorithm.is_chain:
        step = f"{facts.num_steps} drafts + 1 token of the target = {plan.window}"
    else:
        step = f"{facts.num_draft_tokens} draft tokens, the anchor included"
    return told(
        f"no request can have a length above {plan.window}{whose}", plan.window, arithmetic=(f"verify window: {step}",)
    )


def _unattainable(plan: Plan) -> Outcome | None:
    line = _line(plan)
    targets = {} if line is None else _targets(line)
    if line is None or not targets:
        return None
    if (idle := _without_speculation(plan)) is not None:
        return idle
    beyond = {name: target for name, target in targets.items() if plan.window is not None and target > plan.window}
    if beyond:
        name, target = max(beyond.items(), key=lambda item: item[1])
        return fails(
            f"{_key(name)} {target:g} lies above the verify window of {plan.window}: no request can reach it; "
            f"lower it, or draft more tokens per step",
            value=target,
            limit=plan.window,
        )
    return _of_another_drafter(plan) or _worst(
        _against_reference(plan, line, name, target) for name, target in targets.items()
    )


def _key(profile: str) -> str:
    return "target_length" if profile == DEFAULT_PROFILE else f"profiles.{profile}.target_length"


def _against_reference(plan: Plan, line: AcceptanceLine, name: str, target: float) -> Outcome:
    """What the reference says of one profile's target."""
    if plan.reference is None:
        return unknown(
            plan.reference_problem
            or "no reference acceptance: name a bench file or request records as acceptance.reference",
            required=plan.reference_problem is not None,
        )
    measured = plan.reference.of(name)
    if measured is None:
        return unknown(f"{plan.reference.source} says nothing of profile {name}", required=False)
    share, reached = measured.share_reaching(target), measured.reached_by(line.objective)
    if reached is None:
        if measured.length < target:
            return fails(
                f"{_key(name)} {target:g}, and the reference's mean is {measured.length:.2f}: {line.objective:.0%} of "
                "requests cannot reach it; lower it to a low quantile of what was measured",
                value=round(measured.length, 4),
                limit=target,
            )
        return unknown(
            f"the reference gives only a mean of {measured.length:.2f}: what {line.objective:.0%} of requests reach "
            "needs its quantiles or request records",
            required=False,
        )
    low, high = reached
    arithmetic = (
        f"profile {name}: {line.objective:.0%} of requests reach {_interval(low, high)}"
        + ("" if measured.requests is None else f", of {measured.requests:,} requests"),
        f"target {target:g}" + ("" if share is None else f", reached by {share:.1%}"),
        f"source: {plan.reference.source}",
    )
    words = f"{line.objective:.0%} of the reference's requests reach {_interval(low, high)}"
    if high < target:
        return told(
            f"{words}, {_key(name)} is {target:g}: the SLO cannot be met; lower it to at most {high:.2f}, or get a "
            "better drafter",
            round(high, 4),
            result=CheckResult.FAIL,
            limit=target,
            low=low,
            high=high,
            floor=True,
            exactness=Exactness.FROM_LOG,
            arithmetic=arithmetic,
        )
    if low < target:
        return told(
            f"{words}, and {_key(name)} {target:g} lies in between: give more quantiles or request records",
            round(low, 4),
            result=CheckResult.UNKNOWN,
            limit=target,
            low=low,
            high=high,
            floor=True,
            exactness=Exactness.FROM_LOG,
            arithmetic=arithmetic,
        )
    return told(
        f"{words}, {_key(name)} is {target:g}",
        round(low, 4),
        limit=target,
        low=low,
        high=high,
        floor=True,
        exactness=Exactness.FROM_LOG,
        arithmetic=arithmetic,
    )


def _interval(low: float, high: float) -> str:
    return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"


_SEVERITY = (CheckResult.PASS, CheckResult.WARN, CheckResult.UNKNOWN, CheckResult.FAIL)


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several; of equals the first. An unknown that is not required is better than one that is."""
    return max(
        outcomes, key=lambda o: (_SEVERITY.index(o.result), o.result is CheckResult.UNKNOWN and o.required is not False)
    )


def _no_margin(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or plan.reference is None:
        return None
    if plan.pair is None or _of_another_drafter(plan) is not None:
        return unknown("the reference is not of this pair: what margin there is is not known", required=False)
    tight = []
    for name, target in _targets(line).items():
        measured = plan.reference.of(name)
        reached = None if measured is None else measured.reached_by(line.objective)
        if reached is not None and target <= reached[0] < MARGIN * target - _ROUNDING:
            tight.append((reached[0] / target, name, reached[0], target))
    if not tight:
        return passes(f"the reference leaves more than {MARGIN - 1:.0%} of margin, or tells no quantile")
    _, name, reached_length, target = min(tight)
    return warns(
        f"{line.objective:.0%} of the reference's requests reach {reached_length:.2f}, {_key(name)} is {target:g}: a "
        f"day that is {reached_length / target - 1:.0%} worse than the bench breaks the SLO; lower it to "
        f"{reached_length / MARGIN:.2f}",
        value=round(reached_length, 4),
        limit=target,
    )


def _break_even(plan: Plan) -> Outcome | None:
    line = _line(plan)
    curve = None if line is None else line.break_even_curve()
    if line is None or curve is None:
        return None
    if (idle := _without_speculation(plan)) is not None:
        return idle
    needed, at_least = curve.at(plan.concurrency), curve.is_lower_bound(plan.concurrency)
    running = f"{plan.concurrency} running requests"
    bound = "at least " if at_least else ""
    arithmetic: tuple[str, ...] = (f"break-even at {running}: {bound}{needed:.3g}",)
    measured = None if plan.reference is None else plan.reference.of(DEFAULT_PROFILE)
    if plan.window is not None and needed > plan.window:
        return told(
            f"break-even at {running} is {needed:.2f}, above the verify window of {plan.window}: with this drafter two "
            "models are always slower than one; run fewer requests at once or switch speculation off",
            round(needed, 4),
            result=CheckResult.FAIL,
            limit=plan.window,
            arithmetic=arithmetic,
        )
    if (foreign := _of_another_drafter(plan)) is not None:
        return foreign
    if measured is None:
        return unknown(
            f"break-even at {running} is {bound}{needed:.2f}; without a reference acceptance it is not known whether "
            "speculation pays",
            required=False,
        )
    length = measured.length
    arithmetic += (f"reference length, a ratio of sums: {length:.4g}", f"speed-up: {length / needed:.2f}")
    if length < needed:
        result = CheckResult.FAIL
        message = f"the reference length {length:.2f} is below break-even {needed:.2f} at {running}: two models are "
        message += "slower than one; run fewer requests at once or switch speculation off"
    elif at_least:
        result = CheckResult.UNKNOWN
        message = (
            f"break-even was measured up to {curve.points[-1][0]} running requests, {needed:.2f} there, and rises "
        )
        message += f"beyond: whether the reference length {length:.2f} pays at {plan.concurrency} is not known; "
        message += f"measure a point at {running}"
    elif length < MARGIN * needed:
        result = CheckResult.WARN
        message = f"the reference length {length:.2f} is hardly above break-even {needed:.2f} at {running}: the "
        message += f"drafter's memory buys {length / needed - 1:.0%}"
    else:
        result = CheckResult.PASS
        message = f"the reference length {length:.2f} pays at {running}, where break-even is {needed:.2f}"
    return told(
        message,
        round(length, 4),
        result=result,
        limit=round(needed, 4),
        floor=True,
        exactness=Exactness.FROM_LOG,
        arithmetic=arithmetic,
    )


def _objective(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.target_length is None:
        return None
    largest = 1.0 / (1.0 - line.objective)
    if line.objective < LEAST_OBJECTIVE:
        return fails(
            f"objective {line.objective:g}: the largest possible burn is {largest:.2f}, no burn-rate alert can tell a "
            f"collapse from a normal day; choose at least {LEAST_OBJECTIVE:g}, or another sli",
            value=line.objective,
            limit=LEAST_OBJECTIVE,
        )
    return passes(
        f"burn reaches {largest:.1f} at most, alerts ask for up to {REACHABLE * largest:.1f}", value=line.objective
    )


def _events(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.target_length is None:
        return None
    if (idle := _without_speculation(plan)) is not None:
        return idle
    engine = plan.budget.engine
    if line.sli in ("request", "step") and engine.request_log is None:
        return warns(
            f"sli: {line.sli} counts finished requests, and engine.request_log is not set: there will be no events; "
            "start the engine with --export-metrics-to-file and name its folder, or choose sli: batch",
            value=line.sli,
        )
    return passes(f"the {line.sli} form has its source", value=line.sli)


def _rule(what: str, asks: str, check: Callable[[Plan], Outcome | None], source: str, unit: str = "") -> GateRule:
    return GateRule(text=RuleText(id=f"{ACCEPTANCE.id}.{what}", asks=asks, source=source, unit=unit), check=check)


_REFERENCE = "acceptance.reference: request records, quantiles per profile, or a bench's mean"

RULES = (
    _rule(
        "window",
        "How long can an acceptance length be?",
        _window,
        "SGLang 0.5.23: DSpark gamma + 1, DFlash the block, EAGLE and MTP steps + 1",
        unit="tokens",
    ),
    _rule("unattainable", "Can the target be met at all?", _unattainable, _REFERENCE, unit="tokens"),
    _rule(
        "no_margin", "Is there room between what was measured and the target?", _no_margin, _REFERENCE, unit="tokens"
    ),
    _rule(
        "break_even",
        "Do two models beat one at the planned batch?",
        _break_even,
        "(T_draft + T_verify + T_overhead) / T_plain, at kv.concurrency running requests",
        unit="tokens",
    ),
    _rule(
        "objective",
        "Can burn-rate alerts fire with this objective?",
        _objective,
        "the largest possible burn is 1 / (1 - objective)",
        unit="ratio",
    ),
    _rule("events", "Will the SLO have events?", _events, "the sources that the budget names"),
)
