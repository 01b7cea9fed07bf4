"""The model zoo: models as rows of a table, each with its architecture and inputs.

>>> from torch_ttnn import zoo
>>> zoo.find("bert-large-qa").task
'question answering'
>>> [entry.name for entry in zoo.entries(family="autoencoder")]
['autoencoder-linear', 'autoencoder-conv']

Nothing is imported from torchvision, timm, transformers or diffusers before a model is built.
"""

from __future__ import annotations

import difflib

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.entry import ModelEntry, tensors
from torch_ttnn.zoo.sources import LibraryMissing, NotPublished
from torch_ttnn.zoo.tables import ENTRIES
from torch_ttnn.zoo.weights import WeightsError

__all__ = [
    "find", "names", "entries", "tensors", "ModelEntry", "UnknownModel", "LibraryMissing", "NotPublished",
    "WeightsError",
]  # fmt: skip


class UnknownModel(UserError, LookupError):
    """There is no model of this name in the zoo."""


def entries(
    family: str | None = None,
    *,
    source: str | None = None,
    task: str | None = None,
    size: str | None = None,
    train: bool | None = None,
) -> list[ModelEntry]:
    """All entries that match the arguments."""
    wanted = {"family": family, "source": source, "task": task, "size": size, "train": train}
    given = {name: value for name, value in wanted.items() if value is not None}
    return [entry for entry in ENTRIES if all(getattr(entry, name) == value for name, value in given.items())]


def names() -> list[str]:
    return [entry.name for entry in ENTRIES]


def find(name: str) -> ModelEntry:
    """The entry of that name."""
    found = {entry.name: entry for entry in ENTRIES}
    if name not in found:
        close = difflib.get_close_matches(name, found, n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise UnknownModel(f"there is no model {name!r} in the zoo.{hint} zoo.names() lists all {len(found)}.")
    return found[name]
