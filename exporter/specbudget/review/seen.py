"""What findings are made from: the review's tracks, and beside them the facts that no track holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from specbudget.catalog import series
from specbudget.catalog.sets import Artifact, CheckResult, RecheckPlan, Source, StartOutcome, Suspect
from specbudget.domain.acceptance import Bools, Floats
from specbudget.domain.axis import Row
from specbudget.domain.reduction import Reduction
from specbudget.domain.traffic_mix import Tally
from specbudget.review.events import held_facts
from specbudget.review.model import Review
from specbudget.review.reading import SeriesReader, replica_of
from specbudget.review.request_evidence import RequestEvidence
from specbudget.sources.sglang.start_phases import HOT_RELOAD_NAMES

NO_DATA = "no_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How often starts ended in one way: counted in all until the last point, and those of them in the stretch."""

    total: float = 0.0
    within: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that findings may look at; arrays are on the review's axis.

    `before` are verify steps and accepted drafts by profile that were counted before the first point. `suspects` are
    the points at which any sidecar held a cause for likely. `states` is the state of speculation by (replica, rank).
    `failing` are co-design rules that failed, and where. `due` are the points at which a plan was due. `up` is 0 or 1
    by (replica, source). `held` are fingerprints and `dtypes` number formats on disk by model, of the first replica.
    `source` is where requests are counted from. `requests` is what the records themselves say, None without them.
    `reload_seconds` is how long the engine took to load other weights while it ran, where its own metrics say so.
    """

    review: Review
    before: Mapping[str, Tally] = field(default_factory=dict)
    suspects: Mapping[Suspect, Bools] = field(default_factory=dict)
    states: Mapping[tuple[str, str], tuple[str | None, ...]] = field(default_factory=dict)
    failing: Mapping[str, Bools] = field(default_factory=dict)
    due: Mapping[RecheckPlan, Bools] = field(default_factory=dict)
    started: Mapping[StartOutcome, Started] = field(default_factory=dict)
    up: Mapping[tuple[str, Source], Floats] = field(default_factory=dict)
    held: Mapping[Artifact, tuple[str | None, ...]] = field(default_factory=dict)
    dtypes: Mapping[Artifact, tuple[str | None, ...]] = field(default_factory=dict)
    role: str | None = None
    source: str | None = None
    presence: Mapping[str, Bools] = field(default_factory=dict)
    requests: RequestEvidence | None = None
    reload_seconds: float | None = None

    def in_state(self, state: str) -> Bools:
        """The points at which any rank was in a state."""
        held = np.zeros(self.review.axis.count, dtype=np.bool_)
        for of_rank in self.states.values():
            held |= np.array([one == state for one in of_rank], dtype=np.bool_)
        return held

    def recorded(self) -> Bools:
        """The points at which anything was recorded."""
        found = np.zeros(self.review.axis.count, dtype=np.bool_)
        for there in self.presence.values():
            found |= there
        return found


def seen(reader: SeriesReader, review: Review, requests: RequestEvidence | None) -> Seen:
    """Reads the facts beside the tracks."""
    places = {(replica_of(r), r.labels.get("rank", "0")) for r in reader.rows(series.SPECULATION_STATE)}
    roles = [row.labels.get("role") for row in reader.rows(series.ENGINE_INFO)]
    sources = [row.labels.get("source") for row in reader.rows(series.ACCEPTANCE_SOURCE_INFO)]
    return Seen(
        review=review,
        before=MappingProxyType(_before(reader)),
        suspects={Suspect(c): held for c, held in _held(reader.rows(series.ACCEPTANCE_SUSPECT), "cause").items()},
        states={place: _states(reader, *place) for place in sorted(places)},
        failing=_held(reader.rows(series.CODESIGN_CHECK, result=CheckResult.FAIL), "check"),
        due={RecheckPlan(p): held for p, held in _held(reader.rows(series.RECHECK_DUE), "plan").items()},
        started={outcome: _started(reader, outcome) for outcome in StartOutcome},
        up={(replica_of(r), Source(r.labels["source"])): r.values for r in reader.rows(series.SOURCE_UP)},
        held={artifact: _fact(reader, artifact, "fingerprint") for artifact in Artifact},
        dtypes={artifact: _fact(reader, artifact, "dtype") for artifact in Artifact},
        role=next((role for role in roles if role), None),
        source=next((source for source in sources if source), None),
        presence=reader.presence,
        requests=requests,
        reload_seconds=_reload_seconds(reader),
    )


def _reload_seconds(reader: SeriesReader) -> float | None:
    """The engine's latest hot reload in the stretch, where the storage scrapes the engine in the sidecar's own pod.

    A value that stood there from the first point on is of an earlier time.
    """
    found: list[float] = []
    for labels in {
        tuple((k, row.labels[k]) for k in ("namespace", "pod"))
        for row in reader.rows(series.BUILD_INFO)
        if row.labels.get("pod") and row.labels.get("namespace")
    }:
        for name in HOT_RELOAD_NAMES:
            for row in reader.samples.rows(name, dict(labels), reader.axis, Reduction.LAST, reader.lookback):
                known = row.values[~np.isnan(row.values)]
                if len(known) and known[-1] > 0 and known[-1] != known[0]:
                    found.append(float(known[-1]))
    return max(found, default=None)


def _held(rows: list[Row], label: str) -> dict[str, Bools]:
    found: dict[str, Bools] = {}
    for row in rows:
        on = np.nan_to_num(row.values) > 0
        if on.any():
            name = row.labels[label]
            found[name] = found[name] | on if name in found else on
    return found


def _states(reader: SeriesReader, replica: str, rank: str) -> tuple[str | None, ...]:
    rows = [r for r in reader.rows(series.SPECULATION_STATE, rank=rank) if replica_of(r) == replica]
    return tuple(held_facts(rows, reader.axis.count, "state"))


def _fact(reader: SeriesReader, artifact: Artifact, label: str) -> tuple[str | None, ...]:
    rows = reader.rows(series.ARTIFACT_INFO, artifact=artifact)
    first = min((replica_of(row) for row in rows), default="")
    return tuple(held_facts([r for r in rows if replica_of(r) == first], reader.axis.count, label))


def _started(reader: SeriesReader, outcome: StartOutcome) -> Started:
    total = within = 0.0
    for row in reader.rows(series.STARTUPS, outcome=outcome):
        known = row.values[~np.isnan(row.values)]
        if len(known):
            total += float(known[-1])
            within += float(np.nansum(reader.grown(row)))
    return Started(total=total, within=within)


def _before(reader: SeriesReader) -> dict[str, Tally]:
    """What each sidecar had counted when it was first read here."""
    found: dict[str, Tally] = {}
    steps: dict[tuple[str, str, str], float] = {}
    for row in reader.rows(series.VERIFY_STEPS):
        steps[_child(row)] = _first(row)
    for row in reader.rows(series.ACCEPTED_DRAFTS):
        child = _child(row)
        tally = found.get(child[2], Tally(steps=0.0, accepted=0.0))
        found[child[2]] = Tally(steps=tally.steps + steps.get(child, 0.0), accepted=tally.accepted + _first(row))
    return found


def _child(row: Row) -> tuple[str, str, str]:
    return replica_of(row), row.labels.get("rank", "0"), row.labels.get("profile", "")


def _first(row: Row) -> float:
    known = row.values[~np.isnan(row.values)]
    return float(known[0]) if len(known) else 0.0
