"""Convolutions of performance sheets: what specs tell, and the settings that were common."""

from __future__ import annotations

import math

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.ops.conv.blocks import subblock
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.timing.families.convolution.convolution import (
    BLOCK,
    FAMILY,
    HEIGHT,
    OP_CODE,
    WIDTH,
    Convolution,
    convolution_launch,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import grid_of

LARGEST_KERNEL = 16
# Models gather blocks of one tile, unless a core's output has few tiles. Where fidelity was lowered, blocks were also
# larger and buffers doubled.
FEW_TILES, MORE_TILES = 3, 8


@times(OP_CODE, "OptimizedConvNew", "Conv2d", family=FAMILY)
def convolution(run: ProgramRun) -> Launch:
    if isinstance(run.settings, Convolution):
        return convolution_launch(run.settings, run.board.arch)
    return convolution_launch(guessed(run), run.board.arch)


def guessed(run: ProgramRun) -> Convolution:
    """The convolution of a row. Sheets have neither kernel nor blocks: the kernel is assumed to be square."""
    source, weight, target = run.inputs[0], run.inputs[1], run.outputs[0]
    scheme = source.memory_config.memory_layout
    rows, columns = weight.physical_shape
    channels = source.physical_shape[1]
    if scheme is HEIGHT:
        down, across = grid_of(target)[0], 1
    elif scheme is WIDTH:
        down, across = 1, grid_of(source)[1]
    else:
        scheme = BLOCK
        down, across = _rectangle(run, channels, rows)
    kernel = _kernel(rows, channels // max(across, 1), across)
    out_h = div_up(div_up(math.prod(target.shape[:-1]), TILE_SIZE), down)
    out_w = div_up(columns // TILE_SIZE, across)
    tuned = run.fidelity is MathFidelity.LoFi
    few = MORE_TILES if tuned else FEW_TILES if scheme is HEIGHT else 1
    act_h = out_h if out_h <= few else 1
    per_core = channels // max(across, 1)
    wide = div_up(per_core * kernel * (kernel if scheme is WIDTH else 1), TILE_SIZE)
    sub_h, sub_w = subblock(act_h, out_w, False)
    return Convolution(
        scheme,
        down,
        across,
        act_h,
        wide,
        sub_h,
        sub_w,
        out_h,
        out_w,
        1 if scheme is WIDTH else kernel,
        (kernel, kernel),
        per_core * 2,
        run.fidelity or MathFidelity.HiFi4,
        source.dtype,
        target.dtype,
        weight.dtype,
        l1_acc=True,
        has_bias=len(run.inputs) > 2,
        untilizes=not target.is_tile,
        apart=scheme is WIDTH,
        splits=tuned and act_h > 1 and scheme is not WIDTH,
        doubles_act=tuned,
        doubles_weights=tuned and scheme is not HEIGHT,
    )


def _kernel(rows: int, channels: int, across: int) -> int:
    """The square kernel whose prepared weights have this number of rows."""
    for size in range(1, LARGEST_KERNEL):
        if across * size * round_up(size * channels, TILE_SIZE) == rows:
            return size
    return max(round((rows / max(channels * across, 1)) ** 0.5), 1)


def _rectangle(run: ProgramRun, channels: int, rows: int) -> tuple[int, int]:
    """Cores along pixels and channels: a rectangle that suits the rows of the prepared weights, as square as can be."""
    cores, (wide, high) = run.cores, run.board.grid
    sizes = [
        (cores // across, across)
        for across in range(1, cores + 1)
        if cores % across == 0 and channels % across == 0 and across <= max(wide, high)
    ]
    fitting = [
        (down, across)
        for down, across in sizes
        if any(
            across * size * round_up(size * channels // across, TILE_SIZE) == rows for size in range(1, LARGEST_KERNEL)
        )
    ]
    return min(fitting or sizes, key=lambda size: abs(size[0] - size[1]))
