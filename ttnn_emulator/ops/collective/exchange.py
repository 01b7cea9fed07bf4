"""Which chips of a mesh exchange data with each other, and how their tensors are added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.fabric import note_if_disabled
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate
from ttnn_emulator.numerics.programs.elementwise.binary import Setting, prepare
from ttnn_emulator.numerics.units.packer import pack

Carriers = list[torch.Tensor]
Add = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

LINKS = ("subdevice_id", "topology", "use_l1_small_for_semaphores")
WORKERS = ("chunks_per_sync", "num_workers_per_link", "num_buffers_per_channel")


def count_along(device: MeshDevice | None, cluster_axis: int | None) -> int:
    """The number of chips in a collective: the whole mesh, or those along one axis."""
    require(device is not None, "the input tensor must be on a device, it is on the host")
    assert device is not None
    note_if_disabled()
    if cluster_axis is None:
        return device.num_devices
    shape = tuple(device.shape)
    require(0 <= cluster_axis < len(shape), f"cluster_axis {cluster_axis} does not exist in a mesh of {list(shape)}")
    return shape[cluster_axis]


def groups(cluster_axis: int | None) -> list[list[int]]:
    """The groups of chips that exchange data, in order."""
    device = current_device()
    count_along(device, cluster_axis)
    assert device is not None
    chips = list(range(device.num_devices))
    if cluster_axis is None:
        return [chips]
    rows, columns = tuple(device.shape)
    if cluster_axis == 0:
        return [chips[column::columns] for column in range(columns)]
    return [chips[row * columns : (row + 1) * columns] for row in range(rows)]


def require_several(among: list[list[int]], what: str) -> int:
    count = len(among[0])
    require(count > 1, f"{what} needs more than one device, the mesh has {count} along that axis")
    return count


def require_links(num_links: int | None, device: MeshDevice | None) -> None:
    """Links are served by rows of worker cores."""
    assert device is not None
    rows = device.board.grid[1]
    require(num_links is None or 0 < num_links <= rows, f"num_links must be between 1 and {rows}, not {num_links}")


def is_line(device: MeshDevice) -> bool:
    """Whether all chips are along one axis of the mesh."""
    return sum(size > 1 for size in device.shape) <= 1


def chip_at(coordinate: MeshCoordinate) -> int:
    device = current_device()
    assert device is not None
    return coordinate.number_in(device.shape)


def lies_in_mesh(coordinate: MeshCoordinate) -> bool:
    device = current_device()
    assert device is not None
    shape = tuple(device.shape)
    return len(coordinate) == len(shape) and all(0 <= value < size for value, size in zip(coordinate, shape))


def each_group(among: list[list[int]], exchange: Callable[[Carriers], Carriers]) -> Callable[[Carriers], Carriers]:
    """Apply `exchange` to the carriers of every group, and return the results to their chips."""

    def compute(carriers: Carriers) -> Carriers:
        results: list[Any] = [None] * len(carriers)
        for group in among:
            for chip, result in zip(group, exchange([carriers[chip] for chip in group])):
                results[chip] = result
        return results

    return compute


def fault(message: str) -> Callable[..., Any]:
    """A computation that is wrong on the card: the call is accepted, computing its values raises."""

    def compute(*carriers: Any) -> Any:
        raise ChipFault(message)

    return compute


def adder(dtype: DataType, *, fp32_acc: bool = False) -> Add:
    """The sum of two chips' values: the matrix unit adds two tiles, the packer rounds to the tensor's dtype."""
    if dtype not in FLOAT_DTYPES:
        return fault(f"{dtype.name} does not pass through the matrix unit that adds the tensors: the sums are wrong")
    if fp32_acc and dtype is not DataType.FLOAT32:
        add = prepare("ADD", Setting(dtype, dtype, DataType.FLOAT32, vector=False))
        return lambda a, b: pack(add(a, b), dtype, from_fp32=True)
    return prepare("ADD", Setting(dtype, dtype, dtype, vector=False))


def sum_along_line(parts: Carriers, index: int, add: Add) -> torch.Tensor:
    """The sum that chip number `index` of a line ends up with.

    Partial sums travel towards it from both ends, rounded at every chip; the chip adds those from the front to its own
    part first, then those from the back.
    """
    total = parts[index]
    if index > 0:
        arriving = parts[0]
        for part in parts[1:index]:
            arriving = add(part, arriving)
        total = add(total, arriving)
    if index < len(parts) - 1:
        arriving = parts[-1]
        for part in parts[-2:index:-1]:
            arriving = add(part, arriving)
        total = add(total, arriving)
    return total
