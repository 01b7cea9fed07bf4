"""Models of transformers by class, config, type, hub name or folder, built from their config with few layers."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from torch import nn

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.catalog.transformers_inputs import inputs_of
from torch_ttnn.zoo.catalog.transformers_table import HUB, REDUCED, SETTINGS
from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.reduction import reduced
from torch_ttnn.zoo.sources import NotPublished, library


class NoConfig(UserError, ValueError):
    """The config of a published model could not be loaded."""


@dataclass(frozen=True)
class Configured:
    """A class of transformers with the default config or that of a published model, reduced to a number of layers."""

    model: str
    config: str
    origin: str = ""  # a name on the hub, or a folder
    layers: int | None = None
    source: ClassVar[str] = "transformers"

    def configuration(self) -> Any:
        """The config, without key/value caches: a single pass needs none."""
        known = REDUCED.get(self.model) if self.layers is not None and not self.origin else None
        settings = {**SETTINGS.get(self.model, {}), **(known or {})}
        config = published(self.origin) if self.origin else getattr(library("transformers"), self.config)(**settings)
        if self.layers is not None and known is None:
            config = reduced(config, self.layers)
        for each in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))):
            if hasattr(each, "use_cache"):
                each.use_cache = False
        return config

    def blank(self) -> nn.Module:
        return getattr(library("transformers"), self.model)(self.configuration())

    def pretrained(self) -> nn.Module:
        if not self.origin:
            raise NotPublished(f"the class {self.model} has no weights; name a model of the hub, or pass a path")
        # Only safetensors: pickled checkpoints can run code when they are loaded.
        return getattr(library("transformers"), self.model).from_pretrained(self.origin, use_safetensors=True)


def names() -> list[str]:
    """All classes of models."""
    auto = _auto()
    return sorted({name for value in auto.MODEL_MAPPING_NAMES.values() for name in _each(value)})


def knows(name: str) -> bool:
    return _is_published(name) or _class_of(name) is not None


def entry(name: str, layers: int | None) -> ModelEntry:
    """The model of that name with inputs for its config and `forward`."""
    model = name if not _is_published(name) else _published_class(name)
    model = _class_of(model) or model
    cls = getattr(library("transformers"), model)
    architecture = Configured(model, cls.config_class.__name__, name if _is_published(name) else "", layers)
    config = architecture.configuration()
    return ModelEntry(
        name=pathlib.PurePath(name).name if pathlib.Path(name).is_dir() else name if "/" in name else model,
        family=config.model_type,
        task=cls.__name__.partition("For")[2] or "features",
        architecture=architecture,
        feed=inputs_of(cls, config),
        reduced="" if layers is None else f"{layers} layers per stack, or as few as it supports.",
    )


def published(origin: str) -> Any:
    """The config of a model on the hub or in a folder; some configs of the hub are stored here and need no network."""
    transformers = library("transformers")
    if origin in HUB:
        _, config, settings = HUB[origin]
        return getattr(transformers, config)(**settings)
    try:
        return transformers.AutoConfig.from_pretrained(origin)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise NoConfig(
            f"the config of {origin!r} could not be loaded: {reason} Without a network, name a class "
            "(transformers:BertForQuestionAnswering) or a folder with its config.json."
        ) from error


def _is_published(name: str) -> bool:
    return "/" in name or (pathlib.Path(name) / "config.json").is_file()


def _published_class(name: str) -> str:
    if name in HUB:
        return HUB[name][0]
    config = published(name)
    return (getattr(config, "architectures", None) or [config.model_type])[0]


def _class_of(name: str) -> str | None:
    """The model class for the name of a class, a config or a type."""
    transformers, auto = library("transformers"), _auto()
    types = library("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    by_config = {config: kind for kind, config in types.items()}
    kind = name if name in types else by_config.get(name)
    if kind is not None:
        known = _each(auto.MODEL_MAPPING_NAMES.get(kind, ()))
        return known[0] if known else None
    found = getattr(transformers, name, None) if name.isidentifier() else None
    return name if isinstance(found, type) and issubclass(found, nn.Module) and hasattr(found, "config_class") else None


def _auto() -> ModuleType:
    return library("transformers.models.auto.modeling_auto")


def _each(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
