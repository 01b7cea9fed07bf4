"""Times of tilize and untilize, with and without padding."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    BF8,
    F32,
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
from ttnn_emulator.enums import Layout
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG
from ttnn_emulator.timing.launches import Bound
from ttnn_emulator.timing.pricing import launches_of

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)


def to_tiles(source, **arguments):
    return planned("ttnn.to_layout", ("tensor", source), layout=Layout.TILE, **arguments)


def to_rows(source, **arguments):
    return planned("ttnn.to_layout", ("tensor", source), layout=Layout.ROW_MAJOR, **arguments)


# -- which programs run -----------------------------------------------------------------------------------------------


def test_programs_follow_padding() -> None:
    assert programs(to_tiles(rows(64, 64))) == ["TilizeDeviceOperation"]
    assert programs(to_tiles(rows(50, 64))) == ["TilizeWithValPaddingDeviceOperation"]
    assert programs(to_rows(tiles(64, 64))) == ["UntilizeDeviceOperation"]
    assert programs(to_rows(tiles(50, 64))) == ["UntilizeWithUnpaddingDeviceOperation"]


def test_a_layout_that_the_tensor_has_launches_nothing() -> None:
    assert programs(to_tiles(tiles(64, 64))) == []


def test_a_listed_call_without_its_plan_has_the_same_programs() -> None:
    call = to_tiles(rows(50, 64), memory_config=L1_MEMORY_CONFIG)
    listed = type(call)(call.name, call.inputs, call.outputs, {"layout": "TILE"}, call.board)
    assert launches_of(listed) == launches_of(call)


# -- what decides the time --------------------------------------------------------------------------------------------


@BOARDS
def test_more_rows_take_longer(board: Board) -> None:
    for convert, make in ((to_tiles, rows), (to_rows, tiles)):
        small, large = (ns(convert(make(height, 512), board=board)) for height in (8192, 32768))
        assert 3 * small < large < 4.5 * small


def test_half_the_cores_take_twice_as_long_where_no_memory_is_the_limit() -> None:
    few, many = (ns(to_tiles(rows(16384, 512, l1=True), board=of_cores(N150, 8, lines))) for lines in (2, 4))
    assert 1.8 < few / many < 2.1


@BOARDS
def test_shards_are_converted_in_place_and_do_not_pay_for_dram(board: Board) -> None:
    (sharded,) = launches_of(to_tiles(by_height(rows(4096, 256), 64), board=board))
    (interleaved,) = launches_of(to_tiles(rows(4096, 256), board=board))
    assert sharded.dram_bytes == 0 and sharded.bound is Bound.COMPUTE
    assert sharded.kernel_ns < 0.5 * interleaved.kernel_ns


def test_dram_is_slower_than_l1() -> None:
    assert ns(to_tiles(rows(32768, 512))) > 1.2 * ns(to_tiles(rows(32768, 512, l1=True)))


def test_wider_formats_take_longer_to_tilize() -> None:
    shards = by_height(rows(4096, 256), 64)
    narrow, same = ns(to_tiles(shards, dtype=BF8)), ns(to_tiles(shards))
    wide = ns(to_tiles(by_height(rows(4096, 256, dtype=F32), 64)))
    assert narrow < same < wide


def test_narrow_shards_untilize_one_tile_at_a_time() -> None:
    """A block of up to eight tiles shares the packer's set-up."""
    narrow = ns(to_rows(by_height(tiles(16384, 32), 64)))
    wide = ns(to_rows(by_height(tiles(2048, 256), 64)))
    assert narrow > 3 * wide


def test_unpadding_waits_for_every_row() -> None:
    plain, unpadded = (ns(to_rows(tiles(height, 256, l1=True))) for height in (4096, 4095))
    assert unpadded > 2 * plain


def test_padding_is_filled_by_the_core() -> None:
    nearly_empty = ns(to_tiles(rows(64, 1, 1024)))
    full = ns(to_tiles(rows(64, 31, 1024)))
    assert nearly_empty > 1.2 * full


# -- measured ---------------------------------------------------------------------------------------------------------

L1_ROWS, L1_TILES = "ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", "TILE:BFLOAT16:L1_HEIGHT_SHARDED"
ROWS, TILES = "ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED", "TILE:BFLOAT16:DRAM_INTERLEAVED"


@pytest.mark.parametrize(
    ("code", "cores", "grid", "source", "target", "measured"),
    [
        ("TilizeDeviceOperation", 20, 20, f"1x1x122880x32:{L1_ROWS}", f"1x1x122880x32:{L1_TILES}", 10501),
        ("Tilize", 20, 20, f"1x1x7680x128:{L1_ROWS}", f"1x1x7680x128:{L1_TILES}", 2934),
        ("Tilize", 15, 20, f"1x1x480x512:{ROWS}", f"1x1x480x512:{TILES}", 8626),
        ("TilizeDeviceOperation", 103, 110, f"1x128x256x256:{ROWS}", f"1x128x256x256:{TILES}", 137761),
        (
            "TilizeWithValPaddingDeviceOperation",
            1,
            64,
            f"1x1x19x768:{ROWS}",
            f"1[1]x1[1]x32[19]x768[768]:{TILES}",
            27625,
        ),
        (
            "TilizeWithValPaddingDeviceOperation",
            20,
            20,
            f"1x1x25281x256:{ROWS}",
            f"1[1]x1[1]x25312[25281]x256[256]:{TILES}",
            488360,
        ),
        ("UntilizeDeviceOperation", 20, 20, f"1x1x122880x32:{L1_TILES}", f"1x1x122880x32:{L1_ROWS}", 63862),
        ("UntilizeDeviceOperation", 20, 20, f"1x1x6400x256:{L1_TILES}", f"1x1x6400x256:{L1_ROWS}", 7116),
        ("Untilize", 20, 20, f"1x1x7680x256:{TILES}", f"1x1x7680x256:{ROWS}", 47386),
        (
            "UntilizeWithUnpaddingDeviceOperation",
            20,
            20,
            f"1[1]x1[1]x25312[25281]x256[256]:{TILES}",
            f"1x1x25281x256:{ROWS}",
            383342,
        ),
    ],
)
def test_measured_on_blackhole(code: str, cores: int, grid: int, source: str, target: str, measured: float) -> None:
    assert sheet_ns(code, cores, source, target, grid=grid) == pytest.approx(measured, rel=0.12)


def test_measured_on_wormhole() -> None:
    predicted = sheet_ns(
        "TilizeWithValPaddingDeviceOperation",
        40,
        f"1x1x19x1280:{ROWS}",
        f"1[1]x1[1]x32[19]x1280[1280]:{TILES}",
        grid=64,
        arch="wormhole_b0",
    )
    assert predicted == pytest.approx(10168, rel=0.12)
