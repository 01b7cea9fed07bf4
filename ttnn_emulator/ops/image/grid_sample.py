"""Resampled images: at the points of a grid, or rotated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import bits_of, from_bits, round_bf16_nearest_even
from ttnn_emulator.numerics.programs.products.interpolation import ONE, corner_weights, interpolate
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import math_config, memory_of, require_on_device
from ttnn_emulator.ops.support.derived_shards import HEIGHT
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

IMAGE_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)
INTERLEAVED = TensorMemoryLayout.INTERLEAVED
CORNERS = 4  # pixels around a point
COORDINATES = 2  # coordinates per grid point: x and y
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/grid_sample/device/grid_sample_device_operation.hpp,
# PRECOMPUTED_GRID_ELEMENTS_PER_POINT
PREPARED = {"nearest": 2, "bilinear": 6}  # values per precomputed point: row and column, and four weights
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/rotate/device/rotate_bilinear_program_factory.cpp,
# MAX_TILES_PER_REDUCTION
WIDEST_ROTATED = 8 * TILE_SIZE  # channels per reduction

# -- grid_sample ------------------------------------------------------------------------------------------------------


@operation("ttnn.grid_sample")
def grid_sample(
    input_tensor: Spec,
    grid: Spec,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    use_precomputed_grid: bool = False,
    batch_output_channels: bool = False,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: object = None,
) -> Plan:
    """[N, H, W, C] at the points [N, h, w, 2 × K] of a grid; zero outside."""
    spec, config = input_tensor, memory_of(memory_config, grid)
    require_on_device(spec)
    require_on_device(grid, "the grid")
    require(spec.rank == 4 and grid.rank == 4, f"input and grid must be of rank 4, not {spec.rank} and {grid.rank}")
    per_point = PREPARED.get(mode, PREPARED["bilinear"]) if use_precomputed_grid else COORDINATES
    numbers = grid.shape[-1]
    require(numbers > 0 and numbers % per_point == 0, f"{numbers} numbers are no points of {per_point} each")
    require(spec.shape[0] == grid.shape[0], f"the batches of input and grid differ: {spec.shape[0]}, {grid.shape[0]}")
    sets = numbers // per_point
    require(not batch_output_channels or sets > 1, "batch_output_channels needs several points a row of the grid")
    require(spec.dtype in IMAGE_DTYPES, f"the input must be bfloat16 or float32, not {spec.dtype}")
    allowed = (DataType.BFLOAT16,) if use_precomputed_grid else IMAGE_DTYPES
    require(grid.dtype in allowed, f"the grid cannot be {grid.dtype}")
    require(not spec.is_tile and not grid.is_tile, "input and grid must be in ROW_MAJOR layout")
    require(padding_mode == "zeros", f"padding_mode must be 'zeros', not {padding_mode!r}")
    require(mode != "nearest" or use_precomputed_grid, "mode 'nearest' needs a precomputed grid")
    for each in (spec.memory_config, grid.memory_config, config):
        require(each.memory_layout in (INTERLEAVED, HEIGHT), f"{each.memory_layout.name} tensors are not supported")
    require(spec.padded_shape[-1] % TILE_SIZE == 0, f"{spec.padded_shape[-1]} channels are not whole tiles")
    out_memory = _grid_memory(spec, grid, config, mode, sets, batch_output_channels)
    if mode != "bilinear" and not batch_output_channels and out_memory.shard_spec is not None:
        rows = out_memory.shard_spec.shape[0]
        require(rows % (numbers // 2) == 0, f"shards of {rows} rows do not hold whole sets of {numbers // 2} points")
    batch, height, width, channels = spec.shape
    _, tall, wide, _ = grid.shape
    shape = (batch, tall, wide, channels * sets) if batch_output_channels else (batch, tall, wide * sets, channels)
    out = Spec.of(shape, spec.dtype, Layout.ROW_MAJOR, out_memory)
    settings = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=False)
    size = (height, width)

    def compute(image: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        flat = points.reshape(batch, -1, per_point)
        if mode == "nearest":
            first = _as_int16(flat)
            result = _pixels(image, first[..., 0], first[..., 1], 0.0)
            return result.reshape(out.shape)
        if use_precomputed_grid:
            corner, weights = _as_int16(flat[..., :2]), flat[..., 2:]
        else:
            corner, weights = _corners(flat, size, align_corners)
        return _sample(image, corner, weights, 0.0, spec.dtype, settings).reshape(out.shape)

    return Plan(out, compute)


def _grid_memory(
    spec: Spec, grid: Spec, config: MemoryConfig, mode: str, sets: int, batch_output_channels: bool
) -> MemoryConfig:
    sharded_grid = grid.memory_config.is_sharded()
    if mode == "bilinear" and not sharded_grid and config.memory_layout is INTERLEAVED:
        return config
    if config.shard_spec is not None and not sharded_grid:
        return config
    if grid.shard_spec is not None:
        cores, orientation, points = grid.shard_spec.grid, grid.shard_spec.orientation, grid.shard_spec.shape[0]
    else:
        board = current_board()
        total = grid.padded_shape[1] * grid.padded_shape[2]
        count = min(board.cores, total)
        cores, orientation = num_cores_to_corerangeset(count, CoreCoord(*board.grid), False), ShardOrientation.ROW_MAJOR
        points = div_up(total, count)
    channels = spec.padded_shape[-1]
    shape = (points, channels * sets) if batch_output_channels else (points * sets, channels)
    return MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(cores, shape, orientation))


def _as_int16(values: torch.Tensor) -> torch.Tensor:
    """The bits of bfloat16 values as integers."""
    return (bits_of(values) >> 16).long()


def _corners(points: torch.Tensor, size: tuple[int, int], align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The pixel above and left of every point, and the weights of the four around it, zero outside the image."""
    numbers = points.numpy().astype(np.float32)
    places = []
    for axis, extent in ((1, size[0]), (0, size[1])):
        half = np.float32(extent - 1) * np.float32(0.5) if align_corners else np.float32(extent) * np.float32(0.5)
        offset = half if align_corners else half - np.float32(0.5)
        places.append(torch.from_numpy(numbers[..., axis] * half + offset))
    firsts, weights = _weights(places, size)
    return firsts, from_bits(bits_of(weights) & -0x10000)


def _pixels(image: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, fill: float) -> torch.Tensor:
    """Pixels [N, points, C] of [N, H, W, C]; `fill` where there is none."""
    batch, height, width, _ = image.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    numbers = torch.arange(batch).reshape(-1, 1)
    found = image[numbers, rows.clamp(0, height - 1), columns.clamp(0, width - 1)]
    return torch.where(inside.unsqueeze(-1), found, fill)


def _sample(
    image: torch.Tensor,
    corner: torch.Tensor,
    weights: torch.Tensor,
    fill: float,
    dtype: DataType,
    config: MathConfig,
) -> torch.Tensor:
    rows, columns = corner[..., 0], corner[..., 1]
    around = [_pixels(image, rows + down, columns + across, fill) for down in (0, 1) for across in (0, 1)]
    channels = image.shape[-1]
    pixels = torch.stack([pixel.reshape(-1, channels) for pixel in around], dim=1)
    return interpolate(pixels, weights.reshape(-1, 4), dtype, config)


@composite("ttnn.prepare_grid_sample_grid")
def prepare_grid_sample_grid(
    grid: Tensor,
    input_shape: Sequence[int],
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    output_dtype: DataType | None = None,
) -> Tensor:
    """Precompute pixels and weights of a grid on the host, for `use_precomputed_grid`."""
    require(padding_mode == "zeros", f"padding_mode must be 'zeros', not {padding_mode!r}")
    require(len(input_shape) == 4, f"the input's shape is [N, H, W, C], not {list(input_shape)}")
    require(output_dtype in (None, DataType.BFLOAT16), f"a prepared grid is bfloat16, not {output_dtype}")
    return _prepare_grid(grid, (input_shape[1], input_shape[2]), mode, align_corners)


@internal("ttnn.prepare_grid_sample_grid.on_host")
def _prepare_grid(grid: Spec, size: tuple[int, int], mode: str, align_corners: bool) -> Plan:
    require(not grid.on_device, "the grid must be on the host")
    require(not grid.is_tile, "the grid must be in ROW_MAJOR layout")
    require(grid.rank == 4 and grid.shape[-1] == COORDINATES, f"a grid is [N, H, W, 2], not {list(grid.shape)}")
    require(grid.dtype is DataType.FLOAT32, f"the grid must be float32, not {grid.dtype}")
    width = COORDINATES if mode == "nearest" else COORDINATES + CORNERS
    out = grid.with_(shape=(*grid.shape[:-1], width), dtype=DataType.BFLOAT16)
    return Plan(out, lambda points: _prepared(points, size, mode, align_corners))


def _prepared(points: torch.Tensor, size: tuple[int, int], mode: str, align_corners: bool) -> torch.Tensor:
    if mode == "nearest":
        places = _places(points, size, align_corners)
        down, across = (torch.floor(position + 0.5).long() for position in places)
        if align_corners:  # rounds half away from zero here, half up otherwise
            down, across = ((position.sign() * torch.floor(position.abs() + 0.5)).long() for position in places)
        inside = (down >= 0) & (down < size[0]) & (across >= 0) & (across < size[1])
        return _int16_bits(torch.where(inside[..., None], torch.stack([down, across], -1), -1))
    places = _places(points, size, align_corners)
    firsts, weights = _weights(places, size)
    return torch.cat([_int16_bits(firsts), round_bf16_nearest_even(weights)], -1)


def _places(points: torch.Tensor, size: tuple[int, int], align_corners: bool) -> list[torch.Tensor]:
    """Row and column of every point, in pixels."""
    places = []
    for axis, extent in ((1, size[0]), (0, size[1])):
        scale, offset = ((extent - 1) * 0.5, 0.0) if align_corners else (extent * 0.5, -0.5)
        places.append((points[..., axis] + 1.0) * scale + offset)
    return places


def _weights(places: list[torch.Tensor], size: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The pixel above and left of every point, and the weights of the four around it, zero outside the image."""
    firsts = [torch.floor(position) for position in places]
    down, across = (position - first for position, first in zip(places, firsts))
    terms = [(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across]
    weights = []
    for number, term in enumerate(terms):
        row, column = firsts[0] + number // 2, firsts[1] + number % 2
        inside = (row >= 0) & (row < size[0]) & (column >= 0) & (column < size[1])
        weights.append(torch.where(inside, term, 0.0))
    return torch.stack(firsts, dim=-1).long(), torch.stack(weights, dim=-1)


def _int16_bits(values: torch.Tensor) -> torch.Tensor:
    """16-bit integers reinterpreted as bfloat16 values."""
    return from_bits((values.clamp(-(1 << 15), (1 << 15) - 1).to(torch.int32) << 16).contiguous())


# -- rotate -----------------------------------------------------------------------------------------------------------


@operation("ttnn.rotate")
def rotate(
    input_tensor: Spec,
    angle: float,
    *,
    center: tuple[float, float] | None = None,
    fill: float = 0.0,
    expand: bool = False,
    interpolation_mode: str = "nearest",
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """[N, H, W, C] rotated by `angle` degrees around its middle or `center`; `fill` outside the image."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    require(spec.rank == 4, f"the input must be of rank 4, not {spec.rank}")
    require(not spec.is_tile, "the input must be in ROW_MAJOR layout")
    require(spec.dtype in IMAGE_DTYPES, f"the input must be bfloat16 or float32, not {spec.dtype}")
    require_on_device(spec)
    require(not expand, "expand is not supported")
    require(
        interpolation_mode in PREPARED, f"interpolation_mode is 'nearest' or 'bilinear', not {interpolation_mode!r}"
    )
    if spec.is_sharded:
        require(spec.memory_config.memory_layout is HEIGHT, "a sharded input must be height-sharded")
    bilinear = interpolation_mode == "bilinear"
    channels = spec.padded_shape[-1]
    require(
        not bilinear or (channels <= WIDEST_ROTATED and channels % TILE_SIZE == 0),
        f"whole tiles of at most {WIDEST_ROTATED} channels are rotated bilinearly, not {channels}",
    )
    out = spec.with_(memory_config=config)
    _, height, width, _ = spec.shape
    rows, columns = _rotated(height, width, angle, center, bilinear)
    background = _stored_fill(fill, spec.dtype)
    settings = MathConfig(MathFidelity.HiFi4)

    def compute(image: torch.Tensor) -> torch.Tensor:
        batch = image.shape[0]
        down, across = rows.expand(batch, -1), columns.expand(batch, -1)
        if not bilinear:
            half = ONE // 2
            picked = _pixels(image, (down + half) >> 16, (across + half) >> 16, background)
            return picked.reshape(image.shape)
        corner = torch.stack([down >> 16, across >> 16], dim=-1)
        weights = corner_weights(down % ONE, across % ONE)
        return _sample(image, corner, weights, background, spec.dtype, settings).reshape(image.shape)

    return Plan(out, compute)


def _rotated(
    height: int, width: int, angle: float, center: tuple[float, float] | None, bilinear: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The input position of every output pixel, in the kernel's fixed point."""
    radians = np.float32(angle * math.pi / 180.0)
    cosine, sine = (int(np.float32(part) * ONE) for part in (np.cos(radians), np.sin(radians)))
    middle = center if center is not None else (width / 2, height / 2)
    x0, y0 = (int((np.float32(each) - np.float32(0.5)) * ONE) for each in middle)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    x, y = (x.reshape(-1) << 16) - x0, (y.reshape(-1) << 16) - y0
    if bilinear:
        columns = (x * cosine >> 16) - (y * sine >> 16) + x0
        rows = (x * sine >> 16) + (y * cosine >> 16) + y0
    else:
        columns = ((x * cosine - y * sine) >> 16) + x0
        rows = ((x * sine + y * cosine) >> 16) + y0
    return rows, columns


def _stored_fill(fill: float, dtype: DataType) -> float:
    value = torch.tensor(fill, dtype=torch.float32)
    return (value if dtype is DataType.FLOAT32 else round_bf16_nearest_even(value)).item()
