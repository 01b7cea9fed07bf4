"""Dropout with the device's random numbers, seeded from torch's generator in each call.

The mask differs from the one that torch draws on a CPU, but is reproducible with `torch.manual_seed`. It is passed to
the backward graph like torch's. `ttnn.rand` draws it in float32, so that the rate is exact to 2^-23.

`ttnn.experimental.dropout` gives all cores the same seed (`assign_per_core_runtime_args` in dropout_program_factory.cpp
of tt-metal), so all cores would drop the same pattern. `ttnn.rand` gives each core its own
(`rand_seed_for_core` in rand_program_factory.cpp).
"""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.reduction.reductions import in_storage
from torch_ttnn.compiler.lowering.registry import lowers
from ttnn_emulator import DataType

aten = torch.ops.aten


def _uniform(ttnn: Any, builder: ProgramBuilder, shape: Shape) -> Handle:
    """Random numbers in [0, 1), new in each call."""
    return ttnn.rand(list(shape), device=builder.device, dtype=DataType.FLOAT32, layout=TILE, seed=builder.seed())


@lowers(aten.native_dropout.default)
def native_dropout(ttnn: Any, builder: ProgramBuilder, x: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """x / (1 - p) where the mask is true, else 0; and the mask."""
    handle, form = in_storage(builder, x)
    if train is False or p == 0:
        all_kept = builder.static(torch.ones(x.shape, dtype=torch.bool))
        return x, all_kept
    if p == 1:
        nothing = builder.static(torch.zeros(x.shape, dtype=x.dtype))
        return nothing, builder.static(torch.zeros(x.shape, dtype=torch.bool))
    mask = ttnn.ge(_uniform(ttnn, builder, handle.shape), p, dtype=DataType.BFLOAT16)
    kept = ttnn.multiply(handle, builder.cast(mask, handle.dtype))
    result = ttnn.multiply(kept, 1.0 / (1.0 - p))
    return builder.value(result, x.shape, x.dtype, form), builder.value(mask, x.shape, torch.bool, form)


@lowers(aten.native_dropout_backward.default)
def native_dropout_backward(ttnn: Any, builder: ProgramBuilder, grad: Value, mask: Value, scale: float) -> Value:
    """Lowered as one operation: decomposed, mask × 1 / (1 - p) would be rounded, and with it all gradients."""
    (gradient, kept), form = builder.aligned([grad, mask], grad.shape)
    result = ttnn.multiply(ttnn.multiply(gradient, builder.cast(kept, gradient.dtype)), scale)
    return builder.value(result, grad.shape, grad.dtype, form)


@lowers(aten.bernoulli.p)
def bernoulli(ttnn: Any, builder: ProgramBuilder, x: Value, p: float = 0.5, *, generator: Any = None) -> Value:
    """1 with probability p, else 0: the noise of feature and alpha dropout, and of stochastic depth."""
    if generator is not None:
        refuse("it has its own generator")
    dtype = builder.device_dtype(x.dtype)
    if not x.is_float:
        refuse("torch draws random integers and booleans")
    result = ttnn.lt(_uniform(ttnn, builder, x.shape or (1,)), p, dtype=dtype)
    return builder.value(builder.reshaped(result, x.shape), x.shape, x.dtype, Form.plain(x.shape))
