"""Channel order: convert_to_chw, convert_to_hwc, and the row-major transpose_rm."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.units.packer import store
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import L1_ALIGNMENT, ROW_MAJOR_BYTES, Spec, tile_bytes


@operation("ttnn.experimental.convert_to_chw")
def convert_to_chw(input: Spec, *, dtype: DataType | None = None) -> Plan:
    """[1, 1, H × W, C], sharded by height, to [1, 1, C, H × W], sharded by width."""
    require_on_device(input)
    config, shard = input.memory_config, input.shard_spec
    require(shard is not None and config.memory_layout is HEIGHT, "the input must be sharded by height")
    assert shard is not None
    shape = input.shape
    require(len(shape) == 4 and shape[:2] == (1, 1), f"the input must be [1, 1, H × W, C], not {list(shape)}")
    pixels, channels = shape[2:]
    require(0 < channels <= TILE_SIZE, f"there may be {TILE_SIZE} channels at most, not {channels}")
    require(pixels % TILE_SIZE == 0, f"{pixels} pixels are not whole tiles")
    require(shard.shape[0] % TILE_SIZE == 0, f"shards of {shard.shape[0]} rows are not whole tiles")
    require(
        div_up(pixels, shard.shape[0]) == shard.num_cores(),
        f"{pixels} pixels in shards of {shard.shape[0]} do not fill {shard.num_cores()} cores",
    )
    require(config.is_l1, "the input must be in L1")
    held, tiles = input.bytes_per_bank(1, L1_ALIGNMENT), shard.shape[0] // TILE_SIZE
    needed = tiles * tile_bytes(DEFAULT_TILE, input.dtype)
    require(held >= needed, f"shards of {held} B are not whole tiles of {needed} B")
    placed = MemoryConfig(
        WIDTH, config.buffer_type, ShardSpec(shard.grid, (channels, shard.shape[0]), shard.orientation)
    )
    out = Spec.of((1, 1, channels, pixels), dtype or input.dtype, Layout.ROW_MAJOR, placed)
    return Plan(out, lambda x: _converted(x.transpose(2, 3), input.dtype, out.dtype))


@operation("ttnn.experimental.convert_to_hwc")
def convert_to_hwc(input: Spec, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None) -> Plan:
    """[1, B, C, H × W], sharded by width, to [1, 1, B × H × W, C], by height; channels are padded to L1 alignment."""
    require_on_device(input)
    config, shape = input.memory_config, input.shape
    step = L1_ALIGNMENT // ROW_MAJOR_BYTES[input.dtype]
    require(
        memory_config is not None or not config.is_dram,
        "When input tensor is in DRAM, output memory_config must be explicitly specified",
    )
    placed = memory_config if memory_config is not None else _rows_for(input, step)
    target = placed.shard_spec
    require(target is not None, "the output must be sharded by height")
    assert target is not None
    require(target.shape[1] % step == 0, f"shards of {target.shape[1]} channels are not a multiple of {step}")
    require(len(shape) == 4 and shape[0] == 1, f"the input must be [1, B, C, H × W], not {list(shape)}")
    batch, channels, pixels = shape[1:]
    require(0 < channels <= TILE_SIZE, f"there may be {TILE_SIZE} channels at most, not {channels}")
    require(not input.is_tile, "the input must be in ROW_MAJOR layout")
    shard = input.shard_spec
    require(shard is not None and config.memory_layout is WIDTH, "the input must be sharded by width")
    assert shard is not None
    require(placed.memory_layout is HEIGHT, "the output must be sharded by height")
    require(target.shape[0] % TILE_SIZE == 0, f"shards of {target.shape[0]} rows are not whole tiles")
    target_dtype = dtype or input.dtype
    require(
        ROW_MAJOR_BYTES[target_dtype] >= ROW_MAJOR_BYTES[input.dtype],
        f"the output's {target_dtype} is narrower than the input's {input.dtype}",
    )
    even = pixels == shard.shape[1] * shard.num_cores()
    require(even or batch == 1, f"{pixels} pixels over {shard.num_cores()} cores leave a rest: only for one image")
    width = round_up(channels, step)
    out = Spec.of((1, 1, batch * pixels, width), target_dtype, Layout.ROW_MAJOR, placed)

    def compute(x: torch.Tensor) -> torch.Tensor:
        rows = x.transpose(2, 3).reshape(1, 1, batch * pixels, channels)
        return _converted(pad(rows, (0, width - channels)), input.dtype, out.dtype)

    return Plan(out, compute)


def _rows_for(spec: Spec, step: int) -> MemoryConfig:
    """The order of width-sharded pixels as rows: on the same cores, all images of a core together."""
    shard, config = spec.shard_spec, spec.memory_config
    require(shard is not None and config.memory_layout is WIDTH, "the input must be sharded by width")
    assert shard is not None
    require(spec.rank == 4, f"the input must be [1, B, C, H × W], not {list(spec.shape)}")
    rows = (spec.shape[1] * shard.shape[1], round_up(spec.shape[2], step))
    return MemoryConfig(HEIGHT, config.buffer_type, ShardSpec(shard.grid, rows, shard.orientation))


def _converted(values: torch.Tensor, source: DataType, target: DataType) -> torch.Tensor:
    """Through the registers, which flush 16-bit floats."""
    values = values.contiguous()
    if not values.is_floating_point():
        return values
    return flush(values) if source is target else store(values, target)


@operation("ttnn.experimental.transpose_rm")
def transpose_rm(input: Spec) -> Plan:
    """Swap the last two dimensions by data movement alone."""
    require_on_device(input)
    require(input.rank >= 2, f"the input must be of rank 2 at least, not {input.rank}")
    require(not input.is_tile, "the input must be in ROW_MAJOR layout")
    require(
        input.dtype in (DataType.BFLOAT16, DataType.FLOAT32),
        f"the input must be bfloat16 or float32, not {input.dtype}",
    )
    require(input.volume > 0, f"there is nothing to transpose in {list(input.shape)}")
    *outer, rows, columns = input.shape
    for size in (rows, columns):
        require(size >= TILE_SIZE and size % TILE_SIZE == 0, f"both dimensions must be whole tiles, one is {size}")
    out = Spec.of((*outer, columns, rows), input.dtype, input.layout, input.memory_config)
    return Plan(out, lambda x: x.transpose(-2, -1).contiguous())
