"""Snake activations: x + sin²(α x) ÷ β, with α and β per channel."""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.functions.trigonometry import snake
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.numerics.units.vector_unit import store_bf16, store_fp32
from ttnn_emulator.ops.elementwise.ternary import ternary_output
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec


@operation("ttnn.snake_beta")
def snake_beta(
    input_tensor: Spec,
    alpha: Spec,
    beta: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """x + sin²(α x) ÷ β."""
    dtype, shape = input_tensor.dtype, input_tensor.shape
    require(dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"snake_beta takes BFLOAT16 or FLOAT32, not {dtype}")
    for name, spec in (("the input", input_tensor), ("alpha", alpha), ("beta", beta)):
        require(spec.dtype is dtype, f"{name} has dtype {spec.dtype}, the input {dtype}")
        require(spec.is_tile, f"{name} must have tile layout, it is in {spec.layout}")
    require(len(shape) >= 2, f"snake_beta needs input rank >= 2, not shape {list(shape)}")
    lifted = alpha.shape if len(alpha.shape) >= 2 else (1, *alpha.shape)
    lifted_beta = beta.shape if len(beta.shape) >= 2 else (1, *beta.shape)
    require(lifted == lifted_beta, f"alpha.shape == beta.shape is needed: {list(alpha.shape)}, {list(beta.shape)}")
    by_channel = lifted[-1] == shape[-1] and all(size == 1 for size in lifted[:-1])
    require(
        lifted == shape or by_channel,
        f"alpha of shape {list(alpha.shape)} does not broadcast to {list(shape)}: input.W == alpha.W is needed, "
        "and a non-1 size only on the last dim",
    )
    out = ternary_output((input_tensor, alpha, beta), dtype, memory_config, output_tensor)
    fp32 = out.dtype is DataType.FLOAT32
    store = store_fp32 if fp32 else store_bf16

    def compute(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        arrays = [values.expand(x.shape).contiguous().numpy() for values in (x, a, b)]
        with np.errstate(all="ignore"):
            values = store(snake(*arrays, fp32=fp32))
        return pack(torch.from_numpy(values), out.dtype, from_fp32=fp32)

    return Plan(out, compute, reads=("input_tensor", "alpha", "beta"), into=into(output_tensor))
