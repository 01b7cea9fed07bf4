"""Times of joined, repeated and copied tensors."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    BF8,
    F32,
    N150,
    P150,
    by_height,
    kernel,
    ns,
    of_cores,
    planned,
    programs,
    rows,
    sheet_ns,
    tiles,
)
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.launches import Bound, Launch

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)


def joined(*tensors: Spec, dim: int, board: Board = N150) -> Launch:
    shape = list(tensors[0].shape)
    shape[dim] = sum(spec.shape[dim] for spec in tensors)
    out = Spec.of(shape, tensors[0].dtype, tensors[0].layout, tensors[0].memory_config)
    return kernel("ttnn.prim.concat", [("tensors", spec) for spec in tensors], out, board=board, dim=dim)


@BOARDS
def test_more_bytes_take_longer(board: Board) -> None:
    small, large = (joined(tiles(size, 512), tiles(size, 512), dim=1, board=board) for size in (4096, 16384))
    assert 3 * small.kernel_ns < large.kernel_ns < 4.5 * small.kernel_ns
    assert large.bound is Bound.DRAM


def test_joining_rows_along_their_width_waits_for_all_parts_together() -> None:
    along, across = (joined(rows(8192, 64, l1=True), rows(8192, 64, l1=True), dim=dim) for dim in (1, 0))
    assert 0.4 < along.kernel_ns / across.kernel_ns < 0.8  # half as many rows, of two parts each


def test_partial_tiles_are_untilized_and_tilized_again() -> None:
    whole = joined(tiles(2048, 64), tiles(2048, 64), dim=1)
    partial = joined(tiles(2048, 50), tiles(2048, 50), dim=1)
    assert partial.kernel_ns > 1.3 * whole.kernel_ns


def test_shards_are_joined_in_place() -> None:
    left = by_height(rows(4096, 64), 64)
    out = by_height(rows(4096, 128), 64)
    in_place = kernel("ttnn.prim.concat", [("tensors", left), ("tensors", left)], out, dim=1)
    assert in_place.dram_bytes == 0 and in_place.cores == 64
    assert in_place.kernel_ns < joined(rows(4096, 64), rows(4096, 64), dim=1).kernel_ns


def test_more_cores_take_less_time_where_no_memory_is_the_limit() -> None:
    few, many = (
        joined(tiles(2048, 512, l1=True), tiles(2048, 512, l1=True), dim=1, board=of_cores(N150, 8, lines))
        for lines in (2, 4)
    )
    assert 1.7 < few.kernel_ns / many.kernel_ns < 2.1


def test_repeats() -> None:
    repeated = planned("ttnn.repeat", ("input_tensor", tiles(1, 64, 64)), repeat_dims=(8, 1, 1))
    assert programs(repeated) == ["RepeatCodegenDeviceOperation"]
    more = planned("ttnn.repeat", ("input_tensor", tiles(1, 64, 64)), repeat_dims=(512, 1, 1))
    assert ns(more) > 4 * ns(repeated)
    nothing = planned("ttnn.expand", ("input_tensor", tiles(4, 64, 64)), output_shape=(4, 64, 64))
    assert programs(nothing) == []


def test_copies() -> None:
    same = planned("ttnn.clone", ("input", tiles(4096, 512)))
    cast = planned("ttnn.clone", ("input", tiles(4096, 512, dtype=F32)), dtype=BF8)
    to_l1 = planned("ttnn.clone", ("input", tiles(4096, 512)), memory_config=L1_MEMORY_CONFIG)
    assert programs(same) == programs(cast) == ["CloneOperation"]
    assert ns(to_l1) < ns(same)


TILES, ROWS = "TILE:BFLOAT16:DRAM_INTERLEAVED", "ROW_MAJOR:BFLOAT16:L1_INTERLEAVED"


@pytest.mark.parametrize(
    ("code", "cores", "grid", "sources", "target", "measured"),
    [
        (
            "ConcatDeviceOperation",
            110,
            110,
            f"1x1x3200x512:{TILES}|1x1x3200x64:{TILES}",
            f"1x1x3200x576:{TILES}",
            23346,
        ),
        ("ConcatDeviceOperation", 20, 20, f"1x1x30720x32:{ROWS}|1x1x30720x32:{ROWS}", f"1x1x30720x64:{ROWS}", 523204),
        ("CopyDeviceOperation", 20, 20, f"1x1x30720x64:{ROWS}", f"1x1x30720x64:{ROWS.replace('L1', 'DRAM')}", 470320),
    ],
)
def test_measured_on_blackhole(code: str, cores: int, grid: int, sources: str, target: str, measured: float) -> None:
    assert sheet_ns(code, cores, sources, target, grid=grid) == pytest.approx(measured, rel=0.12)


def test_measured_on_wormhole() -> None:
    launch = joined(tiles(1, 1, 32, 512, l1=True), tiles(1, 1, 32, 64, l1=True), dim=3)
    assert launch.kernel_ns == pytest.approx(1320, rel=0.15)
