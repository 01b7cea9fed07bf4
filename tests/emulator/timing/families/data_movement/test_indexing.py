"""Times of operations that follow indices, and of tensors that are made on the device."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.planned_calls import (
    BF8,
    N150,
    P150,
    kernel,
    ns,
    planned,
    programs,
    rows,
    sheet_ns,
    tiles,
)
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.pricing import launches_of

BOARDS = pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)
U32 = DataType.UINT32


def looked_up(tokens: Spec, width: int, out: Spec, kind: str = "GENERIC", board: Board = N150) -> Launch:
    sources = [("input_tensor", tokens), ("weight", rows(1, 1, 30522, width))]
    return kernel("ttnn.prim.embedding", sources, out, board=board, kind=kind)


# -- embeddings -------------------------------------------------------------------------------------------------------


@BOARDS
def test_embeddings_of_many_tokens_are_bound_by_dram(board: Board) -> None:
    tokens = rows(8, 1, 1, 384, dtype=U32)
    launch = looked_up(tokens, 1024, tiles(8, 1, 384, 1024, l1=True), board=board)
    assert launch.bound is Bound.DRAM
    wider = looked_up(tokens, 2048, tiles(8, 1, 384, 2048, l1=True), board=board)
    assert 1.6 < wider.kernel_ns / launch.kernel_ns < 2.2


def test_a_table_of_two_rows_is_kept_in_l1() -> None:
    tokens, out = rows(8, 1, 1, 384, dtype=U32), tiles(8, 1, 384, 1024, l1=True)
    assert looked_up(tokens, 1024, out, "BINARY").kernel_ns < 0.7 * looked_up(tokens, 1024, out).kernel_ns


ROWS = "ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED"


@pytest.mark.parametrize(("arch", "width", "measured"), [("blackhole", 768, 7908), ("wormhole_b0", 1280, 10105)])
def test_embeddings_measured(arch: str, width: int, measured: float) -> None:
    """Nineteen tokens in a tile: the first sixteen are on one core."""
    inputs = f"1[1]x1[1]x32[1]x32[19]:TILE:UINT32:DRAM_INTERLEAVED|1x1x77x{width}:{ROWS}"
    predicted = sheet_ns("EmbeddingsDeviceOperation", 2, inputs, f"1x1x19x{width}:{ROWS}", grid=64, arch=arch)
    assert predicted == pytest.approx(measured, rel=0.12)


# -- single values ----------------------------------------------------------------------------------------------------


@BOARDS
def test_gathered_values_are_moved_one_by_one(board: Board) -> None:
    def gathered(width: int) -> float:
        sources = [("input_tensor", tiles(2048, 64)), ("index", tiles(2048, width, dtype=U32))]
        return kernel("ttnn.prim.gather", sources, tiles(2048, width), board=board).kernel_ns

    assert 1.7 < gathered(64) / gathered(32) < 2.1


def test_scattered_values_take_longer_than_a_copy() -> None:
    sources = [("input_tensor", rows(64, 1, 1, 512)), ("index", rows(64, 1, 1, 512, dtype=U32))]
    launch = kernel("ttnn.prim.scatter", [*sources, ("source", rows(64, 1, 1, 512))], rows(64, 1, 1, 512), reduce=None)
    copied = planned("ttnn.clone", ("input", rows(64, 1, 1, 512)))
    assert launch.kernel_ns > 3 * ns(copied)


def test_nonzero_runs_on_one_core() -> None:
    source = rows(1, 1, 64, 512)
    launch = kernel(
        "ttnn.nonzero", [("input_tensor", source)], rows(1, 1, 1, 8, dtype=U32), rows(1, 1, 32768, 4, dtype=U32)
    )
    assert launch.cores == 1
    assert launch.kernel_ns > 64 * 512  # more than a nanosecond per value


# -- creation ---------------------------------------------------------------------------------------------------------


def test_tensors_that_the_host_fills_launch_nothing() -> None:
    for name in ("ttnn.zeros", "ttnn.full", "ttnn.arange", "ttnn.empty"):
        assert launches_of(Call(name, (), (tiles(64, 64),), {}, N150)) == ()
    cast = Call("ttnn.full_like", (("tensor", rows(64, 64)),), (rows(64, 64),), {}, N150)
    assert launches_of(cast) == ()


@BOARDS
def test_larger_tensors_take_longer_to_fill(board: Board) -> None:
    small, large = (
        launches_of(Call("ttnn.moreh_full", (), (tiles(size, 1024),), {}, board))[0] for size in (4096, 16384)
    )
    assert 2.5 * small.kernel_ns < large.kernel_ns < 4.5 * small.kernel_ns
    assert large.bound is Bound.DRAM


def test_random_rows_are_untilized() -> None:
    call = planned("ttnn.rand", shape=(64, 64), device=None, layout=Layout.ROW_MAJOR)
    assert programs(call) == ["RandDeviceOperation", "UntilizeDeviceOperation"]


def test_padding_of_block_floats_is_filled_in_bfloat16() -> None:
    plain = planned("ttnn.fill_implicit_tile_padding", ("input_tensor", tiles(50, 50)), fill_value=1.0)
    blocks = planned("ttnn.fill_implicit_tile_padding", ("input_tensor", tiles(50, 50, dtype=BF8)), fill_value=1.0)
    whole = planned("ttnn.fill_implicit_tile_padding", ("input_tensor", tiles(64, 64)), fill_value=1.0)
    assert programs(plain) == ["FillPadDeviceOperation"]
    assert len(programs(blocks)) == 3
    assert programs(whole) == []
