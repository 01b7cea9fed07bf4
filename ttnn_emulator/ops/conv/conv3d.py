"""ttnn.experimental.conv3d on videos [N, T, H, W, C], and the preparation of its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul
from ttnn_emulator.ops.conv.sliding_window import UINT32
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import L1_ALIGNMENT, Spec, padded_spec
from ttnn_emulator.tensors.tensor import Tensor

Triple = tuple[int, int, int]  # of time, height and width

VIDEO_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)
PADDINGS = {"zeros": "constant", "replicate": "replicate"}  # the library's names and torch's
STEP: Triple = (1, 1, 1)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/conv3d/prepare_conv3d_weights.cpp, default_c_in_block
def channels_at_a_time(taps: int) -> int:
    """The smallest number of input channels for which all taps fill whole tiles, aligned to L1."""
    return math.lcm(L1_ALIGNMENT, TILE_SIZE // math.gcd(taps, TILE_SIZE))


def triple(values: Sequence[int], name: str) -> Triple:
    require(
        len(values) == 3 and all(0 <= value <= UINT32 for value in values),
        f"{name} takes three numbers from 0 on, not {list(values)}",
    )
    return values[0], values[1], values[2]


# -- weights ----------------------------------------------------------------------------------------------------------


@composite("ttnn.experimental.prepare_conv3d_weights")
def prepare_conv3d_weights(
    weight_tensor: Tensor, groups: int = 1, C_in_block: int = 0, alignment: int = TILE_SIZE, device: Any = None
) -> Tensor:
    """[out, in, T, H, W] → [blocks of channels × T × H × W × channels of a block, out]."""
    for name, number in (("groups", groups), ("C_in_block", C_in_block), ("alignment", alignment)):
        require(0 <= number <= UINT32, f"{name} must not be negative, it is {number}")
    require(alignment > 0, "alignment must be greater than 0")
    weight = weight_tensor
    require(weight._spec.rank == 5, f"weights are [out, in, T, H, W], not {list(weight._spec.shape)}")
    if groups > 1:
        weight = _spread_groups(weight, groups)
    if not weight._spec.on_device:
        require(device is not None, "weights on the host need a device")
        weight = ttnn.to_device(weight, device)
    weight = ttnn.permute(weight, (2, 3, 4, 1, 0))
    missing = -weight._spec.shape[3] % alignment
    if missing:
        weight = ttnn.pad(weight, [(0, 0), (0, 0), (0, 0), (0, missing), (0, 0)], 0.0)
    *kernel, channels, out_channels = weight._spec.shape
    block = C_in_block or min(channels_at_a_time(math.prod(kernel)), channels)
    require(channels % block == 0, f"{channels} input channels are not a multiple of C_in_block {block}")
    weight = ttnn.reshape(weight, (*kernel, channels // block, block, out_channels))
    weight = ttnn.permute(weight, (3, 0, 1, 2, 4, 5))
    return ttnn.reshape(weight, (math.prod(kernel) * channels, out_channels))


def _spread_groups(weight: Tensor, groups: int) -> Tensor:
    """Weights expanded to all input channels, zero outside the group, on the host."""
    if weight._spec.on_device:
        weight = ttnn.from_device(weight)
    spec = weight._spec
    require(spec.dtype not in (DataType.UINT8, *BLOCK_FLOAT_DTYPES), f"weights of groups cannot be {spec.dtype}")
    return _spread(weight, groups)


@internal("ttnn.conv3d.spread_groups")
def _spread(weight: Spec, groups: int) -> Plan:
    count, channels, *kernel = weight.shape
    out = Spec.of((count, channels * groups, *kernel), weight.dtype, Layout.ROW_MAJOR, on_device=False)
    size = max(count // groups, 1)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if weight.is_tile and values.any():
            raise ChipFault("the library reads tiles of weights as if they were rows", hint="Give ROW_MAJOR weights.")
        spread = torch.zeros(out.shape, dtype=values.dtype)
        for number in range(count):
            start = min(number // size, groups - 1) * channels
            spread[number, start : start + channels] = values[number]
        return spread

    return Plan(out, compute, reads=("weight",))


# -- the convolution --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One convolution: its window, and its channel blocks."""

    kernel: Triple
    stride: Triple
    padding: Triple
    dilation: Triple
    mode: str
    groups: int
    block: int
    out_block: int
    grid: tuple[int, int]

    def output_size(self, size: Sequence[int]) -> Triple:
        return tuple(  # type: ignore[return-value]
            (extent + 2 * side - apart * (taps - 1) - 1) // step + 1
            for extent, side, apart, taps, step in zip(size, self.padding, self.dilation, self.kernel, self.stride)
        )


@composite("ttnn.experimental.conv3d")
def conv3d(
    input_tensor: Tensor,
    weight_tensor: Tensor,
    dtype: DataType,
    output_channels: int,
    kernel_size: Sequence[int],
    device: Any = None,
    bias_tensor: Tensor | None = None,
    config: Any = None,
    stride: Sequence[int] = STEP,
    padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = STEP,
    padding_mode: str = "zeros",
    groups: int = 1,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    halo_buffer: Tensor | None = None,
    logical_h_mask: int = 0,
    logical_w_mask: int = 0,
    pad_offset_tensor: Tensor | None = None,
    output_pad_h: int = 0,
    output_pad_w: int = 0,
    weight_lo_tensor: Tensor | None = None,
) -> Tensor:
    """Videos [N, T, H, W, C] with prepared weights, or [out, in, T, H, W] on the host and a device to use."""
    if weight_lo_tensor is not None:
        raise NotEmulated("conv3d with split weights is not emulated")
    kernel, apart = triple(kernel_size, "kernel_size"), triple(dilation, "dilation")
    require(output_channels >= 0 and groups > 0, f"{output_channels} channels in {groups} groups are not possible")
    require_on_device(input_tensor._spec)
    device_grid = current_grid(input_tensor)
    taps = math.prod(kernel)
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/conv3d/conv3d.cpp, default_c_in_block
    block, out_block, grid, alignment = channels_at_a_time(taps), TILE_SIZE, device_grid, TILE_SIZE
    if config is not None:
        block, out_block, alignment = config.C_in_block or block, config.C_out_block, config.alignment
        asked = config.compute_with_storage_grid_size
        grid = (asked.x, asked.y) if asked is not None else (1, 1)
        given = triple(config.dilation, "dilation") if config.dilation is not None else STEP
        require(STEP in (given, apart) or given == apart, f"dilations {list(given)} and {list(apart)} differ")
        apart = given if apart == STEP else apart
    weight = weight_tensor
    if weight._spec.rank == 5:
        require(not weight._spec.on_device, "weights that are not prepared must be on the host")
        require(device is not None, "weights that are not prepared need a device")
        weight = prepare_conv3d_weights(
            weight_tensor=weight, groups=groups, C_in_block=block, alignment=alignment, device=device
        )
    require(weight._spec.rank == 2, f"prepared weights must have rank 2, not {weight._spec.rank}")
    if not weight._spec.is_tile:
        weight = ttnn.to_layout(weight, Layout.TILE)
    require(grid[0] <= device_grid[0] and grid[1] <= device_grid[1], f"the grid {grid} exceeds {device_grid} cores")
    problem = Problem(
        kernel,
        triple(stride, "stride"),
        triple(padding, "padding"),
        apart,
        padding_mode,
        groups,
        block,
        out_block,
        grid,
    )
    out_memory = memory_config if memory_config is not None else DRAM_MEMORY_CONFIG
    around, logical = (output_pad_h, output_pad_w), (logical_h_mask, logical_w_mask)
    return _convolved(
        input_tensor,
        weight,
        bias_tensor,
        problem,
        output_channels,
        dtype,
        out_memory,
        compute_kernel_config,
        around,
        logical,
        pad_offset_tensor,
        halo_buffer,
    )


def current_grid(x: Tensor) -> tuple[int, int]:
    """Columns and rows of cores of a tensor's board."""
    return x._device.board.grid if x._device is not None else current_board().grid


@internal("ttnn.conv3d.device")
def _convolved(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    problem: Problem,
    out_channels: int,
    dtype: DataType,
    out_memory: MemoryConfig,
    compute_config: Any,
    around: tuple[int, int],
    logical: tuple[int, int],
    offset: Spec | None = None,
    halo: Spec | None = None,
) -> Plan:
    _require_problem(x, weight, bias, problem, out_channels)
    if halo is not None:
        _require_halo(x, halo, problem)
        raise NotEmulated("conv3d with a halo buffer is not emulated")
    if offset is not None:
        require(offset.dtype is DataType.UINT32, f"the pad offset must be UINT32, not {offset.dtype}")
    masks = offset is not None and any(logical)
    if masks and problem.mode != "zeros":
        raise NotEmulated(f"conv3d with a mask of padding and padding_mode {problem.mode!r} is not emulated")
    batch, *size, _ = x.shape
    frames, height, width = problem.output_size(size)
    shape = (batch, frames, height + 2 * around[0], width + 2 * around[1], out_channels)
    padded = (*shape[:-1], round_up(out_channels, TILE_SIZE))
    out = padded_spec(shape, padded, dtype, Layout.ROW_MAJOR, out_memory)
    math_mode = math_config(compute_config, fidelity=MathFidelity.HiFi2)

    def compute(video: torch.Tensor, weights: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        if masks:
            video = _without_padding(video, others[-1], logical)
        made = _values(video, weights, others[0] if bias is not None else None, problem, math_mode, x.dtype, dtype)
        made = made.reshape(batch, frames, height, width, out_channels)
        return pad(made, (0, 0, around[1], around[1], around[0], around[0]))

    optional = [name for name, given in (("bias", bias is not None), ("offset", masks)) if given]
    return Plan(out, compute, reads=("x", "weight", *optional))


def _without_padding(video: torch.Tensor, offset: torch.Tensor, logical: tuple[int, int]) -> torch.Tensor:
    """Zero everything beyond the logical height and width, given this part's offset in the whole; 0 means no limit."""
    starts = offset.reshape(-1)[:2].tolist()
    masked = video.clone()
    for axis, (start, end) in enumerate(zip(starts, logical), 2):
        first = max(end - int(start), 0)
        if end and first < video.shape[axis]:
            masked.narrow(axis, first, video.shape[axis] - first).zero_()
    return masked


def _require_halo(x: Spec, halo: Spec, problem: Problem) -> None:
    require(problem.mode == "zeros", f"a halo buffer needs padding_mode 'zeros', not {problem.mode!r}")
    require(
        max(problem.kernel) > 1 and problem.dilation == STEP,
        f"a halo buffer needs a kernel with spatial reuse and no dilation, not {problem.kernel} × {problem.dilation}",
    )
    require(halo.dtype is x.dtype, f"the halo buffer is {halo.dtype}, the input {x.dtype}")
    require(not halo.is_tile, "the halo buffer must be in ROW_MAJOR layout")
    (_, high, wide), (height, width) = problem.padding, x.shape[2:4]
    needed = 2 * x.shape[0] * x.shape[1] * (high * width + wide * (height + 2 * high))
    pages = math.prod(halo.shape[:-1])
    require(pages >= needed, f"the halo buffer has {pages} pages, its four sections need {needed}")


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/conv3d/device/conv3d_device_operation.cpp,
# validate_on_program_cache_miss
def _require_problem(x: Spec, weight: Spec, bias: Spec | None, problem: Problem, out_channels: int) -> None:
    require(x.rank == 5, f"the input must be [N, T, H, W, C], not {list(x.shape)}")
    require(not x.is_tile, "the input must be in ROW_MAJOR layout")
    require(x.dtype in VIDEO_DTYPES, f"the input must be bfloat16 or float32, not {x.dtype}")
    require_on_device(weight, "the weights")
    require(weight.dtype is x.dtype, f"input and weights must have the same dtype, not {x.dtype} and {weight.dtype}")
    if bias is not None:
        require_on_device(bias, "the bias")
        require_tile(bias, "the bias")
        require(bias.dtype is x.dtype, f"input and bias must have the same dtype, not {x.dtype} and {bias.dtype}")
        require(bias.rank == 2, f"the bias must be of rank 2, not {bias.rank}")
        require(bias.shape[1] == out_channels, f"a bias of {bias.shape[1]} does not suit {out_channels} channels")
    channels, taps = x.shape[-1], math.prod(problem.kernel)
    for count in (channels, out_channels):
        require(count % problem.groups == 0, f"{count} channels do not divide into {problem.groups} groups")
    require(problem.mode in PADDINGS, f"padding_mode must be one of {list(PADDINGS)}, not {problem.mode!r}")
    require(min(problem.dilation) > 0, f"dilation must be greater than 0, it is {list(problem.dilation)}")
    require(min(problem.stride) > 0, f"stride must be greater than 0, it is {list(problem.stride)}")
    require(
        all(extent > 0 for extent in problem.output_size(x.shape[1:4])),
        f"a kernel of {list(problem.kernel)} exceeds the padded input {list(x.shape[1:4])}",
    )
    if problem.out_block:
        wide = round_up(out_channels, TILE_SIZE)
        require(
            wide % problem.out_block == 0 and problem.out_block % TILE_SIZE == 0,
            f"C_out_block {problem.out_block} must be whole tiles and divide {wide} channels",
        )
    require(weight.shape[0] == taps * channels, f"{weight.shape[0]} rows of weights, needed are {taps * channels}")
    require(weight.shape[1] == out_channels, f"weights for {weight.shape[1]} channels, requested are {out_channels}")
    require(channels % problem.block == 0, f"{channels} channels are not a multiple of C_in_block {problem.block}")
    require(problem.block % L1_ALIGNMENT == 0, f"C_in_block {problem.block} is not a multiple of {L1_ALIGNMENT}")
    blocks, cores = channels // problem.block, problem.grid[0] * problem.grid[1]
    require(blocks <= cores, f"{blocks} blocks of channels do not fit on {cores} cores")


def _values(
    video: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor | None,
    problem: Problem,
    config: MathConfig,
    dtype: DataType,
    out_dtype: DataType,
) -> torch.Tensor:
    """Patches times weights per channel block; one core reduces the partial sums and adds the bias."""
    core = Core.of(config, video.numel())
    rows = math.prod(problem.kernel) * problem.block
    blocks = video.shape[-1] // problem.block
    between = DataType.FLOAT32 if config.fp32_acc and blocks > 1 else dtype
    total: torch.Tensor | None = None
    for number, channels in enumerate(video.split(problem.block, -1)):
        patches = core.source(_patches(channels, problem), dtype)
        part = weights[number * rows : (number + 1) * rows]
        made = core.through(matmul(patches, core.source(part, dtype), config), between)
        total = made if total is None else core.through(core.add(total, made), between)
    assert total is not None
    if bias is not None:
        total = core.through(core.add(total, core.source(bias[:1], dtype)), between)
    return core.packed(total, out_dtype)


def _patches(video: torch.Tensor, problem: Problem) -> torch.Tensor:
    """[output pixels, taps × channels]"""
    sides = [side for side in reversed(problem.padding) for _ in (0, 1)]
    planes = video.permute(0, 4, 1, 2, 3)
    if any(sides):
        planes = pad(planes, sides, mode=PADDINGS[problem.mode])
    source = planes.permute(0, 2, 3, 4, 1).contiguous()
    batch, *size, channels = source.shape
    inner = Problem(problem.kernel, problem.stride, (0, 0, 0), problem.dilation, "zeros", 1, 1, 1, (1, 1))
    outer, *steps, by_channel = source.stride()
    view = source.as_strided(
        (batch, *inner.output_size(size), *problem.kernel, channels),
        (
            outer,
            *(step * stride for step, stride in zip(steps, problem.stride)),
            *(step * apart for step, apart in zip(steps, problem.dilation)),
            by_channel,
        ),
    )
    return view.reshape(-1, math.prod(problem.kernel) * channels)
