"""The co-design line: every rule of the pair, what was approved, and statements that contradict each other."""

from __future__ import annotations

from collections.abc import Callable

from specbudget.catalog.lines import CODESIGN
from specbudget.check.plan import Plan
from specbudget.check.rules.roles import roles
from specbudget.check.rules.rule import GateRule
from specbudget.domain.argument_problems import ArgumentProblem, argument_problems
from specbudget.domain.codesign import judge
from specbudget.domain.drafter import DraftAlgorithm, parse_algorithm
from specbudget.domain.finding import CheckResult, Finding, Outcome, RuleText, fails, passes, unknown, warns
from specbudget.domain.launch_arguments import launch_arguments, spelled_out
from specbudget.domain.pair_change import PairChange, pair_change
from specbudget.pair.facts import lone_facts
from specbudget.pair.nested_drafter import is_nested

_GIB = 1 << 30


def pair_findings(plan: Plan) -> tuple[Finding, ...]:
    """What the rules on the pair say; of a target without a second model those that hold for it alone."""
    return judge(lone_facts(plan.target, engine=plan.setup) if plan.pair is None else plan.pair)


def change_since_approval(plan: Plan) -> PairChange | None:
    """The pair against the one in the lock; None without a lock."""
    if plan.lock is None:
        return None
    lock, holder = plan.lock.lock, plan.drafter_holder
    return pair_change(
        target_before=lock.target_fingerprints,
        drafter_before=lock.drafter_fingerprints,
        target=None if plan.target is None else plan.target.fingerprints,
        drafter=None if holder is None else holder.fingerprints,
    )


def _approved(plan: Plan) -> Outcome | None:
    if not plan.has_drafter:
        return None
    change = change_since_approval(plan)
    if plan.lock is None or change is None:
        return unknown(
            "no budget.lock: nobody approved this pair; once it passes, write one with --approve", required=False
        )
    if change.plan is not None:
        return warns(change.sentence(), value=change.plan)
    if not change.is_known:
        return unknown(change.sentence())
    before, now = plan.lock.lock.engine.version, plan.facts.version
    if before is not None and now is not None and before != now:
        return warns(
            f"approved on engine {before}, planned on {now}: measure acceptance on the new release and approve again",
            value=now,
            limit=before,
        )
    return passes(f"the pair that was approved on {plan.lock.lock.approved_at}")


def _contradictions(plan: Plan) -> Outcome | None:
    """Two places that state the same fact differently; what is named last of each stands."""
    budget, launch, running = plan.budget, plan.launch, plan.running
    free, total = budget.engine.free_before_load, budget.engine.gpu_memory
    if free is not None and total is not None and free - free.rounding > total:
        return fails(
            f"engine.free_before_load is {free / _GIB:.2f} GiB, more than the {total / _GIB:.2f} GiB of "
            "engine.gpu_memory: correct one of them; both are of one device",
            value=free,
            limit=total,
        )
    told = []
    for what, key, parallel in (
        ("tensor", "--tp", (running.tensor_parallel, launch.tensor_parallel, budget.parallelism.tensor)),
        ("pipeline", "--pp", (running.pipeline_parallel, launch.pipeline_parallel, budget.parallelism.pipeline)),
        ("data", "--dp", (running.data_parallel, launch.data_parallel, budget.parallelism.data)),
    ):
        engine, args, stated = parallel
        if engine is not None and args is not None and engine != args:
            told.append(f"engine.args {key} is {args}, the running engine says {engine}")
        elif (first := engine or args) is not None and first != stated and what in budget.parallelism.model_fields_set:
            source = "the running engine" if engine else f"engine.args {key}"
            told.append(f"parallelism.{what} is {stated}, {source} says {first}")
    stated_algorithm = budget.drafter.algorithm
    for source, word in (("the running engine", running.algorithm), ("engine.args", launch.algorithm)):
        algorithm = parse_algorithm(word)
        if algorithm is not None and stated_algorithm is not None and not _same(algorithm, stated_algorithm):
            told.append(f"drafter.algorithm is {stated_algorithm}, {source} says {algorithm}")
            break
    launched, runs = parse_algorithm(launch.algorithm), parse_algorithm(running.algorithm)
    if launched is not None and runs is not None and not _same(launched, runs):
        told.append(f"engine.args --speculative-algorithm is {launched}, the running engine says {runs}")
    told += _other_models(plan)
    version = budget.engine.version
    if version is not None and running.version is not None and version != running.version:
        told.append(f"engine.version is {version}, the running engine says {running.version}")
    if told:
        return warns(f"{'; '.join(told)}: an engine's word counts before the budget's; state it once")
    return passes("budget, launch arguments and engine agree")


def _other_models(plan: Plan) -> list[str]:
    """Checkpoints that the engine names and the budget does not: by the last part of their paths."""
    told = []
    for key, stated, launched, runs in (
        ("target.path", plan.budget.target.path, plan.launch.target_path, plan.running.target_path),
        ("drafter.path", plan.budget.drafter.path, plan.launch.drafter_path, plan.running.drafter_path),
    ):
        for source, path in (("the running engine", runs), ("engine.args", launched)):
            # a drafter within the target's checkpoint is named by the target's path
            inside = key == "drafter.path" and path in (plan.launch.target_path, plan.running.target_path)
            if path is not None and stated is not None and not inside and _last(path) != _last(stated):
                told.append(f"{key} is {stated}, {source} says {path}, and what is judged here is the former")
                break
    return told


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].lower()


def _silent_on_speculation(plan: Plan) -> tuple[ArgumentProblem, ...]:
    """Arguments that start no drafter, although the rest of the budget plans with one."""
    engine, running = plan.budget.engine, plan.running
    if engine.args is None or not plan.has_drafter or running.speculates or plan.launch.algorithm is not None:
        return ()
    if "config" in launch_arguments(spelled_out(engine.args, engine.version or "")):
        return ()
    word = "the algorithm" if plan.algorithm is None else plan.algorithm.upper()
    message = f"no --speculative-algorithm, without which SGLang starts no drafter: add --speculative-algorithm {word}"
    return (ArgumentProblem(CheckResult.WARN, message),)


def _silent_on_drafter(plan: Plan) -> tuple[ArgumentProblem, ...]:
    """Arguments that name the target and no drafter, although the budget has one in a folder of its own.

    Arguments that name neither model are a part of a command line, whose paths stand elsewhere.
    """
    engine, launch, path = plan.budget.engine, plan.launch, plan.budget.drafter.path
    planned = launch.algorithm is not None and plan.has_drafter and not plan.running.speculates
    if engine.args is None or path is None or not planned or launch.drafter_path is not None:
        return ()
    given = launch_arguments(spelled_out(engine.args, engine.version or ""))
    if launch.target_path is None or "config" in given or is_nested(plan.budget.target.path, path):
        return ()
    layers = plan.target is not None and plan.pair is not None and plan.pair.target.nextn_layers
    own = plan.algorithm in (DraftAlgorithm.EAGLE, DraftAlgorithm.MTP) and layers
    comes = "drafts with the prediction layers of the target instead" if own else "does not start, or takes another"
    message = (
        f"no --speculative-draft-model-path, without which SGLang {comes}: add --speculative-draft-model-path {path}, "
        "as the engine sees that folder"
    )
    return (ArgumentProblem(CheckResult.WARN, message),)


def _arguments(plan: Plan) -> Outcome | None:
    """What of SGLang's arguments cannot be read, or is refused; a running engine's own word fills what is not known."""
    engine = plan.budget.engine
    if engine.args is None or engine.kind != "sglang":
        return None
    problems = (
        *argument_problems(engine.args, plan.facts.version or ""),
        *_silent_on_speculation(plan),
        *_silent_on_drafter(plan),
    )
    if not problems:
        return passes("every argument can be read")
    message = "; ".join(problem.message for problem in problems)
    worst = problems[0].result
    required = plan.engine is None if worst is CheckResult.UNKNOWN else None
    return Outcome(result=worst, message=message, value=len(problems), required=required)


def _same(one: str, other: str) -> bool:
    """EAGLE is the engine's word for MTP too."""
    return one == other or {one, other} == {"eagle", "mtp"}


def _rule(what: str, asks: str, check: Callable[[Plan], Outcome | None], source: str) -> GateRule:
    return GateRule(text=RuleText(id=f"{CODESIGN.id}.{what}", asks=asks, source=source), check=check)


RULES = (
    _rule(
        "roles",
        "Is the target the target and the drafter the drafter?",
        roles,
        "architectures and draft keys of both config.json, parameters of both checkpoints",
    ),
    _rule("approved", "Is this the pair that was approved?", _approved, "budget.lock: fingerprints and engine release"),
    _rule(
        "arguments",
        "Can the launch arguments be read?",
        _arguments,
        "SGLang 0.5.18 and 0.5.23 server_args.py and arg_groups/; speculative/spec_info.py (from_string)",
    ),
    _rule(
        "agreement",
        "Do budget, launch arguments and engine agree?",
        _contradictions,
        "the running engine's word comes first, then engine.args, then the other keys of the budget",
    ),
)
