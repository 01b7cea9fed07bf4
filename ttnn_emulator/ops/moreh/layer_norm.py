"""moreh_layer_norm and moreh_group_norm with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation
from ttnn_emulator.numerics.programs.moreh.norms import (
    Blocks,
    block_norm,
    block_norm_input_gradient,
    block_norm_weight_gradients,
)
from ttnn_emulator.ops.moreh.checks import canonical, require_operand, settings_of, tiled
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec


def _of(places: Sequence[int], count: int) -> Callable[[list[Any]], list[Any]]:
    """Place outputs in a list of length `count`, None elsewhere."""

    def wrap(tensors: list[Any]) -> list[Any]:
        row: list[Any] = [None] * count
        for index, tensor in zip(places, tensors):
            row[index] = tensor
        return row

    return wrap


def _plan(
    outputs: Sequence[Spec | None],
    names: Sequence[str],
    given: Sequence[Spec | None],
    compute: Callable[..., Sequence[torch.Tensor | None]],
    reads: Sequence[str],
) -> Plan:
    """A plan of several optional outputs; preallocated ones receive the result."""
    places = [index for index, spec in enumerate(outputs) if spec is not None]
    shapes = [spec.shape for spec in outputs if spec is not None]

    def run(*values: torch.Tensor | None) -> list[torch.Tensor]:
        made = compute(*values)
        return [made[index].reshape(shape) for index, shape in zip(places, shapes)]  # type: ignore[union-attr]

    return Plan(
        [spec for spec in outputs if spec is not None],
        run,
        reads=tuple(reads),
        into=tuple(names[index] if given[index] is not None else None for index in places),
        wrap=_of(places, len(outputs)),
    )


# -- layer norm -------------------------------------------------------------------------------------------------------


def _require_dims(spec: Spec, dims: int) -> None:
    rank = len(spec.padded_shape)
    require(0 < dims <= rank, f"normalized_dims is {dims}, not between 1 and {rank}")
    require(dims <= spec.rank, f"normalized_dims is {dims}, the input has rank {spec.rank}")


def _as_blocks(spec: Spec, dims: int) -> Blocks:
    return Blocks(canonical(spec.shape), min(dims, len(canonical(spec.shape))))


def _require_shape(spec: Spec | None, name: str, shape: Sequence[int]) -> None:
    if spec is not None:
        fits = canonical(spec.shape) == canonical(shape)
        require(fits, f"{name} has shape {list(spec.shape)}, not {list(canonical(shape))}")


@operation("ttnn.moreh_layer_norm")
def moreh_layer_norm(
    input,
    normalized_dims,
    eps=1e-5,
    gamma=None,
    beta=None,
    *,
    output=None,
    mean=None,
    rstd=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """Normalise the last dimensions, × gamma + beta; mean and 1 ÷ standard deviation on request."""
    require_operand(input, "input")
    _require_dims(input, normalized_dims)
    statistics = (1,) * (len(input.padded_shape) - input.rank) + input.shape
    statistics = statistics[: len(statistics) - normalized_dims]
    for spec, name in ((gamma, "gamma"), (beta, "beta"), (mean, "mean"), (rstd, "rstd")):
        require_operand(spec, name)
    for spec, name in ((mean, "mean"), (rstd, "rstd")):
        _require_shape(spec, name, statistics)
    blocks, config = _as_blocks(input, normalized_dims), settings_of(compute_kernel_config)
    width = blocks.shape[-blocks.dims :]

    def compute(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> Sequence[torch.Tensor]:
        shaped = [None if each is None else each.reshape(width) for each in (weight, bias)]
        return block_norm(x, blocks, config, eps, *shaped)

    made = output if output is not None else tiled(input, input.shape, memory_config)
    given = (output, mean, rstd)
    return _plan((made, mean, rstd), ("output", "mean", "rstd"), given, compute, ("input", "gamma", "beta"))


def _require_backward(
    gradient: Spec, spec: Spec, mean: Spec, rstd: Spec, dims: int, others: Sequence[tuple[Spec | None, str]]
) -> tuple[int, ...]:
    """Checks shared by both gradients; returns the shape of gamma and beta."""
    named = ((gradient, "output_grad"), (spec, "input"), (mean, "mean"), (rstd, "rstd"))
    for each, name in (*named, *others):
        require_operand(each, name)
    _require_dims(spec, dims)
    require(gradient.shape == spec.shape, f"output_grad has shape {list(gradient.shape)}, input {list(spec.shape)}")
    split = spec.rank - min(dims, spec.rank)
    _require_shape(mean, "mean", spec.shape[:split])
    _require_shape(rstd, "rstd", spec.shape[:split])
    return spec.shape[split:]


@internal("ttnn.prim.moreh_layer_norm_backward_input_grad")
def layer_norm_input_gradient(
    output_grad: Spec,
    input_tensor: Spec,
    mean: Spec,
    rstd: Spec,
    normalized_dims,
    input_grad: Spec | None = None,
    gamma: Spec | None = None,
    compute_kernel_config=None,
):
    """The gradient of the input of moreh_layer_norm."""
    others = ((input_grad, "input_grad"), (gamma, "gamma"))
    width = _require_backward(output_grad, input_tensor, mean, rstd, normalized_dims, others)
    require(input_grad is not None and input_grad.shape == input_tensor.shape, "input_grad must have input's shape")
    _require_shape(gamma, "gamma", width)
    blocks, config = _as_blocks(input_tensor, normalized_dims), settings_of(compute_kernel_config)

    def compute(dy, x, average, inverse, weight):
        shaped = None if weight is None else weight.reshape(blocks.shape[-blocks.dims :])
        return block_norm_input_gradient(dy, x, average, inverse, blocks, config, shaped)

    reads = ("output_grad", "input_tensor", "mean", "rstd", "gamma")
    return Plan(input_grad, compute, reads=reads, into=into(input_grad, "input_grad"))


@internal("ttnn.prim.moreh_layer_norm_backward_gamma_beta_grad")
def layer_norm_weight_gradients(
    output_grad: Spec,
    input_tensor: Spec,
    mean: Spec,
    rstd: Spec,
    normalized_dims,
    gamma_grad: Spec | None = None,
    beta_grad: Spec | None = None,
    compute_kernel_config=None,
):
    """The gradients of gamma and beta of moreh_layer_norm."""
    others = ((gamma_grad, "gamma_grad"), (beta_grad, "beta_grad"))
    width = _require_backward(output_grad, input_tensor, mean, rstd, normalized_dims, others)
    for spec, name in others:
        _require_shape(spec, name, width)
    blocks, config = _as_blocks(input_tensor, normalized_dims), settings_of(compute_kernel_config)

    def compute(dy, x, average, inverse):
        return block_norm_weight_gradients(dy, x, average, inverse, blocks, config)

    outputs = (gamma_grad, beta_grad)
    return _plan(
        outputs, ("gamma_grad", "beta_grad"), outputs, compute, ("output_grad", "input_tensor", "mean", "rstd")
    )


@composite("ttnn.moreh_layer_norm_backward", ignores=("memory_config",))
def moreh_layer_norm_backward(
    output_grad,
    input,
    mean,
    rstd,
    normalized_dims,
    *,
    gamma=None,
    input_grad=None,
    gamma_grad=None,
    beta_grad=None,
    compute_kernel_config=None,
):
    """The gradients with preallocated tensors."""
    operands = (output_grad, input, mean, rstd, normalized_dims)
    outputs: list[Any] = [None, None, None]
    if input_grad is not None:
        outputs[0] = layer_norm_input_gradient(*operands, input_grad, gamma, compute_kernel_config)
    if gamma_grad is not None or beta_grad is not None:
        outputs[1:] = layer_norm_weight_gradients(*operands, gamma_grad, beta_grad, compute_kernel_config)
    return outputs


# -- group norm -------------------------------------------------------------------------------------------------------


def _require_groups(groups: int, *sizes: tuple[int, str]) -> None:
    require(groups > 0, f"num_groups is {groups}, at least 1 is needed")
    for size, name in sizes:
        require(size % groups == 0, f"{size} channels of {name} are not a multiple of num_groups, {groups}")


def _channels(spec: Spec | None, name: str, index: int) -> tuple[tuple[int, str], ...]:
    if spec is None:
        return ()
    sizes = spec.padded_shape if index == 1 else spec.shape
    return ((sizes[index], name),)


def _group_blocks(spec: Spec, groups: int) -> Blocks:
    batch, channels, height, width = spec.shape
    return Blocks((batch, groups, channels // groups, height, width), 3)


def _by_channel(values: torch.Tensor | None, spec: Spec, groups: int) -> torch.Tensor | None:
    """One value per channel, broadcast over the blocks of its group."""
    if values is None:
        return None
    batch, channels = spec.shape[:2]
    row = values.reshape(-1)[:channels].reshape(1, groups, channels // groups, 1, 1)
    return row.expand(batch, -1, -1, 1, 1).reshape(-1, channels // groups, 1, 1)


@operation("ttnn.moreh_group_norm", ignores=("mean_memory_config", "rstd_memory_config"))
def moreh_group_norm(
    input,
    num_groups,
    eps=1e-5,
    gamma=None,
    beta=None,
    *,
    are_required_outputs=(True, False, False),
    output=None,
    mean=None,
    rstd=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """Normalise groups of channels of [N, C, H, W], × gamma + beta."""
    named = ((input, "input"), (output, "output"), (mean, "mean"), (rstd, "rstd"), (gamma, "gamma"), (beta, "beta"))
    for spec, name in named:
        require_operand(spec, name)
    _require_groups(
        num_groups,
        *_channels(input, "input", 1),
        *_channels(output, "output", 1),
        *_channels(gamma, "gamma", -1),
        *_channels(beta, "beta", -1),
    )
    for spec, name in ((mean, "mean"), (rstd, "rstd")):
        if spec is not None:
            require(spec.shape[-1] == num_groups, f"{name} is {spec.shape[-1]} wide, not {num_groups}")
    made = output if output is not None else tiled(input, input.shape, memory_config)
    statistics = tiled(input, (1, 1, input.shape[0], num_groups), memory_config)
    asked = [
        spec if spec is not None else (statistics if wanted else None)
        for spec, wanted in zip((mean, rstd), are_required_outputs[1:])
    ]
    require(input.rank >= 4, f"the input has rank {input.rank}, it must be at least 4")
    config = settings_of(compute_kernel_config)
    blocks = _group_blocks(input, num_groups) if input.rank == 4 else None

    def compute(x, weight, bias):
        if blocks is None:
            raise ChipFault(f"of a shape of rank {input.rank} the kernel takes dimensions 2 and 3 for height and width")
        by_channel = (_by_channel(each, input, num_groups) for each in (weight, bias))
        return block_norm(x, blocks, config, eps, *by_channel, buffers=DataType.BFLOAT16)

    return _plan((made, *asked), ("output", "mean", "rstd"), (output, mean, rstd), compute, ("input", "gamma", "beta"))


def _require_group_backward(
    gradient: Spec, spec: Spec, mean: Spec, rstd: Spec, groups: int, others: Sequence[tuple[Spec | None, str, int]]
) -> None:
    named = ((gradient, "output_grad"), (spec, "input"), (mean, "mean"), (rstd, "rstd"))
    for each, name in (*named, *((other, name) for other, name, _ in others)):
        require_operand(each, name)
    sizes = [*_channels(gradient, "output_grad", 1), *_channels(spec, "input", 1)]
    for other in others:
        sizes += _channels(*other)
    _require_groups(groups, *sizes)
    for each, name in ((mean, "mean"), (rstd, "rstd")):
        require(each.shape[-1] == groups, f"{name} is {each.shape[-1]} wide, not {groups}")
        count = gradient.shape[0] * groups
        require(each.volume == count, f"{name} has {each.volume} values, expected are {count}")


@internal("ttnn.prim.moreh_group_norm_backward_input_grad")
def group_norm_input_gradient(
    output_grad: Spec,
    input_tensor: Spec,
    mean: Spec,
    rstd: Spec,
    num_groups,
    gamma: Spec | None = None,
    input_grad: Spec | None = None,
    memory_config=None,
    compute_kernel_config=None,
):
    """The gradient of the input of moreh_group_norm."""
    others = ((input_grad, "input_grad", 1), (gamma, "gamma", -1))
    _require_group_backward(output_grad, input_tensor, mean, rstd, num_groups, others)
    out = input_grad if input_grad is not None else tiled(output_grad, output_grad.shape, memory_config)
    blocks, config = _group_blocks(input_tensor, num_groups), settings_of(compute_kernel_config)

    def compute(dy, x, average, inverse, weight):
        shaped = _by_channel(weight, input_tensor, num_groups)
        return block_norm_input_gradient(dy, x, average, inverse, blocks, config, shaped)

    reads = ("output_grad", "input_tensor", "mean", "rstd", "gamma")
    return Plan(out, compute, reads=reads, into=into(input_grad, "input_grad"))


@internal("ttnn.prim.moreh_group_norm_backward_gamma_beta_grad")
def group_norm_weight_gradients(
    output_grad: Spec,
    input_tensor: Spec,
    mean: Spec,
    rstd: Spec,
    num_groups,
    wanted,
    gamma_grad: Spec | None = None,
    beta_grad: Spec | None = None,
    gamma_memory: MemoryConfig | None = None,
    beta_memory: MemoryConfig | None = None,
    compute_kernel_config=None,
):
    """The gradients of gamma and beta of moreh_group_norm."""
    others = ((gamma_grad, "gamma_grad", -1), (beta_grad, "beta_grad", -1))
    _require_group_backward(output_grad, input_tensor, mean, rstd, num_groups, others)
    channels = input_tensor.shape[1]
    outputs: list[Spec | None] = [None, None]
    for index, (given, memory) in enumerate(((gamma_grad, gamma_memory), (beta_grad, beta_memory))):
        if wanted[index]:
            outputs[index] = given if given is not None else tiled(output_grad, (1, 1, 1, channels), memory)
    blocks, config = _group_blocks(input_tensor, num_groups), settings_of(compute_kernel_config)

    def compute(dy, x, average, inverse):
        return block_norm_weight_gradients(dy, x, average, inverse, blocks, config, channels)

    return _plan(
        outputs,
        ("gamma_grad", "beta_grad"),
        (gamma_grad, beta_grad),
        compute,
        ("output_grad", "input_tensor", "mean", "rstd"),
    )


@composite("ttnn.moreh_group_norm_backward")
def moreh_group_norm_backward(
    output_grad,
    input,
    mean,
    rstd,
    num_groups,
    *,
    are_required_outputs=(True, False, False),
    gamma=None,
    input_grad=None,
    gamma_grad=None,
    beta_grad=None,
    input_grad_memory_config=None,
    gamma_grad_memory_config=None,
    beta_grad_memory_config=None,
    compute_kernel_config=None,
):
    """The requested gradients."""
    operands = (output_grad, input, mean, rstd, num_groups)
    outputs: list[Any] = [None, None, None]
    if are_required_outputs[0]:
        outputs[0] = group_norm_input_gradient(
            *operands, gamma, input_grad, input_grad_memory_config, compute_kernel_config
        )
    if are_required_outputs[1] or are_required_outputs[2]:
        outputs[1:] = group_norm_weight_gradients(
            *operands,
            tuple(are_required_outputs[1:3]),
            gamma_grad,
            beta_grad,
            gamma_grad_memory_config,
            beta_grad_memory_config,
            compute_kernel_config,
        )
    return outputs
