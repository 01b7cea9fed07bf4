"""Imports all installed libraries of models: for the process from which jobs are forked, and for no other use."""

from contextlib import suppress

import torch_ttnn.jobs.running
import torch_ttnn.jobs.tracing
import torch_ttnn.tracer.lowered  # noqa: F401
from torch_ttnn.zoo.sources import LibraryMissing, library

for _name in ("torchvision.models", "timm", "transformers"):
    with suppress(LibraryMissing):
        library(_name)
