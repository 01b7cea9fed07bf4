"""Any architecture by name: from the zoo, torchvision, timm, transformers, or a function of the user.

>>> from torch_ttnn.zoo import catalog
>>> catalog.resolve("mnist-cnn").source
'ours'

| name | what it is |
|---|---|
| `resnet18` | the first of zoo, torchvision, timm and transformers that knows it |
| `zoo:…`, `torchvision:…`, `timm:…`, `transformers:…` | that library's |
| `transformers:BertModel`, `…:BertConfig`, `…:bert` | a class, or the base model of a config or type |
| `google-bert/bert-base-uncased`, `transformers:folder` | a config of the hub, or one on disk |
| `package.module:name`, `file.py:name` | a function that returns a module, or (module, inputs), or a class of modules |
| `timm:resnet*` | in `expand`: all that match |

Weights are random and seeded; models of transformers have 2 layers per stack by default (`zoo.reduction`).
"""

from __future__ import annotations

import difflib
import fnmatch
import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from torch_ttnn import zoo
from torch_ttnn.zoo.catalog import factories, timm_models, torchvision_models, transformers_models
from torch_ttnn.zoo.catalog.transformers_table import ARCHITECTURES
from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.inputs import reshaped
from torch_ttnn.zoo.reduction import LAYERS
from torch_ttnn.zoo.sources import LibraryMissing

__all__ = ["LIBRARIES", "TASKS", "expand", "names", "resolve"]

LIBRARIES = ("zoo", "torchvision", "timm", "transformers")
TASKS = tuple(torchvision_models.TASKS)


def resolve(
    name: str,
    *,
    shape: Sequence[int] | None = None,
    batch: int | None = None,
    length: int | None = None,
    layers: int | None = LAYERS,
) -> ModelEntry:
    """The model of that name, with inputs of the requested shape, batch and number of tokens.

    `layers` is the depth of models of transformers; None leaves them as published.
    """
    entry = _find(name, layers)
    if shape is not None:
        entry = replace(entry, feed=reshaped(entry.feed, shape, entry.name), batch=shape[0])
    if length is not None:
        entry = replace(entry, feed=entry.feed.of_length(length))
    return entry if batch is None else replace(entry, batch=batch)


def names(library: str, task: str | None = None) -> list[str]:
    """All names of one library that `resolve` knows; `task` is one of torchvision's kinds of models."""
    if library == "zoo":
        return [f"zoo:{entry.name}" for entry in zoo.entries() if task in (None, entry.task)]
    if library == "torchvision":
        return [f"torchvision:{name}" for name in torchvision_models.names(task or "classification")]
    if task is not None:
        raise zoo.UnknownModel(f"models of {library} have no tasks here; omit the task")
    if library == "timm":
        return [f"timm:{name}" for name in timm_models.names()]
    if library == "transformers":
        return [f"transformers:{name}" for name in ARCHITECTURES]
    raise zoo.UnknownModel(f"there is no library {library!r} here; choose one of {', '.join(LIBRARIES)}")


def expand(patterns: Iterable[str]) -> list[str]:
    """The names that patterns with * or ? match, without duplicates."""
    found: list[str] = []
    for pattern in patterns:
        found += _matching(pattern) if any(sign in pattern for sign in "*?") else [pattern]
    return list(dict.fromkeys(found))


def _matching(pattern: str) -> list[str]:
    prefix, _, rest = pattern.rpartition(":")
    libraries = (prefix,) if prefix else LIBRARIES
    known = [name for library in libraries for name in _known(library)]
    found = [name for name in known if fnmatch.fnmatchcase(name.partition(":")[2], rest)]
    if not found:
        raise zoo.UnknownModel(f"no model of {' or '.join(libraries)} matches {pattern!r}")
    return found


def _known(library: str) -> list[str]:
    if library == "torchvision":
        return [name for task in TASKS for name in names(library, task)]
    return names(library)


def _find(name: str, layers: int | None) -> ModelEntry:
    prefix, colon, rest = name.partition(":")
    if colon and prefix in LIBRARIES:
        return _in_library(prefix, rest, layers)
    if colon and prefix:
        return factories.entry(name)
    for library in LIBRARIES:
        try:
            if _knows(library, name):
                return _in_library(library, name, layers)
        except LibraryMissing:
            continue
    raise zoo.UnknownModel(_unknown(name))


def _knows(library: str, name: str) -> bool:
    if library == "zoo":
        return name in zoo.names()
    if library == "torchvision":
        return torchvision_models.task_of(name) is not None
    return timm_models.knows(name) if library == "timm" else transformers_models.knows(name)


def _in_library(library: str, name: str, layers: int | None) -> ModelEntry:
    if library == "zoo":
        return zoo.find(name)
    if not _knows(library, name):
        raise zoo.UnknownModel(_unknown(name, library))
    if library == "torchvision":
        return torchvision_models.entry(name)
    return timm_models.entry(name) if library == "timm" else transformers_models.entry(name, layers)


def _unknown(name: str, library: str | None = None) -> str:
    known: list[str] = []
    for each in (library,) if library else LIBRARIES:
        try:
            known += _known(each)
        except LibraryMissing:
            continue
    if library in (None, "transformers"):
        known += [f"transformers:{each}" for each in transformers_models.names()]
    bare = {each.partition(":")[2].lower(): each for each in reversed(known)}
    close = [bare[each] for each in difflib.get_close_matches(name.lower(), bare, n=3, cutoff=0.6)]
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    if pathlib.PurePath(name).suffix == ".py":
        hint = f" For a function in a file, write {name}:function."
    where = library or "the zoo, torchvision, timm or transformers"
    return f"{where} knows no model {name!r}.{hint}"
