"""Shared parts of the chunked prefill operations: positions of chips in a mesh, and numbers stored in tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec

PREFILL = "ttnn.experimental.deepseek_prefill"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/update_padded_kv_cache/device/update_padded_kv_cache_device_operation.cpp,  # noqa: E501
# kMetadataBytes
METADATA_BYTES = 16  # circular buffer for one number read from a tensor

ChipWork = Callable[..., Any]


def mesh_shape() -> tuple[int, int]:
    """Rows and columns of the mesh that the call being prepared will run on; without a device, of one chip."""
    device = current_device()
    if device is None:
        return 1, 1
    rows, columns = tuple(device.shape)
    return rows, columns


def chips_along(axis: int) -> int:
    return mesh_shape()[axis]


def coordinates(axis: int) -> list[int]:
    """The position of every chip of the mesh along one of its axes, chip by chip."""
    rows, columns = mesh_shape()
    return [(row, column)[axis] for row in range(rows) for column in range(columns)]


def require_axis(axis: int) -> None:
    require(axis in (0, 1), f"cluster_axis must be 0 or 1, not {axis}")


def on_every_chip(work: list[ChipWork]) -> tuple[ChipWork, bool]:
    """One computation per chip combined into a plan's computation, and whether it is `across` the mesh."""
    if len(work) == 1:
        return work[0], False

    def compute(*carriers: list[torch.Tensor]) -> list[torch.Tensor]:
        return [each(*(values[chip] for values in carriers)) for chip, each in enumerate(work)]

    return compute, True


def require_number(spec: Spec, name: str) -> None:
    """Check a tensor of one unsigned number that kernels read."""
    require_on_device(spec, name)
    require(spec.dtype is DataType.UINT32, f"{name} is {spec.dtype}, not uint32")
    require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
    require(spec.volume == 1, f"{name} must hold one number, not {spec.volume}")
    require(not spec.is_sharded, f"{name} must not be sharded")


def number(values: torch.Tensor) -> int:
    return int(values.reshape(-1)[0])


def row_bytes(spec: Spec) -> int:
    """Aligned bytes of a row in ROW_MAJOR layout."""
    board = current_board()
    dram = spec.memory_config.buffer_type is BufferType.DRAM
    return round_up(spec.page_bytes, board.dram_alignment if dram else board.l1_alignment)


def rows_are_cut(spec: Spec) -> bool:
    """Whether a page is smaller than a row, which kernels that count rows do not handle."""
    return not spec.is_tile and spec.page_shape[1] != spec.padded_shape[-1]


def require_unsigned(**numbers: Any) -> None:
    """Check numbers that the library's signature declares unsigned."""
    for name, value in numbers.items():
        require(not isinstance(value, int) or 0 <= value < 1 << 32, f"{name} must not be negative, it is {value}")


def require_numbers(numbers: dict[str, Spec]) -> None:
    for name, spec in numbers.items():
        require_number(spec, name)
        same = spec.memory_config == numbers["slot_idx"].memory_config
        require(same, f"{name} must be in the same kind of memory as slot_idx")


def require_slots(cache: Spec, num_layers: int, layer_idx: int) -> int:
    """Users of a cache whose first dimension counts layers within users."""
    require(num_layers > 0, "num_layers must be positive")
    batch = cache.padded_shape[0]
    require(batch % num_layers == 0, f"a batch of {batch} does not divide into {num_layers} layers")
    require(layer_idx < num_layers, f"layer {layer_idx} is not one of {num_layers}")
    return batch // num_layers


def slot_of(slot: int, slots: int) -> int:
    if slot >= slots:
        raise ChipFault(f"slot {slot} is not one of {slots}")
    return slot


def local_rows(position: int, index: int, chips: int, chunk: int) -> int:
    """Rows that the chip number `index` holds of the first `position` ones (local_cache_offset of the writer)."""
    slab, boundary, rest = position // (chips * chunk), position // chunk % chips, position % chunk
    return slab * chunk + (chunk if index < boundary else rest if index == boundary else 0)
