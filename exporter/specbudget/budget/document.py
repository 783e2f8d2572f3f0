"""Reads a strict YAML file into a model, with line numbers: one Problem per fault, nothing guessed."""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from specbudget.budget.acceptance import UNION_TAGS
from specbudget.budget.declared import Kind
from specbudget.errors import BudgetError, Problem

MAX_BYTES = 1 << 20
"""These files are a page of text; one larger than 1 MiB is something else."""

_REPEATED = re.compile(r"""\b(alias|anchor|tag|handle) (['"]).*\2""", re.S)
"""Where a parser repeats words of the file: a password that begins with `*`, `&` or `!` is one of these to it."""

MAX_REPEATED = 1000
"""Values that aliases may repeat in all: a few lines of aliases of aliases stand for billions of them."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_OF_A_KIND = frozenset({"string_pattern_mismatch", "string_too_short", "string_too_long", "literal_error"})
"""Faults of which the kind of the value says more than the rule that it breaks."""

Loc = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content as plain values, the line of each key, and the hash of what was read."""

    name: str
    value: dict[Any, Any]
    lines: dict[Loc, int]
    digest: str


def content_digest(path: Path) -> str:
    """SHA-256 of what would be read of the file; raises OSError."""
    return hashlib.sha256(read_content(path)).hexdigest()


def read_content(path: Path) -> bytes:
    """The bytes of a regular file, at most one more than MAX_BYTES; raises OSError, never waits for a writer."""
    # O_NONBLOCK: a pipe would wait for its writer
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def read_document(path: Path, *, what: str, begin: str) -> Document:
    """The mapping in `path`. `what` names such a file and `begin` says how one is made, for the lines of a fault.

    Raises BudgetError for a file that cannot be read or is no mapping, and FileNotFoundError where there is none.
    """
    name = str(path)
    try:
        content = read_content(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BudgetError([Problem(name, None, "", f"cannot be read: {error.strerror or error}")]) from error
    if len(content) > MAX_BYTES:
        raise BudgetError([Problem(name, None, "", f"larger than 1 MiB: this is no {what}")])
    value, lines = _parse_yaml(content, name)
    if not isinstance(value, dict):
        raise BudgetError([Problem(name, 1, "", f"a {what} is a mapping: {begin}")])
    return Document(name, value, lines, hashlib.sha256(content).hexdigest())


def validated(model: type[Model], document: Document) -> Model:
    """The document as a model; raises BudgetError with one Problem per fault, in the order of the file."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        problems = {_problem(detail, model, document) for detail in error.errors(include_url=False)}
        raise BudgetError(sorted(problems, key=lambda p: (p.line or 0, p.key))) from None


class _Loader(yaml.SafeLoader):
    """Safe YAML that reads only true and false as booleans and numbers without `_` and base 60.

    `off`, `no` and `12:30` are words here, as in YAML 1.2.
    """


_Loader.yaml_implicit_resolvers = {
    letter: [
        (tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":int", ":float", ":timestamp"))
    ]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)


def _parse_yaml(content: bytes, name: str) -> tuple[Any, dict[Loc, int]]:
    """The document, and the line of each key; raises BudgetError on syntax and on a key given twice."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BudgetError([Problem(name, None, "", f"not UTF-8 at byte {error.start}")]) from None
    lines: dict[Loc, int] = {}
    twice: list[Problem] = []
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _check_aliases(node)
        for loc, line, repeated in _walk(node, ()):
            if repeated:
                twice.append(Problem(name, line, _dotted(loc), "given twice: keep one"))
            lines.setdefault(loc, line)
        if twice:
            raise BudgetError(twice)
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = _REPEATED.sub(r"\1", error.problem or error.context or "not YAML")
        raise BudgetError([Problem(name, mark.line + 1 if mark else None, "", f"not valid YAML: {reason}")]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BudgetError([Problem(name, None, "", f"not valid YAML: {type(error).__name__}")]) from None


def _check_aliases(root: yaml.Node) -> None:
    """Raises MarkedYAMLError where aliases repeat more than MAX_REPEATED values, before anything expands them."""
    met: set[int] = set()
    repeated, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        if id(node) in met:
            repeated += 1 + (0 if isinstance(node, yaml.ScalarNode) else len(node.value))
            if repeated > MAX_REPEATED:
                problem = f"aliases repeat more than {MAX_REPEATED:,} values, write them out"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        met.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend(part for pair in node.value for part in pair)


def _walk(node: yaml.Node, loc: Loc, depth: int = 0) -> Iterator[tuple[Loc, int, bool]]:
    """Each key's location and line, and whether it stood there before."""
    if depth > 32:
        raise yaml.MarkedYAMLError(problem="nested deeper than 32 levels", problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen: set[Hashable] = set()
        for key, value in node.value:
            here = (*loc, str(key.value) if isinstance(key, yaml.ScalarNode) else "?")
            yield here, key.start_mark.line + 1, here in seen
            seen.add(here)
            yield from _walk(value, here, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*loc, index), value.start_mark.line + 1, False
            yield from _walk(value, (*loc, index), depth + 1)


def shown_key(key: str | int) -> str:
    """A key as a message may repeat it: what is no short name may be a line of somebody's text."""
    return str(key) if isinstance(key, int) or _NAME.fullmatch(key) else "(no name)"


def _dotted(loc: Loc) -> str:
    return ".".join(map(shown_key, loc))


def _problem(detail: ErrorDetails, model: type[BaseModel], document: Document) -> Problem:
    lines = document.lines
    loc = _file_loc(tuple(detail["loc"]), lines)
    line = next((lines[loc[:size]] for size in range(len(loc), 0, -1) if loc[:size] in lines), 1)
    return Problem(document.name, line, _dotted(loc), _message(detail, loc, model))


def _file_loc(loc: Loc, lines: dict[Loc, int]) -> Loc:
    """The location as the file spells it: pydantic adds the tag of a union's member, which no file holds."""
    spelled: Loc = ()
    for part in loc:
        if part not in UNION_TAGS or (*spelled, part) in lines:
            spelled = (*spelled, part)
    return spelled


def _message(detail: ErrorDetails, loc: Loc, root: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            known = _known_keys(loc[:-1], root)
            near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
            return f"unknown key; did you mean “{near[0]}”?" if near else f"unknown key; known are {', '.join(known)}"
        case "missing":
            return "missing: add it"
        case "value_error":
            return str(detail["ctx"]["error"])
        case "string_pattern_mismatch" | "string_too_short" | "string_too_long" | "literal_error" if (
            said := _said_of(loc, root)
        ) is not None:
            return said
        case "literal_error" | "enum":
            return f"not known here: choose {detail['ctx']['expected']}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "this is a section: put its keys below it, indented"
        case _:
            text = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
            return f"should be {text}"


def _said_of(loc: Loc, root: type[BaseModel]) -> str | None:
    """What the kind of the field at `loc` asks for."""
    model = _model_at(loc[:-1], root)
    field = _fields(model).get(str(loc[-1])) if model is not None and loc else None
    if field is None:
        return None
    inner = [item for part in get_args(field.annotation) for item in getattr(part, "__metadata__", ())]
    return next((item.asks for item in (*field.metadata, *inner) if isinstance(item, Kind) and item.asks), None)


def _known_keys(loc: Loc, root: type[BaseModel]) -> list[str]:
    """The keys that the model knows at `loc`."""
    model = _model_at(loc, root)
    return list(_fields(model)) if model is not None else []


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The model's fields by the keys that a file spells."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_at(loc: Loc, root: type[BaseModel]) -> type[BaseModel] | None:
    """The model of the mapping at `loc`; None where none is declared. Names and places in a list are passed over."""
    model: type[BaseModel] | None = root
    for part in loc:
        field = _fields(model).get(part) if model is not None and isinstance(part, str) else None
        if field is not None:
            model = _model_in(field.annotation)
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation names, also inside `X | None`, `list[X]` and `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
