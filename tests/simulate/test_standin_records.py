"""Request records of the stand-in, held against records that a real engine wrote."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from specbudget.simulate.scenarios import SCENARIOS

STATIC = "0.5.23/requests_dspark_static/sglang-request-metrics-20261129_16.log"
PLAIN = "0.5.23/requests_nospec/sglang-request-metrics-20261129_16.log"

KINDS = (
    "stop with speculation",
    "length with speculation",
    "streamed with speculation",
    "aborted while running",
    "aborted by the server",
    "aborted in the queue",
    "one token",
    "structured output",
)


def kinds(record: dict) -> list[str]:
    """What kinds of request a record tells of."""
    reason = record["finish_reason"]
    parameters = json.loads(record["request_parameters"])
    if reason["type"] == "abort":
        by = "in the queue" if "prompt_tokens" not in record else "by the server"
        return [f"aborted {'while running' if reason.get('message') == 'Abort by user' else by}"]
    if record["completion_tokens"] == 1:
        return ["one token"]
    how = "with speculation" if "spec_verify_ct" in record else "without speculation"
    found = [f"streamed {how}" if parameters["stream"] else f"{reason['type']} {how}"]
    return [*found, "structured output"] if "json_schema" in parameters["sampling_params"] else found


def layout(value: object) -> object:
    """Keys in order with the JSON type of each; lists by the types inside."""
    if isinstance(value, dict):
        return tuple((key, layout(item)) for key, item in value.items())
    if isinstance(value, list):
        return ("list", frozenset(type(item).__name__ for item in value))
    return type(value).__name__


def body(record: dict) -> object:
    """The layout of a record without its finish reason."""
    return layout({key: value for key, value in record.items() if key != "finish_reason"})


@pytest.fixture(scope="module")
def real(captured):
    """Layouts of real records by kind, and of real finish reasons."""
    found = defaultdict(set)
    for name in (STATIC, PLAIN):
        for line in captured(name).splitlines():
            record = json.loads(line)
            found["reason"].add(layout(record["finish_reason"]))
            for kind in kinds(record):
                found[kind].add(body(record))
    return found


@pytest.fixture(scope="module")
def steady(virtual):
    """Records of a minute and a half of steady traffic."""
    return virtual("steady").until(90).records


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_has_the_keys_order_and_types_of_the_engine(steady, real, kind):
    """Each kind of record is laid out like a real one of that kind, streamed or not."""
    ours = [record for record in steady if kind in kinds(record)]
    assert ours, kind
    assert real[kind]
    both_ways = ("structured output", "aborted while running", "aborted by the server")
    either = real["streamed with speculation"] | real["length with speculation"]
    assert {body(record) for record in ours} <= real[kind] | (either if kind in both_ways else set())
    assert {layout(record["finish_reason"]) for record in ours} <= real["reason"]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "stuck-start"])
def test_records_of_every_scenario_are_laid_out_like_the_engines(seen, real, name):
    """Whatever happens, each record is one of the kinds of the engine, and its finish reason too."""
    bodies = set().union(*(layouts for kind, layouts in real.items() if kind != "reason"))
    records = seen(name).records
    assert len(records) > 100
    for record in records:
        assert body(record) in bodies, kinds(record)
        assert layout(record["finish_reason"]) in real["reason"]


def test_records_without_speculation_look_like_those_of_a_plain_engine(virtual, real):
    """After the drafter is switched off, finished records have the layout of an engine without one."""
    records = virtual("speculation-off").until(60).records
    late = [record for record in records if record.get("forward_entry_time", 0) > records[0]["forward_entry_time"] + 22]
    plain = [record for record in late if any("without" in kind for kind in kinds(record))]
    assert len(plain) > 100
    for record in plain:
        allowed = set().union(*(real[kind] for kind in kinds(record) if "without" in kind))
        assert body(record) in allowed


def test_request_parameters_are_those_of_the_engine(virtual, captured):
    """The JSON text inside a record has the engine's keys in its order, and the prompt."""
    real_keys = list(json.loads(json.loads(captured(STATIC).splitlines()[0])["request_parameters"]))
    for record in virtual("steady").until(12).records:
        parameters = json.loads(record["request_parameters"])
        assert list(parameters) == real_keys
        assert parameters["rid"] == record["id"]
        assert parameters["text"]


def test_an_adapter_stands_where_the_engine_puts_it(virtual):
    """A profile with an adapter shows as lora_path, between its neighbours in GenerateReqInput."""
    from specbudget.simulate.scenarios import Profile, Scenario

    scenario = Scenario(summary="", profiles={"sql": Profile(share=1.0, length=3.0, adapter="ling-sql")})
    record = virtual(scenario).until(8).records[-1]
    parameters = json.loads(record["request_parameters"])
    assert parameters["lora_path"] == "ling-sql"
    keys = list(parameters)
    first = keys.index("lora_path")
    assert keys[first - 1 : first + 3] == ["return_indexer_topk", "lora_path", "lora_id", "background"]
    assert len(bytes.fromhex(parameters["lora_id"])) == 16


def test_traffic_holds_what_makes_parsers_stumble(steady):
    """Prompts in other scripts, lines of several hundred kilobytes, aborts, one token and a third streamed."""
    records = steady
    lines = [json.dumps(record) for record in records]
    assert any("\\\\ud83d" in line for line in lines)
    assert any("\\\\u0000" in line for line in lines)
    assert max(map(len, lines)) > 300_000
    assert sum(len(line) > 300_000 for line in lines) < 0.02 * len(lines)
    assert all(line.isascii() for line in lines)
    streamed = sum(json.loads(record["request_parameters"])["stream"] for record in records)
    assert abs(streamed / len(records) - 1 / 3) < 0.02
    assert sum(record["completion_tokens"] == 1 for record in records) > 5


def test_a_record_agrees_with_itself(steady):
    """Histogram, verify steps, accepted and proposed drafts and both ratios of a record say the same."""
    seen = 0
    for record in steady:
        if "spec_verify_ct" not in record:
            continue
        seen += 1
        histogram, steps = record["spec_correct_drafts_histogram"], record["spec_verify_ct"]
        accepted = record["spec_num_correct_drafts"]
        assert sum(histogram) == steps
        assert sum(drafts * count for drafts, count in enumerate(histogram)) == accepted
        assert histogram[-1] > 0
        assert len(histogram) <= 9
        assert record["spec_num_proposed_drafts"] == 8 * steps
        assert record["spec_accept_rate"] == accepted / (8 * steps)
        assert record["spec_accept_length"] == record["completion_tokens"] / steps
        assert record["completion_tokens"] <= 1 + steps + accepted
        assert record["completion_tokens"] > 1 + steps + accepted - 9
        assert record["request_received_ts"] <= record["forward_entry_time"] < record["prefill_finished_time"]
        assert record["prefill_finished_time"] < record["request_finished_ts"]
    assert seen > 300
