"""What can happen to the stand-in engine: one short declaration per scenario.

A scenario is a start-up, traffic made of profiles, and phases. A phase begins `at` seconds after the engine is
ready and changes only the fields it names; everything else goes on as before. All delays are divided by the
speed that the engine runs at, those of a start-up by FASTEST_START_UP at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

TARGET_LENGTH = 2.6
"""The SLO of the budget that the stand-in writes, unless the scenario declares another."""


FASTEST_START_UP = 2.0
"""A start-up is not quickened more than this: its log tells whole seconds, and in those a start of much less than
two seconds cannot be told from one that takes twice as long."""


def start_up_speed(speed: float) -> float:
    """By what the stages of a start-up are divided when the scenario runs at `speed`."""
    return min(speed, FASTEST_START_UP)


class Action(StrEnum):
    """Something that happens once, at the beginning of a phase."""

    RESTART = "restart"
    """The engine process ends without warning and starts again; its requests are lost, its files go on."""
    ROTATE_BY_RENAME = "rotate-by-rename"
    """The request log is renamed; the engine keeps writing into the renamed file until the hour changes."""
    ROTATE_BY_COPY = "rotate-by-copy"
    """The request log is copied and cut to zero bytes (logrotate's copytruncate)."""
    NEXT_HOUR = "next-hour"
    """The exporter switches to the file of the next hour."""
    SWAP_DRAFTER = "swap-drafter"
    """Another drafter checkpoint takes the place of the one on disk."""


class Algorithm(StrEnum):
    """How the deployment speculates."""

    DSPARK = "dspark"
    """A DSpark drafter in a checkpoint of its own, with a fixed verify window."""
    ADAPTIVE_MTP = "adaptive-mtp"
    """The target's MTP head as drafter, with --speculative-adaptive: 0.5.23 allows that for EAGLE-like ones only."""


class Role(StrEnum):
    """--disaggregation-mode."""

    UNIFIED = "null"
    PREFILL = "prefill"
    """Computes prompts and hands their KV to a decode engine: one output token per request, no verify steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A kind of traffic: its share of requests, and the acceptance length that the drafter reaches on it.

    `adapter` is the LoRA name that such requests carry; None when nothing outside tells them apart.
    """

    share: float
    length: float
    adapter: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A change, `at` seconds after ready (of the first start). None means: as before.

    `length` is the acceptance length of the whole mix, reached at once or linearly `over` seconds; every
    profile moves in proportion. `shares` replaces the profiles' shares. `arrivals` multiplies the request rate
    and 0 ends the traffic. `prompt_tokens` is the median prompt. `speculation` False: the drafter stays loaded
    and is not asked. `decoding` False: the batch stands still. `repeating` True: every step of a request
    accepts the same number of drafts. `faults` answers requests under a path prefix with an HTTP status.
    """

    at: float
    length: float | None = None
    over: float = 0.0
    shares: Mapping[str, float] | None = None
    arrivals: float | None = None
    prompt_tokens: int | None = None
    speculation: bool | None = None
    decoding: bool | None = None
    repeating: bool | None = None
    faults: Mapping[str, int] | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """Seconds of each stage of a start-up, in the order in which SGLang goes through them.

    `load_target` or `load_drafter` of infinity: the engine never leaves that stage.
    """

    imports: float = 0.3
    load_target: float = 0.8
    load_drafter: float = 1.2
    pools: float = 0.1
    graphs_target: float = 0.4
    graphs_drafter: float = 0.2
    tokenizer: float = 0.2
    warmup_wait: float = 0.6

    @property
    def until_http(self) -> float:
        """Seconds from process start until the server accepts connections."""
        loading = self.load_target + self.load_drafter + self.pools
        return self.imports + loading + self.graphs_target + self.graphs_drafter + self.tokenizer


MIXED: Mapping[str, Profile] = MappingProxyType(
    {
        "chat": Profile(share=0.5, length=4.1),
        "code": Profile(share=0.3, length=5.2),
        "math": Profile(share=0.2, length=5.4),
    }
)
"""Healthy mixed traffic: 4.6 over all steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario. Defaults are a healthy engine under steady, mixed traffic.

    `memory_fraction` and `max_total_tokens` are the engine's arguments of those names; `restart_total_tokens`
    replaces the latter from the second start on. `drafter_config` replaces keys of the drafter's config.json.
    `output_tokens` is the range of a request's output; `target_length` the SLO of the budget. `approved`: the pair
    has passed its checks, and a lock beside the budget says so.
    """

    summary: str
    phases: tuple[Phase, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=lambda: MIXED)
    start_up: StartUp = StartUp()
    algorithm: Algorithm = Algorithm.DSPARK
    role: Role = Role.UNIFIED
    tensor_parallel: int = 4
    data_parallel: int = 1
    memory_fraction: float = 0.85
    max_total_tokens: int | None = None
    restart_total_tokens: int | None = None
    prompt_tokens: int = 600
    output_tokens: tuple[int, int] = (128, 320)
    requests_per_second: float = 25.0
    target_length: float = TARGET_LENGTH
    drafter_config: Mapping[str, object] = field(default_factory=dict)
    approved: bool = True


MONITORED = ("/metrics", "/v1/loads", "/server_info", "/get_server_info")
"""What a monitor reads."""
SHORT_OUTPUTS = (128, 156)
"""Where a verify step brings one token, longer outputs would not leave room for 20 requests per second."""

SCENARIOS: dict[str, Scenario] = {
    "steady": Scenario(summary="healthy mixed traffic, length well above the target"),
    "acceptance-drop": Scenario(
        summary="acceptance length falls from 4.6 to 1.9 for good",
        phases=(Phase(at=15, length=1.9),),
    ),
    "collapse": Scenario(
        summary="acceptance length collapses from 4.6 to 1.1",
        phases=(Phase(at=15, length=1.1),),
        output_tokens=SHORT_OUTPUTS,
        requests_per_second=24.0,
    ),
    "slow-decay": Scenario(
        summary="acceptance length loses 30 % within ten minutes and stays above the target",
        phases=(Phase(at=15, length=4.6 * 0.7, over=600),),
        target_length=2.2,
    ),
    "mix-shift": Scenario(
        summary="the share of the hard profile, which has an adapter of its own, grows from 10 to 90 %",
        profiles={
            "general": Profile(share=0.9, length=6.2),
            "hard": Profile(share=0.1, length=3.2, adapter="ling-hard"),
        },
        phases=(Phase(at=15, shares={"general": 0.1, "hard": 0.9}),),
        target_length=4.0,
    ),
    "over-strong": Scenario(
        summary="acceptance length near the verify window of 9",
        profiles={
            "chat": Profile(share=0.5, length=8.0),
            "code": Profile(share=0.3, length=8.3),
            "math": Profile(share=0.2, length=8.4),
        },
    ),
    "kv-pressure": Scenario(
        summary="longer prompts fill a small pool: retractions, and a queue that grows",
        phases=(Phase(at=15, prompt_tokens=1200, arrivals=2.0),),
        max_total_tokens=49_152,
        output_tokens=(128, 480),
    ),
    "capacity-shrank": Scenario(
        summary="the engine restarts and comes up with a third fewer slots",
        phases=(Phase(at=20, actions=(Action.RESTART,)),),
        max_total_tokens=1_800_000,
        restart_total_tokens=1_200_000,
    ),
    "cold-start-slow": Scenario(
        summary="loading the drafter takes four times as long",
        start_up=StartUp(load_drafter=4 * StartUp().load_drafter),
    ),
    "stuck-start": Scenario(
        summary="the drafter never finishes loading",
        start_up=StartUp(load_drafter=float("inf")),
    ),
    "drafter-swapped": Scenario(
        summary="another drafter checkpoint takes the place of the one on disk",
        phases=(Phase(at=20, actions=(Action.SWAP_DRAFTER,)),),
    ),
    "pair-unfit": Scenario(
        summary="a tap of the drafter lies beyond the target's last layer: nothing is accepted from the start on",
        profiles={name: replace(profile, length=1.03) for name, profile in MIXED.items()},
        drafter_config={"target_layer_ids": [1, 11, 23, 29, 47]},
        approved=False,
        output_tokens=SHORT_OUTPUTS,
        requests_per_second=24.0,
    ),
    "speculation-off": Scenario(
        summary="the drafter stays loaded and is no longer asked", phases=(Phase(at=20, speculation=False),)
    ),
    "idle": Scenario(summary="traffic ends", phases=(Phase(at=20, arrivals=0),)),
    "frozen": Scenario(
        summary="the batch stands still: requests run on paper, HTTP answers, no token is counted",
        phases=(Phase(at=20, decoding=False),),
    ),
    "restart": Scenario(summary="the engine process restarts once", phases=(Phase(at=20, actions=(Action.RESTART,)),)),
    "dp2": Scenario(
        summary="two data-parallel ranks of two GPUs each",
        tensor_parallel=2,
        data_parallel=2,
        memory_fraction=0.80,
    ),
    "spec-adaptive": Scenario(
        summary="the verify window follows the batch and its acceptance",
        algorithm=Algorithm.ADAPTIVE_MTP,
    ),
    "pd-prefill": Scenario(summary="the prefill side of a disaggregated deployment", role=Role.PREFILL),
    "log-rotation": Scenario(
        summary="the request log is rotated by rename, by copy and by the hour",
        phases=(
            Phase(at=5, actions=(Action.ROTATE_BY_RENAME,)),
            Phase(at=10, actions=(Action.NEXT_HOUR,)),
            Phase(at=15, actions=(Action.ROTATE_BY_COPY,)),
            Phase(at=20, actions=(Action.NEXT_HOUR,)),
        ),
    ),
    "sidecar-blind": Scenario(
        summary="the engine answers monitors with 500 and serves everybody else",
        phases=(Phase(at=10, faults=dict.fromkeys(MONITORED, 500)),),
    ),
}
