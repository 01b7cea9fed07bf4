"""`ttnn.visualize_mesh_device`, `visualize_tensor`, `visualize_system_mesh`: meshes as tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich import box
from rich.align import Align
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from ttnn_emulator.enums import StorageType
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape
from ttnn_emulator.library.devices.system_mesh import SystemMeshDescriptor
from ttnn_emulator.tensors.mesh_distribution import PlacementShard, get_device_tensors
from ttnn_emulator.tensors.tensor import Tensor

CELL_WIDTH = 30


def _picture(title: str, shape: MeshShape, cell: Callable[[int, MeshCoordinate], list[str]]) -> Table:
    """A table with one cell per chip; `cell` returns its lines from the chip number and coordinate."""
    rows, columns = (1, *shape)[-2:]
    table = Table(title=title, show_header=False, box=box.SQUARE, expand=False, show_lines=True, padding=(0, 0))
    for _ in range(columns):
        table.add_column(justify="center", vertical="middle", width=CELL_WIDTH)
    for row in range(rows):
        places = [(row * columns + column, MeshCoordinate(row, column)) for column in range(columns)]
        table.add_row(
            *(Align.center("\n".join(cell(number, coordinate)), vertical="middle") for number, coordinate in places)
        )
    return table


def _text(coordinate: MeshCoordinate) -> str:
    return str(tuple(coordinate))


def visualize_mesh_device(mesh_device: MeshDevice) -> None:
    """Print the chips of a mesh by coordinate."""
    chips = mesh_device.get_device_ids()
    rows, columns = (1, *mesh_device.shape)[-2:]
    table = _picture(
        f"MeshDevice(rows={rows}, cols={columns})",
        mesh_device.shape,
        lambda number, coordinate: [f"Dev. ID: {chips[number]}", _text(coordinate), ""],
    )
    Console().print(table)


def visualize_tensor(tensor: Tensor) -> None:
    """Print which part of a tensor is on each chip."""
    topology = tensor.tensor_topology()
    shards = get_device_tensors(tensor)
    on_device = tensor.storage_type() is StorageType.DEVICE
    device: Any = tensor.device()
    shape = device.shape if on_device else topology.distribution_shape()
    chips = device.get_device_ids() if on_device else []

    def cell(number: int, coordinate: MeshCoordinate) -> list[str]:
        who = [f"Dev. ID: {chips[number]}"] if on_device else []
        if number >= len(shards):
            return [*who, _text(coordinate)]
        shard = shards[number]
        return [
            *who,
            _text(coordinate),
            f"[{', '.join(_slices(shard, topology, number))}]",
            f"Shape: {list(shard.shape)}",
            f"Dtype: {shard.dtype.name}",
            f"Layout: {shard.layout.name}",
        ]

    console = Console()
    console.print(Panel(str(topology.placements()), title="Placement Configuration", border_style="blue"))
    console.print(_picture(f"Tensor(storage: {tensor.storage_type()})", shape, cell))


def _slices(shard: Tensor, topology: Any, number: int) -> list[str]:
    """The range of a shard in each dimension, `:` for a full dimension."""
    part: dict[int, tuple[int, int]] = {}
    for axis, size in reversed(list(enumerate(topology.distribution_shape()))):
        number, index = divmod(number, size)
        placement = topology.placements()[axis]
        if isinstance(placement, PlacementShard) and size > 1:
            part[placement.dim % len(shard.shape)] = (
                index * shard.shape[placement.dim],
                shard.shape[placement.dim],
            )
    return [f"{part[dim][0]}:{part[dim][0] + part[dim][1]}" if dim in part else ":" for dim in range(len(shard.shape))]


def visualize_system_mesh() -> None:
    """Print the chips of the host."""
    mesh = SystemMeshDescriptor()
    console = Console()
    console.print(f"\n[bold green]SystemMesh Global Shape: {mesh.shape()}[/bold green]")
    console.print(f"\n[bold blue]SystemMesh Local Shape: {mesh.local_shape()}[/bold blue]\n")
    title = f"SystemMesh Global Shape: {tuple(mesh.shape())} | Local Shape: {tuple(mesh.local_shape())}"
    console.print(
        _picture(
            title,
            mesh.shape(),
            lambda _, coordinate: [f"Dev. ID: {mesh.get_device_id(coordinate)}", _text(coordinate)],
        )
    )
