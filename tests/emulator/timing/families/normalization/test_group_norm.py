"""Times of group_norm: passes per group, exchanges of sums, rows of performance sheets, and published unit tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.timing.families.specs import BFP8, row, row_error, tensor
from ttnn_emulator.enums import BufferType, Layout, TensorMemoryLayout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.normalization.group_norm import sharded_groups
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of

WEIGHT = "1[1]x1[1]x{rows}[{rows}]x32[32]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED"
MASK = "1[1]x16[16]x32[32]x32[32]:TILE:BFLOAT16:DRAM_INTERLEAVED"
ROWS = [
    ("7680[7680]x128[128]:TILE", "L1_HEIGHT_SHARDED", 20, 4, 293508.0),
    ("1920[1920]x256[256]:ROW_MAJOR", "L1_HEIGHT_SHARDED", 20, 8, 231297.0),
    ("30720[30720]x64[64]:ROW_MAJOR", "L1_HEIGHT_SHARDED", 20, 2, 631682.5),
    ("480[480]x512[512]:ROW_MAJOR", "L1_BLOCK_SHARDED", 20, 16, 32604.0),
    ("480[480]x256[256]:ROW_MAJOR", "L1_BLOCK_SHARDED", 20, 8, 29871.0),
    ("122880[122880]x64[64]:TILE", "DRAM_INTERLEAVED", 8, 2, 16450192.0),
]


@pytest.mark.parametrize(("shape", "memory", "cores", "weights", "measured"), ROWS)
def test_measured_rows(shape: str, memory: str, cores: int, weights: int, measured: float) -> None:
    source = f"1[1]x1[1]x{shape}:BFLOAT16:{memory}"
    weight = WEIGHT.format(rows=weights)
    given = row("GroupNormDeviceOperation", cores, f"{source} | {weight} | {weight} | {MASK}", source)
    attributes = "GroupNormMultiCoreProgramConfig(compute_with_storage_grid_size=(x=4"
    assert abs(row_error({**given, "math_fidelity": "HiFi4", "attrs": attributes}, measured)) < 0.15


def in_blocks(height: int, channels: int, across: int = 8, down: int = 8) -> Spec:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(across - 1, down - 1))])
    shards = ShardSpec(grid, (height // down, channels // across))
    memory = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    return tensor(1, 1, height, channels, layout=Layout.ROW_MAJOR, memory=memory)


def normed(source: Spec, *others: tuple[str, Spec], board: str = "n150", **given: Any) -> Launch:
    inputs = (("input_tensor", source), *others)
    call = Call("ttnn.group_norm", inputs, (source,), {"num_groups": 32, **given}, find_board(board))
    (launch,) = launches_of(call)
    return launch


# tt-metal v0.81.1: models/demos/stable_diffusion_xl_base/tests/test_sdxl_op_unit_test_perf.py, expected_duration_ns
def test_published_times_of_shards() -> None:
    mask = ("input_mask", tensor(1, 32, 32, 96, dtype=BFP8))
    assert abs(normed(in_blocks(1024, 1920), mask).kernel_ns / 73722 - 1) < 0.15
    weight = tensor(1, 1, 24, 32, layout=Layout.ROW_MAJOR)
    kept = [mask, ("negative_mask", mask[1]), ("weight", weight), ("bias", weight)]
    assert abs(normed(in_blocks(16384, 640), *kept).kernel_ns / 549179 - 1) < 0.15


def test_a_published_time_of_welfords_algorithm() -> None:
    weight = tensor(1, 1, 8, 32, layout=Layout.ROW_MAJOR)
    others = (("input_mask", tensor(1, 32, 32, 64)), ("weight", weight), ("bias", weight))
    launch = normed(tensor(1, 1, 65536, 256), *others, use_welford=True, core_grid=[8, 8])
    assert abs(launch.kernel_ns / 1331396 - 1) < 0.15


def test_groups_of_a_core() -> None:
    """Shards of 128 x 240 in groups of 60 channels: four groups that span three tiles, shared by eight cores."""
    groups = sharded_groups(in_blocks(1024, 1920), 32)
    assert (groups.count, groups.rows, groups.columns, groups.all_columns, groups.sharing) == (4, 4, 3, 8, 8)


def test_more_cores_exchange_more_sums() -> None:
    few, many = (normed(in_blocks(128 * down, 512, 4, down)).kernel_ns for down in (2, 8))
    assert many > few


def test_interleaved_tensors_are_read_in_every_step() -> None:
    launch = normed(tensor(1, 1, 8192, 256), core_grid=[8, 8])
    assert launch.dram_bytes > 4 * 8192 * 256 * 2
    assert launch.kernel_ns > normed(in_blocks(8192, 256)).kernel_ns
