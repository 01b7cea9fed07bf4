"""Times of moves between memories."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.rows import predicted_ns
from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.data_movement.sharding import change_of_memory
from ttnn_emulator.timing.launches import Bound
from ttnn_emulator.timing.pricing import launches_of

N150, P150 = find_board("n150"), find_board("p150")
BF16, BF8 = DataType.BFLOAT16, DataType.BFLOAT8_B
HEIGHT, BLOCK = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED


def shards(rows: int, columns: int, cores: int, dtype: DataType = BF16, layout: Layout = Layout.TILE) -> Spec:
    grid = num_cores_to_corerangeset(cores, CoreCoord(8, 8), True)
    config = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(grid, (rows // cores, columns)))
    return Spec.of((1, 1, rows, columns), dtype, layout, config)


def blocks(rows: int, columns: int, down: int, across: int) -> Spec:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(across - 1, down - 1))])
    config = MemoryConfig(BLOCK, BufferType.L1, ShardSpec(grid, (rows // down, columns // across)))
    return Spec.of((1, 1, rows, columns), BF16, Layout.TILE, config)


def interleaved(
    rows: int, columns: int, dtype: DataType = BF16, layout: Layout = Layout.TILE, *, l1: bool = False
) -> Spec:
    return Spec.of((1, 1, rows, columns), dtype, layout, L1_MEMORY_CONFIG if l1 else DRAM_MEMORY_CONFIG)


def moved_ns(source: Spec, target: Spec, board: Board = N150) -> float:
    return sum(launch.kernel_ns for launch in change_of_memory(source, target, board))


# -- what decides the time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", [N150, P150], ids=lambda board: board.name)
def test_more_bytes_take_longer(board: Board) -> None:
    small = moved_ns(interleaved(2048, 256), shards(2048, 256, 64), board)
    large = moved_ns(interleaved(8192, 256), shards(8192, 256, 64), board)
    assert 2 * small < large < 5 * small


def test_block_floats_take_half_as_long_to_shard() -> None:
    wide = moved_ns(interleaved(16384, 256), shards(16384, 256, 64))
    narrow = moved_ns(interleaved(16384, 256, BF8), shards(16384, 256, 64, BF8))
    assert 0.45 < narrow / wide < 0.6


def test_dram_is_slower_than_l1() -> None:
    assert moved_ns(shards(16384, 256, 64), interleaved(16384, 256, l1=True)) < 0.7 * moved_ns(
        shards(16384, 256, 64), interleaved(16384, 256)
    )


def test_few_cores_do_not_saturate_dram() -> None:
    few, many = (moved_ns(interleaved(8192, 256), shards(8192, 256, cores)) for cores in (4, 64))
    assert few > 1.5 * many
    (launch,) = change_of_memory(interleaved(8192, 256), shards(8192, 256, 64), N150)
    assert launch.bound is Bound.DRAM
    assert launch.dram_bytes == 8192 * 256 * 2


def test_resharding_does_not_touch_dram() -> None:
    (launch,) = change_of_memory(shards(2048, 512, 64), blocks(2048, 512, 8, 8), N150)
    assert launch.program == "ReshardDeviceOperation"
    assert launch.dram_bytes == 0
    through = moved_ns(shards(2048, 512, 64), interleaved(2048, 512)) + moved_ns(
        interleaved(2048, 512), blocks(2048, 512, 8, 8)
    )
    assert launch.kernel_ns < through


def test_rows_that_are_not_aligned_wait() -> None:
    def ns(columns: int) -> float:
        source = interleaved(4096, columns, layout=Layout.ROW_MAJOR)
        return moved_ns(source, shards(4096, columns, 64, layout=Layout.ROW_MAJOR))

    assert ns(8) > 2 * ns(16)  # rows of 16 B, and of 32 B, where DRAM is aligned to 32 B


def test_a_change_of_dtype_is_computed_after_the_shard_was_read() -> None:
    same, other = (moved_ns(interleaved(8192, 256), shards(8192, 256, 64, dtype)) for dtype in (BF16, BF8))
    assert other > same


def test_nothing_is_launched_for_the_memory_that_a_tensor_has() -> None:
    assert change_of_memory(interleaved(64, 64), interleaved(64, 64), N150) == []


def test_rows_of_other_widths_go_through_dram() -> None:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(1, 7))])
    config = MemoryConfig(BLOCK, BufferType.L1, ShardSpec(grid, (128, 128)))
    target = Spec.of((1, 1, 1024, 256), BF16, Layout.ROW_MAJOR, config)
    launches = change_of_memory(shards(1024, 256, 32, layout=Layout.ROW_MAJOR), target, N150)
    assert [launch.program for launch in launches] == [
        "ShardedToInterleavedDeviceOperation",
        "InterleavedToShardedDeviceOperation",
    ]


def test_operations_have_the_programs_of_the_library() -> None:
    source, target = interleaved(1024, 64), shards(1024, 64, 32)
    names = {
        "ttnn.to_memory_config": "InterleavedToShardedDeviceOperation",
        "ttnn.interleaved_to_sharded": "InterleavedToShardedDeviceOperation",
        "ttnn.interleaved_to_sharded_partial": "InterleavedToShardedPartialDeviceOperation",
    }
    for name, program in names.items():
        (launch,) = launches_of(Call(name, (("input_tensor", source),), (target,), {}, N150))
        assert launch.program == program
        assert launch.cores == 32
    (launch,) = launches_of(Call("ttnn.sharded_to_interleaved", (("input_tensor", target),), (source,), {}, N150))
    assert launch.program == "ShardedToInterleavedDeviceOperation"
    assert launches_of(Call("ttnn.sharded_to_interleaved", (("input_tensor", source),), (source,), {}, N150)) == ()


# -- silicon ----------------------------------------------------------------------------------------------------------

MEASURED = [
    ("InterleavedToShardedDeviceOperation", "2048[2048]x2048[2048]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "2048[2048]x2048[2048]:TILE:BFLOAT8_B:L1_WIDTH_SHARDED", 64, 110, 13264),
    ("InterleavedToShardedDeviceOperation", "122880[122880]x64[64]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "122880[122880]x64[64]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED", 20, 20, 26412),
    ("InterleavedToShardedDeviceOperation", "7680[7680]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
     "7680[7680]x256[256]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 110, 166185),
    ("ShardedToInterleavedDeviceOperation", "480[480]x512[512]:TILE:BFLOAT16:L1_HEIGHT_SHARDED",
     "480[480]x512[512]:TILE:BFLOAT16:DRAM_INTERLEAVED", 15, 20, 2421),
    ("ShardedToInterleavedDeviceOperation", "2048[2048]x1024[1024]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED",
     "2048[2048]x1024[1024]:TILE:BFLOAT8_B:DRAM_INTERLEAVED", 64, 110, 8607),
    ("ReshardDeviceOperation", "2048[2048]x1024[1024]:TILE:BFLOAT8_B:L1_BLOCK_SHARDED",
     "2048[2048]x1024[1024]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED", 64, 110, 2639),
    ("MoveDeviceOperation", "151540[151540]x64[64]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
     "151540[151540]x64[64]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, 12473),
    ("MoveDeviceOperation", "2048[2048]x256[256]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED",
     "2048[2048]x256[256]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED", 64, 110, 394),
]  # fmt: skip


@pytest.mark.parametrize(("code", "source", "target", "cores", "grid", "measured"), MEASURED)
def test_measured_rows(code: str, source: str, target: str, cores: int, grid: int, measured: float) -> None:
    assert predicted_ns(code, source, target, cores, grid) == pytest.approx(measured, rel=0.15)


# Targets of the library's tests on Wormhole: L1 interleaved and sharded by height, in microseconds.
@pytest.mark.parametrize(
    ("rows", "columns", "cores", "to_shards", "target"),
    [(1024, 64, 32, True, 1.04), (128, 576, 4, True, 2.83), (1024, 64, 32, False, 1.19), (512, 512, 16, False, 3.89)],
)
def test_wormhole_targets(rows: int, columns: int, cores: int, to_shards: bool, target: float) -> None:
    one, other = interleaved(rows, columns, l1=True), shards(rows, columns, cores)
    found = moved_ns(one, other) if to_shards else moved_ns(other, one)
    assert found == pytest.approx(1000 * target, rel=0.25)
