"""The command line: reads arguments, wires a command, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from specbudget import __version__
from specbudget.address import DEFAULT_LISTEN
from specbudget.errors import SpecbudgetError

USAGE_ERROR = 2
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
DEFAULT_SCENARIO = "steady"
GENERATED = ("all", "rules", "alertmanager", "dashboards", "runbook")
CHECK_FORMATS = ("text", "json", "markdown", "junit")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Bad input is told in one line per problem, exit 2."""
    parser = _parser()
    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help(sys.stderr)
        return USAGE_ERROR
    try:
        code = _run(args)
        sys.stdout.flush()
        return code
    except SpecbudgetError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _give_up_output()
        return 141
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        _give_up_output()
        print(f"the output cannot be written: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.run(args))
    except SystemExit as ended:
        # how rich ends a program whose reader has left: its exit code would read as a verdict
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        raise


def _give_up_output() -> None:
    """Sends what is still to be printed nowhere, or the interpreter would fail on it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="specbudget",
        description="The two-model budget of speculative decoding, in five lines.",
    )
    parser.add_argument("--version", action="version", version=f"specbudget {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")

    init = commands.add_parser(
        "init",
        help="prints a commented budget, from checkpoints and what runs",
        description="Prints a commented budget that passes `check` as it stands: specbudget init ... > budget.yaml",
    )
    init.add_argument("--target", required=True, type=Path, metavar="DIR", help="the target's checkpoint")
    init.add_argument("--drafter", type=Path, metavar="DIR", help="the drafter's; leave out where the target holds it")
    init.add_argument("--engine", metavar="URL", help="a running engine: arguments, sizes and its last start")
    init.add_argument("--sidecar", metavar="URL", help="a running sidecar: proposes the target from what it measured")
    init.add_argument("--sidecar-ca", type=Path, metavar="FILE", help="trust its certificate by this authority")
    init.add_argument("--sidecar-cert", type=Path, metavar="FILE", help="a client certificate to show to it")
    init.add_argument("--sidecar-key", type=Path, metavar="FILE", help="the key of that certificate")
    init.add_argument(
        "--sidecar-password-file",
        type=Path,
        metavar="FILE",
        help="the password of NAME in https://NAME@HOST:PORT; or set SPECBUDGET_SIDECAR_PASSWORD",
    )
    init.add_argument("--bench", type=Path, metavar="FILE", help="request records or a bench: proposes the target")
    init.add_argument("--service", metavar="NAME", help="default the target's folder name")
    init.add_argument("--engine-version", metavar="VERSION", help="before rollout, such as 0.5.23")
    init.add_argument("--args", metavar="ARGS", help="the engine's launch arguments, in quotes")
    init.add_argument("--gpu-memory", metavar="SIZE", help="of one GPU, such as 80GiB")
    init.add_argument("--free-before-load", metavar="SIZE", help="free on one GPU before any weight is loaded")
    init.add_argument("--request-log", type=Path, metavar="DIR", help="the folder of --export-metrics-to-file-dir")
    init.add_argument("--server-log", type=Path, metavar="FILE", help="the engine's output")
    init.set_defaults(run=_init)

    check = commands.add_parser(
        "check",
        help="the gate before rollout: judges checkpoints, budget and launch arguments",
        description="Judges a plan before rollout, line by line. Exit 0: pass or warn, 1: fail, 3: unknown, "
        "2: wrong usage or an unreadable file.",
    )
    check.add_argument("--budget", required=True, type=Path, metavar="FILE", help="the budget file")
    asked = check.add_mutually_exclusive_group()
    asked.add_argument("--engine", metavar="URL", help="this engine must answer; default engine.url, if it answers")
    asked.add_argument("--no-engine", action="store_true", help="judge the plan alone, whatever runs at engine.url")
    check.add_argument("--lock", type=Path, metavar="FILE", help="the lock; default budget.lock beside the budget")
    check.add_argument("--approve", action="store_true", help="write the lock when the plan passes")
    check.add_argument("--format", choices=CHECK_FORMATS, default=CHECK_FORMATS[0], help="default %(default)s")
    check.add_argument("--strict", action="store_true", help="exit 1 on warnings and 3 on anything unknown")
    check.add_argument("--explain", metavar="ID", help="one rule: its question, source and arithmetic")
    check.add_argument("--verbose", action="store_true", help="text: show every finding in full")
    check.set_defaults(run=_check)

    serve = commands.add_parser("serve", help="exporter and SLO sidecar beside one engine")
    serve.add_argument("--budget", required=True, type=Path, metavar="FILE", help="the budget file")
    serve.add_argument(
        "--listen", default=DEFAULT_LISTEN, type=_address, metavar="HOST:PORT", help=f"default {DEFAULT_LISTEN}"
    )
    serve.add_argument(
        "--state", type=Path, metavar="DIR", help="keep positions, counters and a history here; without it nothing"
    )
    serve.add_argument(
        "--history-size",
        type=_size,
        metavar="SIZE",
        help="of the history that `specbudget review` reads: default 64MiB, the oldest goes first, 0MiB keeps none",
    )
    serve.add_argument(
        "--web-config",
        type=Path,
        metavar="FILE",
        help="TLS, users and rate limit, in the format of the Prometheus exporters; without it all is open",
    )
    serve.set_defaults(run=_serve)

    generate = commands.add_parser(
        "generate",
        help="rules, alerts and the runbook of a budget, as files",
        description="Writes the files that follow from a budget below a folder. It never needs the engine.",
    )
    generate.add_argument("target", choices=GENERATED, metavar="TARGET", help=" | ".join(GENERATED))
    generate.add_argument("--budget", required=True, type=Path, metavar="FILE", help="the budget file")
    generate.add_argument("--out", required=True, type=Path, metavar="DIR", help="files go below this folder")
    generate.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    generate.set_defaults(run=_generate)

    _review_parser(commands.add_parser("review", help="what a stretch of time holds, and why", description=_REVIEW))

    demo = commands.add_parser("demo", help="a stand-in engine and its sidecar, with a live summary")
    _scenario(demo)
    demo.add_argument("--listen", type=_address, metavar="HOST:PORT", help="the sidecar's; default the next free port")
    demo.add_argument("--dir", type=Path, metavar="DIR", help="keep the small deployment here; default a temporary one")
    demo.set_defaults(run=_demo)

    simulate = commands.add_parser("simulate", help="the stand-in engine by itself")
    _scenario(simulate)
    simulate.add_argument("--listen", required=True, type=_address, metavar="HOST:PORT", help="the engine's")
    simulate.add_argument("--dir", required=True, type=Path, metavar="DIR", help="budget, checkpoints and logs go here")
    simulate.set_defaults(run=_simulate)
    return parser


_REVIEW = (
    "Reads a stretch of time from Prometheus, VictoriaMetrics, Mimir or a sidecar's own history, and writes the memory "
    "graph and what happened, in words. Exit 0: written, 2: wrong usage or a source that cannot be read."
)


def _review_parser(review: argparse.ArgumentParser) -> None:
    source = review.add_mutually_exclusive_group(required=True)
    source.add_argument("--prometheus", metavar="URL", help="where /api/v1 begins, such as http://prometheus:9090")
    source.add_argument("--state", type=Path, metavar="DIR", help="the folder of `serve --state`, running or not")
    moments = "RFC 3339, epoch seconds, now or now-6h"
    review.add_argument("--start", required=True, metavar="T", help=moments)
    review.add_argument("--end", default="now", metavar="T", help=f"{moments}; default %(default)s")
    review.add_argument("--service", metavar="S", help="needed where there are several")
    review.add_argument("--out", type=Path, metavar="FILE", help="the report, one HTML file")
    review.add_argument("--json", type=Path, metavar="FILE", help="the findings")
    review.add_argument("--png", type=Path, metavar="FILE", help="the memory graph")
    review.add_argument("--requests", type=Path, metavar="DIR", help="the engine's request log, for single requests")
    review.add_argument("--log", type=Path, nargs="+", default=[], metavar="PATH", help="engine logs, gzipped or not")
    review.add_argument("--log-timezone", metavar="ZONE", help="of these logs, such as UTC; default this machine's")
    client = review.add_argument_group("reaching the storage", "secrets stand in files, never on the command line")
    client.add_argument(
        "--http.config.file", dest="client_file", type=Path, metavar="FILE", help="as promtool takes it"
    )
    client.add_argument("--id", dest="tenant", metavar="TENANT", help="sent as X-Scope-OrgID")
    client.add_argument("--user", metavar="NAME", help="for basic authentication")
    client.add_argument("--password-file", type=Path, metavar="FILE")
    client.add_argument("--bearer-token-file", type=Path, metavar="FILE")
    client.add_argument("--tls-ca-path", dest="tls_ca", type=Path, metavar="FILE", help="trust these authorities")
    client.add_argument("--tls-cert-path", dest="tls_cert", type=Path, metavar="FILE", help="show this certificate")
    client.add_argument("--tls-key-path", dest="tls_key", type=Path, metavar="FILE", help="its key")
    review.set_defaults(run=_review)


def _scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", default=DEFAULT_SCENARIO, metavar="NAME", help=f"default {DEFAULT_SCENARIO}")
    parser.add_argument("--seed", default=0, type=int, metavar="N", help="of the traffic and the draws, default 0")
    parser.add_argument("--speed", default=1.0, type=float, metavar="X", help="divides the scenario's delays")


def _address(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: write HOST:PORT, like 127.0.0.1:9877")
    return host, int(port)


def _size(text: str) -> int:
    from specbudget.budget.units import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _init(args: argparse.Namespace) -> int:
    from specbudget.check.init.command import InitOptions, run_init

    names = InitOptions.__dataclass_fields__
    return run_init(InitOptions(**{name: getattr(args, name) for name in names}))


def _check(args: argparse.Namespace) -> int:
    from specbudget.check.command import run_check

    return run_check(
        args.budget,
        engine_url=args.engine,
        asks_engine=not args.no_engine,
        lock=args.lock,
        approving=args.approve,
        form=args.format,
        strict=args.strict,
        explained=args.explain,
        verbose=args.verbose,
    )


def _serve(args: argparse.Namespace) -> int:
    from specbudget.serve.command import run_serve

    host, port = args.listen
    history = {} if args.history_size is None else {"history_bytes": args.history_size}
    return run_serve(args.budget, host, port, args.state, args.web_config, **history)


def _generate(args: argparse.Namespace) -> int:
    from specbudget.generate.command import run_generate

    return run_generate(args.target, args.budget, args.out, check=args.check)


def _review(args: argparse.Namespace) -> int:
    from specbudget.review.command import ReviewOptions, run_review

    names = ReviewOptions.__dataclass_fields__
    return run_review(ReviewOptions(**{name: getattr(args, name) for name in names} | {"log": tuple(args.log)}))


def _demo(args: argparse.Namespace) -> int:
    from specbudget.demo.command import run_demo

    return run_demo(scenario=args.scenario, listen=args.listen, folder=args.dir, seed=args.seed, speed=args.speed)


def _simulate(args: argparse.Namespace) -> int:
    from specbudget.simulate.engine import run

    host, port = args.listen
    return run(args.scenario, f"{host}:{port}", args.dir, seed=args.seed, speed=args.speed)
