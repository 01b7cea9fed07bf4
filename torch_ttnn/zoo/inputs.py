"""What models are fed: each kind of argument is a small record that draws its values from a seeded generator.

A kind has one method, `draw(generator, batch, length)`; `length` replaces the number of tokens where there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn

from torch_ttnn.zoo.sources import Transformers


class Argument(Protocol):
    """One argument of a model's forward."""

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> Any: ...


@dataclass(frozen=True)
class Picture:
    """A normalised image of large patches and fine grain.

    Grain alone would look the same to a network in every draw, once it is averaged.
    """

    channels: int
    height: int
    width: int

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        patches = torch.randn(batch, self.channels, 4, 4, generator=generator, device="cpu")
        grain = torch.randn(batch, self.channels, self.height, self.width, generator=generator, device="cpu")
        return nn.functional.interpolate(patches, size=(self.height, self.width), mode="bilinear") + 0.5 * grain


def image(size: int, width: int | None = None, channels: int = 3) -> Picture:
    return Picture(channels, size, width or size)


@dataclass(frozen=True)
class Spectrogram:
    """Loudness over frequency bins and time frames, normalised."""

    bins: int
    frames: int

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        return Picture(1, self.bins, self.frames).draw(generator, batch, length)[:, 0]


@dataclass(frozen=True)
class Tokens:
    """Token numbers below the size of the vocabulary, none of the lowest, which are often special."""

    vocabulary: int
    length: int
    lowest: int = 5

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        shape = (batch, length or self.length)
        return torch.randint(self.lowest, self.vocabulary, shape, generator=generator, device="cpu")


@dataclass(frozen=True)
class Padded:
    """An attention mask as tokenizers give it: ones, then zeros where the text is shorter than the longest."""

    length: int
    share: float = 0.1  # of padding at the end

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        tokens = length or self.length
        mask = torch.ones(batch, tokens, dtype=torch.int64, device="cpu")
        mask[:, tokens - int(tokens * self.share) :] = 0
        return mask


@dataclass(frozen=True)
class Segments:
    """Token types of a pair of texts: a question of zeros, then a context of ones."""

    length: int
    first: float = 0.1  # share of the tokens in the first text

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        tokens = length or self.length
        types = torch.ones(batch, tokens, dtype=torch.int64, device="cpu")
        types[:, : int(tokens * self.first)] = 0
        return types


@dataclass(frozen=True)
class FilledCache:
    """A StaticCache of a fixed size in which some positions are taken: the state in the middle of a generation.

    The model writes into it, so every draw is a new one.
    """

    architecture: Transformers
    heads: int
    head_size: int
    positions: int = 64
    filled: int = 32

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> Any:
        cache = self.architecture.library().StaticCache(self.architecture.configuration(), self.positions)
        cache.early_initialization(batch, self.heads, self.head_size, torch.float32, torch.device("cpu"))
        shape = (batch, self.heads, self.filled, self.head_size)
        for layer in cache.layers:
            for kept in (layer.keys, layer.values):
                kept[:, :, : self.filled] = torch.randn(shape, generator=generator, device="cpu")
            layer.cumulative_length.fill_(self.filled)
        return cache


@dataclass(frozen=True)
class Inputs:
    """The arguments of a model's forward, in the order in which they are drawn."""

    arguments: tuple[Argument, ...] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict, hash=False)

    def draw(self, seed: int, batch: int, length: int | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        generator = torch.Generator(device="cpu").manual_seed(seed)
        arguments = tuple(kind.draw(generator, batch, length) for kind in self.arguments)
        return arguments, {name: kind.draw(generator, batch, length) for name, kind in self.keywords.items()}


def takes(*arguments: Argument, **keywords: Argument) -> Inputs:
    """`takes(image(224))`, `takes(input_ids=Tokens(30522, 384))`: reads like the call of the model."""
    return Inputs(arguments, keywords)
