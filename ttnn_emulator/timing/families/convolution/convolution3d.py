"""Convolutions of videos: windows are read from DRAM tap by tap, tilized, and multiplied with weights held in L1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.conv.circular_buffers import TILIZE_CYCLES
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES
from ttnn_emulator.timing.families.convolution.convolution import KERNELS
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import fidelity_of, field_of
from ttnn_emulator.timing.shards import bytes_of

OP_CODE = "Conv3dDeviceOperation"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/conv3d/device/conv3d_program_factory.cpp, C_in_parallel_factor
# Cores share input channels, output channels and pixels; one core adds up the parts of the input channels.
ADD_CYCLES = 60.0


def video_launch(
    video: Spec, weight: Spec, target: Spec, board: Board, fidelity: MathFidelity, taps: int, block: int = 0
) -> Launch:
    """The predicted time of one convolution. Plans do not have the size of blocks: a tile of windows is assumed."""
    arch, chip, kernel = board.arch, CHIPS[board.arch], KERNELS[board.arch]
    channels = max(video.shape[-1], 1)
    block = block or min(channels, TILE_SIZE)
    parts = max(div_up(channels, block), 1)
    columns = div_up(target.shape[-1], TILE_SIZE)
    windows = div_up(math.prod(target.shape[:-1]), TILE_SIZE)
    cores = max(min(windows * parts * columns, board.cores), 1)
    shared = max(cores // parts, 1)
    across = min(columns, max(shared // max(windows, 1), 1))
    each = div_up(windows, max(shared // across, 1))
    wide, inner = div_up(columns, across), div_up(taps * block, TILE_SIZE)
    row = block * 2
    gather = TILE_SIZE * taps * max(chip.dram.issue_ns, row * cores / chip.dram_bytes_per_ns) + chip.dram.latency_ns
    table = TILIZE_CYCLES.get(arch, next(iter(TILIZE_CYCLES.values())))
    tilize = inner * float(table[DataType.BFLOAT16, DataType.BFLOAT16][0])
    products = inner * wide * (FIDELITY_CYCLES[fidelity] + kernel.call)
    ending = wide * (kernel.untilize + (parts - 1) * ADD_CYCLES + kernel.bias)
    compute = chip.ns(tilize + products + ending + kernel.step)
    tile = tile_bytes(DEFAULT_TILE, weight.dtype)
    weights = inner * wide * max(kernel.weight_ns, tile * cores / chip.dram_bytes_per_ns) + chip.dram.latency_ns
    total = chip.launch_ns + weights + max(gather, compute) * (each - 1) + gather + compute + chip.dram.latency_ns
    return Launch(
        OP_CODE,
        "convolution3d",
        cores,
        total,
        Bound.COMPUTE if compute >= gather else Bound.DRAM,
        each * compute,
        each * gather,
        flops=2.0 * windows * columns * parts * inner * TILE_SIZE**3,
        dram_bytes=float(windows * TILE_SIZE * taps * channels * 2 + cores * inner * wide * tile + bytes_of(target)),
    )


@times(OP_CODE, "Conv3d", family="convolution3d")
def convolution(run: ProgramRun) -> Launch:
    video, weight = run.inputs[:2]
    taps = max(weight.physical_shape[0] // max(video.shape[-1], 1), 1)
    return video_launch(video, weight, run.outputs[0], run.board, run.fidelity or MathFidelity.HiFi2, taps)


@prices("ttnn.conv3d.device")
def conv3d(call: Call) -> Sequence[Launch]:
    video, weight = call.tensors[:2]
    problem: Any = call.arguments.get("problem")
    kernel = field_of(problem, "kernel", (1, 1, 1))
    config = call.arguments.get("compute_config")
    fidelity = fidelity_of(field_of(config, "math_fidelity"), MathFidelity.HiFi2)
    block = int(field_of(problem, "block", 0))
    return [video_launch(video, weight, call.outputs[0], call.board, fidelity, math.prod(kernel), block)]
