"""moreh_sum, moreh_mean, moreh_norm with their gradients, and moreh_abs_pow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.programs.moreh import sums_and_powers as numeric
from ttnn_emulator.ops.moreh.checks import (
    dims_of,
    kept_shape,
    require_dim,
    require_operand,
    require_output,
    settings_of,
    tiled,
)
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

SUMMABLE = (DataType.BFLOAT16, DataType.INT32)


# -- device operations of one dimension -------------------------------------------------------------------------------


def _reduced(
    spec: Spec,
    output: Spec | None,
    dim: int,
    keepdim: bool,
    memory_config: Any,
    compute: Any,
) -> Plan:
    axis = dim - spec.rank
    out = output if output is not None else tiled(spec, kept_shape(spec.shape, dim, keepdim), memory_config)
    return Plan(
        out, lambda x: compute(x, axis).reshape(out.shape), reads=("input_tensor",), into=into(output, "output")
    )


@internal("ttnn.prim.moreh_sum")
def sum_along(
    input_tensor: Spec,
    dim,
    keepdim,
    output: Spec | None = None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The sum over one dimension."""
    require_operand(input_tensor, "the input", SUMMABLE)
    require_operand(output, "the output", SUMMABLE)
    require_dim(input_tensor, dim)
    require_output(input_tensor, output, dim, keepdim)
    config = settings_of(compute_kernel_config)
    compute = lambda x, axis: numeric.summed(x, axis, config)  # noqa: E731
    return _reduced(input_tensor, output, dim, keepdim, memory_config, compute)


@internal("ttnn.prim.moreh_mean")
def mean_along(
    input_tensor: Spec,
    dim,
    keepdim,
    divisor=None,
    output: Spec | None = None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The mean over one dimension."""
    require(divisor is None, "a divisor is not supported")
    require_operand(input_tensor, "the input")
    require_operand(output, "the output")
    require_dim(input_tensor, dim)
    require_output(input_tensor, output, dim, keepdim)
    config = settings_of(compute_kernel_config)
    compute = lambda x, axis: numeric.summed(x, axis, config, mean=True)  # noqa: E731
    return _reduced(input_tensor, output, dim, keepdim, memory_config, compute)


@internal("ttnn.prim.moreh_norm")
def norm_along(
    input_tensor: Spec,
    power,
    dim,
    keepdim,
    output: Spec | None = None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The norm of order 0 or ±infinity over one dimension."""
    require_operand(input_tensor, "the input")
    require_operand(output, "the output")
    rank = input_tensor.rank
    require(0 <= dim < rank, f"dimension {dim} is not between 0 and {rank - 1}")
    require_output(input_tensor, output, dim, keepdim)
    config = settings_of(compute_kernel_config)
    compute = lambda x, axis: numeric.extreme_norm(x, axis, power, config)  # noqa: E731
    return _reduced(input_tensor, output, dim, keepdim, memory_config, compute)


# -- sums and means ---------------------------------------------------------------------------------------------------


@composite("ttnn.moreh_sum")
def moreh_sum(input, dim=None, *, keepdim=False, output=None, memory_config=None, compute_kernel_config=None):
    """The sum over dimensions, from the last to the first."""
    rank = len(input.shape)
    dims = sorted(dims_of(dim, rank))
    options = {"memory_config": memory_config, "compute_kernel_config": compute_kernel_config}
    if rank == 1 and dims == [0]:
        flat = ttnn.reshape(input, [1, input.shape[0]])
        made = sum_along(flat, 1, keepdim, output, **options)
        return made if output is not None else ttnn.reshape(made, [1])
    require(bool(dims), "there is no dimension to sum over")
    for axis in reversed(dims[1:]):
        input = sum_along(input, axis, keepdim, **options)
    return sum_along(input, dims[0], keepdim, output, **options)


@composite("ttnn.moreh_mean")
def moreh_mean(
    input, *, dim=None, keepdim=False, divisor=None, output=None, memory_config=None, compute_kernel_config=None
):
    """The mean over dimensions, from the last to the first."""
    dims = sorted(dims_of(dim, len(input.shape)))
    require(bool(dims), "there is no dimension to average over")
    options = {"divisor": divisor, "memory_config": memory_config, "compute_kernel_config": compute_kernel_config}
    for axis in reversed(dims[1:]):
        input = mean_along(input, axis, keepdim, **options)
    return mean_along(input, dims[0], keepdim, output=output, **options)


def _gradient_shape(spec: Spec, target: Spec, dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """The shape of a gradient with the reduced dimensions put back as ones."""
    if keepdim:
        require(spec.rank >= target.rank, f"the gradient has rank {spec.rank}, the input {target.rank}")
        return spec.shape
    require(all(dim < target.rank for dim in dims), f"dimensions {list(dims)} are beyond rank {target.rank}")
    sizes = list(target.shape)
    for dim in dims:
        sizes[dim] = 1
    return tuple(sizes)


def _put_back(gradient: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A gradient in the shape of `_gradient_shape`. Sizes are not compared here; missing dimensions broadcast."""
    count = math.prod(shape)
    if gradient.numel() == count:
        return gradient.reshape(shape)
    return gradient.reshape(-1).repeat(-(-count // gradient.numel()))[:count].reshape(shape)


def _require_gradient(gradient: Spec, spec: Spec, dims: Sequence[int], keepdim: bool) -> None:
    """The shape of a sum's gradient against that of its input."""
    if keepdim:
        require(gradient.rank >= spec.rank, f"the gradient has rank {gradient.rank}, the input {spec.rank}")
        sizes, have = spec.shape, gradient.shape[: spec.rank]
    else:
        rank = len(spec.padded_shape)
        require(all(dim < rank for dim in dims), f"dimensions {list(dims)} are beyond rank {rank}")
        require(rank >= 2, f"the input has rank {rank}, it must be at least 2")
        kept = [axis for axis in range(spec.rank) if axis not in dims or axis >= rank - 2]
        sizes = tuple(1 if axis in dims else spec.shape[axis] for axis in kept)
        have = gradient.shape
        require(len(sizes) == len(have), f"the gradient has rank {len(have)}, not {len(sizes)}")
    fits = all(size >= other for size, other in zip(sizes, have))
    require(fits, f"the gradient has shape {list(have)}, larger than {list(sizes)}")


@operation("ttnn.moreh_sum_backward", ignores=("compute_kernel_config",))
def moreh_sum_backward(output_grad, *, input=None, dim=None, keepdim=False, input_grad=None, memory_config=None):
    """The gradient of moreh_sum: the gradient of its output, broadcast."""
    require(input is not None or input_grad is not None, "either input or input_grad is needed")
    given = input if input is not None else input_grad
    dims = sorted(dims_of(dim, given.rank))
    require_operand(output_grad, "output_grad")
    require_operand(input_grad, "input_grad")
    require_operand(input, "input")
    if input is not None:
        _require_gradient(output_grad, input, dims, keepdim)
        same = input_grad is None or input_grad.padded_shape == input.padded_shape
        require(same, "input and input_grad must have the same padded shape")
    out = input_grad if input_grad is not None else tiled(input, input.shape, memory_config, output_grad)
    shape = _gradient_shape(output_grad, out, dims, keepdim)
    return Plan(
        out,
        lambda x: torch.broadcast_to(_put_back(x, shape), out.shape).clone(),
        reads=("output_grad",),
        into=into(input_grad, "input_grad"),
    )


@operation("ttnn.moreh_mean_backward")
def moreh_mean_backward(
    output_grad,
    *,
    dim=None,
    keepdim=False,
    input_grad_shape=None,
    input_grad=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The gradient of moreh_mean: the gradient of its output, broadcast and divided."""
    known = input_grad is not None or input_grad_shape is not None
    require(known, "input_grad or input_grad_shape is needed")
    require_operand(output_grad, "output_grad")
    require_operand(input_grad, "input_grad")
    rank = output_grad.rank
    if not keepdim and dim is not None:
        rank += 1 if isinstance(dim, int) else len(dim)
    dims = dims_of(dim, rank)
    out = input_grad if input_grad is not None else tiled(output_grad, input_grad_shape, memory_config)
    shape = _gradient_shape(output_grad, out, dims, keepdim)
    require(all(-out.rank <= each < out.rank for each in dims), f"dimensions {dims} are beyond rank {out.rank}")
    divisor = math.prod(out.shape[each] for each in dims)
    config = settings_of(compute_kernel_config)
    return Plan(
        out,
        lambda x: numeric.spread(_put_back(x, shape), out.shape, config, divisor),
        reads=("output_grad",),
        into=into(input_grad, "input_grad"),
    )


# -- powers and norms -------------------------------------------------------------------------------------------------


@operation("ttnn.moreh_abs_pow")
def moreh_abs_pow(input, p, *, output=None, memory_config=None, compute_kernel_config=None):
    """|x|^p."""
    require_operand(input, "the input", SUMMABLE)
    require_operand(output, "the output", SUMMABLE)
    out = output if output is not None else input.with_(memory_config=memory_config or input.memory_config)
    config = settings_of(compute_kernel_config)

    def compute(x: torch.Tensor) -> torch.Tensor:
        for spec in (input, out):
            if spec.dtype not in FLOAT_DTYPES:
                raise ChipFault(f"the kernel takes the bits of {spec.dtype} for a float")
        return numeric.absolute_power(x, p, config)

    return Plan(out, compute, reads=("input",), into=into(output, "output"))


@composite("ttnn.moreh_norm")
def moreh_norm(
    input, p, *, dim=None, keepdim=False, output=None, memory_config=None, compute_kernel_config=None
) -> Tensor:
    """The norm of order p over dimensions."""
    dims = dims_of(dim, len(input.shape))
    options = {"memory_config": memory_config, "compute_kernel_config": compute_kernel_config}
    if p != 0.0 and not math.isinf(p):
        powers = ttnn.moreh_abs_pow(input, p, **options)
        total = ttnn.moreh_sum(powers, dims, keepdim=keepdim, **options)
        return ttnn.moreh_abs_pow(total, 1.0 / p, output=output, **options)
    require(bool(dims), "there is no dimension to take the norm over")
    if len(dims) == 1:
        return norm_along(input, p, dims[0], keepdim, output, **options)
    first, *rest = sorted(dims, reverse=True)
    made = norm_along(input, p, first, keepdim, **options)
    if p == 0.0:
        return ttnn.moreh_sum(made, rest, keepdim=keepdim, output=output, **options)
    for axis in rest[:-1]:
        made = norm_along(made, p, axis, keepdim, **options)
    return norm_along(made, p, rest[-1], keepdim, output, **options)


@operation("ttnn.moreh_norm_backward")
def moreh_norm_backward(
    input,
    output,
    output_grad,
    p,
    *,
    dim=None,
    keepdim=False,
    input_grad=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The gradient of moreh_norm."""
    for spec, name in ((input, "input"), (output, "output"), (output_grad, "output_grad"), (input_grad, "input_grad")):
        require_operand(spec, name)
    out = input_grad if input_grad is not None else input.with_(memory_config=memory_config or input.memory_config)
    shape = _gradient_shape(output_grad, out, dims_of(dim, input.rank), keepdim)
    config = settings_of(compute_kernel_config)

    def compute(x: torch.Tensor, norm: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        return numeric.norm_gradient(x, _put_back(norm, shape), _put_back(gradient, shape), p, config)

    reads = ("input", "output", "output_grad")
    return Plan(out, compute, reads=reads, into=into(input_grad, "input_grad"))
