"""Inputs of models: each kind of argument is a small record that draws its values from a seeded generator.

A kind has one method, `draw(generator, batch, length)`; `length` overrides the number of tokens, if there are any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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
    """A normalised image of large patches and fine noise.

    Noise alone averages out, so a network would see the same image in every draw.
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
class Clip:
    """A video: frames along the first or second axis after the batch."""

    channels: int
    frames: int
    height: int
    width: int
    frames_first: bool = False

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        pictures = Picture(self.channels, self.height, self.width).draw(generator, batch * self.frames, length)
        film = pictures.unflatten(0, (batch, self.frames))
        return film if self.frames_first else film.transpose(1, 2).contiguous()


@dataclass(frozen=True)
class Listed:
    """A list of images with values from 0 to 1, as detection models take it."""

    picture: Picture

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> list[torch.Tensor]:
        return list(self.picture.draw(generator, batch, length).sigmoid())


@dataclass(frozen=True)
class Numbers:
    """Normal values of any shape."""

    shape: tuple[int, ...]

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        return torch.randn(batch, *self.shape, generator=generator, device="cpu")


@dataclass(frozen=True)
class Spectrogram:
    """A normalised spectrogram over frequency bins and time frames."""

    bins: int
    frames: int

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        return Picture(1, self.bins, self.frames).draw(generator, batch, length)[:, 0]


@dataclass(frozen=True)
class Tokens:
    """Token ids within the vocabulary, without the lowest ones, which are often special."""

    vocabulary: int
    length: int
    lowest: int = 5

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        shape = (batch, length or self.length)
        return torch.randint(self.lowest, self.vocabulary, shape, generator=generator, device="cpu")


@dataclass(frozen=True)
class Camera:
    """A 4 × 4 view matrix of a camera that looks at the centre of the scene."""

    distance: float

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        drawn = torch.linalg.qr(torch.randn(3, 3, generator=generator, device="cpu")).Q
        matrix = torch.eye(4, device="cpu")
        matrix[:3, :3] = drawn * torch.linalg.det(drawn)  # a rotation, not a reflection
        matrix[2, 3] = self.distance
        return matrix


@dataclass(frozen=True)
class Fixed:
    """A constant, such as a diffusion step."""

    value: float

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        return torch.full((batch,), self.value, device="cpu")


@dataclass(frozen=True)
class Padded:
    """An attention mask as tokenizers return it: ones, then zeros for padding."""

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
    """A StaticCache with some positions filled: the state in the middle of a generation.

    The model writes into it, so every draw is a new cache.
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
    """The arguments of a model's forward, in drawing order."""

    arguments: tuple[Argument, ...] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict, hash=False)

    def draw(self, seed: int, batch: int, length: int | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        generator = torch.Generator(device="cpu").manual_seed(seed)
        arguments = tuple(kind.draw(generator, batch, length) for kind in self.arguments)
        return arguments, {name: kind.draw(generator, batch, length) for name, kind in self.keywords.items()}

    def of_length(self, length: int) -> Inputs:
        """The same inputs with another number of tokens, if there are any."""
        keywords = {name: _of_length(kind, length) for name, kind in self.keywords.items()}
        return dataclasses.replace(
            self, arguments=tuple(_of_length(kind, length) for kind in self.arguments), keywords=keywords
        )


def takes(*arguments: Argument, **keywords: Argument) -> Inputs:
    """`takes(image(224))`, `takes(input_ids=Tokens(30522, 384))`: reads like the call of the model."""
    return Inputs(arguments, keywords)


def reshaped(feed: Inputs, shape: Sequence[int], model: str) -> Inputs:
    """Inputs of another shape, batch first: images, videos, tokens, or unknown inputs."""
    kinds = [*feed.arguments, *feed.keywords.values()]
    if len(shape) == 2 and any(isinstance(kind, Tokens) for kind in kinds):
        return feed.of_length(shape[1])
    if not kinds:  # the model has no known inputs
        return takes(Numbers(tuple(shape[1:])))
    others = [kind for kind in kinds if not _fits(kind, shape)]
    if others:
        names = ", ".join(sorted({type(kind).__name__ for kind in others}))
        raise ValueError(f"{model} takes {names}, which the shape {list(shape)} does not fit")
    return dataclasses.replace(
        feed,
        arguments=tuple(_of_shape(kind, shape) for kind in feed.arguments),
        keywords={name: _of_shape(kind, shape) for name, kind in feed.keywords.items()},
    )


def _fits(kind: Argument, shape: Sequence[int]) -> bool:
    pictures = isinstance(kind, Picture | Listed) and len(shape) == 4
    return pictures or (isinstance(kind, Clip) and len(shape) == 5) or isinstance(kind, Numbers)


def _of_shape(kind: Argument, shape: Sequence[int]) -> Argument:
    if isinstance(kind, Numbers):
        return Numbers(tuple(shape[1:]))
    if isinstance(kind, Clip):
        frames, channels = (shape[1], shape[2]) if kind.frames_first else (shape[2], shape[1])
        return dataclasses.replace(kind, channels=channels, frames=frames, height=shape[3], width=shape[4])
    picture = Picture(*shape[1:])
    return Listed(picture) if isinstance(kind, Listed) else picture


def _of_length(kind: Argument, length: int) -> Argument:
    if not dataclasses.is_dataclass(kind) or not any(each.name == "length" for each in dataclasses.fields(kind)):
        return kind
    return dataclasses.replace(kind, length=length)  # type: ignore[type-var]
