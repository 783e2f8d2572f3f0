"""Where the sidecar listens unless it is told otherwise."""

from __future__ import annotations

DEFAULT_LISTEN = "127.0.0.1:9877"
