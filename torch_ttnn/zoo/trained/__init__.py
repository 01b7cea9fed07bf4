"""Trained models and their tasks: real weights on real data, because agreement on random weights is not accuracy.

>>> from torch_ttnn import zoo
>>> model = zoo.find("mnist-cnn-trained").build()

Weights that were trained here are in the distribution `torch_ttnn_weights` (the folder `weights/` of the repository);
others are in packages of third parties, which are read and never copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch_ttnn.zoo.trained.packages import DataError, PackageMissing

__all__ = ["TASKS", "DataError", "PackageMissing"]

# Model of the zoo -> the function that runs its task with torch and compiled: (model, compiled, limit=None) -> scores
TASKS: Mapping[str, str] = {
    "mnist-cnn-trained": "torch_ttnn.zoo.trained.tasks:digits",
    "resnet18-cifar10": "torch_ttnn.zoo.trained.tasks:pictures",
    "minilm-l6-trained": "torch_ttnn.zoo.trained.tasks:reverse_dictionary",
    "efficientnet-lite0-trained": "torch_ttnn.zoo.trained.tasks:photographs",
}
