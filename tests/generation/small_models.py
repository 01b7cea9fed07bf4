"""Small models of transformers that generate, with weights that make the best token clear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.zoo.sources import library

VOCABULARY = 211
IDS = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
DECODER = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
WHISPER = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "num_mel_bins": 16,
    "max_source_positions": 64,
    "max_target_positions": 128,
    "decoder_start_token_id": 3,
    "begin_suppress_tokens": None,
}
# Class, config, and the settings that differ from its defaults.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 256}),
    "codegen": (
        "CodeGenForCausalLM", "CodeGenConfig",
        {"n_layer": 2, "n_embd": 64, "n_head": 4, "rotary_dim": 16, "n_positions": 256, "n_ctx": 256},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", DECODER),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", DECODER),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**DECODER, "sliding_window": 32}),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 64, "state_size": 8, "num_hidden_layers": 2}),
}  # fmt: skip
# Larger weights make the best token clear; these models amplify rounding errors with such weights.
SCALES = {"t5": 2.0, "mamba": 2.0}
DECODERS = tuple(name for name in MODELS if name not in ("t5", "whisper"))


def model_of(name: str, **settings: Any) -> Any:
    """The model in eval mode; it generates without an end token unless a test sets one."""
    torch.manual_seed(0)
    model_class, config, chosen = MODELS[name]
    transformers = library("transformers")
    model = getattr(transformers, model_class)(getattr(transformers, config)(**{**IDS, **chosen, **settings})).eval()
    with torch.no_grad():
        for each, weight in model.named_parameters():
            if weight.dim() > 1 and "A_log" not in each and "conv" not in each:
                weight.mul_(SCALES.get(name, 4.0))
    model.generation_config.eos_token_id = None
    return model


def prompt_of(name: str, length: int, batch: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    if name == "whisper":
        return {"input_features": torch.randn(batch, 16, 128, generator=generator)}
    return {"input_ids": torch.randint(3, VOCABULARY, (batch, length), generator=generator)}


def padded_prompts(lengths: tuple[int, ...], *, left: bool = True) -> dict[str, torch.Tensor]:
    """A batch of prompts with padding and its mask."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in zip(ids, lengths):
        tokens = prompt_of("", length)["input_ids"][0]
        (row[-length:] if left else row[:length]).copy_(tokens)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def tokenizer() -> Any:
    """One token for each of 211 characters."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    characters = {chr(33 + number) if number < 90 else chr(0x100 + number): number for number in range(VOCABULARY)}
    single = Tokenizer(models.BPE(characters, []))
    single.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=single)


def counting(count: list[int]) -> Callable[..., Any]:
    """Compiles a step with torch's `aot_eager` and counts the graphs."""
    from torch._dynamo.backends.debugging import aot_eager

    def backend(graph_module: torch.fx.GraphModule, inputs: Any) -> Any:
        count.append(1)
        return aot_eager(graph_module, inputs)

    return lambda step, options: torch.compile(step, backend=backend, fullgraph=True, dynamic=False)


def uncompiled(step: Callable[..., Any], options: Any) -> Callable[..., Any]:
    """A step that runs operation by operation."""
    return step
