"""Whole text models: no host operation, moves only at inputs and outputs, results like torch's.

Small ones are compiled in every run; `make sweep` compiles those of the zoo, with realistic layers.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import torch_ttnn
from torch_ttnn import zoo
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.zoo.sources import Transformers

WIDE = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 96}
LLAMA = {**WIDE, "num_attention_heads": 4, "num_key_value_heads": 2}
GENERATES = {"vocab_size": 99, "use_cache": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


@dataclass(frozen=True)
class Small:
    """A model class, its config class, overrides of the config, and the model's arguments."""

    model: str
    config: str
    settings: dict[str, Any] = field(default_factory=dict)
    is_padded: bool = False
    extra: dict[str, tuple[int, ...]] = field(default_factory=dict)
    length: int = 13

    def build(self) -> torch.nn.Module:
        model = Transformers(self.model, self.config, self.settings).blank().eval()
        for parameter in model.parameters():
            if parameter.dim() < 2:  # a bias of zeros and a scale of ones would hide a mistake
                parameter.data += 0.1 * torch.randn_like(parameter)
        return model

    def inputs(self) -> dict[str, torch.Tensor]:
        given: dict[str, torch.Tensor] = {"input_ids": torch.randint(3, 99, (2, self.length))}
        if self.is_padded:
            given["attention_mask"] = torch.ones(2, self.length, dtype=torch.int64)
            given["attention_mask"][1, 9:] = 0
        for name, shape in self.extra.items():
            given[name] = torch.randint(3, 99, shape) if name.endswith("ids") else torch.randn(shape)
        return given


SMALL = {
    "bert": Small("BertForQuestionAnswering", "BertConfig", {**WIDE, "vocab_size": 99}, is_padded=True),
    "distilbert": Small(
        "DistilBertForQuestionAnswering", "DistilBertConfig",
        {"vocab_size": 99, "dim": 64, "n_heads": 2, "n_layers": 1, "hidden_dim": 96}, is_padded=True,
    ),
    "roberta": Small(
        "RobertaForMaskedLM", "RobertaConfig", {**WIDE, "vocab_size": 99, "pad_token_id": 1}, is_padded=True
    ),
    "albert": Small(
        "AlbertForMaskedLM", "AlbertConfig", {**WIDE, "vocab_size": 99, "embedding_size": 32}, is_padded=True
    ),
    "gpt2": Small("GPT2LMHeadModel", "GPT2Config", {**GENERATES, "n_embd": 64, "n_head": 2, "n_layer": 1}),
    "gpt2 padded": Small(
        "GPT2LMHeadModel", "GPT2Config", {**GENERATES, "n_embd": 64, "n_head": 2, "n_layer": 1}, is_padded=True
    ),
    "codegen": Small(
        "CodeGenForCausalLM", "CodeGenConfig",
        {**GENERATES, "n_embd": 64, "n_head": 4, "n_layer": 1, "rotary_dim": 8, "n_inner": 96},
    ),
    "llama": Small("LlamaForCausalLM", "LlamaConfig", {**GENERATES, **LLAMA}),
    "mistral": Small("MistralForCausalLM", "MistralConfig", {**GENERATES, **LLAMA, "sliding_window": 4}),
    "qwen2": Small("Qwen2ForCausalLM", "Qwen2Config", {**GENERATES, **LLAMA}),
    "falcon": Small("FalconForCausalLM", "FalconConfig", {**GENERATES, **WIDE, "multi_query": True}),
    "phi": Small("PhiForCausalLM", "PhiConfig", {**GENERATES, **WIDE}),
    "bloom": Small("BloomForCausalLM", "BloomConfig", {**GENERATES, "hidden_size": 64, "n_head": 2, "n_layer": 1}),
    "opt": Small(
        "OPTForCausalLM", "OPTConfig",
        {**GENERATES, "hidden_size": 64, "num_attention_heads": 2, "ffn_dim": 96, "num_hidden_layers": 1,
         "word_embed_proj_dim": 64},
    ),
    "gpt neo": Small(
        "GPTNeoForCausalLM", "GPTNeoConfig",
        {**GENERATES, "hidden_size": 64, "num_heads": 2, "num_layers": 2, "window_size": 4,
         "attention_types": [[["global", "local"], 1]]},
    ),
    "mamba": Small(
        "MambaForCausalLM", "MambaConfig", {**GENERATES, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 1},
        length=5,
    ),
    "t5": Small(
        "T5ForConditionalGeneration", "T5Config",
        {"vocab_size": 99, "d_model": 64, "d_kv": 16, "num_heads": 4, "d_ff": 96, "num_layers": 1,
         "num_decoder_layers": 1, "use_cache": False, "decoder_start_token_id": 0},
        is_padded=True, extra={"decoder_input_ids": (2, 5)},
    ),
}  # fmt: skip


def correlation(got: torch.Tensor, want: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([got.flatten().double(), want.flatten().double()]))[0, 1])


def compiled(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any], **options: Any) -> tuple[list, list, Any]:
    """The results of the compiled model and of torch, and the programs."""
    torch._dynamo.reset()
    chosen = torch_ttnn.TorchTtnnOption(device="emulator", **options)
    with torch.no_grad():
        want = zoo.tensors(model(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
        got = zoo.tensors(torch.compile(model, backend="ttnn", options=chosen)(*args, **kwargs))
    return got, want, chosen._out_fx_graphs


def assert_whole(got: list, want: list, graphs: Any, least: float) -> None:
    reasons = [f"{node.target}: {REASON[node]}" for graph in graphs for node in graph.nodes if REASON.on(node)]
    assert not reasons, "\n".join(reasons)
    for each, wanted in zip(got, want, strict=True):
        assert each.shape == wanted.shape
        assert each.isfinite().all()
        assert correlation(each, wanted) > least


@pytest.mark.parametrize("name", SMALL)
def test_small_models_run_whole_on_the_device(name):
    model, kwargs = SMALL[name].build(), SMALL[name].inputs()
    got, want, graphs = compiled(model, (), kwargs)
    assert len(graphs) == 1
    assert_whole(got, want, graphs, 0.99)


def test_weights_in_block_floats():
    model, kwargs = SMALL["bert"].build(), SMALL["bert"].inputs()
    got, want, graphs = compiled(model, (), kwargs, weights="bfloat8_b")
    assert_whole(got, want, graphs, 0.98)


TRAINED = ("bert", "gpt2", "codegen", "llama", "t5")  # in every run; the others by `make sweep`


@pytest.mark.parametrize(
    "name", [name if name in TRAINED else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_small_models_learn_on_the_device(name):
    """Every parameter's gradient is as close to torch's as that of a model in bfloat16."""
    torch._dynamo.reset()
    model, kwargs = SMALL[name].build(), SMALL[name].inputs()
    options = torch_ttnn.TorchTtnnOption(device="emulator")
    want = gradients(model, model, kwargs)
    got = gradients(model, torch.compile(model, backend="ttnn", options=options), kwargs)
    narrow = copy.deepcopy(model).bfloat16()
    near = gradients(narrow, narrow, kwargs)
    assert got.keys() == want.keys()
    assert not [node for graph in options._out_fx_graphs for node in graph.nodes if REASON.on(node)]
    least = 1e-3 * max(float(each.norm()) for each in want.values())  # gradients of keys' biases are zero
    for parameter, wanted in want.items():
        error, usual = ((made[parameter] - wanted).norm() / max(float(wanted.norm()), least) for made in (got, near))
        assert error < max(0.1, 1.5 * usual), parameter


def gradients(model: torch.nn.Module, run: Any, kwargs: dict[str, Any]) -> dict[str, torch.Tensor]:
    model.zero_grad()
    draw = torch.Generator().manual_seed(1)
    outputs = [each for each in zoo.tensors(run(**copy.deepcopy(kwargs))) if each.requires_grad]
    sum((each * torch.randn(each.shape, generator=draw)).mean() for each in outputs).backward()
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


LARGE = {
    "bert-large-qa-2L": 0.999, "gpt2-2L": 0.999, "codegen-350M-2L": 0.999, "distilbert-2L": 0.99, "roberta-2L": 0.99,
    "albert-2L": 0.99, "perceiver-mlm-2L": 0.99, "t5-small-2L": 0.99, "whisper-tiny-2L": 0.99, "clip-2L": 0.99,
    "llama-2L": 0.99, "mistral-2L": 0.99, "qwen2-2L": 0.99, "falcon-2L": 0.99, "phi-2L": 0.99, "bloom-2L": 0.99,
    "opt-2L": 0.99, "gptneo-2L": 0.99, "mamba-2L": 0.99, "bert-large-qa": 0.999, "gpt2": 0.999,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_models_of_the_zoo_run_whole_on_the_device(name):
    entry = zoo.find(name)
    args, kwargs = entry.inputs(0)
    got, want, graphs = compiled(entry.build(), args, kwargs)
    assert len(graphs) == 1
    assert_whole(got, want, graphs, LARGE[name])
