"""Where architectures come from: torchvision, timm, transformers, diffusers, or this package.

Each source is a record that builds the network with fresh weights (`blank`) or with the published ones (`pretrained`).
Libraries are imported when a network is built, not before.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, ClassVar, Protocol

from torch import nn

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.torchvision_ops import allow_operators, ensure_operators


class LibraryMissing(UserError, ImportError):
    """A model comes from an optional library that is not installed."""


class NotPublished(UserError, ValueError):
    """Pretrained weights were requested for a model that has none."""


def library(name: str) -> ModuleType:
    """A module of an optional library."""
    package = name.split(".")[0]
    ensure_operators()
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is installed, but one of its dependencies is not
            raise
        raise LibraryMissing(
            f"the model comes from {package}, which is not installed: pip install {package}"
        ) from error
    module = importlib.import_module(name)
    allow_operators()
    return module


class Architecture(Protocol):
    """A network without weights."""

    source: ClassVar[str]

    def blank(self) -> nn.Module: ...

    def pretrained(self) -> nn.Module: ...


@dataclass(frozen=True)
class Transformers:
    """A model class of transformers and the settings of its config that are not defaults."""

    model: str
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    hub: str = ""  # the published weights of exactly this config
    source: ClassVar[str] = "transformers"

    def library(self) -> ModuleType:
        return library(self.source)

    def configuration(self) -> Any:
        return getattr(self.library(), self.config)(**self.settings)

    def blank(self) -> nn.Module:
        return getattr(self.library(), self.model)(self.configuration())

    def pretrained(self) -> nn.Module:
        if not self.hub:
            raise NotPublished(f"{self.model} with {dict(self.settings)} has no published weights; pass a path")
        kept = {name: value for name, value in self.settings.items() if name in RUN_TIME_SETTINGS}
        # Only safetensors: pickled checkpoints can run code when they are loaded.
        return getattr(self.library(), self.model).from_pretrained(self.hub, use_safetensors=True, **kept)

    def with_settings(self, **settings: Any) -> Transformers:
        """The same architecture in another size, which has no published weights."""
        return replace(self, settings={**self.settings, **settings}, hub="")


RUN_TIME_SETTINGS = ("use_cache",)  # settings of execution, not of weights


@dataclass(frozen=True)
class Torchvision:
    """A model of torchvision by its name there."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    untrained: Mapping[str, Any] = field(default_factory=dict, hash=False)  # settings that only random weights need
    source: ClassVar[str] = "torchvision"

    def blank(self) -> nn.Module:
        settings = {**self.untrained, **self.settings}
        return library("torchvision.models").get_model(self.model, weights=None, **settings)

    def pretrained(self) -> nn.Module:
        if self.settings:
            raise NotPublished(f"{self.model} with {dict(self.settings)} has no published weights; pass a path")
        with weights_only():
            return library("torchvision.models").get_model(self.model, weights="DEFAULT", progress=False)


@dataclass(frozen=True)
class Timm:
    """A model of timm by its name there."""

    model: str
    source: ClassVar[str] = "timm"

    def blank(self) -> nn.Module:
        return library(self.source).create_model(self.model, pretrained=False)

    def pretrained(self) -> nn.Module:
        with weights_only():
            return library(self.source).create_model(self.model, pretrained=True)


@dataclass(frozen=True)
class Diffusers:
    """A network of diffusers and the settings that differ from its defaults."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    source: ClassVar[str] = "diffusers"

    def blank(self) -> nn.Module:
        return getattr(library(self.source), self.model)(**self.settings)

    def pretrained(self) -> nn.Module:
        raise NotPublished(f"weights of {self.model} come with a pipeline of several networks; pass a path")


@dataclass(frozen=True)
class Ours:
    """A network defined in this package."""

    network: Callable[[], nn.Module]
    source: ClassVar[str] = "ours"

    def blank(self) -> nn.Module:
        return self.network()

    def pretrained(self) -> nn.Module:
        raise NotPublished(f"there are no published weights of {self.network.__name__}; pass a path")


@contextmanager
def weights_only() -> Iterator[None]:
    """Load downloaded pickles with `weights_only=True`, which torchvision's loader does not set."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before
