"""TLS towards the engine as the budget says it: a file that cannot be used is told before anything starts."""

from __future__ import annotations

from pathlib import Path

from specbudget.budget.model import Budget, resolve
from specbudget.errors import BudgetError, Problem
from specbudget.sources.engine_tls import EngineTls, EngineTlsError, TlsFiles


def tls_files(budget: Budget, file: Path) -> TlsFiles:
    """`engine.tls` with its paths taken from the folder of the budget's `file`."""
    tls = budget.engine.tls

    def beside(path: str | None) -> Path | None:
        return None if path is None else resolve(path, file)

    return TlsFiles(
        ca_file=beside(tls.ca_file),
        cert_file=beside(tls.cert_file),
        key_file=beside(tls.key_file),
        insecure_skip_verify=tls.insecure_skip_verify,
    )


def check_tls_files(budget: Budget, file: Path) -> None:
    """Raises BudgetError when a file of `engine.tls` is missing or is not what its key says.

    For a start and for a changed `engine.tls` only: a file that goes away later is a failed source, which heals.
    """
    try:
        EngineTls(tls_files(budget, file)).context()
    except EngineTlsError as error:
        raise BudgetError([Problem(str(file), None, error.key, str(error))]) from None
