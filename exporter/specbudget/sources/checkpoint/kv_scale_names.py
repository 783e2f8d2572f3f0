"""Names of the tensors that scale a quantised KV.

Source: SGLang 0.5.23 `model_loader/weight_utils.py` (maybe_remap_kv_scale_name): also the older names and Quark's.
"""

from __future__ import annotations

_LAST_PARTS = (".k_scale", ".v_scale", ".kv_scale", ".k_proj.output_scale", ".v_proj.output_scale")
_IN_JSON = tuple(f'{part}"'.encode() for part in _LAST_PARTS)


def is_kv_scale(name: str) -> bool:
    """Whether a tensor's name is that of a KV scale."""
    return name.endswith(_LAST_PARTS)


def names_kv_scale(text: bytes) -> bool:
    """Whether an index names one, by its text: walking the names of a large one costs more than all the rest."""
    return any(part in text for part in _IN_JSON)
