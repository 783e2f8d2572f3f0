"""A start-up of the stand-in as a list of log lines, each at its moment, and the durations they tell of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specbudget.simulate import loglines
from specbudget.simulate.configs import DRAFTER_CONFIG, GAMMA, TARGET_CONFIG, VERIFY_WINDOW
from specbudget.simulate.deployment import GRAPH_SIZES, GRAPHS, Deployment
from specbudget.simulate.rankmetrics import GRAPH_PHASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One log line, `at` seconds after the process start; `everywhere`: each GPU's process prints it."""

    at: float
    text: str
    everywhere: bool = False
    leader: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Moments of one start-up in seconds after the process start, and its lines in order."""

    lines: tuple[Line, ...]
    scheduler_up: float
    http_up: float
    warm_up: float
    timings: dict[str, float]
    graphs: dict[str, float]


def plan(deployment: Deployment, *, life: int, speed: float, pid: int) -> Plan:
    """The start-up number `life`, with all delays divided by `speed`."""
    stages = deployment.scenario.start_up
    begin = stages.imports / speed
    target_end = begin + stages.load_target / speed
    drafter_end = target_end + stages.load_drafter / speed
    pools_end = drafter_end + stages.pools / speed
    target_graphs_end = pools_end + stages.graphs_target / speed
    scheduler_up = target_graphs_end + stages.graphs_drafter / speed
    http_up = scheduler_up + stages.tokenizer / speed
    graphs = dict.fromkeys(GRAPH_PHASES, 0.0) | {
        "target_verify": stages.graphs_target / speed,
        "draft_decode": stages.graphs_drafter / speed,
    }
    timings = {
        "load_weight": (stages.load_target + stages.load_drafter) / speed,
        "kv_cache_allocation": stages.pools / speed,
        "scheduler_e2e": scheduler_up,
        "tokenizer_e2e": http_up,
    }
    moments = (begin, target_end, drafter_end, pools_end, target_graphs_end, scheduler_up)
    lines = (
        Line(at=0.0, text=_arguments_line(deployment, life)),
        *_scheduler_lines(deployment, life=life, moments=moments),
        Line(at=http_up, text=loglines.startup_timings(timings, graphs)),
        Line(at=http_up, text=loglines.uvicorn(f"Started server process [{pid}]")),
        Line(at=http_up, text=loglines.uvicorn("Waiting for application startup.")),
        Line(at=http_up, text=loglines.uvicorn("Application startup complete.")),
        Line(
            at=http_up,
            text=loglines.uvicorn(
                f"Uvicorn running on http://{deployment.host}:{deployment.port} (Press CTRL+C to quit)"
            ),
        ),
    )
    return Plan(
        lines=lines,
        scheduler_up=scheduler_up,
        http_up=http_up,
        warm_up=http_up + stages.warmup_wait / speed,
        timings=timings,
        graphs=graphs,
    )


def _arguments_line(deployment: Deployment, life: int) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in deployment.server_args(life).items())
    return f"server_args=ServerArgs({given})"


def _scheduler_lines(
    deployment: Deployment, *, life: int, moments: tuple[float, float, float, float, float, float]
) -> Iterator[Line]:
    begin, target_end, drafter_end, pools_end, target_graphs_end, scheduler_up = moments
    sizes = deployment.sizes(life)
    free = sizes.free_before_load
    target_model, drafter_model = TARGET_CONFIG["architectures"][0], DRAFTER_CONFIG["architectures"][0]

    yield Line(at=begin, text=loglines.load_begin(free), everywhere=True)
    free -= sizes.target_weights
    text = loglines.load_end(seconds=target_end - begin, model=target_model, available=free, used=sizes.target_weights)
    yield Line(at=target_end, text=text, everywhere=True)
    yield Line(at=target_end, text=loglines.load_begin(free), everywhere=True)
    free -= sizes.drafter_weights
    text = loglines.load_end(
        seconds=drafter_end - target_end, model=drafter_model, available=free, used=sizes.drafter_weights
    )
    yield Line(at=drafter_end, text=text, everywhere=True)
    text = loglines.draft_runner(model=drafter_model, gamma=GAMMA, mask_token=DRAFTER_CONFIG["mask_token_id"])
    yield Line(at=drafter_end, text=text, leader=True)

    text = loglines.state_cache(
        slots=sizes.state_slots, conv=sizes.conv_state, ssm=sizes.ssm_state, windows=sizes.conv_windows
    )
    yield Line(at=pools_end, text=text, everywhere=True)
    text = loglines.latent_pool(tokens=sizes.tokens, size=sizes.target_kv)
    yield Line(at=pools_end, text=text, everywhere=True)
    free -= sizes.state + sizes.target_kv
    yield Line(at=pools_end, text=loglines.pool_end(free), everywhere=True)
    text = loglines.key_value_pool(tokens=sizes.tokens, size=sizes.drafter_kv)
    yield Line(at=pools_end, text=text, everywhere=True)
    free -= sizes.drafter_kv
    yield Line(at=pools_end, text=loglines.pool_end(free), everywhere=True)

    captures = (
        ("target", VERIFY_WINDOW, pools_end, target_graphs_end, GRAPHS["target_verify"]),
        ("draft", GAMMA, target_graphs_end, scheduler_up, GRAPHS["draft_decode"]),
    )
    for role, tokens, started, ended, used in captures:
        text = loglines.capture_begin(role, tokens_per_request=tokens, available=free)
        yield Line(at=started, text=text, everywhere=True)
        free -= used
        text = loglines.capture_end(role, sizes=GRAPH_SIZES, seconds=ended - started, used=used, available=free)
        yield Line(at=ended, text=text, everywhere=True)
    text = loglines.capacity(
        tokens=sizes.tokens,
        running=deployment.server_args(life)["max_running_requests"],
        context=deployment.context_tokens,
        available=free,
    )
    yield Line(at=scheduler_up, text=text, leader=True)
