"""The halo of a sliding window: every core gathers the rows of pixels that its windows need, with their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttnn_emulator.enums import Arch
from ttnn_emulator.execution.launch_memory import Stage, Take
from ttnn_emulator.ops.conv.sliding_window import Window
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import grid_of

OP_CODE = "HaloDeviceOperation"
FAMILY = "halo"


@dataclass(frozen=True, slots=True)
class Gathering:
    """One halo. A stick is the part of a pixel's channels that a core holds.

    down, across  cores along the pixels and along the channels
    held, wanted  sticks per core before and after
    stick         bytes of a stick
    tiles         tiles per 32 sticks that have to be untilized first; 0 for row-major inputs
    scattered     sticks per core that are written one by one, as a transposed window spreads them
    padded        sticks of padding per core that are written one by one
    """

    down: int
    across: int
    held: int
    wanted: int
    stick: int
    tiles: int
    scattered: int = 0
    padded: int = 0


@dataclass(frozen=True, slots=True)
class GatherTimes:
    """Constants of one architecture; all are fits on Blackhole, and scaled by clock, link and packer for others.

    setup_ns       reading the lists of transfers
    block_cycles   a block of 32 sticks through the compute kernel, and a tile of it
    one_ns         a transfer of one stick
    link           GB/s between neighbouring cores, if only they were sending
    crowd          cores at which that rate is halved: transfers to the previous core go around the whole torus
    """

    setup_ns: float
    block_cycles: tuple[float, float]
    one_ns: float
    link: float
    crowd: float


TIMES = {
    Arch.WORMHOLE_B0: GatherTimes(500.0, (350.0, 50.0), 55.0, 15.0, 30.0),
    Arch.BLACKHOLE: GatherTimes(400.0, (383.0, 80.0), 41.0, 43.0, 30.0),
    Arch.GRAYSKULL: GatherTimes(500.0, (350.0, 50.0), 55.0, 15.0, 30.0),
}


def halo_launch(work: Gathering, arch: Arch) -> Launch:
    """The predicted time of one halo program."""
    chip, cost = CHIPS[arch], TIMES[arch]
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/halo/device/kernels/dataflow/halo_gather.cpp,
    # run_halo_gather: both processors write, block by block for tiles, runs of sticks for rows.
    blocks = div_up(work.held, TILE_SIZE)
    first, per_tile = cost.block_cycles
    compute = chip.ns(blocks * (first + per_tile * work.tiles)) if work.tiles else 0.0
    local = work.held * work.stick / (2 * chip.local.bytes_per_ns)
    runs = max(work.wanted - work.held, 0) - work.scattered - work.padded
    remote = max(runs, 0) * work.stick * (1 + work.down / cost.crowd) / cost.link
    singles = (work.scattered + work.padded) / 2 * cost.one_ns
    data = max(local, singles) + remote
    total = chip.launch_ns + cost.setup_ns + max(compute, local, singles) + remote
    return Launch(
        OP_CODE,
        FAMILY,
        work.down * work.across,
        total,
        Bound.COMPUTE if compute > data else Bound.NOC,
        compute,
        data,
    )


@times(OP_CODE, "Halo", family=FAMILY)
def halo(run: ProgramRun) -> Launch:
    if isinstance(run.settings, Gathering):
        return halo_launch(run.settings, run.board.arch)
    source, target = run.inputs[0], run.outputs[0]
    down, across = grid_of(target)
    held, wanted = (div_up(spec.physical_shape[0], down) for spec in (source, target))
    width = div_up(target.physical_shape[1], across)
    tiles = div_up(width, TILE_SIZE) if source.is_tile else 0
    return halo_launch(Gathering(down, across, held, wanted, width * 2, tiles), run.board.arch)


def gathering(source: Spec, window: Window, value_bytes: int, wanted: int) -> Gathering:
    """The halo of a window over a sharded input; `wanted` are its sticks per core."""
    shard = source.shard_spec
    assert shard is not None
    down, across = grid_of(source)
    held = div_up(source.physical_shape[0], down)
    tiles = div_up(shard.shape[1], TILE_SIZE) if source.is_tile else 0
    scattered = padded = 0
    if window.transposed and window.stride[1] > 1:
        # The zeros between the pixels of a row are as many transfers as the pixels.
        share = window.size[0] * window.stride[0] / max(window.padded_size[0], 1)
        scattered = int(wanted * min(share, 1.0) / (window.stride[0] * window.stride[1]))
        padded = scattered
    return Gathering(down, across, held, wanted, shard.shape[1] * value_bytes, tiles, scattered, padded)


def halo_bytes(stages: Sequence[Stage]) -> int:
    """Bytes per core of the halo among the allocations of a plan; 0 if there is none."""
    return next((stage.bytes_per_core for stage in stages if isinstance(stage, Take) and stage.name == "halo"), 0)
