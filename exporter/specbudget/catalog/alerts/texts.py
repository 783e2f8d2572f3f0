"""The words of alerts that are asked of Prometheus when one fires: worst replicas, likely causes, lists."""

from __future__ import annotations

from collections.abc import Mapping

from specbudget.catalog import series
from specbudget.catalog.engine_words import ENGINES
from specbudget.catalog.promql import equals
from specbudget.catalog.recording import ACCEPTED, BREAK_EVEN_OF_SERVICE, STEPS, Level
from specbudget.catalog.rule_settings import COLLAPSE_SECONDS, OUTLIER_SECONDS, RuleSettings
from specbudget.catalog.series import SERVICE_LABEL
from specbudget.catalog.sets import CheckResult

RUNBOOK = "docs/runbook.md"
DASHBOARDS = "/d"
"""Where a budget without `links` points to: the generated file, and a path of Grafana's own."""


LIKELY_CAUSE, SHORTEST, TO_TURN_OFF = "Likely cause:", "Shortest:", "To turn speculation off:"
PHRASES = (LIKELY_CAUSE, SHORTEST, TO_TURN_OFF)
"""What begins a part of a description that has a line of its own in a message."""


def escaped(text: str) -> str:
    """Text of the budget as a template says it literally."""
    return text.replace("{{", '{{ "{{" }}')


def filled(text: str, s: RuleSettings, words: Mapping[str, str]) -> str:
    """A text with its marks replaced.

    [service] the service, [value] the value with two digits, [count] without, [replicas] as so many replicas,
    [percent] as a percentage. Each with the phrase that begins it: [worst] and [worst 15m] the replicas with the
    shortest lengths, [cause] the likely causes, [off] how speculation is turned off. In parentheses, and nothing where
    it is not known: [target length] what is in force, [break-even] what the length was compared with.
    """
    marks = {
        "[service]": f"{{{{ $labels.{SERVICE_LABEL} }}}}",
        "[value]": '{{ printf "%.2f" $value }}',
        "[count]": '{{ printf "%.0f" $value }}',
        "[replicas]": '{{ printf "%.0f" $value }} replica{{ if ne $value 1.0 }}s{{ end }}',
        "[percent]": "{{ $value | humanizePercentage }}",
        "[worst]": f"{SHORTEST}{_worst(s, COLLAPSE_SECONDS)}",
        "[worst 15m]": f"{SHORTEST}{_worst(s, OUTLIER_SECONDS)}",
        "[cause]": f"{LIKELY_CAUSE}{likely_cause(s)}",
        "[target length]": _target_length(s),
        "[break-even]": _break_even(s),
        "[off]": f"{TO_TURN_OFF} {ENGINES[s.engine].off}.",
    } | {f"[{name}]": word for name, word in words.items()}
    for mark, word in marks.items():
        text = text.replace(mark, word)
    return text


def same_service(s: RuleSettings, *matchers: str) -> str:
    """Matchers of the alert's own labels, for a query within a text: verbs of printf, filled by `arguments`."""
    own = [f"{label}=%[{place}]q" for place, label in enumerate(s.labels, start=1)]
    return "{" + ",".join((*own, *matchers)) + "}"


def asked(s: RuleSettings, query: str) -> str:
    """A query within a text, as an argument of `range` and `with`."""
    escaped_query = query.replace('"', '\\"')
    return f'query (printf "{escaped_query}" {" ".join(f"$labels.{label}" for label in s.labels)})'


def _worst(s: RuleSettings, seconds: float) -> str:
    """The three replicas with the shortest lengths, each with its length."""
    steps, accepted = (f"{q.at(Level.REPLICA, seconds)}{same_service(s)}" for q in (STEPS, ACCEPTED))
    length = f"bottomk(3, 1 + {accepted} / ({steps} > 0))"
    return (
        f"{{{{ with {asked(s, length)} }}}}{{{{ range . }}}} "
        '{{ .Labels.pod }} {{ .Labels.instance }} {{ printf "%.2f" .Value }};'
        "{{ end }}{{ else }} not known{{ end }}"
    )


def _target_length(s: RuleSettings) -> str:
    """The target length in force; from the least to the largest where profiles have targets of their own."""
    own = f"{series.ACCEPTANCE_TARGET.full_name}{same_service(s)}"
    return (
        f"{{{{ with {asked(s, f'min({own})')} }}}}{{{{ $least := . | first | value }}}}"
        f"{{{{ $most := {asked(s, f'max({own})')} | first | value }}}}"
        ' ({{ printf "%.2f" $least }}{{ if ne $least $most }} to {{ printf "%.2f" $most }}{{ end }}){{ end }}'
    )


def _break_even(s: RuleSettings) -> str:
    """Break-even as the alert compared it."""
    query = asked(s, f"{BREAK_EVEN_OF_SERVICE}{same_service(s)}")
    return f'{{{{ with {query} }}}} (break-even is {{{{ . | first | value | printf "%.2f" }}}}){{{{ end }}}}'


def likely_cause(s: RuleSettings) -> str:
    """The suspects of the service's replicas, and the rules that the pair breaks."""
    suspects = f"max by (cause) ({series.ACCEPTANCE_SUSPECT.full_name}{same_service(s)}) == 1"
    return (
        f"{{{{ with {asked(s, suspects)} }}}}{{{{ range . }}}} {{{{ .Labels.cause }}}};{{{{ end }}}}"
        f"{{{{ else }}}} none is told{{{{ end }}}}{broken_rules(s, ' pair unfit:')}"
    )


def broken_rules(s: RuleSettings, before: str) -> str:
    """The co-design rules that fail, after the words `before`; nothing where none does."""
    own = same_service(s, equals("result", CheckResult.FAIL))
    failing = f"max by (check) ({series.CODESIGN_CHECK.full_name}{own})"
    listed_rules = "{{ range . }} {{ .Labels.check }};{{ end }}"
    return f"{{{{ with {asked(s, failing)} }}}}{before}{listed_rules}{{{{ end }}}}"


def listed(s: RuleSettings, query: str, *labels: str) -> str:
    """What a query gives, by the labels named."""
    shown = " ".join(f"{{{{ .Labels.{label} }}}}" for label in labels)
    return f"{{{{ range {asked(s, query)} }}}} {shown};{{{{ end }}}}"
