"""Kinds of torchvision's models: their inputs, and how they are built without a download."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.zoo.before_selection import NOTE, BeforeSelection
from torch_ttnn.zoo.entry import ComparedPart, ModelEntry
from torch_ttnn.zoo.inputs import Argument, Clip, Listed, image, takes
from torch_ttnn.zoo.sources import Torchvision


@dataclass(frozen=True)
class Task:
    """A kind of torchvision's models."""

    module: str  # within torchvision.models
    description: str
    arguments: tuple[Argument, ...]
    untrained: Mapping[str, Any] = field(default_factory=dict)  # settings that only random weights need
    needs_values: bool = False
    compared: ComparedPart | None = None


NO_DOWNLOAD = {"weights_backbone": None}  # the default is a pretrained backbone

TASKS: Mapping[str, Task] = {
    "classification": Task("", "image classification", (image(224),)),
    # The sizes at which torchvision evaluates them.
    "segmentation": Task("segmentation", "semantic segmentation", (image(520),), NO_DOWNLOAD),
    "detection": Task(
        "detection",
        "object detection",
        (Listed(image(480, 640)),),
        NO_DOWNLOAD,
        needs_values=True,
        compared=ComparedPart(BeforeSelection, NOTE),
    ),
    "video": Task("video", "video classification", (Clip(3, 16, 112, 112),)),
    "optical_flow": Task("optical_flow", "optical flow", (image(368, 496), image(368, 496))),
}

# Models whose inputs differ from the rest of their kind.
INPUTS: Mapping[str, tuple[Argument, ...]] = {
    "inception_v3": (image(299),),  # smaller images do not suit its auxiliary classifier
    "ssd300_vgg16": (Listed(image(300)),),
    "ssdlite320_mobilenet_v3_large": (Listed(image(320)),),
    **dict.fromkeys(("s3d", "mvit_v1_b", "mvit_v2_s", "swin3d_b", "swin3d_s", "swin3d_t"), (Clip(3, 16, 224, 224),)),
}

# Untrained networks have low scores for all boxes. Without a threshold they keep the best 100, so that later stages
# process boxes, as in trained networks.
NO_THRESHOLD: Mapping[str, str] = {"rcnn": "box_score_thresh", "retinanet": "score_thresh", "fcos": "score_thresh"}

# Batch sizes for training: a batch norm needs two values per channel, which these do not have with one image.
TRAINING_BATCH: Mapping[str, int] = {"inception_v3": 2}


def entry(
    name: str, kind: str = "classification", family: str = "", settings: Mapping[str, Any] | None = None, **rest: Any
) -> ModelEntry:
    """A row for a model of torchvision by its name there; `settings` differ from its defaults."""
    task = TASKS[kind]
    arguments = INPUTS.get(name, task.arguments)
    thresholds = {setting: 0.0 for part, setting in NO_THRESHOLD.items() if part in name}
    return ModelEntry(
        name=name,
        family=family or name.split("_")[0],
        task=task.description,
        architecture=Torchvision(name, settings or {}, untrained={**task.untrained, **thresholds}),
        **{"feed": takes(*arguments), "needs_values": task.needs_values, "compared": task.compared, **rest},
    )
