"""How the attention heads of both models are divided over the ranks."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import Rule
from specbudget.domain.finding import Outcome, fails, passes, unknown


def _attention_ranks(facts: PairFacts) -> Outcome:
    engine, tensor, groups = facts.engine, facts.engine.tensor_parallel, facts.engine.groups
    if tensor is None:
        return unknown("the number of ranks is not known", required=False)
    if engine.running:
        return passes("the engine started with its ranks")
    if tensor % groups:
        return fails(
            f"--tp {tensor} cannot be divided into {groups} groups of data- or context-parallel attention: the engine "
            "refuses to start; choose a divisor of --tp",
            value=groups,
            limit=tensor,
        )
    ranks = tensor // groups
    share = f"{ranks} ranks" if groups == 1 else f"the {ranks} ranks of each of {groups} groups"
    models = (
        ("target", facts.target.heads, facts.target.kv_heads),
        ("drafter", facts.drafter.heads, facts.drafter.kv_heads),
    )
    for name, heads, kv_heads in models:
        if heads is not None and heads % ranks:
            return fails(
                f"{heads} attention heads of the {name} cannot be divided over {share}: the engine aborts; choose a "
                "divisor of the heads as --tp",
                value=heads,
                limit=ranks,
            )
        if kv_heads is not None and kv_heads % ranks and ranks % kv_heads:
            return fails(
                f"{kv_heads} KV heads of the {name} can be neither divided over {share} nor repeated on them evenly: "
                "the engine aborts; choose a divisor or a multiple of the KV heads as --tp",
                value=kv_heads,
                limit=ranks,
            )
    return passes(f"the heads are divided over {share}", value=ranks)


RULES = (
    Rule(
        what="attention_ranks",
        asks="Do the ranks divide the attention heads of both models?",
        check=_attention_ranks,
        evidence="both `num_attention_heads` and `num_key_value_heads`; tensor, data- and context-parallel ranks",
        alone=True,
        unit="ranks",
        source="SGLang 0.5.23 models/qwen2.py, llama.py (asserts on heads), arg_groups/parallel_hook.py (attn_dp_size)",
    ),
)
