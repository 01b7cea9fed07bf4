"""EfficientNet-Lite0 with its published weights, and photographs to test it with."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torch_ttnn.zoo.sources import Timm
from torch_ttnn.zoo.trained.images import Images, read_photographs
from torch_ttnn.zoo.trained.networks import normalised
from torch_ttnn.zoo.trained.packages import EFFICIENTNET, FOOLBOX, DataError

LITE0 = Timm("tf_efficientnet_lite0")
EDGE = 224
CLASSES = 1000
# The classes of ImageNet for each class of CIFAR-10, in its order. ImageNet has no deer; antelopes replace them, so
# that class is hard.
GROUPS: dict[str, tuple[int, ...]] = {
    "airplane": (404, 895),
    "automobile": (436, 468, 511, 609, 627, 656, 661, 751, 817),
    "bird": (*range(7, 25), *range(80, 101), *range(127, 147)),
    "cat": tuple(range(281, 286)),
    "deer": (351, 352, 353),
    "dog": tuple(range(151, 269)),
    "frog": (30, 31, 32),
    "horse": (339,),
    "ship": (403, 484, 510, 554, 625, 628, 724, 780, 814, 833, 871, 914),
    "truck": (555, 569, 675, 717, 864, 867),
}
MEAN, SPREAD = (127 / 255,) * 3, (128 / 255,) * 3  # of its training


def load(model: nn.Module) -> None:
    """Load the published weights, which have another library's names in the same order."""
    folder = EFFICIENTNET.find() / "models"
    files = sorted(folder.glob("*.pth"))
    if len(files) != 1:
        raise DataError(f"{folder} should have one file of weights, and has {len(files)}")
    stored = torch.load(files[0], map_location="cpu", weights_only=True)
    expected = model.state_dict()
    kinds = [(name.rpartition(".")[2], values.shape) for name, values in stored.items()]
    if kinds != [(name.rpartition(".")[2], values.shape) for name, values in expected.items()]:
        raise DataError(f"the weights in {files[0]} are not those of {LITE0.model}")
    model.load_state_dict(dict(zip(expected, stored.values())))


def inputs(pixels: torch.Tensor) -> torch.Tensor:
    """Photographs of any size as the network takes them."""
    values = normalised(pixels, MEAN, SPREAD)
    if values.shape[-2:] != (EDGE, EDGE):
        values = functional.interpolate(values, size=(EDGE, EDGE), mode="bicubic", antialias=True)
    return values


def labelled() -> Images:
    """The ImageNet photographs in foolbox; their classes are in the file names."""
    folder = FOOLBOX.find() / "data"
    return read_photographs(folder, "imagenet_*.jpg", EDGE)


def grouped(logits: torch.Tensor) -> torch.Tensor:
    """Log-probability of each class of CIFAR-10 for each photograph: its ImageNet classes combined."""
    likely = logits.log_softmax(dim=1)
    return torch.stack([likely[:, list(members)].logsumexp(dim=1) for members in GROUPS.values()], dim=1)
