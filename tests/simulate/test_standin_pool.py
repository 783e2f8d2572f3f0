"""The KV pool of the stand-in: its slots always add up, whatever requests do."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.simulate.pool import KvPool
from specbudget.simulate.request import Ending, Request


def request(prompt: int, prefix: str, shared: int) -> Request:
    """A request that holds nothing yet."""
    return Request(
        rid="r",
        profile="chat",
        adapter=None,
        text="",
        prompt_tokens=prompt,
        shared_prefix=prefix,
        shared_tokens=min(shared, prompt),
        sampling_params={},
        stream=False,
        output_tokens=10_000,
        ending=Ending.LENGTH,
        length_factor=1.0,
        arrived=0.0,
        generator=np.random.default_rng(0),
    )


steps = st.lists(
    st.tuples(
        st.sampled_from(["admit", "grow", "keep", "drop"]), st.integers(0, 3000), st.sampled_from(["a", "b", ""])
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_slots_add_up(actions):
    """Used, evictable and free slots are never negative, and used is what the running requests hold."""
    pool = KvPool(8192)
    running: list[Request] = []
    for action, amount, prefix in actions:
        if action == "admit":
            new = request(200 + amount, prefix, 200 if prefix else 0)
            if pool.admit(new, headroom=0):
                running.append(new)
        elif running:
            one = running[amount % len(running)]
            if action == "grow":
                one.completion_tokens += amount
                if not pool.grow(one):
                    one.completion_tokens -= amount
            else:
                running.remove(one)
                pool.release(one, keep=action == "keep")
        shared = 192 * len({one.shared_prefix for one in running if one.shared_tokens >= 64})
        private = sum(one.held_tokens for one in running)
        assert pool.available >= 0
        assert pool.evictable >= 0
        assert private <= pool.used <= private + shared
        if not running:
            assert pool.used == 0


def test_a_shared_prefix_is_a_hit_for_the_second_request():
    """The first request computes the prefix, the second finds it cached, and it is held once."""
    pool = KvPool(8192)
    first, second = request(500, "a", 200), request(500, "a", 200)
    assert pool.admit(first, headroom=0)
    held = pool.used
    assert pool.admit(second, headroom=0)
    assert (first.cached_tokens, second.cached_tokens) == (0, 192)
    assert pool.used < 2 * held


def test_the_oldest_cache_goes_first_and_a_full_pool_refuses():
    """Evictable slots make room; when none are left, nobody is admitted."""
    pool = KvPool(1024)
    old = request(400, "", 0)
    assert pool.admit(old, headroom=0)
    pool.release(old, keep=True)
    assert pool.evictable == 384
    assert pool.admit(request(900, "", 0), headroom=0)
    assert pool.evictable == 0
    assert not pool.admit(request(200, "", 0), headroom=0)
