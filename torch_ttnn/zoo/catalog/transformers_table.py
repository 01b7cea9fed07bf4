"""Facts about models of transformers: a representative of every kind, and configs of some published ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# One class per architecture: what `--all transformers` means.
ARCHITECTURES: tuple[str, ...] = tuple(
    """
    BertForQuestionAnswering RobertaForMaskedLM DistilBertForSequenceClassification AlbertForMaskedLM
    ElectraForTokenClassification DebertaV2ForSequenceClassification ModernBertForMaskedLM MPNetModel FNetModel
    LongformerModel XLNetModel
    GPT2LMHeadModel GPTNeoForCausalLM GPTNeoXForCausalLM GPTJForCausalLM OPTForCausalLM BloomForCausalLM
    FalconForCausalLM CodeGenForCausalLM LlamaForCausalLM MistralForCausalLM MixtralForCausalLM Qwen2ForCausalLM
    Qwen3ForCausalLM Qwen3MoeForCausalLM GemmaForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM PhiForCausalLM
    Phi3ForCausalLM StableLmForCausalLM CohereForCausalLM MambaForCausalLM Mamba2ForCausalLM RwkvForCausalLM
    T5ForConditionalGeneration BartForConditionalGeneration PegasusForConditionalGeneration
    MarianMTModel M2M100ForConditionalGeneration
    ViTForImageClassification DeiTForImageClassification BeitForImageClassification SwinForImageClassification
    Swinv2ForImageClassification ConvNextForImageClassification ConvNextV2ForImageClassification
    Dinov2ForImageClassification ResNetForImageClassification RegNetForImageClassification
    MobileNetV2ForImageClassification MobileViTForImageClassification PoolFormerForImageClassification
    SegformerForSemanticSegmentation DPTForDepthEstimation GLPNForDepthEstimation YolosForObjectDetection
    VideoMAEForVideoClassification TimesformerForVideoClassification
    Wav2Vec2ForCTC HubertForCTC WhisperForConditionalGeneration ASTForAudioClassification
    CLIPModel SiglipModel ViltModel BlipModel LlavaForConditionalGeneration
    """.split()
)

# Settings that the default config needs for a working model.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "DPTForDepthEstimation": {"is_hybrid": False},
    # The image token is 32,000.
    "LlavaForConditionalGeneration": {"text_config": {"model_type": "llama", "vocab_size": 32064}},
}

# The minimal depth of models that the rule of `zoo.reduction` does not cover.
REDUCED: Mapping[str, Mapping[str, Any]] = {
    # Its neck reads the outputs of four layers.
    "DPTForDepthEstimation": {"num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3]},
}

_BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}

# Configs of published models, which can be built with random weights and without network access.
HUB: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "phiyodr/bert-large-finetuned-squad2": ("BertForQuestionAnswering", "BertConfig", _BERT_LARGE),
    "google-bert/bert-base-uncased": ("BertForMaskedLM", "BertConfig", {}),
    "google-bert/bert-large-uncased": ("BertForMaskedLM", "BertConfig", _BERT_LARGE),
    "openai-community/gpt2": ("GPT2LMHeadModel", "GPT2Config", {}),
    "google/vit-base-patch16-224": ("ViTForImageClassification", "ViTConfig", {"num_labels": 1000}),
}
