"""L1 use of the circular buffers of matmul programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ttnn_emulator.enums import BufferType, DataType
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.ops.matmul.selection_inputs import HEIGHT
from ttnn_emulator.tensors.shapes import Tile, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_mcast_2d_program_factory.cpp,
# "Local L1 to store temp vars"
L1_VARIABLES = 64  # bytes for variables on cores that send shards
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_mcast_1d_program_factory.cpp,
# sync_cb_page_bytes
SIGNAL = 16  # bytes of a circular buffer that synchronises the kernels of a core


@dataclass(frozen=True)
class Sizes:
    """Tile size of each buffer in bytes, and the number of blocks of the inner dimension."""

    in0: int
    in1: int
    out: int
    between: int
    bias: int
    blocks: int
    shares_out: bool  # partial sums share the output's buffer


def circular_buffers(
    of: Operands, program: Program, between: DataType, output: Spec, bias: Spec | None, alignment: int
) -> int:
    """Bytes per core of the program; buffers that alias a sharded tensor cost nothing."""
    out_tile = Tile((of.in0_tile.height, of.in1_tile.width))
    sizes = Sizes(
        round_up(tile_bytes(of.in0_tile, of.a.dtype), 1 if of.a.is_sharded else alignment),
        round_up(tile_bytes(of.in1_tile, of.b.dtype), 1 if of.b.is_sharded else alignment),
        tile_bytes(out_tile, output.dtype),
        tile_bytes(out_tile, between),
        round_up(tile_bytes(bias.tile, bias.dtype), alignment) if bias is not None else 0,
        of.inner // program.in0_block_w if program.in0_block_w else 1,
        between is output.dtype,
    )
    return _TOTALS[program.kind](of, program, sizes, output, bias)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_program_factory.cpp, circular
# buffers
def _multi_core(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    return 2 * (sizes.in0 + sizes.in1 + sizes.out)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_optimized_program_factory.cpp,
# circular buffers
def _reuse(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    rows = min(program.per_core_M, of.rows())
    in0 = 0 if of.a.is_sharded else 2 * rows * program.in0_block_w * sizes.in0
    in1 = 0 if of.b.is_sharded else 2 * program.per_core_N * program.in0_block_w * sizes.in1
    block = program.per_core_M * program.per_core_N
    total = in0 + in1 + _outputs(block, block, sizes, output, separate=False)
    if bias is not None:
        total += rows * program.per_core_N * sizes.bias
    if of.in0_tile.transpose_tile:
        total += program.per_core_M * of.inner * sizes.in0 if of.a.is_sharded else in0
    return total


def _outputs(block: int, whole: int, sizes: Sizes, output: Spec, *, separate: bool) -> int:
    """Output tiles and partial sums; they share one buffer if they have the same format."""
    in_place = output.is_sharded and output.memory_config.buffer_type is not BufferType.DRAM
    out = 0 if in_place else (whole if output.is_sharded else block) * sizes.out
    return out if sizes.shares_out and not separate else out + block * sizes.between


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_mcast_2d_program_factory.cpp,
# circular buffers; the 1D program has the same sizes
def _multicast(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    layout = of.a.memory_config.memory_layout
    batches0 = 1 if program.fuse_batch else of.batch_a
    batches1 = 1 if program.fuse_batch else of.batch_b if program.kind is Kind.MCAST_1D else of.batch_a
    depth0, depth1 = (2 if batches * sizes.blocks > 1 else 1 for batches in (batches0, batches1))
    in0 = program.out_block_h * program.in0_block_w * depth0 * sizes.in0
    in1 = program.out_block_w * program.in0_block_w * depth1 * sizes.in1
    whole_in0 = program.per_core_M * of.inner * sizes.in0
    keeps_in0 = of.a.is_sharded or (batches0 == 1 and batches1 > 1)
    if program.kind is Kind.MCAST_1D and not program.mcast_in0 and keeps_in0:
        in0 = whole_in0
    transposing = in0 if of.in0_tile.transpose_tile else 0
    if of.a.is_sharded:
        if program.kind is Kind.MCAST_2D and layout is HEIGHT:
            in0 = 0
        elif program.kind is Kind.MCAST_1D and not program.mcast_in0:
            in0 = in0 if _extracts(of, program) else 0
        else:
            in0 += L1_VARIABLES
    if of.b.is_sharded and of.b.memory_config.buffer_type is not BufferType.DRAM:
        in1 = 0
    block, whole = program.out_block_h * program.out_block_w, program.per_core_M * program.per_core_N
    separate = output.is_sharded and program.per_core_M != program.out_block_h
    if program.untilize_out and program.out_block_w != program.out_subblock_w:
        separate = True
    total = in0 + in1 + transposing + _outputs(block, whole, sizes, output, separate=separate)
    if bias is not None and not (bias.is_sharded and bias.memory_config.buffer_type is not BufferType.DRAM):
        total += program.out_block_w * sizes.bias
    return total


def _one_dimensional(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    return (_gathered if program.gather_in0 else _multicast)(of, program, sizes, output, bias)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_mcast_1d_program_factory.cpp,
# process_gather_in0_program_and_create_override_variables
def _gathered(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    """The other cores' shards of in0, double-buffered weight blocks from DRAM, partial sums, two signal buffers."""
    shards, block = of.a.shard_spec, program.per_core_M * program.per_core_N
    assert shards is not None
    width = shards.shape[1] // of.in0_tile.width
    total = max((shards.num_cores() - 1) * program.per_core_M * width, 1) * sizes.in0 + 2 * SIGNAL
    if of.b.memory_config.buffer_type is BufferType.DRAM and program.delivery is None:
        total += 2 * width * program.per_core_N * sizes.in1
    separate = not sizes.shares_out or (program.untilize_out and program.per_core_N > program.out_subblock_w)
    return total + (block * sizes.between if separate else 0)


def _extracts(of: Operands, program: Program) -> bool:
    """Whether blocks are copied out of in0's shards rather than read in place."""
    several = program.per_core_M != program.out_block_h and program.per_core_N != program.out_block_w
    return of.inner != program.in0_block_w or several


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_batched_hs_dram_sharded_program_factory.cpp,  # noqa: E501
# circular buffers
def _batched_dram_sharded(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    """The output shard is computed in a circular buffer of its own, then copied into the output tensor."""
    shards = output.shard_spec
    assert shards is not None
    in0 = 2 * program.per_core_M * program.in0_block_w * sizes.in0
    in1 = 3 * program.per_core_N * program.in0_block_w * sizes.in1
    tiles = (shards.shape[0] // of.in0_tile.height) * (shards.shape[1] // of.in1_tile.width)
    total = in0 + in1 + tiles * sizes.out
    if not sizes.shares_out:
        total += program.per_core_M * program.per_core_N * sizes.between
    return total + (program.per_core_N * sizes.bias if bias is not None else 0)


def _unknown(of: Operands, program: Program, sizes: Sizes, output: Spec, bias: Spec | None) -> int:
    return 0


_TOTALS: dict[Kind, Callable[[Operands, Program, Sizes, Spec, Spec | None], int]] = {
    Kind.MULTI_CORE: _multi_core,
    Kind.REUSE: _reuse,
    Kind.MCAST_2D: _multicast,
    Kind.MCAST_1D: _one_dimensional,
    Kind.DRAM_SHARDED: _unknown,
    Kind.BATCHED_DRAM_SHARDED: _batched_dram_sharded,
}
