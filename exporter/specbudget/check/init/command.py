"""`specbudget init`: reads what is at hand, proposes a budget, and judges it before it is printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from specbudget.budget.model import Budget
from specbudget.check.gather import gather_for
from specbudget.check.init.proposal import propose
from specbudget.check.init.sidecar import read_sidecar
from specbudget.check.init.sidecar_http import SidecarAccess
from specbudget.check.init.text import Given, budget_text
from specbudget.check.plan import Plan
from specbudget.check.progress import Progress
from specbudget.check.reference import read_reference
from specbudget.check.report import Report, judge_plan
from specbudget.check.rules.roles import are_swapped
from specbudget.domain.argument_problems import keys_in
from specbudget.domain.finding import CheckResult
from specbudget.errors import SpecbudgetError

DEFAULT_URL = "http://127.0.0.1:30000"


class CannotPropose(SpecbudgetError):
    """There is nothing to propose a budget from, or an argument cannot stand in a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """What the command line says. Sizes are text with a unit, as in the budget file."""

    target: Path
    drafter: Path | None = None
    engine: str | None = None
    sidecar: str | None = None
    sidecar_ca: Path | None = None
    sidecar_cert: Path | None = None
    sidecar_key: Path | None = None
    sidecar_password_file: Path | None = None
    bench: Path | None = None
    service: str | None = None
    engine_version: str | None = None
    args: str | None = None
    gpu_memory: str | None = None
    free_before_load: str | None = None
    request_log: Path | None = None
    server_log: Path | None = None


def run_init(options: InitOptions) -> int:
    """Prints a budget and returns 0; what the gate says of it stands on standard error.

    Raises CannotPropose for a target that is no checkpoint, EngineSilent and SidecarSilent for ones that were named
    and do not answer, BudgetError for a bench file that cannot be read.
    """
    _refuse_keys(options)
    access = _sidecar_access(options)
    service, measured = (None, None) if access is None else read_sidecar(access)
    with Progress() as progress:
        bare = _bare_budget(options, service)
        file = Path("budget.yaml").absolute()
        plan = gather_for(bare, file, engine_url=options.engine, working=progress.working)
        _require_target(options, plan)
        swapped = are_swapped(plan)
        if swapped is not None:
            raise CannotPropose(swapped.replace("target.path and drafter.path", "--target and --drafter"))
        if options.bench is not None:
            measured = read_reference(options.bench, bare, served_model=plan.facts.served_model)
        text, report = _proposed(options, replace(plan, reference=measured))
    sys.stdout.write(text)
    _tell(report)
    _tell_what_hangs_on_the_engine(options)
    return 0


def _sidecar_access(options: InitOptions) -> SidecarAccess | None:
    """How the sidecar is reached; None without one. Raises CannotPropose for ways to none."""
    if options.sidecar is None:
        for option in ("ca", "cert", "key", "password_file"):
            if getattr(options, f"sidecar_{option}") is not None:
                raise CannotPropose(f"--sidecar-{option.replace('_', '-')}: of which sidecar? give --sidecar URL too")
        return None
    return SidecarAccess(
        url=options.sidecar,
        ca=options.sidecar_ca,
        cert=options.sidecar_cert,
        key=options.sidecar_key,
        password_file=options.sidecar_password_file,
    )


def _refuse_keys(options: InitOptions) -> None:
    """A budget is shown and committed: no secret is written into one."""
    keys = keys_in(options.args or "", options.engine_version or "")
    if keys:
        raise CannotPropose(
            f"--args: --{keys[0]} is a secret, which no budget may hold: leave it out, "
            "and name a file that holds the engine's key in engine.api_key_file"
        )


def _bare_budget(options: InitOptions, service: str | None) -> Budget:
    """A budget without limits, for reading what there is."""
    engine = {
        "url": options.engine or DEFAULT_URL,
        "version": options.engine_version,
        "args": options.args,
        "gpu_memory": options.gpu_memory,
        "free_before_load": options.free_before_load,
        "server_log": None if options.server_log is None else str(options.server_log.absolute()),
    }
    models = {"target": options.target, "drafter": options.drafter}
    return _validated(
        {
            "service": options.service or service or _service_name(options.target),
            "engine": {key: value for key, value in engine.items() if value is not None},
            **{name: {"path": str(path.absolute())} for name, path in models.items() if path is not None},
        }
    )


def _validated(values: dict[str, Any]) -> Budget:
    try:
        return Budget.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = str(first["loc"][-1])
        option = {"url": "engine", "version": "engine-version", "path": "target"}.get(key, key.replace("_", "-"))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise CannotPropose(f"--{option}: {message}") from None


def _service_name(target: Path) -> str:
    """The target's folder name, as far as a service may be named so."""
    name = re.sub(r"[^a-z0-9._-]+", "-", target.absolute().name.lower()).strip("-._")
    return name[:100] or "service"


def _require_target(options: InitOptions, plan: Plan) -> None:
    if plan.target is None or plan.target.checkpoint.facts is None:
        problems = [] if plan.target is None else [str(problem) for problem in plan.target.checkpoint.problems]
        raise CannotPropose(f"--target {options.target}: {'; '.join(problems) or 'is no checkpoint'}")


def _proposed(options: InitOptions, plan: Plan) -> tuple[str, Report]:
    """The text and the gate's word on it; a line that would not pass as proposed is left out of force."""
    proposal = propose(plan)
    given = Given(
        service=plan.budget.service,
        url=plan.budget.engine.url,
        version=plan.facts.version,
        target=options.target.absolute(),
        drafter=None if options.drafter is None else options.drafter.absolute(),
        algorithm=plan.algorithm,
        tensor_parallel=plan.tensor_parallel,
        reference=None if options.bench is None else options.bench.absolute(),
        server_log=None if options.server_log is None else options.server_log.absolute(),
        request_log=None if options.request_log is None else options.request_log.absolute(),
        gpu_memory=options.gpu_memory,
        free_before_load=options.free_before_load,
        arguments=options.args,
    )

    def judged(left_out: Collection[str]) -> tuple[str, Report]:
        text = budget_text(given, proposal, left_out=left_out)
        return text, judge_plan(replace(plan, budget=_validated(yaml.safe_load(text))))

    text, report = judged(())
    failing = {
        line.line.id
        for line in report.lines
        if line.budgeted and line.verdict in (CheckResult.FAIL, CheckResult.UNKNOWN) and line.line.id != "codesign"
    }
    return judged(failing) if failing else (text, report)


def _tell_what_hangs_on_the_engine(options: InitOptions) -> None:
    """A budget that was judged with the engine's answers is to pass without them too."""
    missing = [
        option
        for option, value in (
            ("--gpu-memory", options.gpu_memory or options.free_before_load or options.server_log),
            ("--server-log", options.server_log),
        )
        if value is None
    ]
    if options.engine is not None and missing:
        print(
            f"  judged with the answers of {options.engine}: give {' and '.join(missing)} too, so that the gate knows "
            "the pool and the last start while no engine answers",
            file=sys.stderr,
        )


def _tell(report: Report) -> None:
    """What a person should know of the budget that was just printed."""
    out = [line.line.id for line in report.lines if not line.budgeted and line.line.id != "codesign"]
    print(f"specbudget init: the gate says {report.verdict} of this budget", file=sys.stderr)
    if out:
        print(f"  not in force, for too little is known: {', '.join(out)}; see the comments", file=sys.stderr)
    for finding in report.counted:
        if finding.result in (CheckResult.FAIL, CheckResult.WARN):
            print(f"  {finding.id}: {finding.message}", file=sys.stderr)
