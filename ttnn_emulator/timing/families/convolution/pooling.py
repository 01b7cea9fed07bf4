"""Max and average pools: windows are gathered pixel by pixel and reduced by the matrix unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch, DataType, Layout
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.conv.sliding_window import Window
from ttnn_emulator.ops.pool.plan import Pooled
from ttnn_emulator.ops.pool.sharding import Pool
from ttnn_emulator.tensors.memory_config import ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.convolution.halo import gathering, halo_bytes, halo_launch
from ttnn_emulator.timing.families.convolution.image import slice_launch, slice_write_launch
from ttnn_emulator.timing.families.data_movement.sharding import MOVE, change_of_memory, move, run_of
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import dtype_of, field_of, layout_of
from ttnn_emulator.timing.shards import grid_of

OP_CODE = "Pool2D"
FAMILY = "pool"

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/generic/device/kernels/dataflow/reader_pool_2d.cpp,
# MAX_TILES_PER_REDUCTION
WIDEST_TILES = 8  # tiles of channels that are reduced at once
FACE_ROWS = 16


@dataclass(frozen=True, slots=True)
class PoolTimes:
    """Constants of one architecture; fits on Blackhole, scaled by the clock for others.

    read_ns   gathering one run of pixels
    window    cycles of the compute kernel per window, and per tile of it
    index     cycles per tile of a max pool that returns indices
    tilize    cycles per tile of a tiled output
    """

    read_ns: float
    window: tuple[float, float]
    index: float
    tilize: float


TIMES = {
    Arch.WORMHOLE_B0: PoolTimes(32.0, (130.0, 60.0), 900.0, 400.0),
    Arch.BLACKHOLE: PoolTimes(25.0, (150.0, 70.0), 900.0, 400.0),
    Arch.GRAYSKULL: PoolTimes(32.0, (130.0, 60.0), 900.0, 400.0),
}


@dataclass(frozen=True, slots=True)
class Pooling:
    """One pool program.

    windows  output pixels per core
    tiles    tiles of channels per core
    kernel   rows and columns of a window
    stick    bytes of a pixel's channels in one core
    """

    cores: int
    windows: int
    tiles: int
    kernel: tuple[int, int]
    stick: int
    tiled_output: bool
    indices: bool = False
    apart: bool = False


def pool_launch(work: Pooling, arch: Arch) -> Launch:
    """The predicted time of one pool program."""
    chip, cost = CHIPS[arch], TIMES[arch]
    high, wide = work.kernel
    taps = high * wide
    parts = div_up(work.tiles, 1 if work.indices else WIDEST_TILES)
    in_rows = work.tiles <= WIDEST_TILES and not work.apart and not work.indices
    large = taps > TILE_SIZE
    runs = taps if large or not in_rows else high
    size = work.stick / parts * (wide if runs == high and in_rows else 1)
    steps = div_up(taps, TILE_SIZE if taps > FACE_ROWS else FACE_ROWS)
    read = parts * runs * max(cost.read_ns, size / chip.local.bytes_per_ns) + parts * steps * chip.local.latency_ns
    # Both processors gather, windows in turn.
    data = div_up(work.windows, 2) * read
    first, per_tile = cost.window
    cycles = parts * first + steps * work.tiles * per_tile
    if work.indices:
        cycles += steps * work.tiles * cost.index
    if work.tiled_output:
        cycles += work.tiles * cost.tilize / TILE_SIZE
    compute = chip.ns(work.windows * cycles)
    return Launch(
        OP_CODE,
        FAMILY,
        work.cores,
        chip.launch_ns + chip.dram.latency_ns + max(data, compute),
        Bound.COMPUTE if compute >= data else Bound.NOC,
        compute,
        data,
    )


@times(OP_CODE, "Pool2DDeviceOperation", "MaxPool2D", family=FAMILY)
def pool(run: ProgramRun) -> Launch:
    if isinstance(run.settings, Pooling):
        return pool_launch(run.settings, run.board.arch)
    source, target = run.inputs[0], run.outputs[0]
    down, across = grid_of(target)
    width = div_up(source.physical_shape[1], across)
    windows = div_up(target.physical_shape[0], down)
    held = div_up(source.physical_shape[0], down)
    # Sheets do not have the kernel size: one window is the whole image, several are assumed to be the common 3 x 3.
    kernel = (1, held) if windows <= 1 else (3, 3)
    work = Pooling(run.cores, windows, div_up(width, TILE_SIZE), kernel, width * 2, target.is_tile)
    return pool_launch(work, run.board.arch)


def launches_in_l1(pooled: Pool, placed: Spec, board: Board, *, moves: bool, wanted: int = 0) -> list[Launch]:
    """The halo, its move, and the pool; `wanted` are the halo's pixels per core, if they are known."""
    window, shard = pooled.window, placed.shard_spec
    assert shard is not None
    down = grid_of(placed)[0]
    wanted = wanted or window.halo_rows(down, whole_tiles=pooled.layout is Layout.TILE)
    work = gathering(placed, window, 2, wanted)
    rows, columns = work.wanted * work.down, shard.shape[1] * work.across
    config = placed.memory_config.with_shard_spec(
        ShardSpec(shard.grid, (work.wanted, shard.shape[1]), shard.orientation)
    )
    read = Spec.of((1, 1, rows, columns), DataType.BFLOAT16, Layout.ROW_MAJOR, config)
    found = [halo_launch(work, board.arch).of((placed,), (read,), settings=window)]
    if moves:
        found.append(move(run_of(MOVE, read, read, board)))
    tile = pooled.layout is Layout.TILE
    each = div_up(window.rows, work.down * (TILE_SIZE if tile else 1)) * (TILE_SIZE if tile else 1)
    pooling = Pooling(
        work.down * work.across,
        min(each, window.rows),
        div_up(shard.shape[1], TILE_SIZE),
        window.kernel,
        work.stick,
        tile,
        pooled.indices,
        window.dilation[1] > 1,
    )
    launch = pool_launch(pooling, board.arch)
    found.append(launch.of((read,), (_made(pooled, placed),), settings=pooled))
    return found


@prices("ttnn.pool2d")
def pool2d(call: Call) -> Sequence[Launch]:
    source, board = call.tensors[0], call.board
    freeing = field_of(call.arguments.get("asked"), "freeing")
    frees = bool(field_of(freeing, "frees_input", field_of(call.arguments.get("asked"), "frees_input", False)))
    moves = bool(field_of(freeing, "moves_halo", True))
    plan, wanted = call.work, 0
    if isinstance(plan, Pooled):
        if plan.pieces:
            return _launches_of_pieces(plan, source, call.outputs[0], board)
        assert plan.pool is not None and plan.placed is not None
        pooled, placed = plan.pool, plan.placed
        wanted = _wanted(plan)
    else:
        pooled, placed = recorded_pool(call.arguments["pool"]), source
    found: list[Launch] = []
    copied = placed.memory_config != source.memory_config
    if copied:
        found += change_of_memory(source, placed, board)
    if not placed.is_sharded:
        return found
    found += launches_in_l1(pooled, placed, board, moves=moves and (frees or copied), wanted=wanted)
    made = _made(pooled, placed)
    if not call.outputs[0].is_sharded:
        found += change_of_memory(made, call.outputs[0], board)
    return found


def _wanted(plan: Pooled) -> int:
    """Pixels per core of the halo."""
    assert plan.placed is not None and plan.placed.shard_spec is not None
    return halo_bytes(plan.stages) // (plan.placed.shard_spec.shape[1] * 2)


def _made(pooled: Pool, placed: Spec) -> Spec:
    """The pool's own result in shards, before it goes to another memory."""
    shard = placed.shard_spec
    assert shard is not None
    down, across = grid_of(placed)
    step = TILE_SIZE if pooled.layout is Layout.TILE else 1
    rows = div_up(pooled.window.rows, down * step) * step
    width = div_up(shard.shape[1], step) * step
    config = placed.memory_config.with_shard_spec(ShardSpec(shard.grid, (rows, width), shard.orientation))
    return Spec.of((1, 1, rows * down, width * across), pooled.dtype, pooled.layout, config)


def _launches_of_pieces(plan: Pooled, source: Spec, target: Spec, board: Board) -> list[Launch]:
    found: list[Launch] = []
    for piece in plan.pieces:
        assert piece.pool is not None and piece.placed is not None
        found.append(slice_launch(source, piece.placed, board).of((source,), (piece.placed,)))
        found += launches_in_l1(piece.pool, piece.placed, board, moves=True, wanted=_wanted(piece))
        written = (piece.outputs[0], target)
        found.append(slice_write_launch(*written, board).of(written, (target,)))
    return found


def recorded_pool(record: Any) -> Pool:
    """The pool of a call, as an object or as a record of it."""
    if isinstance(record, Pool):
        return record
    window: Mapping[str, Any] = record["window"]
    return Pool(
        Window(
            window["batch"],
            tuple(window["size"]),
            tuple(window["kernel"]),
            tuple(window["stride"]),
            tuple(window["padding"]),
            tuple(window["dilation"]),
            ceil_pad=tuple(window.get("ceil_pad", (0, 0))),
        ),
        record["channels"],
        bool(record.get("average", False)),
        dtype_of(record.get("dtype"), DataType.BFLOAT16),
        layout_of(record.get("layout"), Layout.ROW_MAJOR),
        indices=bool(record.get("indices", False)),
    )
