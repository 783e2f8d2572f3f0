"""The drafters that a deployment can have: what they are called, what they weigh, how far they draft."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from specbudget.simulate.configs import DRAFTER_CONFIG, TARGET_CONFIG, VERIFY_WINDOW
from specbudget.simulate.scenarios import Algorithm
from specbudget.simulate.tensors import ELEMENT_BYTES, Tensor, drafter_tensors, mtp_layer

GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """A drafter as SGLang 0.5.23 knows it.

    `argument` is its --speculative-algorithm, `reported` what /server_info makes of it, `budgeted` its name in
    a budget file, `model` the class that loads it. `steps` and `window` are speculative_num_steps and
    speculative_num_draft_tokens at launch; `widest` is the widest verify window at run time. `copies` are
    tensors that it allocates like its target's, holds while the pools are sized, and gives back for the
    target's own. `latent_kv` says whether its pool holds MLA latents, as the target's does. `graphs` is the memory
    of the captured graphs by phase, in bytes.
    """

    argument: str
    reported: str
    budgeted: str
    model: str
    config: Mapping[str, Any]
    steps: int
    window: int
    widest: int
    tensors: Callable[[], list[Tensor]]
    copies: tuple[Tensor, ...]
    latent_kv: bool
    token_elements: Callable[[int], int]
    graphs: Mapping[str, int]
    adaptive: bool = False

    def token_bytes(self, tensor_parallel: int) -> int:
        """Bytes of one token in the drafter's KV pool, on one rank."""
        return self.token_elements(tensor_parallel) * ELEMENT_BYTES["BF16"]


def _keys_and_values(tensor_parallel: int) -> int:
    heads = max(1, DRAFTER_CONFIG["num_key_value_heads"] // tensor_parallel)
    return int(heads * 2 * DRAFTER_CONFIG["head_dim"] * DRAFTER_CONFIG["num_hidden_layers"])


def _latents(_tensor_parallel: int) -> int:
    """One MLA layer; every rank holds its latent whole."""
    return int(TARGET_CONFIG["kv_lora_rank"] + TARGET_CONFIG["qk_rope_head_dim"])


@functools.lru_cache(maxsize=1)
def _mtp_tensors() -> list[Tensor]:
    return mtp_layer(loaded=True)


_VOCABULARY = (TARGET_CONFIG["vocab_size"], TARGET_CONFIG["hidden_size"])

DRAFTERS: Mapping[Algorithm, Drafter] = MappingProxyType(
    {
        Algorithm.DSPARK: Drafter(
            argument="DSPARK",
            reported="DSPARK",
            budgeted="dspark",
            model=DRAFTER_CONFIG["architectures"][0],
            config=DRAFTER_CONFIG,
            steps=1,
            window=VERIFY_WINDOW,
            widest=VERIFY_WINDOW,
            tensors=drafter_tensors,
            copies=(),
            latent_kv=False,
            token_elements=_keys_and_values,
            graphs=MappingProxyType({"target_verify": int(1.31 * GIB), "draft_decode": int(0.34 * GIB)}),
        ),
        Algorithm.ADAPTIVE_MTP: Drafter(
            argument="NEXTN",
            reported="EAGLE",
            budgeted="mtp",
            model="BailingMoeForCausalLMNextN",
            config=TARGET_CONFIG,
            steps=5,
            window=6,
            widest=8,
            tensors=_mtp_tensors,
            copies=(
                Tensor(name="model.word_embeddings.weight", shape=_VOCABULARY),
                Tensor(name="lm_head.weight", shape=_VOCABULARY),
            ),
            latent_kv=True,
            token_elements=_latents,
            graphs=MappingProxyType(
                {
                    "target_verify": int(2.27 * GIB),
                    "draft_decode": int(0.41 * GIB),
                    "draft_extend": int(0.36 * GIB),
                }
            ),
            adaptive=True,
        ),
    }
)
