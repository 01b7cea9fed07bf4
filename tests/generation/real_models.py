"""Models of published sizes with seeded random weights: what `--sweep` generates with."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.zoo.sources import library

LLAMA_1B = {
    "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 64, "vocab_size": 128_256, "tie_word_embeddings": True,
}  # fmt: skip
MISTRAL_7B = {
    "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "sliding_window": 32,
}  # fmt: skip
QWEN2_05B = {
    "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2,
    "vocab_size": 151_936, "tie_word_embeddings": True,
}  # fmt: skip
CODEGEN_350M = {"n_layer": 20, "n_embd": 1024, "n_head": 16, "rotary_dim": 32}
WHISPER_TINY = {
    "d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6,
    "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "begin_suppress_tokens": None,
}  # fmt: skip
# Class, config, and the settings that differ from its defaults. Large models have only the first layers.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {}),
    "codegen-350m": ("CodeGenForCausalLM", "CodeGenConfig", CODEGEN_350M),
    "llama-1b": ("LlamaForCausalLM", "LlamaConfig", {**LLAMA_1B, "num_hidden_layers": 4}),
    "qwen2-0.5b": ("Qwen2ForCausalLM", "Qwen2Config", {**QWEN2_05B, "num_hidden_layers": 24}),
    "mistral-7b": ("MistralForCausalLM", "MistralConfig", {**MISTRAL_7B, "num_hidden_layers": 2}),
    "t5-small": ("T5ForConditionalGeneration", "T5Config", {"decoder_start_token_id": 0}),
    "whisper-tiny": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER_TINY),
    "mamba-130m": ("MambaForCausalLM", "MambaConfig", {"num_hidden_layers": 24}),
}


def real_model(name: str) -> Any:
    torch.manual_seed(0)
    model_class, config, chosen = MODELS[name]
    transformers = library("transformers")
    model = getattr(transformers, model_class)(getattr(transformers, config)(**chosen)).eval()
    model.generation_config.eos_token_id = None
    return model


def real_prompt(name: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    if name.startswith("whisper"):
        return {"input_features": torch.randn(1, 80, 3000, generator=generator)}
    return {"input_ids": torch.randint(3, 30_000, (1, 31), generator=generator)}
