"""Models that say where things are in an image: boxes, and a class for each pixel."""

from __future__ import annotations

from dataclasses import replace

from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import image, takes
from torch_ttnn.zoo.sources import Transformers

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
)

DETR = ModelEntry(
    name="detr-2L",
    family="detr",
    task="object detection",
    architecture=Transformers(
        "DetrForObjectDetection",
        "DetrConfig",
        {
            "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
            "backbone_config": {"model_type": "resnet", "depths": [1, 1, 1, 1], "out_features": ["stage4"]},
            "encoder_layers": 2, "decoder_layers": 2, "num_labels": 91,
            "init_std": 0.06,
        },
    ),
    feed=takes(image(128)),
    reduced="2 + 2 layers in place of 6 + 6, one block a stage in place of 3, 4, 6, 3, images of 128 × 128.",
)  # fmt: skip

YOLOS = ModelEntry(
    name="yolos-2L",
    family="yolos",
    task="object detection",
    architecture=Transformers(
        "YolosForObjectDetection",
        "YolosConfig",
        {
            "hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "num_hidden_layers": 2,
            "image_size": [128, 192], "num_labels": 91, "initializer_range": 0.1,
        },
    ),
    feed=takes(image(128, 192)),
    reduced="2 layers in place of 12, images of 128 × 192 in place of 800 × 1333.",
)  # fmt: skip

ENTRIES = (
    SEGFORMER,
    replace(
        SEGFORMER,
        name="segformer-b0-128px",
        feed=takes(image(128)),
        reduced="images of 128 × 128 in place of 512 × 512.",
    ),
    DETR,
    YOLOS,
)
