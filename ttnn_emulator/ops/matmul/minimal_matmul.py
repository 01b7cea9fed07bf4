"""minimal_matmul: a matmul of large interleaved tensors, with its own choice of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import FLOAT_DTYPES, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.matmul.device_operation import dest_tiles
from ttnn_emulator.ops.support.common_checks import math_config, memory_of
from ttnn_emulator.ops.support.fused_functions import fault_of, fused, raising, require_fusable
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/minimal_matmul/device/minimal_matmul_program_factory.cpp,
# M_block_tiles
BLOCK = 8  # default block size in tiles, in each dimension
PAIR = 2 * TILE_SIZE
SILU = Activation("silu")
GATE_WORK = 8  # weight of a vector-unit multiplication in the work estimate


@composite("ttnn.experimental.minimal_matmul")
def minimal_matmul(
    input_tensor: Tensor | Sequence[Tensor],
    weight_tensor: Tensor,
    *,
    bias_tensor: Tensor | None = None,
    fused_activation: UnaryWithParam | None = None,
    config: Any = None,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    fuse_swiglu: bool = False,
) -> Tensor:
    """input @ weight + bias; two inputs are concatenated along the width.

    `fuse_swiglu` treats every other tile of columns as gates: silu(gate) × up, half as wide.
    """
    second = None
    if not isinstance(input_tensor, Tensor):
        require(len(input_tensor) == 2, f"of inputs there are one or two, not {len(input_tensor)}")
        input_tensor, second = input_tensor
    settings = math_of(compute_kernel_config), bool(compute_kernel_config and compute_kernel_config.dst_full_sync_en)
    (result,) = _multiply(
        input_tensor,
        weight_tensor,
        second,
        bias_tensor,
        fused_activation,
        blocks_of(config),
        memory_config,
        dtype,
        *settings,
        fuse_swiglu,
        1,
    )
    return result


@composite("ttnn.experimental.minimal_matmul_split")
def minimal_matmul_split(
    input_tensor: Tensor,
    weight_tensor: Tensor,
    *,
    chunks: int = 3,
    dim: int = -1,
    bias_tensor: Tensor | None = None,
    fused_activation: UnaryWithParam | None = None,
    config: Any = None,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    fuse_swiglu: bool = False,
) -> list[Tensor]:
    """The same, with the columns split over `chunks` tensors."""
    require(chunks >= 1, f"chunks is {chunks}, it must be at least 1")
    require(dim == -1, f"only dim = -1 can be split, not {dim}")
    width = weight_tensor._spec.shape[-1]
    require(
        width % chunks == 0 and width // chunks % TILE_SIZE == 0,
        f"{width} columns do not divide into {chunks} chunks of whole tiles",
    )
    settings = math_of(compute_kernel_config), bool(compute_kernel_config and compute_kernel_config.dst_full_sync_en)
    return _multiply(
        input_tensor,
        weight_tensor,
        None,
        bias_tensor,
        fused_activation,
        blocks_of(config),
        memory_config,
        dtype,
        *settings,
        fuse_swiglu,
        chunks,
    )


def math_of(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi2, approx=False, fp32_acc=True, l1_acc=True)


def blocks_of(config: Any) -> tuple[int, ...] | None:
    """Block rows, inner, columns; subblock rows, columns; columns and rows of cores."""
    if config is None:
        return None
    grid = config.compute_with_storage_grid_size
    sizes = (config.M_block_size, config.K_block_size, config.N_block_size, config.subblock_h, config.subblock_w)
    return (*sizes, *((1, 1) if grid is None else tuple(grid)))


@internal("ttnn.experimental.minimal_matmul")
def _multiply(
    input: Spec,
    weight: Spec,
    second: Spec | None,
    bias: Spec | None,
    function: UnaryWithParam | None,
    blocks: tuple[int, ...] | None,
    memory_config: MemoryConfig | None,
    dtype: DataType | None,
    config: MathConfig,
    full_sync: bool,
    swiglu: bool,
    chunks: int,
) -> Plan:
    require_operands(input, weight, second, bias)
    width = weight.shape[-1]
    if swiglu:
        require(function is None, "fuse_swiglu excludes other activations")
        require(width // chunks % PAIR == 0, f"{width} columns in {chunks} chunks are not whole pairs of tiles")
    if function is not None:
        require_fusable(function)
    if blocks is not None:
        require_blocks(blocks, config, full_sync)
    inner_block = blocks[1] if blocks is not None else BLOCK
    out_width = (width // 2 if swiglu else width) // chunks
    spec = Spec.of((*input.shape[:-1], out_width), dtype or input.dtype, Layout.TILE, memory_of(memory_config, input))
    product = _product(input, weight, bias, spec.dtype, config, inner_block, function, swiglu, second)
    reads = ["input", "weight"]
    reads += ["second"] if second is not None else []
    reads += ["bias"] if bias is not None else []

    def compute(*carriers: torch.Tensor) -> list[torch.Tensor]:
        result = product(*carriers)
        return [part.contiguous() for part in result.split(out_width, dim=-1)] if chunks > 1 else [result]

    l1_bytes = buffer_bytes(input, weight, bias, spec, config, blocks, swiglu)
    fault = None if function is None else fault_of(function)
    compute = compute if fault is None else raising(fault)
    return Plan([spec] * chunks, compute, tuple(reads), l1_bytes=l1_bytes)


def _product(
    input: Spec,
    weight: Spec,
    bias: Spec | None,
    out: DataType,
    config: MathConfig,
    inner_block: int,
    function: UnaryWithParam | None,
    swiglu: bool,
    second: Spec | None,
) -> Callable[..., torch.Tensor]:
    """Inner blocks are accumulated in L1; the sums are then read back through a source register."""
    several = div_up(div_up(weight.shape[-2], TILE_SIZE), inner_block) > 1
    kernel = Kernel(
        MathConfig(config.fidelity, config.fp32_acc, config.approx, several, inner_block),
        input.dtype,
        weight.dtype,
        DataType.FLOAT32 if swiglu else out,
        between=DataType.FLOAT32 if config.fp32_acc else DataType.BFLOAT16,
        activation=fused(function) if function is not None else None,
        through_l1=not swiglu or bias is not None,
        adds_last=swiglu and bias is None,
    )
    multiply = kernel.compute()

    def product(x: torch.Tensor, y: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        y = y.reshape(y.shape[-2:])
        if second is not None:
            x, y = _side_by_side(x, rest[0], y)
        result = multiply(x, y, rest[-1].reshape(1, -1)) if bias is not None else multiply(x, y)
        return pack(gated(result, config.fp32_acc), out, from_fp32=config.fp32_acc) if swiglu else result

    return product


def _side_by_side(first: torch.Tensor, second: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two inputs concatenated; the second one, and its rows of the weight, start at a tile boundary."""
    joined = torch.cat([torch.nn.functional.pad(first, (0, -first.shape[-1] % TILE_SIZE)), second], dim=-1)
    inner = round_up(weight.shape[-2], TILE_SIZE)
    joined = torch.nn.functional.pad(joined, (0, inner - joined.shape[-1]))
    return joined, torch.nn.functional.pad(weight, (0, 0, 0, inner - weight.shape[-2]))


def gated(sums: torch.Tensor, fp32_acc: bool) -> torch.Tensor:
    """silu(gate) × up for each pair of column tiles, multiplied by the vector unit."""
    pairs = sums.reshape(*sums.shape[:-1], -1, 2, TILE_SIZE)
    gate, up = pairs[..., 0, :].contiguous(), pairs[..., 1, :].contiguous()
    opened = SILU(gate, fp32_dest=fp32_acc)
    if not exactly(up.numel() * GATE_WORK):
        return (opened * up).flatten(-2)
    product = vector_unit.mul(up.numpy(), opened.numpy())
    return torch.from_numpy(product if fp32_acc else vector_unit.round_to_bf16(product)).flatten(-2)


def require_operands(input: Spec, weight: Spec, second: Spec | None, bias: Spec | None) -> None:
    given = [spec for spec in (input, weight, second, bias) if spec is not None]
    require(all(spec.on_device for spec in given), "all tensors must be on a device")
    require(all(spec.is_tile for spec in given), "all tensors must be in TILE layout")
    require(all(spec.dtype in FLOAT_DTYPES for spec in given), "all tensors must be of floats")
    require(input.rank >= 2 and weight.rank >= 2, "input and weight must have at least two dimensions")
    require(all(size == 1 for size in weight.shape[:-2]), f"a weight of shape {list(weight.shape)} has batches")
    if second is not None:
        require(second.dtype is input.dtype, f"the inputs have {input.dtype} and {second.dtype}")
        require(second.shape[:-1] == input.shape[:-1], "the inputs must differ in their last dimension only")
        inner = input.padded_shape[-1] + second.padded_shape[-1]
        require(inner == weight.padded_shape[-2], f"the inputs' {inner} columns and the weight's rows do not match")
    else:
        require(
            input.shape[-1] == weight.shape[-2],
            f"the inner dimensions {input.shape[-1]} and {weight.shape[-2]} do not match",
        )
    require(min(input.shape[-2:]) > 0 and weight.shape[-1] > 0, "the product would be empty")
    if bias is not None:
        require(bias.rank >= 1, "the bias must have a dimension")
        require(all(size == 1 for size in bias.shape[:-1]), f"a bias of shape {list(bias.shape)} is not one row")
        require(bias.shape[-1] == weight.shape[-1], f"the bias is {bias.shape[-1]} wide, the weight {weight.shape[-1]}")


def require_blocks(blocks: tuple[int, ...], config: MathConfig, full_sync: bool) -> None:
    rows, inner, columns, sub_h, sub_w, x, y = blocks
    require(min(rows, inner, columns, sub_h, sub_w) > 0, "block sizes must not be 0")
    require(
        rows % sub_h == 0 and columns % sub_w == 0,
        f"blocks of {rows} x {columns} tiles do not divide into subblocks of {sub_h} x {sub_w}",
    )
    grid = current_board().grid
    require(2 <= x <= grid[0] and 2 <= y <= grid[1], f"a grid of {x} x {y} cores is not between 2 x 2 and {grid}")
    limit = dest_tiles(config, full_sync, Tile())
    require(sub_h * sub_w <= limit, f"a subblock of {sub_h} x {sub_w} tiles exceeds the {limit} of the destination")


def buffer_bytes(
    input: Spec,
    weight: Spec,
    bias: Spec | None,
    out: Spec,
    config: MathConfig,
    blocks: tuple[int, ...] | None,
    swiglu: bool,
) -> int:
    rows, inner, columns = blocks[:3] if blocks is not None else (BLOCK,) * 3
    size = {spec.dtype: tile_bytes(Tile(), spec.dtype) for spec in (input, weight, out, bias or out)}
    between = tile_bytes(Tile(), DataType.FLOAT32 if config.fp32_acc else DataType.BFLOAT16)
    total = 2 * rows * inner * size[input.dtype] + 2 * inner * columns * size[weight.dtype]
    total += rows * columns * (2 * size[out.dtype] // (2 if swiglu else 1) + between)
    return total + (columns * size[bias.dtype] if bias is not None else 0)
