"""Traffic, load and time per token: what a person asks as soon as the acceptance length is known."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.memory import PRESSURE
from specbudget.catalog.promql import matching
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import RATE, SMOOTH, over, quantile, rate
from specbudget.generate.dashboards.view import View

ENGINE_TOKEN_LATENCY = "inter_token_latency_seconds"
"""SGLang's own histogram, split over the tokens of a chunk, so that it is per token with speculation too."""

ENGINE_PREFIX = "sglang[:_]"
"""A Prometheus of before UTF-8 names writes a colon where some pipelines write an underscore."""


def traffic(view: View) -> tuple[house.Placed, ...]:
    """Three graphs that stand beside acceptance."""
    return (tokens(view), per_token(view), requests(view))


def tokens(view: View) -> house.Placed:
    """What users get."""
    head = house.Head(
        title="Output tokens",
        reads=(
            "Tokens per second of finished requests, and verify steps per second. Fewer tokens at the same number of "
            "steps is a shorter length; fewer of both is less traffic."
        ),
        good="tokens well above steps.",
        unit="short",
        empty="unknown: no tokens are counted",
        width=house.THIRD,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=rate(view, series.GENERATED_TOKENS), legend="tokens", colour=colours.TARGET),
            house.Query(expr=rate(view, series.VERIFY_STEPS), legend="verify steps", colour=colours.QUIET),
        ],
        axis="per second",
        interval=SMOOTH,
    )


def per_token(view: View) -> house.Placed:
    """What users wait for."""
    running = f"sum (avg_over_time({view.of(series.ENGINE_RUNNING, whole=True)}[{RATE}]))"
    made = rate(view, series.GENERATED_TOKENS, whole=True)
    engine = matching("", (f'__name__=~"{ENGINE_PREFIX}{ENGINE_TOKEN_LATENCY}_bucket"', *view.place_matchers))
    buckets = f"sum by (le) (rate({engine}[{RATE}]))"
    head = house.Head(
        title="Time per output token",
        reads=(
            "Running requests ÷ tokens per second, which is the mean time that one request waits for a token. Beside "
            "it the engine's own histogram, if Prometheus scrapes the engines of this place too: that one is of all "
            "services there, and absent where they are not scraped."
        ),
        good="level, and below what users were promised. It rises when the length falls or the batch grows.",
        unit="s",
        empty="unknown: no tokens are counted",
        width=house.THIRD,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=over(running, made), legend="running ÷ tokens per second", colour=colours.TARGET),
            house.Query(expr=quantile(0.5, buckets), legend="engine, half", colour=colours.SECOND),
            house.Query(expr=quantile(0.95, buckets), legend="engine, 95 %", colour=colours.QUIET),
        ],
        interval=SMOOTH,
    )


def requests(view: View) -> house.Placed:
    """How many run and wait."""
    head = house.Head(
        title="Running and queued requests",
        reads="Requests in the running batch and waiting. Break-even grows with the batch.",
        good="few queued.",
        unit="short",
        empty="unknown: the engine's metrics are not read",
        links=(to(Dashboard.MEMORY, "Is the KV pool full"), *runbook(view, PRESSURE)),
        width=house.THIRD,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"sum ({view.of(series.ENGINE_RUNNING)})", legend="running", colour=colours.TARGET),
            house.Query(expr=f"sum ({view.of(series.ENGINE_QUEUED)})", legend="queued", colour=colours.THIRD),
        ],
        axis="requests",
    )
