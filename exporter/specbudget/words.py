"""Numbers in words, for people: sizes, durations, counts, bars. One form everywhere a person reads."""

from __future__ import annotations

BAR_CELLS = 20
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: float | None) -> str:
    """Bytes in the largest binary unit that leaves a whole number in front."""
    if value is None:
        return "?"
    sign, value = ("-", -value) if value < 0 else ("", value)
    for unit in _SIZES:
        if value < 1023.95 or unit == _SIZES[-1]:
            return f"{sign}{value:.0f} {unit}" if unit == "B" else f"{sign}{value:.1f} {unit}"
        value /= 1024
    return "?"


def seconds(value: float | None) -> str:
    """A duration: seconds, from three minutes on minutes, from three hours on hours."""
    if value is None:
        return "?"
    if value < 180:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 3 * 3600 else f"{value / 3600:.1f} h"


def span(value: float) -> str:
    """A length of time that was chosen, exact to the second: 28 days, 6 h, 2 h 14 min, 90 s."""
    left, parts = max(0, round(value)), []
    if left < 60:
        return f"{left} s"
    for unit, size_of in (("day", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        whole, left = divmod(left, size_of)
        if whole:
            parts.append(f"{whole} {unit}{'s' if unit == 'day' and whole > 1 else ''}")
    return " ".join(parts)


def percent(share: float) -> str:
    """A share as people write it: 5 %, 67.2 %, 99.95 %."""
    return f"{100 * share:.4g} %"


def count(value: float | None) -> str:
    """A count with thousands apart; a small one that is no whole number, such as a length, with two decimals."""
    if value is None:
        return "?"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def bar(ratio: float | None, cells: int = BAR_CELLS) -> str:
    """A bar that is full at the limit."""
    if ratio is None:
        return "·" * cells
    full = min(cells, max(0, round(ratio * cells)))
    return "█" * full + "░" * (cells - full)
