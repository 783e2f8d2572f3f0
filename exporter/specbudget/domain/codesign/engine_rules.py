"""Whether the engine can run this pair the way it is set up."""

from __future__ import annotations

from specbudget.domain.codesign.architectures import IN_BOTH, KIMI_DELTA_ATTENTION, ONLY_IN_LAST
from specbudget.domain.codesign.facts import FIRST_READ, LAST_READ, PairFacts
from specbudget.domain.codesign.rule import EAGLE_WORDS, SGLANG, Rule
from specbudget.domain.drafter import DraftAlgorithm, block_draft_tokens
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_GEMMA_ASSISTANTS = frozenset({"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"})


def _version_text(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _alike(one: DraftAlgorithm | None, other: DraftAlgorithm | None) -> bool:
    """Whether two words mean the same: SGLang says EAGLE for MTP."""
    return one is other or {one, other} <= EAGLE_WORDS


def _algorithm(facts: PairFacts) -> Outcome:
    running, stated = facts.engine.algorithm or facts.budgeted, facts.drafter.stated_algorithm
    if facts.algorithm is None and not facts.second_model:
        return passes("no speculation")
    if facts.algorithm is None:
        return unknown("no algorithm is known: set --speculative-algorithm or drafter.algorithm in the budget")
    if (misfit := _other_family(facts, running or facts.algorithm, stated)) is not None:
        return misfit
    if None not in (running, facts.budgeted) and not _alike(running, facts.budgeted):
        return warns(
            f"the engine runs {running} and drafter.algorithm in the budget is {facts.budgeted}; correct one of them",
            value=running,
            limit=facts.budgeted,
        )
    if facts.drafter.architecture in _GEMMA_ASSISTANTS and running is DraftAlgorithm.EAGLE3:
        return fails(f"{facts.drafter.architecture} runs as NEXTN or EAGLE only: SGLang refuses EAGLE3", value=running)
    if running is None or stated is None or _alike(running, stated):
        return passes(f"{facts.algorithm}", value=facts.algorithm)
    if DraftAlgorithm.EAGLE3 in (running, stated) and not facts.engine.running and not facts.drafter.bundled:
        return fails(
            f"the engine is to run {running} and the drafter's config is of {stated}: an EAGLE-3 head reads several "
            "layers of the target and no other class does, so that the shapes do not meet; "
            f"start with --speculative-algorithm {stated.upper()} or give a drafter of {running}",
            value=running,
            limit=stated,
        )
    return warns(
        f"the engine runs {running} and the drafter's config is of {stated}; "
        f"start with --speculative-algorithm {stated.upper()} or give a drafter of {running}",
        value=running,
        limit=stated,
    )


def _other_family(facts: PairFacts, running: DraftAlgorithm, stated: DraftAlgorithm | None) -> Outcome | None:
    """A block drafter run as a chain head, or the reverse; None where it is neither."""
    drafter = facts.drafter
    if stated is None or facts.engine.running or drafter.bundled or running.is_block is stated.is_block:
        return None
    if stated.is_block:
        reason = "a block drafter has no head for drafting token by token, and nothing to take the target's by"
    elif stated.is_chain and running.is_block:
        reason = "a chain head has neither the block nor the projection of the target's layers that it takes"
    else:
        return None
    return fails(
        f"the engine is to run {running} and the drafter's config is of {stated}: {reason}; start with "
        f"--speculative-algorithm {stated.upper()} or give a drafter of {running}",
        value=running,
        limit=stated,
    )


def _architecture(facts: PairFacts) -> Outcome:
    names = [n for n in (facts.target.architecture, facts.drafter.architecture) if n is not None]
    release = facts.engine.release
    if facts.engine.kind not in (None, "sglang") or release is None:
        return unknown("needs the version of an SGLang engine: set engine.version", required=False)
    if release < FIRST_READ or FIRST_READ < release < LAST_READ:
        return unknown(f"the classes of SGLang {_version_text(release)} are not known here", required=False)
    for name in names:
        if name in ONLY_IN_LAST and release == FIRST_READ:
            return fails(
                f"SGLang {_version_text(release)} has no class {name}, {_version_text(LAST_READ)} has; upgrade it",
                value=name,
            )
    strange = [name for name in names if name not in IN_BOTH and name not in ONLY_IN_LAST]
    if strange:
        return unknown(
            f"{', '.join(strange)}: not among the classes of SGLang {_version_text(LAST_READ)}; it may still load "
            "through a fallback",
            required=False,
        )
    if len(names) < 2:
        return unknown("an architecture is not recorded in config.json", required=False)
    return passes(f"SGLang {_version_text(release)} has {' and '.join(dict.fromkeys(names))}")


def _verify_window(facts: PairFacts) -> int | None:
    """Draft tokens per verify step, the anchor included: what sizes the replay ring."""
    engine, block = facts.engine, facts.drafter.block_size
    if engine.num_draft_tokens is not None:
        return engine.num_draft_tokens
    if facts.algorithm is not None and facts.algorithm.is_block:
        return block_draft_tokens(facts.algorithm, block)
    if engine.default_shape is not None:
        return engine.default_shape.draft_tokens
    return None if engine.num_steps is None else engine.num_steps + 1


def _replay(facts: PairFacts) -> Outcome:
    if not facts.target.linear_layers:
        return passes("the target has no linear-attention layers")
    flags = facts.engine.flags
    if flags.enable_linear_replayssm_spec is None:
        return unknown("the engine's arguments are not known: set engine.args", required=False)
    if not flags.enable_linear_replayssm_spec:
        return passes(
            "--enable-linear-replayssm-spec is off: each running request keeps one recurrent state per draft token"
        )
    if facts.engine.branches not in (None, 1):
        return fails(
            f"--enable-linear-replayssm-spec needs a chain of drafts, {facts.engine.branches_words}; set it to 1",
            value=facts.engine.branches,
            limit=1,
        )
    if flags.enable_linear_replayssm:
        return fails("--enable-linear-replayssm and --enable-linear-replayssm-spec exclude each other; keep the latter")
    if facts.engine.prefill_only:
        return fails("--enable-linear-replayssm-spec is refused on a prefill server; drop it there")
    if facts.target.architecture not in KIMI_DELTA_ATTENTION:
        return passes("the ring follows the draft tokens by itself")
    ring, window = flags.linear_replayssm_cache_len, _verify_window(facts)
    if ring is None or window is None:
        return unknown("the ring's length or the verify window is not known", required=True)
    if ring < 2 * window or ring & (ring - 1):
        least = 1 << (2 * window - 1).bit_length()
        return fails(
            f"--linear-replayssm-cache-len {ring}: the ring must be a power of two of at least 2 x the verify window "
            f"{window} = {2 * window}, or SGLang refuses to start; set {least}",
            value=ring,
            limit=2 * window,
        )
    return passes(f"a ring of {ring} for a verify window of {window}", value=ring, limit=2 * window)


def _staging(facts: PairFacts) -> Outcome:
    mode = facts.engine.flags.startup_weight_load_mode
    if "overlap" in (mode, facts.engine.planned_staging):
        where = "--startup-weight-load-mode overlap" if mode == "overlap" else "staging.mode: overlap"
        return fails(
            f"{where}: SGLang refuses overlapped loading with any speculation (0.5.18 and 0.5.23), and loads target "
            "and drafter one after the other; plan serial or prefetch",
            value="overlap",
        )
    return passes(f"{facts.engine.planned_staging or mode or 'serial'}")


def _weights_loaded(facts: PairFacts) -> Outcome:
    flags = facts.engine.flags
    form = flags.speculative_draft_load_format or flags.load_format
    if form == "dummy":
        return fails(
            "the drafter is loaded with --load-format dummy: random weights, an acceptance length of about 1; drop it"
        )
    return passes(f"load format {form or 'auto'}")


def _trained_for(facts: PairFacts) -> Outcome:
    recorded, name = facts.drafter.target_name, facts.target.name
    if facts.drafter.bundled:
        return passes("the drafter is part of the target's checkpoint")
    if recorded is None:
        return unknown(
            "compatible shapes; trained-for target unknown: the drafter records no base model", required=False
        )
    if name is None:
        return unknown(f"made for {recorded}; the target's name is not known", required=False)
    if _last_part(recorded) == _last_part(name):
        return passes(f"made for {recorded}")
    return warns(f"made for {recorded}, the target is {name}; confirm that these are the same model", value=recorded)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].lower()


RULES = (
    Rule(
        what="algorithm",
        asks="Do engine and drafter mean the same algorithm?",
        check=_algorithm,
        evidence="`--speculative-algorithm`, `drafter.algorithm`; `architectures`, `markov_rank`, its format",
        alone=True,
        source="SGLang 0.5.23 speculative/spec_info.py, eagle_worker_v2.py (set_embed_and_head); the drafter's config",
    ),
    Rule(
        what="architecture",
        asks="Does this release of the engine have both classes?",
        check=_architecture,
        evidence="`architectures` of both; the engine's release",
        required=False,
        engines=SGLANG,
        source="EntryClass of sglang/srt/models/ in 0.5.18 and 0.5.23",
    ),
    Rule(
        what="replay_ring",
        asks="Does the ring of the linear layers hold two verify windows?",
        check=_replay,
        evidence="the target's layers; `--enable-linear-replayssm-spec`, `--linear-replayssm-cache-len`; draft tokens",
        reads=("target.linear_layers",),
        required=False,
        unit="steps",
        engines=SGLANG,
        source="SGLang 0.5.23 mem_cache/memory_pool.py (KDA ring), arg_groups/attention_hook.py",
    ),
    Rule(
        what="staging_mode",
        asks="Is the planned staging possible with two models?",
        check=_staging,
        evidence="`--startup-weight-load-mode`; `staging.mode` of the budget",
        engines=SGLANG,
        source="SGLang 0.5.18 and 0.5.23 model_runner_components/startup_weight_load.py",
    ),
    Rule(
        what="drafter_weights",
        asks="Are the drafter's real weights loaded?",
        check=_weights_loaded,
        evidence="`--speculative-draft-load-format`, `--load-format`",
        source="SGLang 0.5.23 --speculative-draft-load-format",
    ),
    Rule(
        what="trained_for",
        asks="Was the drafter trained for this target?",
        check=_trained_for,
        evidence="`speculators_config.verifier.name_or_path`; the target's folder. `_name_or_path` proves nothing",
        required=False,
        source="speculators_config.verifier.name_or_path; most drafters record nothing",
    ),
)
