"""One model of the zoo: its description, architecture and inputs."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torch_ttnn.zoo.initialisation import fit_to_inputs, randomise_constants
from torch_ttnn.zoo.inputs import Inputs
from torch_ttnn.zoo.sources import Architecture, Transformers
from torch_ttnn.zoo.weights import load_weights

STATISTICS_BATCH = 4  # images for running statistics; a single one has no variance at 1 × 1 pixels


@dataclass(frozen=True)
class ComparedPart:
    """A part of a model whose outputs are compared in place of the whole model's."""

    part: Callable[[nn.Module], nn.Module]
    note: str  # a sentence that says what it is, and why


@dataclass(frozen=True)
class ModelEntry:
    """A row of the zoo.

    >>> from torch_ttnn import zoo
    >>> entry = zoo.find("mnist-cnn")
    >>> model = entry.build()
    >>> arguments, keywords = entry.inputs(seed=0)
    >>> model(*arguments, **keywords).shape
    torch.Size([1, 10])
    """

    name: str
    family: str
    task: str
    architecture: Architecture
    feed: Inputs
    reduced: str = ""  # a sentence that says what is smaller than in the published model; empty for real size
    batch: int = 1
    needs_values: bool = False  # whether control flow depends on values, e.g. which boxes are kept
    compared: ComparedPart | None = None  # what is compared, if not all outputs
    train: bool = False  # whether the results have a training row as well

    @property
    def source(self) -> str:
        return self.architecture.source

    @property
    def size(self) -> str:
        return "reduced" if self.reduced else "full"

    def build(self, weights: str | pathlib.Path | None = None, *, seed: int = 0, randomise: bool = True) -> nn.Module:
        """The model in eval mode.

        `weights` is None for random ones, the same for the same seed; "pretrained" for the published ones, through
        the library's own download; or the path of a safetensors file, or of a folder with one. The model is
        run once to choose random weights that all affect the result (`zoo.initialisation`), unless `randomise` is
        False.
        """
        if weights == "pretrained":
            return self.architecture.pretrained().eval()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self.architecture.blank().eval()
        if weights is not None:
            load_weights(model, weights)
            return model
        if not randomise:
            return model
        randomise_constants(model, seed)
        fit_to_inputs(model, lambda: self.inputs(seed, batch=STATISTICS_BATCH), seed)
        return model

    def inputs(
        self, seed: int = 0, *, batch: int | None = None, length: int | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh arguments and keywords of a call; `length` is the number of tokens, if there are any."""
        return self.feed.draw(seed, batch or self.batch, length)

    def resized(self, name: str, reduced: str, **settings: Any) -> ModelEntry:
        """The same model of transformers with other settings of its config."""
        if not isinstance(self.architecture, Transformers):
            raise TypeError(f"{self.name} comes from {self.source}: only models of transformers have a config")
        return replace(self, name=name, reduced=reduced, architecture=self.architecture.with_settings(**settings))


def tensors(output: Any) -> list[torch.Tensor]:
    """All tensors of a model's output, in order: of tuples, dictionaries, ModelOutput objects and key/value caches.

    >>> [t.shape for t in tensors({"logits": torch.zeros(2, 3), "hidden": (torch.zeros(1), None)})]
    [torch.Size([2, 3]), torch.Size([1])]
    """
    return list(_tensors(output))


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif output is None or isinstance(output, bool | int | float | str):
        return
    else:
        for part in parts(output):
            yield from _tensors(part)


def parts(output: Any) -> list[Any]:
    """The items of a container."""
    if isinstance(output, Mapping):  # ModelOutput is one
        return list(output.values())
    if isinstance(output, tuple | list):
        return list(output)
    for names in CACHE_PARTS:  # caches of transformers are plain objects
        if all(hasattr(output, name) for name in names):
            return [getattr(output, name) for name in names]
    raise TypeError(f"a model's output contains {type(output).__name__}, which zoo.tensors() does not know")


CACHE_PARTS = (("self_attention_cache", "cross_attention_cache"), ("layers",), ("keys", "values"))
