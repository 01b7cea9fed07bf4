"""Writes trained weights into `torch_ttnn_weights`: rounded to bfloat16, with their recipe and accuracy."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from torch_ttnn.zoo.trained.weights import weights_file
from ttnn_emulator.atomic_files import replacing


def publish(
    name: str,
    model: nn.Module,
    score: Callable[[nn.Module], float],
    recipe: Mapping[str, Any],
    path: pathlib.Path | None = None,
) -> dict[str, str]:
    """Score the model before and after rounding its weights in place, and write the rounded weights."""
    exact = score(model)
    rounded = {
        key: value.to(torch.bfloat16).contiguous() if value.is_floating_point() else value
        for key, value in model.state_dict().items()
    }
    model.load_state_dict(rounded)
    facts = {
        "model": name,
        "recipe": json.dumps(recipe),
        "accuracy, float32 weights": f"{exact:.2f} %",
        "accuracy, bfloat16 weights": f"{score(model):.2f} %",
        "torch": torch.__version__,
    }
    target = path or weights_file(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        save_file(rounded, temporary, metadata=facts)
    return facts
