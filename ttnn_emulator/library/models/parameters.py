"""Trees of parameters: dictionaries with names as attributes, and lists."""

from __future__ import annotations

import io
from typing import Any, TextIO

import torch

from ttnn_emulator.library.models.module_args import ModuleArgs
from ttnn_emulator.tensors.tensor import Tensor


class ParameterList(list):
    """Parameters of a list of modules. `index in parameters` tests whether there is a module of that index."""

    def __contains__(self, index: Any) -> bool:
        return index < len(self)

    def __repr__(self) -> str:
        return _printed(self)


class ParameterDict(dict):
    """Parameters by name, also as attributes."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__

    def __repr__(self) -> str:
        return _printed(self)


def make_parameter_dict(dictionary: dict) -> ParameterDict:
    """Convert nested dictionaries to `ParameterDict`."""
    if isinstance(dictionary, ParameterDict):
        return dictionary

    def converted(value: Any) -> Any:
        nested = isinstance(value, dict) and not isinstance(value, ModuleArgs)
        return make_parameter_dict(value) if nested else value

    return ParameterDict({key: converted(value) for key, value in dictionary.items()})


def _printed(parameters: Any) -> str:
    file = io.StringIO()
    repr_parameters(file, parameters)
    return file.getvalue()


def repr_parameters(file: TextIO, parameters: Any, indentation: str = "") -> None:
    """Write a tree of parameters, one per line, children indented."""
    inner = indentation + "  "
    if isinstance(parameters, ParameterDict | ModuleArgs):
        opening, closing = "{}"
        items = [(f"{key}: ", value) for key, value in parameters.items()]
    elif isinstance(parameters, ParameterList):
        opening, closing = "[]"
        items = [("", value) for value in parameters]
    else:
        file.write(_leaf(parameters))
        return
    file.write(opening)
    for number, (name, value) in enumerate(items):
        file.write(f"{',' if number else ''}\n{inner}{name}")
        if isinstance(parameters, ModuleArgs):
            file.write(str(value))
        else:
            repr_parameters(file, value, inner)
    file.write(f"\n{indentation}{closing}" if items else closing)


def _leaf(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"ttnn.Tensor(shape={value.shape}, layout={value.layout}, dtype={value.dtype})"
    if isinstance(value, torch.Tensor):
        return f"torch.Tensor(shape={value.shape}, dtype={value.dtype})"
    return repr(value)
