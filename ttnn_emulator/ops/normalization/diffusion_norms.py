"""Distributed norms of diffusion transformers: local statistics per device, and the norm from the gathered ones."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, BufferType, DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.normalization import distributed_norms as numeric
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.matmul.device_operation import dest_tiles
from ttnn_emulator.ops.normalization.layer_norm import row_reader
from ttnn_emulator.ops.support.common_checks import math_config, memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

BF16, FLOAT32 = DataType.BFLOAT16, DataType.FLOAT32
DTYPES = (FLOAT32, BF16, DataType.BFLOAT8_B)
ROWS = (BF16, FLOAT32)  # dtypes of weights and biases
PAIR = 2 * TILE_SIZE


def _size(dtype: DataType) -> int:
    return tile_bytes(Tile(), dtype)


def _block(config: MathConfig, given: Any) -> int:
    """Tiles per block of the kernels: as many as fit the destination register."""
    return dest_tiles(config, bool(given and given.dst_full_sync_en), Tile())


def _middle(config: MathConfig) -> DataType:
    return FLOAT32 if config.fp32_acc else BF16


# -- layer norm -------------------------------------------------------------------------------------------------------


def _layer_math(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=False)


def _require_input(tensor: Spec, config: MathConfig) -> None:
    require_on_device(tensor)
    require(not tensor.is_sharded, "the input must not be sharded")
    require_tile(tensor)
    require(tensor.dtype in DTYPES, f"the input must be FLOAT32, BFLOAT16 or BFLOAT8_B, not {tensor.dtype}")
    require(tensor.dtype is not FLOAT32 or config.fp32_acc, "an input of FLOAT32 needs fp32_dest_acc_en=True")
    require(tensor.volume > 0, "the input must not be empty")


@operation("ttnn.experimental.dit_layernorm_pre_allgather")
def dit_layernorm_pre_allgather(
    input_tensor: Spec,
    recip_tensor: Spec,
    *,
    dtype: DataType = BF16,
    compute_kernel_config: Any = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """Mean and variance of this device's part of the rows, in column 0 of two tiles.

    `recip_tensor` has 1, 1/2, 1/3 … on every core (ttnn.create_layer_norm_reciprocals).
    """
    config = _layer_math(compute_kernel_config)
    _require_input(input_tensor, config)
    require_on_device(recip_tensor, "the reciprocals")
    require(recip_tensor.memory_config.buffer_type is BufferType.L1, "the reciprocals must be in L1")
    require(input_tensor.rank >= 4, f"the input must have rank 4, not {input_tensor.rank}")
    shape = list(input_tensor.shape)
    shape[3] = PAIR
    out = Spec.of(shape, dtype, Layout.TILE, memory_of(memory_config, input_tensor))
    width = input_tensor.shape[-1]
    fault = _before_fault(input_tensor, recip_tensor, out)

    def compute(values: torch.Tensor, reciprocals: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        known = reciprocals.reshape(-1, reciprocals.shape[-1])[0, :width]
        found = numeric.running_statistics(values, known, config.fp32_acc)
        return numeric.statistics_tiles(found, dtype, config.fp32_acc)

    block = _block(config, compute_kernel_config)
    size = 2 * block * (_size(input_tensor.dtype) + _size(dtype)) + 4 * _size(dtype)
    return Plan(out, compute, l1_bytes=size)


def _before_fault(tensor: Spec, reciprocals: Spec, out: Spec) -> ChipFault | None:
    if tensor.rank > 4:
        return ChipFault(f"the statistics of an input of rank {tensor.rank} do not fit into {list(out.shape)}")
    if tensor.shape[-1] != tensor.padded_shape[-1]:
        return ChipFault(f"the padding behind {tensor.shape[-1]} columns counts like values", hint="Use whole tiles.")
    if out.dtype not in FLOAT_DTYPES:
        return ChipFault(f"{out.dtype} holds bit patterns of floats here")
    shards = reciprocals.memory_config.shard_spec
    if reciprocals.dtype is not FLOAT32 or reciprocals.is_tile or shards is None:
        return ChipFault("the kernel takes the reciprocals for rows of FLOAT32 on every core")
    if shards.shape[1] < tensor.shape[-1]:
        return ChipFault(f"{shards.shape[1]} reciprocals are too few for {tensor.shape[-1]} columns")
    return None


@operation("ttnn.experimental.dit_layernorm_post_allgather")
def dit_layernorm_post_allgather(
    input_tensor: Spec,
    stats: Spec,
    *,
    epsilon: float = 1e-5,
    weight: Spec | None = None,
    bias: Spec | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    dtype: DataType | None = None,
) -> Plan:
    """The layer norm of this device's part from the gathered means and variances; weights may differ per batch."""
    config = _layer_math(compute_kernel_config)
    tensor, made = input_tensor, dtype or input_tensor.dtype
    _require_input(tensor, config)
    require_on_device(stats, "the statistics")
    require_tile(stats, "the statistics")
    require(stats.dtype in DTYPES, f"the statistics must be FLOAT32, BFLOAT16 or BFLOAT8_B, not {stats.dtype}")
    padded, given = tensor.padded_shape, stats.padded_shape
    require(given[-1] % PAIR == 0 and given[-1] > 0, f"statistics {given[-1]} wide are no pairs of tiles")
    require(
        len(padded) >= 3 and len(given) >= 3 and given[:3] == padded[:3],
        f"the statistics {list(given)} are not of the rows of {list(padded)}",
    )
    require((weight is None) == (bias is None), "weight and bias come together or not at all")
    for name, row in (("weight", weight), ("bias", bias)):
        if row is not None:
            _require_row(tensor, row, name)
    out = Spec.of(tensor.shape, made, Layout.TILE, memory_of(memory_config, tensor))
    rows = [(name, row) for name, row in (("weight", weight), ("bias", bias)) if row is not None]
    fault = _after_fault(tensor, stats, out, [row for _, row in rows])
    readers = [_reader(tensor, row) for _, row in rows]

    def compute(values: torch.Tensor, statistics: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        operands = {name: Operand(read(x), row.dtype) for read, x, (name, row) in zip(readers, others, rows)}
        statistics = torch.nn.functional.pad(statistics, (0, -statistics.shape[-1] % PAIR))
        return numeric.layer_norm(
            Operand(values, tensor.dtype),
            Operand(statistics, stats.dtype),
            config,
            epsilon,
            made,
            padded[-1],
            **operands,
        )

    block = _block(config, compute_kernel_config)
    size = 2 * block * (_size(tensor.dtype) + _size(made)) + 2 * given[-1] // TILE_SIZE * _size(stats.dtype)
    size += _size(BF16) + (3 + block) * _size(_middle(config))
    size += sum(round_up(div_up(padded[-1], TILE_SIZE), block) * _size(row.dtype) for _, row in rows)
    return Plan(out, compute, reads=("input_tensor", "stats", *[name for name, _ in rows]), l1_bytes=size)


def _require_row(tensor: Spec, row: Spec, name: str) -> None:
    require_on_device(row, f"the {name}")
    require(row.dtype in ROWS, f"the {name} must be BFLOAT16 or FLOAT32, not {row.dtype}")
    shape, padded = row.padded_shape, tensor.padded_shape
    require(1 <= len(shape) <= len(padded), f"the {name} must have 1 to {len(padded)} dimensions, not {len(shape)}")
    if row.is_tile:
        require(shape[-1] == padded[-1], f"the {name} is {shape[-1]} wide, the input {padded[-1]}")
        require(shape[-2:][0] == TILE_SIZE, f"the {name} must be one tile high, not {shape[-2:][0]}")
    else:
        lines = row.physical_shape[0] * row.physical_shape[1] // TILE_SIZE
        require(
            shape[-1] == TILE_SIZE and lines == padded[-1] // TILE_SIZE,
            f"a {name} in rows must be {padded[-1] // TILE_SIZE} × {TILE_SIZE}, not {list(shape)}",
        )
    if len(shape) >= 3:
        batch = shape[-3]
        require(batch in (1, padded[-3]), f"the {name} has {batch} batches, the input {padded[-3]}")
        require(batch == 1 or row.is_tile, f"a {name} for several batches must be in TILE layout")


def _after_fault(tensor: Spec, stats: Spec, out: Spec, rows: list[Spec]) -> ChipFault | None:
    if tensor.rank > 4 and stats.padded_shape[:-1] != tensor.padded_shape[:-1]:
        return ChipFault(f"statistics {list(stats.shape)} are read past their end for {list(tensor.shape)}")
    if out.dtype not in FLOAT_DTYPES:
        return ChipFault(f"{out.dtype} holds bit patterns of floats here")
    for row in rows:
        if _batches(row) > 1 and any(size > 1 for size in tensor.shape[:-3]):
            return ChipFault(
                f"{list(row.shape)} is read past its end for {list(tensor.shape)}: only dimension -3 counts"
            )
    return None


def _batches(row: Spec) -> int:
    return row.padded_shape[-3] if row.is_tile and len(row.padded_shape) >= 3 else 1


def _reader(tensor: Spec, row: Spec) -> Any:
    """A weight as it is broadcast to the input: of tiles, only the first row counts."""
    width = tensor.shape[-1]
    if not row.is_tile:
        return row_reader(width, row)

    def read(values: torch.Tensor) -> torch.Tensor:
        values = values.reshape(-1, *(1, *values.shape)[-2:])[:, :1, :width]
        return values[: tensor.shape[-3]] if _batches(row) > 1 else values[0]

    return read


# -- RMS norm ---------------------------------------------------------------------------------------------------------


def _rms_math(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=True)


@operation("ttnn.experimental.wan_fused_rmsnorm_pre_allgather", ignores=("memory_config",))
def wan_fused_rmsnorm_pre_allgather(
    input_tensor: Spec,
    *,
    dtype: DataType = BF16,
    compute_kernel_config: Any = None,
) -> Plan:
    """The sums of squares of this device's part of the rows. The library ignores `memory_config`."""
    config = _rms_math(compute_kernel_config)
    require_on_device(input_tensor)
    require_tile(input_tensor)
    layout = input_tensor.memory_config.memory_layout
    require(layout is TensorMemoryLayout.INTERLEAVED, f"the input must be interleaved, not {layout}")
    require(input_tensor.dtype is BF16, f"the input must be BFLOAT16, not {input_tensor.dtype}")
    require(input_tensor.rank > 0 and input_tensor.shape[-1] > 0, "the input must have columns")
    out = Spec.of((*input_tensor.shape[:-1], TILE_SIZE), dtype, Layout.TILE, input_tensor.memory_config)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if dtype not in FLOAT_DTYPES:
            raise ChipFault(f"{dtype} holds bit patterns of floats here")
        return numeric.sums_of_squares(values, config, dtype)

    size = 2 * _block(config, compute_kernel_config) * _size(BF16) + _size(BF16) + _size(FLOAT32) + 2 * _size(dtype)
    return Plan(out, compute, l1_bytes=size)


@operation("ttnn.experimental.wan_fused_rmsnorm_post_allgather")
def wan_fused_rmsnorm_post_allgather(
    input_tensor: Spec,
    stats: Spec,
    *,
    epsilon: float = 1e-5,
    num_heads_per_device: int = 1,
    weight: Spec | None = None,
    transformation_mat: Spec | None = None,
    rope_cos: Spec | None = None,
    rope_sin: Spec | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    dtype: DataType | None = None,
) -> Plan:
    """The RMS norm of this device's heads, [1, 1, S, W] → [1, heads, S, W ÷ heads], and their rotary embedding."""
    config, heads, made = _rms_math(compute_kernel_config), num_heads_per_device, dtype or input_tensor.dtype
    _require_gathered(input_tensor, stats, heads)
    if weight is not None:
        _require_operand(weight, "weight")
        require(len(weight.padded_shape) == 2, f"the weight must have two dimensions: {list(weight.shape)}")
        require(weight.padded_shape[-1] == input_tensor.shape[-1], f"the weight is {weight.padded_shape[-1]} wide")
        require(weight.rank == 2 and weight.shape[0] == 1, f"the weight must be one row, not {list(weight.shape)}")
    rotation: list[Spec] = []
    if transformation_mat is not None:
        require(rope_cos is not None and rope_sin is not None, "a transformation_mat needs rope_cos and rope_sin")
        assert rope_cos is not None and rope_sin is not None
        rotation = [transformation_mat, rope_cos, rope_sin]
        _require_rotation(input_tensor, heads, *rotation)
    rows, width = input_tensor.shape[-2:]
    out = Spec.of((1, heads, rows, width // heads), made, Layout.TILE, memory_of(memory_config, input_tensor))

    def compute(values: torch.Tensor, statistics: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        if width // heads % TILE_SIZE:
            raise ChipFault(f"heads {width // heads} wide are not whole tiles: the kernel counts columns by tiles")
        if made not in FLOAT_DTYPES:
            raise ChipFault(f"{made} holds bit patterns of floats here")
        statistics = torch.nn.functional.pad(statistics, (0, -statistics.shape[-1] % TILE_SIZE))
        given = None if weight is None else Operand(others[0].reshape(1, -1), weight.dtype)
        turned = None
        if rotation:
            matrix, cosines, sines = (Operand(x, spec.dtype) for x, spec in zip(others[-3:], rotation))
            turned = matrix, _of_rows(cosines, rows, width // heads), _of_rows(sines, rows, width // heads)
        x = Operand(values, BF16)
        return numeric.rms_norm(x, Operand(statistics, stats.dtype), config, epsilon, made, heads, given, turned)

    reads = ["input_tensor", "stats"]
    reads += [] if weight is None else ["weight"]
    reads += ["transformation_mat", "rope_cos", "rope_sin"] if rotation else []
    size = _after_bytes(
        input_tensor, stats, made, weight, rotation, config, _block(config, compute_kernel_config), heads
    )
    return Plan(out, compute, reads=tuple(reads), l1_bytes=size)


def _of_rows(wave: Operand, rows: int, width: int) -> Operand:
    """Cosines or sines for the input's rows; additional rows in their tiles are dropped."""
    missing = (0, width - wave.values.shape[-1], 0, rows - wave.values.shape[-2])
    return Operand(torch.nn.functional.pad(wave.values, missing), wave.dtype)


def _require_operand(spec: Spec, name: str, dtypes: tuple[DataType, ...] = (BF16,)) -> None:
    require_on_device(spec, f"the {name}")
    require_tile(spec, f"the {name}")
    require(spec.dtype in dtypes, f"the {name} must be {' or '.join(t.name for t in dtypes)}, not {spec.dtype}")


def _require_gathered(tensor: Spec, stats: Spec, heads: int) -> None:
    _require_operand(tensor, "input")
    _require_operand(stats, "statistics", ROWS)
    padded, given = tensor.padded_shape, stats.padded_shape
    require(
        len(given) == len(padded) and given[:-1] == padded[:-1], f"{list(given)} are not the rows of {list(padded)}"
    )
    require(given[-1] > 0, "there must be statistics of a device")
    require(heads > 0 and padded[-1] % heads == 0, f"{padded[-1]} columns do not divide into {heads} heads")
    require(
        tensor.rank == 4 and tensor.shape[:2] == (1, 1), f"the input must be [1, 1, S, W], not {list(tensor.shape)}"
    )
    require(tensor.shape[-1] == padded[-1], f"{tensor.shape[-1]} columns are not whole tiles")


def _require_rotation(tensor: Spec, heads: int, matrix: Spec, cosines: Spec, sines: Spec) -> None:
    _require_operand(matrix, "transformation_mat")
    square = (1, 1, TILE_SIZE, TILE_SIZE)
    require(matrix.padded_shape == square, f"transformation_mat must be one tile, not {list(matrix.shape)}")
    wanted = (1, 1, tensor.padded_shape[2], tensor.padded_shape[3] // heads)
    for name, wave in (("rope_cos", cosines), ("rope_sin", sines)):
        _require_operand(wave, name, ROWS)
        require(wave.padded_shape == wanted, f"{name} must be {list(wanted)}, not {list(wave.padded_shape)}")


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/fused_distributed_rmsnorm/device/fused_rmsnorm_post_all_gather_program_factory.cpp,  # noqa: E501
# circular buffers
def _after_bytes(
    tensor: Spec,
    stats: Spec,
    made: DataType,
    weight: Spec | None,
    rotation: list[Spec],
    config: MathConfig,
    block: int,
    heads: int,
) -> int:
    """Bytes of circular buffers per core."""
    middle, columns = _size(_middle(config)), tensor.padded_shape[-1] // TILE_SIZE
    size = 2 * block * (_size(BF16) + _size(made)) + 2 * stats.padded_shape[-1] // TILE_SIZE * _size(stats.dtype)
    size += 2 * _size(BF16) + middle
    if weight is not None:
        size += round_up(columns, block) * _size(BF16)
    if weight is not None or rotation:
        size += block * middle
    if rotation:
        size += (1 + block) * _size(BF16) + columns // heads * sum(_size(wave.dtype) for wave in rotation[1:])
    return size
