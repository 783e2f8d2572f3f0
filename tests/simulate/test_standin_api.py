"""/server_info, /v1/loads and /model_info of the stand-in, held against captured answers."""

from __future__ import annotations

import json

import pytest

from specbudget.simulate import loads, serverinfo
from specbudget.simulate.scenarios import SCENARIOS

RESOLVED = {
    "launch_command": str,
    "sampling_backend": str,
    "random_seed": int,
    "chunked_prefill_size": int,
    "max_running_requests": int,
    "attention_backend": str,
    "tokenizer_path": str,
    "speculative_draft_model_revision": str,
}
"""Arguments that the captured 0.5.23 engine shows unresolved, as null, and a running one does not."""


def kind(value: object) -> type:
    """The JSON type."""
    return type(value)


OTHERWISE = {
    "spec-adaptive": {"speculative_adaptive_config": str, "speculative_dspark_block_size": type(None)},
    "mix-shift": {"enable_lora": bool, "lora_paths": list, "max_lora_rank": int},
    "capacity-shrank": {"max_total_tokens": int},
    "kv-pressure": {"max_total_tokens": int},
    "pd-prefill": {"decode_moments": type(None)},
}
"""Values that the captured engine, started otherwise, shows with another type."""


def compare(ours: dict, real: dict, path: str = "", otherwise: dict | None = None) -> None:
    """Same keys, same types, all the way down; lists by their first element."""
    assert set(ours) == set(real), path
    for key, value in ours.items():
        there = f"{path}.{key}"
        if otherwise and key in otherwise:
            assert kind(value) is otherwise[key], there
        elif key in RESOLVED and real[key] is None:
            assert kind(value) is RESOLVED[key], there
        elif isinstance(value, dict):
            assert isinstance(real[key], dict), there
            compare(value, real[key], there, otherwise)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            compare(value[0], real[key][0], f"{there}[0]", otherwise)
        else:
            assert kind(value) is kind(real[key]), there


def as_json(value: object) -> dict:
    """Through JSON, as a client sees it."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("scenario", "seconds", "name"),
    [
        pytest.param("steady", 15, "server_info_v0.5.23_dspark.json", id="busy"),
        pytest.param("steady", 3.2, "server_info_v0.5.23_dspark_fresh_no_decode.json", id="before the first report"),
        pytest.param("dp2", 15, "server_info_v0.5.23_dspark_dp2.json", id="two ranks"),
    ],
)
def test_server_info_has_the_keys_and_types_of_the_engine(virtual, captured, scenario, seconds, name):
    """All 556 keys and every rank's state are there, each with its type."""
    ours = as_json(serverinfo.server_info(virtual(scenario).until(seconds).process))
    real = json.loads(captured(f"0.5.23/{name}"))
    compare(ours, real)
    assert len(ours["internal_states"]) == len(real["internal_states"])


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in ("stuck-start", "dp2")])
def test_every_scenario_answers_with_the_keys_and_types_of_the_engine(seen, captured, scenario):
    """/server_info and /v1/loads keep their shape whatever happens; without a decode report they say no length."""
    process = seen(scenario).process
    reported = scenario != "pd-prefill"
    info, loaded = "server_info_v0.5.23_dspark", "v1_loads_v0.5.23_dspark_dp2"
    if not reported:
        info, loaded = f"{info}_fresh_no_decode", "v1_loads_v0.5.23_nospec_or_before_first_window"
    otherwise = OTHERWISE.get(scenario)
    compare(as_json(serverinfo.server_info(process)), json.loads(captured(f"0.5.23/{info}.json")), "", otherwise)
    entries = loads.loads(process, include=None, rank=None)
    compare(as_json(loads.as_json(process, entries)), json.loads(captured(f"0.5.23/{loaded}.json")), "", otherwise)


def test_server_info_leaks_what_the_engine_leaks(virtual):
    """Key and command line are in the answer, at the top and in each rank's state: readers must strip them."""
    info = as_json(serverinfo.server_info(virtual("dp2").until(8).process))
    assert info["api_key"].startswith("sk-")
    assert info["api_key"] in info["launch_command"]
    assert {state["api_key"] for state in info["internal_states"]} == {info["api_key"]}


@pytest.mark.parametrize(
    ("scenario", "seconds", "name", "include"),
    [
        pytest.param("dp2", 15, "v1_loads_v0.5.23_dspark_dp2.json", None, id="everything, two ranks"),
        pytest.param(
            "steady",
            15,
            "v1_loads_v0.5.23_include_core_memory_spec.json",
            {"core", "memory", "spec"},
            id="three sections",
        ),
        pytest.param(
            "steady", 3.2, "v1_loads_v0.5.23_nospec_or_before_first_window.json", None, id="before the first report"
        ),
    ],
)
def test_loads_have_the_keys_and_types_of_the_engine(virtual, captured, scenario, seconds, name, include):
    """Each section is there when asked for, and `speculative` only after the first decode report."""
    process = virtual(scenario).until(seconds).process
    ours = as_json(loads.as_json(process, loads.loads(process, include=include, rank=None)))
    compare(ours, json.loads(captured(f"0.5.23/{name}")))


def test_loads_as_text_are_the_gauges_of_the_engine(virtual, captured):
    """format=prometheus prints the captured names in the captured order for both ranks."""
    process = virtual("dp2").until(15).process
    ours = loads.as_text(loads.loads(process, include=None, rank=None))
    real = captured("0.5.23/v1_loads_v0.5.23_format_prometheus.prom")
    assert [line.split()[0] for line in ours.splitlines() if line[0] != "#"] == [
        line.split()[0] for line in real.splitlines() if line[0] != "#"
    ]
    assert [line for line in ours.splitlines() if line[0] == "#"] == [
        line for line in real.splitlines() if line[0] == "#"
    ]


def test_loads_can_be_asked_for_one_rank(virtual):
    """dp_rank selects; a rank that does not exist gives an empty list."""
    process = virtual("dp2").until(15).process
    assert [entry["dp_rank"] for entry in loads.loads(process, include=None, rank=1)] == [1]
    assert loads.loads(process, include=None, rank=7) == []


def test_an_unknown_section_is_refused(virtual):
    """The refusal names the section and the known ones."""
    process = virtual("steady").until(4).process
    with pytest.raises(loads.UnknownSection, match=r"nonsense.*memory"):
        loads.loads(process, include={"nonsense"}, rank=None)


def test_model_info_says_nothing_of_a_drafter(virtual):
    """The answer names the target and no draft model."""
    info = serverinfo.model_info(virtual("steady").until(4).process)
    assert info["architectures"] == ["BailingMoeV3ForCausalLM"]
    assert "draft" not in json.dumps(info)
