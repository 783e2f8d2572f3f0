"""What a running sidecar has measured: acceptance lengths by profile, from its /metrics."""

from __future__ import annotations

from collections import defaultdict

from specbudget.catalog.series import ACCEPTED_DRAFTS, REQUEST_ACCEPTANCE_LENGTH, SERVICE_LABEL, VERIFY_STEPS
from specbudget.check.init.sidecar_http import SidecarAccess, SidecarSilent, read_page
from specbudget.check.reference import Reference
from specbudget.domain.reference_lengths import ReferenceLengths
from specbudget.sources.exposition import ExpositionError, Sample, read_samples

_BUCKETS = REQUEST_ACCEPTANCE_LENGTH.full_name + "_bucket"


def read_sidecar(access: SidecarAccess) -> tuple[str | None, Reference]:
    """The service's name and what was measured; raises SidecarSilent, also where nothing was measured yet."""
    address, body = read_page(access, "/metrics")
    wanted = frozenset({_BUCKETS, VERIFY_STEPS.full_name, ACCEPTED_DRAFTS.full_name})
    try:
        samples = list(read_samples(body, wanted))
    except (ExpositionError, ValueError):
        raise SidecarSilent(
            f"--sidecar {address}: its answer is no page of metrics: is this a sidecar of specbudget?"
        ) from None
    profiles = _measured(samples)
    if not profiles:
        raise SidecarSilent(f"--sidecar {address}: has counted no request yet; let traffic pass first")
    service = next((sample.labels.get(SERVICE_LABEL) for sample in samples), None)
    return service, Reference(profiles=profiles, source=address)


def _measured(samples: list[Sample]) -> dict[str, ReferenceLengths]:
    buckets: dict[str, dict[float, float]] = defaultdict(dict)
    steps: dict[str, float] = defaultdict(float)
    accepted: dict[str, float] = defaultdict(float)
    for sample in samples:
        profile = sample.labels.get("profile", "default")
        if sample.name == _BUCKETS:
            buckets[profile][float(sample.labels.get("le", "nan"))] = sample.value
        elif sample.name == VERIFY_STEPS.full_name:
            steps[profile] += sample.value
        else:
            accepted[profile] += sample.value
    return {
        profile: ReferenceLengths(
            length=1.0 + accepted[profile] / steps[profile],
            verify_steps=int(steps[profile]),
            quantiles=_quantiles(counts),
        )
        for profile, counts in buckets.items()
        if steps[profile] > 0 and max(counts.values(), default=0.0) > 0
    }


def _quantiles(counts: dict[float, float]) -> tuple[tuple[float, float], ...]:
    """Bounds of the histogram as (share of requests below, length): only where it holds some and not all."""
    total = max(counts.values())
    bounds = sorted((bound, count) for bound, count in counts.items() if bound != float("inf"))
    points: list[tuple[float, float]] = []
    for bound, count in bounds:
        share = count / total
        if points and points[-1][0] == share:
            points[-1] = (share, bound)
        else:
            points.append((share, bound))
    return tuple(points)
