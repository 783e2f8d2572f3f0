"""The pages of a fleet over a week: every series that a rule reads, with the labels of its declaration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from specbudget.catalog import series, sets
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, STAGING
from specbudget.catalog.series import SERVICE_LABEL, SeriesDef
from specbudget.catalog.sets import (
    Artifact,
    ErrorReason,
    NeedBasis,
    RecordOutcome,
    Source,
    SpeculationState,
    Stage,
    StartOutcome,
)
from specbudget.domain.break_even import BreakEven
from specbudget.domain.requests import EXCLUSIONS, Verdict
from week.calendar import PROFILES, REPLICAS, SAMPLES, STEP, Floats, Week
from week.replica import HIGH_WATER, TIMES, Bools, Counting, Lives, Said, likely_causes
from week.traffic import TARGETS, Requests, drawn

POOL_TOKENS = 1_500_000.0
POOL_BYTES = {Artifact.TARGET: 8064.0 * POOL_TOKENS, Artifact.DRAFTER: 20480.0 * POOL_TOKENS}
NEED = {Artifact.TARGET: 0.8, Artifact.DRAFTER: 0.8}
"""What the planned requests need of the pools."""

USUAL_FINGERPRINT = {Artifact.TARGET: "d2775be176580370", Artifact.DRAFTER: "c7b22d356da00c09"}
ARCHITECTURE = {Artifact.TARGET: "BailingMoeV3ForCausalLM", Artifact.DRAFTER: "LingDSparkModel"}
LOADING = ((Artifact.TARGET, Stage.LOAD), (Artifact.DRAFTER, Stage.LOAD), ("both", Stage.WARMUP))
UP = SeriesDef(name="up", kind=series.Kind.GAUGE, help="Prometheus's own.", group="")

Labelled = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One series of the server: name, all labels, and a value per scrape, NaN where there is no sample."""

    name: str
    labels: Labelled
    values: Floats


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Requests and pages of every replica."""

    requests: tuple[Requests, ...]
    samples: tuple[Sampled, ...]
    suspected: tuple[Mapping[sets.Suspect, Floats], ...]


def fleet(week: Week, *, service: str, break_even: BreakEven, seed: int) -> Fleet:
    """Draws a week and writes down what every page of it says."""
    requests = tuple(drawn(week, replica, seed) for replica in REPLICAS)
    samples: list[Sampled] = []
    suspected = []
    for replica, own in zip(REPLICAS, requests, strict=True):
        lives = Lives.of(week, replica)
        causes = likely_causes(week, replica, own, lives)
        said = page(week, replica, own, lives, causes, break_even, seed)
        samples.extend(_as_scraped(said, replica, lives, service))
        suspected.append(causes)
    return Fleet(requests=requests, samples=tuple(samples), suspected=tuple(suspected))


def page(
    week: Week,
    replica: int,
    requests: Requests,
    lives: Lives,
    causes: Mapping[sets.Suspect, Floats],
    break_even: BreakEven,
    seed: int,
) -> Said:
    """What the page of a replica says at every scrape."""
    said, answers, works = Said(), lives.answers(), lives.works()
    counting = Counting(lives=lives, answers=answers)
    _acceptance(said, requests, counting)
    for cause, values in causes.items():
        said.add(series.ACCEPTANCE_SUSPECT, (cause,), values)
    running, moving = _engine(said, week, replica, requests, works, break_even, seed)
    _speculation(said, week, replica, moving, works)
    _kv(said, week, replica, running, lives, counting, works)
    _artifacts(said, week, replica)
    _staging(said, lives)
    _sidecar(said, week, replica, requests, lives, counting)
    for values in said.values.values():
        values[~answers] = np.nan
    return said


def _acceptance(said: Said, requests: Requests, counting: Counting) -> None:
    batch, when = requests.batch, requests.counted_at
    lengths = batch.lengths()
    for place, profile in enumerate(PROFILES):
        own = batch.profile == place
        told = own & (requests.verdict != Verdict.INVALID)
        for counter, column in (
            (series.VERIFY_STEPS, batch.steps),
            (series.ACCEPTED_DRAFTS, batch.accepted),
            (series.GENERATED_TOKENS, batch.output_tokens),
        ):
            said.add(counter, ("0", profile), counting.counter(when[told], column[told]))
        for name, verdict in ((sets.EventVerdict.GOOD, Verdict.GOOD), (sets.EventVerdict.BAD, Verdict.BAD)):
            chosen = own & (requests.verdict == verdict)
            said.add(series.SLO_EVENTS, (sets.SliForm.REQUEST, name, profile), counting.counter(when[chosen]))
        for reason in EXCLUSIONS:
            chosen = own & (requests.verdict == reason)
            said.add(series.SLO_EXCLUDED, (reason.name.lower(), profile), counting.counter(when[chosen]))
        seen = told & ~np.isnan(lengths)
        histogram = series.REQUEST_ACCEPTANCE_LENGTH
        for bound in (*histogram.buckets, np.inf):
            within = seen & (lengths <= bound)
            le = "+Inf" if np.isinf(bound) else str(float(bound))
            said.add(histogram, (profile, le), counting.counter(when[within]), suffix="_bucket")
        said.add(histogram, (profile,), counting.counter(when[seen]), suffix="_count")
        said.add(series.ACCEPTANCE_TARGET, (profile,), TARGETS[profile])
    said.add(series.ACCEPTANCE_SOURCE_INFO, (Source.REQUEST_LOG,), 1)


def _engine(
    said: Said, week: Week, replica: int, requests: Requests, works: Bools, break_even: BreakEven, seed: int
) -> tuple[Floats, Bools]:
    """Running requests (by Little's law over a scrape), and whether tokens moved in the last minute."""
    slots = np.minimum(np.ceil(requests.batch.finished_at / STEP).astype(np.int64), SAMPLES - 1)
    running = np.bincount(slots, weights=requests.seconds, minlength=SAMPLES) / STEP
    moving = np.convolve(running, np.ones(3))[:SAMPLES] > 0
    queued = np.random.default_rng([seed, replica, 1]).poisson(0.2, SAMPLES) * (running > 0).astype(np.float64)
    for phase in week.phases:
        if phase.kv is not None:
            queued += phase.covers(replica, TIMES) * 3.0
    said.add(series.ENGINE_RUNNING, ("0",), np.where(works, np.round(running), np.nan))
    said.add(series.ENGINE_QUEUED, ("0",), np.where(works, queued, np.nan))
    said.add(series.BREAK_EVEN, (), np.where(works, [break_even.at(value) for value in running.tolist()], np.nan))
    said.add(series.ENGINE_INFO, ("sglang", "0.5.23", "dspark", sets.Role.UNIFIED, "none"), np.where(works, 1, np.nan))
    return running, moving


def _speculation(said: Said, week: Week, replica: int, moving: Bools, works: Bools) -> None:
    plain = np.zeros(SAMPLES, np.bool_)
    for phase in week.phases:
        if phase.plain:
            plain |= phase.covers(replica, TIMES)
    states = {
        SpeculationState.NO_DATA: ~works,
        SpeculationState.OFF: works & plain & moving,
        SpeculationState.IDLE: works & ~moving,
        SpeculationState.ACTIVE: works & ~plain & moving,
    }
    for state in SpeculationState:
        said.add(series.SPECULATION_STATE, ("0", state), states.get(state, np.zeros(SAMPLES)))


def _kv(said: Said, week: Week, replica: int, running: Floats, lives: Lives, counting: Counting, works: Bools) -> None:
    share = np.minimum(0.75, 0.05 + 0.05 * running)
    pressed = np.zeros(SAMPLES, np.bool_)
    for phase in week.phases:
        if phase.kv is not None:
            inside = phase.covers(replica, TIMES)
            share[inside], pressed = phase.kv, pressed | inside
    capacity = np.full(SAMPLES, 1.0)
    for restart in lives.restarts:
        if restart.engine:
            capacity[restart.at <= TIMES] = restart.capacity
    for artifact in Artifact:
        tokens, size = capacity * POOL_TOKENS, capacity * POOL_BYTES[artifact]
        said.add(series.KV_POOL_CAPACITY_TOKENS, (artifact, "0"), np.where(works, tokens, np.nan))
        said.add(series.KV_POOL_USED_TOKENS, (artifact, "0"), np.where(works, np.round(share * tokens), np.nan))
        said.add(series.KV_POOL_CAPACITY_BYTES, (artifact, "0"), np.where(works, size, np.nan))
        said.add(series.KV_NEED_BYTES, (artifact, NeedBasis.PLANNED), NEED[artifact] * POOL_BYTES[artifact])
    said.add(series.KV_RETRACTIONS, ("0",), counting.counter(TIMES[pressed]))
    used = {
        (KV, "target"): np.where(works, 0.94 * capacity, np.nan),
        (KV, "drafter"): np.where(works, 0.95 * capacity, np.nan),
        (KV, "high_water"): np.where(works, share / HIGH_WATER, np.nan),
        (KV, "min_target_tokens"): np.where(works, 400_000.0 / (capacity * POOL_TOKENS), np.nan),
        (ARTIFACTS, "target"): 0.87,
        (ARTIFACTS, "drafter"): 0.85,
        (ARTIFACTS, "total"): 0.87,
        (CODESIGN, "pair"): 0.0,
        (STAGING, "cold_start"): 0.83,
        (ACCEPTANCE, "target_length"): 0.8,
    }
    for (line, budget), values in used.items():
        said.add(series.BUDGET_USED_RATIO, (line.id, line.budget(budget).id), values)


def _artifacts(said: Said, week: Week, replica: int) -> None:
    swapped = {p.fingerprint: p.covers(replica, TIMES) for p in week.phases if p.fingerprint}
    other = np.zeros(SAMPLES, np.bool_)
    for fingerprint, inside in swapped.items():
        labels = (Artifact.DRAFTER, ARCHITECTURE[Artifact.DRAFTER], "bfloat16", fingerprint)
        said.add(series.ARTIFACT_INFO, labels, np.where(inside, 1, np.nan))
        other |= inside
    for artifact, fingerprint in USUAL_FINGERPRINT.items():
        here = np.where(other, np.nan, 1) if artifact is Artifact.DRAFTER else 1.0
        said.add(series.ARTIFACT_INFO, (artifact, ARCHITECTURE[artifact], "bfloat16", fingerprint), here)
    for plan in sets.RecheckPlan:
        said.add(series.RECHECK_DUE, (plan,), other & (plan is sets.RecheckPlan.KV))
    for result, count in zip(sets.CheckResult, (39, 0, 0, 2), strict=True):
        said.add(series.CODESIGN_CHECKS, (result,), count)


def _staging(said: Said, lives: Lives) -> None:
    starting, works = lives.starting(), lives.works()
    for artifact, stage in LOADING:
        said.add(series.STARTUP_STAGE_OFFSET, (artifact, stage), np.where(works | starting, 1, np.nan))
    for stage in (Stage.READY, Stage.FIRST_GENERATION):
        said.add(series.STARTUP_STAGE_OFFSET, ("both", stage), np.where(works, 70, np.nan))
    how = ("prefetch", "target,drafter", "done")
    said.add(series.STAGING_INFO, how, np.where(works, 1, np.nan))
    ended = {outcome: np.zeros(SAMPLES) for outcome in StartOutcome}
    ended[StartOutcome.OK] += 1
    for restart in lives.restarts:
        if not restart.resumes:
            for counter in ended.values():
                counter[restart.at <= TIMES] = 0
        if restart.engine:
            ended[StartOutcome.OVER_BUDGET if restart.over_budget else StartOutcome.OK][restart.ready <= TIMES] += 1
    for outcome, counter in ended.items():
        said.add(series.STARTUPS, (outcome,), counter)


def _sidecar(said: Said, week: Week, replica: int, requests: Requests, lives: Lives, counting: Counting) -> None:
    starting = lives.starting()
    for source in Source:
        fails = starting & (source in sets.HTTP_SOURCES)
        for phase in week.phases:
            if source in phase.down:
                fails = fails | phase.covers(replica, TIMES)
        said.add(series.SOURCE_UP, (source,), ~fails)
        # an engine that starts answers nobody; one endpoint that fails answers with an error
        for reason, when in ((ErrorReason.REFUSED, starting), (ErrorReason.HTTP_STATUS, fails & ~starting)):
            if source in sets.HTTP_SOURCES:
                said.add(series.SOURCE_ERRORS, (source, reason), counting.counter(TIMES[when & fails]))
    lag = np.zeros(SAMPLES)
    for hang in week.hangs:
        if hang.replica == replica:
            lag = np.maximum(lag, hang.lag(TIMES))
    said.add(series.SOURCE_LAG, (Source.REQUEST_LOG,), lag)
    said.add(series.SOURCE_LAG, (Source.SERVER_LOG,), 0)
    when = requests.counted_at
    torn = when[::4000]
    for source, by_outcome in (
        (Source.REQUEST_LOG, {RecordOutcome.OK: when, RecordOutcome.MALFORMED: torn}),
        (Source.SERVER_LOG, {RecordOutcome.OK: when[::10], RecordOutcome.SKIPPED: when}),
    ):
        for outcome in RecordOutcome:
            said.add(series.RECORDS, (source, outcome), counting.counter(by_outcome.get(outcome, when[:0])))
    said.add(series.CONFIG_RELOAD_OK, (), 1)
    said.add(series.STATE_SAVED, (), 1)
    said.add(series.BUILD_INFO, ("0.1.0", "3.11.7"), 1)


def _as_scraped(said: Said, replica: int, lives: Lives, service: str) -> Iterator[Sampled]:
    """The samples under the labels of the target, whose name changes where a pod is replaced by a new one."""
    renames = [r for r in lives.restarts if r.renamed]
    edges = [0.0, *(r.back for r in renames), np.inf]
    ends = [*(r.at for r in renames), np.inf]
    answers = lives.answers()
    for place, (begin, end) in enumerate(zip(edges, ends, strict=False)):
        target = target_labels(f"chat-{'abc'[replica]}{place or ''}")
        here = (begin <= TIMES) & (end > TIMES)
        yield Sampled(name="up", labels=target, values=np.where(here, answers, np.nan))
        for (one, suffix, labels), values in said.values.items():
            shown = np.where(here, values, np.nan)
            if not np.isnan(shown).all():
                names = (*one.labels, *(("le",) if suffix == "_bucket" else ()))
                own = dict(zip(names, labels, strict=True))
                every = {**target, SERVICE_LABEL: service, **{name: str(value) for name, value in own.items()}}
                yield Sampled(name=one.full_name + suffix, labels=every, values=shown)


def target_labels(pod: str) -> dict[str, str]:
    """What Prometheus knows of a replica."""
    return {
        "cluster": "c1",
        "namespace": "llm",
        "pod": pod,
        "instance": f"{pod}:9877",
        "job": "specbudget",
    }
