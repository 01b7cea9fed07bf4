"""matmul_decode: a matmul of few rows with a weight resident in L1, sharded by columns, blocks or batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, BufferType, DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/matmul_decode/device/matmul_decode_device_operation.cpp,
# M_tiles
MOST_TILES = 8  # tiles in a column of the result, limited by the destination register
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/matmul_decode/device/full_width_sharded_program_factory.cpp,
# math_fidelity; the batched and the partial factory set the same
MATH = MathConfig(MathFidelity.HiFi4, fp32_acc=False, approx=False)
WIDTH_SHARDED = TensorMemoryLayout.WIDTH_SHARDED


@dataclass(frozen=True)
class Sizes:
    """Batches, rows, inner size and columns of the product, and the number of weight blocks."""

    batch: int
    rows: int
    inner: int
    columns: int
    inner_blocks: int = 1
    batch_blocks: int = 1


@operation("ttnn.experimental.matmul_decode")
def matmul_decode(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    partial_width_sharded: bool = False,
    dtype: DataType | None = None,
    output_mem_config: MemoryConfig | None = None,
) -> Plan:
    """a @ b, both width-sharded.

    With `partial_width_sharded`, n blocks of b's rows are concatenated along the width, [inner ÷ n, n × columns]; n
    cores compute partial sums of a column of the result, and the first of them adds them up. With batches, b is
    [1, 1, batches ÷ n × inner, n × columns].
    """
    a, b = input_tensor_a, input_tensor_b
    require_on_device(a, "a")
    require_on_device(b, "b")
    require(a.rank >= 1 and b.rank >= 2, "a must have a dimension, b two")
    batched = a.rank == 4 and a.shape[0] * a.shape[1] > 1
    sizes = _sizes_of_batches(a, b) if batched else _sizes(a, b, partial_width_sharded)
    for name, spec in (("a", a), ("b", b)):
        require_tile(spec, name)
        layout = spec.memory_config.memory_layout
        require(layout is WIDTH_SHARDED, f"{name} must be width-sharded, not {layout}")
        require(spec.shard_spec is not None, f"{name} must have a shard spec")
        require(spec.memory_config.buffer_type is BufferType.L1, f"{name} must be in L1")
        require(tuple(spec.tile.tile_shape)[1] == TILE_SIZE, f"the tiles of {name} must be {TILE_SIZE} wide")
    require(b.tile.tile_shape[0] == TILE_SIZE, f"the tiles of b must be {TILE_SIZE} high, not {b.tile.tile_shape[0]}")
    row_tiles = div_up(sizes.rows, a.tile.tile_shape[0])
    require(row_tiles <= MOST_TILES, f"{row_tiles} tiles of rows exceed the {MOST_TILES} of the destination register")
    if batched:
        _require_batches(b, sizes)
        memory = output_mem_config or DRAM_MEMORY_CONFIG
    else:
        _require_one(a, b, sizes, partial_width_sharded)
        memory = output_mem_config or _memory_of_result(a, b, sizes, partial_width_sharded)
    out = Spec.of((*a.shape[:-1], sizes.columns), dtype or a.dtype, Layout.TILE, memory, tile=a.tile)
    if not batched:
        _require_placed(a, b, out, sizes, partial_width_sharded)
    fault = _fault(a, b, out, sizes, batched)
    product = _product(a, b, out, sizes, batched)

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        return product(x, y).reshape(out.shape)

    return Plan(out, compute, l1_bytes=_buffers(a, b, out, sizes, row_tiles, batched, partial_width_sharded))


# -- sizes ------------------------------------------------------------------------------------------------------------


def _sizes(a: Spec, b: Spec, partial: bool) -> Sizes:
    rows, inner = (1, *a.shape)[-2:]
    height, columns = b.shape[-2:]
    if not partial or inner < height:
        return Sizes(1, rows, inner, columns)
    require(height and inner % height == 0, f"{inner} columns of a are not a multiple of {height} rows of b")
    return Sizes(1, rows, inner, columns // (inner // height), inner_blocks=inner // height)


def _sizes_of_batches(a: Spec, b: Spec) -> Sizes:
    batch, (rows, inner) = a.shape[0] * a.shape[1], a.shape[-2:]
    require(b.rank == 4, f"{batch} batches need a weight of rank 4, not {b.rank}")
    height, width = b.shape[-2:]
    require(inner and height % inner == 0, f"{height} rows of the weight are not a multiple of {inner}")
    each = height // inner
    require(each and batch % each == 0, f"{batch} batches are not a multiple of the {each} of a core")
    blocks = batch // each
    require(width % blocks == 0, f"{width} columns of the weight do not divide into {blocks} blocks")
    require(b.shard_spec is not None, "the weight must have a shard spec")
    assert b.shard_spec is not None
    cores = b.shard_spec.num_cores()
    require(cores % blocks == 0, f"{cores} cores of the weight do not divide into {blocks} blocks")
    return Sizes(batch, rows, inner, width // blocks, batch_blocks=blocks)


# -- checks -----------------------------------------------------------------------------------------------------------


def _require_batches(b: Spec, sizes: Sizes) -> None:
    shards = _shards(b)
    each = shards.num_cores() // sizes.batch_blocks
    require(sizes.columns % each == 0, f"{sizes.columns} columns do not divide over {each} cores")
    height, width = sizes.batch // sizes.batch_blocks * sizes.inner, sizes.columns // each
    require(tuple(shards.shape) == (height, width), f"a weight's shard is {list(shards.shape)}, not {[height, width]}")


def _require_one(a: Spec, b: Spec, sizes: Sizes, partial: bool) -> None:
    if not partial:
        if a.rank > 2 and b.rank > 2:
            require(a.rank <= b.rank and a.shape[:-2] == b.shape[: a.rank - 2], "a and b must have the same batches")
        require(b.shape[-2] == sizes.inner, f"the inner dimensions {sizes.inner} and {b.shape[-2]} do not match")
        return
    height, width = _shards(b).shape
    inner, columns = div_up(sizes.inner, TILE_SIZE), div_up(sizes.columns, TILE_SIZE)
    require(not height % TILE_SIZE and not width % TILE_SIZE, f"shards {height} × {width} of b are not whole tiles")
    require(inner % (height // TILE_SIZE) == 0, f"{inner} tiles of the inner size do not divide by shards of {height}")
    blocks = inner // (height // TILE_SIZE)
    require(blocks % 2 == 0, f"blocks of the inner size are added up in pairs; {blocks} is odd")
    require(columns % (width // TILE_SIZE) == 0, f"{columns} tiles of columns do not divide by shards of {width}")
    cores = blocks * (columns // (width // TILE_SIZE))
    require(_shards(b).num_cores() == cores, f"b is on {_shards(b).num_cores()} cores, not on {cores}")
    require(b.shape[-2] == height, f"b is {b.shape[-2]} high, its shards are {height}")
    require(b.shape[-1] == blocks * sizes.columns, f"b is {b.shape[-1]} wide, not {blocks} × {sizes.columns}")


def _memory_of_result(a: Spec, b: Spec, sizes: Sizes, partial: bool) -> MemoryConfig:
    if a.rank == 4:
        return DRAM_MEMORY_CONFIG
    grid = _shards(b).grid
    if partial:
        grid = _first_cores(div_up(sizes.columns, TILE_SIZE) // (_shards(b).shape[1] // TILE_SIZE))
    shard = (round_up(sizes.rows, a.tile.tile_shape[0]), div_up(sizes.columns, grid.num_cores()))
    return MemoryConfig(WIDTH_SHARDED, BufferType.L1, ShardSpec(grid, shard))


def _first_cores(count: int) -> CoreRangeSet:
    """The first cores of the chip, row by row."""
    width = current_board().grid[0]
    rows, rest = divmod(count, width)
    ranges = [CoreRange(CoreCoord(0, 0), CoreCoord(width - 1, rows - 1))] if rows else []
    ranges += [CoreRange(CoreCoord(0, rows), CoreCoord(rest - 1, rows))] if rest else []
    return CoreRangeSet(ranges)


def _require_placed(a: Spec, b: Spec, out: Spec, sizes: Sizes, partial: bool) -> None:
    require(out.shard_spec is not None, "the result must be sharded", hint="Give an output_mem_config.")
    require(out.memory_config.buffer_type is BufferType.L1, "the result must be in L1")
    first, weight, made = (_shards(spec) for spec in (a, b, out))
    tile_height = a.tile.tile_shape[0]
    rows = round_up(sizes.rows, tile_height)
    require(tuple(first.shape) == (rows, first.shape[1]), f"a's shards are {first.shape[0]} high, not {rows}")
    require(first.shape[1] % TILE_SIZE == 0, f"a's shards are {first.shape[1]} wide: no whole tiles")
    if partial:
        cores = weight.num_cores() // sizes.inner_blocks
        require(made.num_cores() == cores, f"the result is on {made.num_cores()} cores, not on {cores}")
        for core in weight.grid.cores(row_wise=True)[:cores]:
            require(made.grid.contains(CoreRangeSet([CoreRange(core, core)])), f"{core} holds none of the result")
    else:
        require(weight.grid == made.grid, "b and the result must be on the same cores")
        height = round_up(sizes.inner, TILE_SIZE)
        require(weight.shape[0] == height, f"b's shards are {weight.shape[0]} high, not {height}")
        require(weight.shape[1] % TILE_SIZE == 0, f"b's shards are {weight.shape[1]} wide: no whole tiles")
    box = first.grid.merge(weight.grid).merge(made.grid).bounding_box()
    require(box.start != box.end, "two corners of the cores pass a on: one core alone has only one")


def _shards(spec: Spec) -> ShardSpec:
    assert spec.shard_spec is not None
    return spec.shard_spec


def _fault(a: Spec, b: Spec, out: Spec, sizes: Sizes, batched: bool) -> ChipFault | None:
    """Wrong results of the kernels, which number cores row by row and derive tile counts from the shards."""
    if not {a.dtype, b.dtype, out.dtype} <= set(FLOAT_DTYPES):
        return ChipFault(f"the matrix unit takes {a.dtype} × {b.dtype} → {out.dtype} for floats")
    if _shards(a).num_cores() * _shards(a).shape[1] != round_up(sizes.inner, TILE_SIZE):
        return ChipFault(
            f"{_shards(a).num_cores()} shards {_shards(a).shape[1]} wide are not exactly the {sizes.inner} columns of a"
        )
    if any(_order(spec) != _shards(spec).grid.cores(row_wise=True) for spec in (a, b)):
        return ChipFault("the kernels read shards in row-major order, and those of a or b are in column-major order")
    if batched:
        return None
    bases = _shards(b).grid.cores(row_wise=True)[: _shards(b).num_cores() // sizes.inner_blocks]
    if out.memory_config.memory_layout is not WIDTH_SHARDED or _shards(out).shape[1] != _shards(b).shape[1]:
        return ChipFault(
            f"each core fills {_shards(b).shape[1]} columns; shards of the result are {_shards(out).shape}"
        )
    if _order(out)[: len(bases)] != bases:
        return ChipFault("the cores that make a column of the result are not in the order of its shards")
    return None


def _order(spec: Spec) -> list[CoreCoord]:
    shards = _shards(spec)
    return shards.grid.cores(row_wise=shards.orientation.name == "ROW_MAJOR")


# -- computation ------------------------------------------------------------------------------------------------------


def _product(
    a: Spec, b: Spec, out: Spec, sizes: Sizes, batched: bool
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    multiply = Kernel(MATH, a.dtype, b.dtype, out.dtype).compute()
    inner, blocks = sizes.inner, sizes.inner_blocks

    def of_batches(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        weights = y.reshape(-1, inner, sizes.batch_blocks, sizes.columns).permute(2, 0, 1, 3)
        return multiply(x.reshape(sizes.batch, sizes.rows, inner), weights.reshape(sizes.batch, inner, sizes.columns))

    def of_blocks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        core = Core.of(MATH, blocks * out.volume)
        step = inner // blocks
        rows, weight = x.reshape(sizes.rows, inner), y.reshape(step, blocks, sizes.columns)
        parts = [
            core.source(multiply(rows[:, at * step : (at + 1) * step], weight[:, at].contiguous()), out.dtype)
            for at in range(blocks)
        ]
        total = None
        for first, second in zip(parts[::2], parts[1::2]):
            total = core.add(first, second, total)
        assert total is not None
        return core.packed(total, out.dtype)

    def whole(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return multiply(x.reshape(sizes.rows, inner), y.reshape(inner, sizes.columns))

    return of_batches if batched else of_blocks if blocks > 1 else whole


def _buffers(a: Spec, b: Spec, out: Spec, sizes: Sizes, row_tiles: int, batched: bool, partial: bool) -> int:
    """Bytes of the gathered `a` on a core, and of partial results."""
    each = sizes.batch // sizes.batch_blocks
    gathered = each * row_tiles * div_up(sizes.inner, TILE_SIZE) * tile_bytes(a.tile, a.dtype)
    block = each * row_tiles * div_up(_shards(b).shape[1], TILE_SIZE) * tile_bytes(out.tile, out.dtype)
    if batched:
        return gathered + block
    return gathered + (1 + sizes.inner_blocks) * block if partial else gathered
