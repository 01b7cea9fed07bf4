"""Imports all installed model libraries. Only for the fork server of jobs."""

from contextlib import suppress

from torch_ttnn.zoo.sources import LibraryMissing, library

for _name in ("torchvision.models", "timm", "transformers"):
    with suppress(LibraryMissing):
        library(_name)
