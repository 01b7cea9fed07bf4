"""Copies: page by page from one memory to another, converted on the way if requested."""

from __future__ import annotations

from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Planned,
    Stages,
    kernels_of,
    moved,
    read_traffic,
    reads,
    row_size,
    rows_of,
    shard_cores,
    split,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times

FAMILY = "copy"

# A tile through the destination register, one at a time.
CONVERT_CYCLES = 150.0


@times("CopyDeviceOperation", "CloneOperation", "Copy", "Clone", "RollDeviceOperation", family=FAMILY, settings=Planned)
def copy(run: ProgramRun) -> Launch:
    """A page is read and waited for, and written and waited for."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    if source.is_tile:
        pages, old, new = tiles_of(target), tile_size(source), tile_size(target)
    else:
        pages, old, new = rows_of(target), row_size(source), row_size(target)
    compute = 0.0 if source.dtype is target.dtype else run.chip.ns(CONVERT_CYCLES)
    if shard_cores(source) and source.memory_config == target.memory_config:
        # Every core copies its own shard.
        cores = shard_cores(source)
        local = kernels.local
        return moved(
            run, FAMILY, cores, Stages(div_up(pages, cores), local.ns(old), compute, local.ns(new)), NO_TRAFFIC
        )
    cores, mine = split(pages, run)
    traffic = read_traffic(source, pages, old) + write_traffic(target, pages, new)
    stages = Stages(mine, reads(kernels, source).ns(old), compute, writes(kernels, target).ns(new))
    return moved(run, FAMILY, cores, stages, traffic)
