"""Object detection and semantic segmentation."""

from __future__ import annotations

from dataclasses import replace

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import image, takes
from torch_ttnn.zoo.networks.yolov3 import YOLOv3
from torch_ttnn.zoo.networks.yolov5 import YOLOv5s
from torch_ttnn.zoo.sources import Ours, Transformers
from torch_ttnn.zoo.torchvision_kinds import entry as torchvision

SEGFORMER = ModelEntry(
    name="segformer-b0",
    family="segformer",
    task="semantic segmentation",
    architecture=Transformers(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {"num_labels": 150},
        hub="nvidia/segformer-b0-finetuned-ade-512-512",
    ),
    feed=takes(image(512)),
    train=True,
)

DETR = ModelEntry(
    name="detr",
    family="detr",
    task="object detection",
    architecture=Transformers(
        "DetrForObjectDetection",
        "DetrConfig",
        {
            "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
            "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]},
            "num_labels": 91,
            "init_std": 0.06,
        },
    ),
    feed=takes(image(800, 1066)),
)  # fmt: skip

YOLOS = ModelEntry(
    name="yolos-tiny",
    family="yolos",
    task="object detection",
    architecture=Transformers(
        "YolosForObjectDetection",
        "YolosConfig",
        {
            "hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "image_size": [800, 1333],
            "use_mid_position_embeddings": False, "num_labels": 91, "initializer_range": 0.1,
        },
        hub="hustvl/yolos-tiny",
    ),
    feed=takes(image(800, 1333)),
)  # fmt: skip

ENTRIES = (
    SEGFORMER,
    replace(
        SEGFORMER,
        name="segformer-b0-128px",
        feed=takes(image(128)),
        reduced="images of 128 × 128 in place of 512 × 512.",
        train=False,
    ),
    DETR,
    replace(
        DETR.resized(
            "detr-2L",
            "2 + 2 layers in place of 6 + 6, one block a stage in place of 3, 4, 6, 3, images of 128 × 128.",
            encoder_layers=2,
            decoder_layers=2,
            backbone_config={"model_type": "resnet", "depths": [1, 1, 1, 1], "out_features": ["stage4"]},
        ),
        feed=takes(image(128)),
    ),
    YOLOS,
    replace(
        YOLOS.resized(
            "yolos-2L",
            "2 layers in place of 12, images of 128 × 192 in place of 800 × 1333.",
            num_hidden_layers=2,
            image_size=[128, 192],
            use_mid_position_embeddings=True,
        ),
        feed=takes(image(128, 192)),
    ),
    ModelEntry("yolov3", "yolo", "object detection", Ours(YOLOv3), takes(image(512))),
    ModelEntry("yolov5s", "yolo", "object detection", Ours(YOLOv5s), takes(image(512))),
    torchvision("ssd300_vgg16", "detection", family="ssd"),
    torchvision("ssdlite320_mobilenet_v3_large", "detection", family="ssd"),
    torchvision("fasterrcnn_mobilenet_v3_large_320_fpn", "detection", family="rcnn"),
    torchvision(
        "retinanet_resnet50_fpn",
        "detection",
        family="retinanet",
        settings={"min_size": 320, "max_size": 480},
        reduced="images of 320 × 426 in place of 800 × 1066.",
    ),
)
