"""The KV pool of one rank: slots in use, slots that hold evictable cache, free slots. Always adds up.

A prefix that many requests share is held once. When a request ends its full pages stay as evictable cache
(SGLang's radix cache) and are given back, oldest first, when somebody needs the slots.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specbudget.simulate.configs import VERIFY_WINDOW
from specbudget.simulate.request import Request
from specbudget.simulate.sizing import PAGE_TOKENS


@dataclass(slots=True)
class _Prefix:
    tokens: int
    users: int = 0


class KvPool:
    """Slots of the target's pool; the drafter's pool has the same slots.

    Ahead of a request's context two of the widest verify windows are reserved (SGLang 0.5.23
    allocation_sizing.py).
    """

    def __init__(self, tokens: int, *, window: int = VERIFY_WINDOW) -> None:
        self.capacity = tokens
        self._reserved = 2 * window
        self.used = 0
        self.evictable = 0
        self._prefixes: dict[str, _Prefix] = {}
        self._cache: deque[int] = deque()

    @property
    def available(self) -> int:
        """Free slots."""
        return self.capacity - self.used - self.evictable

    @property
    def cached_requests(self) -> int:
        """Ended requests whose pages are still cached."""
        return len(self._cache)

    def admit(self, request: Request, *, headroom: int) -> bool:
        """Take the slots of a request's prompt; False when there are not enough even after eviction.

        `headroom` slots must stay free or evictable for the running requests to grow into.
        """
        prefix = self._prefixes.get(request.shared_prefix)
        shared = _pages_down(request.shared_tokens)
        hit = prefix is not None and shared > 0
        wanted = _pages_up(request.context_tokens + self._reserved) - shared
        if self.capacity - self.used < wanted + shared + headroom:
            return False
        if not self._make_room(wanted + (0 if hit else shared), keep=request.shared_prefix):
            return False
        if shared:
            if prefix is None:
                prefix = self._prefixes[request.shared_prefix] = _Prefix(shared)
                self.used += shared
            elif prefix.users == 0:
                self.evictable -= shared
                self.used += shared
            prefix.users += 1
        request.cached_tokens = shared if hit else 0
        request.held_tokens = wanted
        self.used += wanted
        return True

    def grow(self, request: Request) -> bool:
        """Extend a request's slots to its context; False when the pool is full."""
        shared = _pages_down(request.shared_tokens)
        wanted = _pages_up(request.context_tokens + self._reserved) - shared
        more = wanted - request.held_tokens
        if more <= 0:
            return True
        if not self._make_room(more, keep=request.shared_prefix):
            return False
        request.held_tokens = wanted
        self.used += more
        return True

    def release(self, request: Request, *, keep: bool) -> None:
        """Give a request's slots back; with `keep` its full pages stay as evictable cache."""
        shared = _pages_down(request.shared_tokens)
        self.used -= request.held_tokens
        if keep:
            cached = max(0, min(_pages_down(request.context_tokens) - shared, request.held_tokens))
            self.evictable += cached
            self._cache.append(cached)
        request.held_tokens = 0
        prefix = self._prefixes.get(request.shared_prefix)
        if shared and prefix is not None:
            prefix.users -= 1
            if prefix.users == 0:
                self.used -= shared
                self.evictable += shared

    def _make_room(self, tokens: int, *, keep: str) -> bool:
        while self.available < tokens and self._cache:
            self.evictable -= self._cache.popleft()
        if self.available < tokens:
            unused = [name for name, prefix in self._prefixes.items() if prefix.users == 0 and name != keep]
            for name in unused:
                self.evictable -= self._prefixes.pop(name).tokens
        return self.available >= tokens


def _pages_up(tokens: int) -> int:
    return -(-tokens // PAGE_TOKENS) * PAGE_TOKENS


def _pages_down(tokens: int) -> int:
    return tokens // PAGE_TOKENS * PAGE_TOKENS
