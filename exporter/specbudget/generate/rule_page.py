"""The reference page of the gate's rules, made from their declarations."""

from __future__ import annotations

from specbudget.catalog.lines import CODESIGN, LINES, LineDef
from specbudget.check.report import GATE_RULES
from specbudget.domain.codesign import RULES, Rule
from specbudget.domain.finding import RuleText

_HEAD = """<!-- Generated from exporter/specbudget/check/rules and domain/codesign by `make generate`: do not edit. -->
# Rules

What `specbudget check` asks, line by line. Each rule gives at most one finding under its id: pass, warn, fail or
unknown. Unknown is never a pass: where the evidence of a required rule is missing the line is unknown; of the others it
is only told, since it may lawfully be absent. `specbudget check --explain ID` shows the arithmetic with your numbers.
"""

_CODESIGN = """
## Co-design

Does this drafter fit this target, on this engine? A failing rule breaches the line, a warning puts it at risk. At run
time `specbudget_codesign_check` shows every rule on the pair that does not pass, by its id without `codesign.`. What an
engine refuses at start is not held against one that runs.

### Taps: where DFlash and DSpark fail, EAGLE-3 warns

A block drafter that does not say which layers it reads fails `codesign.taps_present`; an EAGLE-3 head only warns.
That is deliberate. Engines guess evenly spaced layers for a block drafter, and the guess follows from the number of
its own layers and the target's: it is right by accident only, the weights load all the same, and acceptance
collapses without a word. For EAGLE-3 the fallback (the inputs of layers 2, L // 2 and L - 3) is a convention with
which published heads were trained, so a missing key is usually right; it is warned of because nothing proves it.

All taps are compared in one index space: the output of a layer, counted from 0, which is the input of the next.
"""

_TABLE = "| id | question | looks at | for | on | required | source |\n|---|---|---|---|---|---|---|\n"


_LINE_TABLE = "| id | question | required | source |\n|---|---|---|---|\n"


def render() -> str:
    """The whole page."""
    return "".join(
        (_HEAD, *(_line(line) for line in LINES if line is not CODESIGN), _CODESIGN, _line(CODESIGN), _pair())
    )


def _line(line: LineDef) -> str:
    """The rules of one line that are not on the pair."""
    rows = "".join(_gate_row(rule.text) for rule in GATE_RULES if rule.id.startswith(f"{line.id}."))
    title = "\n### The plan as a whole" if line is CODESIGN else f"\n## {line.title}"
    return f"{title}\n\n{_LINE_TABLE}{rows}"


def _gate_row(text: RuleText) -> str:
    return f"| `{text.id}` | {text.asks} | {'yes' if text.required else 'no'} | {text.source} |\n"


def _pair() -> str:
    return f"\n### The {len(RULES)} rules on a pair\n\n{_TABLE}" + "".join(_row(rule) for rule in RULES)


def _row(rule: Rule) -> str:
    algorithms = "all" if rule.algorithms is None else ", ".join(sorted(rule.algorithms))
    engines = "all" if rule.engines is None else ", ".join(sorted(rule.engines))
    required = "yes" if rule.required else "no"
    return f"| `{rule.id}` | {rule.asks} | {rule.evidence} | {algorithms} | {engines} | {required} | {rule.source} |\n"
