"""Models of two halves: text to text, speech to text, image and text."""

from __future__ import annotations

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Padded, Spectrogram, Tokens, image, takes
from torch_ttnn.zoo.sources import Transformers

T5_SETTINGS = {"use_cache": False, "decoder_start_token_id": 0}

T5 = ModelEntry(
    name="t5-small",
    family="t5",
    task="text to text",
    architecture=Transformers("T5ForConditionalGeneration", "T5Config", T5_SETTINGS, hub="google-t5/t5-small"),
    feed=takes(input_ids=Tokens(32100, 32), attention_mask=Padded(32), decoder_input_ids=Tokens(32100, 16)),
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
)

ENTRIES = (
    T5,
    T5.resized("t5-small-2L", "2 + 2 layers in place of 6 + 6.", num_layers=2, num_decoder_layers=2),
    T5_ENCODER,
    WHISPER,
    WHISPER.resized("whisper-tiny-2L", "2 + 2 layers in place of 4 + 4.", encoder_layers=2, decoder_layers=2),
    CLIP,
    CLIP.resized(
        "clip-2L",
        "2 + 2 layers in place of 12 + 12.",
        text_config={"num_hidden_layers": 2},
        vision_config={"num_hidden_layers": 2},
    ),
)
