"""`specbudget serve`: starts the sidecar and says where it listens."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from specbudget import __version__
from specbudget.errors import BudgetError, Problem, StateError
from specbudget.history.writer import DEFAULT_BYTES
from specbudget.logs import configure
from specbudget.pair.nested_drafter import load_deployment
from specbudget.serve.protection import described
from specbudget.serve.sidecar import Sidecar
from specbudget.serve.web_config import read_web_config
from specbudget.sources.upstream_tls import check_tls_files

SERVED_ENGINES = ("sglang",)

log = logging.getLogger(__name__)


def run_serve(
    budget: Path,
    host: str,
    port: int,
    state: Path | None,
    web_config: Path | None = None,
    history_bytes: int = DEFAULT_BYTES,
) -> int:
    """Serves until SIGTERM or SIGINT; returns 0. Raises BudgetError and StateError for what cannot start."""
    configure()
    loaded = load_deployment(budget)
    kind = loaded.budget.engine.kind
    if kind not in SERVED_ENGINES:
        served = ", ".join(SERVED_ENGINES)
        raise BudgetError([Problem(str(budget), None, "engine.kind", f"{kind} is not served yet; served: {served}")])
    check_tls_files(loaded.budget, loaded.path)
    protected = None if web_config is None else read_web_config(web_config).load()
    if protected is not None:
        log.info("web configuration loaded: %s", described(protected))
        if protected.config.basic_auth_users and protected.context is None:
            log.warning("passwords will cross the network in clear text: add tls_server_config to %s", web_config)
    sidecar = Sidecar(loaded, state, protected, history_bytes)
    scheme = "http" if protected is None or protected.context is None else "https"

    def started(taken: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        log.info(
            "serving: version=%s service=%s url=%s://%s:%d/metrics",
            __version__,
            loaded.budget.service,
            scheme,
            shown,
            taken,
        )

    try:
        asyncio.run(sidecar.serve(host, port, started=started))
    except OSError as error:
        raise StateError(f"--listen {host}:{port}: {error.strerror or error}") from error
    match sidecar.desk.state_saved:
        case None:
            log.info("ended: nothing is kept without --state")
        case True:
            log.info("ended: everything that was counted is saved: state=%s", state)
        case False:
            log.warning("ended: what was counted last is not saved and will be counted again: state=%s", state)
    return 0
