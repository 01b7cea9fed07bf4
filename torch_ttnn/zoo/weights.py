"""Real weights from safetensors files on disk, loaded strictly by name."""

from __future__ import annotations

import json
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from torch_ttnn.errors import UserError

INDEX_SUFFIX = ".safetensors.index.json"
SHOWN = 12  # names listed in an error, per kind


class WeightsError(UserError, ValueError):
    """A file that does not contain weights, or whose weights do not fit the model."""


def load_weights(model: nn.Module, path: str | pathlib.Path) -> None:
    """Load a safetensors file, or a folder with one or with a sharded index, into the model."""
    found = read(pathlib.Path(path))
    expected = model.state_dict()
    # Tied weights (an embedding that is also the output layer) are one tensor with two names; files keep one of them.
    missing = [name for name, group in tied(expected).items() if not any(each in found for each in group)]
    problems = {
        "missing in the file": missing,
        "not in the model": [name for name in found if name not in expected],
        "of another shape": [
            f"{name}: {list(found[name].shape)} in the file, {list(tensor.shape)} in the model"
            for name, tensor in expected.items()
            if name in found and found[name].shape != tensor.shape
        ],
        "of another dtype": [
            f"{name}: {found[name].dtype} in the file, {tensor.dtype} in the model"
            for name, tensor in expected.items()
            if name in found and found[name].is_floating_point() != tensor.is_floating_point()
        ],
        "tied in the model but different in the file": contradictions(found, tied(expected)),
    }
    if any(problems.values()):
        raise WeightsError(describe(model, path, problems))
    model.load_state_dict(found, strict=False)  # names, including tied ones, were checked above


def read(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """All tensors of a file or folder."""
    found = located(path)
    return read_shards(found) if found.name.endswith(INDEX_SUFFIX) else _tensors(found)


def located(path: pathlib.Path) -> pathlib.Path:
    """The safetensors file or shard index at a path."""
    if path.is_dir():
        return _in_folder(path)
    if not path.exists():
        raise WeightsError(f"there is no file or folder {path}")
    if not path.name.endswith(INDEX_SUFFIX) and path.suffix != ".safetensors":
        raise WeightsError(
            f"{path.name} is not a safetensors file: pickled weights can run code when they are loaded. "
            "Convert them once with safetensors.torch.save_file."
        )
    return path


def _in_folder(folder: pathlib.Path) -> pathlib.Path:
    indices = sorted(folder.glob("*" + INDEX_SUFFIX))
    found = indices or sorted(folder.glob("*.safetensors"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise WeightsError(f"{folder} must have one safetensors file, or one index of shards; it has {names}")
    return located(found[0])


def read_shards(index: pathlib.Path) -> dict[str, torch.Tensor]:
    """The tensors of all shards of an index."""
    placed = _placed(index)
    tensors: dict[str, torch.Tensor] = {}
    for file in sorted(set(placed.values())):
        tensors.update(_tensors(index.parent / file))
    absent = [name for name in placed if name not in tensors]
    if absent:
        raise WeightsError(f"{index.name} names tensors that its shards do not have: {', '.join(absent[:SHOWN])}")
    return tensors


def check_file(path: str | pathlib.Path) -> None:
    """Raise if the weights are not readable; reads headers only."""
    found = located(pathlib.Path(path))
    shards = sorted(set(_placed(found).values())) if found.name.endswith(INDEX_SUFFIX) else [found.name]
    for file in shards:
        with _readable(found.parent / file), safe_open(found.parent / file, "pt"):
            pass


def _placed(index: pathlib.Path) -> dict[str, str]:
    """The file of every tensor according to a shard index; all must be next to it."""
    try:
        placed: dict[str, str] = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{index} cannot be read as an index of shards: {_brief(error)}") from error
    for file in sorted(set(placed.values())):
        if pathlib.PurePath(file).name != file or not (index.parent / file).is_file():
            raise WeightsError(f"{index.name} names the shard {file!r}, which is not a file next to it")
    return placed


def _tensors(path: pathlib.Path) -> dict[str, torch.Tensor]:
    with _readable(path):
        return load_file(path)


@contextmanager
def _readable(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except SafetensorError as error:
        raise WeightsError(f"{path} is corrupt, or not a safetensors file: {_brief(error)}") from error


def _brief(error: Exception) -> str:
    """One line of an error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def tied(state: dict[str, torch.Tensor]) -> dict[str, list[str]]:
    """For every name, all names of the same tensor."""
    groups: dict[object, list[str]] = defaultdict(list)
    for name, tensor in state.items():
        same = (tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.data_ptr() else name
        groups[same].append(name)
    return {name: group for group in groups.values() for name in group}


def contradictions(found: dict[str, torch.Tensor], groups: dict[str, list[str]]) -> list[str]:
    present = (group for name, group in groups.items() if name == group[0] and len(group) > 1)
    pairs = ((group[0], other) for group in present for other in group[1:] if group[0] in found and other in found)
    return [f"{a} and {b}" for a, b in pairs if not torch.equal(found[a], found[b])]


def describe(model: nn.Module, path: str | pathlib.Path, problems: dict[str, list[str]]) -> str:
    lines = [f"the weights in {path} do not fit {type(model).__name__}"]
    for kind, names in problems.items():
        if names:
            more = [f"… and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
            lines += [f"{len(names)} {kind}:", *(f"  {name}" for name in [*names[:SHOWN], *more])]
    return "\n".join(lines)
