"""`specbudget serve`: starts the sidecar and says where it listens."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from specbudget import __version__
from specbudget.budget.reading import load_budget
from specbudget.errors import BudgetError, Problem, StateError
from specbudget.logs import configure
from specbudget.serve.sidecar import Sidecar
from specbudget.serve.upstream_tls import check_tls_files

SERVED_ENGINES = ("sglang",)

log = logging.getLogger(__name__)


def run_serve(budget: Path, host: str, port: int, state: Path | None) -> int:
    """Serves until SIGTERM or SIGINT; returns 0. Raises BudgetError and StateError for what cannot start."""
    configure()
    loaded = load_budget(budget)
    kind = loaded.budget.engine.kind
    if kind not in SERVED_ENGINES:
        served = ", ".join(SERVED_ENGINES)
        raise BudgetError([Problem(str(budget), None, "engine.kind", f"{kind} is not served yet; served: {served}")])
    check_tls_files(loaded)
    sidecar = Sidecar(loaded, state)

    def started(taken: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        log.info(
            "serving: version=%s service=%s url=http://%s:%d/metrics", __version__, loaded.budget.service, shown, taken
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
