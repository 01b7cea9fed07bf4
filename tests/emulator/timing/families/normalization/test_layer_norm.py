"""Times of layer_norm and rms_norm: weights, residuals, shards that exchange sums, and rows that were measured."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.timing.families.specs import BF16, L1, nanoseconds, priced, row, row_error, tensor
from ttnn_emulator.enums import BufferType, Layout, TensorMemoryLayout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of

WIDE = "1[1]x1[1]x3200[3200]x{width}[{width}]:TILE:BFLOAT16:DRAM_INTERLEAVED"
GAMMA = "1[1]x1[1]x{rows}[{rows}]x32[32]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED"
SHARDED = {"type": "LayerNormShardedMultiCoreProgramConfig", "subblock_w": 3, "use_welford": False}
NORM = "ttnn::prim::layer_norm"


@pytest.mark.parametrize(("width", "measured"), [(1536, 60840.5), (512, 22699.0)])
def test_measured_rms_norms(width: int, measured: float) -> None:
    source = WIDE.format(width=width)
    given = row("LayerNormDeviceOperation", 100, f"{source} | {GAMMA.format(rows=width // 32)}", source, grid=110)
    assert abs(row_error({**given, "math_fidelity": "HiFi2"}, measured)) < 0.15


def test_a_measured_layer_norm_on_one_core() -> None:
    source = "1[1]x1[1]x32[19]x1280[1280]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    weight = source.replace("32[19]", "32[1]")
    given = row("LayerNormDeviceOperation", 1, f"{source} | {weight} | {weight}", source, arch="wormhole_b0", grid=64)
    assert abs(row_error({**given, "math_fidelity": "HiFi4"}, 53450.0)) < 0.1


def block_sharded(height: int, width: int, across: int, down: int) -> Spec:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(across - 1, down - 1))])
    shards = ShardSpec(grid, (height // down, width // across))
    return tensor(1, 1, height, width, memory=MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards))


def norm(source: Spec, *, program: Any = None, board: str = "n150", kind: str = "layer_norm", **others: Spec) -> Launch:
    inputs = (("tensor", source), *others.items())
    given = {"kind": kind, "config": {"fidelity": "HiFi4", "fp32_acc": False}, "program": program}
    (launch,) = launches_of(Call(NORM, inputs, (source,), given, find_board(board)))
    return launch


def test_every_operand_adds_a_pass() -> None:
    source, weight = tensor(4096, 1024, memory=L1), tensor(1, 1024)
    plain = norm(source).compute_ns
    weighted = norm(source, weight=weight).compute_ns
    both = norm(source, weight=weight, bias=weight).compute_ns
    added = norm(source, weight=weight, bias=weight, residual=source).compute_ns
    assert plain < weighted < both < added


def test_an_rms_norm_has_fewer_passes() -> None:
    source = block_sharded(1536, 768, 8, 8)
    centred, plain = (norm(source, program=SHARDED, kind=kind).kernel_ns for kind in ("layer_norm", "rms_norm"))
    assert plain < 0.7 * centred


def test_cores_of_a_line_wait_for_each_other() -> None:
    """The same shard per core: with more cores in a line the exchange of sums takes longer."""
    few, many = (norm(block_sharded(256, 96 * across, across, 8), program=SHARDED).kernel_ns for across in (2, 8))
    assert many > 1.2 * few


def test_row_major_weights_are_read_piece_by_piece() -> None:
    source = tensor(3200, 1536, memory=L1)
    tiled, pieces = (
        norm(source, weight=weight, board="p150", kind="rms_norm").kernel_ns
        for weight in (tensor(1, 1536), tensor(1, 1, 48, 32, layout=Layout.ROW_MAJOR))
    )
    assert pieces > 1.3 * tiled


def test_long_rows_are_read_again() -> None:
    short, long = (norm(tensor(64, width)) for width in (2048, 32768))
    assert long.dram_bytes > 16 * short.dram_bytes


def test_statistics_of_several_chips() -> None:
    """Measured on Wormhole: 79.4 us for 4096 x 2048 values before the gathering of an RMS norm."""
    source, out = tensor(1, 1, 4096, 2048), tensor(1, 1, 4096, 32)
    config = {"math_fidelity": "HiFi2", "fp32_dest_acc_en": True}
    (before,) = priced("ttnn.rms_norm_pre_all_gather", source, out=out, compute_kernel_config=config)
    assert abs(before.kernel_ns / 79414 - 1) < 0.15
    centred = nanoseconds("ttnn.layer_norm_pre_all_gather", source, out=tensor(1, 1, 4096, 64))
    assert centred >= before.kernel_ns * 0.95
    stats = tensor(1, 1, 4096, 128)
    weight = tensor(1, 1, 64, 32, layout=Layout.ROW_MAJOR)
    inputs = (("input_tensor", source), ("stats", stats), ("weight", weight))
    call = Call(
        "ttnn.rms_norm_post_all_gather", inputs, (source,), {"compute_kernel_config": config}, find_board("n150")
    )
    (after,) = launches_of(call)
    assert abs(after.kernel_ns / 139022 - 1) < 0.3


def test_batch_norms_of_both_boards() -> None:
    source, channel = tensor(8, 64, 64, 64), tensor(1, 64, 1, 1)
    inputs = (("tensor", source), ("mean", channel), ("variance", channel), ("weight", channel))
    times = [
        launches_of(Call("ttnn::prim::batch_norm", inputs, (source,), {}, find_board(board)))[0].kernel_ns
        for board in ("n150", "p150")
    ]
    assert times[1] < times[0]


def test_moreh_norms_take_longer_with_more_passes() -> None:
    source = tensor(64, 1024, dtype=BF16)
    forward = nanoseconds("ttnn.moreh_layer_norm", source)
    backward = nanoseconds("ttnn.prim.moreh_layer_norm_backward_input_grad", source, source)
    assert backward > forward
