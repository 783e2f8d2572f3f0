"""How speculation is turned off and on again, when, and what it costs."""

from __future__ import annotations

from specbudget.budget.model import Budget
from specbudget.catalog import series
from specbudget.catalog.alerts.burn import FAST_BURN
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.alerts.speculation import OFF
from specbudget.catalog.engine_words import ENGINES
from specbudget.catalog.looks import length_query
from specbudget.catalog.promql import number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.domain.suspects import CONTRIBUTES_NOTHING
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.headings import SPECULATION
from specbudget.generate.runbook.launch import drafter_options, launch
from specbudget.generate.runbook.places import filled
from specbudget.words import span


def render(budget: Budget, s: RuleSettings) -> str:
    """The section."""
    words = ENGINES[budget.engine.kind]
    return (
        f"## {SPECULATION}\n\n"
        f"{words.title} cannot turn it off while it runs: **every replica restarts**, one by one. The answers stay "
        f"right "
        "with and without it.\n\n"
        f"**Do it when**\n\n{md.bullets(_when(s))}\n"
        f"**It costs**\n\n{md.bullets(_costs(budget, s))}\n"
        f"**Off**\n\n{_off(budget, s)}\n**On again**\n\n{_on(budget, s)}"
    )


def _when(s: RuleSettings) -> list[str]:
    found = [
        f"the length is {number(CONTRIBUTES_NOTHING)} or less and a restarted replica is no better "
        f"({md.link(COLLAPSED.name, f'#{COLLAPSED.anchor}')});"
    ]
    if s.has_break_even:
        found.append("the length is below break-even, and neither the load nor the length can be changed soon;")
    found.append("the pair does not fit and the rollout cannot be undone.")
    if s.pages:
        burn = md.link("a burn", f"#{FAST_BURN.anchor}")
        floor = "break-even" if s.has_break_even else number(CONTRIBUTES_NOTHING)
        found.append(f"**Not** for {burn} alone: above {floor} the drafter still helps, only less than promised.")
    return found


def _costs(budget: Budget, s: RuleSettings) -> list[str]:
    words, staging = ENGINES[budget.engine.kind], budget.budget.staging
    start = "" if staging is None or staging.cold_start is None else f", up to {span(staging.cold_start)} by budget"
    return [
        f"a restart of each replica{start}: capacity is missing meanwhile;",
        "one token per step: as far as the drafter still helped, answers get slower;",
        f"{words.concurrency};",
        "the drafter's memory goes to the target's pool, which gets larger;",
        f"{md.link(OFF.name, f'#{OFF.anchor}')} after {span(OFF.for_seconds)}: leave it as the reminder that it is. "
        "The acceptance pages end because nothing is judged any more, not because it is mended.",
    ]


def _off(budget: Budget, s: RuleSettings) -> str:
    words, command = ENGINES[budget.engine.kind], launch(budget, drafter=False)
    left_out = drafter_options(budget)
    steps = [
        "Take the replica out of traffic and let its requests end.",
        f"{words.off_how}{_these(left_out)}. Restart.{_block(command)}",
        f"Ask the engine. It must print {md.code(words.off_prints)}:{_block(filled(words.is_off, budget))}",
        f"Give it traffic again and take the next one. In the end only `off` may be "
        f"left:{_block(_states(s), 'promql')}",
    ]
    return md.numbered(steps)


def _on(budget: Budget, s: RuleSettings) -> str:
    words, command = ENGINES[budget.engine.kind], launch(budget, drafter=True)
    check = f"specbudget check --budget {filled('[budget]', budget)} --no-engine"
    target = budget.budget.acceptance.target_length if budget.budget.acceptance is not None else None
    least = "what it was before" if target is None else f"{number(target)} or more"
    steps = [
        f"The pair must fit (exit code 0):{_block(check)}",
        f"Start one replica with the drafter.{_block(command)}",
        f"Ask the engine. It must print {md.code(words.on_prints)}:{_block(filled(words.is_off, budget))}",
        f"After half an hour of traffic its length must be {least}:"
        f"{_block(length_query(s, 'pod, instance', '30m'), 'promql')}",
        "Then the others, one by one.",
    ]
    return md.numbered(steps)


def _these(options: tuple[str, ...] | None) -> str:
    if not options:
        return ""
    return ", here " + ", ".join(md.code(option) for option in options)


def _block(command: str | None, language: str = "sh") -> str:
    """A block within a numbered step."""
    if command is None:
        return ""
    lines = md.block(command, language).rstrip("\n").split("\n")
    return "\n\n" + "\n".join(f"   {line}" for line in lines) + "\n"


def _states(s: RuleSettings) -> str:
    return f"count by (state) ({s.of(series.SPECULATION_STATE)} == 1)"
