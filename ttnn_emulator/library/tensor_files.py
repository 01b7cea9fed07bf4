"""Files of tensors and of views that share a buffer: `ttnn._ttnn.tensor.dump_overlapped_tensors` and related names."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors import host_transfer
from ttnn_emulator.tensors.tensor import Tensor

EXTENSION = ".overlappedtensorbin"
VIEWS = "views"  # the key of the views in the file's metadata


def dump_overlapped_tensors(file_name: str, views: dict[str, Any]) -> None:
    """Write the shared buffer, and the offset of each view."""
    path = _checked(file_name)
    require(bool(views), "there must be at least one view to write")
    fused = next(iter(views.values())).fused_tensor
    for name, view in views.items():
        require(view.fused_tensor is fused, f"view {name!r} has a different fused tensor than the first view")
    host_transfer.write_tensor(path, fused, {VIEWS: json.dumps({name: _facts(view) for name, view in views.items()})})


def load_overlapped_tensors(file_name: str, device: MeshDevice | None = None) -> dict[str, Any]:
    """The views of a file by name; the shared buffer is placed on `device`, if passed."""
    fused, metadata = host_transfer.read_tensor(_checked(file_name), device)
    return {name: _view(fused, facts) for name, facts in json.loads(metadata[VIEWS]).items()}


def _checked(file_name: str) -> pathlib.Path:
    path = pathlib.Path(file_name)
    if path.suffix != EXTENSION:
        raise RuntimeError(f"File {path} must have {EXTENSION} extension")
    return path


def _facts(view: Any) -> dict[str, Any]:
    return {
        "tensor_shape": list(view.tensor_shape),
        "shard_shape": list(view.shard_shape),
        "core_range_set": json.loads(view.core_range_set.to_json()),
        "dtype": view.dtype.name,
        "tile_shape": list(view.tile_shape),
        "byte_offset": view.byte_offset,
        "total_size": view.total_size,
    }


def _view(fused: Tensor, facts: dict[str, Any]) -> Any:
    known = dict(facts)
    cores = CoreRangeSet.from_json(json.dumps(known.pop("core_range_set")))
    dtype = DataType[known.pop("dtype")]
    return TYPES.classes["OverlappedTensor"](fused_tensor=fused, core_range_set=cores, dtype=dtype, **known)


def dump_tensor_flatbuffer(filename: str, tensor: Tensor, mode: Any = None) -> None:
    """`ttnn.dump_tensor` for any file name."""
    host_transfer.write_tensor(pathlib.Path(filename), tensor)


def load_tensor_flatbuffer(file_name: str, device: MeshDevice | None = None) -> Tensor:
    """`ttnn.load_tensor` for any file name."""
    return host_transfer.read_tensor(pathlib.Path(file_name), device)[0]
