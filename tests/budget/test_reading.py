"""The budget file: what is read, and the one line for each thing that can be wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.budget.lock import load_lock
from specbudget.budget.model import Budget, resolve
from specbudget.budget.reading import MAX_BYTES, load_budget
from specbudget.errors import BudgetError

HERE = Path(__file__).parent
INVALID = sorted((HERE / "invalid").glob("*.yaml"))


def problems(path: Path) -> list[str]:
    """The lines that a person sees, the file's name cut off."""
    with pytest.raises(BudgetError) as caught:
        load_budget(path)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def read_or_told(path: Path) -> list[str]:
    """The service of a budget that is in order, else its problems; any other exception is a fault."""
    try:
        return [load_budget(path).budget.service]
    except BudgetError as error:
        return [str(problem) for problem in error.problems]


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_every_rule_has_a_bad_file_and_one_clear_line(path: Path) -> None:
    """The file breaks one rule; the line names place, key and fix, and nothing else is said."""
    assert problems(path) == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def test_the_full_example_is_read_in_base_units() -> None:
    """Sizes are bytes, durations seconds, and every key of the contract's example is known."""
    budget = load_budget(HERE / "full.yaml").budget
    assert budget.service == "ling-flash-chat"
    assert budget.engine.gpu_memory == 80 * 1024**3
    assert budget.engine.free_before_load == int(78.6 * 1024**3)
    assert budget.engine.poll_interval == 5.0
    assert budget.engine.version == "0.5.23"
    assert budget.parallelism.tensor == 4
    line = budget.budget.acceptance
    assert line is not None
    assert line.window == 28 * 86400
    assert line.profiles["code"].target_length == 3.4
    staging = budget.budget.staging
    assert staging is not None
    assert (staging.cold_start, staging.storage_bandwidth) == (90.0, 2 * 1024**3)


def test_only_service_is_required(tmp_path: Path) -> None:
    """Every line may be left out and every other key has a default."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: a\n")
    budget = load_budget(path).budget
    assert budget.engine.url == "http://127.0.0.1:30000"
    assert budget.budget.acceptance is None
    assert budget.profile_names() == ("default",)


def test_json_is_accepted(tmp_path: Path) -> None:
    """JSON is YAML."""
    path = tmp_path / "budget.json"
    path.write_text('{"service": "a", "budget": {"kv": {"high_water": 0.8}}}')
    line = load_budget(path).budget.budget.kv
    assert line is not None
    assert line.high_water == 0.8


def test_words_that_old_yaml_takes_for_booleans_stay_words(tmp_path: Path) -> None:
    """`off` as an environment value is the text off, not false."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: a\nengine: {env: {A: off, B: 1, C: 12:30}}\n")
    assert load_budget(path).budget.engine.env == {"A": "off", "B": "1", "C": "12:30"}


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """A file with three faults gives three lines in the order of the file."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: a\nengine: {kind: x, gpu_memory: 3}\nbudget:\n  kvv: {}\n")
    assert [line.split(":")[0] for line in problems(path)] == ["2", "2", "4"]


def test_a_secret_under_a_wrong_key_is_not_repeated(tmp_path: Path) -> None:
    """The line names the key, never the value."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: a\nengine: {api_key: sk-very-secret}\n")
    assert "sk-very-secret" not in "".join(problems(path))
    assert "api_key_file" in problems(path)[0]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """No traceback, the reason in words."""
    assert problems(tmp_path / "none.yaml") == [" cannot be read: No such file or directory"]


def test_a_huge_file_is_refused_without_parsing(tmp_path: Path) -> None:
    """More than 1 MiB is no budget."""
    path = tmp_path / "budget.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert problems(path) == [" larger than 1 MiB: this is no budget"]


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    """Opening a FIFO would block until somebody writes."""
    path = tmp_path / "budget.yaml"
    os.mkfifo(path)
    assert problems(path) == [" cannot be read: not a regular file"]


def test_a_folder_is_refused_and_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """The file is looked at every few seconds, so what one look leaves open adds up."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        assert problems(tmp_path) == [" cannot be read: Is a directory"]
    assert len(os.listdir("/proc/self/fd")) < before + 50


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("*made-up-word", "found undefined alias"),
        ("!made-up-word x", "could not determine a constructor for the tag"),
        ("!made-up-word!x y", "found undefined tag handle"),
        ("&made-up-word x\nother: &made-up-word y", "second occurrence"),
    ],
    ids=["alias", "tag", "tag handle", "anchor"],
)
def test_what_only_looks_like_yaml_is_not_repeated(tmp_path: Path, value: str, says: str) -> None:
    """A password without quotes may begin with a sign of YAML's; the fault is told without the word."""
    path = tmp_path / "budget.yaml"
    path.write_text(f"service: {value}\n")
    (line,) = problems(path)
    assert line.endswith(f": not valid YAML: {says}")


BOMB = "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"b{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
ROUND = "service: &a [" + "x," * 2_000 + "*a]\n"


@pytest.mark.parametrize(
    "text", [BOMB, BOMB.replace("[", "{k: [").replace("]", "]}"), ROUND], ids=["list", "map", "round"]
)
def test_aliases_that_stand_for_billions_of_values_are_refused_at_once(tmp_path: Path, text: str) -> None:
    """Expanded, a few hundred bytes never end here; a lock and every other file is read the same way."""
    path = tmp_path / "budget.yaml"
    path.write_text(text)
    (line,) = problems(path)
    assert "aliases repeat more than 1,000 values" in line
    with pytest.raises(BudgetError, match="aliases repeat"):
        load_lock(path)


def test_a_value_that_is_named_once_and_meant_twice_is_read(tmp_path: Path) -> None:
    """What aliases are for."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: &name chat\nengine: {env: {NAME: *name}}\n")
    assert load_budget(path).budget.engine.env == {"NAME": "chat"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("free_before_load: 900000000TiB", "free_before_load: too large: at most 1 EiB"),
        (f"gpu_memory: {'9' * 400}B", "gpu_memory: too large: at most 1 EiB"),
        (f"poll_interval: {'9' * 400}s", "poll_interval: too long: at most 100 years"),
    ],
    ids=["size", "size beyond any float", "duration"],
)
def test_a_number_beyond_all_machines_is_one_line(tmp_path: Path, value: str, says: str) -> None:
    """Its arithmetic would overflow later, far from the key."""
    path = tmp_path / "budget.yaml"
    path.write_text(f"service: chat\nengine: {{{value}}}\n")
    (line,) = problems(path)
    assert line.startswith(f"2: engine.{says}")


def test_deep_nesting_ends_in_a_line(tmp_path: Path) -> None:
    """A thousand open brackets neither crash nor hang."""
    path = tmp_path / "budget.yaml"
    path.write_text("service: " + "[" * 1000)
    assert len(problems(path)) == 1


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_content_leads_to_anything_but_a_budget_or_lines(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Arbitrary bytes are either a budget or a BudgetError."""
    path = tmp_path_factory.mktemp("fuzz") / "budget.yaml"
    path.write_bytes(content)
    assert read_or_told(path)


YAMLISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(Budget.model_fields)), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(Budget.model_fields)), YAMLISH, max_size=5))
def test_no_value_under_a_known_key_leads_to_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    """Whatever stands under the known keys, the answer is a budget or lines."""
    path = tmp_path_factory.mktemp("fuzz") / "budget.json"
    path.write_text(json.dumps(document))
    assert all("\n" not in line for line in read_or_told(path))


@pytest.mark.parametrize(
    ("target", "expected"), [(2.6, 84), (2.5, 80), (3.0, 96), (2.1, 68)], ids=["2.6", "2.5", "3.0", "2.1"]
)
def test_least_output_tokens_follow_the_target(tmp_path: Path, target: float, expected: int) -> None:
    """⌈32 × target_length⌉, without an error of binary fractions."""
    path = tmp_path / "budget.yaml"
    path.write_text(f"service: a\nbudget: {{acceptance: {{target_length: {target}}}}}\n")
    line = load_budget(path).budget.budget.acceptance
    assert line is not None
    assert line.min_tokens(None) == expected


def test_profiles_match_by_model_and_adapter_in_order() -> None:
    """The first profile whose patterns all fit; an unknown name fits no pattern."""
    budget = Budget.model_validate(
        {
            "service": "a",
            "budget": {
                "acceptance": {
                    "target_length": 2.0,
                    "profiles": {
                        "sql": {"match": {"model": "ling-*", "adapter": "sql-*"}, "target_length": 3.0},
                        "ling": {"match": {"model": "ling-*"}, "target_length": 2.5},
                    },
                }
            },
        }
    )
    assert budget.profile_of("ling-flash", "sql-7") == "sql"
    assert budget.profile_of("ling-flash", None) == "ling"
    assert budget.profile_of(None, "sql-7") == "default"
    assert budget.profile_names() == ("default", "sql", "ling")


def test_relative_paths_are_taken_from_the_file(tmp_path: Path) -> None:
    """A budget can be moved together with what stands beside it."""
    assert resolve("key.txt", tmp_path / "budget.yaml") == tmp_path / "key.txt"
    assert resolve("/etc/key", tmp_path / "budget.yaml") == Path("/etc/key")
