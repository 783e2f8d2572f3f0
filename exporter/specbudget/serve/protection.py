"""The web configuration in force at run time: read again when it or a file that it names changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from specbudget.errors import BudgetError, Problem
from specbudget.serve.listener import Listener
from specbudget.serve.web_config import VERIFY_MODES, LoadedWebConfig, WebConfigFile, files_digest, read_web_config
from specbudget.serve.web_guard import Guard
from specbudget.serve.web_model import WebConfig

log = logging.getLogger(__name__)


class Protection:
    """Guard and TLS of one web configuration.

    `noted` is told whether the latest reading succeeded, `changed` that another configuration is in force.
    """

    def __init__(
        self, loaded: LoadedWebConfig, noted: Callable[[bool], None], changed: Callable[[], None] = lambda: None
    ) -> None:
        self._changed = changed
        self.guard = Guard(loaded)
        self.listener: Listener | None = None
        self._loaded, self._noted, self._ok = loaded, noted, True
        self._files, self._seen = loaded.files, loaded.digest
        self._changes: set[asyncio.Task[None]] = set()

    def reload(self) -> list[str]:
        """Reads the files again; bad ones leave the old in force. Returns their problems."""
        # before it is read: what changes meanwhile is then a change to be seen
        self._seen = files_digest(self._files)
        try:
            written = read_web_config(self._loaded.path)
            # also where it cannot be used: a file that it names may be on its way
            self._files, self._seen = written.files(), written.digest()
            loaded = written.load()
            _check_nothing_is_lost(self._loaded.config, written)
        except BudgetError as error:
            for problem in error.problems:
                log.error("web configuration not loaded, the old one stays in force: %s", problem)
            self._note(False)
            return [str(problem) for problem in error.problems]
        if loaded.config != self._loaded.config:
            self.guard.use(loaded)
            self._changed()
        if loaded.tls_digest != self._loaded.tls_digest:
            self._change(loaded)
        self._loaded = loaded
        log.info("web configuration loaded: %s", described(loaded))
        self._note(True)
        return []

    async def watch(self, seconds: float) -> None:
        """Every so many seconds looks whether a file changed, however it was replaced; runs until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            digest = files_digest(self._files)
            if digest == self._seen:
                continue
            self._seen = digest
            if digest != self._loaded.digest or not self._ok:
                self.reload()

    def _note(self, ok: bool) -> None:
        self._ok = ok
        self._noted(ok)

    def _change(self, loaded: LoadedWebConfig) -> None:
        if self.listener is None:
            return
        task = asyncio.get_running_loop().create_task(self.listener.use(loaded.context))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)


def described(loaded: LoadedWebConfig) -> str:
    """What is in force, for the log."""
    config = loaded.config
    tls = config.tls_server_config
    client = "NoClientCert" if tls is None else tls.client_auth_type
    return (
        f"file={loaded.path} tls={'off' if tls is None else 'on'} client_auth_type={client} "
        f"users={len(config.basic_auth_users)}"
    )


def _check_nothing_is_lost(before: WebConfig, written: WebConfigFile) -> None:
    """Raises BudgetError when TLS, a check of client certificates or all users are gone.

    A file that is read while it is being written looks like that; and who means it can restart the sidecar.
    """
    after = written.config
    tls_before, tls_after = before.tls_server_config, after.tls_server_config
    lost = []
    if before.basic_auth_users and not after.basic_auth_users:
        lost.append("basic_auth_users")
    if tls_before is not None:
        if tls_after is None:
            lost.append("tls_server_config")
        else:
            if VERIFY_MODES[tls_after.client_auth_type] < VERIFY_MODES[tls_before.client_auth_type]:
                lost.append("tls_server_config.client_auth_type")
            if tls_before.client_allowed_sans and not tls_after.client_allowed_sans:
                lost.append("tls_server_config.client_allowed_sans")
    if lost:
        raise BudgetError(
            [
                Problem(str(written.path), None, key, "protected until now, and is not lifted while running: restart")
                for key in lost
            ]
        )
