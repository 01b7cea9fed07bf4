"""Folding: patches of pixels moved into the channels, the first step of convolutions with large strides."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.ops.support.derived_shards import HEIGHT, cuts_width, fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

KEPT_DTYPES = (DataType.FLOAT32, DataType.UINT16)  # all others are labelled bfloat16
CODE_RESERVE = 160 * 1024  # bytes of L1 that the library reserves for code and stack in planning the tile kernel


def _output_dtype(dtype: DataType) -> DataType:
    return dtype if dtype in KEPT_DTYPES else DataType.BFLOAT16


@composite("ttnn.fold")
def fold(
    input: Tensor,
    stride_h: int,
    stride_w: int,
    use_transpose_as_fold: bool = False,
    output_shape: Sequence[int] | None = None,
    padding: Sequence[int] = (0, 0),
    grid_size: CoreRangeSet | None = None,
    override_memory_config: MemoryConfig | None = None,
    collapse_output: bool = False,
) -> Tensor:
    """[N, H, W, C] → [N, H ÷ stride_h, W ÷ stride_w, C × stride_h × stride_w]."""
    spec = input._spec
    require(len(padding) in (2, 4, 6), f"padding has 2, 4 or 6 numbers, not {len(padding)}")
    top, bottom, left, right, front, back = {
        2: lambda: (padding[0], padding[0], padding[1], padding[1], 0, 0),
        4: lambda: (*padding, 0, 0),
        6: lambda: tuple(padding),
    }[len(padding)]()
    require(spec.rank == 4, f"only tensors of rank 4 are folded, not of rank {spec.rank}")
    if use_transpose_as_fold:
        require(not collapse_output, "collapse_output and use_transpose_as_fold exclude each other")
        require(not spec.is_sharded or spec.memory_config.memory_layout is HEIGHT, "only height shards are folded")
        if spec.is_sharded:
            grid = grid_size or CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(1, 1))])
            return _fold_sharded_by_transposing(
                input, output_shape, (stride_h, stride_w), (back, top, left), grid, override_memory_config
            )
        return _fold_by_transposing(input, output_shape, (stride_h, stride_w), (back, top, left))
    in_place = spec.memory_config.is_l1 and spec.shard_spec is not None and spec.memory_config.memory_layout is HEIGHT
    pads_image, pads_channels = any((top, bottom, left, right)), any((front, back))
    tensor = input
    if in_place:
        if pads_image:
            tensor = _pad_image(tensor, [(0, 0), (top, bottom), (left, right), (0, 0)])
        if pads_channels:
            tensor = ttnn.pad(tensor, [(0, 0), (0, 0), (0, 0), (front, back)], 0.0)
        if tensor._spec.is_tile:
            tensor = ttnn.to_layout(tensor, Layout.ROW_MAJOR)
        tensor = _resharded(tensor, stride_h)
    else:
        if not spec.is_tile and spec.shard_spec is not None and cuts_width(spec.memory_config):
            assert tensor._device is not None
            board = tensor._device.board
            unit = board.dram_alignment if spec.memory_config.is_dram else board.l1_alignment
            if spec.shard_spec.shape[1] * ROW_MAJOR_BYTES[spec.dtype] % unit:
                tensor = ttnn.to_memory_config(tensor, L1_MEMORY_CONFIG)
        if pads_image or pads_channels:
            tensor = ttnn.pad(tensor, [(0, 0), (top, bottom), (left, right), (front, back)], 0.0)
        if tensor._spec.is_tile and not _folds_tiles(tensor, stride_h, stride_w):
            tensor = ttnn.to_layout(tensor, Layout.ROW_MAJOR)
    result = fold_pixels(tensor, stride_h, stride_w, collapse_output)
    if override_memory_config is None:
        return result
    config = _override(input, tensor, result, override_memory_config, stride_h * stride_w)
    return result if result._spec.memory_config == config else ttnn.to_memory_config(result, config)


def _folds_tiles(tensor: Tensor, stride_h: int, stride_w: int) -> bool:
    """Whether the kernel reads tiles directly: aligned channels, and enough L1 for a row of output pixels."""
    spec = tensor._spec
    if not stride_h or not stride_w or spec.is_sharded or tensor._device is None:
        return False
    out = _output_dtype(spec.dtype)
    size = ROW_MAJOR_BYTES[out]
    if spec.shape[-1] * size % 16:
        return False
    row = spec.shape[2] // stride_w * stride_h * stride_w * spec.shape[-1] * size
    tiles = div_up(spec.padded_shape[-1], TILE_SIZE)
    buffers = (tile_bytes(spec.tile, spec.dtype) + tile_bytes(spec.tile, out)) * tiles * 2
    return row + buffers + CODE_RESERVE < tensor._device.board.l1_max_unreserved


def _pad_image(tensor: Tensor, padding: Sequence[tuple[int, int]]) -> Tensor:
    """Zero padding of a height-sharded image, on the same cores."""
    shards = tensor._spec.shard_spec
    assert shards is not None
    padded = ttnn.pad(ttnn.to_memory_config(tensor, DRAM_MEMORY_CONFIG), padding, 0.0)
    shape = padded._spec.shape
    shard = (div_up(math.prod(shape[:-1]), shards.num_cores()), shape[-1])
    config = tensor._spec.memory_config.with_shard_spec(ShardSpec(shards.grid, shard, shards.orientation))
    return ttnn.to_memory_config(padded, config)


def _resharded(tensor: Tensor, stride_h: int) -> Tensor:
    """Shards of whole rows of patches."""
    spec, shards = tensor._spec, tensor._spec.shard_spec
    assert shards is not None and tensor._device is not None
    rows = stride_h * spec.shape[2]
    require(rows > 0, f"stride_h must be positive, not {stride_h}")
    if shards.shape[0] % rows == 0:
        return tensor
    height = math.prod(spec.shape[:3])
    grid = tensor._device.board.grid
    cores = grid[0] * grid[1]
    while cores > 1 and height // rows % cores:
        cores -= 1
    shard = (round_up(height // cores, rows), shards.shape[1])
    used = num_cores_to_corerangeset(cores, CoreCoord(*grid), True)
    return ttnn.reshard(tensor, spec.memory_config.with_shard_spec(ShardSpec(used, shard, shards.orientation)))


def _override(given: Tensor, folded: Tensor, result: Tensor, config: MemoryConfig, patch: int) -> MemoryConfig:
    """A sharded override without a shard spec gets the input's shards, scaled, or new ones."""
    if not lacks_shards(config):
        return config
    for tensor in (folded, given):
        shards = tensor._spec.shard_spec
        if shards is not None and tensor._spec.memory_config.memory_layout is config.memory_layout:
            shape = (shards.shape[0] // patch, shards.shape[1] * patch)
            return config.with_shard_spec(ShardSpec(shards.grid, shape, shards.orientation))
    assert result._device is not None
    shards = given._spec.shard_spec
    orientation = shards.orientation if shards is not None else None
    return config.with_shard_spec(
        fresh_shards(result._device.board.grid, result._spec.shape, config.memory_layout, orientation, tiles=False)
    )


@internal("ttnn.prim.fold")
def fold_pixels(input_tensor: Spec, stride_h: int, stride_w: int, collapse: bool) -> Plan:
    spec = input_tensor
    require(stride_h > 0 and stride_w > 0, f"strides must be positive, not {stride_h} and {stride_w}")
    require(spec.on_device, "the input tensor must be on a device")
    batch, height, width, channels = spec.shape
    require(
        height % stride_h == 0 and width % stride_w == 0,
        f"an image of {height} x {width} does not divide into patches of {stride_h} x {stride_w}",
    )
    patch, shards, config = stride_h * stride_w, spec.shard_spec, spec.memory_config
    if shards is not None:
        rows = width * stride_h if config.is_l1 and config.memory_layout is HEIGHT and not spec.is_tile else patch
        require(shards.shape[0] % rows == 0, f"shards of {shards.shape[0]} rows do not divide into {rows}")
        shape = (shards.shape[0] // patch, shards.shape[1] * patch)
        config = config.with_shard_spec(ShardSpec(shards.grid, shape, shards.orientation))
    elif spec.is_sharded:
        pixels = (batch * height * width // patch, channels * patch)
        config = config.with_shard_spec(fresh_shards(current_board().grid, pixels, config.memory_layout, tiles=False))
    sizes = (batch, height // stride_h, width // stride_w, channels * patch)
    flat = (1, 1, math.prod(sizes[:3]), sizes[3])
    out = Spec.of(flat if collapse else sizes, _output_dtype(spec.dtype), Layout.ROW_MAJOR, config)
    mislabelled = ROW_MAJOR_BYTES[spec.dtype] != ROW_MAJOR_BYTES[out.dtype] and not spec.is_tile

    def compute(values: torch.Tensor) -> torch.Tensor:
        if mislabelled and values.any():
            raise ChipFault(f"the card labels the folded {spec.dtype} as bfloat16 without converting it")
        grid = values.to(CARRIER[out.dtype]).reshape(
            batch, height // stride_h, stride_h, width // stride_w, stride_w, channels
        )
        return grid.permute(0, 1, 3, 2, 4, 5).reshape(out.shape).contiguous()

    return Plan(out, compute)


# -- by transposing ---------------------------------------------------------------------------------------------------


def _fold_by_transposing(
    tensor: Tensor, output_shape: Sequence[int] | None, strides: tuple[int, int], padding: tuple[int, int, int]
) -> Tensor:
    """[N, C, H, W] → [N, H ÷ stride_h, W ÷ stride_w, C × …] by transposes and reshapes, in L1."""
    stride_h, stride_w = strides
    n, c, h, w = tensor._spec.shape
    more_c, more_h, more_w = padding
    whole = [n, c + more_c, round_up(h + more_h, TILE_SIZE), round_up(w + more_w, TILE_SIZE)]
    x = ttnn.pad(tensor, whole, [0, 0, 0, 0], 0.0)
    x = ttnn.permute(x, [0, 3, 1, 2], memory_config=L1_MEMORY_CONFIG)
    n, w, c, h = x._spec.shape
    x = ttnn.reshape_on_device(x, n, w // stride_w, c * stride_w, h, memory_config=L1_MEMORY_CONFIG)
    x = ttnn.transpose(x, 2, 3, memory_config=L1_MEMORY_CONFIG)
    n, w, h, c = x._spec.shape
    x = ttnn.reshape_on_device(x, n, w, h // stride_h, c * stride_h, memory_config=L1_MEMORY_CONFIG)
    x = ttnn.transpose(x, 1, 2, memory_config=L1_MEMORY_CONFIG)
    if output_shape is None:
        return x
    return ttnn.slice(x, [0] * 4, list(output_shape), [1] * 4, memory_config=L1_MEMORY_CONFIG)


def _fold_sharded_by_transposing(
    tensor: Tensor,
    output_shape: Sequence[int] | None,
    strides: tuple[int, int],
    padding: tuple[int, int, int],
    grid: CoreRangeSet,
    override: MemoryConfig | None,
) -> Tensor:
    """The same for height shards; the result is sharded over `grid`."""
    stride_h, stride_w = strides
    shards = tensor._spec.shard_spec
    require(shards is not None, "the input tensor has no shard spec")
    assert shards is not None

    def by_height(shape: Sequence[int]) -> MemoryConfig:
        rows = div_up(math.prod(shape[:3]), grid.num_cores())
        return tensor._spec.memory_config.with_shard_spec(ShardSpec(grid, (rows, shape[3]), shards.orientation))

    n, c, h, w = tensor._spec.shape
    c, tall, wide = c + padding[0], h + 2 * padding[1], w + 2 * padding[2]
    first = [n, c, round_up(tall, TILE_SIZE), w]
    second = [n, c, round_up(tall, TILE_SIZE), round_up(wide, TILE_SIZE)]
    x = ttnn.pad(tensor, first, [0, 0, padding[1], 0], 0.0, use_multicore=False, memory_config=by_height(first))
    x = ttnn.transpose(x, 2, 3)
    x = ttnn.pad(x, second, [0, 0, padding[2], 0], 0.0, use_multicore=False, memory_config=by_height(second))
    x = ttnn.transpose(x, 1, 2)
    n, w, c, h = x._spec.shape
    x = ttnn.transpose(ttnn.experimental.view(x, [n, w // stride_w, c * stride_w, h]), 2, 3)
    n, w, h, c = x._spec.shape
    x = ttnn.transpose(ttnn.experimental.view(x, [n, w, h // stride_h, c * stride_h]), 1, 2)
    shape = list(output_shape) if output_shape is not None else [n, tall // stride_h, wide // stride_w, c * stride_h]
    return ttnn.slice(x, [0] * 4, shape, [1] * 4, memory_config=override or by_height(shape))
