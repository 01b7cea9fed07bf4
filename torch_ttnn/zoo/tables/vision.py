"""Image classifiers of torchvision and transformers, and small ones of this package."""

from __future__ import annotations

from typing import Any

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import image, takes
from torch_ttnn.zoo.networks.hardnet import HarDNet68
from torch_ttnn.zoo.networks.mnist import MnistNet
from torch_ttnn.zoo.sources import Architecture, Ours, Timm, Torchvision, Transformers
from torch_ttnn.zoo.torchvision_kinds import entry as torchvision


def classifier(name: str, family: str, architecture: Architecture, *, size: int = 224, **rest: Any) -> ModelEntry:
    """A row for a model of one RGB image."""
    return ModelEntry(name, family, "image classification", architecture, takes(image(size)), **rest)


VIT = classifier(
    "vit-base",
    "vit",
    Transformers("ViTForImageClassification", "ViTConfig", {"num_labels": 1000}, hub="google/vit-base-patch16-224"),
    train=True,
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
    ModelEntry("mnist-cnn", "mnist", "image classification", Ours(MnistNet), takes(image(28, channels=1)), train=True),
    classifier("resnet18", "resnet", Torchvision("resnet18"), train=True),
    classifier(
        "resnet18-32px",
        "resnet",
        Torchvision("resnet18", {"num_classes": 10}),
        size=32,
        reduced="images of 32 × 32 in place of 224 × 224, 10 classes in place of 1000.",
        train=True,
    ),
    torchvision("resnet34"),
    classifier("resnet50", "resnet", Torchvision("resnet50"), train=True),
    torchvision("resnet101"),
    torchvision("resnet152"),
    torchvision("resnext50_32x4d", family="resnext"),
    torchvision("resnext101_32x8d", family="resnext"),
    torchvision("resnext101_64x4d", family="resnext"),
    torchvision("wide_resnet50_2", family="resnet"),
    torchvision("wide_resnet101_2", family="resnet"),
    torchvision("alexnet"),
    torchvision("vgg11", family="vgg"),
    torchvision("vgg11_bn", family="vgg"),
    torchvision("vgg13", family="vgg"),
    torchvision("vgg13_bn", family="vgg"),
    classifier("vgg16", "vgg", Torchvision("vgg16")),
    torchvision("vgg16_bn", family="vgg"),
    torchvision("vgg19", family="vgg"),
    torchvision("vgg19_bn", family="vgg"),
    classifier("densenet121", "densenet", Torchvision("densenet121")),
    torchvision("densenet161", family="densenet"),
    torchvision("densenet169", family="densenet"),
    torchvision("densenet201", family="densenet"),
    classifier(  # as published: without the auxiliary classifiers of training
        "googlenet", "inception", Torchvision("googlenet", untrained={"aux_logits": False, "init_weights": True})
    ),
    torchvision("inception_v3"),
    classifier("mobilenetv2", "mobilenet", Torchvision("mobilenet_v2"), train=True),
    torchvision("mobilenet_v3_small"),
    torchvision("mobilenet_v3_large"),
    torchvision("mnasnet0_5", family="mnasnet"),
    torchvision("shufflenet_v2_x1_0"),
    torchvision("squeezenet1_1", family="squeezenet"),
    classifier("efficientnet-b0", "efficientnet", Torchvision("efficientnet_b0")),
    torchvision("efficientnet_v2_s", feed=takes(image(384))),
    classifier("convnext-tiny", "convnext", Torchvision("convnext_tiny")),
    torchvision("regnet_x_400mf"),
    torchvision("regnet_x_800mf"),
    torchvision("regnet_x_1_6gf"),
    torchvision("regnet_x_3_2gf"),
    torchvision("regnet_x_8gf"),
    torchvision("regnet_x_16gf"),
    torchvision("regnet_x_32gf"),
    torchvision("regnet_y_400mf"),
    torchvision("regnet_y_800mf"),
    torchvision("regnet_y_1_6gf"),
    torchvision("regnet_y_3_2gf"),
    torchvision("regnet_y_8gf"),
    torchvision("regnet_y_16gf"),
    torchvision("regnet_y_32gf"),
    torchvision("regnet_y_128gf"),
    classifier("hardnet68", "hardnet", Ours(HarDNet68), train=True),
    classifier("swin-tiny", "swin", Timm("swin_tiny_patch4_window7_224")),
    torchvision("swin_t"),
    torchvision("swin_s"),
    torchvision("swin_b"),
    torchvision("swin_v2_t", feed=takes(image(256))),
    torchvision("swin_v2_s", feed=takes(image(256))),
    torchvision("swin_v2_b", feed=takes(image(256))),
    torchvision("maxvit_t"),
    VIT,
    VIT.resized("vit-base-2L", "2 layers in place of 12.", num_hidden_layers=2),
    torchvision("vit_b_16"),
    torchvision("vit_b_32"),
    torchvision("vit_l_16"),
    torchvision("vit_l_32"),
    torchvision("vit_h_14"),
    DEIT,
    DEIT.resized("deit-2L", "2 layers in place of 12.", num_hidden_layers=2),
)
