"""How quantised weights are stored: what a stored element stands for, from the format's own names.

Sources: SGLang 0.5.23 `layers/quantization/` (gptq.py, awq.py, modelopt_quant.py, mxfp4.py, bitsandbytes.py,
compressed_tensors/), `models/deepseek_v4.py` (`expert_dtype`); vllm-project/compressed-tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.sources.checkpoint.config_file import ConfigReader

_SECTIONS = ("quantization_config", "compression_config")
_BESIDE = frozenset(
    {
        *("weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale", "weight_zero_point"),
        *("weight_shape", "weight_g_idx", "input_scale", "input_global_scale", "input_zero_point", "output_scale"),
        *("scales", "qzeros", "qscales", "zeros", "g_idx", "scale", "scale_inv", "k_scale", "v_scale", "q_scale"),
        *("absmax", "quant_map", "nested_absmax", "nested_quant_map", "activation_scale", "scb", "SCB"),
    }
)
"""Last words of tensors that quantisation stores beside the weights."""

_PACKED_WORDS = frozenset({"qweight", "weight_packed"})
_FOUR_BIT = ("nvfp4", "mxfp4", "fp4", "w4a", "nf4", "int4")
_FLOATS = ("nvfp4", "mxfp4", "mxfp8", "fp4", "fp8")
_EIGHT_BIT = ("fp8", "mxfp8", "int8", "w8a8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """What a config says of its weights' storage; None where it does not say.

    `method` is its own word, such as gptq, fp8 or modelopt; `bits` those of one weight.
    """

    method: str | None = None
    form: str | None = None
    """The format within the method, such as NVFP4 or pack-quantized."""
    bits: int | None = None
    block: tuple[int, ...] | None = None
    """Rows and columns that share one scale."""
    experts_fp4: bool = False
    """The routed experts hold two 4-bit floats in each byte, whatever the method says of the rest."""

    def words(self, dtype: str | None) -> str | None:
        """The storage in words: `int4 in int32`, `fp8 in blocks of 128 x 128`; the dtype where nothing is packed."""
        if self.method is None:
            return dtype
        name = _kind(self.method, self.form, self.bits)
        block = "" if self.block is None else f" in blocks of {' x '.join(map(str, self.block))}"
        packed = f" in {dtype}" if dtype in ("int32", "uint8") else ""
        experts = ", experts in fp4" if self.experts_fp4 else ""
        return f"{name}{packed}{block}{experts}"


def read_quantization(config: ConfigReader) -> Quantization:
    """The storage that a config states, in the places of all formats that engines read."""
    places = [(*prefix, section) for prefix in ((), config.text_path) for section in _SECTIONS]
    method = config.text("quantization_method", *((*place, key) for place in places for key in _METHOD_KEYS))
    experts = config.text("expert_dtype", *config.places("expert_dtype"))
    bits = config.whole(
        "quantization_bits",
        *((*place, key) for place in places for key in ("bits", "w_bit")),
        *((*place, "config_groups", "group_0", "weights", "num_bits") for place in places),
        most=32,
    )
    form = config.text("quantization_format", *((*place, key) for place in places for key in ("quant_algo", "format")))
    block = config.wholes("weight_block_size", *((*place, "weight_block_size") for place in places))
    if method is not None and bits is None:
        bits = _stated_bits(f"{method} {form or ''}".lower())
    if method is not None and method.lower() == "bitsandbytes":
        for key, count in (("load_in_4bit", 4), ("load_in_8bit", 8)):
            if config.flag(key, *((*place, key) for place in places)):
                bits = count
    return Quantization(method=method, form=form, bits=bits, block=block, experts_fp4=experts == "fp4")


_METHOD_KEYS = ("quant_method", "quant_algo")


def _stated_bits(text: str) -> int | None:
    for words, bits in ((_FOUR_BIT, 4), (_EIGHT_BIT, 8)):
        if any(word in text for word in words):
            return bits
    return None


def _kind(method: str, form: str | None, bits: int | None) -> str:
    """The method with the kind of number it stores, where its own word does not say."""
    if _stated_bits(method.lower()) is not None or bits is None:
        return method
    float_kind = next((word for word in _FLOATS if word in (form or "").lower()), None)
    if float_kind is not None:
        return f"{method} {float_kind}"
    whole = method.lower() in ("gptq", "awq", "auto-round") or form in ("pack-quantized", "int-quantized")
    return f"{method} int{bits}" if whole else f"{method} {bits} bit"


def logical_parameters(
    quantization: Quantization, words: list[str], *, dtype: str, flat: bool, elements: int
) -> int | None:
    """Weights of the model that a stored tensor stands for: none for scales, several in a packed element.

    None where the format does not tell how many.
    """
    last = words[-1]
    if last in _BESIDE or last.endswith(("_scales", "_zeros")) or "quant_state" in words:
        return 0
    if flat:
        return elements
    packed = 0
    match dtype:
        case "I32" if last in _PACKED_WORDS:
            packed = 32
        case "U8":
            packed = 8
        case "I8" if quantization.experts_fp4 and "experts" in words:
            return 2 * elements
        case "I32" | "U32":
            return None
        case _:
            return elements
    bits = quantization.bits
    if last.endswith("_blocks"):
        bits = 4
    return None if bits is None else elements * packed // bits
