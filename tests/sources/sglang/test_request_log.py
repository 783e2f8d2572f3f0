"""Records of both engine versions to the last digit, and lines that no reader may stumble over."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.domain.requests import UNKNOWN, RequestBatch
from specbudget.sources.sglang.request_log import RecordColumns, decode_lines, to_batch

CAPTURED = Path(__file__).parents[2] / "fixtures" / "sglang"
FOLDERS = sorted(
    f"{version}/requests_{kind}"
    for version in ("0.5.18", "0.5.23")
    for kind in ("dflash", "dspark_cap", "dspark_logreq_level1", "dspark_static", "nospec")
)
GENERATED = settings(max_examples=80, deadline=None)


def lines_of(folder: str) -> list[bytes]:
    """All lines of a captured request folder."""
    return [line for path in sorted((CAPTURED / folder).iterdir()) for line in path.read_bytes().splitlines()]


def batch_of(columns: RecordColumns, window: int | None = None) -> RequestBatch:
    """The columns as a batch of one profile."""
    return to_batch(columns, profiles=0, modified=5.0, engine_window=window)


def known(column: np.ndarray[Any, Any]) -> int:
    """The sum of a column, unknown values left out."""
    return int(column[column != UNKNOWN].sum())


def record(parameters: dict[str, Any] | None = None, **meta: Any) -> bytes:
    """A line as the engine's writer makes it."""
    given = {"rid": "r", "text": "hello"} if parameters is None else parameters
    tail = {"id": "r", "finish_reason": {"type": "stop", "matched": 2}, "completion_tokens": 10, **meta}
    return json.dumps({"request_parameters": json.dumps(given), **tail}).encode() + b"\n"


# --- captured ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
def test_captured_totals_are_those_of_the_file(folder: str) -> None:
    """Every column against the same file read by Python's own JSON."""
    lines = lines_of(folder)
    records = [json.loads(line) for line in lines]
    columns = decode_lines(b"\n".join(lines) + b"\n")
    assert (columns.outcomes.ok, columns.outcomes.skipped, columns.outcomes.malformed) == (len(records), 0, 0)
    batch = batch_of(columns)

    def column(key: str) -> list[int]:
        return [r.get(key, UNKNOWN) for r in records]

    assert batch.output_tokens.tolist() == column("completion_tokens")
    assert batch.steps.tolist() == column("spec_verify_ct")
    assert batch.accepted.tolist() == column("spec_num_correct_drafts")
    assert batch.rank.tolist() == [max(rank, 0) for rank in column("dp_rank")]
    assert batch.aborted.tolist() == [r["finish_reason"]["type"] == "abort" for r in records]
    capped = [r.get("spec_cap_lens_histogram") for r in records]
    assert batch.proposed.tolist() == [
        own if caps is None else sum(steps * max(window - 1, 0) for window, steps in enumerate(caps))
        for own, caps in zip(column("spec_num_proposed_drafts"), capped, strict=True)
    ]
    histograms = [r.get("spec_correct_drafts_histogram", []) for r in records]
    for row, histogram in zip(batch.histogram.tolist(), histograms, strict=True):
        assert row[: len(histogram)] == histogram
        assert not any(row[len(histogram) :])
    lengths = [
        Fraction(sum((i + 1) * h for i, h in enumerate(hist)), sum(hist)) if hist else None for hist in histograms
    ]
    for got, length, r in zip(batch.lengths().tolist(), lengths, records, strict=True):
        if length is None:
            assert math.isnan(got)
        else:
            assert got == pytest.approx(float(length), rel=1e-15)
            assert length == 1 + Fraction(r["spec_num_correct_drafts"], r["spec_verify_ct"])
    assert not batch.inconsistent().any()
    received = [r.get("request_finished_ts") or r.get("response_sent_to_client_ts") or 5.0 for r in records]
    assert batch.finished_at.tolist() == received


@pytest.mark.parametrize(
    ("folder", "records", "steps", "accepted", "proposed", "tokens"),
    [
        ("0.5.18/requests_dflash", 19, 1107, 2325, 16605, 3406),
        ("0.5.18/requests_dspark_cap", 23, 2235, 2839, 7749, 5071),
        ("0.5.18/requests_dspark_logreq_level1", 12, 620, 1354, 4340, 1969),
        ("0.5.18/requests_dspark_static", 19, 1109, 2514, 7763, 3607),
        ("0.5.18/requests_nospec", 13, 0, 0, 0, 1572),
        ("0.5.23/requests_dflash", 19, 1107, 2325, 16605, 3406),
        ("0.5.23/requests_dspark_cap", 23, 2235, 2839, 7749, 5071),
        ("0.5.23/requests_dspark_logreq_level1", 12, 620, 1354, 4340, 1969),
        ("0.5.23/requests_dspark_static", 19, 1109, 2514, 7763, 3607),
        ("0.5.23/requests_nospec", 13, 0, 0, 0, 1572),
    ],
)
def test_captured_totals_by_number(
    folder: str, records: int, steps: int, accepted: int, proposed: int, tokens: int
) -> None:
    """The totals, counted once and written down."""
    batch = batch_of(decode_lines(b"\n".join(lines_of(folder))))
    totals = (known(batch.steps), known(batch.accepted), known(batch.proposed), known(batch.output_tokens))
    assert (len(batch), *totals) == (records, steps, accepted, proposed, tokens)


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_the_engines_own_ratio_is_not_the_length(version: str) -> None:
    """It divides output tokens by steps; the first token of a request took no verify step."""
    lines = lines_of(f"{version}/requests_dspark_static")
    own = [json.loads(line).get("spec_accept_length") for line in lines]
    lengths = batch_of(decode_lines(b"\n".join(lines))).lengths().tolist()
    differing = [1 for told, length in zip(own, lengths, strict=True) if told is not None and told != length]
    assert len(differing) > len(lines) / 2


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_where_windows_are_capped_fewer_drafts_are_proposed_than_the_record_says(version: str) -> None:
    """The record's number is that of the static configuration."""
    lines = lines_of(f"{version}/requests_dspark_cap")
    batch = batch_of(decode_lines(b"\n".join(lines)))
    static = sum(json.loads(line).get("spec_num_proposed_drafts", 0) for line in lines)
    assert known(batch.accepted) < known(batch.proposed) < static
    # the window stays that of the configuration: a cap is chosen by step
    assert set(batch.window.tolist()) == {8, UNKNOWN}


def test_the_engines_window_stands_before_the_records() -> None:
    """Where the engine tells a fixed window, every record has it."""
    columns = decode_lines(record(spec_verify_ct=2, spec_num_proposed_drafts=6) + record())
    assert batch_of(columns, window=8).window.tolist() == [8, 8]
    assert batch_of(columns).window.tolist() == [4, UNKNOWN]


# --- both ways of reading ----------------------------------------------------------------------------------------

ADVERSARIAL = st.sampled_from(
    [
        '", "id": ',
        '", "id": "x", "finish_reason": {"type": "abort"}, "completion_tokens": 9}',
        '{"request_parameters": "',
        '\\", \\"id\\": ',
        '\\\\", \\\\"id\\\\": ',
        "\\",
        '"',
        "\n",
        "\r\n\t\b\f\x00\x1f\x7f\x85\u2028\u2029",
        "\ud83d",
        "\U0001f600",
        "שלום",
        "NaN, Infinity, -Infinity",
        "}{",
        '"id": 1',
    ]
)
TEXT = st.lists(st.one_of(ADVERSARIAL, st.text(max_size=12)), max_size=6).map("".join)
COUNT = st.one_of(st.none(), st.integers(0, 5000))
HISTOGRAM = st.one_of(st.none(), st.lists(st.integers(0, 50), max_size=9))
NESTED: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.just("id"), TEXT), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def records(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """What is to be read, and a line that tells it among much else."""
    told: dict[str, Any] = {
        "completion_tokens": draw(st.integers(0, 5000)),
        "dp_rank": draw(COUNT),
        "spec_verify_ct": draw(COUNT),
        "spec_num_correct_drafts": draw(COUNT),
        "spec_num_proposed_drafts": draw(COUNT),
        "spec_correct_drafts_histogram": draw(HISTOGRAM),
        "spec_cap_lens_histogram": draw(HISTOGRAM),
        "request_finished_ts": draw(st.one_of(st.none(), st.floats(1, 2e9), st.just(math.nan), st.just(math.inf))),
    }
    reason = {"type": draw(st.sampled_from(["stop", "length", "abort"])), "matched": draw(NESTED)}
    keys = list(told)
    meta: dict[str, Any] = {"id": draw(TEXT), "finish_reason": reason, "prompt_tokens": 5}
    for key in draw(st.permutations(keys)):
        if told[key] is not None or draw(st.booleans()):
            meta[key] = told[key]
        if draw(st.booleans()):
            meta[f"other_{key}"] = draw(NESTED)
    parameters = {
        "rid": "r",
        "text": draw(TEXT),
        "lora_path": draw(st.one_of(st.none(), st.just("adapter"))),
        "n": draw(NESTED),
    }
    told["type"] = reason["type"]
    told["lora_path"] = parameters["lora_path"]
    return told, json.dumps({"request_parameters": json.dumps(parameters), **meta}).encode()


@GENERATED
@given(records())
def test_reading_the_tail_and_reading_the_whole_line_agree(case: tuple[dict[str, Any], bytes]) -> None:
    """Whatever the prompt and the other keys hold, both ways give what was written."""
    told, line = case
    by_tail = decode_lines(line + b"\n", with_adapters=True)
    whole = decode_lines(b" " + line, with_adapters=True)  # begins otherwise: read whole
    for columns in (by_tail, whole):
        assert (columns.outcomes.ok, columns.outcomes.malformed) == (1, 0)
        (found,) = columns.records
        assert found.finish_reason is not None
        assert found.finish_reason.type == told["type"]
        for key in told.keys() - {"type", "lora_path"}:
            value = told[key]
            finite = None if isinstance(value, float) and not math.isfinite(value) else value
            assert getattr(found, key) == finite, key
        assert columns.adapters == [told["lora_path"]]
    assert by_tail.records == whole.records
    assert decode_lines(line).records == by_tail.records


@GENERATED
@given(st.lists(records(), min_size=1, max_size=4), st.data())
def test_records_glued_on_one_line_are_told_apart(
    cases: list[tuple[dict[str, Any], bytes]], data: st.DataObject
) -> None:
    """Several writers' records on one line: each counts, and a torn one only as malformed."""
    glued = b"".join(line for _, line in cases)
    columns = decode_lines(glued, with_adapters=True)
    assert (columns.outcomes.ok, columns.outcomes.malformed) == (len(cases), 0)
    assert [r.completion_tokens for r in columns.records] == [told["completion_tokens"] for told, _ in cases]
    assert columns.adapters == [told["lora_path"] for told, _ in cases]
    torn = cases[0][1][: data.draw(st.integers(1, len(cases[0][1]) - 1))]
    columns = decode_lines(torn + glued + b"\n")
    assert (columns.outcomes.ok, columns.outcomes.malformed) == (len(cases), 1)


def test_ids_that_begin_alike_hide_no_record() -> None:
    """Clients number their requests: only the whole id tells that a line holds one record."""
    first, second = (record({"rid": f"chat-session-2026-{n}"}, id=f"chat-session-2026-{n}") for n in (1, 2))
    columns = decode_lines(first[:60] + second + first[:-1] + second)
    assert (columns.outcomes.ok, columns.outcomes.malformed) == (3, 1)


def test_a_line_of_many_starts_is_read_once() -> None:
    """Megabytes of torn starts without an end: each piece is looked at up to the next start only."""
    columns = decode_lines(b'{"request_parameters": "x' * 100_000 + b"\n" + record())
    assert (columns.outcomes.ok, columns.outcomes.malformed) == (1, 100_000)


def test_accepted_drafts_come_from_the_histogram_where_only_it_tells_them() -> None:
    """Unknown is not 0; where the histogram counts other steps than the record, it stays unknown."""
    told = {"spec_verify_ct": 4, "spec_correct_drafts_histogram": [1, 0, 3]}
    lines = record(**told) + record(**{**told, "spec_verify_ct": 5}) + record(spec_verify_ct=4)
    assert batch_of(decode_lines(lines)).accepted.tolist() == [6, UNKNOWN, UNKNOWN]


@GENERATED
@given(records(), st.data())
def test_a_torn_line_is_one_malformed_record(case: tuple[dict[str, Any], bytes], data: st.DataObject) -> None:
    """Cut anywhere, at its end or at its start, between two whole ones."""
    _, line = case
    cut = data.draw(st.integers(1, len(line) - 1))
    for torn in (line[:cut], line[cut:]):
        columns = decode_lines(record() + torn + b"\n" + record())
        assert columns.outcomes.ok == 2 or not torn.strip()
        assert columns.outcomes.malformed == (1 if torn.strip() else 0)


@GENERATED
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(noise: bytes, adapters: bool) -> None:
    """Neither as lines of their own, nor inside a record's front or tail."""
    start, mark = b'{"request_parameters": "', b'", "id": '
    for data in (
        noise,
        start + noise,
        start + noise + mark + noise,
        start + mark + noise + b"}",
        record()[:-30] + noise,
    ):
        columns = decode_lines(data, with_adapters=adapters)
        batch_of(columns).inconsistent()
        pieces = sum(1 for line in data.split(b"\n") if line.strip())
        outcomes = columns.outcomes
        assert outcomes.ok + outcomes.skipped + outcomes.malformed >= min(pieces, 1)


# --- bad and unusual ---------------------------------------------------------------------------------------------

DEEP = "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        pytest.param(b"", "none", id="an empty line"),
        pytest.param(b" \t\r", "none", id="a blank line"),
        pytest.param(b"\x00" * 100, "malformed", id="NUL bytes of a lost block"),
        pytest.param(b"\xff\xfe", "malformed", id="bytes that are no text"),
        pytest.param(b"null", "malformed", id="null"),
        pytest.param(b"[]", "malformed", id="a list"),
        pytest.param(b'"text"', "malformed", id="a string"),
        pytest.param(b"{}", "skipped", id="an object with none of the keys"),
        pytest.param(b'{"request_parameters": "{}"}', "skipped", id="a record without meta_info"),
        pytest.param(b'{"request_parameters": "{}", "id": "a"}', "skipped", id="a record that tells nothing"),
        pytest.param(record()[:-2], "malformed", id="a line without its end"),
        pytest.param(record()[5:-1], "malformed", id="a line without its start"),
        pytest.param(record()[:-1] + b"\r", "ok", id="a carriage return at the end"),
        pytest.param(record()[:-1] + b" trailing", "malformed", id="something behind it"),
        pytest.param(record(completion_tokens="10")[:-1], "malformed", id="a count as text"),
        pytest.param(record(completion_tokens=10.5)[:-1], "malformed", id="a count with a fraction"),
        pytest.param(record(completion_tokens=True)[:-1], "malformed", id="a count that is true"),
        pytest.param(record(completion_tokens=[1])[:-1], "malformed", id="a count that is a list"),
        pytest.param(record(completion_tokens=1 << 31)[:-1], "malformed", id="a count beyond 31 bits"),
        pytest.param(record(spec_verify_ct=10**30)[:-1], "malformed", id="a count beyond any integer"),
        pytest.param(record(spec_verify_ct=-(10**30))[:-1], "malformed", id="the same below zero"),
        pytest.param(record(finish_reason="stop")[:-1], "malformed", id="a finish reason that is no object"),
        pytest.param(record(finish_reason={"type": 3})[:-1], "malformed", id="a finish reason's type as a number"),
        pytest.param(record(spec_correct_drafts_histogram={"0": 1})[:-1], "malformed", id="a histogram as an object"),
        pytest.param(record(spec_correct_drafts_histogram=[1, None])[:-1], "malformed", id="a histogram with null"),
        pytest.param(record(spec_correct_drafts_histogram=[0] * 1025)[:-1], "malformed", id="a histogram too long"),
        pytest.param(record(completion_tokens=math.nan)[:-1], "ok", id="a count that is NaN is unknown"),
        pytest.param(record(completion_tokens=None)[:-1], "ok", id="a count that is null is unknown"),
        pytest.param(record(finish_reason=None)[:-1], "ok", id="no finish reason"),
        pytest.param(record(input_token_logprobs=[[-math.inf, 1, "\ud83d"]])[:-1], "ok", id="what json.dump lets pass"),
        pytest.param(record(completion_tokens=-1)[:-1], "ok", id="a negative count, for the SLO to exclude"),
        pytest.param(record(unheard_of={"deep": [1, {"id": 2}]})[:-1], "ok", id="unknown keys"),
        pytest.param(b'{"completion_tokens": 5, "finish_reason": {}, "a": 1}', "ok", id="no prompt in front"),
        pytest.param(
            f'{{"request_parameters": "{{}}", "id": {DEEP}}}'.encode(), "malformed", id="deep nesting in the tail"
        ),
        pytest.param(f'{{"a": {DEEP}}}'.encode(), "malformed", id="deep nesting elsewhere"),
    ],
)
@pytest.mark.parametrize("adapters", [False, True], ids=["", "with adapters"])
def test_outcome_of_a_line(line: bytes, outcome: str, adapters: bool) -> None:
    """Between two good lines, which it never takes with it."""
    columns = decode_lines(record(dp_rank=1) + line + b"\n" + record(dp_rank=2), with_adapters=adapters)
    found = columns.outcomes
    assert (found.ok - 2, found.skipped, found.malformed) == (
        int(outcome == "ok"),
        int(outcome == "skipped"),
        int(outcome == "malformed"),
    )
    assert [r.dp_rank for r in columns.records if r.dp_rank] == [1, 2]
    assert len(columns.adapters) == (found.ok if adapters else 0)
    batch_of(columns).inconsistent()


def test_lines_of_megabytes_cost_no_copy_of_the_prompt() -> None:
    """The record behind an 8 MB prompt is read like any other."""
    prompt = "".join(random.Random(1).choices('abc"\\\n', k=4_000_000))
    line = record({"rid": "r", "text": prompt}, spec_verify_ct=3)
    columns = decode_lines(line + line, with_adapters=True)
    assert columns.outcomes.ok == 2
    assert [r.spec_verify_ct for r in columns.records] == [3, 3]


def test_only_what_stands_before_the_end_is_read() -> None:
    """The start of the next line behind it is not."""
    line = record()
    assert decode_lines(line + line[:-1], len(line)).outcomes.ok == 1


@pytest.mark.parametrize(
    ("parameters", "adapter"),
    [
        ({"text": "t", "lora_path": "code-lora"}, "code-lora"),
        ({"text": '"lora_path": "other"', "lora_path": "mine"}, "mine"),
        ({"text": '", "id": 5, "lora_path": "other"'}, None),
        ({"text": "\ud83d", "lora_path": "mine"}, "mine"),
        ({"text": "t", "temperature": math.nan, "lora_path": "mine"}, "mine"),
        ({"text": "t", "lora_path": None}, None),
        ({"text": "t", "lora_path": ["a", "b"]}, None),
        ({"text": "t", "sampling_params": {"lora_path": "nested"}}, None),
        ({"text": "t", "lora_path": "größe \U0001f600"}, "größe \U0001f600"),
        ({"text": DEEP, "lora_path": "mine"}, "mine"),
    ],
    ids=[
        "given",
        "given, another in the prompt",
        "only in the prompt",
        "beside a lone surrogate",
        "beside a number that is none",
        "null",
        "a list",
        "nested",
        "not ASCII",
        "beside brackets in a text",
    ],
)
def test_adapter_is_read_from_the_parameters_only(parameters: dict[str, Any], adapter: str | None) -> None:
    """The prompt cannot name one."""
    columns = decode_lines(record(parameters), with_adapters=True)
    assert columns.adapters == [adapter]
    nested = record(parameters, other={"x": "y", "id": 1})
    assert decode_lines(nested, with_adapters=True).adapters == [adapter]


def test_a_record_whose_id_comes_last_is_read_whole() -> None:
    """What stands before the id is not lost."""
    meta = {"completion_tokens": 7, "finish_reason": {"type": "length"}, "weight_version": "default", "id": "r"}
    line = json.dumps({"request_parameters": json.dumps({"lora_path": "mine"}), **meta}).encode()
    columns = decode_lines(line, with_adapters=True)
    assert [r.completion_tokens for r in columns.records] == [7]
    assert columns.adapters == ["mine"]


def test_parts_bound_the_width_of_the_columns() -> None:
    """One record with a thousand positions widens only its own part."""
    wide = record(spec_correct_drafts_histogram=[0] * 1023 + [1])
    columns = decode_lines(wide + record() * 9, with_adapters=True)
    parts = list(columns.parts(4))
    assert [len(part.records) for part in parts] == [4, 4, 2]
    assert [len(part.adapters) for part in parts] == [4, 4, 2]
    assert [batch_of(part).histogram.shape for part in parts] == [(4, 1024), (4, 0), (2, 0)]


def test_sums_of_the_largest_counts_stay_integers() -> None:
    """Nothing wraps around to a negative number."""
    largest = (1 << 31) - 1
    line = record(
        spec_verify_ct=largest, spec_cap_lens_histogram=[largest] * 1024, spec_correct_drafts_histogram=[largest] * 1024
    )
    batch = batch_of(decode_lines(line * 500))
    assert int(batch.proposed.sum()) == 500 * largest * sum(range(1023))
    assert int(batch.histogram.sum()) == 500 * 1024 * largest
    assert batch.inconsistent().all()


@pytest.mark.parametrize(
    ("meta", "at"),
    [
        ({"request_finished_ts": 7.5, "response_sent_to_client_ts": 6.0}, 7.5),
        ({"response_sent_to_client_ts": 6.0}, 6.0),
        ({}, 5.0),
        ({"request_finished_ts": 0}, 5.0),
        ({"request_finished_ts": math.nan}, 5.0),
    ],
    ids=["told", "only of the answer", "not told", "zero", "not a number"],
)
def test_finish_time(meta: dict[str, Any], at: float) -> None:
    """The file's modification time stands in."""
    assert batch_of(decode_lines(record(**meta))).finished_at.tolist() == [at]
