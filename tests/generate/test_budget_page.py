"""The page of the budget file's keys says what the model says, and its example can be used."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from specbudget.budget.declared import CHECK, GENERATE, SERVE
from specbudget.budget.model import Budget
from specbudget.budget.reading import load_budget
from specbudget.generate.budget_page import Key, example, keys, render

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "exporter" / "specbudget"
KEYS = list(keys())
PAGE = render()


def on_the_page(path: str) -> bool:
    """Whether a key has a row, or a section a heading."""
    return f"| `{path}` |" in PAGE or f"## `{path}`" in PAGE


def test_every_field_of_the_model_says_what_it_is() -> None:
    """No key without meaning, example and reader: what has none would not be on the page."""
    found = {key.path for key in KEYS}

    def walk(schema: Any, definitions: Any, path: str) -> set[str]:
        """The paths of all keys that pydantic's own schema knows; its `$ref`s followed."""
        ref = schema.get("$ref")
        if isinstance(ref, str):
            return walk(definitions[ref.rpartition("/")[2]], definitions, path)
        paths: set[str] = set()
        for name, inner in schema.get("properties", {}).items():
            below = f"{path}.{name}".removeprefix(".")
            paths |= walk(inner, definitions, below) | {below}
        for part in ("anyOf", "oneOf", "allOf"):
            for inner in schema.get(part, ()):
                paths |= walk(inner, definitions, path)
        if isinstance(schema.get("items"), dict):
            paths |= walk(schema["items"], definitions, f"{path}[]")
        if isinstance(schema.get("additionalProperties"), dict):
            paths |= walk(schema["additionalProperties"], definitions, f"{path}.NAME")
        return paths

    schema = Budget.model_json_schema()
    known = walk(schema, schema.get("$defs", {}), "")
    sections = {path for path in known if any(other.startswith((f"{path}.", f"{path}[]")) for other in known)}
    assert known - sections <= found
    assert found <= known
    for path in sections | found:
        assert on_the_page(path), path


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_has_meaning_example_and_reader(key: Key) -> None:
    """A sentence that ends, an example that YAML reads, and at least one command."""
    assert (key.field.description or "").endswith(".")
    assert yaml.safe_load(key.notes.example) is not None
    assert set(key.notes.read_by) <= {CHECK, SERVE, GENERATE}
    assert key.notes.read_by


def test_the_example_is_a_budget_with_every_key(tmp_path: Path) -> None:
    """It is read as it stands, and no key that can stand in it is left out."""
    file = tmp_path / "budget.yaml"
    file.write_text(example())
    budget = load_budget(file).budget
    assert example() in PAGE
    text = example()
    for key in KEYS:
        if "[]" not in key.path and "NAME" not in key.path and "break_even." not in key.path:
            assert re.search(rf"^ *{key.path.rpartition('.')[2]}: ", text, re.M), key.path
    assert budget.engine.free_before_load is not None


@pytest.mark.parametrize("told", sorted((ROOT / "tests/budget/invalid").glob("*.txt")), ids=lambda path: path.stem)
def test_the_key_of_every_error_is_on_the_page(told: Path) -> None:
    """Whoever gets an error finds its key; of an unknown key the section, or the key that was meant."""
    for line in told.read_text(encoding="utf-8").splitlines():
        matched = re.match(r"\d+: ([\w.-]+): ", line)
        if matched is None:
            continue
        path = matched[1]
        if "unknown key" in line:
            path = path.rpartition(".")[0]
            if not path:
                continue
        path = re.sub(r"\.\d+(?=\.|$)", "[]", path)
        path = re.sub(r"(profiles)\.\w+", r"\1.NAME", path)
        assert on_the_page(path), line


def attributes(folder: Path) -> set[str]:
    """Every name that the modules of a folder read off an object."""
    return {
        node.attr
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }


def test_what_the_rules_are_made_from_is_said_to_be_read_by_generate() -> None:
    """The one module that reads a budget for the generated rules reads these keys and no others."""
    tree = ast.parse((PACKAGE / "generate" / "rule_budget.py").read_text(encoding="utf-8"))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {key.path.rpartition(".")[2] for key in KEYS if not re.search(r"\[\]|NAME|break_even\.", key.path)}
    claimed = {
        key.path.rpartition(".")[2] for key in KEYS if GENERATE in key.notes.read_by and "break_even" not in key.path
    }
    assert (read & names) - {"break_even"} == claimed


def test_what_serve_is_not_said_to_read_it_does_not_read() -> None:
    """A key that only the gate or the generator knows is named nowhere in the sidecar."""
    read = attributes(PACKAGE / "serve") | attributes(PACKAGE / "pair")
    for key in KEYS:
        # words such as reason and labels mean many things
        if SERVE not in key.notes.read_by and "[]" not in key.path and key.path != "rules.labels":
            assert key.path.rpartition(".")[2] not in read, key.path
