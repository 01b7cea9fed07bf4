"""softmax and its fused and in-place variants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import Arch, DataType, Layout, MathFidelity, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.programs.normalization.softmax import softmax_general, softmax_rows
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.normalization.checks import is_sharded_program, require_shards_fill_grid
from ttnn_emulator.ops.support.common_checks import math_config, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

TILE = 32
TAKEN = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/softmax/device/softmax_device_operation.cpp, L1_512KB
SMALL_KERNEL_LIMIT = 512 * 1024  # bytes of L1 up to which the general kernels hold a whole row or column of tiles
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/softmax/device/softmax_program_factory_attention_optimized.cpp,  # noqa: E501
# large_kernel_cb_size and single_tile_cb_count
LARGE_KERNEL_TILES = 80
ESTIMATED_SINGLES = 5
PADDING_MASK = 2048  # bytes of the tile that masks padding


# -- checks -----------------------------------------------------------------------------------------------------------


def _require_taken(spec: Spec, *, tiled: bool) -> None:
    require_on_device(spec)
    require(spec.is_tile or tiled, f"the input must be in TILE layout, it is in {spec.layout}")
    require(spec.dtype in TAKEN, f"softmax takes FLOAT32, BFLOAT16 and BFLOAT8_B, not {spec.dtype}")


def _settings(given: Any, spec: Spec) -> tuple[MathConfig, DataType]:
    """The math settings, and the format of the buffers for whole rows: float32 only on request."""
    fidelity = MathFidelity.HiFi3 if current_board().arch is Arch.WORMHOLE_B0 else MathFidelity.HiFi4
    is_float32 = spec.dtype is DataType.FLOAT32
    config = math_config(given, fidelity=fidelity, approx=not is_float32, fp32_acc=True)
    wide = config.fp32_acc and (is_float32 or given is not None)
    return config, DataType.FLOAT32 if wide else DataType.BFLOAT16


def _four(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + shape


def _require_mask(
    spec: Spec, mask: Spec | None, scale: float | None, program: Any, causal: bool, hw_dims: bool
) -> None:
    """The device operation's rules for masks; `spec` has four dimensions."""
    if mask is None:
        require(scale is None, "a scale needs a mask")
        return
    require_on_device(mask, "the mask")
    padded, mask_padded = spec.padded_shape, mask.padded_shape
    if mask.is_sharded:
        require(mask.is_tile, f"a sharded mask must be in TILE layout, it is in {mask.layout}")
        require(mask_padded == padded, f"a sharded mask of {list(mask_padded)} must be as large as {list(padded)}")
        return
    if not mask.is_tile:
        require(not causal or is_sharded_program(program), "the library crashes on a causal mask in ROW_MAJOR layout")
        expected = (mask_padded[0], 1, padded[-1] // TILE, TILE)
        require(mask_padded == expected, f"a ROW_MAJOR mask has shape {list(expected)}, not {list(mask_padded)}")
    for dim in range(1, len(padded) - 2):
        require(dim < len(mask_padded) and mask_padded[dim] == 1, f"dimension {dim} of the mask must be 1")
    if not is_sharded_program(program):
        require(padded[0] == mask_padded[0], f"the mask has batch {mask_padded[0]}, the input {padded[0]}")
        require(not hw_dims, "this form needs a SoftmaxShardedMultiCoreProgramConfig")
        return
    require(spec.shard_spec is not None, "a SoftmaxShardedMultiCoreProgramConfig needs a sharded input")
    require(program.block_w % program.subblock_w == 0, "block_w must be a multiple of subblock_w")
    require(program.block_w * TILE == padded[3], f"block_w {program.block_w} must cover the width {padded[3]}")
    if not hw_dims:
        grid = program.compute_with_storage_grid_size
        tiles = spec.physical_shape[0] * padded[-1] // (program.block_w * program.block_h * TILE * TILE)
        require(tiles == grid.x * grid.y, f"{tiles} shards do not fill {grid.x * grid.y} cores")
        return
    require(causal, "a causal mask is needed")
    require(mask.is_tile, "the mask must be in TILE layout")
    assert spec.shard_spec is not None
    require(spec.shard_spec.orientation is ShardOrientation.ROW_MAJOR, "the shards must be in ROW_MAJOR orientation")
    require(scale is not None, "a scale is needed")


def _require_program(spec: Spec, program: Any, memory: MemoryConfig) -> None:
    if not is_sharded_program(program):
        return
    require(memory.shard_spec is not None, "a SoftmaxShardedMultiCoreProgramConfig needs a sharded output")
    assert memory.shard_spec is not None
    height, width = memory.shard_spec.shape
    require(program.block_h == height // TILE, f"block_h {program.block_h} must match the shard height {height}")
    require(program.block_w == width // TILE, f"block_w {program.block_w} must match the shard width {width}")
    if spec.is_sharded:
        require_shards_fill_grid(spec, program.compute_with_storage_grid_size)


# -- plans ------------------------------------------------------------------------------------------------------------


def _ones(spec: Spec, value: float, memory: MemoryConfig | None, **options: Any) -> Plan:
    """A constant tensor, for inputs with nothing to normalise."""
    out = spec.with_(memory_config=memory or DRAM_MEMORY_CONFIG)
    return Plan(out, lambda: torch.full(out.shape, value, dtype=CARRIER[out.dtype]), reads=(), **options)


def _rows_plan(
    spec: Spec,
    memory: MemoryConfig,
    given: Any,
    stable: bool,
    *,
    scale: float | None = None,
    mask: Spec | None = None,
    causal: bool = False,
    program: Any = None,
    in_place: bool = False,
) -> Plan:
    """The plan of the kernel for the last dimension, with or without scale and mask."""
    config, bulk = _settings(given, spec)
    require(mask is not None or not causal, "a causal mask needs a mask")
    out = spec if in_place else spec.with_(layout=Layout.TILE, memory_config=memory)
    shape = _four(spec.shape)
    options: dict[str, Any] = {"into": ("input_tensor",)} if in_place else {}
    sharded = is_sharded_program(program)
    options["l1_bytes"], piece = (0, None) if sharded else _rows_buffers(spec, mask, config, bulk, stable)
    settings: dict[str, Any] = {"stable": stable, "bulk": bulk, "scale": scale, "piece": piece}
    if mask is None:
        return Plan(
            out,
            lambda x: softmax_rows(x.reshape(shape), spec.dtype, config, **settings).reshape(spec.shape),
            reads=("input_tensor",),
            **options,
        )
    as_mask = _mask_reader(shape, mask, causal)

    def compute(x: torch.Tensor, mask_values: torch.Tensor) -> torch.Tensor:
        shown = as_mask(mask_values)
        made = softmax_rows(x.reshape(shape), spec.dtype, config, mask=shown, mask_dtype=mask.dtype, **settings)
        return made.reshape(spec.shape)

    return Plan(out, compute, reads=("input_tensor", "mask"), **options)


def _mask_reader(shape: tuple[int, ...], mask: Spec, causal: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """A mask as the kernel reads it: a causal mask repeats its rows of tiles, others broadcast their first row."""
    height, width = shape[-2:]

    def read(values: torch.Tensor) -> torch.Tensor:
        if not mask.is_tile:
            return values.reshape(-1, 1, 1, values.shape[-1] * values.shape[-2])[..., :width]
        values = values.reshape(_four(tuple(values.shape)))[..., :width]
        values = torch.nn.functional.pad(values, (0, width - values.shape[-1]))  # in place, widths are not compared
        if not causal:
            return values[..., :1, :]
        missing = round_up(values.shape[-2], TILE) - values.shape[-2]
        values = torch.nn.functional.pad(values, (0, 0, 0, missing))
        return values.repeat(1, 1, div_up(height, values.shape[-2]), 1)[..., :height, :]

    return read


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/softmax/device/softmax_program_factory_attention_optimized.cpp,  # noqa: E501
# cb_size_sum_bytes against l1_size_per_core, and the circular buffers
def _rows_buffers(
    spec: Spec, mask: Spec | None, config: MathConfig, bulk: DataType, stable: bool
) -> tuple[int, int | None]:
    """Bytes of circular buffers per core, and the tiles per pass of the large-tensor kernel, if that one runs.

    The large-tensor kernel runs if the library's estimate of the buffers exceeds 90 % of L1.
    """
    tiles = div_up(spec.shape[-1], TILE)
    block = 4 if config.fp32_acc else 8
    if tiles % block:
        divisor = max(size for size in range(1, block + 1) if tiles % size == 0)
        if div_up(tiles, block) == tiles // divisor:
            block = divisor
    padded = spec.shape[-1] % TILE != 0
    line = round_up(tiles, block)
    own, wide = tile_bytes(spec.tile, spec.dtype), tile_bytes(spec.tile, bulk)
    single = 4096 if config.fp32_acc else 2048
    mask_tile = tile_bytes(mask.tile, mask.dtype) if mask is not None else 0
    reads_line = stable and mask is None and not padded
    once = 2 * block * own + 2 * single + (4096 if spec.dtype is DataType.FLOAT32 else 2048) + PADDING_MASK
    once += wide if stable else 0
    estimate = own * (line if reads_line else 2 * block) + line * wide + 2 * block * own + ESTIMATED_SINGLES * wide
    total = own * (line if reads_line else 2 * block) + line * wide + once
    if stable and not reads_line:
        estimate += line * wide
        total += line * wide
    if mask is not None:
        extra = (line + block) * wide + 2048 + line * mask_tile
        estimate += extra
        total += extra
    if estimate <= 0.9 * current_board().l1_bytes:
        return total, None
    piece = LARGE_KERNEL_TILES // block * block
    total = piece * own + 2 * piece * wide + once + 2 * single + wide
    if mask is not None:
        total += piece * wide + 2048 + piece * mask_tile
    return total, piece


# -- operations -------------------------------------------------------------------------------------------------------


@operation("ttnn.softmax")
def softmax(input_tensor, dim=-1, *, memory_config=None, compute_kernel_config=None, numeric_stable=True):
    """exp(x) ÷ its sum along a dimension."""
    rank = input_tensor.rank
    low, high = (-rank, rank - 1) if rank else (-1, 0)
    require(low <= dim <= high, f"dimension {dim} is not between {low} and {high}")
    memory = memory_of(memory_config, input_tensor)
    if rank == 0 or input_tensor.volume == 0:
        require_on_device(input_tensor)
        return _ones(input_tensor, 1.0, memory_config)
    from_end = dim % rank - rank  # counted from the back
    # The library tilizes a row-major input if `dim` of the rank-4 shape equals the last index of the original rank.
    tilizes = rank <= 4 and from_end + 4 == rank - 1
    _require_taken(input_tensor, tiled=tilizes)
    if from_end == -1 and rank <= 4:
        return _rows_plan(input_tensor, memory, compute_kernel_config, numeric_stable)
    config, _ = _settings(compute_kernel_config, input_tensor)
    require(
        input_tensor.dtype is not DataType.FLOAT32 or config.fp32_acc,
        "softmax of FLOAT32 over this dimension needs fp32_dest_acc_en=True",
    )
    in_pieces, l1_bytes = general_kernel(input_tensor, from_end, config)
    middle = None
    if from_end < -2:
        middle = DataType.FLOAT32 if config.fp32_acc else input_tensor.dtype
    out = input_tensor.with_(layout=Layout.TILE, memory_config=memory)
    dtype = input_tensor.dtype
    return Plan(
        out,
        lambda x: softmax_general(x, from_end, dtype, config, in_pieces=in_pieces, middle=middle),
        l1_bytes=l1_bytes,
    )


def general_kernel(spec: Spec, from_end: int, config: MathConfig) -> tuple[bool, int]:
    """Whether the general kernel runs in pieces, and its bytes of circular buffers per core."""
    own = tile_bytes(spec.tile, spec.dtype)
    wide = 4096 if config.fp32_acc else 2048
    scaler = 2048 if spec.dtype is DataType.BFLOAT8_B else own
    if from_end < -2:
        middle = wide if config.fp32_acc else own
        return True, 2 * own + 2 * own + middle + middle + 2 * middle + own + middle
    tiles = div_up(spec.shape[from_end], TILE)
    whole = 2 * tiles * own + 3 * scaler + 2 * tiles * wide + 3 * wide
    estimate = whole - scaler
    if current_board().l1_base + estimate <= SMALL_KERNEL_LIMIT:
        return False, whole
    return True, 4 * own + 3 * scaler + 2 * wide + 4 * wide


@operation("ttnn.softmax_in_place")
def softmax_in_place(input_tensor, dim=-1, *, program_config=None, compute_kernel_config=None, numeric_stable=True):
    """softmax over the last of four dimensions, into the input's own buffer."""
    rank = input_tensor.rank
    low, high = (-rank, rank - 1) if rank else (-1, 0)
    require(low <= dim <= high, f"dimension {dim} is not between {low} and {high}")
    if rank == 0 or input_tensor.volume == 0:
        return _ones(input_tensor, 1.0, input_tensor.memory_config)
    require(rank == 4 and dim % rank == 3, f"only the last of four dimensions is taken, not {dim} of {rank}")
    _require_taken(input_tensor, tiled=False)
    _require_program(input_tensor, program_config, input_tensor.memory_config)
    return _rows_plan(
        input_tensor,
        input_tensor.memory_config,
        compute_kernel_config,
        numeric_stable,
        program=program_config,
        in_place=True,
    )


def _masked_plan(
    tensor: Spec, scale: float | None, mask: Spec | None, memory: MemoryConfig, causal: bool, given: Any, stable: bool
) -> Plan:
    """scale_mask_softmax after the empty cases: implicit tilization, and the checks of the mask."""
    _require_taken(tensor, tiled=True)
    spec = tensor.with_(shape=_four(tensor.shape), layout=Layout.TILE)
    padded = spec.padded_shape if tensor.is_tile else _four(tensor.padded_shape)
    if mask is not None:
        mask_padded = mask.padded_shape
        require(padded[-1] == mask_padded[-1], f"the mask is {mask_padded[-1]} wide, the input {padded[-1]}")
        require(padded[0] == mask_padded[0], f"the mask has batch {mask_padded[0]}, the input {padded[0]}")
        require(len(mask_padded) > 1 and mask_padded[-2] in (1, TILE), f"the mask must be 1 or {TILE} high")
        require(mask_padded[1] == 1, f"dimension 1 of the mask must be 1, it is {mask_padded[1]}")
        if not mask.is_tile:
            mask = mask.with_(layout=Layout.TILE)
    _require_mask(spec, mask, scale, None, causal, False)
    return _rows_plan(tensor, memory, given, stable, scale=scale, mask=mask, causal=causal)


@operation("ttnn.scale_mask_softmax")
def scale_mask_softmax(
    input_tensor,
    scale=None,
    mask=None,
    *,
    memory_config=None,
    is_causal_mask=False,
    compute_kernel_config=None,
    numeric_stable=True,
):
    """softmax(scale × x + mask) over the last dimension."""
    memory = memory_of(memory_config, input_tensor)
    if input_tensor.rank == 0 or input_tensor.volume == 0:
        return _ones(input_tensor, 1.0 if scale is None else scale, memory_config)
    require(input_tensor.rank <= 4, f"the input has rank {input_tensor.rank}, at most 4 is taken")
    return _masked_plan(input_tensor, scale, mask, memory, is_causal_mask, compute_kernel_config, numeric_stable)


def _in_place_plan(
    tensor: Spec,
    scale: float | None,
    mask: Spec | None,
    program: Any,
    causal: bool,
    given: Any,
    stable: bool,
    *,
    hw_dims: bool = False,
) -> Plan:
    if tensor.rank == 0 or tensor.volume == 0:
        return _ones(tensor, 1.0 if scale is None else scale, tensor.memory_config)
    require(tensor.rank <= 4, f"the input has rank {tensor.rank}, at most 4 is taken")
    _require_taken(tensor, tiled=False)
    spec = tensor.with_(shape=_four(tensor.shape))
    _require_mask(spec, mask, scale, program, causal, hw_dims)
    _require_program(spec, program, tensor.memory_config)
    return _rows_plan(
        tensor,
        tensor.memory_config,
        given,
        stable,
        scale=scale,
        mask=mask,
        causal=causal,
        program=program,
        in_place=True,
    )


@operation("ttnn.scale_mask_softmax_in_place")
def scale_mask_softmax_in_place(
    input_tensor,
    scale=None,
    mask=None,
    *,
    program_config=None,
    is_causal_mask=False,
    compute_kernel_config=None,
    numeric_stable=False,
):
    """softmax(scale × x + mask) over the last dimension, into the input's own buffer."""
    arguments = (program_config, is_causal_mask, compute_kernel_config, numeric_stable)
    return _in_place_plan(input_tensor, scale, mask, *arguments)


@operation("ttnn.scale_causal_mask_hw_dims_softmax_in_place")
def scale_causal_mask_hw_dims_softmax_in_place(
    input_tensor, scale=None, mask=None, *, program_config=None, compute_kernel_config=None, numeric_stable=False
):
    """The same with one causal mask for all heads, for sharded inputs."""
    return _in_place_plan(
        input_tensor, scale, mask, program_config, True, compute_kernel_config, numeric_stable, hw_dims=True
    )


def _head_scale(head_size: int | None) -> float:
    if head_size is None:
        return 1.0
    return 1.0 / math.sqrt(head_size) if head_size > 0 else math.inf if head_size == 0 else math.nan


@composite("ttnn.transformer.attention_softmax", ignores=("program_config",))
def attention_softmax(tensor, *, head_size=None, attention_mask=None, causal_mask=False, memory_config=None):
    """softmax(x ÷ √head_size + mask)."""
    memory = memory_of(memory_config, tensor._spec)
    if attention_mask is None:
        if tensor._spec.rank < 4:
            tensor = ttnn.reshape(tensor, _four(tensor._spec.shape))
        scaled = ttnn.multiply(tensor, _head_scale(head_size))
        return ttnn.softmax(scaled, -1, memory_config=memory)
    return ttnn.scale_mask_softmax(
        tensor, _head_scale(head_size), attention_mask, memory_config=memory, is_causal_mask=bool(causal_mask)
    )


@composite("ttnn.transformer.attention_softmax_", ignores=("program_config", "memory_config"))
def attention_softmax_in_place(tensor, *, head_size=None, attention_mask=None, causal_mask=False):
    """The same into the input's own buffer; only with a mask."""
    require(attention_mask is not None, "without a mask there is no kernel that divides by √head_size in place")
    return ttnn.scale_mask_softmax_in_place(
        tensor, _head_scale(head_size), attention_mask, is_causal_mask=bool(causal_mask), numeric_stable=True
    )
