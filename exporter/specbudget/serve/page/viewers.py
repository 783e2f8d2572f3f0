"""Who has the page open: a bounded number, each with a bounded queue of what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from specbudget.serve.page.board import Board, Snapshot

MAX_VIEWERS = 64
"""Pages that may be open at once; each costs a connection and what it has not read yet."""

QUEUED = 8
"""Messages that may wait for one viewer; who is further behind is let go and comes back to a whole page."""

RETRY_MILLISECONDS = 2000
"""After which a browser comes back by itself."""


class Viewer:
    """One open page. `hang_up` ends its connection, however much of it is still to be sent."""

    def __init__(self, hang_up: Callable[[], None]) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUED)
        self._hang_up = hang_up

    async def next(self) -> bytes | None:
        """The next message; None when there will be no more."""
        return await self._queue.get()

    def put(self, message: bytes | None) -> bool:
        """Queues a message; False when the viewer is too slow for it, and then it is let go."""
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._hang_up()
            return False
        return True


class Viewers:
    """All open pages. What is sent to one is the same bytes for all."""

    def __init__(self, board: Board, *, limit: int = MAX_VIEWERS) -> None:
        self._board, self._limit = board, limit
        self._viewers: set[Viewer] = set()
        self._shown: Snapshot | None = None
        self._hello: bytes | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._viewers)

    def join(self, hang_up: Callable[[], None]) -> Viewer | None:
        """A new viewer, with the whole page as its first message; None when there are as many as there may be."""
        if self._closed or len(self._viewers) >= self._limit:
            return None
        if not self._viewers or self._shown is None:
            self._show(self._board.snapshot())
        assert self._shown is not None
        if self._hello is None:
            self._hello = b"retry: %d\n" % RETRY_MILLISECONDS + event(self._shown.message())
        viewer = Viewer(hang_up)
        viewer.put(self._hello)
        self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """The viewer is gone."""
        self._viewers.discard(viewer)

    def publish(self) -> None:
        """Tells all what changed since the last time. Without a viewer it costs nothing."""
        if not self._viewers or self._shown is None:
            return
        before, now = self._shown, self._board.snapshot()
        message = event(now.message(before))
        self._show(now)
        for viewer in list(self._viewers):
            if not viewer.put(message):
                self.leave(viewer)

    def send_away(self) -> None:
        """Ends all connections, so that who comes back has to show again that it may read."""
        for viewer in list(self._viewers):
            viewer.put(None)
        self._viewers.clear()

    def close(self) -> None:
        """Ends all connections and takes no new ones."""
        self._closed = True
        self.send_away()

    def _show(self, snapshot: Snapshot) -> None:
        self._shown, self._hello = snapshot, None


def event(data: bytes) -> bytes:
    """One server-sent event; JSON has no line break of its own, so that it is one line of data."""
    return b"data: " + data + b"\n\n"
