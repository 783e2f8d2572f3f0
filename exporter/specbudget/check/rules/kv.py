"""The KV line: what a token costs, how many there will be, and what the drafter needs, gets and costs."""

from __future__ import annotations

from specbudget.check.rules import kv_drafter, kv_pool, kv_tokens

RULES = (*kv_tokens.RULES, *kv_pool.RULES, *kv_drafter.RULES)
