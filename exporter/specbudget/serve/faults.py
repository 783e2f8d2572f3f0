"""Logs an unexpected exception by type and place only: its text may repeat what it choked on."""

from __future__ import annotations

import logging
import traceback


def log_fault(log: logging.Logger, what: str, error: BaseException) -> None:
    """One error entry with the frames, without the exception's message and without any value."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, frames.rstrip())
