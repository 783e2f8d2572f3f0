"""The launch arguments of a budget with and without the drafter. A secret among them is never shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from specbudget.budget.model import Budget
from specbudget.catalog.engine_words import ENGINES, EngineWords
from specbudget.domain.launch_arguments import launch_words, spelled_out
from specbudget.domain.sglang_options import option_names, takes_value

HIDDEN = "…"
"""In place of a secret."""

_SECRET_ENDS = frozenset({"key", "keys", "token", "secret", "password", "passwd", "passphrase", "credential", "auth"})
_SECRET_NAMES = frozenset({"watermark-config"})
_IN_JSON = re.compile(r'("[\w.-]*(?:key|token|secret|passw\w*|credential)s?"\s*:\s*)"[^"]*"', re.I)
_IN_ADDRESS = re.compile(r"(\w+://)[^/@\s]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option with the words that belong to it. `name` is without dashes, "" for words before the first option."""

    name: str
    words: tuple[str, ...]

    def shown(self) -> str:
        """As a shell takes it, values of secrets hidden."""
        head, *values = self.words
        if _is_secret(self.name):
            head = head.partition("=")[0] + (f"={HIDDEN}" if "=" in head else "")
            return " ".join((head, *(HIDDEN for _ in values)))
        return " ".join(_quoted(_without_secrets(word)) for word in self.words)


def options(args: str | list[str], kind: str, version: str | None) -> tuple[Option, ...]:
    """The options of launch arguments in their order; SGLang's abbreviations in full where they mean one thing."""
    words = spelled_out(args, version or "") if kind == "sglang" else launch_words(args)
    return tuple(_options(words, kind))


def _options(words: list[str], kind: str) -> Iterator[Option]:
    name, held = "", list[str]()
    for word in words:
        begins = re.match(r"--?[A-Za-z]", word) is not None
        # what follows a switch belongs to nothing
        if held and (begins or (kind == "sglang" and _is_switch(name))):
            yield Option(name=name, words=tuple(held))
            name, held = "", []
        if begins:
            name = word.lstrip("-").partition("=")[0].replace("_", "-")
        held.append(word)
    if held:
        yield Option(name=name, words=tuple(held))


def _is_switch(name: str) -> bool:
    return name in option_names("") and not takes_value(name)


def of_drafter(option: Option, words: EngineWords) -> bool:
    """Whether an option has no sense without a drafter."""
    name = option.name.partition(".")[0]
    return name.startswith(words.draft_prefixes) or name in words.draft_flags


def drafter_options(budget: Budget) -> tuple[str, ...] | None:
    """What has to leave the launch arguments, as it stands there; None where the budget has no arguments."""
    engine = budget.engine
    if engine.args is None:
        return None
    words = ENGINES[engine.kind]
    return tuple(o.shown() for o in options(engine.args, engine.kind, engine.version) if of_drafter(o, words))


def launch(budget: Budget, *, drafter: bool) -> str | None:
    """The whole launch, with or without the drafter; None where the budget has no arguments."""
    engine = budget.engine
    if engine.args is None or (isinstance(engine.args, str) and engine.args.lstrip().startswith("{")):
        return None
    words = ENGINES[engine.kind]
    given = options(engine.args, engine.kind, engine.version)
    parts = [o.shown() for o in given if o.words and (drafter or not of_drafter(o, words))]
    model = budget.target.path
    names = {o.name for o in given}
    if model is not None and not names & {"model-path", "model"} and not any(model in o.words for o in given):
        parts.insert(0, " ".join(part for part in (words.model_flag, _quoted(model)) if part))
    return " \\\n  ".join((words.launch, *parts))


def _is_secret(name: str) -> bool:
    return name in _SECRET_NAMES or name.rpartition("-")[2].lower() in _SECRET_ENDS


def _without_secrets(word: str) -> str:
    return _IN_ADDRESS.sub(rf"\1{HIDDEN}@", _IN_JSON.sub(rf'\1"{HIDDEN}"', word))


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./…-]+", word) else shlex.quote(word)
