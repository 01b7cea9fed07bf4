"""Shared by the tests of the tracer: traces of a model, and small models of all kinds."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from torch_ttnn import zoo
from torch_ttnn.tracer.records import Trace, files, read
from torch_ttnn.zoo.torchvision_ops import ensure_operators


def traces(folder: pathlib.Path, sub: str = "raw") -> list[Trace]:
    return [read(path) for path in files(folder / sub)]


def counts(found: Iterable[Trace], phase: str) -> Counter[str]:
    """How often each operation occurs in the traces of a phase."""
    return Counter(record.op_type for trace in found if trace.phase == phase for record in trace.records)


def loss(output: Any) -> torch.Tensor:
    return sum([each.float().sum() for each in zoo.tensors(output) if each.requires_grad])  # type: ignore[return-value]


@dataclass(frozen=True)
class Sample:
    """A model and an input; small, but with every operation that the published one has."""

    build: Callable[[], torch.nn.Module]
    feed: Callable[[], torch.Tensor]


def _image(size: int, batch: int = 2) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(batch, 3, size, size)


def _tokens() -> torch.Tensor:
    return torch.randint(0, 99, (1, 12))


def _torchvision(name: str) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        ensure_operators()
        import torchvision

        return getattr(torchvision.models, name)()

    return build


def _vision_transformer() -> torch.nn.Module:
    ensure_operators()
    from torchvision.models import VisionTransformer

    return VisionTransformer(32, 8, 2, 2, 32, 64)


def _timm(name: str) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        ensure_operators()
        import timm

        return timm.create_model(name)

    return build


def _transformer(name: str, **settings: Any) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        ensure_operators()
        import transformers

        config = getattr(transformers, f"{name}Config")(vocab_size=99, bos_token_id=0, eos_token_id=0, **settings)
        return getattr(transformers, f"{name}Model")(config)

    return build


TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SAMPLES = {
    "resnet18": Sample(_torchvision("resnet18"), _image(32)),
    "mobilenet_v3_small": Sample(_torchvision("mobilenet_v3_small"), _image(32)),
    "squeezenet1_1": Sample(_torchvision("squeezenet1_1"), _image(64)),
    "shufflenet_v2_x0_5": Sample(_torchvision("shufflenet_v2_x0_5"), _image(32)),
    "vision_transformer": Sample(_vision_transformer, _image(32)),
    "convnext_atto": Sample(_timm("convnext_atto"), _image(32)),
    "bert": Sample(_transformer("Bert", **TINY), _tokens),
    "gpt2": Sample(_transformer("GPT2", n_embd=32, n_layer=2, n_head=2), _tokens),
    "llama": Sample(_transformer("Llama", **TINY), _tokens),
    "t5_encoder": Sample(
        lambda: _transformer("T5", d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)().encoder, _tokens
    ),
    "mnist": Sample(lambda: zoo.find("mnist-cnn").build(), lambda: zoo.find("mnist-cnn").inputs(seed=0)[0][0]),
}
QUICK = ("mnist", "bert", "vision_transformer")  # the others take longer to compile
MODELS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SAMPLES]
