"""The co-design line's one budget, from the findings."""

from __future__ import annotations

import pytest

from domain.codesign.pairs_to_judge import DSPARK, drafter
from specbudget.domain.codesign import PairFacts, judge, pair_ratio


@pytest.mark.parametrize(
    ("pair", "due", "ratio"),
    [
        (DSPARK, False, 0.0),
        (DSPARK, True, 1.0),
        (drafter(DSPARK, num_target_layers=48), False, 1.0),
        (drafter(DSPARK, hidden=None), True, None),
        (drafter(DSPARK, mask_token_id=None), False, 2.0),
    ],
    ids=["fits", "fits but is due", "warned of", "not known", "does not fit"],
)
def test_the_used_ratio_of_the_pair(pair: PairFacts, due: bool, ratio: float | None) -> None:
    """2 is a breach, 1 a risk, 0 in order; what is not known is none of them."""
    assert pair_ratio(judge(pair), recheck_due=due) == ratio
