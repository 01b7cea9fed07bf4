"""Binary operations composed of others, or with a parameter: polyval, prelu, outer, isclose …"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import (
    ALL_ENUMS,
    BLOCK_FLOAT_DTYPES,
    FLOAT_DTYPES,
    DataType,
    Layout,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import InvalidArgument, SignatureError, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats import casts
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.numerics.programs.elementwise.binary import applied
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.elementwise.binary.device_operation import plan_binary
from ttnn_emulator.ops.elementwise.binary.named_operations import run
from ttnn_emulator.ops.elementwise.binary.operand_rules import INT32, UINT32
from ttnn_emulator.ops.elementwise.unary.program import unary_plan
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

UnaryOpType = ALL_ENUMS["UnaryOpType"]


@operation("ttnn.addalpha")
def addalpha(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    alpha: float,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """a + alpha × b."""
    return _with_alpha("ADD", input_tensor_a, input_tensor_b, alpha, memory_config, output_tensor)


@operation("ttnn.subalpha")
def subalpha(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    alpha: float,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """a - alpha × b."""
    return _with_alpha("SUB", input_tensor_a, input_tensor_b, alpha, memory_config, output_tensor)


def _with_alpha(kind: str, a: Spec, b: Spec, alpha: float, memory_config: Any, output: Spec | None) -> Plan:
    return plan_binary(
        kind,
        a,
        b,
        names=("input_tensor_a", "input_tensor_b"),
        memory_config=memory_config,
        output=output,
        input_tensor_b_activations=(UnaryWithParam(UnaryOpType.MUL_UNARY_SFPU, alpha),),
        fast=True,
    )


@operation("ttnn.isclose")
def isclose(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """1 where |a - b| ≤ atol + rtol × |b|."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        require(math.isfinite(value) and value >= 0, f"{name} must be finite and not negative, it is {value}")
    return plan_binary(
        "ISCLOSE",
        input_tensor_a,
        input_tensor_b,
        names=("input_tensor_a", "input_tensor_b"),
        memory_config=memory_config,
        parameters=(rtol, atol, equal_nan),
    )


# -- activations of a sum or a product --------------------------------------------------------------------------------


@operation("ttnn.bias_gelu")
def bias_gelu(**given: Any) -> Plan:
    """gelu(a + b). With a number, the sum is packed before gelu, as in two operations."""
    approx = given.pop("fast_and_approximate_mode", False)
    left, right = list(given.values())[:2]
    if isinstance(right, Spec):
        return run("BIAS_GELU", given, after=_gelu(approx))
    require(left.dtype in FLOAT_DTYPES, f"bias_gelu does not support {left.dtype}")
    for name in ("activations", "input_tensor_a_activations", "input_tensor_b_activations"):
        given.pop(name, None)
    asked, cast = given.pop("dtype", None), None
    if asked is not None and asked is not left.dtype:
        config = given.get("memory_config") or left.memory_config
        require(
            config.memory_layout is left.memory_config.memory_layout,
            f"the cast to {asked} cannot turn {left.memory_config.brief()} into {config.brief()}",
        )
        cast = casts.typecast(left.dtype, asked)
        given[next(iter(given))] = left.with_(dtype=asked, memory_config=config)
    plan = run("ADD", given)
    out, total = plan.outputs, plan.compute
    assert isinstance(out, Spec) and total is not None
    wide = out.dtype is DataType.FLOAT32

    def compute(values: torch.Tensor) -> torch.Tensor:
        values = cast(values) if cast is not None else values
        return packer.pack(applied(_gelu(approx), total(values), wide), out.dtype, from_fp32=wide)

    return replace(plan, compute=compute)


@operation("ttnn.bias_gelu_")
def bias_gelu_in_place(**given: Any) -> Plan:
    """gelu(a + b), into a."""
    return run("BIAS_GELU", given, in_place=True, after=_gelu(False))


def _gelu(approx: bool) -> tuple[tuple[str], ...]:
    return (("gelu~" if approx else "gelu",),)


@operation("ttnn.clamped_silu_glu", ignores=("sub_core_grids",))
def clamped_silu_glu(gate: Spec, up: Spec, limit: float, *, memory_config: MemoryConfig | None = None) -> Plan:
    """silu(min(gate, limit)) × up, up clamped to [-limit, limit]."""
    require(limit > 0, f"the limit must be positive, it is {limit}")
    return plan_binary(
        "MUL",
        gate,
        up,
        names=("gate", "up"),
        memory_config=memory_config,
        input_tensor_a_activations=(
            UnaryWithParam(UnaryOpType.MINIMUM, limit),
            UnaryWithParam(UnaryOpType.SILU),
        ),
        input_tensor_b_activations=(UnaryWithParam(UnaryOpType.CLAMP_TSS, -limit, limit),),
        fast=gate.dtype in BLOCK_FLOAT_DTYPES or up.dtype in BLOCK_FLOAT_DTYPES,
    )


@operation("ttnn.situ_glu", ignores=("sub_core_grids", "memory_config", "gate", "up", "beta1", "beta2"))
def situ_glu() -> Plan:
    """Composed of softcap, which has no kernel on Wormhole."""
    raise InvalidArgument("situ_glu is for Blackhole only: its softcap has no kernel for this chip")


# -- composites -------------------------------------------------------------------------------------------------------


@composite("ttnn.polyval")
def polyval(input_tensor_a: Any, coeffs: Sequence[float], *, memory_config: Any = None) -> Any:
    """A polynomial, highest coefficient first."""
    require(coeffs, "polyval needs at least one coefficient")
    options = {"memory_config": memory_config}
    if len(coeffs) == 1:
        return ttnn.full_like(input_tensor_a, fill_value=coeffs[0], **options)
    result = ttnn.multiply(input_tensor_a, coeffs[0], **options)
    for coefficient in coeffs[1:-1]:
        result = ttnn.multiply(input_tensor_a, ttnn.add(result, coefficient, **options), **options)
    return ttnn.add(result, coeffs[-1], **options)


@internal("ttnn.prelu_sfpu")
def prelu_of_number(input_tensor: Spec, weight: float, memory_config: MemoryConfig | None) -> Plan:
    """x where it is positive, weight × x where it is not."""
    return unary_plan(input_tensor, [Activation("prelu_sfpu", (weight,))], memory_config)


@composite("ttnn.prelu")
def prelu(input_tensor_a: Any, weight: Any, *, memory_config: Any = None) -> Any:
    """x where it is positive, weight × x where it is not; one weight per channel, or one for all."""
    options = {"memory_config": memory_config}
    if isinstance(weight, tuple):
        if len(weight) != 1:
            raise SignatureError(f"prelu takes one number as weight, not {len(weight)}")
        weight = weight[0]
    if isinstance(weight, int | float):
        return prelu_of_number(input_tensor_a, float(np.float32(weight)), memory_config)
    shape = tuple(input_tensor_a.shape)
    channels = shape[1] if len(shape) > 1 else 1
    count = math.prod(weight.shape)
    require(channels == count, f"{count} weights for {channels} channels")
    if len(shape) > 2:
        weight = ttnn.reshape(weight, (1, channels, *(1 for _ in shape[2:])))
    negative = ttnn.ltz(input_tensor_a, **options)
    return ttnn.where(negative, ttnn.multiply(input_tensor_a, weight), input_tensor_a)


OUTER_DTYPES = frozenset({DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32, INT32, UINT32})
BY_MATMUL = frozenset({DataType.BFLOAT16, DataType.BFLOAT8_B})
KEPT_SHARDED = (TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.HEIGHT_SHARDED)


@composite("ttnn.outer")
def outer(input_tensor_a: Any, input_tensor_b: Any, *, memory_config: Any = None) -> Any:
    """All products of two vectors; leading dimensions broadcast."""
    a, b = input_tensor_a, input_tensor_b
    require(len(a.shape) and len(b.shape), "outer takes vectors, not scalars")
    require({a.dtype, b.dtype} <= OUTER_DTYPES, f"outer does not support {a.dtype} with {b.dtype}")
    require(a.dtype is b.dtype, f"outer takes one dtype, not {a.dtype} and {b.dtype}")
    column, row = ttnn.unsqueeze(_interleaved(a), -1), ttnn.unsqueeze(_interleaved(b), -2)
    batch = max(math.prod(tuple(tensor.shape)[:-1]) for tensor in (a, b))
    if a.dtype in BY_MATMUL and batch == 1:
        return ttnn.matmul(_tiled(column), _tiled(row), memory_config=memory_config)
    return ttnn.multiply(column, row, memory_config=memory_config)


def _interleaved(tensor: Any) -> Any:
    config = tensor.memory_config()
    if config.memory_layout in KEPT_SHARDED:
        return tensor
    return ttnn.to_memory_config(tensor, MemoryConfig(TensorMemoryLayout.INTERLEAVED, config.buffer_type))


def _tiled(tensor: Any) -> Any:
    return tensor if tensor.layout is Layout.TILE else ttnn.to_layout(tensor, Layout.TILE)
