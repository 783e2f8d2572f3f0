"""What a running request holds for its next step, release by release."""

import pytest

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.step_reserve import step_reserve

EAGLE, EAGLE3, DSPARK, NGRAM = (
    DraftAlgorithm.EAGLE,
    DraftAlgorithm.EAGLE3,
    DraftAlgorithm.DSPARK,
    DraftAlgorithm.NGRAM,
)


@pytest.mark.parametrize(
    ("words", "release", "algorithm", "steps", "topk", "tokens", "page", "reserved", "written"),
    [
        ("a tree, before two steps overlapped", (0, 5, 9), EAGLE, 4, 4, 5, 1, 16, 12),
        ("a tree, doubled for the step that runs", (0, 5, 18), EAGLE, 4, 4, 5, 1, 32, 12),
        ("the same one release on", (0, 5, 23), EAGLE, 4, 4, 5, 1, 32, 12),
        ("an unknown release counts as the latest that was read", (), EAGLE, 4, 4, 5, 1, 32, 12),
        ("verifying takes more slots than drafting", (0, 5, 23), EAGLE3, 3, 2, 64, 1, 128, 4),
        ("a chain on pages takes slots, not pages", (0, 5, 23), EAGLE3, 3, 1, 4, 64, 8, 2),
        ("each branch of a tree on pages takes whole pages", (0, 5, 23), EAGLE3, 3, 2, 4, 64, 512, 4),
        ("a block drafter writes its block", (0, 5, 23), DSPARK, 1, 1, 9, 64, 18, 9),
        ("n-gram drafts have no branches of their own", (0, 5, 23), NGRAM, 1, 4, 12, 64, 24, 12),
    ],
)
def test_reserve_follows_the_release(
    words: str,
    release: tuple[int, ...],
    algorithm: DraftAlgorithm,
    steps: int,
    topk: int,
    tokens: int,
    page: int,
    reserved: int,
    written: int,
) -> None:
    """Slots that one request reserves, and those that the drafter's passes write."""
    kept = step_reserve(release, algorithm=algorithm, num_steps=steps, topk=topk, draft_tokens=tokens, page=page)
    assert (kept.reserved, kept.written) == (reserved, written), words


def test_pages_count_over_decode_context_ranks_from_the_later_release_on() -> None:
    """Two ranks of decode context parallelism make pages twice as long; the earlier release did not count them."""
    rows = [
        step_reserve(
            release, algorithm=EAGLE3, num_steps=3, topk=2, draft_tokens=4, page=4, decode_context_parallel=2
        ).step
        for release in ((0, 5, 18), (0, 5, 23))
    ]
    assert rows == [16, 32]


@pytest.mark.parametrize(
    ("release", "is_read"),
    [((0, 5, 18), True), ((0, 5, 23), True), ((0, 5, 20), False), ((0, 4, 9), False), ((), True)],
)
def test_a_release_that_was_not_read_is_told(release: tuple[int, ...], is_read: bool) -> None:
    """Between and before the two releases the neighbour's rule is taken and said so."""
    assert step_reserve(release, algorithm=EAGLE, num_steps=1, topk=1, draft_tokens=2, page=1).is_read is is_read
