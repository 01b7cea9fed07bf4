"""Weights that were trained here: their files and the facts in the headers."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

from safetensors import safe_open
from torch import nn

from torch_ttnn.zoo.trained.packages import TRAINED_HERE
from torch_ttnn.zoo.weights import load_weights

CHECKOUT = pathlib.Path(__file__).parents[3] / "weights" / TRAINED_HERE.module


def folder() -> pathlib.Path:
    """The folder of the files: that of the checkout this package is in, else of the installed distribution."""
    return CHECKOUT if CHECKOUT.is_dir() else TRAINED_HERE.find()


def weights_file(name: str) -> pathlib.Path:
    """The file of a model of the zoo."""
    return folder() / f"{name}.safetensors"


def facts(name: str) -> dict[str, str]:
    """Recipe, seed and the accuracy reached, from the header of the file."""
    with safe_open(str(weights_file(name)), framework="pt") as file:
        return dict(file.metadata() or {})


def load_published(name: str) -> Callable[[nn.Module], None]:
    """A function that loads the weights of a model of the zoo."""
    return lambda model: load_weights(model, weights_file(name))
