"""Numbers and findings in words, for people: units, bars, one sentence per line."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.lines import Unit
from specbudget.demo.readings import BudgetRow, LineRow, Reading

BAR_CELLS = 20
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def size(value: float | None) -> str:
    """Bytes in the largest binary unit that leaves a whole number in front."""
    if value is None:
        return "?"
    for unit in _SIZES:
        if abs(value) < 1024 or unit == _SIZES[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return "?"


def amount(value: float | None, row: BudgetRow) -> str:
    """A side of a budget in its unit."""
    if value is None:
        return "?"
    match row.budget.unit:
        case Unit.BYTES:
            return size(value)
        case Unit.SECONDS:
            return f"{value:.0f} s"
        case Unit.TOKENS:
            return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        case _:
            return f"{value:.2f}"


def bar(ratio: float | None) -> str:
    """A bar of 20 cells, full at the limit."""
    if ratio is None:
        return "·" * BAR_CELLS
    cells = min(BAR_CELLS, round(ratio * BAR_CELLS))
    return "█" * cells + "░" * (BAR_CELLS - cells)


def budget_text(row: BudgetRow | None) -> str:
    """`target_length 3.52 ≥ 2.60`, or what is not known."""
    if row is None:
        return "not budgeted"
    sign = "≥" if row.budget.floor else "≤"
    return f"{row.budget.id} {amount(row.spent, row)} {sign} {amount(row.limit, row)}"


def sentence(row: LineRow, reading: Reading) -> str:
    """What a person wants to know first about a line."""
    match row.line.id:
        case "artifacts":
            return _artifacts(reading)
        case "kv":
            return _kv(reading)
        case "acceptance":
            return _acceptance(reading)
        case _:
            return "budgeted, and not known yet" if row.state == "unknown" else ""


def _artifacts(reading: Reading) -> str:
    parts = [
        f"{name} {size(disk)}"
        for name in ("target", "drafter")
        if (disk := reading.value(series.ARTIFACT_BYTES, artifact=name)) is not None
    ]
    resident = reading.largest(series.WEIGHT_MEMORY_BYTES, artifact="drafter")
    if resident is not None:
        parts.append(f"drafter resident {size(resident)} per GPU")
    return ", ".join(parts)


def _kv(reading: Reading) -> str:
    target = reading.value(series.KV_BYTES_PER_TOKEN, artifact="target")
    drafter = reading.value(series.KV_BYTES_PER_TOKEN, artifact="drafter")
    cost = reading.largest(series.KV_COST_TOKENS)
    if not target or drafter is None:
        return ""
    text = f"a token costs {target:,.0f} + {drafter:,.0f} B, {drafter / (target + drafter):.1%} of it for the drafter"
    return text if cost is None else f"{text}; without it the target holds {cost:,.0f} tokens more"


def _acceptance(reading: Reading) -> str:
    length = reading.value(series.ROLLING_ACCEPTANCE_LENGTH, scope="request", window="1m")
    batch = reading.value(series.ROLLING_ACCEPTANCE_LENGTH, scope="batch", window="1m")
    window = reading.largest(series.ACCEPTANCE_WINDOW)
    state = reading.state_of(series.SPECULATION_STATE, rank="0") or "no_data"
    said = [f"{name} {value:.2f}" for name, value in (("request", length), ("batch", batch)) if value is not None]
    text = f"last minute {', '.join(said)}" if said else "no verify step in the last minute"
    return f"{text}{'' if window is None else f' of at most {window:.0f}'}; speculation {state}"
