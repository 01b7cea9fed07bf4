"""Entries of the zoo with trained weights."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Padded, Tokens, image, takes
from torch_ttnn.zoo.sources import Ours
from torch_ttnn.zoo.trained import networks, photographs, sentences
from torch_ttnn.zoo.trained.weights import load_published
from torch_ttnn.zoo.weights import load_weights

SENTENCE_TOKENS = 32


class OfTorchvision(Ours):
    """A network of torchvision with a modification of ours."""

    source: ClassVar[str] = "torchvision"


class OfTransformers(Ours):
    """A network of transformers wrapped in one of ours."""

    source: ClassVar[str] = "transformers"


@dataclass(frozen=True)
class TrainedEntry(ModelEntry):
    """An entry with weights: `build()` loads them for any seed."""

    load: Callable[[nn.Module], None] = lambda model: None

    def build(self, weights: str | pathlib.Path | None = None, *, seed: int = 0, randomise: bool = True) -> nn.Module:
        """The model in eval mode, with its trained weights or those of a safetensors file."""
        with torch.random.fork_rng(devices=[]):
            model = self.architecture.blank().eval()
        if weights is None or weights == "pretrained":
            self.load(model)
        else:
            load_weights(model, weights)
        return model


ENTRIES = (
    TrainedEntry(
        "mnist-cnn-trained",
        "mnist",
        "image classification",
        Ours(networks.mnist_net),
        takes(image(networks.EDGE, channels=1)),
        load=load_published("mnist-cnn-trained"),
    ),
    TrainedEntry(
        "resnet18-cifar10",
        "resnet",
        "image classification",
        OfTorchvision(networks.cifar_resnet18),
        takes(image(networks.EDGE)),
        load=load_published("resnet18-cifar10"),
    ),
    TrainedEntry(
        "minilm-l6-trained",
        "bert",
        "sentence embedding",
        OfTransformers(sentences.SentenceEncoder),
        takes(input_ids=Tokens(sentences.VOCABULARY, SENTENCE_TOKENS), attention_mask=Padded(SENTENCE_TOKENS, 0.25)),
        load=sentences.load,
    ),
    TrainedEntry(
        "efficientnet-lite0-trained",
        "efficientnet",
        "image classification",
        photographs.LITE0,
        takes(image(photographs.EDGE)),
        load=photographs.load,
    ),
)
