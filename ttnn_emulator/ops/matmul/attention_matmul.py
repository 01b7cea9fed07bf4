"""Batched matmuls for decoding: each user's query times that user's keys or values."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.matmul.selection_inputs import HEIGHT
from ttnn_emulator.ops.support.common_checks import into, math_config, memory_of
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/matmul/group_attn_matmul/device/group_attn_matmul_device_operation.cpp,  # noqa: E501
# bshape
USERS = 32


def _require_operands(a: Spec, b: Spec) -> None:
    require(a.is_tile and b.is_tile, f"the operands must be in TILE layout, they are in {a.layout} and {b.layout}")
    require(a.on_device and b.on_device, "the operands must be on a device")
    require(len(a.padded_shape) == len(b.padded_shape) == 4, "the operands must have rank 4")
    require(a.padded_shape[0] == 1, f"the query must have length 1, not {a.padded_shape[0]}")
    require(
        a.padded_shape[2] == b.padded_shape[0],
        f"there are queries of {a.padded_shape[2]} users, keys of {b.padded_shape[0]}",
    )


def _require_accumulation(config: MathConfig, *specs: Spec) -> None:
    require(
        config.fp32_acc or all(spec.dtype is not DataType.FLOAT32 for spec in specs),
        "float32 needs fp32_dest_acc_en",
    )


def _plan(
    a: Spec, b: Spec, out: Spec, config: MathConfig, output: Spec | None, name: str, *, tokens: int, transposed: bool
) -> Plan:
    """[1, heads, users, K] times [users, kv heads, K, N], per user; all shapes are padded shapes."""
    between = DataType.FLOAT32 if config.fp32_acc and a.dtype is DataType.FLOAT32 else DataType.BFLOAT16
    kernel = Kernel(MathConfig(config.fidelity, config.fp32_acc), a.dtype, b.dtype, between, transpose_b=transposed)
    product = kernel.compute()
    groups = b.padded_shape[1]
    heads, users, inner = a.padded_shape[1:]

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = _padded(x, a), _padded(y, b)
        y = y[:, :, :tokens] if tokens else y
        query = x.reshape(groups, heads // groups, users, inner).permute(2, 0, 1, 3)
        result = product(query, y).permute(1, 2, 0, 3).reshape(1, heads, users, -1)
        return pack(result, out.dtype, from_fp32=config.fp32_acc).reshape(out.shape)

    return Plan(output or out, compute, ("input_tensor_a", "input_tensor_b"), into(output, name))


def _padded(values: torch.Tensor, spec: Spec) -> torch.Tensor:
    height, width = spec.padded_shape[-2] - values.shape[-2], spec.padded_shape[-1] - values.shape[-1]
    return torch.nn.functional.pad(values, (0, width, 0, height)) if height or width else values


@operation("ttnn.experimental.attn_matmul")
def attn_matmul(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    compute_with_storage_grid_size: CoreCoord,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """[1, heads, users, K] × [users, 1, K, N]: each user's rows times that user's matrix."""
    return _attention(
        input_tensor_a,
        input_tensor_b,
        compute_with_storage_grid_size,
        dtype,
        compute_kernel_config,
        memory_config,
        output_tensor,
    )


@operation("ttnn.experimental.attn_matmul_from_cache")
def attn_matmul_from_cache(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    num_tokens: int,
    transpose_hw: bool,
    compute_with_storage_grid_size: CoreCoord,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """The same with the first `num_tokens` rows of a cache, transposed or not."""
    require(num_tokens > 0, "num_tokens must be at least 1")
    require(len(input_tensor_b.padded_shape) > 2, "the cache must have rank 4")
    require(
        num_tokens <= input_tensor_b.padded_shape[2],
        f"{num_tokens} tokens exceed the cache's {input_tensor_b.padded_shape[2]}",
    )
    return _attention(
        input_tensor_a,
        input_tensor_b,
        compute_with_storage_grid_size,
        dtype,
        compute_kernel_config,
        memory_config,
        output_tensor,
        tokens=round_up(num_tokens, TILE_SIZE),
        transposed=transpose_hw,
    )


def _attention(
    a: Spec,
    b: Spec,
    grid: CoreCoord,
    dtype: DataType | None,
    compute_kernel_config: Any,
    memory_config: MemoryConfig | None,
    output: Spec | None,
    *,
    tokens: int = 0,
    transposed: bool = False,
) -> Plan:
    _require_operands(a, b)
    require(b.padded_shape[1] == 1, f"there must be one head of keys, not {b.padded_shape[1]}")
    inner = b.padded_shape[3] if transposed else tokens or b.padded_shape[2]
    require(a.padded_shape[3] == inner, f"the inner dimensions {a.padded_shape[3]} and {inner} do not match")
    require(grid.x > 0 and grid.y > 0, f"a grid of {grid.x} x {grid.y} cores is empty")
    config = math_config(compute_kernel_config)
    width = tokens if transposed else b.padded_shape[3]
    out = Spec.of((1, *a.padded_shape[1:3], width), dtype or a.dtype, Layout.TILE, memory_of(memory_config, a))
    _require_accumulation(config, a, b, output or out)
    return _plan(a, b, out, config, output, "output_tensor", tokens=tokens, transposed=transposed)


@operation("ttnn.experimental.group_attn_matmul")
def group_attn_matmul(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    compute_with_storage_grid_size: CoreCoord,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    optional_output_tensor: Spec | None = None,
) -> Plan:
    """[1, heads, 32, K] × [32, groups, K, N]: heads of a group share that group's matrix."""
    a, b, grid = input_tensor_a, input_tensor_b, compute_with_storage_grid_size
    _require_operands(a, b)
    heads, users = a.padded_shape[1:3]
    require(
        b.padded_shape[1] > 0 and heads % b.padded_shape[1] == 0, f"{heads} heads do not divide by {b.padded_shape[1]}"
    )
    require(users == USERS, f"there must be {USERS} users, not {users}")
    board = current_board().grid
    require(grid.x <= board[0] and grid.y <= board[1], f"the device has no {grid.x} x {grid.y} cores")
    require(max(heads, USERS) <= grid.x * grid.y, f"{grid.x} x {grid.y} cores are too few for {heads} heads")
    config = math_config(compute_kernel_config)
    memory = memory_of(memory_config, a)
    shape = (1, heads, users, b.padded_shape[3])
    orientation = _orientation(a, b, memory)
    _require_sharding(a, "the first operand", orientation, heads, (users, a.padded_shape[3]))
    _require_sharding(
        b, "the second operand", orientation, users, (b.padded_shape[1] * b.padded_shape[2], b.padded_shape[3])
    )
    if memory.is_sharded():
        memory = _sharded_output(memory, shape, grid, orientation)
    require(a.padded_shape[3] == b.padded_shape[2], "the inner dimensions do not match")
    out = Spec.of(shape, dtype or a.dtype, Layout.TILE, memory)
    _require_accumulation(config, a, b, optional_output_tensor or out)
    return _plan(a, b, out, config, optional_output_tensor, "optional_output_tensor", tokens=0, transposed=False)


def _orientation(a: Spec, b: Spec, output: MemoryConfig) -> ShardOrientation:
    sharded = next((each.shard_spec for each in (a, b, output) if each.shard_spec is not None), None)
    row_major = sharded is not None and sharded.orientation is ShardOrientation.ROW_MAJOR
    return ShardOrientation.ROW_MAJOR if row_major else ShardOrientation.COL_MAJOR


def _require_sharding(spec: Spec, name: str, orientation: ShardOrientation, cores: int, shard: tuple[int, int]) -> None:
    if not spec.is_sharded:
        return
    given = spec.shard_spec
    require(spec.memory_config.memory_layout is HEIGHT and given is not None, f"{name} must be height sharded")
    assert given is not None
    require(given.orientation is orientation, "all shards must have one orientation")
    require(given.num_cores() == cores, f"{name} must be on {cores} cores, not {given.num_cores()}")
    require(given.shape == shard, f"{name} must have shards of {list(shard)}, not {list(given.shape)}")
    require(spec.memory_config.buffer_type is not BufferType.DRAM, f"{name} is sharded in DRAM")


def _sharded_output(
    memory: MemoryConfig, shape: tuple[int, ...], grid: CoreCoord, orientation: ShardOrientation
) -> MemoryConfig:
    require(memory.memory_layout is HEIGHT, f"the output must be height sharded, it is {memory.memory_layout}")
    cores = num_cores_to_corerangeset(shape[1], grid, orientation is ShardOrientation.ROW_MAJOR)
    own = ShardSpec(cores, (shape[2], shape[3]), orientation)
    given = memory.shard_spec
    require(
        given is None or (given.grid == cores and given.orientation is orientation and given.shape == own.shape),
        f"the output's shards must be {own}",
    )
    return MemoryConfig(memory.memory_layout, memory.buffer_type, own)
