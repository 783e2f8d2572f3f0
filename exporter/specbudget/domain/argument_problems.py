"""What is wrong with SGLang's launch arguments: what cannot be read, what the engine refuses, what is a secret.

Source: SGLang 0.5.18 and 0.5.23 server_args.py and arg_groups/, speculative/spec_info.py (`from_string`); argparse.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specbudget.domain.drafter import parse_algorithm
from specbudget.domain.finding import CheckResult
from specbudget.domain.launch_arguments import launch_words
from specbudget.domain.pool_sizing.inputs import read_release
from specbudget.domain.sglang_options import meanings, option_names, takes_value

MOST_FRACTION = 0.97
"""SGLang's own choice of mem_fraction_static stays below this on every device that it knows."""

KEYS = frozenset({"api-key", "admin-api-key", "ssl-keyfile-password"})
"""Options whose value is a secret."""

_AT_LEAST_ONE = frozenset(
    {
        *("tp", "tp-size", "tensor-parallel-size", "pp", "pp-size", "pipeline-parallel-size"),
        *("dp", "dp-size", "data-parallel-size", "attn-dp-size", "attention-data-parallel-size"),
        *("attn-cp-size", "attention-context-parallel-size", "dcp-size", "decode-context-parallel-size"),
        *("page-size", "context-length", "max-running-requests", "max-total-tokens", "max-mamba-cache-size"),
        *("speculative-num-steps", "speculative-num-draft-tokens", "speculative-eagle-topk"),
        *("speculative-dspark-block-size", "speculative-dflash-block-size", "speculative-draft-window-size"),
        *("linear-replayssm-cache-len", "decode-log-interval", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
    }
)
_AT_LEAST_ZERO = frozenset({"speculative-draft-sink-size", "cpu-offload-gb"})
_FROM_MINUS_ONE = frozenset({"chunked-prefill-size"})
"""-1 turns chunks off."""
_REAL = frozenset(
    {
        *("mem-fraction-static", "mamba-full-memory-ratio"),
        *("speculative-accept-threshold-single", "speculative-accept-threshold-acc"),
    }
)
_LEAST = {
    **dict.fromkeys(_AT_LEAST_ONE, 1),
    **dict.fromkeys(_AT_LEAST_ZERO, 0),
    **dict.fromkeys(_FROM_MINUS_ONE, -1),
}
_WITHOUT_KV_HERE = frozenset({"UNO", "FROZEN_KV_MTP"})
"""Algorithms that SGLang knows and whose KV is not known here."""
_DTYPES = frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"})
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """One sentence, and what it makes of the verdict: fail, unknown or warn."""

    result: CheckResult
    message: str


def argument_problems(args: str | Sequence[str], release: str = "") -> tuple[ArgumentProblem, ...]:
    """What is wrong with the arguments of SGLang, the worst first; no secret is repeated.

    `release` decides which options there are; for one that was not read an option may be new, and only a name that
    is nearly a known one is told.
    """
    words = launch_words(args)
    found: list[ArgumentProblem] = []
    last: dict[str, tuple[str, str | None]] = {}
    for index, word in enumerate(words):
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        follows = words[index + 1] if index + 1 < len(words) else None
        given = value if equals else None if follows is None or follows.startswith("--") else follows
        meant = meanings(name, release)
        if len(meant) == 1:
            last[meant[0]] = (name, given)
        else:
            found.extend(_unknown_option(name, meant, release))
    for option, (name, given) in last.items():
        found.extend(_of_option(option, name, given))
    order = (CheckResult.FAIL, CheckResult.UNKNOWN, CheckResult.WARN)
    return tuple(sorted(found, key=lambda problem: order.index(problem.result)))


def keys_in(args: str | Sequence[str], release: str = "") -> tuple[str, ...]:
    """The options in the arguments whose value is a secret, as they are written."""
    names = [word[2:].partition("=")[0] for word in launch_words(args) if word.startswith("--")]
    return tuple(name for name in names if KEYS.intersection(meanings(name, release)[:1]))


def _unknown_option(name: str, meant: Sequence[str], release: str) -> Iterator[ArgumentProblem]:
    engine = f"SGLang {read_release(release) or ''}".strip()
    result = CheckResult.FAIL if read_release(release) else CheckResult.WARN
    if meant:
        several = ", ".join(f"--{option}" for option in meant[:4]) + (", ..." if len(meant) > 4 else "")
        yield ArgumentProblem(result, f"--{name} may mean {several}, and {engine} refuses it: write it in full")
        return
    near = _nearly(name.lower().replace("_", "-"), release)
    if near is not None:
        message = f"--{name} is no option of {engine}, which refuses it: did you mean --{near}?"
        yield ArgumentProblem(result, message)
    elif read_release(release):
        yield ArgumentProblem(result, f"--{name} is no option of {engine}, which refuses it: leave it out")


def _nearly(name: str, release: str) -> str | None:
    """The option that a name nearly spells, or nearly abbreviates."""
    options = sorted(option_names(release))
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.8)
    if near:
        return near[0]
    begins = {option[: len(name) + 1]: option for option in options if len(option) > len(name)}
    short = difflib.get_close_matches(name, begins, n=1, cutoff=0.9)
    return begins[short[0]] if short else None


def _of_option(option: str, name: str, given: str | None) -> Iterator[ArgumentProblem]:
    """Of an option and its last value; `name` is how it is written."""
    if option in KEYS:
        message = f"--{name} is a secret and stands in engine.args: take it out, and name a file in engine.api_key_file"
        yield ArgumentProblem(CheckResult.WARN, message)
    elif option == "config":
        message = f"--{name} {_shown(given)} is not read: put the arguments that it holds into engine.args"
        yield ArgumentProblem(CheckResult.UNKNOWN, message)
    elif given is None:
        if takes_value(option):
            yield ArgumentProblem(CheckResult.FAIL, f"--{name} has no value: give it one, or leave it out")
    elif option == "speculative-algorithm":
        yield from _of_algorithm(f"--{name} {_shown(given)}", given)
    elif option in _LEAST:
        number = _whole(given)
        if number is None or number < _LEAST[option]:
            yield ArgumentProblem(
                CheckResult.UNKNOWN,
                f"--{name} {_shown(given)} is no whole number from {_LEAST[option]}: write the number that is used",
            )
    elif option in _REAL:
        yield from _of_real(f"--{name} {_shown(given)}", given, share=option == "mem-fraction-static")
    elif option == "dtype" and given.lower() not in _DTYPES:
        known = ", ".join(sorted(_DTYPES))
        yield ArgumentProblem(CheckResult.UNKNOWN, f"--{name} {_shown(given)} is not known: write one of {known}")


def _of_algorithm(told: str, word: str) -> Iterator[ArgumentProblem]:
    name = word.strip().upper()
    if parse_algorithm(word) is not None and word == word.strip():
        return
    if word.startswith("$"):
        yield ArgumentProblem(CheckResult.UNKNOWN, f"{told} is a variable: write the word that is used")
    elif name in _WITHOUT_KV_HERE:
        yield ArgumentProblem(CheckResult.UNKNOWN, f"{told} is an algorithm whose KV is not known here")
    elif name == "NONE":
        message = f"{told} turns speculation off: leave it out of engine.args, and the drafter out of the budget"
        yield ArgumentProblem(CheckResult.UNKNOWN, message)
    else:
        known = ("DSPARK", "DFLASH", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")
        near = difflib.get_close_matches(name, known, n=1)
        fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        yield ArgumentProblem(CheckResult.FAIL, f"{told}: SGLang refuses an unknown algorithm; {fix}")


def _of_real(told: str, given: str, *, share: bool) -> Iterator[ArgumentProblem]:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        yield ArgumentProblem(CheckResult.UNKNOWN, f"{told} is no number: write the number that is used")
    elif share:
        if not 0 < number < 1:
            message = f"{told} is a share of the device's memory: choose one above 0 and below 1, like 0.85"
            yield ArgumentProblem(CheckResult.FAIL, message)
        elif number > MOST_FRACTION:
            yield ArgumentProblem(
                CheckResult.WARN,
                f"{told} leaves {1 - number:.1%} of the device's memory for activations and graphs, which is less than "
                "any of SGLang's own choices: lower it",
            )
    elif number < 0:
        yield ArgumentProblem(CheckResult.UNKNOWN, f"{told} is negative: write the number that is used")


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 12 else None


def _shown(value: str | None) -> str:
    """A value as a message shows it: what is empty is seen, what is long is cut."""
    if not value:
        return "''"
    return value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
