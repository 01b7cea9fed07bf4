"""Padding of tensors on the host: `ttnn.pad`, `Tensor.pad` and related methods, and reading padding."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ttnn_emulator.enums import Layout
from ttnn_emulator.errors import require
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.host_transfer import from_device, host_slice
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor, values_of


def enlarge_host(tensor: Tensor, shape: Sequence[int], start: Sequence[int], value: float) -> Tensor:
    """`ttnn.pad` of a host tensor: the padding becomes part of the logical shape."""
    require(not tensor._spec.on_device and tensor.layout is Layout.ROW_MAJOR, "only ROW_MAJOR host tensors are padded")
    return Tensor.of(tensor._spec.with_(shape=tuple(shape)), Storage(_surrounded(tensor, shape, start, value)), None)


def _surrounded(tensor: Tensor, shape: Sequence[int], start: Sequence[int], value: float) -> list[torch.Tensor]:
    pieces = []
    for values in values_of(tensor):
        whole = torch.full(tuple(shape), value, dtype=values.dtype)
        whole[tuple(slice(s, s + n) for s, n in zip(start, values.shape))] = values
        pieces.append(whole)
    return pieces


def pad_host(tensor: Tensor, shape: Sequence[int], start: Sequence[int], value: float) -> Tensor:
    """`Tensor.pad`: puts the values at `start` of a padded buffer; the logical shape covers its first elements."""
    if tensor.layout is not Layout.ROW_MAJOR:
        return tensor
    require(not tensor._spec.on_device, "Tensor must be on host for padding")
    spec = tensor._spec
    require(
        len(shape) == len(start) == spec.rank and all(s + n <= size for s, n, size in zip(start, spec.shape, shape)),
        f"{list(spec.shape)} from {list(start)} on does not fit {list(shape)}",
    )
    padded = _surrounded(tensor, shape, start, value)
    window = tuple(slice(0, size) for size in spec.shape)
    storage = Storage([whole[window].clone() for whole in padded])
    padding_values.note(storage, padded)
    return Tensor.of(spec.with_(alignment=tuple(shape)), storage, None)


def pad_host_to_tile(tensor: Tensor, value: float) -> Tensor:
    if tensor.layout is not Layout.ROW_MAJOR:
        return tensor
    require(not tensor._spec.on_device, "Tensor must be on host for pad_to_tile conversion")
    storage = Storage(values_of(tensor))
    padding_values.note(storage, value)
    padded = Tensor.of(tensor._spec.with_(alignment=(TILE_SIZE, TILE_SIZE)), storage, None)
    padded.topology = tensor.topology
    return padded


def unpad_host(tensor: Tensor, start: Sequence[int], end: Sequence[int]) -> Tensor:
    spec = tensor._spec
    require(not spec.on_device, "Tensor must be on host for unpadding")
    require(spec.layout is Layout.ROW_MAJOR, "Tensor layout must be ROW_MAJOR for unpadding")
    inside = all(0 <= first < last <= size for first, last, size in zip(start, end, spec.padded_shape))
    require(inside, f"{list(start)} to {list(end)} is not within {list(spec.padded_shape)}")
    if all(last <= size for last, size in zip(end, spec.shape)):
        return host_slice(tensor, start, end)
    index = tuple(slice(first, last) for first, last in zip(start, end))
    whole = padding_values.padded_carriers(tensor._storage, spec, values_of(tensor))
    pieces = [values[index].clone() for values in whole]
    return Tensor.of(Spec.of(pieces[0].shape, spec.dtype, spec.layout, on_device=False), Storage(pieces), None)


def unpad_host_from_tile(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    padded = tensor._spec.padded_shape
    require(all(size % TILE_SIZE == 0 for size in padded[-2:]), f"{list(padded)} does not end with full tiles")
    require(
        all(size < asked + TILE_SIZE for size, asked in zip(padded[-2:], tuple(shape)[-2:])),
        f"from {list(padded)} to {list(shape)} more than the padding of a tile is removed",
    )
    return unpad_host(tensor, [0] * len(shape), list(shape))


def to_torch_padded(tensor: Tensor) -> torch.Tensor:
    host = from_device(tensor)
    (whole,) = padding_values.padded_carriers(host._storage, host._spec, values_of(host))
    return carriers.to_torch_dtype(whole, host.dtype).clone()
