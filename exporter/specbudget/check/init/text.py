"""The text of a proposed budget: every key with its reason, what is not known as a comment to fill in."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from specbudget.check.init.proposal import DEFAULT_TOKENS, OBJECTIVE, ROOM, Proposal

_GIB, _MIB = 1 << 30, 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line and the engine say, as it stands in the file."""

    service: str
    url: str
    version: str | None
    target: Path
    drafter: Path | None
    algorithm: str | None
    tensor_parallel: int
    reference: Path | None
    server_log: Path | None
    request_log: Path | None
    gpu_memory: str | None
    free_before_load: str | None
    arguments: str | None


def budget_text(given: Given, proposal: Proposal, *, left_out: Collection[str] = ()) -> str:
    """The file. Lines in `left_out` are written as comments, to be put in force once more is known."""
    parts = [_head(given, proposal)]
    for line, text in (
        ("artifacts", _artifacts(given, proposal)),
        ("kv", _kv(given, proposal)),
        ("acceptance", _acceptance(given, proposal)),
        ("staging", _staging(given, proposal)),
    ):
        parts.append(_commented(text) if line in left_out else text)
    text = "".join(parts)
    in_force = any(line.strip() and not line.lstrip().startswith("#") for line in "".join(parts[1:]).splitlines())
    # a section without a key in force would be no section
    return text if in_force else text.replace("\nbudget:\n", "\n# budget:\n")


def _head(given: Given, proposal: Proposal) -> str:
    arguments = given.arguments or shlex.join(proposal.arguments)
    lines = [
        f"service: {_quoted(given.service)}   # the label on every series, alert and page",
        "engine:",
        "  kind: sglang",
        f"  url: {_quoted(given.url)}",
        _known("  version", given.version, "0.5.23", "before rollout; a running engine's own word wins"),
        _known("  args", arguments or None, "--tp 4 --speculative-algorithm DSPARK --mem-fraction-static 0.85",
               "the launch arguments, so that the gate can judge them"),
        _known("  gpu_memory", given.gpu_memory, "80GiB", "of one GPU: the KV pool is predicted from it, roughly",
               quoted=False),
        _known("  free_before_load", given.free_before_load, "78.6GiB",
               "`avail mem` of the engine's first `Load weight begin`: as exact as the prediction gets", quoted=False),
        _known("  request_log", _text(given.request_log), "/var/log/engine/requests",
               "the folder of --export-metrics-to-file-dir: without it no request is counted"),
        _known("  server_log", _text(given.server_log), "/var/log/engine/server.log",
               "the engine's output: start-up stages and batch reports"),
        f"target:  {{path: {_quoted(str(given.target))}}}",
        _drafter(given),
        f"parallelism: {{tensor: {given.tensor_parallel}}}",
        "budget:",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _drafter(given: Given) -> str:
    algorithm = "" if given.algorithm is None else f"algorithm: {given.algorithm}"
    if given.drafter is None:
        if not algorithm:
            return "# drafter: {path: /models/drafter, algorithm: dspark}"
        return f"drafter: {{{algorithm}}}   # part of the target's checkpoint"
    path = f"path: {_quoted(str(given.drafter))}"
    return f"drafter: {{{', '.join(part for part in (path, algorithm) if part)}}}"


def _known(key: str, value: str | None, example: str, why: str, *, quoted: bool = True) -> str:
    """The key with its value, else as a comment with an example."""
    if value is None:
        return f"  # {key.strip()}: {example}   # {why}"
    return f"{key}: {_quoted(value) if quoted else value}   # {why}"


def _artifacts(given: Given, proposal: Proposal) -> str:
    sizes = [("target", proposal.target_disk), ("drafter", proposal.drafter_disk)]
    told = [f"    {name}: {_size(size)}   # {_exact(size)} now" for name, size in sizes if size is not None]
    total = sum(size for _, size in sizes if size is not None)
    if not told:
        return ""
    return "\n".join(["  artifacts:   # loadable bytes on disk", *told, f"    total: {_size(total)}", ""])


def _kv(given: Given, proposal: Proposal) -> str:
    lines = [
        "  kv:   # per GPU",
        "    high_water: 0.90   # above it requests queue and are retracted",
        f"    concurrency: {proposal.concurrency}   # running requests per data-parallel rank",
        f"    tokens_per_request: {proposal.tokens_per_request}   # {_per_request(proposal)}",
    ]
    for key, size, why in (
        ("target", proposal.target_pool, ""),
        ("drafter", proposal.drafter_pool, ", a row for each row of the target's"),
    ):
        if size is not None:
            lines.append(f"    {key}: {_size(size)}   # the {key}'s pool has {_exact(size)}{why}")
    if proposal.min_target_tokens is None:
        lines.append("    # min_target_tokens: 400000   # tokens that the target's pool must hold")
    else:
        why = "tokens that the target's pool must hold, with room to what is predicted"
        lines.append(f"    min_target_tokens: {proposal.min_target_tokens}   # {why}")
    return "\n".join([*lines, ""])


def _per_request(proposal: Proposal) -> str:
    """Nobody said how long requests are: the number is a placeholder, or what the pool leaves for each."""
    what = "a guess: write the prompt and output of your planned percentile"
    if proposal.tokens_per_request == DEFAULT_TOKENS:
        return what
    return f"{what}; {DEFAULT_TOKENS} for each of {proposal.concurrency} do not fit into the predicted pool, this does"


def _acceptance(given: Given, proposal: Proposal) -> str:
    lines = ["  acceptance:"]
    if proposal.target_length is None:
        why = proposal.measured or "what nearly every request must reach: measure first, see --bench and --sidecar"
        lines += [f"    # target_length: 2.6   # {why}"]
    else:
        lines.append(f"    target_length: {proposal.target_length:g}   # {proposal.measured}")
    lines += [
        f"    objective: {OBJECTIVE}   # share of requests that must reach it",
        "    window: 28d",
        "    sli: request",
    ]
    if given.reference is not None:
        lines.append(f"    reference: {_quoted(str(given.reference))}   # what was measured, for the gate")
    lines.append("    # break_even: [{running: 1, length: 2.1}, {running: 64, length: 3.4}]   # from an A/B, by batch")
    return "\n".join([*lines, ""])


def _staging(given: Given, proposal: Proposal) -> str:
    lines = ["  staging:"]
    if proposal.cold_start is None:
        lines.append("    # cold_start: 90s   # from process start to the first generation")
    else:
        limit = max(1, math.ceil(proposal.cold_start * ROOM))
        lines.append(f"    cold_start: {limit}s   # the last start took {proposal.cold_start:.1f} s")
    mode = "prefetch" if proposal.prefetches else "serial"
    why = "prefetch needs --weight-loader-prefetch-checkpoints; overlap is refused with a drafter"
    lines += [
        f"    mode: {mode}   # {why}",
        "    order: [target, drafter]",
        "    warmup: required",
        "    # storage_bandwidth: 2GiB/s   # what the storage gives: the gate then estimates a cold start",
        "    # probe_budget: 300s   # failureThreshold x periodSeconds of the start-up probe",
    ]
    return "\n".join([*lines, ""])


def _commented(text: str) -> str:
    return "".join(f"  # {line.removeprefix('  ')}\n" for line in text.splitlines())


def _size(size: int) -> str:
    """A round limit with room above a size."""
    wanted = size * ROOM
    return f"{math.ceil(wanted / _GIB)}GiB" if wanted >= _GIB else f"{max(1, math.ceil(wanted / _MIB))}MiB"


def _exact(size: int) -> str:
    return f"{size / _GIB:.2f} GiB" if size >= _GIB else f"{size / _MIB:.1f} MiB"


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _quoted(text: str) -> str:
    """A YAML scalar that is this text whatever is in it."""
    plain = text.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum() and not plain.isdigit() and text[0] not in "-.":
        return text
    return json.dumps(text, ensure_ascii=False)
