"""Models created by a function of the user: `package.module:name` or `file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Inputs
from torch_ttnn.zoo.sources import NotPublished


class FactoryError(UserError, ValueError):
    """There is no model at this address."""


@dataclass(frozen=True)
class Factory:
    """A function that returns a module, or a module and its inputs; or a class of modules."""

    address: str
    source: ClassVar[str] = "factory"

    def blank(self) -> nn.Module:
        return self.create()[0]

    def pretrained(self) -> nn.Module:
        raise NotPublished(f"{self.address} has its own weights; omit --pretrained")

    def create(self) -> tuple[nn.Module, Any]:
        """The module, and its inputs or None."""
        loaded = _load(self.address)
        result = loaded() if callable(loaded) and not isinstance(loaded, nn.Module) else loaded
        module, inputs = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
        if not isinstance(module, nn.Module):
            raise FactoryError(
                f"{self.address} returns {type(module).__name__}; it must return a torch.nn.Module, or a pair of a "
                "module and its inputs"
            )
        return module, inputs


@dataclass(frozen=True)
class FactoryInputs(Inputs):
    """Inputs that the factory returned: a tensor, a tuple of arguments, a dict of keywords, or a pair of both."""

    factory: Factory = Factory("")

    def draw(self, seed: int, batch: int, length: int | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            given = self.factory.create()[1]
        if given is None:
            raise FactoryError(
                f"{self.factory.address} returns no inputs: pass their shape (--input-shape 1,3,224,224)"
            )
        if isinstance(given, dict):
            return (), dict(given)
        if isinstance(given, tuple | list):
            pair = len(given) == 2 and isinstance(given[0], tuple | list) and isinstance(given[1], dict)
            return (tuple(given[0]), dict(given[1])) if pair else (tuple(given), {})
        return (given,), {}


def entry(address: str) -> ModelEntry:
    factory = Factory(address)
    _load(address)
    name = address.rpartition("/")[2].replace(".py:", ".").replace(":", ".")
    return ModelEntry(name, "factory", "given", factory, FactoryInputs(factory=factory))


def _load(address: str) -> Callable[..., Any]:
    where, _, path = address.rpartition(":")
    try:
        found: Any = _from_file(where) if where.endswith(".py") else _from_path(where)
        for name in path.split("."):
            found = getattr(found, name)
    except (ModuleNotFoundError, FileNotFoundError, AttributeError) as error:
        raise FactoryError(f"there is no model at {address!r}: {error}") from error
    return found


def _from_path(module: str) -> Any:
    """Also import from the working folder, after installed packages."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return importlib.import_module(module)


def _from_file(file: str) -> Any:
    path = pathlib.Path(file).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
