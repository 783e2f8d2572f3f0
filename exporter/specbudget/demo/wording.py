"""Numbers and findings in words, for people: units, bars, one sentence per line."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.lines import Unit
from specbudget.demo.readings import BudgetRow, LineRow, Reading
from specbudget.words import size


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


def budget_text(row: BudgetRow | None) -> str:
    """`target_length 3.52, limit at least 2.60`, or what is not known."""
    if row is None:
        return "not budgeted"
    bound = "at least" if row.budget.floor else "at most"
    return f"{row.budget.id} {amount(row.spent, row)}, limit {bound} {amount(row.limit, row)}"


def sentence(row: LineRow, reading: Reading) -> str:
    """What a person wants to know first about a line."""
    match row.line.id:
        case "artifacts":
            return _artifacts(reading)
        case "kv":
            return _kv(reading)
        case "acceptance":
            return _acceptance(reading)
        case "staging":
            return _staging(reading)
        case "codesign":
            return _codesign(reading)
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


def _staging(reading: Reading) -> str:
    told = [
        f"{name} {seconds:.1f} s"
        for name in ("target", "drafter")
        if (seconds := reading.value(series.STARTUP_STAGE_DURATION, artifact=name, stage="load")) is not None
    ]
    info = dict(next(iter(reading.all(series.STAGING_INFO)), frozenset()))
    if not told and not info:
        return ""
    mode = f"{info['mode']}, warm-up {info['warmup']}" if info else ""
    return "; ".join(part for part in (f"load {', '.join(told)}" if told else "", mode) if part)


def _codesign(reading: Reading) -> str:
    counts = {dict(key)["result"]: value for key, value in reading.all(series.CODESIGN_CHECKS).items()}
    if not counts:
        return ""
    told = ", ".join(f"{count:.0f} {result}" for result, count in counts.items() if count)
    broken = sorted(
        dict(key)["check"] for key in reading.all(series.CODESIGN_CHECK) if dict(key)["result"] in ("fail", "warn")
    )
    return f"rules: {told}{': ' + ', '.join(broken) if broken else ''}"


STAGE_LETTERS = {"prefetch": "p", "load": "L", "post_load": "-", "kv_alloc": "K", "graph_capture": "G", "warmup": "W"}


def timeline(reading: Reading, cells: int = 60) -> list[tuple[str, str]]:
    """The latest start as one row of letters per artifact, from process start to the first generation or now.

    Empty where no start is known. A stage of no length still shows one letter.
    """
    offsets = {(dict(k)["artifact"], dict(k)["stage"]): v for k, v in reading.all(series.STARTUP_STAGE_OFFSET).items()}
    lasting = {
        (dict(k)["artifact"], dict(k)["stage"]): v for k, v in reading.all(series.STARTUP_STAGE_DURATION).items()
    }
    ends = [offset + lasting.get(key, 0.0) for key, offset in offsets.items()]
    whole = max(ends, default=0.0)
    if whole <= 0:
        return []
    rows = []
    for artifact in ("target", "drafter", "both"):
        row = [" "] * cells
        for (owner, stage), offset in sorted(offsets.items(), key=lambda item: item[1]):
            letter = STAGE_LETTERS.get(stage)
            if owner != artifact or letter is None:
                continue
            first = min(cells - 1, int(offset / whole * cells))
            last = max(first + 1, min(cells, round((offset + lasting.get((owner, stage), 0.0)) / whole * cells)))
            row[first:last] = letter * (last - first)
        if any(cell != " " for cell in row):
            rows.append((artifact, "".join(row)))
    return rows


def legend() -> str:
    """What the letters of a timeline stand for."""
    return ", ".join(f"{letter} {stage.replace('_', ' ')}" for stage, letter in STAGE_LETTERS.items())
