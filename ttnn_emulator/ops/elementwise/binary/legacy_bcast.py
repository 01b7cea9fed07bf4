"""The legacy bcast operation: one tile row, one tile column or one tile of b broadcast over a."""

from __future__ import annotations

import math
from typing import Any

import torch

from ttnn_emulator.enums import ALL_ENUMS, FLOAT_DTYPES, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.programs.elementwise import binary as elementwise
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec

BcastOpMath, BcastOpDim = ALL_ENUMS["BcastOpMath"], ALL_ENUMS["BcastOpDim"]
JOINED = {BcastOpMath.ADD: "ADD", BcastOpMath.SUB: "SUB", BcastOpMath.MUL: "MUL"}
INTERLEAVED, HEIGHT_SHARDED = TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.HEIGHT_SHARDED


@operation("ttnn.bcast")
def bcast(
    input_a: Spec,
    input_b: Spec,
    math_op: Any,
    dim: Any,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """a + b, a - b or a × b, with b broadcast along the height, the width, or both."""
    for operand in (input_a, input_b):
        require(operand.on_device, "all operands must be on a device, one is on the host")
    _require_sides(input_a, input_b, dim)
    a, b = _tiled(input_a), _tiled(input_b)
    require(a.dtype in FLOAT_DTYPES, f"bcast takes floats, not {a.dtype}")
    config = memory_config if memory_config is not None else input_a.memory_config
    if output_tensor is not None:
        require(output_tensor.dtype in FLOAT_DTYPES, f"bcast returns floats, not {output_tensor.dtype}")
        config = output_tensor.memory_config
    _require_memory(a, config, dim)
    _require_batches(a, b, dim)
    out = output_tensor
    if out is None:
        if config.is_sharded():
            require(a.shard_spec is not None, "a sharded result takes its shards from a sharded input")
            config = config.with_shard_spec(a.shard_spec)
        out = a.with_(memory_config=config)
    compute = _computation(JOINED[math_op], a, b, out, dim)
    return Plan(out, compute, reads=("input_a", "input_b"), into=into(output_tensor))


def _tiled(spec: Spec) -> Spec:
    return spec if spec.is_tile else spec.with_(layout=Layout.TILE)


def _require_sides(a: Spec, b: Spec, dim: Any) -> None:
    """The part of b that is read: one tile wide, one tile high, or both; row-major also a single value."""
    (a_height, a_width), (b_height, b_width) = a.padded_shape[-2:], _last_two(b)
    single = (TILE_SIZE,) if b.is_tile else (1, TILE_SIZE)
    if dim is BcastOpDim.W:
        require(a_height == b_height, f"heights {a_height} and {b_height} differ")
        require(b_width in single, f"b must be one tile wide, not {b_width}")
    elif dim is BcastOpDim.H:
        require(a_width == b_width, f"widths {a_width} and {b_width} differ")
        require(b_height in single, f"b must be one tile high, not {b_height}")
    else:
        tile = (b_height, b_width) in ((TILE_SIZE, TILE_SIZE), *(() if b.is_tile else ((1, 1),)))
        require(tile, f"b must be one tile, not {b_height} x {b_width}")


def _last_two(spec: Spec) -> tuple[int, int]:
    shape = (1, 1, *spec.padded_shape)
    return shape[-2], shape[-1]


def _require_memory(a: Spec, config: MemoryConfig, dim: Any) -> None:
    layout = a.memory_config.memory_layout
    if dim is BcastOpDim.W:
        require(
            layout is INTERLEAVED and config.memory_layout is INTERLEAVED,
            "broadcasting along the width needs interleaved tensors",
        )
    elif dim is BcastOpDim.H:
        require(a.is_sharded == config.is_sharded(), "input and result must both be sharded or both be interleaved")
        require(layout is not HEIGHT_SHARDED, "broadcasting along the height does not support height shards")
    else:
        require(layout in (INTERLEAVED, HEIGHT_SHARDED), f"broadcasting both sides does not support {layout}")
        require(layout is config.memory_layout, f"the result must be {layout} as the input, not {config.memory_layout}")


def _require_batches(a: Spec, b: Spec, dim: Any) -> None:
    batches = math.prod(b.padded_shape[:-2])
    if batches == 1 or (a.is_sharded and dim is BcastOpDim.H):
        return
    same = a.rank == b.rank and a.padded_shape[:-2] == b.padded_shape[:-2]
    require(same, f"batches {list(a.shape[:-2])} and {list(b.shape[:-2])} differ")


def _computation(kind: str, a: Spec, b: Spec, out: Spec, dim: Any) -> Any:
    """On the matrix unit with a 16-bit destination register, which truncates float32 to the upper half."""
    held = [DataType.BFLOAT16 if spec.dtype is DataType.FLOAT32 else spec.dtype for spec in (a, b)]
    result = DataType.BFLOAT16 if out.dtype is DataType.FLOAT32 else out.dtype
    join = elementwise.prepare(kind, elementwise.Setting(held[0], held[1], result, vector=False))
    rows = slice(0, 1) if dim is not BcastOpDim.W else slice(None)
    columns = slice(0, 1) if dim is not BcastOpDim.H else slice(None)
    by_core = _row_of_each(a, b) if a.is_sharded and dim is BcastOpDim.H and math.prod(b.shape[:-2]) > 1 else None

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if out.shape != a.shape:
            raise ChipFault(f"a result of shape {list(a.shape)} is written to a tensor of shape {list(out.shape)}")
        if y.dim() < 2:
            y = y.reshape((1,) * (2 - y.dim()) + tuple(y.shape))
        x = carriers.truncate_bf16(x) if a.dtype is DataType.FLOAT32 else x
        y = carriers.truncate_bf16(y) if b.dtype is DataType.FLOAT32 else y
        if by_core is not None:
            return join(x.reshape(*by_core.shape, -1), _chosen(y, by_core)).reshape(out.shape)
        return join(x, y[..., rows, columns]).reshape(out.shape)

    return compute


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/data_movement/bcast/device/bcast_sharded_h_program_factory.cpp, offset and
# Ht_per_core
def _row_of_each(a: Spec, b: Spec) -> torch.Tensor:
    """The batch of b that each row of a sharded `a` gets, as images × height: b's batches divide the rows of cores."""
    batches = b.padded_shape[-4] if len(b.padded_shape) >= 4 else 1
    height, shards = _last_two(a)[0], a.shard_spec
    assert shards is not None
    images = math.prod(a.padded_shape[:-2])
    stored = torch.arange(images * height)
    if a.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        number, unit = div_up(len(stored), TILE_SIZE), TILE_SIZE
    else:
        extent = shards.grid.bounding_box().grid_size()
        number = extent.y if shards.orientation is ShardOrientation.ROW_MAJOR else extent.x
        unit = shards.shape[0]
        # The library divides by the rows of cores per batch before launching, and crashes if that is zero.
        require(number >= batches, f"{number} rows of cores do not divide into {batches} batches")
    of_each = stored // unit // (number // batches) if number >= batches else torch.full_like(stored, batches)
    return of_each.reshape(images, height)[:, : (1, *a.shape)[-2]]


def _chosen(y: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    first_rows = y.reshape(-1, *y.shape[-2:])[:, 0]
    if int(batch.max()) >= len(first_rows):
        raise ChipFault(f"the cores do not divide into {len(first_rows)} batches: some read behind the end of b")
    return first_rows[batch]
