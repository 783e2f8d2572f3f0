"""The reference page of the co-design rules, made from their declarations."""

from __future__ import annotations

from specbudget.domain.codesign import RULES, Rule

_HEAD = """<!-- Generated from exporter/specbudget/domain/codesign by `make generate`: do not edit. -->
# Co-design rules

Does this drafter fit this target, on this engine? Each rule gives one finding under its id: pass, warn, fail or
unknown. A failing rule breaches the co-design line, a warning puts it at risk. Unknown is never a pass: where the
evidence of a required rule is missing the line is unknown; of the others it is only told, since a checkpoint may
lawfully lack it.

At run time `specbudget_codesign_check` shows every rule that does not pass, by its id without `codesign.`.
What an engine refuses at start is not held against one that runs.

## Taps: where DFlash and DSpark fail, EAGLE-3 warns

A block drafter that does not say which layers it reads fails `codesign.taps_present`; an EAGLE-3 head only warns.
That is deliberate. Engines guess evenly spaced layers for a block drafter, and the guess follows from the number of
its own layers and the target's: it is right by accident only, the weights load all the same, and acceptance
collapses without a word. For EAGLE-3 the fallback (the inputs of layers 2, L // 2 and L - 3) is a convention with
which published heads were trained, so a missing key is usually right; it is warned of because nothing proves it.

All taps are compared in one index space: the output of a layer, counted from 0, which is the input of the next.
"""

_TABLE = "| id | question | looks at | for | on | required | source |\n|---|---|---|---|---|---|---|\n"


def render() -> str:
    """The whole page."""
    return f"{_HEAD}\n## {len(RULES)} rules\n\n{_TABLE}" + "".join(_row(rule) for rule in RULES)


def _row(rule: Rule) -> str:
    algorithms = "all" if rule.algorithms is None else ", ".join(sorted(rule.algorithms))
    engines = "all" if rule.engines is None else ", ".join(sorted(rule.engines))
    required = "yes" if rule.required else "no"
    return f"| `{rule.id}` | {rule.asks} | {rule.evidence} | {algorithms} | {engines} | {required} | {rule.source} |\n"
