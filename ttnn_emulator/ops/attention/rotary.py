"""Rotary position embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.hardware.core_grid import num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import flush, truncate_bf16
from ttnn_emulator.numerics.native.threaded_copies import contiguous, joined
from ttnn_emulator.numerics.programs.attention.rotary import Rotation, rotate_half_matrix
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.packer import device_pack_block_float
from ttnn_emulator.ops.attention.heads.common import board_cores, board_grid, faulty, grown, sharded_like
from ttnn_emulator.ops.support.common_checks import math_config, memory_of, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, padded_spec
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/rotate_half/device/rotate_half_program_factory.cpp,  # noqa: E501
# num_input_tiles, num_scalar_tiles
HALF_BUFFERS = 7  # tiles of rotate_half's circular buffers: three double-buffered ones and the scalar -1
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/ssm/repeat_and_interleave_eltwise_mul/device/repeat_and_interleave_eltwise_mul_device_operation_types.hpp,  # noqa: E501
# HIDDEN_SIZE
SSM_HIDDEN = 5120
SSM_DTYPES = (DataType.BFLOAT16, DataType.BFLOAT8_B)


def rotary_config(given: Any) -> Any:
    return math_config(given, fidelity=MathFidelity.HiFi4)


def require_width(width: int) -> None:
    require(
        width == TILE_SIZE or width % (2 * TILE_SIZE) == 0,
        f"a width of {width} is neither {TILE_SIZE} nor a multiple of {2 * TILE_SIZE}",
    )


# -- halves -----------------------------------------------------------------------------------------------------------


@composite("ttnn.experimental.rotary_embedding")
def rotary_embedding(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    token_index: int | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """x × cos + (-second half, first half) × sin, for all positions or for one."""
    spec, cos, sin = input_tensor._spec, cos_cache._spec, sin_cache._spec
    require_width(spec.padded_shape[-1])
    require_on_device(spec)
    length = spec.shape[-2] if spec.rank > 1 else 1
    require(cos.shape == sin.shape, f"cos has shape {list(cos.shape)}, sin {list(sin.shape)}")
    _require_cache(cos, spec.padded_shape[-1])
    if token_index is None:
        require(cos.shape[-2] >= length, f"cos covers {cos.shape[-2]} positions, the input has {length}")
    else:
        require(spec.padded_shape[0] == 1, f"with a token index dimension 0 must be 1, it is {spec.padded_shape[0]}")
        require(0 <= token_index < cos.shape[-2], f"cos covers {cos.shape[-2]} positions, not the one of {token_index}")
    config = memory_of(memory_config, spec)
    tensors = [_in_tiles(tensor) for tensor in (input_tensor, cos_cache, sin_cache)]
    return rotary_device(*tensors, token_index, config, compute_kernel_config)


def _require_cache(cos: Spec, width: int) -> None:
    padded = cos.padded_shape
    require(len(padded) > 1, f"cos has rank {cos.rank}")
    require(
        padded[0] == 1 and padded[1] == 1 and padded[-1] == width,
        f"cos must be [1, 1, S, {width}], it is {list(padded)}",
    )


def _in_tiles(tensor: Tensor) -> Tensor:
    spec = tensor._spec
    if spec.is_tile:
        return tensor
    *outer, height, width = spec.padded_shape
    padded = [*outer, round_up(height, TILE_SIZE), round_up(width, TILE_SIZE)]
    return ttnn.tilize_with_val_padding(tensor, padded, 0.0, memory_config=spec.memory_config)


@internal("ttnn::rotary_embedding")
def rotary_device(
    input: Spec, cos: Spec, sin: Spec, token_index: int | None, config: MemoryConfig, compute_kernel_config: Any
) -> Plan:
    for spec, name in ((input, "the input"), (cos, "cos"), (sin, "sin")):
        require_on_device(spec, name)
        require_tile(spec, name)
    width = input.padded_shape[-1]
    require_width(width)
    require(cos.dtype is sin.dtype, f"cos is {cos.dtype}, sin {sin.dtype}")
    require(cos.padded_shape == sin.padded_shape, "cos and sin have different shapes")
    _require_cache(cos, width)
    need = input.padded_shape[-2] if token_index is None else token_index
    require(cos.padded_shape[-2] >= need, f"cos covers {cos.padded_shape[-2]} positions, {need} are needed")
    _require_rotary_shards(input, config, even=True)
    shape = input.padded_shape
    out = Spec.of(shape, input.dtype, input.layout, rotary_output(input, config))
    setting = rotary_config(compute_kernel_config)
    products = input.dtype if width == TILE_SIZE else cos.dtype
    rotation = Rotation(setting, input.dtype, cos.dtype, products)
    plain = Rotation(rotary_config(None), input.dtype, cos.dtype, products)
    configured = 0 if input.is_sharded or config.is_sharded() else _configured_rows(input)
    cos_shape = cos.padded_shape
    rows = slice(0, shape[-2]) if token_index is None else slice(token_index, token_index + 1)
    prepared = _unchanged if token_index is None else _untiled(cos.dtype)
    matrix = rotate_half_matrix()

    def compute(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        parts = [prepared(grown(each, cos_shape)[..., rows, :]) for each in (cosines, sines)]
        whole = grown(x, shape)
        if width == TILE_SIZE:
            return rotation.by_matrix(whole, parts[0], parts[1], matrix)
        plainly = plain.halves(whole, parts[0], parts[1])
        if configured == 0 or plain == rotation:
            return plainly
        plainly.view(-1, width)[-configured:] = rotation.halves(whole, parts[0], parts[1]).view(-1, width)[-configured:]
        return plainly

    garbled = input.dtype is DataType.FLOAT32 and width == TILE_SIZE
    run = faulty("the kernel for heads of 32 columns multiplies float32 by a bfloat16 matrix") if garbled else compute
    return Plan(out, run, reads=("input", "cos", "sin"), l1_bytes=_rotary_buffers(input, cos, token_index, config))


def _configured_rows(spec: Spec) -> int:
    """Trailing rows that use the compute kernel config: those of the cores with one row of tiles less.

    The library does not pass the config to the other cores, which use the defaults.
    """
    tiles, cores = spec.physical_shape[0] // TILE_SIZE, board_cores()
    if tiles <= cores or tiles % cores == 0:
        return 0
    return (cores - tiles % cores) * (tiles // cores) * TILE_SIZE


def _unchanged(values: torch.Tensor) -> torch.Tensor:
    return values


def _untiled(dtype: DataType) -> Callable[[torch.Tensor], torch.Tensor]:
    """A row untilized to bfloat16 and tilized again."""
    if dtype in BLOCK_FLOAT_DTYPES:
        return lambda values: device_pack_block_float(flush(values), dtype)
    return lambda values: flush(truncate_bf16(values))


def _rotary_buffers(
    input: Spec, cos: Spec, token_index: int | None, config: MemoryConfig, *, single: bool = False
) -> int:
    """Circular buffers: double-buffered rows of tiles, intermediate products, and untilized rows of cos and sin."""
    if input.is_sharded or config.is_sharded():
        return 0
    tiles = input.padded_shape[-1] // TILE_SIZE
    scalar = 2 * TILE_SIZE * TILE_SIZE
    if tiles == 1:
        trig = 1 if single or token_index is not None else 2
        total = 4 * input.page_bytes + 2 * trig * cos.page_bytes + scalar + 3 * input.page_bytes
    else:
        trig = tiles if token_index is not None else 2 * tiles
        total = (
            6 * tiles * input.page_bytes + 2 * trig * cos.page_bytes + scalar + input.page_bytes + 2 * cos.page_bytes
        )
    if token_index is not None:
        total += 2 * tiles * (cos.page_bytes + scalar)
    return total


def _require_rotary_shards(spec: Spec, config: MemoryConfig, *, even: bool) -> None:
    require(not config.is_sharded() or config.memory_layout is not WIDTH, "the output must not be width sharded")
    if not spec.is_sharded:
        return
    require(spec.memory_config.memory_layout is not WIDTH, "the input must not be width sharded")
    shards = spec.shard_spec
    if not even:
        return
    require(shards is not None, "the input has no two-dimensional shards")
    assert shards is not None
    require(shards.shape[1] == spec.padded_shape[-1], f"shards are {shards.shape[1]} wide, the input is wider")
    height = spec.physical_shape[0]
    require(height % shards.shape[0] == 0, f"a height of {height} does not divide into shards of {shards.shape[0]}")


def rotary_output(spec: Spec, config: MemoryConfig) -> MemoryConfig:
    """The output memory config: the input's shards, or a number of shards that divides the rows of tiles evenly."""
    if not config.is_sharded():
        return config
    shards = spec.shard_spec
    if shards is None:
        blocks = spec.physical_shape[0] // TILE_SIZE
        cores = next(count for count in range(board_cores(), 0, -1) if blocks % count == 0)
        new_grid = num_cores_to_corerangeset(cores, board_grid(), True)
        shards = ShardSpec(new_grid, (div_up(blocks, cores) * TILE_SIZE, spec.padded_shape[-1]))
    return sharded_like(config, shards)


@operation("ttnn.experimental.rotary_embedding_hf")
def rotary_embedding_hf(
    input_tensor: Spec,
    cos_cache: Spec,
    sin_cache: Spec,
    *,
    is_decode_mode: bool = False,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """x × cos + (-second half, first half) × sin: for positions [.., S, D], or for users [1, B, heads, D]."""
    spec, cos, sin = input_tensor, cos_cache, sin_cache
    for each, name in ((spec, "the input"), (cos, "cos"), (sin, "sin")):
        require_on_device(each, name)
        require_tile(each, name)
    config = memory_of(memory_config, spec)
    width = spec.padded_shape[-1]
    require_width(width)
    require(cos.dtype is sin.dtype, f"cos is {cos.dtype}, sin {sin.dtype}")
    require(cos.padded_shape == sin.padded_shape, "cos and sin have different shapes")
    require(cos.padded_shape[0] == 1 and cos.padded_shape[-1] == width, f"cos must be [1, .., {width}]")
    if is_decode_mode:
        _require_decode(spec, cos, sin)
        require(config.is_sharded() and config.is_l1, f"in decode mode the output must be shards, not {config.brief()}")
    else:
        require(cos.padded_shape[1] == 1, f"dimension 1 of cos must be 1, it is {cos.padded_shape[1]}")
        for each in (cos, sin):
            require(each.shape[-2] >= spec.shape[-2], f"cos covers {each.shape[-2]} of {spec.shape[-2]} positions")
    _require_rotary_shards(spec, config, even=False)
    out = Spec.of(spec.shape, spec.dtype, spec.layout, rotary_output(spec, config))
    setting = rotary_config(compute_kernel_config)
    products = spec.dtype if width == TILE_SIZE else cos.dtype
    rotation = Rotation(setting, spec.dtype, cos.dtype, products)
    matrix = rotate_half_matrix()
    shape, padded, cos_padded = spec.shape, spec.padded_shape, cos.padded_shape
    rows = slice(0, 1) if is_decode_mode else slice(0, padded[-2])

    def compute(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        parts = [grown(each, cos_padded)[..., rows, :] for each in (cosines, sines)]
        whole = grown(x, padded)
        if width == TILE_SIZE:
            result = rotation.by_matrix(whole, parts[0], parts[1], matrix)
        else:
            result = rotation.halves(whole, parts[0], parts[1], copied=is_decode_mode)
        return contiguous(result[tuple(slice(size) for size in shape)])

    l1_bytes = 0 if is_decode_mode else _rotary_buffers(spec, cos, None, config, single=True)
    return Plan(out, compute, reads=("input_tensor", "cos_cache", "sin_cache"), l1_bytes=l1_bytes)


def _require_decode(spec: Spec, cos: Spec, sin: Spec) -> None:
    require(spec.memory_config.memory_layout is HEIGHT, "the input of decode mode must be height sharded")
    for each, name in ((cos, "cos"), (sin, "sin")):
        require(each.is_sharded, f"{name} must be sharded in decode mode")
        require(
            each.padded_shape[1] == spec.padded_shape[1],
            f"{name} holds {each.padded_shape[1]} users, the input {spec.padded_shape[1]}",
        )


@composite("ttnn.experimental.rotate_half")
def rotate_half(input: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Swap the halves of the last dimension and negate the second one."""
    spec = input._spec
    require_on_device(spec)
    width = spec.padded_shape[-1]
    require(width % (2 * TILE_SIZE) == 0, f"a width of {width} is not a multiple of {2 * TILE_SIZE}")
    return rotate_half_device(_in_tiles(input), memory_of(memory_config, spec))


@internal("ttnn::rotate_half")
def rotate_half_device(input: Spec, config: MemoryConfig) -> Plan:
    require_tile(input)
    require(not input.is_sharded and not config.is_sharded(), "shards are not supported")
    out = padded_spec(input.shape, input.padded_shape, input.dtype, Layout.TILE, config)
    setting, width = rotary_config(None), input.padded_shape[-1]
    shape = input.shape

    def compute(x: torch.Tensor) -> torch.Tensor:
        whole = grown(x, (*shape[:-1], width))
        core = Core.of(setting, whole.numel())
        first, second = whole.chunk(2, -1)
        negated = core.packed(core.mul(second, torch.tensor(-1.0)), DataType.BFLOAT16)
        return contiguous(joined([negated, first], -1)[..., : shape[-1]])

    run = compute if input.dtype is DataType.BFLOAT16 else faulty("the kernel's -1 is written for bfloat16 only")
    return Plan(out, run, reads=("input",), l1_bytes=HALF_BUFFERS * input.page_bytes)


# -- products with repeated operands ----------------------------------------------------------------------------------


@operation("ttnn.experimental.repeat_and_interleave_eltwise_mul")
def repeat_and_interleave_eltwise_mul(
    a: Spec,
    b: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    math_fidelity: MathFidelity | None = None,
) -> Plan:
    """a repeated 5120 times × b with every column repeated 32 times: a state space model's outer product."""
    config, out_dtype = memory_of(memory_config, a), a.dtype if dtype is None else dtype
    for spec, name in ((a, "a"), (b, "b")):
        require_on_device(spec, name)
        require_tile(spec, name)
        require(not spec.is_sharded, f"{name} must be interleaved")
        require(spec.dtype in SSM_DTYPES, f"{name} is {spec.dtype}, only bfloat16 and bfloat8_b are supported")
        require(spec.padded_shape[0] == 1 and spec.padded_shape[1] == 1, f"{name} must have no batch")
    require(not config.is_sharded(), "the output must be interleaved")
    require(out_dtype in SSM_DTYPES, f"the output is {out_dtype}, only bfloat16 and bfloat8_b are supported")
    users, wide = a.padded_shape[2], TILE_SIZE * SSM_HIDDEN
    require(users % TILE_SIZE == 0, f"{users} rows are not whole tiles")
    require(b.padded_shape[2] == users, f"a has {users} rows, b {b.padded_shape[2]}")
    widths = (a.padded_shape[3], b.padded_shape[3])
    require(widths[0] != widths[1], f"both are {widths[0]} wide")
    require(widths[0] in (TILE_SIZE, wide), f"a must be {TILE_SIZE} or {wide} wide, not {widths[0]}")
    require(widths[1] in (SSM_HIDDEN, wide), f"b must be {SSM_HIDDEN} or {wide} wide, not {widths[1]}")
    out = Spec.of((1, 1, users, wide), out_dtype, Layout.TILE, config)
    setting = math_config(None, fidelity=MathFidelity.HiFi4 if math_fidelity is None else math_fidelity)
    interleaved = widths[1] == SSM_HIDDEN
    shapes = (a.padded_shape, b.padded_shape)

    def compute(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        left, right = grown(left, shapes[0]), grown(right, shapes[1])
        core = Core.of(setting, users * wide)
        columns = left.unflatten(-1, (-1, TILE_SIZE))
        if not interleaved:
            return core.packed(core.mul(columns, right.unflatten(-1, (-1, TILE_SIZE))), out_dtype).flatten(-2)
        # Both operands and the product are transposed through bfloat16 buffers.
        product = core.mul(flush(columns), flush(right).unsqueeze(-1))
        between = core.packed(product, DataType.BFLOAT16).flatten(-2)
        return core.packed(between, out_dtype)

    return Plan(out, compute, reads=("a", "b"))
