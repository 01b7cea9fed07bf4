"""Times of permutations and transposes."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    N150,
    P150,
    by_height,
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
from ttnn_emulator.timing.pricing import launches_of

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)


def permuted(source: Spec, *dims: int, board: Board = N150) -> Call:
    return planned("ttnn.permute", ("input_tensor", source), dims=dims, board=board)


def transposed(source: Spec, dim1: int, dim2: int, board: Board = N150) -> Call:
    return planned("ttnn.transpose", ("input_tensor", source), dim1=dim1, dim2=dim2, board=board)


def test_programs_follow_the_order() -> None:
    assert programs(permuted(tiles(2, 8, 64, 64), 0, 2, 1, 3)) == ["TransposeDeviceOperation"]
    assert programs(permuted(tiles(2, 8, 64, 64), 0, 2, 3, 1)) == ["PermuteDeviceOperation"]
    assert programs(permuted(tiles(2, 8, 64, 64), 0, 1, 2, 3)) == []
    assert programs(transposed(rows(2, 8, 64, 64), 2, 3)) == ["PermuteDeviceOperation"]


@BOARDS
def test_lines_of_faces_take_longer_than_whole_tiles(board: Board) -> None:
    whole = ns(transposed(tiles(32, 64, 64, 64), 0, 1, board))
    lines = ns(transposed(tiles(1, 2048, 64, 64), 1, 2, board))
    assert lines > 2 * whole


@BOARDS
def test_padding_of_the_output_is_written_too(board: Board) -> None:
    full, padded = (ns(transposed(tiles(1, channels, 2048, 256), 1, 2, board)) for channels in (32, 1))
    assert padded > full / 8  # a thirty-second of the values, in as many tiles


def test_more_values_take_longer_and_more_cores_less() -> None:
    small, large = (ns(permuted(tiles(1, channels, 256, 256), 0, 2, 3, 1)) for channels in (32, 128))
    assert 3 * small < large < 4.5 * small
    half = ns(permuted(tiles(1, 128, 256, 256), 0, 2, 3, 1, board=of_cores(N150, 8, 4)))
    assert 1.8 < half / large < 2.1


def test_a_sharded_transpose_stays_on_its_cores() -> None:
    (launch,) = launches_of(transposed(by_height(tiles(32, 1, 160, 64), 32), 2, 3))
    assert launch.cores == 32 and launch.dram_bytes == 0
    assert launch.kernel_ns < ns(transposed(tiles(32, 1, 160, 64), 2, 3))


ROWS, TILES, IN_L1 = (
    "ROW_MAJOR:BFLOAT16:L1_INTERLEAVED",
    "TILE:BFLOAT16:DRAM_INTERLEAVED",
    "TILE:BFLOAT16:L1_INTERLEAVED",
)


@pytest.mark.parametrize(
    ("cores", "grid", "source", "target", "measured"),
    [
        (20, 20, f"1[1]x3[3]x160[159]x160[159]:{IN_L1}", f"1[1]x159[159]x160[159]x32[3]:{IN_L1}", 110350),
        (20, 20, f"1x12x64x256:{IN_L1}", f"40x12x32x256:{IN_L1}", 352556),
        (20, 20, f"80x24x32x256:{TILES}", f"1x24x96x256:{TILES}", 404461),
        (20, 20, f"1x48x160x256:{TILES}", f"160x48x32x256:{TILES}", 5402936),
        (110, 110, f"1x128x256x32:{ROWS}", f"1x32x128x256:{ROWS}", 17971),
    ],
)
def test_permutes_measured_on_blackhole(cores: int, grid: int, source: str, target: str, measured: float) -> None:
    assert sheet_ns("PermuteDeviceOperation", cores, source, target, grid=grid) == pytest.approx(measured, rel=0.15)


def test_transposes_measured_on_blackhole() -> None:
    of_bytes = "TILE:BFLOAT8_B:DRAM_INTERLEAVED"
    code = "TransposeDeviceOperation"
    small = sheet_ns(code, 20, f"1x24x96x256:{TILES}", f"24x1x96x256:{TILES}", grid=20)
    large = sheet_ns(code, 110, f"1x128x256x256:{of_bytes}", f"1x128x256x256:{of_bytes}", grid=110)
    assert small == pytest.approx(14884, rel=0.15)
    assert large == pytest.approx(54672, rel=0.15)


@pytest.mark.parametrize(
    ("source", "dims", "measured"),
    [
        (tiles(1, 1, 32, 64, l1=True), (0, 2, 1, 3), 5520),
        (tiles(1, 32, 1, 64, l1=True), (0, 2, 1, 3), 1300),
        (tiles(1, 32, 16, 64, l1=True), (1, 0, 2, 3), 1620),
        (tiles(1, 4, 128, 512, l1=True), (0, 2, 1, 3), 31940),
    ],
)
def test_targets_of_a_model_on_wormhole(source: Spec, dims: tuple[int, ...], measured: float) -> None:
    """Expected times of DeepSeek V3's operations on 8 x 9 cores."""
    assert ns(permuted(source, *dims, board=of_cores(N150, 8, 9))) == pytest.approx(measured, rel=0.3)
