"""The budget file's model: every key, its meaning, default and rule.

Paths are kept as written; `Budget.resolve` turns one into a path beside the budget file. Everything is frozen:
a reload makes a new Budget and never changes the one in force.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from specbudget.budget.acceptance import DEFAULT_PROFILE, AcceptanceLine
from specbudget.budget.declared import ALL, CHECK, GENERATE, SERVE, Kind, key
from specbudget.budget.engine import Engine
from specbudget.budget.section import Address, Folder, Positive, Ratio, Section
from specbudget.budget.units import Bandwidth, Duration, Size
from specbudget.budget.waiver import Waiver
from specbudget.catalog.labels import DEFAULT_LABELS, REPLICA_LABELS, SERVICE_LABEL
from specbudget.domain.drafter import DraftAlgorithm

ServiceName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
    ),
    Kind(
        words="name",
        asks="use letters, digits, dot, dash and underscore, starting with a letter or digit, at most 100",
    ),
]

_ALERT_LABELS = frozenset({*REPLICA_LABELS, "severity", "service", "state", "series", "le"})


class Target(Section):
    """The target's checkpoint."""

    path: Folder | None = key(
        None,
        "The folder with its config.json. Config, tokenizer, weight index and tensor headers are read, never weights.",
        example="/models/Ling-3.0-flash",
        without="nothing of the target's checkpoint is known",
    )


class Drafter(Section):
    """The drafter's checkpoint and algorithm."""

    path: Folder | None = key(
        None,
        "The folder with its config.json. Leave it out where the drafter is part of the target's checkpoint.",
        example="/models/Ling-3.0-flash-dspark",
        without="the target's checkpoint holds it, or nothing drafts",
    )
    algorithm: DraftAlgorithm | None = key(
        None,
        "How it drafts, where the launch arguments are silent. A contradiction to them is a finding.",
        example="dspark",
        without="what the launch arguments say, else what the drafter's config says of itself",
    )


class Parallelism(Section):
    """GPUs per replica, where the launch arguments are silent."""

    tensor: Positive = key(1, "Tensor parallel ranks, `--tp`.", example="4")
    pipeline: Positive = key(1, "Pipeline stages, `--pp`.", example="1")
    data: Positive = key(1, "Data-parallel ranks, `--dp`.", example="1")


class ArtifactsLine(Section):
    """Limits on the bytes on disk of what the engine loads: the files that the weight index names."""

    image: Size | None = key(None, "Most bytes of both models, where they ship in the image.", example="290GiB")
    target: Size | None = key(None, "Most bytes of the target.", example="284GiB")
    drafter: Size | None = key(None, "Most bytes of the drafter.", example="3GiB")
    total: Size | None = key(None, "Most bytes of both models.", example="287GiB")


class KvLine(Section):
    """Limits on the two KV pools. Sizes are of one GPU."""

    target: Size | None = key(None, "Most memory of the target's KV pool.", example="12GiB")
    drafter: Size | None = key(None, "Most memory of the drafter's KV pool.", example="30GiB")
    high_water: Ratio = key(0.90, "The share of a pool above which the line is at risk.", example="0.90")
    concurrency: Positive | None = key(
        None,
        "Planned running requests per data-parallel rank.",
        example="48",
        without="the engine's own limit, else 48",
    )
    tokens_per_request: Positive | None = key(
        None,
        "Planned tokens of one request, prompt and output: take a high percentile.",
        example="8192",
        without="what the planned requests need is not known",
    )
    min_target_tokens: Positive | None = key(
        None, "Tokens that the target's pool must hold, beside the drafter.", example="400000"
    )


class StagingLine(Section):
    """The start-up budget and how the two artifacts are to be staged."""

    cold_start: Duration | None = key(
        None, "Most time from the start of the process to the first successful generation.", example="90s"
    )
    mode: Literal["serial", "prefetch", "overlap"] | None = key(
        None,
        "How checkpoints get into memory. `prefetch` needs `--weight-loader-prefetch-checkpoints`; SGLang refuses "
        "`overlap` beside a drafter, and the gate fails it.",
        example="prefetch",
        read_by=ALL,
    )
    order: list[Literal["target", "drafter"]] | None = key(
        None, "The order in which they load. SGLang loads the target first.", example="[target, drafter]", read_by=ALL
    )
    warmup: Literal["required", "optional"] | None = key(
        None,
        "Whether the engine must have warmed itself up before the first user; `required` fails `--skip-server-warmup`.",
        example="required",
        read_by=ALL,
    )
    storage_bandwidth: Bandwidth | None = key(
        None,
        "What storage gives to all readers together: the gate estimates loading from it, and a faster load was warm.",
        example="8GiB/s",
    )
    readers: Positive | None = key(
        None,
        "Processes that each read all files, where they share no page cache.",
        example="4",
        read_by=(CHECK,),
        without="one for each tensor parallel rank",
    )
    probe_budget: Duration | None = key(
        None,
        "When the start-up probe gives up: failureThreshold x periodSeconds. Loading must end before it.",
        example="300s",
        read_by=(CHECK,),
    )

    @field_validator("order")
    @classmethod
    def _both_once(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and sorted(value) != ["drafter", "target"]:
            raise ValueError("name target and drafter once each, in the order they load")
        return value


class Lines(Section):
    """The budget lines; a line that is left out is not budgeted."""

    artifacts: ArtifactsLine | None = None
    kv: KvLine | None = None
    acceptance: AcceptanceLine | None = None
    staging: StagingLine | None = None


class Links(Section):
    """Where pages and alerts point to."""

    runbook: Address | None = key(
        None,
        "The runbook; each alert adds its own anchor, and the status page links to it.",
        example="https://runbooks.example/specbudget.md",
        read_by=(SERVE, GENERATE),
        without="the path of the generated file",
    )
    dashboards: Address | None = key(
        None,
        "The folder of dashboards in Grafana; the status page links to it.",
        example="https://grafana.example/d",
        read_by=(SERVE, GENERATE),
        without="a path below the same host, as of Grafana",
    )


LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Rules(Section):
    """How the generated rules see the fleet: what pages and tickets are aggregated by."""

    labels: tuple[str, ...] = key(
        DEFAULT_LABELS,
        f"Labels by which pages and tickets are aggregated; `{SERVICE_LABEL}` is always among them.",
        example=f"[{', '.join(DEFAULT_LABELS)}]",
        read_by=(GENERATE,),
    )

    @field_validator("labels")
    @classmethod
    def _name_the_service(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [label for label in value if not LABEL_NAME.fullmatch(label) or label.startswith("__")]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: no name of a label")
        if SERVICE_LABEL not in value or len(set(value)) != len(value):
            raise ValueError(f"name each label once, and {SERVICE_LABEL} among them: it is what a page is about")
        # the catalog is read only where labels are chosen: it brings numpy
        from specbudget.catalog.series import LABELS

        # no page can be aggregated by a label of the series themselves, of replicas or of alerts
        taken = sorted(set(value) & (_ALERT_LABELS | set(LABELS)))
        if taken:
            raise ValueError(f"{', '.join(taken)}: the rules use this label themselves")
        return value


class Budget(Section):
    """A whole budget file."""

    service: ServiceName = key(
        ..., "What pages, series and files are about: one deployment of a pair.", example="ling-flash-chat", read_by=ALL
    )
    engine: Engine = Engine()
    target: Target = Target()
    drafter: Drafter = Drafter()
    parallelism: Parallelism = Parallelism()
    budget: Lines = Lines()
    links: Links = Links()
    rules: Rules = Rules()
    waivers: tuple[Waiver, ...] = key(
        (),
        "Findings that are accepted until a day, so that `check --strict` does not stop at them.",
        example="[{finding: codesign.trained_for, reason: its card names this target, until: 2027-03-31}]",
        read_by=(CHECK,),
    )

    @field_validator("waivers")
    @classmethod
    def _each_once(cls, value: tuple[Waiver, ...]) -> tuple[Waiver, ...]:
        named = [waiver.finding for waiver in value]
        twice = sorted({finding for finding in named if named.count(finding) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)}: waived twice: keep one")
        return value

    def profile_names(self) -> tuple[str, ...]:
        """The profiles in force, `default` first."""
        line = self.budget.acceptance
        return (DEFAULT_PROFILE, *(line.profiles if line is not None else ()))

    def profile_of(self, model: str | None, adapter: str | None) -> str:
        """The first profile whose patterns fit; `default` when none does."""
        line = self.budget.acceptance
        for name, profile in line.profiles.items() if line is not None else ():
            if profile.match.matches(model, adapter):
                return name
        return DEFAULT_PROFILE


def resolve(path: str, beside: Path) -> Path:
    """A path of the budget file, relative ones taken from the folder of the file `beside`."""
    return beside.parent / Path(path).expanduser()
