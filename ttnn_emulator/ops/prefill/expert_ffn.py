"""The feed-forward network of one routed expert: down(silu(x · gate) × (x · up)), of matrix products."""

from __future__ import annotations

import math
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS, BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.boards import Arch
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.ops.prefill.mesh_positions import PREFILL
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

FFN_DTYPES = (DataType.BFLOAT16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/routed_expert_ffn/routed_expert_ffn_wh.cpp,
# grid and block sizes
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/routed_expert_ffn/routed_expert_ffn_bh.cpp,
# grid and block sizes
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/routed_expert_ffn/routed_expert_ffn_common.cpp,  # noqa: E501
# M_tiles limit
WORMHOLE_COLUMNS, BLACKHOLE_COLUMNS, ROWS = 8, 11, 8
WORMHOLE_BLOCKS = (7, 5, 8, 4, 3, 2)
BLACKHOLE_BLOCK = 16
TILES_A_ROW = 4  # of cores
TILES_IN_REGISTER = 8
MOST_TILES = 64  # rows of tiles that run at once


@composite(f"{PREFILL}.routed_expert_ffn")
def routed_expert_ffn(
    x: Tensor,
    gate_proj: Tensor,
    up_proj: Tensor,
    down_proj: Tensor,
    *,
    compute_kernel_config: Any = None,
    output: Tensor | None = None,
) -> Tensor:
    """down(silu(x · gate) × (x · up)), with program configs for the chip's grid."""
    spec = x._spec
    require_on_device(spec, "x")
    device = x._device
    assert device is not None
    rows = _tiles(spec, -2)
    weights = (gate_proj, up_proj, down_proj)
    if device.board.arch is Arch.WORMHOLE_B0:
        if rows > MOST_TILES:
            return _plain(x, weights, compute_kernel_config, output)
        _require_dtype(spec)
        return _on_wormhole(x, weights, compute_kernel_config, output)
    _require_dtype(spec)
    if rows <= MOST_TILES:
        return _on_blackhole(x, weights, compute_kernel_config, output)
    return _in_chunks(x, weights, compute_kernel_config, output)


def _require_dtype(spec: Spec) -> None:
    require(spec.dtype in FFN_DTYPES, f"x is {spec.dtype}, only bfloat16 and bfloat8_b are supported")


def _tiles(spec: Spec, dim: int) -> int:
    return spec.padded_shape[dim] // TILE_SIZE


def _largest_divisor(number: int, most: int) -> int:
    return max(divisor for divisor in range(1, most + 1) if number % divisor == 0)


Weights = tuple[Tensor, Tensor, Tensor]


def _plain(x: Tensor, weights: Weights, config: Any, output: Tensor | None) -> Tensor:
    gate = ttnn.matmul(x, weights[0], activation="silu", compute_kernel_config=config)
    up = ttnn.matmul(x, weights[1], compute_kernel_config=config)
    ttnn.multiply_(gate, up)
    up.deallocate()
    return ttnn.matmul(gate, weights[2], compute_kernel_config=config, optional_output_tensor=output)


def _program(columns: int, rows: int, high: int, wide: int, block: int, part: int, *, fused: bool) -> Any:
    import ttnn_emulator  # its record types are created after the operations

    return ttnn_emulator.MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=CoreCoord(columns, rows),
        in0_block_w=block,
        out_subblock_h=1,
        out_subblock_w=part,
        out_block_h=high,
        out_block_w=wide,
        per_core_M=high,
        per_core_N=wide,
        transpose_mcast=False,
        fused_activation=None,
        fuse_batch=fused,
    )


def _in_blocks(columns: int, rows: int, high: int, wide: int) -> MemoryConfig:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])
    shards = ShardSpec(grid, (high * TILE_SIZE, wide * TILE_SIZE))
    return MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)


def _spread(spec: Spec) -> tuple[int, int]:
    """Rows of cores, and rows of tiles on each."""
    tiles = _tiles(spec, -2)
    rows = min(div_up(tiles, TILES_A_ROW), ROWS)
    return rows, div_up(tiles, rows)


def _on_wormhole(x: Tensor, weights: Weights, config: Any, output: Tensor | None) -> Tensor:
    assert x._device is not None
    grid = x._device.board.grid
    require(grid == (WORMHOLE_COLUMNS, ROWS), f"the grid must be {WORMHOLE_COLUMNS} x {ROWS} cores, not {grid}")
    gate_proj, up_proj, down_proj = weights
    rows, high = _spread(x._spec)
    inner, hidden = _tiles(gate_proj._spec, -2), _tiles(gate_proj._spec, -1)
    wide = div_up(hidden, WORMHOLE_COLUMNS)
    block = next((each for each in WORMHOLE_BLOCKS if inner % each == 0), 1)
    program = _program(
        WORMHOLE_COLUMNS, rows, high, wide, block, _largest_divisor(wide, TILES_IN_REGISTER), fused=False
    )
    shared: dict[str, Any] = {
        "memory_config": _in_blocks(WORMHOLE_COLUMNS, rows, high, wide),
        "program_config": program,
        "compute_kernel_config": config,
    }
    gate = ttnn.matmul(x, gate_proj, activation="silu", **shared)
    up = ttnn.matmul(x, up_proj, **shared)
    ttnn.multiply_(gate, up)
    up.deallocate()
    broad = div_up(_tiles(down_proj._spec, -1), WORMHOLE_COLUMNS)
    block = _best_block(math.gcd(hidden, wide), high, broad, gate, down_proj, config, x._spec.dtype)
    program = _program(
        WORMHOLE_COLUMNS, rows, high, broad, block, _largest_divisor(broad, TILES_IN_REGISTER), fused=True
    )
    made = ttnn.matmul(
        gate,
        down_proj,
        memory_config=_in_blocks(WORMHOLE_COLUMNS, rows, high, broad),
        program_config=program,
        compute_kernel_config=config,
    )
    gate.deallocate()
    result = ttnn.to_memory_config(made, DRAM_MEMORY_CONFIG, output_tensor=output)
    made.deallocate()
    return result


def _on_blackhole(x: Tensor, weights: Weights, config: Any, output: Tensor | None) -> Tensor:
    assert x._device is not None
    columns, lines = x._device.board.grid
    large = columns >= BLACKHOLE_COLUMNS and lines >= ROWS
    require(large, f"the grid must be at least {BLACKHOLE_COLUMNS} x {ROWS} cores, not {columns} x {lines}")
    gate_proj, up_proj, down_proj = weights
    rows, high = _spread(x._spec)
    wide = div_up(_tiles(gate_proj._spec, -1), BLACKHOLE_COLUMNS)
    shared: dict[str, Any] = {
        "memory_config": _in_blocks(BLACKHOLE_COLUMNS, rows, high, wide),
        "program_config": _program(BLACKHOLE_COLUMNS, rows, high, wide, BLACKHOLE_BLOCK, wide, fused=False),
        "compute_kernel_config": config,
    }
    gate = ttnn.matmul(x, gate_proj, **shared)
    up = ttnn.matmul(x, up_proj, **shared)
    active = ttnn.multiply(
        gate,
        up,
        memory_config=L1_MEMORY_CONFIG,
        input_tensor_a_activations=[UnaryWithParam(ALL_ENUMS["UnaryOpType"]["SILU"])],
    )
    gate.deallocate()
    up.deallocate()
    broad = div_up(_tiles(down_proj._spec, -1), BLACKHOLE_COLUMNS)
    block = _best_block(_tiles(down_proj._spec, -2), high, broad, active, down_proj, config, x._spec.dtype)
    part = _largest_divisor(broad, TILES_IN_REGISTER)
    program = _program(BLACKHOLE_COLUMNS, rows, high, broad, block, part, fused=False)
    return ttnn.matmul(
        active,
        down_proj,
        program_config=program,
        compute_kernel_config=config,
        optional_output_tensor=output,
    )


def _in_chunks(x: Tensor, weights: Weights, config: Any, output: Tensor | None) -> Tensor:
    """Rows of tiles a few at a time, each part written into a view of the whole."""
    shape = x._spec.padded_shape
    require(all(size == 1 for size in shape[:-2]), f"leading dimensions of x must be 1, they are {list(shape[:-2])}")
    rows, width = shape[-2], weights[2]._spec.padded_shape[-1]
    if output is None:
        whole = ttnn.empty((*shape[:-2], rows, width), x._spec.dtype, Layout.TILE, x._device, DRAM_MEMORY_CONFIG)
    else:
        fits = output._spec.padded_shape[-2:] == (rows, width)
        require(fits, f"the output is {list(output._spec.padded_shape)}, {rows} x {width} are needed")
        whole = output
    step = MOST_TILES * TILE_SIZE
    for start in range(0, rows, step):
        length = min(step, rows - start)
        part, into = (ttnn.narrow(each, len(shape) - 2, start, length) for each in (x, whole))
        _on_blackhole(part, weights, config, into)
    return whole


def _best_block(inner: int, high: int, wide: int, in0: Tensor, in1: Tensor, config: Any, dtype: DataType) -> int:
    """The widest block of the inner dimension whose buffers fit into L1 (best_in0_block_w)."""
    device = in0._device
    assert device is not None
    memory = device.memory(BufferType.L1)
    lowest = memory.lowest_used_address
    room = memory.bank_bytes if lowest is None else lowest - memory.base
    own, other = tile_bytes(DEFAULT_TILE, in0._spec.dtype), tile_bytes(DEFAULT_TILE, in1._spec.dtype)
    wide_sums = config is not None and config.fp32_dest_acc_en
    sums = DataType.FLOAT32 if wide_sums else DataType.BFLOAT16
    between = max(tile_bytes(DEFAULT_TILE, sums), 0 if wide_sums else tile_bytes(DEFAULT_TILE, dtype))
    shards = in0._spec.shard_spec
    held = high * shards.shape[1] // TILE_SIZE * own if shards is not None else 0
    fixed = high * wide * (own + between) + held

    def size(block: int) -> int:
        return 2 * block * (high * own + wide * other) + fixed

    fitting = [block for block in range(1, inner + 1) if inner % block == 0 and size(block) < room]
    require(fitting, f"buffers of {size(1)} B do not fit into the {room} B of L1 that are free")
    return fitting[-1]
