"""Times of reshapes."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    N150,
    P150,
    ns,
    of_cores,
    planned,
    programs,
    rows,
    sheet_ns,
    tiles,
)
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.data_movement.reshape import _segments

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)


def reshaped(source: Spec, *shape: int, board: Board = N150) -> Call:
    return planned("ttnn.reshape", ("input_tensor", source), shape=shape, board=board)


def test_views_launch_nothing() -> None:
    assert programs(reshaped(tiles(4, 64, 96), 1, 256, 96)) == []
    assert programs(reshaped(rows(4, 7, 96), 28, 96)) == []
    assert programs(reshaped(tiles(4, 64, 96), 4, 96, 64)) == ["ReshapeViewDeviceOperation"]


def test_segments_of_an_output_tile() -> None:
    """Lines of faces where widths are whole faces; every row of the output may be in another tile of the input."""
    assert _segments((32, 64), (64, 32)) == (2.0, 64.0, 64)
    pages, segments, _ = _segments((1, 2048), (32, 64))
    assert (pages, segments) == (32.0, 64.0)


@BOARDS
def test_scattered_rows_take_longer(board: Board) -> None:
    gathered = ns(reshaped(tiles(64, 64, 64), 32, 128, 64, board=board)) or ns(
        reshaped(tiles(64, 48, 64), 48, 64, 64, board=board)
    )
    scattered = ns(reshaped(tiles(64, 4096), 64, 64, 64, board=board))
    assert scattered > 2 * gathered


@BOARDS
def test_dram_is_slower_than_l1_and_fewer_cores_take_longer(board: Board) -> None:
    in_dram, in_l1 = (ns(reshaped(tiles(256, 4096, l1=l1), 256, 64, 64, board=board)) for l1 in (False, True))
    assert in_dram > in_l1
    half = ns(reshaped(tiles(256, 4096), 256, 64, 64, board=of_cores(board, board.grid[0] // 2, board.grid[1])))
    assert 1.6 < half / in_dram < 2.3


ROWS, TILES = "ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED", "TILE:BFLOAT16:DRAM_INTERLEAVED"


@pytest.mark.parametrize(
    ("cores", "grid", "source", "target", "measured"),
    [
        (20, 20, f"1x1x9856x6:{ROWS}", f"1x1x1408x42:{ROWS}", 123778),
        (20, 20, f"1x1x1792x256:{TILES}", f"1[1]x256[256]x32[7]x256[256]:{TILES}", 233174),
        (38, 64, f"1[1]x1[1]x32[19]x768[768]:{TILES}", f"1[1]x19[19]x32[12]x64[64]:{TILES}", 9567),
        (24, 64, f"1[1]x19[19]x32[12]x64[64]:{TILES}", f"1[1]x1[1]x32[19]x768[768]:{TILES}", 13040),
    ],
)
def test_measured_on_blackhole(cores: int, grid: int, source: str, target: str, measured: float) -> None:
    assert sheet_ns("ReshapeDeviceOperation", cores, source, target, grid=grid) == pytest.approx(measured, rel=0.12)


def test_measured_on_wormhole() -> None:
    source, target = f"1[1]x1[1]x32[19]x1280[1280]:{TILES}", f"1[1]x19[19]x32[20]x64[64]:{TILES}"
    predicted = sheet_ns("ReshapeDeviceOperation", 38, source, target, grid=64, arch="wormhole_b0")
    assert predicted == pytest.approx(19117, rel=0.12)
    large = ns(reshaped(tiles(1, 32, 128, 128, l1=True), 1, 1, 32, 16384, board=of_cores(N150, 8, 9)))
    assert large == pytest.approx(174550, rel=0.2)
