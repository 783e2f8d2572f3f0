"""Names of the tensors that scale a quantised KV.

Source: SGLang 0.5.23 `model_loader/weight_utils.py` (maybe_remap_kv_scale_name): also the older names and Quark's.
"""

from __future__ import annotations

_LAST_PARTS = (b".k_scale", b".v_scale", b".kv_scale", b".k_proj.output_scale", b".v_proj.output_scale")


def is_kv_scale(raw_name: bytes) -> bool:
    """Whether a raw tensor name, quotes allowed, is that of a KV scale."""
    return raw_name.endswith(b'_scale"') and raw_name[:-1].endswith(_LAST_PARTS)
