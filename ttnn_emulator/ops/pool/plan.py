"""The plan of one pool: in L1 at once, or slice by slice from DRAM."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.launch_memory import Stage
from ttnn_emulator.ops.conv.dram_input import free_l1
from ttnn_emulator.ops.conv.l1_stages import Course
from ttnn_emulator.ops.conv.plan import flattened
from ttnn_emulator.ops.conv.sharding import HEIGHT, ROWS, Cores, slice_in_l1
from ttnn_emulator.ops.conv.slicing import (
    ALONG_HEIGHT,
    WHOLE,
    Sliceable,
    Slicing,
    choose_slicing,
    output_slices,
    require_countable,
)
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.ops.flows.memory import memory_flow
from ttnn_emulator.ops.flows.reshape import reshape_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.pool.sharding import (
    Pool,
    best_cores,
    buffers,
    input_placement,
    is_large,
    output_channels,
    output_memory_config,
    slice_bytes,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec, padded_spec

MOST_ROWS = 0xFFFF  # positions within a core are kept in 16 bits


@dataclass(frozen=True)
class Pooled:
    """A planned pool.

    large      windows are reduced in several steps
    misplaced  shards of the input are narrower than those of the output: the chip misplaces channels
    pool       what is computed at once, and `placed` the input as it is read; None if it is sliced
    pieces     the slices
    """

    outputs: tuple[Spec, ...]
    l1_bytes: int
    large: bool
    misplaced: bool
    stages: tuple[Stage, ...] = ()  # of an unsliced pool
    pool: Pool | None = None
    placed: Spec | None = None
    pieces: tuple[Pooled, ...] = ()


@dataclass(frozen=True)
class Freeing:
    """Memory options of a pool: deallocate its input, and move the halo output into the freed space."""

    frees_input: bool = False
    moves_halo: bool = True


KEEPS_INPUT = Freeing()


def plan_in_l1(
    x: Spec,
    pool: Pool,
    grid: tuple[int, int],
    memory_config: MemoryConfig | None = None,
    scheme: TensorMemoryLayout | None = None,
    freeing: Freeing = Freeing(),
) -> Pooled:
    """Check a pool whose input is in L1 or is copied there."""
    _require_dtype(pool)
    require_window(x, pool)
    window = pool.window
    config = x.memory_config
    course = Course("x", x, freeing.frees_input)
    held = 0
    if config.shard_spec is None:
        padded = x.padded_shape
        rows = padded[0] * padded[1] * padded[2]
        wanted, cores = input_placement(pool, scheme, rows, grid, x.dtype, x.layout)
        flat = x if padded[:2] == (1, 1) else flattened(x)
        channels = flat.padded_shape[3] if padded[:2] == (1, 1) else flat.shape[3]
        assert wanted.shard_spec is not None
        missing = wanted.shard_spec.shape[1] * cores.channels - channels
        if missing > 0 and pool.dtype in BLOCK_FLOAT_DTYPES:
            flat = Spec.of((*flat.shape[:3], channels + missing), flat.dtype, flat.layout, flat.memory_config)
        placed = memory_flow(Flow(flat), wanted).spec
        held = placed.bytes_per_bank(1, 16)
        course.copy("sharded", placed, frees=False)
    else:
        require(scheme is None, "applied_shard_scheme does not support a sharded input")
        require(config.shard_spec.orientation is ROWS, "shards of a pool's input must be in row-major order")
        require(config.is_l1, "shards of a pool's input must be in L1")
        placed, cores = x, Cores.of(config)
    require(
        placed.physical_shape[0] >= window.batch * window.size[0] * window.size[1],
        f"{window.batch} images of {list(window.size)} pixels are more than the {placed.physical_shape[0]} rows given",
    )
    out = output_memory_config(pool, cores)
    halo_rows = window.halo_rows(cores.rows, whole_tiles=pool.is_tile)
    _require_pool(placed, pool, cores, halo_rows)
    outputs = _output_specs(pool, cores, out)
    assert placed.shard_spec is not None and out.shard_spec is not None
    halo = halo_rows * placed.shard_spec.shape[1] * 2
    sizes = buffers(pool, DataType.BFLOAT16, cores.channels, out.shard_spec.extent)
    needed = max(held + halo, halo + sizes.total)
    made = list(outputs)
    if memory_config is not None and memory_config != outputs[0].memory_config:
        outputs = tuple(memory_flow(Flow(output), memory_config).spec for output in outputs)
    frees = freeing.frees_input or x.memory_config.is_dram
    course.gather(halo, cores.grid.num_cores(), frees=frees, moves=freeing.moves_halo)
    course.compute(made, list(outputs), sizes.own)
    course.hand_out(made, list(outputs))
    width, out_width = placed.shard_spec.shape[1], out.shard_spec.shape[1]
    misplaced = cores.channels > 1 and width != out_width and pool.channels > min(width, out_width)
    large = is_large(pool, cores.channels)
    return Pooled(outputs, needed, large, misplaced, tuple(course.stages), pool, placed)


def _require_dtype(pool: Pool) -> None:
    require(
        pool.dtype in (DataType.BFLOAT16, *BLOCK_FLOAT_DTYPES),
        f"a pool puts out bfloat16, bfloat8_b or bfloat4_b, not {pool.dtype}",
    )
    require(pool.dtype is DataType.BFLOAT16 or pool.is_tile, f"{pool.dtype} exists in TILE layout only, not ROW_MAJOR")


def require_window(x: Spec, pool: Pool) -> None:
    """Refuse invalid windows."""
    window, kernel = pool.window, pool.window.kernel
    for name, value in (
        ("batch_size", window.batch),
        ("input_h", window.size[0]),
        ("input_w", window.size[1]),
        ("channels", pool.channels),
    ):
        require(value > 0, f"{name} must be greater than 0, it is {value}")
    rows = window.batch * window.size[0] * window.size[1]
    require(x.rank == 4, f"the input must have rank 4, not shape {list(x.shape)}")
    if x.is_tile and x.shape == (1, 1, rows, pool.channels):
        wanted = (1, 1, round_up(rows, TILE), round_up(pool.channels, TILE))
        require(x.padded_shape == wanted, f"the input is padded to {list(x.padded_shape)}, a pool takes {list(wanted)}")
    for name, sizes in (("kernel_size", kernel), ("stride", window.stride), ("dilation", window.dilation)):
        require(min(sizes) > 0, f"{name} must be greater than 0, it is {list(sizes)}")
    top, bottom, left, _ = window.padding
    require(
        max(top, bottom) <= kernel[0] // 2 and left <= kernel[1] // 2,
        f"padding {list(window.padding)} exceeds half of the kernel {list(kernel)}",
    )
    plain = [size + pad for size, pad in zip(window.size, window.total_padding)]
    require(
        all(reach <= size for reach, size in zip(window.reach, plain)),
        f"a kernel that reaches over {list(window.reach)} exceeds the padded input {plain}",
    )
    window.require_output()


def _require_pool(placed: Spec, pool: Pool, cores: Cores, halo_rows: int) -> None:
    if placed.is_tile:
        require(
            placed.physical_shape[0] * placed.physical_shape[1] % (TILE * TILE) == 0, "the input must be whole tiles"
        )
    require(
        placed.dtype not in (DataType.FLOAT32, DataType.UINT16),
        f"a pool takes bfloat16 or block floats, not {placed.dtype}",
    )
    require(
        placed.is_tile or placed.dtype is not DataType.UINT8,
        "a pool reads two bytes a value: uint8 in ROW_MAJOR layout is too narrow",
    )
    if pool.indices:
        require(not pool.average, "only max pools give indices")
        require(not pool.is_tile, "indices come in ROW_MAJOR layout only")
    if cores.scheme is not HEIGHT:
        require(
            placed.padded_shape[3] % cores.channels == 0,
            f"{placed.padded_shape[3]} channels do not divide over {cores.channels} cores",
        )
    require(halo_rows <= MOST_ROWS, f"a core would hold {halo_rows} input pixels, {MOST_ROWS} is the most")


def _output_specs(pool: Pool, cores: Cores, config: MemoryConfig) -> tuple[Spec, ...]:
    shape = (1, 1, pool.window.rows, pool.channels)
    step = cores.rows * (TILE if pool.is_tile else 1)
    channels = output_channels(pool, cores)
    padded = (1, 1, round_up(pool.window.rows, step), channels)
    output = padded_spec(shape, padded, pool.dtype, pool.layout, config)
    if not pool.indices:
        return (output,)
    return output, padded_spec(shape, padded, pool.index_dtype, pool.layout, config)


# -- slices -----------------------------------------------------------------------------------------------------------


class SlicedPool(Sliceable):
    """A pool on slices of its output."""

    def __init__(self, pool: Pool, grid: tuple[int, int], x: Spec, scheme: TensorMemoryLayout | None) -> None:
        self.pool = pool
        self.grid = grid
        self.x = x
        self.output_layout = pool.layout
        self.input_size = pool.window.size
        self.output_size = pool.window.output_size
        self.scheme = scheme or best_cores(pool, grid, pool.dtype, x.layout).scheme

    def slice_pool(self, start: Pair, end: Pair) -> tuple[Pair, Pair, Pool]:
        """Input rows and columns of a slice, and its pool."""
        window = self.pool.window
        first, last, pads, ceil = [], [], [], []
        for axis in (0, 1):
            before, after = window.padding[2 * axis], window.padding[2 * axis + 1]
            begin = start[axis] * window.stride[axis] - before
            finish = (end[axis] - 1) * window.stride[axis] - before + window.reach[axis]
            pad_before, pad_after, extra = max(0, -begin), max(0, finish - window.size[axis]), 0
            begin, finish = max(0, begin), min(window.size[axis], finish)
            if start[axis] == 0:
                pad_before, begin = before, 0
            if end[axis] == self.output_size[axis]:
                pad_after, finish, extra = after, window.size[axis], window.ceil_pad[axis]
            first.append(begin)
            last.append(finish)
            pads += [pad_before, pad_after]
            ceil.append(extra)
        width = end[1] - start[1]
        if self.pool.is_tile and width % TILE:
            width = round_up(width, TILE)
            pads[3] = (width - 1) * window.stride[1] - (last[1] - first[1]) + window.reach[1]
        part = replace(
            window,
            size=(last[0] - first[0], last[1] - first[1]),
            padding=(pads[0], pads[1], pads[2], pads[3]),
            ceil_pad=(ceil[0], ceil[1]),
        )
        mode = self.pool.ceil_mode or any(ceil)
        return (first[0], first[1]), (last[0], last[1]), replace(self.pool, window=part, ceil_mode=mode)

    def input_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair]:
        return self.slice_pool(start, end)[:2]

    def input_memory_config(self, start: Pair, end: Pair) -> MemoryConfig:
        """The L1 memory config of the input slice."""
        _, _, part = self.slice_pool(start, end)
        window = part.window
        rows = window.batch * window.size[0] * window.size[1]
        rows = round_up(rows, TILE) if self.x.is_tile else rows
        return input_placement(part, self.scheme, rows, self.grid, self.pool.dtype, self.x.layout)[0]

    def l1_bytes(self, start: Pair, end: Pair, count: int) -> int:
        _, _, part = self.slice_pool(start, end)
        config = self.input_memory_config(start, end)
        width = end[1] - start[1]
        size = (end[0] - start[0], round_up(width, TILE) if self.pool.is_tile else width)
        return slice_bytes(self.pool, part, config, self.x.dtype, self.x.layout, size)


def plan_pool(
    x: Spec,
    pool: Pool,
    grid: tuple[int, int],
    memory_config: MemoryConfig | None,
    slicing: Slicing | None,
    scheme: TensorMemoryLayout | None,
    freeing: Freeing,
) -> Pooled:
    """Choose between L1 and slices in DRAM as the library does."""
    whole = slicing is not None and (slicing.kind is WHOLE or slicing.count == 1)
    if pool.indices or whole or x.memory_config.is_l1:
        return plan_in_l1(x, pool, grid, memory_config, scheme, freeing)
    pool.window.require_output()
    op = SlicedPool(pool, grid, x, scheme)
    chosen = choose_slicing(op, slicing, free_l1())
    if chosen.count == 1:
        return plan_in_l1(x, pool, grid, memory_config, scheme, freeing)
    _require_slices(pool.window, chosen)
    window = pool.window
    shape = (window.batch, *window.size, pool.channels)
    source = x if x.shape == shape else reshape_flow(Flow(x), shape).spec
    output = Spec.of((window.batch, *window.output_size, pool.channels), pool.dtype, pool.layout)
    require(not source.is_sharded, "slices are taken of an interleaved input only")
    require_countable(op, chosen)
    pieces = []
    for start, end in output_slices(op, chosen):
        _, _, part = op.slice_pool(start, end)
        config = op.input_memory_config(start, end)
        pieces.append(plan_in_l1(slice_in_l1(source.dtype, part.window, part.channels, config), part, grid))
    needed = max(piece.l1_bytes for piece in pieces)
    misplaced = any(piece.misplaced for piece in pieces)
    return Pooled((output,), needed, pieces[0].large, misplaced, pieces=tuple(pieces))


def _require_slices(window: Window, slicing: Slicing) -> None:
    """Every slice must hold at least one whole kernel."""
    axis = 0 if slicing.kind is ALONG_HEIGHT else 1
    extent, size, stride = window.output_size[axis], window.size[axis], window.stride[axis]
    pad, reach = window.padding[2 * axis], window.reach[axis]
    smallest = size
    for number in range(slicing.count):
        start, end = number * extent // slicing.count, (number + 1) * extent // slicing.count
        first, last = max(0, start * stride - pad), min(size, (end - 1) * stride - pad + reach)
        smallest = min(smallest, last - first)
    require(
        smallest >= reach,
        f"a slice of {smallest} pixels is less than the kernel reaches over ({reach}): the pool does not fit L1",
    )
