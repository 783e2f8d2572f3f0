"""`specbudget review`: reads a stretch of time and writes what it holds as a page, JSON and picture."""

from __future__ import annotations

import importlib
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from specbudget.errors import SpecbudgetError
from specbudget.history.reader import HistorySamples
from specbudget.review.as_json import as_json
from specbudget.review.engine_log import read_logs, zone_of
from specbudget.review.model import Review
from specbudget.review.moments import parse_stretch
from specbudget.review.requests import read_requests
from specbudget.review.samples import Samples
from specbudget.review.whole import chosen_service, review_of
from specbudget.sources.engine_tls import TlsFiles
from specbudget.sources.prometheus.client import PrometheusClient
from specbudget.sources.prometheus.client_config import ClientConfig, Secret, read_client_file
from specbudget.sources.prometheus.samples import PrometheusSamples

SILENT_SECONDS = 0.5
"""Work that takes longer shows on a terminal that it goes on."""


class OutputError(SpecbudgetError):
    """A file cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """What was asked on the command line."""

    start: str
    end: str
    prometheus: str | None = None
    state: Path | None = None
    service: str | None = None
    out: Path | None = None
    json: Path | None = None
    png: Path | None = None
    requests: Path | None = None
    log: tuple[Path, ...] = ()
    log_timezone: str | None = None
    client_file: Path | None = None
    tenant: str | None = None
    user: str | None = None
    password_file: Path | None = None
    bearer_token_file: Path | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None


def run_review(options: ReviewOptions) -> int:
    """Writes what was asked for; returns 0. Raises SpecbudgetError for what cannot be read or written."""
    if options.out is None and options.json is None and options.png is None:
        raise OutputError("nothing to write: give --out report.html, --json FILE or --png FILE")
    start, end = parse_stretch(options.start, options.end, time.time())
    progress = Progress()
    try:
        review = _review(options, start, end, progress)
    finally:
        progress.end()
    if options.json is not None:
        _write(options.json, as_json(review).encode(), "--json")
    if options.out is not None:
        page = importlib.import_module("specbudget.review.page.render")
        _write(options.out, page.render(review).encode(), "--out")
    if options.png is not None:
        drawn = importlib.import_module("specbudget.review.page.picture")
        _write(options.png, drawn.picture(review), "--png")
    _tell(review)
    return 0


def _review(options: ReviewOptions, start: float, end: float, progress: Progress) -> Review:
    samples = _samples(options, start, end, progress)
    service = chosen_service(samples, options.service, has_logs=bool(options.log))
    logged = read_logs(options.log, start, end, zone_of(options.log_timezone)) if options.log else None
    requests = None if options.requests is None else read_requests(options.requests, start, end)
    return review_of(samples, service, start, end, requests=requests, logged=logged)


def _samples(options: ReviewOptions, start: float, end: float, progress: Progress) -> Samples:
    if options.state is not None:
        return HistorySamples(options.state, start, end)
    client = PrometheusClient(options.prometheus or "", client_config(options))
    return PrometheusSamples(client, start, end, progress.step)


def client_config(options: ReviewOptions) -> ClientConfig:
    """How to reach the storage; what is given as an option stands before what the client file says."""
    config = ClientConfig() if options.client_file is None else read_client_file(options.client_file)
    if options.user is not None:
        config = replace(config, user=options.user, user_file=None, token=None)
    if options.password_file is not None:
        config = replace(config, password=Secret(options.password_file))
    if options.bearer_token_file is not None:
        config = replace(config, token=Secret(options.bearer_token_file))
    if options.tenant is not None:
        config = replace(config, tenant=options.tenant)
    tls = replace(
        config.tls,
        ca_file=options.tls_ca or config.tls.ca_file,
        cert_file=options.tls_cert or config.tls.cert_file,
        key_file=options.tls_key or config.tls.key_file,
    )
    if (tls.cert_file is None) != (tls.key_file is None):
        raise OutputError("--tls-cert-path and --tls-key-path: give both, or neither")
    return config if tls == TlsFiles() else replace(config, tls=tls)


class Progress:
    """A line on a terminal that says that reading goes on; nothing where nobody watches."""

    def __init__(self) -> None:
        self._since, self._count, self._shown = time.monotonic(), 0, False

    def step(self) -> None:
        """One more series was read."""
        self._count += 1
        if sys.stderr.isatty() and time.monotonic() - self._since >= SILENT_SECONDS:
            self._shown = True
            print(f"\rreading: {self._count} series", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clears the line."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _write(path: Path, content: bytes, option: str) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{option} {path}: cannot be written: {error.strerror}") from None


def _tell(review: Review) -> None:
    for finding in review.findings:
        print(f"{finding.line}: {finding.title}")
