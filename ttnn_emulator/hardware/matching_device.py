"""An emulated device that matches a device of the real library: it infers specs and memory, without values."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

from ttnn_emulator.enums import Arch
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.hardware.boards import Board, dispatch_grids, find_board, names_with_grids
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.mesh_coordinates import MeshShape

# `ttnn.cluster.ClusterType` names that differ from our board names.
BOARD_OF_CLUSTER = {"T3K": "t3000"}


def matching_device(library: ModuleType, device: Any) -> MeshDevice:
    """An emulated device with the architecture, grid and memory of an open device of the real library."""
    grid = device.compute_with_storage_grid_size()
    board = board_like(device.arch().name, (grid.x, grid.y), library.cluster.get_cluster_type().name)
    small, trace = (
        library.get_memory_view(device, kind) for kind in (library.BufferType.L1_SMALL, library.BufferType.TRACE)
    )
    return MeshDevice(
        board,
        shape=MeshShape(*device.shape),
        device_ids=list(device.get_device_ids()),
        l1_small_size=small.total_bytes_per_bank,
        trace_region_size=trace.total_bytes_per_bank * trace.num_banks,
        holds_values=False,
    )


def board_like(arch: str, grid: tuple[int, int], cluster: str = "") -> Board:
    """The board of the table with this architecture and grid, preferably the cluster's own.

    Cards of one type differ in the number of harvested rows or columns, so a grid that is not in the table is used
    as it is.

    >>> board_like("WORMHOLE_B0", (8, 8), "N300").name
    'n300'
    >>> board_like("BLACKHOLE", (9, 10), "P150").grid
    (9, 10)
    """
    known = [find_board(name, how) for name in names_with_grids() for how in dispatch_grids(name)]
    alike = [board for board in known if board.arch.name == arch]
    if not alike:
        raise InvalidArgument(
            f"there is no board of architecture {arch}", hint=f"there are {', '.join(each.name for each in Arch)}"
        )
    board_name = BOARD_OF_CLUSTER.get(cluster, cluster.lower())
    best = max(alike, key=lambda board: (board.name.partition("-")[0] == board_name, board.grid == grid))
    return best if best.grid == grid else dataclasses.replace(best, grid=grid)
