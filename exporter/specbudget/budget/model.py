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
from specbudget.budget.engine import Engine
from specbudget.budget.section import Positive, Ratio, Section
from specbudget.budget.units import Bandwidth, Duration, Size
from specbudget.catalog.labels import DEFAULT_LABELS, REPLICA_LABELS, SERVICE_LABEL
from specbudget.domain.drafter import DraftAlgorithm

ServiceName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="use letters, digits, dot, dash and underscore, starting with a letter or digit, at most 100",
    ),
]

_ALERT_LABELS = frozenset({*REPLICA_LABELS, "severity", "service", "state", "series", "le"})


class Target(Section):
    """The target's checkpoint."""

    path: str | None = None


class Drafter(Section):
    """The drafter's checkpoint and algorithm (the latter where the launch arguments are silent)."""

    path: str | None = None
    algorithm: DraftAlgorithm | None = None


class Parallelism(Section):
    """GPUs per replica: tensor, pipeline and data parallel sizes."""

    tensor: Positive = 1
    pipeline: Positive = 1
    data: Positive = 1


class ArtifactsLine(Section):
    """Limits on loadable bytes on disk."""

    image: Size | None = None
    target: Size | None = None
    drafter: Size | None = None
    total: Size | None = None


class KvLine(Section):
    """Limits on the two KV pools, per device."""

    target: Size | None = None
    drafter: Size | None = None
    high_water: Ratio = 0.90
    concurrency: Positive | None = None
    tokens_per_request: Positive | None = None
    min_target_tokens: Positive | None = None


class StagingLine(Section):
    """The start-up budget and how the two artifacts are to be staged."""

    cold_start: Duration | None = None
    mode: Literal["serial", "prefetch", "overlap"] | None = None
    order: list[Literal["target", "drafter"]] | None = None
    warmup: Literal["required", "optional"] | None = None
    storage_bandwidth: Bandwidth | None = None
    readers: Positive | None = None
    probe_budget: Duration | None = None

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

    runbook: str | None = None
    dashboards: str | None = None


LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Rules(Section):
    """How the generated rules see the fleet: what pages and tickets are aggregated by."""

    labels: tuple[str, ...] = DEFAULT_LABELS

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

    service: ServiceName
    engine: Engine = Engine()
    target: Target = Target()
    drafter: Drafter = Drafter()
    parallelism: Parallelism = Parallelism()
    budget: Lines = Lines()
    links: Links = Links()
    rules: Rules = Rules()

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
