"""Targets that SGLang can capture layers of, by the kind of drafter that reads them.

Read from the methods of every model class under `sglang/srt/models/` of 0.5.18 and 0.5.23, inherited ones included.
"""

from __future__ import annotations

_EAGLE3_IN_BOTH = """
ApertusForCausalLM BailingMoEForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM DeepseekV2ForCausalLM
DeepseekV32ForCausalLM DeepseekV3ForCausalLM EmbeddingGemmaModel ExaoneMoEForCausalLM Gemma3ForCausalLM
Gemma3ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
Gemma4UnifiedForConditionalGeneration Glm4MoeForCausalLM Glm4MoeLiteForCausalLM GlmMoeDsaForCausalLM
GptOssForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM InternS1ProForConditionalGeneration
InternS2MobiusForConditionalGeneration InternS2PreviewForConditionalGeneration KimiK25ForConditionalGeneration
Llama4ForCausalLM Llama4ForConditionalGeneration LlamaForCausalLM LongcatFlashForCausalLM MellumForCausalLM
MindSporeForCausalLM MiniMaxM2ForCausalLM MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration
Ministral3ForCausalLM MistralForCausalLM MistralLarge3ForCausalLM Phi3ForCausalLM Qwen2ForCausalLM
Qwen2MoeForCausalLM Qwen2_5_VLForConditionalGeneration Qwen3ForCausalLM Qwen3MoeForCausalLM
Qwen3NextForCausalLM Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration
Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration SarvamMoEForCausalLM TeleFLMForCausalLM
"""

_EAGLE3_ONLY_IN_LAST = """
Cosmos3ForConditionalGeneration ExaoneMoeForCausalLM Glm5NextForConditionalGeneration Qwen3_5ForCausalLM
Qwen3_5MoeForCausalLM Qwen4ExpForConditionalGeneration
"""

_DFLASH_IN_BOTH = """
DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM Gemma4ForCausalLM
Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration Glm4MoeLiteForCausalLM
GlmMoeDsaForCausalLM GptOssForCausalLM IQuestCoderForCausalLM InklingForConditionalGeneration
InternLM3ForCausalLM InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
InternS2PreviewForConditionalGeneration KimiK25ForConditionalGeneration LagunaForCausalLM Llama4ForCausalLM
LlamaForCausalLM MellumForCausalLM Ministral3ForCausalLM MistralForCausalLM MistralLarge3ForCausalLM
MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration Phi3ForCausalLM Qwen3ForCausalLM
Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration
Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
TeleFLMForCausalLM
"""

_DFLASH_ONLY_IN_LAST = """
BeamForCausalLM Cosmos3ForConditionalGeneration Glm5NextForConditionalGeneration
KimiK3ForConditionalGeneration KimiK3LinearForCausalLM Lfm2BidirectionalModel Lfm2ForCausalLM
Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration MiMoV2FlashForCausalLM MiMoV2ForCausalLM
MiniMaxM3SparseForConditionalGeneration MuseSparkForConditionalGeneration NanbeigeForCausalLM
NemotronHForCausalLM NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2
NemotronH_Omni_Reasoning_V3 Qwen4ExpForConditionalGeneration
"""

_DSPARK_IN_BOTH = """
DeepseekV4ForCausalLM KimiK3ForConditionalGeneration KimiLinearForCausalLM
"""

_DSPARK_ONLY_IN_LAST = """
BailingMoeV3ForCausalLM KimiK3LinearForCausalLM MiniMaxM3SparseForConditionalGeneration
"""

CAPTURES = {
    "eagle3": (frozenset(_EAGLE3_IN_BOTH.split()), frozenset(_EAGLE3_ONLY_IN_LAST.split())),
    "dflash": (frozenset(_DFLASH_IN_BOTH.split()), frozenset(_DFLASH_ONLY_IN_LAST.split())),
    "dspark": (frozenset(_DSPARK_IN_BOTH.split()), frozenset(_DSPARK_ONLY_IN_LAST.split())),
}
"""Targets that have `set_<word>_layers_to_capture`, their own or inherited: in both releases, and only in 0.5.23.

DSpark takes either of the block drafters' two. Draft classes are left out.
"""

MAY_CAPTURE = frozenset({"MiniCPMV", "Mistral3ForConditionalGeneration"})
"""Targets that hand unknown attributes on to another class, which decides."""
