"""Encoder-decoders and multimodal models: text to text, speech to text, image and text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Numbers, Padded, Spectrogram, Tokens, image, takes
from torch_ttnn.zoo.sources import Transformers

T5_SETTINGS = {"use_cache": False, "decoder_start_token_id": 0}

T5 = ModelEntry(
    name="t5-small",
    family="t5",
    task="text to text",
    architecture=Transformers("T5ForConditionalGeneration", "T5Config", T5_SETTINGS, hub="google-t5/t5-small"),
    feed=takes(input_ids=Tokens(32100, 32), attention_mask=Padded(32), decoder_input_ids=Tokens(32100, 16)),
)

# Sizes of T5 by their differences from the small one.
T5_SIZES: dict[str, dict[str, Any]] = {
    "t5-base": {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    "t5-large": {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16},
    "flan-t5-small": {
        "d_ff": 1024, "num_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False
    },
}  # fmt: skip


def t5(name: str, hub: str) -> ModelEntry:
    settings = {**T5_SETTINGS, **T5_SIZES[name]}
    return replace(T5, name=name, architecture=Transformers("T5ForConditionalGeneration", "T5Config", settings, hub))


BART = ModelEntry(
    name="bart-base",
    family="bart",
    task="text to text",
    architecture=Transformers(
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "vocab_size": 50265, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072,
            "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "use_cache": False,
        },
        hub="facebook/bart-base",
    ),
    feed=takes(input_ids=Tokens(50265, 32), attention_mask=Padded(32), decoder_input_ids=Tokens(50265, 16)),
)  # fmt: skip

SPEECHT5 = ModelEntry(
    name="speecht5-tts",
    family="speecht5",
    task="text to speech",
    architecture=Transformers(
        "SpeechT5ForTextToSpeech",
        "SpeechT5Config",
        {"vocab_size": 81, "use_cache": False},
        hub="microsoft/speecht5_tts",
    ),
    feed=takes(
        input_ids=Tokens(81, 32), attention_mask=Padded(32), decoder_input_values=Numbers((16, 80)),
        speaker_embeddings=Numbers((512,)),
    ),
)  # fmt: skip

VILT = ModelEntry(
    name="vilt-vqa",
    family="vilt",
    task="visual question answering",
    architecture=Transformers(
        "ViltForQuestionAnswering", "ViltConfig", {"num_labels": 3129}, hub="dandelin/vilt-b32-finetuned-vqa"
    ),
    feed=takes(input_ids=Tokens(30522, 16, lowest=999), attention_mask=Padded(16), pixel_values=image(384, 576)),
)  # fmt: skip

DINOV2 = ModelEntry(
    name="dinov2-base",
    family="dinov2",
    task="image features",
    architecture=Transformers(
        "Dinov2Model", "Dinov2Config", {"image_size": 518, "patch_size": 14}, hub="facebook/dinov2-base"
    ),
    feed=takes(image(224)),
)

T5_ENCODER = ModelEntry(
    name="t5-small-encoder",
    family="t5",
    task="text features",
    architecture=Transformers("T5EncoderModel", "T5Config", {"use_cache": False}, hub="google-t5/t5-small"),
    feed=takes(input_ids=Tokens(32100, 32), attention_mask=Padded(32)),
)

WHISPER = ModelEntry(
    name="whisper-tiny",
    family="whisper",
    task="speech recognition",
    architecture=Transformers(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            "d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6,
            "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "vocab_size": 51865,
            "use_cache": False, "init_std": 0.05,
        },
        hub="openai/whisper-tiny",
    ),
    feed=takes(input_features=Spectrogram(80, 3000), decoder_input_ids=Tokens(50257, 8)),
)  # fmt: skip

CLIP = ModelEntry(
    name="clip",
    family="clip",
    task="image and text similarity",
    architecture=Transformers("CLIPModel", "CLIPConfig", hub="openai/clip-vit-base-patch32"),
    feed=takes(input_ids=Tokens(49406, 16), attention_mask=Padded(16), pixel_values=image(224)),
    batch=4,
    train=True,
)

WHISPER_SMALL = {
    "d_model": 768, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 12,
    "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "vocab_size": 51865,
    "use_cache": False, "init_std": 0.05,
}  # fmt: skip

ENTRIES = (
    T5,
    replace(
        T5.resized("t5-small-2L", "2 + 2 layers in place of 6 + 6.", num_layers=2, num_decoder_layers=2), train=True
    ),
    T5_ENCODER,
    t5("t5-base", "google-t5/t5-base"),
    t5("t5-large", "google-t5/t5-large"),
    t5("flan-t5-small", "google/flan-t5-small"),
    BART,
    SPEECHT5,
    VILT,
    DINOV2,
    WHISPER,
    replace(
        WHISPER,
        name="whisper-small",
        architecture=Transformers(
            "WhisperForConditionalGeneration", "WhisperConfig", WHISPER_SMALL, hub="openai/whisper-small"
        ),
    ),
    WHISPER.resized("whisper-tiny-2L", "2 + 2 layers in place of 4 + 4.", encoder_layers=2, decoder_layers=2),
    CLIP,
    CLIP.resized(
        "clip-2L",
        "2 + 2 layers in place of 12 + 12.",
        text_config={"num_hidden_layers": 2},
        vision_config={"num_hidden_layers": 2},
    ),
)
