"""Imports all installed libraries of models: for the process from which jobs are forked, and for no other use."""

from contextlib import suppress

from torch_ttnn.zoo.sources import LibraryMissing, library

for _name in ("torchvision.models", "timm", "transformers"):
    with suppress(LibraryMissing):
        library(_name)
