"""Elementwise functions composed of others: clamps, gated units, triangles, normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import ALL_ENUMS, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.ops.elementwise.unary.parameterised import single
from ttnn_emulator.ops.elementwise.unary.program import unary_plan
from ttnn_emulator.tensors.host_transfer import from_torch_tensor
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# -- clamp ------------------------------------------------------------------------------------------------------------

GREATEST = float(torch.finfo(torch.float32).max)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/device/unary_composite_op.cpp, min_val and max_val
INTEGER_BOUND = 16775716  # replaces a missing bound when the other one is an integer


@internal("clamp_tss")
def clamp_tss(
    input_tensor: Spec,
    low: Any,
    high: Any,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    return unary_plan(input_tensor, [Activation("clamp_tss", (low, high))], memory_config, output_tensor)


@composite("ttnn.clamp")
def clamp(
    input_tensor: Tensor,
    min: Any = None,
    max: Any = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """Every element between two numbers, or between the elements of two tensors."""
    require(min is not None or max is not None, "Only one of 'min' or 'max' can be None. Please provide one value")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _clamp_to_tensors(input_tensor, min, max, memory_config)
    if isinstance(min, int) or isinstance(max, int):
        require(not isinstance(min, float) and not isinstance(max, float), f"{min} and {max} are not of one type")
        low = float(-INTEGER_BOUND if min is None else int(min))
        high = float(INTEGER_BOUND if max is None else int(max))
        return clamp_tss(input_tensor, low, high, memory_config, output_tensor)
    if input_tensor.dtype is DataType.INT32:
        input_tensor = ttnn.typecast(input_tensor, DataType.FLOAT32, memory_config=memory_config)
    low = -GREATEST if min is None else single(min)
    high = GREATEST if max is None else single(max)
    return clamp_tss(input_tensor, low, high, memory_config, output_tensor)


@composite("ttnn.clip")
def clip(
    input_tensor: Tensor, min: Any = None, max: Any = None, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """The same as clamp, with bounds as floats."""
    return ttnn.clamp(input_tensor, min, max, memory_config=memory_config)


def _clamp_to_tensors(x: Tensor, low: Tensor | None, high: Tensor | None, memory_config: MemoryConfig | None) -> Tensor:
    config = {"memory_config": memory_config if memory_config is not None else x.memory_config()}
    if high is None:
        return ttnn.where(ttnn.ge(x, low, **config), x, low, **config)
    if low is None:
        return ttnn.where(ttnn.le(x, high, **config), x, high, **config)
    capped = ttnn.minimum(x, high, **config)
    raised = ttnn.where(
        ttnn.eq(low, 0.0, **config), ttnn.relu(capped, **config), ttnn.maximum(capped, low, **config), **config
    )
    return ttnn.where(ttnn.gt(low, high, **config), high, raised, **config)


@composite("ttnn.logical_not_")
def logical_not_in_place(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One where an element is zero, else zero, in place."""
    return ttnn.logical_not(input_tensor, memory_config=memory_config, output_tensor=input_tensor)


# -- gated linear units -----------------------------------------------------------------------------------------------


def _halves(x: Tensor, dim: int, memory_config: MemoryConfig | None) -> tuple[Tensor, Tensor]:
    """The tensor split in half along its last dimension."""
    sizes = x.padded_shape
    require(dim in (-1, 3), f"a gated unit works along the last dimension, not along {dim}")
    require(len(sizes) == 4, f"a gated unit takes a tensor of rank 4, not of shape {list(x.shape)}")
    middle, ends, steps = sizes[3] // 2, list(sizes), [1, 1, 1, 1]
    require(middle % TILE_SIZE == 0, f"half of the last dimension, {middle}, must be whole tiles")
    first = ttnn.slice(x, [0, 0, 0, 0], [*ends[:3], middle], steps, memory_config=memory_config)
    second = ttnn.slice(x, [0, 0, 0, middle], ends, steps, memory_config=memory_config)
    return first, second


def _gated(x: Tensor, dim: int, memory_config: MemoryConfig | None, gate: Callable[[Tensor], Tensor]) -> Tensor:
    value, control = _halves(x, dim, memory_config)
    return ttnn.multiply(value, gate(control), memory_config=memory_config)


@composite("ttnn.glu")
def glu(input_tensor: Tensor, dim: int = -1, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One half times the sigmoid of the other."""
    return _gated(input_tensor, dim, memory_config, lambda x: ttnn.sigmoid(x, memory_config=memory_config))


@composite("ttnn.reglu")
def reglu(input_tensor: Tensor, dim: int = -1, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One half times the relu of the other."""
    return _gated(input_tensor, dim, memory_config, lambda x: ttnn.relu(x, memory_config=memory_config))


@composite("ttnn.geglu")
def geglu(
    input_tensor: Tensor,
    dim: int = -1,
    *,
    memory_config: MemoryConfig | None = None,
    variant: Any = ALL_ENUMS["GeluVariant"].Accurate,
) -> Tensor:
    """One half times the gelu of the other."""
    return _gated(
        input_tensor, dim, memory_config, lambda x: ttnn.gelu(x, variant=variant, memory_config=memory_config)
    )


@composite("ttnn.swiglu")
def swiglu(input_tensor: Tensor, dim: int = -1, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One half times the swish of the other."""
    return _gated(input_tensor, dim, memory_config, lambda x: ttnn.swish(x, memory_config=memory_config))


# -- gamma ------------------------------------------------------------------------------------------------------------


@composite("ttnn.multigammaln")
def multigammaln(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of order 4."""
    config = {"memory_config": memory_config}
    result = ttnn.lgamma(input_tensor, **config)
    for step in (0.5, 1.0, 1.5):
        result = ttnn.add(result, ttnn.lgamma(ttnn.subtract(input_tensor, step, **config), **config), **config)
    return ttnn.add(result, 3.434189657547, **config)


# -- statistics over height and width ---------------------------------------------------------------------------------

HEIGHT_AND_WIDTH = [2, 3]


def _less_mean(x: Tensor) -> Tensor:
    mean = ttnn.mean(x, HEIGHT_AND_WIDTH, True)
    return ttnn.bcast(x, mean, ALL_ENUMS["BcastOpMath"].SUB, ALL_ENUMS["BcastOpDim"].HW)


def _mean_square(x: Tensor, like: Tensor, memory_config: MemoryConfig | None) -> Tensor:
    sizes = like.padded_shape
    scale = 1.0 / float(sizes[3] * sizes[2])
    return ttnn.sum(ttnn.square(x, memory_config=memory_config), HEIGHT_AND_WIDTH, True, scalar=scale)


@composite("ttnn.var_hw")
def var_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The variance over height and width."""
    config = memory_config if memory_config is not None else input_tensor.memory_config()
    return _mean_square(_less_mean(input_tensor), input_tensor, config)


@composite("ttnn.std_hw")
def std_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The standard deviation over height and width."""
    return ttnn.sqrt(ttnn.var_hw(input_tensor, memory_config=memory_config))


@composite("ttnn.normalize_hw")
def normalize_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Mean 0 and deviation 1 over height and width."""
    centred = _less_mean(input_tensor)
    deviation = ttnn.sqrt(_mean_square(centred, input_tensor, memory_config))
    return ttnn.multiply(centred, ttnn.reciprocal(deviation, memory_config=memory_config), memory_config=memory_config)


@composite("ttnn.normalize_global")
def normalize_global(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Mean 0 and deviation 1 over all elements."""
    sizes = list(input_tensor.padded_shape)
    require(len(sizes) == 4, f"the tensor must have rank 4, not shape {list(input_tensor.shape)}")
    batch, channels, height, width = sizes
    flat = ttnn.reshape_on_device(input_tensor, 1, 1, height, width * channels * batch)
    return ttnn.reshape_on_device(ttnn.normalize_hw(flat, memory_config=memory_config), *sizes)


# -- triangles --------------------------------------------------------------------------------------------------------


def _times_mask(x: Tensor, mask: Callable[..., torch.Tensor], diagonal: int, config: MemoryConfig | None) -> Tensor:
    """x times a tensor of ones and zeros that the host creates and uploads."""
    shape = tuple(x.shape)
    ones = mask(torch.ones((1,) * (2 - len(shape)) + shape), diagonal).reshape(shape)
    memory = config if config is not None else x.memory_config()
    dtype = x.dtype if x.dtype in (DataType.INT32, DataType.UINT32) else DataType.BFLOAT16
    sent = from_torch_tensor(ones, dtype, layout=Layout.TILE, device=x.device(), memory_config=memory)
    return ttnn.multiply(x, sent, memory_config=config)


@composite("ttnn.tril")
def tril(input_tensor: Tensor, *, diagonal: int = 0, memory_config: MemoryConfig | None = None) -> Tensor:
    """Keep the elements on and below a diagonal; zero the others."""
    return _times_mask(input_tensor, torch.tril, diagonal, memory_config)


@composite("ttnn.triu")
def triu(input_tensor: Tensor, *, diagonal: int = 0, memory_config: MemoryConfig | None = None) -> Tensor:
    """Keep the elements on and above a diagonal; zero the others."""
    return _times_mask(input_tensor, torch.triu, diagonal, memory_config)
