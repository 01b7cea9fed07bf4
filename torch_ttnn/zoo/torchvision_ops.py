"""Makes torchvision importable, and its detection models usable, where its compiled operators cannot be loaded.

torchvision registers fake kernels of `torchvision::nms` and `torchvision::qnms` on import. Its wheels for
CUDA keep these operators in a library that needs CUDA; with a CPU build of torch it does not load, and the import
(also timm's, and that of many models of transformers) ends in "operator torchvision::nms does not exist". The import
works if the two operators are defined before, in plain torch. Detection models also need `roi_align`, and
`allow_operators` to let torchvision's functions call both. If torchvision's own library loads, its operators are
used.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import pathlib
import sys
from typing import Any

import torch

from torch_ttnn.zoo.region_pooling import roi_align, roi_align_backward

POOLING = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": f"roi_align(Tensor input, Tensor rois, {POOLING}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward": (
        f"_roi_align_backward(Tensor grad, Tensor rois, {POOLING}, {SIZES}, int sampling_ratio, bool aligned) -> Tensor"
    ),
}


def non_maximum_suppression(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Indices of the kept boxes, best score first: a box is dropped if it overlaps a better one that is kept.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
    >>> non_maximum_suppression(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    order = scores.argsort(descending=True, stable=True)
    boxes = boxes[order].double()
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    corner = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    opposite = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = (opposite - corner).clamp(min=0).prod(dim=2)
    overlaps = common / (area[:, None] + area[None, :] - common) > iou_threshold
    kept = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
    for better in range(len(boxes)):
        if kept[better]:
            kept[better + 1 :] &= ~overlaps[better, better + 1 :]
    return order[kept]


def library_loads() -> bool:
    """Whether torchvision's own operators can be loaded; does not import torchvision."""
    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        return False
    suffixes = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
    found = importlib.machinery.FileFinder(str(pathlib.Path(package.origin).parent), suffixes).find_spec("_C")
    if found is None or found.origin is None:
        return False
    try:
        torch.ops.load_library(found.origin)
    except OSError:  # a shared library that it needs is missing: the case that this file is for
        return False
    return True


def mismatch() -> str:
    """Why a plain `import torchvision` would fail, and how to fix it; empty if it works."""
    if importlib.util.find_spec("torchvision") is None or library_loads():
        return ""
    build = torch.__version__.partition("+")[2]  # "cpu" or "cu130": the index it came from has both
    index = f" --index-url https://download.pytorch.org/whl/{build}" if build else ""
    return (
        f"the operators of torchvision do not load with torch {torch.__version__}, probably because the two come from "
        "different indexes: the commands of torch_ttnn work, but your own `import torchvision`, and many models of "
        f"transformers, fail until `pip install --force-reinstall --no-deps{index} torchvision`"
    )


def note() -> None:
    """Print a mismatch to standard error, if there is one. For commands; the library prints nothing."""
    if why := mismatch():
        print(f"note: {why}", file=sys.stderr)


def is_defined(name: str) -> bool:
    return torch._C._dispatch_has_kernel(f"torchvision::{name}")


@functools.lru_cache(maxsize=1)
def ensure_operators() -> torch.library.Library | None:
    """Define missing operators, once per process; the library object must live as long as they do."""
    if importlib.util.find_spec("torchvision") is None or library_loads():
        return None
    missing = [name for name in SCHEMAS if not is_defined(name)]
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in missing:
        library.define(SCHEMAS[name])
        library.impl(name, KERNELS[name], "CPU")
        if name in SHAPES:  # torchvision has fake kernels for the others
            library.impl(name, SHAPES[name], "Meta")
    if "roi_align" in missing:
        torch.library.register_autograd("torchvision::roi_align", _differentiate, setup_context=_remember, lib=library)
    return library


def _pooled_like(features: torch.Tensor, boxes: torch.Tensor, scale: float, *rest: Any) -> torch.Tensor:
    return features.new_empty(boxes.shape[0], features.shape[1], rest[0], rest[1])


def _features_like(gradient: torch.Tensor, boxes: torch.Tensor, scale: float, *rest: Any) -> torch.Tensor:
    return gradient.new_empty(rest[2:6])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    features, boxes, *rest = inputs
    ctx.save_for_backward(boxes)
    ctx.rest, ctx.shape = rest, features.shape


def _differentiate(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    (boxes,) = ctx.saved_tensors
    scale, height, width, ratio, aligned = ctx.rest
    operator = torch.ops.torchvision._roi_align_backward
    return operator(gradient, boxes, scale, height, width, *ctx.shape, ratio, aligned), *[None] * 6


KERNELS = {
    "nms": non_maximum_suppression,
    "qnms": non_maximum_suppression,
    "roi_align": roi_align,
    "_roi_align_backward": roi_align_backward,
}
SHAPES = {"roi_align": _pooled_like, "_roi_align_backward": _features_like}


def allow_operators() -> None:
    """Disable the check of torchvision's functions that its compiled library is loaded."""
    if ensure_operators() is None:
        return
    for name in ("torchvision.ops.boxes", "torchvision.ops.roi_align"):
        module: Any = sys.modules.get(name)
        if module is not None:
            module._assert_has_ops = lambda: None
            module._has_ops = lambda: True
