"""Upsampling: nearest by any factor, bilinear by integer factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.programs.products.interpolation import ONE, corner_weights, interpolate
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, NdShardSpec, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# 32-bit integers pass the library's check, because the preceding halo labels them bfloat16.
BILINEAR_DTYPES = (DataType.BFLOAT16, DataType.INT32, DataType.UINT32)


@composite("ttnn.upsample")
def upsample(
    input_tensor: Tensor,
    scale_factor: float | Sequence[float],
    *,
    mode: str = "nearest",
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: object = None,
) -> Tensor:
    """[N, H, W, C] with H and W multiplied by the scale factor."""
    spec = input_tensor._spec
    given = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor, scale_factor)
    require(len(given) == 2, f"there are two scale factors, not {len(given)}")
    scale = float(np.float32(given[0])), float(np.float32(given[1]))
    config = memory_config if memory_config is not None else spec.memory_config
    math_settings = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=False)
    if mode != "bilinear":
        return enlarge_image(input_tensor, scale, mode, config, math_settings)
    require(spec.rank == 4, f"the input must be of rank 4, not {spec.rank}")
    source = input_tensor
    if not spec.is_sharded:
        require_on_device(spec)
        config = _spread_by_height(input_tensor)
        source = ttnn.to_memory_config(input_tensor, config)
    require(min(scale) >= 1 or min(scale) == int(min(scale)), f"scale factors {scale} must be whole numbers")
    result = enlarge_image(source, scale, mode, config, math_settings)
    if memory_config is not None and result._spec.memory_config != memory_config:
        result = ttnn.to_memory_config(result, memory_config)
    return result


def _spread_by_height(tensor: Tensor) -> MemoryConfig:
    """Distribute pixels over all available cores."""
    assert tensor._device is not None
    grid, spec = tensor._device.board.grid, tensor._spec
    pixels = math.prod(spec.shape[:3])
    require(pixels > 0, "the image is empty")
    count = min(grid[0] * grid[1], pixels)
    cores = num_cores_to_corerangeset(count, CoreCoord(*grid), True)
    shard = (round_up(pixels, count) // count, spec.shape[3])
    return MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(cores, shard, ShardOrientation.ROW_MAJOR))


def _is_whole(scale: tuple[float, float]) -> bool:
    return all(factor == math.floor(factor) for factor in scale)


@internal("ttnn.prim.upsample")
def enlarge_image(
    input_tensor: Spec, scale: tuple[float, float], mode: str, memory_config: MemoryConfig, config: MathConfig
) -> Plan:
    spec = input_tensor
    require_on_device(spec)
    require(spec.rank == 4, f"the input must be of rank 4, not {spec.rank}")
    require(all(factor > 0 for factor in scale), f"scale factors {scale} must be positive")
    require(mode in ("nearest", "bilinear"), f"mode must be 'nearest' or 'bilinear', not {mode!r}")
    whole = _is_whole(scale)
    layout = spec.memory_config.memory_layout
    by_whole_factors = whole and (
        mode == "bilinear"
        or (layout is TensorMemoryLayout.INTERLEAVED)
        or (not spec.is_tile and layout in (HEIGHT, BLOCK) and not spec.memory_config.created_with_nd_shard_spec)
    )
    if mode == "bilinear":
        require(whole, f"bilinear upsampling takes whole scale factors, not {scale}")
        require(spec.dtype in BILINEAR_DTYPES, f"bilinear upsampling takes bfloat16, not {spec.dtype}")
        require(layout is HEIGHT, "bilinear upsampling takes height-sharded tensors")
        require(spec.shape[3] % TILE_SIZE == 0, f"{spec.shape[3]} channels are not whole tiles")
        require(not config.fp32_acc, "bilinear upsampling does not take fp32_dest_acc_en")
    if spec.is_tile:
        require(spec.padded_shape == spec.shape, f"tiles must be full, {list(spec.shape)} leaves padding")
        require(by_whole_factors, f"tiles in {spec.memory_config.brief()} cannot be upsampled by {scale}")
    batch, height, width, channels = spec.shape
    tall = math.floor(np.float32(height) * np.float32(scale[0]))
    wide = math.floor(np.float32(width) * np.float32(scale[1]))
    dtype = DataType.BFLOAT16 if spec.dtype is DataType.BFLOAT8_B or mode == "bilinear" else spec.dtype
    out_memory = _output_memory(spec, memory_config, scale, mode, by_whole_factors, (batch, tall, wide))
    out = Spec.of((batch, tall, wide, channels), dtype, Layout.ROW_MAJOR, out_memory)
    require(
        by_whole_factors or spec.page_bytes == out.page_bytes,
        f"pages of the input, {spec.page_bytes} B, and of the output, {out.page_bytes} B, must be equal",
    )
    rows, columns = (_sources(size, factor, whole) for size, factor in ((tall, scale[0]), (wide, scale[1])))
    rows, columns = rows.clamp(max=height - 1), columns.clamp(max=width - 1)

    def nearest(values: torch.Tensor) -> torch.Tensor:
        return values[:, rows][:, :, columns].contiguous()

    def bilinear(values: torch.Tensor) -> torch.Tensor:
        if spec.dtype is not DataType.BFLOAT16 and values.any():
            raise ChipFault(f"the card takes the bits of {spec.dtype} for bfloat16 when it upsamples bilinearly")
        return _bilinear(values.float(), (int(scale[0]), int(scale[1])), config)

    return Plan(out, bilinear if mode == "bilinear" else nearest)


def _sources(size: int, factor: float, whole: bool) -> torch.Tensor:
    """The source index of every output index, in the kernel's fixed point."""
    places = torch.arange(size)
    if whole:
        return places // int(factor)
    step = math.ceil(np.float32(np.float32(1.0) / np.float32(factor)) * ONE)
    return places * step >> 16


def _output_memory(
    spec: Spec,
    config: MemoryConfig,
    scale: tuple[float, float],
    mode: str,
    by_whole_factors: bool,
    pixels: tuple[int, int, int],
) -> MemoryConfig:
    given = spec.memory_config
    if given.created_with_nd_shard_spec and given.nd_shard_spec is not None:
        nd = given.nd_shard_spec
        n, h, w, c = nd.shard_shape
        shape = Shape((n, math.ceil(h * scale[0]), math.ceil(w * scale[1]), c))
        return MemoryConfig(
            given.buffer_type, NdShardSpec(shape, nd.grid, nd.orientation, nd.shard_distribution_strategy)
        )
    if not config.is_sharded():
        require(
            not spec.is_sharded or not by_whole_factors or mode == "bilinear",
            "a sharded input needs a sharded output",
        )
        return config
    require(spec.is_sharded, "the output cannot be sharded when the input is not")
    shards, wanted = spec.shard_spec, config.shard_spec
    assert shards is not None
    total = math.prod(pixels)
    if by_whole_factors:
        require(wanted is not None, "the memory config needs a shard spec")
        assert wanted is not None
        rows = int(shards.shape[0] * scale[0] * scale[1])
        if mode == "bilinear":
            rows = round_up(total, wanted.num_cores()) // wanted.num_cores()
        return config.with_shard_spec(ShardSpec(wanted.grid, (rows, shards.shape[1]), wanted.orientation))
    extent = shards.grid.bounding_box().grid_size()
    down = extent.y if shards.orientation is ShardOrientation.ROW_MAJOR else extent.x
    cores = {HEIGHT: shards.num_cores(), WIDTH: 1}.get(given.memory_layout, down)
    size = (div_up(total, cores), shards.shape[1])
    return given.with_shard_spec(ShardSpec(shards.grid, size, shards.orientation))


def _bilinear(values: torch.Tensor, scale: tuple[int, int], config: MathConfig) -> torch.Tensor:
    """Every output pixel from its four neighbours; neighbours beyond the edge repeat the edge."""
    batch, height, width, channels = values.shape
    (upper, lower, down), (left, right, across) = (
        _neighbours(size, factor) for size, factor in ((height, scale[0]), (width, scale[1]))
    )
    tall, wide = len(upper), len(left)
    corners = [values[:, rows][:, :, columns] for rows in (upper, lower) for columns in (left, right)]
    pixels = torch.stack([corner.reshape(-1, channels) for corner in corners], dim=1)
    weights = corner_weights(down.reshape(-1, 1), across.reshape(1, -1)).reshape(-1, 4).repeat(batch, 1)
    result = interpolate(pixels, weights, DataType.BFLOAT16, config)
    return result.reshape(batch, tall, wide, channels)


def _neighbours(size: int, factor: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For every output index: the inputs before and after it, and the interpolation weight."""
    places = torch.arange(size * factor)
    inverse = np.float32(1.0) / np.float32(factor)
    start = int(np.float32(0.5) * inverse * np.float32(ONE) + np.float32(0.5) * np.float32(ONE))
    before = (start + places * int(inverse * np.float32(ONE))) >> 16  # relative to a leading padding pixel
    first, last = before.clamp(min=1) - 1, (before + 1).clamp(max=size) - 1
    phase = places % factor
    fraction = (ONE // (2 * factor) - ONE // 2 + phase * (ONE // factor)) % ONE
    return first, last, fraction
