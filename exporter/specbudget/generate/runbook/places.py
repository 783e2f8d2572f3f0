"""What stands for the marks of commands: addresses and paths of a budget, quoted for a shell."""

from __future__ import annotations

import shlex

from specbudget.address import DEFAULT_LISTEN
from specbudget.budget.model import Budget
from specbudget.catalog.engine_words import ENGINES

BUDGET_FILE = "budget.yaml"


def filled(text: str, budget: Budget) -> str:
    """A text of the catalog with its marks replaced by what the budget says, or by a word in capitals."""
    engine = budget.engine
    for mark, word in ENGINES[engine.kind].marks.items():
        text = text.replace(mark, word)
    marks = {
        "[budget]": BUDGET_FILE,
        "[sidecar]": f"http://{DEFAULT_LISTEN}",
        "[curl]": _curl(budget, key=True),
        "[curl open]": _curl(budget, key=False),
        "[engine]": _word(engine.url),
        "[request log]": _path(engine.request_log, "REQUEST_LOG_FOLDER"),
        "[server log]": _path(engine.server_log, "SERVER_LOG"),
        "[target]": _path(budget.target.path, "TARGET_FOLDER"),
        "[drafter]": _path(budget.drafter.path, "DRAFTER_FOLDER"),
    }
    for mark, word in marks.items():
        text = text.replace(mark, word)
    return text


def _curl(budget: Budget, *, key: bool) -> str:
    """A request as the sidecar makes it: with the engine's certificate authority, and with its key where one is due."""
    engine, words = budget.engine, ["curl -sS"]
    if engine.tls.ca_file is not None:
        words.append(f"--cacert {_word(engine.tls.ca_file)}")
    if engine.tls.cert_file is not None and engine.tls.key_file is not None:
        words.append(f"--cert {_word(engine.tls.cert_file)} --key {_word(engine.tls.key_file)}")
    if engine.tls.insecure_skip_verify:
        words.append("--insecure")
    if key and engine.api_key_file is not None:
        words.append(f'-H "Authorization: Bearer $(cat {_word(engine.api_key_file)})"')
    return " ".join(words)


def _path(path: str | None, otherwise: str) -> str:
    return otherwise if path is None else _word(path)


def _word(text: str) -> str:
    return shlex.quote(text)
