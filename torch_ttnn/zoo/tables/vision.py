"""Models that classify images, convolutional and of attention."""

from __future__ import annotations

from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import image, takes
from torch_ttnn.zoo.mnist import MnistNet
from torch_ttnn.zoo.sources import Architecture, Ours, Timm, Torchvision, Transformers


def classifier(name: str, family: str, architecture: Architecture, *, size: int = 224, **rest: Any) -> ModelEntry:
    """A row for a model of one RGB image."""
    return ModelEntry(name, family, "image classification", architecture, takes(image(size)), **rest)


VIT = classifier(
    "vit-base",
    "vit",
    Transformers("ViTForImageClassification", "ViTConfig", {"num_labels": 1000}, hub="google/vit-base-patch16-224"),
)
DEIT = classifier(
    "deit-base",
    "deit",
    Transformers(
        "DeiTForImageClassificationWithTeacher",
        "DeiTConfig",
        {"num_labels": 1000},
        hub="facebook/deit-base-distilled-patch16-224",
    ),
)

ENTRIES = (
    ModelEntry("mnist-cnn", "mnist", "image classification", Ours(MnistNet), takes(image(28, channels=1))),
    classifier("resnet18", "resnet", Torchvision("resnet18")),
    classifier(
        "resnet18-32px",
        "resnet",
        Torchvision("resnet18", {"num_classes": 10}),
        size=32,
        reduced="images of 32 × 32 in place of 224 × 224, 10 classes in place of 1000.",
    ),
    classifier("resnet50", "resnet", Torchvision("resnet50")),
    classifier("vgg16", "vgg", Torchvision("vgg16")),
    classifier("densenet121", "densenet", Torchvision("densenet121")),
    classifier("mobilenetv2", "mobilenet", Torchvision("mobilenet_v2")),
    classifier("efficientnet-b0", "efficientnet", Torchvision("efficientnet_b0")),
    classifier("convnext-tiny", "convnext", Torchvision("convnext_tiny")),
    classifier("swin-tiny", "swin", Timm("swin_tiny_patch4_window7_224")),
    VIT,
    VIT.resized("vit-base-2L", "2 layers in place of 12.", num_hidden_layers=2),
    DEIT,
    DEIT.resized("deit-2L", "2 layers in place of 12.", num_hidden_layers=2),
)
