"""1 × 1 convolutions: `ttnn.linear` on tensors sharded like those of a convolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.numerics.functions.apply import activation
from ttnn_emulator.numerics.programs.convolution.convolution import finished
from ttnn_emulator.numerics.programs.convolution.depthwise import added
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.conv.blocks import Blocks, Problem, Settings, output_memory_config
from ttnn_emulator.ops.conv.sharding import COLUMNS, HEIGHT, Cores
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.matmul.device_operation import Asked, Multiplication, multiplication, target_of
from ttnn_emulator.ops.matmul.matmul import _is_added_after
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec


@dataclass(frozen=True)
class Product:
    """A convolution as a matmul, with the library's subsequent steps."""

    how: Multiplication
    bias_after: bool
    activation_after: UnaryWithParam | None


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp,
# determine_matmul_op_config_from_conv_op_config
def plan_product(
    x: Spec,
    inputs: Cores,
    blocks: Blocks,
    problem: Problem,
    settings: Settings,
    weight: Spec,
    bias: Spec | None,
    math: MathConfig,
) -> Product:
    """Check the matmul, with a program derived from the convolution's blocks or selected by the library."""
    x = layout_flow(Flow(x), Layout.TILE).spec
    program, config = None, DRAM_MEMORY_CONFIG
    if x.is_sharded:
        config = output_memory_config(problem, inputs)
        assert config.shard_spec is not None
        extent = config.shard_spec.grid.bounding_box().grid_size()
        by_height = inputs.scheme is HEIGHT
        program = Program(
            Kind.MCAST_1D if by_height else Kind.MCAST_2D,
            grid=(extent.x, extent.y),
            in0_block_w=blocks.act_w,
            out_subblock_h=blocks.sub_h,
            out_subblock_w=blocks.sub_w,
            out_block_h=blocks.out_h,
            out_block_w=blocks.out_w,
            per_core_M=blocks.out_h,
            per_core_N=blocks.out_w,
            transpose_mcast=not by_height and inputs.orientation is COLUMNS,
            fuse_batch=True,
            fused_activation=settings.activation,
            mcast_in0=False,
        )
    asked = Asked(memory_config=config, dtype=problem.out_dtype, program=program, math=math)
    after = bias is not None and _is_added_after(x, weight, bias, asked)
    device = current_device()
    require(device is not None, "the input must be on a device")
    how = multiplication(x, weight, None if after else bias, asked, None, target_of(device))
    function = settings.activation if not x.is_sharded else None
    return Product(how, after, function)


def product_of(product: Product, out_dtype: DataType) -> Callable[..., torch.Tensor]:
    """(input, weights, bias or None) → [pixels, out]."""
    kernel = product.how.kernel
    multiply = kernel.compute()
    inner, columns = product.how.operands.b_shape[-2:]
    function = activation(product.activation_after) if product.activation_after is not None else None
    wide = out_dtype is DataType.FLOAT32

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        left, right = x.reshape(-1, inner), weight.reshape(inner, columns)
        left, right = (each if each.is_floating_point() else each.float() for each in (left, right))
        if bias is None:
            result = multiply(left, right)
        else:
            row = bias.reshape(1, -1)[:, :columns]
            if product.bias_after:
                result = pack(added(multiply(left, right), row, fp32=wide), out_dtype, from_fp32=wide)
            else:
                result = multiply(left, right, row)
        return result if function is None else finished(result, function, out_dtype, wide)

    return run
