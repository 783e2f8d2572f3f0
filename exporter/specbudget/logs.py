"""The one place that configures logging: changes of state, one line each."""

from __future__ import annotations

import logging
import sys
import time


def configure(*, stream: str = "stdout", level: int = logging.INFO) -> None:
    """Text lines with UTC time and level; stdout for a service, stderr beside a command's own output."""
    handler = logging.StreamHandler(sys.stdout if stream == "stdout" else sys.stderr)
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
