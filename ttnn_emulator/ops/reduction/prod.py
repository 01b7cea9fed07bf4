"""prod: the product over all dimensions, or over one."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, Arch, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.reduction.device_operations import TILE, fitted, require_on_grid
from ttnn_emulator.ops.reduction.reductions import dims_of, in_four_dimensions, reduce_nothing, reshaped, tilized
from ttnn_emulator.ops.support.common_checks import require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
TO_FRONT = {2: (2, 0, 1, 3), 3: (3, 0, 1, 2)}  # permutations that move the height or the width to the front


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/prod/device/prod_nc_program_factory.cpp, needs_wh_fp32_workaround
def _math(fp32_acc: bool) -> MathConfig:
    """HiFi4, or HiFi3 with a 32-bit destination register on Wormhole."""
    faulty = fp32_acc and current_board().arch is Arch.WORMHOLE_B0
    return MathConfig(MathFidelity.HiFi3 if faulty else MathFidelity.HiFi4, fp32_acc)


@internal("ttnn::prim::prod_all")
def product_of_all(tensor: Spec, memory_config: MemoryConfig) -> Plan:
    """The device multiplies all tiles into one; the host multiplies its 1024 values in the result's dtype."""
    require_on_device(tensor)
    require_tile(tensor)
    require(not tensor.is_sharded, "the input must be interleaved")
    require(tensor.dtype in FLOATS, f"prod takes floats, not {tensor.dtype}")
    dtype = DataType.BFLOAT16 if tensor.dtype is DataType.BFLOAT16 else DataType.FLOAT32
    Spec.of((1, 1, 1, TILE * TILE), dtype, Layout.TILE, memory_config)  # the intermediate tensor must be valid
    out = Spec.of((), dtype, Layout.TILE, memory_config)
    config = _math(True)
    wide = tensor.dtype is DataType.FLOAT32
    round_each = round_bf16_nearest_even if dtype is DataType.BFLOAT16 else (lambda value: value)

    def compute(values: torch.Tensor) -> torch.Tensor:
        height, width = values.shape[-2:] if values.dim() > 1 else (1, values.shape[-1])
        tiles = values.reshape(-1, height, width)
        tiles = torch.nn.functional.pad(tiles, (0, -width % TILE, 0, -height % TILE), value=1.0)
        tiles = tiles.unflatten(-1, (-1, TILE)).unflatten(-3, (-1, TILE)).transpose(-3, -2).reshape(-1, TILE, TILE)
        last = pack(numeric.product(tiles, 0, config, wide=wide), dtype, from_fp32=True)
        faces = last.unflatten(-1, (2, 16)).unflatten(0, (2, 16)).transpose(1, 2).flatten()
        result = torch.ones(())
        for value in faces[faces != 1.0]:
            result = round_each(result * value)
        return result

    return Plan(out, compute)


@internal("ttnn::prim::prod_nc")
def product_along(tensor: Spec, output: Spec, dim: int) -> Plan:
    """The product over the first or second of four dimensions, into `output`."""
    require_on_device(tensor)
    require(0 <= dim <= 3, f"dimension {dim} is not between 0 and 3")
    require(len(tensor.padded_shape) == 4, f"the input must have rank 4, it has {len(tensor.padded_shape)}")
    shape = [1 if axis == dim and axis < 2 else size for axis, size in enumerate(tensor.padded_shape)]
    require(
        len(output.padded_shape) == 4 and list(output.padded_shape) == shape,
        f"the output has padded shape {list(output.padded_shape)}, the product {shape}",
    )
    require(
        tensor.dtype in FLOATS[:3], f"prod over a dimension takes BFLOAT16, FLOAT32 and BFLOAT8_B, not {tensor.dtype}"
    )
    require(output.dtype is tensor.dtype, f"the output is {output.dtype}, the input {tensor.dtype}")
    columns, rows = current_board().grid
    tiles = math.prod(shape) // (TILE * TILE)
    cores = num_cores_to_corerangeset(min(tiles, columns * rows), CoreCoord(columns, rows))
    require_on_grid(output.memory_config, cores, "output")
    config = _math(output.dtype is not DataType.BFLOAT16)
    wide = tensor.dtype is DataType.FLOAT32

    def compute(values: torch.Tensor) -> torch.Tensor:
        found = numeric.product(values, dim, config, wide=wide).unsqueeze(dim)
        return pack(fitted(found, output.shape, 1.0), output.dtype, from_fp32=config.fp32_acc)

    return Plan(output, compute, reads=("tensor",), into=("output",))


def _over_outer(tensor: Tensor, dim: int, memory: MemoryConfig) -> Tensor:
    if not tensor._spec.is_tile:
        tensor = tilized(tensor, 1.0, tensor._spec.memory_config, None)
    spec = tensor._spec
    shape = [1 if axis == dim else size for axis, size in enumerate(spec.shape)]
    room = ttnn.zeros(shape, spec.dtype, spec.layout, tensor._device, memory)
    return product_along(tensor, room, dim)


def _over_all(tensor: Tensor, memory: MemoryConfig) -> Tensor:
    if not tensor._spec.is_tile:
        tensor = tilized(tensor, 1.0, tensor._spec.memory_config, None)
    return product_of_all(tensor, memory)


def _over_one(tensor: Tensor, dim: int, memory: MemoryConfig) -> Tensor:
    """The product over one dimension of any rank; the result keeps it with size 1."""
    rank, shape = tensor._spec.rank, tensor._spec.shape
    if rank > 4:
        order = list(range(rank))
        order[rank - 3], order[dim] = dim, rank - 3
        source = ttnn.permute(tensor, order, memory_config=memory) if dim != rank - 3 else tensor
        made = _over_outer(in_four_dimensions(source), 1, memory)
        kept = list(shape)
        kept[dim], kept[rank - 3] = kept[rank - 3], 1
        made = reshaped(made, kept)
        return ttnn.permute(made, order, memory_config=memory) if dim != rank - 3 else made
    source = in_four_dimensions(tensor)
    full = source._spec.shape
    dimension = dim + 4 - rank
    if dimension < 2:
        made = _over_outer(source, dimension, memory)
    else:
        made = _over_outer(ttnn.permute(source, TO_FRONT[dimension], memory_config=memory), 0, memory)
        made = ttnn.permute(made, (1, 2, 0, 3), memory_config=memory)
        ends = [full[0], full[1], 1, full[3] if dimension == 2 else full[2]]
        made = ttnn.slice(made, [0, 0, 0, 0], ends, [1, 1, 1, 1])
        if dimension == 3:
            made = ttnn.permute(made, (0, 1, 3, 2), memory_config=memory)
    return reshaped(made, [1 if axis == dim else size for axis, size in enumerate(shape)])


@composite("ttnn.prod")
def prod(input_tensor, dim=None, keepdim=False, *, memory_config=None, output_tensor=None, dims=None):
    """The product over one dimension or over all; or over `dims`, of the first two of four, into an existing one."""
    spec = input_tensor._spec
    memory = memory_config if memory_config is not None else spec.memory_config
    source = ttnn.fill_implicit_tile_padding(input_tensor, 1.0) if spec.is_tile else input_tensor
    if output_tensor is not None:
        return _into_given(source, output_tensor, dims, memory)
    rank = spec.rank
    low, high = (-rank, rank - 1) if rank else (-1, 0)
    require(dim is None or low <= dim <= high, f"dimension {dim} is not between {low} and {high}")
    if rank == 0:
        return ttnn.clone(source, memory_config=memory)
    if spec.volume == 0:
        return reduce_nothing("prod", source, dims_of(dim, rank), keepdim, memory)
    if dim is None or rank == 1:
        made = _over_all(source, memory)
        made = reshaped(made, [1] * rank) if keepdim else made
    else:
        require(spec.dtype is not DataType.BFLOAT4_B, "prod over a dimension does not take BFLOAT4_B")
        dimension = dim % rank
        made = _over_one(source, dimension, memory)
        if not keepdim:
            made = ttnn.squeeze(made, dimension)
    if spec.dtype in BLOCK_FLOAT_DTYPES and made._spec.dtype is not spec.dtype:
        made = ttnn.typecast(made, spec.dtype)
    return made


def _into_given(source: Tensor, output: Tensor, dims: tuple[int, ...], memory: MemoryConfig) -> Tensor:
    if not dims:
        return _over_all(source, memory)
    order = sorted(dims)
    for dim in reversed(order[1:]):
        require(dim in (0, 1), f"prod over several dimensions takes the first two, not {dim}")
        spec = source._spec
        shape = [1 if axis == dim else size for axis, size in enumerate(spec.padded_shape)]
        room = ttnn.empty(shape, spec.dtype, Layout.TILE, source._device, memory)
        source = product_along(source, room, dim)
    return product_along(source, output, order[0])
