"""Parameters of models in files: one folder per module, one file per tensor, and their version."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.library.models.module_args import MaxPool2dArgs
from ttnn_emulator.library.models.parameters import ParameterDict, ParameterList
from ttnn_emulator.tensors.tensor import Tensor

VERSION_FILE = "version.txt"
POOL_ENDING = ".max_pool2d_module_args"


def cached(folder: pathlib.Path, version: str | None, make: Callable[[], Any]) -> Any:
    """The parameters in the folder if they are of this version; otherwise the result of `make`, which is stored."""
    file = folder / VERSION_FILE
    if file.is_file() and file.read_text(encoding="utf-8") == version:
        return load(folder)
    parameters = make()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as temporary:
        new = pathlib.Path(temporary) / folder.name
        save(new, parameters)
        if version is not None:
            (new / VERSION_FILE).write_text(version, encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(new, folder)  # atomic
    return parameters


def save(folder: pathlib.Path, parameters: Any) -> None:
    folder.mkdir(parents=True)
    for name, value in parameters.items():
        path = folder / str(name)
        if isinstance(value, ParameterDict):
            save(path, value)
        elif isinstance(value, ParameterList):
            for index, element in enumerate(value):
                save(path / str(index), element)
        elif isinstance(value, Tensor):
            ttnn.dump_tensor(f"{path}.tensorbin", value)
        elif isinstance(value, torch.Tensor):
            torch.save(value, f"{path}.pt")
        elif isinstance(value, MaxPool2dArgs):
            pathlib.Path(f"{path}{POOL_ENDING}").write_text(json.dumps(dict(value)), encoding="utf-8")
        else:
            raise InvalidArgument(f"{name} is of type {type(value).__name__}, which cannot be stored in files")


def load(folder: pathlib.Path) -> ParameterDict:
    found: dict[Any, Any] = {}
    for path in folder.iterdir():
        if path.name == VERSION_FILE:
            continue
        name = int(path.stem) if path.stem.isdigit() else path.stem
        if path.is_dir():
            inner = load(path)
            numbered = all(isinstance(key, int) for key in inner)
            found[name] = ParameterList(inner[key] for key in sorted(inner)) if numbered else inner
        elif path.suffix == ".tensorbin":
            found[name] = ttnn.load_tensor(str(path))
        elif path.suffix == ".pt":
            found[name] = torch.load(path, weights_only=True)
        elif path.suffix == POOL_ENDING:
            read = json.loads(path.read_text(encoding="utf-8"))
            pairs = {key: tuple(item) if isinstance(item, list) else item for key, item in read.items()}
            found[name] = MaxPool2dArgs(pairs)
        else:
            raise InvalidArgument(f"{path} is not a file of parameters")
    return ParameterDict(found)
