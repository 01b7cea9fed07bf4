"""Pools: ttnn.max_pool2d, ttnn.avg_pool2d, their adaptive forms, and ttnn.global_avg_pool2d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, bindable, composite, internal, ttnn
from ttnn_emulator.ops.conv.conv2d import pair, sizes, slicing_of, window_of
from ttnn_emulator.ops.conv.slicing import Slicing
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.ops.pool.compute import binding, computation
from ttnn_emulator.ops.pool.plan import KEEPS_INPUT, Freeing, plan_pool
from ttnn_emulator.ops.pool.sharding import Pool
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

INTERLEAVED = TensorMemoryLayout.INTERLEAVED


@dataclass(frozen=True)
class Asked:
    """The arguments of a pool besides its input and its window."""

    memory_config: MemoryConfig | None = None
    slicing: Slicing | None = None
    scheme: TensorMemoryLayout | None = None
    compute: Any = None
    freeing: Freeing = KEEPS_INPUT


@internal("ttnn.pool2d")
def _pool(x: Spec, pool: Pool, asked: Asked) -> Plan:
    """One pool on the device."""
    pooled = plan_pool(x, pool, current_board().grid, asked.memory_config, asked.slicing, asked.scheme, asked.freeing)
    wide = pool.average and pooled.large
    math = math_config(asked.compute, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=wide)
    outputs = pooled.outputs if pool.indices else pooled.outputs[0]
    compute = bindable(computation(pool, math, pooled.large), binding(pool))
    if pooled.misplaced:
        compute = _refusing_misplaced(compute)
    return Plan(outputs, compute, reads=("x",), l1_bytes=pooled.l1_bytes, stages=pooled.stages, work=pooled)


def _refusing_misplaced(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The chip misplaces channels here, so only an all-zero input has a defined result."""

    def run(x: Any) -> Any:
        if x.any():
            raise ChipFault(
                "the card puts channels in wrong places here: shards of the input are narrower than a tile",
                hint="Give the input in TILE layout, or ask for ROW_MAJOR output.",
            )
        return compute(x)

    return run


def run_pool(x: Tensor, pool: Pool, asked: Asked) -> Any:
    """Check the input's shape; reduce whole images directly, else pool."""
    sizes(batch_size=pool.window.batch, channels=pool.channels)
    x = _as_images(x, pool)
    if pool.average and asked.scheme is None and _is_whole_image(x._spec, pool):
        return _whole_image_average(x, pool, asked)
    return _pool(x, pool, asked)


def _as_images(x: Tensor, pool: Pool) -> Tensor:
    """[H, W, C] and [H, W] as one image [1, H, W, C]."""
    spec, window = x._spec, pool.window
    if spec.rank == 4:
        return x
    require(spec.rank in (2, 3), f"a pool takes tensors of rank 2, 3 or 4, not {spec.rank}")
    shape = spec.shape if spec.rank == 3 else (*spec.shape, 1)
    wanted = (*window.size, pool.channels)
    require(window.batch == 1, f"a tensor of rank {spec.rank} is one image, not {window.batch}")
    require(shape == wanted, f"an input of shape {list(spec.shape)} is no image {list(wanted)}")
    return ttnn.reshape(x, (1, *wanted))


# -- the average of whole images --------------------------------------------------------------------------------------


def _is_whole_image(x: Spec, pool: Pool) -> bool:
    """Whether the library runs a reduction instead of a pool."""
    window = pool.window
    if window.kernel != window.size or any(window.padding) or window.dilation != (1, 1) or not window.batch:
        return False
    padded = x.padded_shape
    if padded[0] * padded[1] * padded[2] % window.batch:
        return False
    in_blocks = x.dtype in BLOCK_FLOAT_DTYPES and x.is_tile
    return not in_blocks or window.size[0] * window.size[1] % TILE == 0


def _whole_image_average(x: Tensor, pool: Pool, asked: Asked) -> Tensor:
    window, spec = pool.window, x._spec
    pixels = window.size[0] * window.size[1]
    wanted = asked.memory_config or spec.memory_config
    config = wanted
    if wanted.is_sharded() or spec.is_sharded:
        config = MemoryConfig(INTERLEAVED, wanted.buffer_type)
    if spec.memory_config != config:
        x = ttnn.to_memory_config(x, config)
    if x._spec.is_tile and pixels % TILE and x._spec.dtype not in BLOCK_FLOAT_DTYPES:
        x = ttnn.to_layout(x, Layout.ROW_MAJOR)
    x = ttnn.reshape(x, (window.batch, 1, pixels, pool.channels))
    divisor = pool.divisor if pool.divisor is not None else pixels
    scaler = 1.0 / divisor if divisor else float("inf")
    result = ttnn.sum(x, 2, True, memory_config=config, compute_kernel_config=asked.compute, scalar=scaler)
    result = ttnn.reshape(result, (1, 1, window.batch, pool.channels))
    if result._spec.layout is not pool.layout:
        result = ttnn.to_layout(result, pool.layout, memory_config=config)
    if not wanted.is_sharded() and result._spec.memory_config != wanted:
        result = ttnn.to_memory_config(result, wanted)
    return result


# -- the public operations --------------------------------------------------------------------------------------------


def _window(
    batch: int,
    size: Pair,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> Window:
    window = window_of(batch, size, kernel, stride, padding, dilation)
    return window.with_ceil_pad() if ceil_mode and min(window.stride) > 0 else window


@composite("ttnn.max_pool2d")
def max_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Any = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    deallocate_input: bool = False,
    reallocate_halo_output: bool = True,
    return_indices: bool = False,
    dtype: DataType = DataType.BFLOAT16,
    output_layout: Layout = Layout.ROW_MAJOR,
    config_tensor_in_dram: bool = False,
) -> Any:
    """The largest value in each window of images [N, H, W, C], flattened to [1, 1, N × H × W, C]."""
    pool = Pool(
        _window(batch_size, (input_h, input_w), kernel_size, stride, padding, dilation, ceil_mode),
        channels,
        average=False,
        dtype=dtype,
        layout=output_layout,
        ceil_mode=ceil_mode,
        indices=return_indices,
        tables_in_dram=config_tensor_in_dram,
    )
    asked = Asked(
        memory_config,
        slicing_of(dram_slice_config),
        applied_shard_scheme,
        freeing=Freeing(deallocate_input, reallocate_halo_output),
    )
    return run_pool(input_tensor, pool, asked)


@composite("ttnn.avg_pool2d")
def avg_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Any = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    compute_kernel_config: Any = None,
    deallocate_input: bool = False,
    reallocate_halo_output: bool = True,
    dtype: DataType = DataType.BFLOAT16,
    output_layout: Layout = Layout.ROW_MAJOR,
    config_tensor_in_dram: bool = False,
) -> Tensor:
    """The mean of each window of images [N, H, W, C], flattened to [1, 1, N × H × W, C]."""
    pool = Pool(
        _window(batch_size, (input_h, input_w), kernel_size, stride, padding, (1, 1), ceil_mode),
        channels,
        average=True,
        dtype=dtype,
        layout=output_layout,
        ceil_mode=ceil_mode,
        with_padding=count_include_pad,
        divisor=divisor_override,
        tables_in_dram=config_tensor_in_dram,
    )
    asked = Asked(
        memory_config,
        slicing_of(dram_slice_config),
        applied_shard_scheme,
        compute_kernel_config,
        Freeing(deallocate_input, reallocate_halo_output),
    )
    return run_pool(input_tensor, pool, asked)


# -- adaptive pools ---------------------------------------------------------------------------------------------------


MOST_WINDOWS = 1 << 20  # along one side; more pixels than any image that fits into the device's memory has


def adaptive_window(batch: int, size: Pair, output: Pair) -> Window:
    """One window for all outputs, with padding at the borders; refused if no single window matches."""
    wanted = [_spans(extent, count) for extent, count in zip(size, output)]
    lengths = [[end - start for start, end in spans] for spans in wanted]
    window = _equal_windows(batch, size, output, lengths)
    for axis, name in enumerate(("height", "width")):
        step, before, reach = window.stride[axis], window.padding[2 * axis], window.kernel[axis]
        starts = [number * step - before for number in range(output[axis])]
        require(
            [(max(start, 0), min(start + reach, size[axis])) for start in starts] == wanted[axis],
            f"windows of {lengths[axis]} along the {name} cannot be made equal by padding the borders",
        )
    return window


def _equal_windows(batch: int, size: Pair, output: Pair, lengths: list[list[int]]) -> Window:
    """The window that the library tries: as long as the second one, borders padded to that."""
    kernel = (-(-size[0] // output[0]), -(-size[1] // output[1]))
    plain = Window(batch, size, kernel, (size[0] // output[0], size[1] // output[1]))
    if all(len(set(along)) == 1 for along in lengths):
        return plain
    reach, step, padding = list(plain.kernel), list(plain.stride), [0, 0, 0, 0]
    for axis, along in enumerate(lengths):
        if len(along) < 3:
            continue
        reach[axis] = along[1]
        if min(along[0], along[-1]) < along[1]:
            step[axis] = along[1] - 1
            padding[2 * axis] = max(along[1] - along[0], 0)
            padding[2 * axis + 1] = max(along[1] - along[-1], 0)
    if min(step) > 0:
        around = (padding[0], padding[1], padding[2], padding[3])
        fitted = Window(batch, size, (reach[0], reach[1]), (step[0], step[1]), around)
        if fitted.output_size == output:
            return fitted
    return plain


def _spans(extent: int, count: int) -> list[Pair]:
    """First and last pixels of the windows that PyTorch's adaptive pools take along one dimension."""
    require(0 < count <= MOST_WINDOWS, f"output_size must be between 1 and {MOST_WINDOWS:,}, it is {count}")
    return [(number * extent // count, -(-(number + 1) * extent // count)) for number in range(count)]


@composite("ttnn.adaptive_avg_pool2d")
def adaptive_avg_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Sequence[int],
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Any = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    compute_kernel_config: Any = None,
    deallocate_input: bool = False,
    reallocate_output: bool = True,
) -> Tensor:
    """Means over `output_size` windows."""
    window = adaptive_window(batch_size, (input_h, input_w), pair(output_size, "output_size"))
    pool = Pool(window, channels, True, DataType.BFLOAT16, Layout.ROW_MAJOR, with_padding=False)
    asked = Asked(
        memory_config,
        slicing_of(dram_slice_config),
        applied_shard_scheme,
        compute_kernel_config,
        Freeing(deallocate_input, reallocate_output),
    )
    return run_pool(input_tensor, pool, asked)


@composite("ttnn.adaptive_max_pool2d")
def adaptive_max_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Sequence[int],
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Any = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    deallocate_input: bool = False,
    reallocate_output: bool = True,
) -> Tensor:
    """Maxima of `output_size` windows."""
    window = adaptive_window(batch_size, (input_h, input_w), pair(output_size, "output_size"))
    pool = Pool(window, channels, False, DataType.BFLOAT16, Layout.ROW_MAJOR)
    asked = Asked(
        memory_config,
        slicing_of(dram_slice_config),
        applied_shard_scheme,
        freeing=Freeing(deallocate_input, reallocate_output),
    )
    return run_pool(input_tensor, pool, asked)


@composite("ttnn.global_avg_pool2d")
def global_avg_pool2d(
    input_tensor: Tensor, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None
) -> Tensor:
    """The mean of each channel over whole images [N, H, W, C] → [N, 1, 1, C]."""
    shape = input_tensor._spec.shape
    if not 2 <= len(shape) <= 4:
        raise ValueError(f"global_avg_pool2d takes tensors of rank 2, 3 or 4, not {len(shape)}")
    batch, height, width, channels = {2: (1, *shape, 1), 3: (1, *shape), 4: shape}[len(shape)]
    x = input_tensor
    if x._spec.is_sharded:
        x = ttnn.to_memory_config(x, MemoryConfig(INTERLEAVED, x._spec.memory_config.buffer_type))
    result = ttnn.avg_pool2d(
        x,
        batch,
        height,
        width,
        channels,
        (height, width),
        (1, 1),
        (0, 0),
        memory_config=memory_config,
        dtype=dtype or DataType.BFLOAT16,
        output_layout=Layout.TILE,
    )
    return ttnn.reshape(result, (batch, 1, 1, channels))
