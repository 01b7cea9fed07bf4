"""Text generators: GPT, Llama and related models, and Mamba."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import FilledCache, Tokens, takes
from torch_ttnn.zoo.sources import Transformers

SMALL_VOCABULARY = 5000


def generator(
    name: str, family: str, model: str, config: str, vocabulary: int, length: int, *, reduced: str = "", hub: str = "",
    train: bool = False, **settings: Any,
) -> ModelEntry:  # fmt: skip
    """An entry for a prompt without a cache: the next token at every position."""
    settings = {"vocab_size": vocabulary, "use_cache": False, **settings}
    return ModelEntry(
        name=name,
        family=family,
        task="text generation",
        architecture=Transformers(model, config, settings, hub=hub),
        feed=takes(input_ids=Tokens(vocabulary, length)),
        reduced=reduced,
        train=train,
    )


def decoding(prompt: ModelEntry, name: str, heads: int, head_size: int, vocabulary: int) -> ModelEntry:
    """An entry for one decoding step with a static cache of 64 positions, half of them filled."""
    if not isinstance(prompt.architecture, Transformers):
        raise TypeError(f"{prompt.name} has no key/value cache that transformers manages")
    architecture = replace(prompt.architecture, settings={**prompt.architecture.settings, "use_cache": True})
    feed = takes(input_ids=Tokens(vocabulary, 1), past_key_values=FilledCache(architecture, heads, head_size))
    return replace(prompt, name=name, architecture=architecture, feed=feed, train=False)


GPT2 = generator(
    "gpt2", "gpt2", "GPT2LMHeadModel", "GPT2Config", 50257, 128, hub="openai-community/gpt2"
)  # fmt: skip
GPT2_2L = GPT2.resized("gpt2-2L", "2 layers in place of 12.", n_layer=2)

CODEGEN = generator(
    "codegen-350M", "codegen", "CodeGenForCausalLM", "CodeGenConfig", 51200, 64, hub="Salesforce/codegen-350M-mono",
    n_embd=1024, n_head=16, n_layer=20, rotary_dim=32, n_ctx=2048, n_positions=2048,
)  # fmt: skip

LLAMA = generator(
    "llama-2L", "llama", "LlamaForCausalLM", "LlamaConfig", 32000, 32,
    reduced="2 layers in place of 32, hidden size 512 in place of 4096, 8 heads (4 of keys) in place of 32.",
    hidden_size=512, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376, num_hidden_layers=2,
    max_position_embeddings=2048,
)  # fmt: skip

GPT2_CLASSIFIER = ModelEntry(
    name="gpt2-imdb",
    family="gpt2",
    task="text classification",
    architecture=Transformers(
        "GPT2ForSequenceClassification",
        "GPT2Config",
        {"pad_token_id": 50256, "use_cache": False},
        hub="mnoukhov/gpt2-imdb-sentiment-classifier",
    ),
    feed=takes(input_ids=Tokens(50256, 128)),
    batch=4,  # one text has two scores, whose correlation is meaningless
)

ENTRIES = (
    GPT2,
    replace(GPT2_2L, train=True),
    GPT2_CLASSIFIER,
    decoding(GPT2, "gpt2-decode-static", heads=12, head_size=64, vocabulary=50257),
    decoding(GPT2_2L, "gpt2-2L-decode-static", heads=12, head_size=64, vocabulary=50257),
    CODEGEN,
    CODEGEN.resized("codegen-350M-2L", "2 layers in place of 20.", n_layer=2),
    replace(LLAMA, train=True),
    generator(
        "llama-7b-2L", "llama", "LlamaForCausalLM", "LlamaConfig", 32000, 32, reduced="2 layers in place of 32.",
        num_hidden_layers=2,
    ),
    generator(
        "gemma-2L", "gemma", "GemmaForCausalLM", "GemmaConfig", SMALL_VOCABULARY, 32,
        reduced="2 layers in place of 28, hidden size 512 in place of 3072, a vocabulary of 5,000.",
        hidden_size=512, num_attention_heads=8, num_key_value_heads=4, head_dim=64, intermediate_size=1376,
        num_hidden_layers=2, train=True,
    ),
    decoding(LLAMA, "llama-2L-decode-static", heads=4, head_size=64, vocabulary=32000),
    generator(
        "mistral-2L", "mistral", "MistralForCausalLM", "MistralConfig", SMALL_VOCABULARY, 32,
        reduced="2 layers in place of 32, hidden size 512 in place of 4096, a window of 16 tokens, 5,000 tokens.",
        hidden_size=512, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376, num_hidden_layers=2,
        sliding_window=16, train=True,
    ),
    generator(
        "qwen2-2L", "qwen2", "Qwen2ForCausalLM", "Qwen2Config", SMALL_VOCABULARY, 32,
        reduced="2 layers in place of 28, hidden size 512 in place of 3584, a vocabulary of 5,000.",
        hidden_size=512, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376, num_hidden_layers=2,
        train=True,
    ),
    generator(
        "falcon-2L", "falcon", "FalconForCausalLM", "FalconConfig", 65024, 32,
        reduced="2 layers in place of 32, hidden size 512 in place of 4544, 8 heads in place of 71.",
        hidden_size=512, num_attention_heads=8, num_hidden_layers=2, multi_query=True, train=True,
    ),
    generator(
        "falcon-7b-2L", "falcon", "FalconForCausalLM", "FalconConfig", 65024, 32, reduced="2 layers in place of 32.",
        num_hidden_layers=2,
    ),
    generator(
        "phi-2L", "phi", "PhiForCausalLM", "PhiConfig", SMALL_VOCABULARY, 32,
        reduced="2 layers in place of 24, hidden size 512 in place of 2048, a vocabulary of 5,000.",
        hidden_size=512, num_attention_heads=8, intermediate_size=2048, num_hidden_layers=2, train=True,
    ),
    generator(
        "bloom-2L", "bloom", "BloomForCausalLM", "BloomConfig", SMALL_VOCABULARY, 32,
        reduced="2 layers in place of 24, hidden size 512 in place of 1024, a vocabulary of 5,000.",
        hidden_size=512, n_head=8, n_layer=2, train=True,
    ),
    generator(
        "bloom-1b1", "bloom", "BloomForCausalLM", "BloomConfig", 250880, 32, hub="bigscience/bloom-1b1",
        hidden_size=1536, n_head=16, n_layer=24,
    ),
    generator(
        "opt-350m", "opt", "OPTForCausalLM", "OPTConfig", 50272, 32, hub="facebook/opt-350m",
        hidden_size=1024, num_attention_heads=16, ffn_dim=4096, num_hidden_layers=24, word_embed_proj_dim=512,
        do_layer_norm_before=False,
    ),
    generator(
        "opt-2L", "opt", "OPTForCausalLM", "OPTConfig", 50272, 32,
        reduced="2 layers in place of 12, hidden size 512 in place of 768.",
        hidden_size=512, num_attention_heads=8, ffn_dim=2048, num_hidden_layers=2, word_embed_proj_dim=512, train=True,
    ),
    generator(
        "gptneo-2L", "gptneo", "GPTNeoForCausalLM", "GPTNeoConfig", SMALL_VOCABULARY, 32,
        reduced="one global and one local layer in place of 12 of each, hidden size 512, a window of 16 tokens.",
        hidden_size=512, num_heads=8, num_layers=2, attention_types=[[["global", "local"], 1]], window_size=16,
        train=True,
    ),
    generator(
        "gptneo-125M", "gptneo", "GPTNeoForCausalLM", "GPTNeoConfig", 50257, 32, hub="EleutherAI/gpt-neo-125m",
        hidden_size=768, num_heads=12, num_layers=12, attention_types=[[["global", "local"], 6]],
    ),
    generator(
        "mamba-2L", "mamba", "MambaForCausalLM", "MambaConfig", SMALL_VOCABULARY, 16,
        reduced="2 layers in place of 24, hidden size 256 in place of 768, a vocabulary of 5,000.",
        hidden_size=256, state_size=16, num_hidden_layers=2,
    ),
)  # fmt: skip
