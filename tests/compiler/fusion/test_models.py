"""Which fusions apply in small models of common libraries, with attention written out."""

from __future__ import annotations

import cProfile
import pstats

import pytest
import torch

from tests.compiler.fusion.captured import fused, fused_model
from torch_ttnn.compiler.stages.fuse import fuse
from torch_ttnn.compiler.stages.normalise import normalise
from torch_ttnn.zoo.torchvision_ops import ensure_operators

IDS = torch.arange(16).reshape(2, 8)
COLUMNS = "columns of queries, keys and values in order"
ONE_PRODUCT = "one product for queries, keys and values"
SMALL = {"vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 96}
SMALL_GPT = {"vocab_size": 64, "n_embd": 64, "n_layer": 1, "n_head": 4, "bos_token_id": 0, "eos_token_id": 1}
FEATURES = {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": IDS}
WHISPER = {
    "vocab_size": 64, "d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_source_positions": 10,
    "num_mel_bins": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
BLOOM = {"vocab_size": 64, "hidden_size": 64, "n_layer": 1, "n_head": 4}
NEO = {"vocab_size": 64, "hidden_size": 64, "num_layers": 1, "attention_types": [[["global"], 1]], "num_heads": 4}

# Names of the model and its configuration, settings, inputs, and how often each fusion applies.
MODELS = {
    "bert": ("BertModel", "BertConfig", SMALL, {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)},
             {"attention": 1, ONE_PRODUCT: 1, "linear + gelu": 1, "linear + tanh": 1}),
    "gpt2": ("GPT2Model", "GPT2Config", SMALL_GPT, {"input_ids": IDS},
             {"gelu (tanh)": 1, "attention": 1, "linear + gelu_tanh": 1}),
    "llama": ("LlamaModel", "LlamaConfig", {**SMALL, "num_key_value_heads": 2}, {"input_ids": IDS},
              {"rms norm": 3, "rotary embedding": 2, "attention": 1, ONE_PRODUCT: 1, "linear + silu": 1}),
    "codegen": ("CodeGenModel", "CodeGenConfig", {**SMALL_GPT, "rotary_dim": 8}, {"input_ids": IDS},
                {"gelu (tanh)": 1, "rotary embedding (interleaved)": 2, "rotary embedding (part of a head)": 2,
                 "attention": 1, COLUMNS: 1, ONE_PRODUCT: 1, "linear + gelu_tanh": 1}),
    # The encoder's attention, the decoder's, and the one across: there only keys and values share an input.
    "whisper": ("WhisperModel", "WhisperConfig", WHISPER, FEATURES,
                {"attention": 3, "factor in the weights of a linear": 3, ONE_PRODUCT: 3, "convolution + gelu": 2,
                 "linear + gelu": 2}),
    "bloom": ("BloomModel", "BloomConfig", BLOOM, {"input_ids": IDS},
              {"gelu (tanh)": 1, "attention": 1, COLUMNS: 1, ONE_PRODUCT: 1, "linear + gelu_tanh": 1}),
    "gpt-neo": ("GPTNeoModel", "GPTNeoConfig", NEO, {"input_ids": IDS},
                {"gelu (tanh)": 1, "attention": 1, ONE_PRODUCT: 1, "linear + gelu_tanh": 1}),
    "phi": ("PhiModel", "PhiConfig", SMALL, {"input_ids": IDS},
            {"gelu (tanh)": 1, "rotary embedding": 2, "rotary embedding (part of a head)": 2, "attention": 1,
             ONE_PRODUCT: 1, "linear + gelu_tanh": 1}),
}  # fmt: skip
QUICK = ("llama",)
CASES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in MODELS]


def fused_transformer(name: str, attention: str = "eager", decompose: bool = False):
    ensure_operators()
    import transformers

    model, config, settings, inputs, _ = MODELS[name]
    torch.manual_seed(0)
    chosen = getattr(transformers, config)(**settings, use_cache=False)
    if name != "codegen":
        chosen._attn_implementation = attention
    return fused_model(getattr(transformers, model)(chosen), **inputs, decompose=decompose)


@pytest.mark.parametrize("name", CASES)
def test_transformers(name):
    assert fused_transformer(name).names == MODELS[name][-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "llama", "codegen"])
def test_after_decompositions(name):
    decomposed = {"silu": 1} if name == "llama" else {}
    assert fused_transformer(name, decompose=True).names == {**MODELS[name][-1], **decomposed}


@pytest.mark.slow
def test_llama_with_the_library_function_keeps_its_few_heads():
    result = fused_transformer("llama", attention="sdpa")
    assert result.names["attention of shared heads"] == 1
    assert ONE_PRODUCT in result.names


def test_cross_attention_stays_cross_attention():
    """Each attention of torch's decoder layer keeps its inputs."""
    layer = torch.nn.TransformerDecoderLayer(64, 2, 96, batch_first=True)
    result = fused_model(layer, torch.randn(2, 6, 64), torch.randn(2, 9, 64))
    attentions = [node for node in result.after.graph.nodes if "attention" in str(node.target)]
    assert [node.args[1].meta["val"].shape[2] for node in attentions] == [6, 9]


def test_records_have_the_line_of_the_model():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.inner(x))

    (record,) = fused_model(Model(), torch.randn(2, 8)).records
    assert record.result == "linear" and record.nodes == ("relu", "addmm")
    assert record.source.endswith("return torch.relu(self.inner(x))")


def test_cost_is_linear_in_the_depth():
    """Counts calls, not seconds."""

    def steps(depth):
        def function(x, w, b):
            for _ in range(depth):
                y = torch.addmm(b, x, w)
                y = 0.5 * y * (1 + torch.erf(y / 2**0.5))
                x = (torch.softmax(y[None] @ y.mT[None] / 4, -1) @ y[None])[0]
            return x

        result = fused(function, torch.randn(8, 16), torch.randn(16, 16), torch.randn(16), statics=(1, 2))
        assert result.names == {"gelu (erf)": depth, "linear + gelu": depth, "attention": depth}
        graph_module = normalise(result.before)
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        profile = cProfile.Profile()
        profile.runcall(fuse, graph_module, placeholders[1:])
        return pstats.Stats(profile).total_calls

    assert steps(16) < 4.4 * steps(4)
