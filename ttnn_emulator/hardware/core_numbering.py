"""Translation between logical and NoC coordinates of cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import Arch
from ttnn_emulator.errors import InvalidArgument, NotEmulated, require
from ttnn_emulator.hardware.boards import near_dram
from ttnn_emulator.hardware.core_grid import CoreCoord

if TYPE_CHECKING:
    from ttnn_emulator.hardware.boards import Board

# asked ttnn 0.81.1: worker and DRAM cores of mock cards
# Wormhole's workers start at 18 in both directions; Blackhole's columns 8 and 9 have no workers.
WORKERS: dict[Arch, tuple[list[int], int]] = {
    Arch.WORMHOLE_B0: (list(range(18, 26)), 18),
    Arch.BLACKHOLE: ([*range(1, 8), *range(10, 17)], 2),
}
DRAM: dict[Arch, list[tuple[int, int]]] = {
    Arch.WORMHOLE_B0: [
        (0, 11), (0, 1), (0, 5), (0, 7), (5, 1), (5, 11), (5, 2), (5, 9), (5, 8), (5, 3), (5, 5), (5, 7)
    ],
    Arch.BLACKHOLE: [(17, 14), (17, 15), (17, 18), (17, 21), (18, 14), (18, 17), (18, 20), (18, 23)],
}  # fmt: skip


class CoreNumbers:
    """The device methods that translate core coordinates."""

    board: Board

    def worker_core_from_logical_core(self, logical_core: Any) -> CoreCoord:
        """The NoC coordinate of a worker core."""
        x, y = _pair(logical_core)
        columns, rows = self.board.grid
        if not (0 <= x < columns and 0 <= y < rows):
            raise InvalidArgument(f"No core coordinate found at location: ({x}, {y}, TENSIX, LOGICAL)")
        numbers, first_row = self._workers()
        return CoreCoord(numbers[x], first_row + y)

    def logical_core_from_worker_core(self, virtual_core: Any) -> CoreCoord:
        """The logical coordinate of a NoC coordinate."""
        x, y = _pair(virtual_core)
        numbers, first_row = self._workers()
        columns, rows = self.board.grid
        inside = x in numbers[:columns] and first_row <= y < first_row + rows
        require(inside, f"No core coordinate found at location: ({x}, {y}, TENSIX, TRANSLATED)")
        return CoreCoord(numbers.index(x), y - first_row)

    def dram_core_from_logical_core(self, logical_core: Any) -> CoreCoord:
        """The NoC coordinate of a DRAM bank."""
        x, y = _pair(logical_core)
        banks = DRAM.get(self.board.arch)
        if banks is None:
            raise NotEmulated(f"the numbering of the DRAM banks of {self.board.name} is not recorded")
        require(y == 0 and 0 <= x < len(banks), f"No core coordinate found at location: ({x}, {y}, DRAM, LOGICAL)")
        return CoreCoord(*banks[x])

    def get_optimal_dram_bank_to_logical_worker_assignment(self, noc: Any, coord: Any = None) -> Any:
        """Per DRAM bank, the core with the fewest NoC hops to it; with `coord`, a dictionary by bank."""
        cores = near_dram(self.board.name, self.board.dispatch)
        if cores is None:
            raise NotEmulated(f"the cores nearest to the DRAM banks of {self.board.name} are not recorded")
        listed = [CoreCoord(x, y) for x, y in cores]
        return listed if coord is None else dict(enumerate(listed))

    def _workers(self) -> tuple[list[int], int]:
        found = WORKERS.get(self.board.arch)
        if found is None:
            raise NotEmulated(f"the numbering of the cores of {self.board.name} is not recorded")
        return found


def _pair(core: Any) -> tuple[int, int]:
    return (core.x, core.y) if isinstance(core, CoreCoord) else tuple(core)
