"""Times of slices and of padding."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    BF8,
    N150,
    P150,
    by_height,
    kernel,
    of_cores,
    rows,
    sheet_ns,
    tiles,
)
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.families.data_movement.slicing import rows_per_barrier
from ttnn_emulator.timing.launches import Bound, Launch

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)


def sliced(source: Spec, target: Spec, board: Board = N150, steps: tuple[int, ...] = (1, 1)) -> Launch:
    return kernel("ttnn.prim.slice", [("input_tensor", source)], target, board=board, steps=steps)


def padded(source: Spec, target: Spec, *, many: bool = True) -> Launch:
    return kernel("ttnn.prim.pad", [("input_tensor", source)], target, kernel=(many, False))


def test_rows_that_fit_between_barriers() -> None:
    assert rows_per_barrier(64, 128) == 32
    assert rows_per_barrier(24, 320) == 8
    assert rows_per_barrier(7, 8192) == 1


@BOARDS
def test_large_slices_are_bound_by_dram(board: Board) -> None:
    large, small = (sliced(tiles(size, 2048), tiles(size, 1024), board) for size in (16384, 4096))
    assert large.bound is Bound.DRAM
    assert 3 * small.kernel_ns < large.kernel_ns < 4.5 * small.kernel_ns


def test_what_is_not_taken_is_not_read() -> None:
    large, small = (sliced(tiles(rows, 2048), tiles(2048, 2048)) for rows in (8192, 4096))
    assert (large.kernel_ns, large.dram_bytes) == (small.kernel_ns, small.dram_bytes)


def test_few_cores_wait_for_one_tile_after_the_other() -> None:
    few, many = (sliced(tiles(512, 64), tiles(512, 32), of_cores(N150, 1, lines)) for lines in (1, 8))
    assert few.kernel_ns > 4 * many.kernel_ns
    assert few.bound is Bound.LATENCY


def test_values_between_steps_are_picked_by_the_core() -> None:
    whole, every_other = (sliced(rows(4096, 512), rows(4096, 256), steps=(1, step)).kernel_ns for step in (1, 2))
    assert every_other > 2 * whole


def test_slices_of_shards_do_not_pay_for_dram() -> None:
    launch = sliced(by_height(rows(64, 64, 64), 64), by_height(rows(64, 32, 64), 64))
    assert launch.dram_bytes == 0
    assert launch.kernel_ns < sliced(rows(64, 64, 64), rows(64, 32, 64)).kernel_ns


def test_a_tile_of_padding_takes_most_of_the_time_to_pad_a_few_tiles() -> None:
    """Measured on Wormhole with 8 x 9 cores: 41.25 us."""
    launch = padded(tiles(1, 1, 32, 576, l1=True), tiles(1, 32, 32, 576, l1=True))
    assert launch.kernel_ns == pytest.approx(41250, rel=0.15)
    assert padded(tiles(1, 1, 32, 576, l1=True), tiles(1, 2, 32, 576, l1=True)).kernel_ns > 0.8 * launch.kernel_ns


def test_padding_on_one_core_takes_longer_for_many_tiles() -> None:
    source, target = tiles(1, 64, 64, 64), tiles(1, 128, 64, 64)
    assert padded(source, target, many=False).kernel_ns > 2 * padded(source, target).kernel_ns


TILES, BYTES, ROWS = (
    "TILE:BFLOAT16:DRAM_INTERLEAVED",
    "TILE:BFLOAT8_B:DRAM_INTERLEAVED",
    "ROW_MAJOR:BFLOAT16:L1_INTERLEAVED",
)


@pytest.mark.parametrize(
    ("cores", "grid", "source", "target", "measured"),
    [
        (20, 20, f"1x1x25344x256:{TILES}", f"1x1x25312x256:{TILES}", 154220),
        (110, 110, f"1x32x3200x192:{TILES}", f"1x32x3200x128:{TILES}", 156426),
        (110, 110, f"1x1x3200x576:{TILES}", f"1x1x3200x64:{TILES}", 3258),
        (110, 110, f"1x1x131072x128:{BYTES}", f"1x1x131072x64:{BYTES}", 58604),
        (20, 20, f"1x9x159x159:{ROWS}", f"1x3x159x159:{ROWS}", 3839),
    ],
)
def test_measured_on_blackhole(cores: int, grid: int, source: str, target: str, measured: float) -> None:
    assert sheet_ns("SliceDeviceOperation", cores, source, target, grid=grid) == pytest.approx(measured, rel=0.15)


def test_measured_on_wormhole() -> None:
    launch = sliced(tiles(1, 1, 32, 2112, l1=True), tiles(1, 1, 32, 512, l1=True))
    assert launch.kernel_ns == pytest.approx(1260, rel=0.15)


def test_block_floats_take_half_as_long() -> None:
    wide = sliced(tiles(16384, 2048), tiles(16384, 1024)).kernel_ns
    narrow = sliced(tiles(16384, 2048, dtype=BF8), tiles(16384, 1024, dtype=BF8)).kernel_ns
    assert 0.45 < narrow / wide < 0.65
