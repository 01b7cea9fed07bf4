"""Labelled images from folders on disk, in the formats of the packages that contain them."""

from __future__ import annotations

import json
import pathlib
import struct
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy
import torch
from torch.nn import functional

from torch_ttnn.zoo.trained.packages import CIFAR10, MNIST, DataError

Choice = TypeVar("Choice")

UNSIGNED_BYTES = 8  # the code of the type in a file of the IDX format
CIFAR_EDGE = 32
MNIST_PARTS = {"train": "train", "test": "t10k"}
CIFAR_PARTS = {"train": tuple(f"data_batch_{number}.png" for number in range(1, 6)), "test": ("test_batch.png",)}
CIFAR_LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # spelt like this in the package


@dataclass(frozen=True)
class Images:
    """Images as bytes, [number, channels, height, width], and the class index of each."""

    pixels: torch.Tensor
    labels: torch.Tensor
    classes: int = 10

    def __post_init__(self) -> None:
        if len(self.pixels) != len(self.labels):
            raise DataError(f"there are {len(self.pixels)} images but {len(self.labels)} labels")
        lowest, highest = (int(self.labels.min()), int(self.labels.max())) if len(self.labels) else (0, 0)
        if not 0 <= lowest <= highest < self.classes:
            raise DataError(f"labels range from {lowest} to {highest}, but there are {self.classes} classes")

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, number: int | None) -> Images:
        return self if number is None else replace(self, pixels=self.pixels[:number], labels=self.labels[:number])


def mnist(part: str = "test", folder: pathlib.Path | None = None) -> Images:
    """Handwritten digits, 28 × 28: 60,000 for training and 10,000 for testing."""
    name = _choice(part, MNIST_PARTS)
    source = MNIST.find(folder) / "data"
    pixels = read_idx(source / f"{name}-images-idx3-ubyte", dimensions=3)
    labels = read_idx(source / f"{name}-labels-idx1-ubyte", dimensions=1)
    return Images(pixels[:, None], labels.long())


def cifar10(part: str = "test", folder: pathlib.Path | None = None) -> Images:
    """Small colour photographs of ten classes, 32 × 32: 50,000 for training and 10,000 for testing."""
    pictures = _choice(part, CIFAR_PARTS)
    source = CIFAR10.find(folder)
    pixels = torch.cat([read_sheet(source / name) for name in pictures])
    return Images(pixels, read_labels(source / CIFAR_LABELS[part]))


def read_idx(path: pathlib.Path, dimensions: int) -> torch.Tensor:
    """A file of the IDX format: two zeros, type, number of dimensions, their sizes, then the values."""
    content = _bytes(path)
    start = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]) or len(content) < start:
        raise DataError(
            f"{path} is not an IDX file of bytes in {dimensions} dimensions: it begins with {content[:4]!r}"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    wanted = start + int(numpy.prod(shape, dtype=numpy.int64))
    if len(content) != wanted:
        raise DataError(f"{path} claims {list(shape)} values, which take {wanted} bytes; it has {len(content)}")
    return torch.from_numpy(numpy.frombuffer(content, numpy.uint8, offset=start).reshape(shape).copy())


def read_sheet(path: pathlib.Path) -> torch.Tensor:
    """Images from a PNG file with one flattened image per row."""
    pixels = read_picture(path)
    if pixels.shape[1] != CIFAR_EDGE**2:
        raise DataError(f"{path} is {pixels.shape[1]} pixels wide; a row should be a picture of {CIFAR_EDGE**2} pixels")
    pictures = pixels.reshape(-1, CIFAR_EDGE, CIFAR_EDGE, 3)
    return torch.from_numpy(pictures.copy()).permute(0, 3, 1, 2).contiguous()


def read_photographs(folder: pathlib.Path, pattern: str, edge: int, classes: int = 1000) -> Images:
    """Photographs whose names end with the index of their class (`imagenet_00_243.jpg`), cropped to squares."""
    files = sorted(folder.glob(pattern))
    if not files:
        raise DataError(f"{folder} has no files {pattern}")
    endings = [path.stem.rpartition("_")[2] for path in files]
    if wrong := [path.name for path, ending in zip(files, endings) if not ending.isdigit()]:
        raise DataError(f"the names of pictures in {folder} should end with the number of a class, not {wrong[0]}")
    pictures = [square(torch.from_numpy(read_picture(path).copy()).permute(2, 0, 1), edge) for path in files]
    return Images(torch.stack(pictures), torch.tensor([int(ending) for ending in endings]), classes)


def square(picture: torch.Tensor, edge: int) -> torch.Tensor:
    """The centre crop used for ImageNet: the shorter side scaled to 8/7 of the edge, then cropped."""
    scale = edge * 8 / 7 / min(picture.shape[1:])
    height, width = (max(edge, round(size * scale)) for size in picture.shape[1:])
    scaled = functional.interpolate(picture[None].float(), size=(height, width), mode="bicubic", antialias=True)[0]
    top, left = (height - edge) // 2, (width - edge) // 2
    return scaled[:, top : top + edge, left : left + edge].round().clamp(0, 255).to(torch.uint8)


def read_picture(path: pathlib.Path) -> numpy.ndarray:
    """Its pixels, [height, width, 3]."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(_there(path)) as picture:
            return numpy.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:  # Pillow raises any of them for a broken file
        raise DataError(f"{path} cannot be read as a picture: {error}") from error


def read_labels(path: pathlib.Path) -> torch.Tensor:
    """A JSON list of class indices."""
    try:
        found = json.loads(_bytes(path))
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, list) or not all(isinstance(label, int) for label in found):
        raise DataError(f"{path} should be a list of whole numbers")
    return torch.tensor(found, dtype=torch.int64)


def _choice(part: str, parts: dict[str, Choice]) -> Choice:
    if part not in parts:
        raise ValueError(f"there is no part {part!r}; choose one of {', '.join(parts)}")
    return parts[part]


def _there(path: pathlib.Path) -> pathlib.Path:
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    return path


def _bytes(path: pathlib.Path) -> bytes:
    return _there(path).read_bytes()
