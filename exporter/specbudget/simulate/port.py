"""The port of the stand-in: taken at once, listening later."""

from __future__ import annotations

import socket


def bind_port(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen: connections are refused until somebody makes it listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
