"""timm's models, each with an image of its native size as input."""

from __future__ import annotations

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import Picture, takes
from torch_ttnn.zoo.sources import Timm, library

USUAL_SIZE = (3, 224, 224)


def names() -> list[str]:
    return library("timm").list_models()


def knows(name: str) -> bool:
    """Names may have a tag of their weights: `dla34.in1k`."""
    return library("timm").is_model(name)


def entry(name: str) -> ModelEntry:
    timm = library("timm")
    settings = timm.get_pretrained_cfg(name)
    channels, height, width = settings.input_size if settings is not None else USUAL_SIZE
    family = timm.models._registry._model_to_module.get(name.split(".")[0], name.split("_")[0])
    return ModelEntry(
        name=f"timm.{name}",  # other libraries have a resnet18 as well
        family=family,
        task="image classification",
        architecture=Timm(name),
        feed=takes(Picture(channels, height, width)),
    )
