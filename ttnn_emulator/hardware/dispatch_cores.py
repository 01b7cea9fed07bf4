"""The cores of a chip that dispatch work instead of computing."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, Arch
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.boards import default_board_name, find_board

DispatchCoreType = ALL_ENUMS["DispatchCoreType"]
DispatchCoreAxis = ALL_ENUMS["DispatchCoreAxis"]


class DispatchCoreConfig:
    """Which cores dispatch work: their type and axis determine the size of the compute grid."""

    def __init__(self, type: Any = None, axis: Any = None, fabric_tensix_config: Any = None) -> None:
        board = find_board(default_board_name())
        by_ethernet = board.dispatch == "eth" and axis is None
        self.type = type or (DispatchCoreType.ETH if by_ethernet else DispatchCoreType.WORKER)
        blackhole = board.arch is Arch.BLACKHOLE
        # Blackhole dispatches from rows only if the fabric multiplexers occupy the columns.
        with_mux = fabric_tensix_config is not None and fabric_tensix_config.name == "MUX"
        usual = DispatchCoreAxis.COL if blackhole and not with_mux else DispatchCoreAxis.ROW
        self.axis = axis or (DispatchCoreAxis.ROW if self.type is DispatchCoreType.ETH else usual)
        on_columns = self.type is DispatchCoreType.ETH and self.axis is DispatchCoreAxis.COL
        require(not on_columns, "COL axis is not supported for ETH dispatch core type")
        on_rows = blackhole and self.axis is DispatchCoreAxis.ROW and self.type is DispatchCoreType.WORKER
        require(
            with_mux or not on_rows,
            "ROW dispatch core axis is not supported for blackhole arch unless fabric tensix MUX is enabled",
        )
        self._as_board = type is None and axis is None

    def dispatch_name(self) -> str | None:
        """The key into a board's table of grids, or None for the board's default dispatch."""
        if self._as_board:
            return None
        if self.type is DispatchCoreType.ETH:
            return "eth"
        return "worker_col" if self.axis is DispatchCoreAxis.COL else "worker_row"
