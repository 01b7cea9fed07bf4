"""Where `ttnn.experimental.moe_compute` places its cores: a matmul ring, tilizing cores and combining cores.

Every group multicasts to the rectangle around it, so the three rectangles must not touch. Callers ask for the places
because they shard their tensors over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution.operation_table import composite
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.ops.prefill.mesh_positions import require_unsigned
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up

Cell = tuple[int, int]
Cells = frozenset[Cell]
Grid = tuple[int, int]

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/ccl/moe_compute/moe_core_placement.cpp,
# kMoEComputeMaxTilizeCores, kMoEComputeCombineStripWidth, and the rows of the tilizing cores
MOST_TILIZING = 4
STRIP_WIDTH = 2
TILIZING_ROWS = 2
MOST_CORES = 1 << 32  # counts of cores are products of 32 bits


@dataclass(frozen=True)
class Placement:
    """The cores of the three groups; the combining cores are listed column by column."""

    multiplying: tuple[Cell, ...]
    combining: tuple[Cell, ...]
    tilizing: tuple[Cell, ...]

    @property
    def box(self) -> CoreRange:
        (x0, y0), (x1, y1) = _corners((*self.multiplying, *self.combining, *self.tilizing))
        return CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1))


@composite("ttnn.experimental.get_moe_combine_cores")
def get_moe_combine_cores(
    mesh_device: MeshDevice,
    combine_token_parallel_cores: int,
    combine_data_parallel_cores: int,
    hidden_size: int,
    mux_core_range_set: CoreRangeSet | None = None,
) -> list[CoreCoord]:
    """The cores that combine, in their order."""
    count = _count(combine_token_parallel_cores, combine_data_parallel_cores)
    return [CoreCoord(x, y) for x, y in placement_of(mesh_device, count, hidden_size, mux_core_range_set).combining]


@composite("ttnn.experimental.get_moe_tilize_drain_core")
def get_moe_tilize_drain_core(
    mesh_device: MeshDevice,
    combine_token_parallel_cores: int,
    combine_data_parallel_cores: int,
    hidden_size: int,
    mux_core_range_set: CoreRangeSet | None = None,
) -> CoreCoord:
    """The core that holds indices and scores of experts: the first tilizing core."""
    count = _count(combine_token_parallel_cores, combine_data_parallel_cores)
    return CoreCoord(*placement_of(mesh_device, count, hidden_size, mux_core_range_set).tilizing[0])


@composite("ttnn.experimental.get_moe_worker_mcast_bounding_box")
def get_moe_worker_mcast_bounding_box(
    mesh_device: MeshDevice,
    combine_token_parallel_cores: int,
    combine_data_parallel_cores: int,
    hidden_size: int,
    mux_core_range_set: CoreRangeSet | None = None,
) -> CoreRange:
    """The rectangle around all cores of the operation."""
    count = _count(combine_token_parallel_cores, combine_data_parallel_cores)
    return placement_of(mesh_device, count, hidden_size, mux_core_range_set).box


def _count(tokens: int, width: int) -> int:
    require_unsigned(combine_token_parallel_cores=tokens, combine_data_parallel_cores=width)
    return tokens * width


def placement_of(device: MeshDevice, count: int, hidden_size: int, mux: CoreRangeSet | None) -> Placement:
    """The ring next to the DRAM banks if the other groups fit, else packed from column 0 on."""
    require_unsigned(hidden_size=hidden_size)
    grid = device.board.grid
    count %= MOST_CORES
    require(count > 0, "at least one core must combine")
    tiles = hidden_size // TILE_SIZE
    taken: Cells = frozenset() if mux is None else frozenset((core.x, core.y) for core in mux.cores())
    near = device.get_optimal_dram_bank_to_logical_worker_assignment(0)
    beside = tuple((core.x, core.y) for core in near)
    rings = () if taken.intersection(beside) else (beside,)
    for ring in (*rings, *_packed_rings(grid, len(beside), taken)):
        found = _around(ring, grid, taken, count, tiles)
        if found is not None:
            return found
    raise InvalidArgument(
        f"a ring of {len(beside)} cores and {count} that combine do not fit side by side into {grid[0]} x {grid[1]}"
        f" cores of which {len(taken)} are taken"
    )


def _packed_rings(grid: Grid, size: int, taken: Cells) -> Iterator[tuple[Cell, ...]]:
    """Rings row by row from ever higher rows on, that leave a strip in the east and the topmost rows free.

    Rows whose first core is occupied are skipped: rings that do not start in column 0 hang on the chip.
    """
    columns, rows = grid
    columns -= STRIP_WIDTH if columns > STRIP_WIDTH else 0
    rows -= TILIZING_ROWS if rows > TILIZING_ROWS else 0
    for first in range(grid[1]):
        usable = [y for y in range(first, rows) if (0, y) not in taken]
        ring = tuple((x, y) for y in usable for x in range(columns) if (x, y) not in taken)[:size]
        if len(ring) < size:
            return
        yield ring


def _around(ring: tuple[Cell, ...], grid: Grid, taken: Cells, count: int, tiles: int) -> Placement | None:
    """The other groups, outside of the rectangle around the ring; None if they don't fit."""
    closed = taken | _filled(ring)
    combining = _combining(closed, grid, count)
    if combining is None:
        return None
    tilizing = _tilizing(closed | frozenset(combining), _filled(ring) | frozenset(combining), grid, tiles)
    return None if tilizing is None else Placement(ring, tuple(sorted(combining)), tilizing)


def _combining(closed: Cells, grid: Grid, count: int) -> list[Cell] | None:
    """A full rectangle below the rows that tilize, two wide and far in the east if there is room for one."""
    columns, rows = grid
    limit = rows - TILIZING_ROWS if rows > TILIZING_ROWS else rows
    widths = [width for width in range(min(columns, count), 0, -1) if count % width == 0]
    shapes = [(STRIP_WIDTH, div_up(count, STRIP_WIDTH)), *((width, count // width) for width in widths)]
    # The strip may be one core too large; then the used part is not a rectangle, and no other is tried.
    for width, height in shapes:
        block = _free_block(closed, columns, limit, width, height)
        if block is not None:
            cells = block[:count]
            return cells if len(_filled(cells)) == count else None
    cells = [(x, y) for y in range(limit) for x in range(columns) if (x, y) not in closed][:count]
    return cells if len(cells) == count == len(_filled(cells)) else None


def _tilizing(closed: Cells, others: Cells, grid: Grid, tiles: int) -> tuple[Cell, ...] | None:
    """As many cores as divide the tiles of a token, four at most, in the topmost rows."""
    columns, rows = grid
    lowest = max(rows - TILIZING_ROWS, 0)
    block = _free_block(closed, columns, rows, 2, 2, lowest=lowest) if rows >= TILIZING_ROWS else None
    if block is not None:
        free = sorted(block, reverse=True)
    else:
        free = [
            (x, y) for y in range(rows - 1, lowest - 1, -1) for x in range(columns - 1, -1, -1) if (x, y) not in closed
        ]
    for size in range(max(min(MOST_TILIZING, tiles), 1), 0, -1):
        cells = free[:size]
        if tiles % size == 0 and len(cells) == size and not _filled(cells) & others:
            return tuple(cells)
    return None


def _free_block(
    closed: Cells, columns: int, limit: int, width: int, height: int, *, lowest: int = 0
) -> list[Cell] | None:
    """The easternmost free rectangle, the lowest of several; row by row."""
    for left in range(columns - width, -1, -1):
        for bottom in range(lowest, limit - height + 1):
            cells = [(x, y) for y in range(bottom, bottom + height) for x in range(left, left + width)]
            if closed.isdisjoint(cells):
                return cells
    return None


def _corners(cells: Iterable[Cell]) -> tuple[Cell, Cell]:
    xs, ys = zip(*cells, strict=True)
    return (min(xs), min(ys)), (max(xs), max(ys))


def _filled(cells: Iterable[Cell]) -> Cells:
    """All cells of the rectangle around these."""
    (x0, y0), (x1, y1) = _corners(cells)
    return frozenset((x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1))
