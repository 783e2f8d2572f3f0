"""Sizes as people write them."""

import pytest

from specbudget.budget.units import parse_measured

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "size", "rounding"),
    [
        ("84395343872B", 84_395_343_872, 0.0),
        ("80486MiB", 80_486 * 2**20, 0.0),
        ("78.6GiB", int(78.6 * GIB), 0.005 * GIB),
        ("78.60 GiB", int(78.6 * GIB), 0.005 * GIB),
        ("78GiB", 78 * GIB, 0.005 * GIB),
        ("78.125GiB", int(78.125 * GIB), 0.0005 * GIB),
    ],
)
def test_a_measured_size_knows_its_rounding(text: str, size: int, rounding: float) -> None:
    """Bytes and MiB are exact, a figure in GiB is rounded as a log prints it."""
    measured = parse_measured(text)
    assert measured == size
    assert measured.rounding == pytest.approx(rounding)


@pytest.mark.parametrize("value", ["78.6", 78.6, None, "many GiB"])
def test_a_measured_size_needs_a_unit(value: object) -> None:
    """As every size does."""
    with pytest.raises(ValueError, match="write a number with a unit"):
        parse_measured(value)
