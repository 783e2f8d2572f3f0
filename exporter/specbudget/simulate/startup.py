"""A start-up of the stand-in as a list of log lines, each at its moment, and the durations they tell of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specbudget.simulate import loglines
from specbudget.simulate.adaptive import ADAPTIVE_CONFIG
from specbudget.simulate.configs import DRAFTER_CONFIG, GAMMA, TARGET_CONFIG
from specbudget.simulate.deployment import GRAPH_SIZES, Deployment
from specbudget.simulate.drafters import Drafter
from specbudget.simulate.rankmetrics import GRAPH_PHASES
from specbudget.simulate.scenarios import start_up_speed


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
    """The start-up number `life` of a scenario that runs at `speed`."""
    stages, pace = deployment.scenario.start_up, start_up_speed(speed)
    begin = stages.imports / pace
    target_end = begin + stages.load_target / pace
    drafter_end = target_end + stages.load_drafter / pace
    pools_end = drafter_end + stages.pools / pace
    target_graphs_end = pools_end + stages.graphs_target / pace
    scheduler_up = target_graphs_end + stages.graphs_drafter / pace
    http_up = scheduler_up + stages.tokenizer / pace
    drafts = [phase for phase in deployment.graphs if phase.startswith("draft_")]
    graphs = dict.fromkeys(GRAPH_PHASES, 0.0)
    for phase in deployment.graphs:
        graphs[phase] = stages.graphs_drafter / len(drafts) / pace if phase in drafts else stages.graphs_target / pace
    timings = {
        "load_weight": (stages.load_target + stages.load_drafter) / pace,
        "kv_cache_allocation": stages.pools / pace,
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
        warm_up=http_up + stages.warmup_wait / pace,
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
    drafter = deployment.drafting

    yield Line(at=begin, text=loglines.load_begin(free), everywhere=True)
    free -= sizes.target_weights
    text = loglines.load_end(
        seconds=target_end - begin,
        model=TARGET_CONFIG["architectures"][0],
        available=free,
        used=sizes.target_weights,
    )
    yield Line(at=target_end, text=text, everywhere=True)
    yield Line(at=target_end, text=loglines.load_begin(free), everywhere=True)
    held = sizes.drafter_weights + sizes.drafter_copies
    free -= held
    text = loglines.load_end(seconds=drafter_end - target_end, model=drafter.model, available=free, used=held)
    yield Line(at=drafter_end, text=text, everywhere=True)
    if drafter.adaptive:
        first = ADAPTIVE_CONFIG["1"]["candidate_steps"]
        text = loglines.adaptive_initialized(steps=drafter.steps, candidates=first)
    else:
        text = loglines.draft_runner(model=drafter.model, gamma=GAMMA, mask_token=DRAFTER_CONFIG["mask_token_id"])
    yield Line(at=drafter_end, text=text, leader=True)

    text = loglines.state_cache(
        slots=sizes.state_slots,
        conv=sizes.conv_state,
        ssm=sizes.ssm_state,
        windows=sizes.conv_windows if deployment.verifies else None,
    )
    yield Line(at=pools_end, text=text, everywhere=True)
    text = loglines.latent_pool(tokens=sizes.tokens, size=sizes.target_kv)
    yield Line(at=pools_end, text=text, everywhere=True)
    free -= sizes.state + sizes.target_kv
    yield Line(at=pools_end, text=loglines.pool_end(free), everywhere=True)
    pool = loglines.latent_pool if drafter.latent_kv else loglines.key_value_pool
    text = pool(tokens=sizes.tokens, size=sizes.drafter_kv)
    yield Line(at=pools_end, text=text, everywhere=True)
    free -= sizes.drafter_kv
    yield Line(at=pools_end, text=loglines.pool_end(free), everywhere=True)

    free += sizes.drafter_copies
    yield from _capture_lines(deployment, free=free, moments=(pools_end, target_graphs_end, scheduler_up))
    free -= sum(deployment.graphs.values())
    text = loglines.capacity(
        tokens=sizes.tokens,
        running=deployment.server_args(life)["max_running_requests"],
        context=deployment.context_tokens,
        available=free,
    )
    yield Line(at=scheduler_up, text=text, leader=True)


def _capture_lines(deployment: Deployment, *, free: int, moments: tuple[float, float, float]) -> Iterator[Line]:
    """Graph capture of both models; a prefill engine captures none of these."""
    graphs, drafter = deployment.graphs, deployment.drafting
    if not graphs:
        return
    begin, middle, end = moments
    states = launch_and_other_steps(drafter)
    used = graphs["target_verify"] // len(states)
    text = loglines.capture_begin("target", tokens_per_request=drafter.window, available=free)
    yield Line(at=begin, text=text, everywhere=True)
    free -= used
    text = loglines.capture_end("target", sizes=GRAPH_SIZES, seconds=middle - begin, used=used, available=free)
    yield Line(at=middle, text=text, everywhere=True)
    if drafter.adaptive:
        yield from _adaptive_capture_lines(states, graphs=graphs, free=free, begin=middle, end=end)
        return
    used = graphs["draft_decode"]
    text = loglines.capture_begin("draft", tokens_per_request=GAMMA, available=free)
    yield Line(at=middle, text=text, everywhere=True)
    free -= used
    text = loglines.capture_end("draft", sizes=GRAPH_SIZES, seconds=end - middle, used=used, available=free)
    yield Line(at=end, text=text, everywhere=True)


def launch_and_other_steps(drafter: Drafter) -> list[int]:
    """Every speculative_num_steps that graphs are captured for, the one of the launch first."""
    entries = [entry for entry in ADAPTIVE_CONFIG.values() if isinstance(entry, dict)] if drafter.adaptive else []
    others = {steps for entry in entries for steps in entry["candidate_steps"]} - {drafter.steps}
    return [drafter.steps, *sorted(others)]


def _adaptive_capture_lines(
    states: list[int], *, graphs: Mapping[str, int], free: int, begin: float, end: float
) -> Iterator[Line]:
    """The drafter's graphs for each number of steps; for all but the first the target's as well."""
    each = (end - begin) / len(states)
    for place, steps in enumerate(states):
        started, before = begin + place * each, free
        for phase, width in (("decode", 1), ("extend", steps + 1)):
            text = loglines.draft_capture_begin(phase, tokens_per_request=width, sizes=GRAPH_SIZES, available=free)
            yield Line(at=started, text=text, leader=True)
            used = graphs[f"draft_{phase}"] // len(states)
            free -= used
            started += each / 2
            text = loglines.draft_capture_end(phase, seconds=each / 2, used=used, available=free)
            yield Line(at=started, text=text, leader=True)
        if place:
            free -= graphs["target_verify"] // len(states)
            text = loglines.adaptive_state(steps=steps, seconds=each, used=before - free)
            yield Line(at=started, text=text, leader=True)
