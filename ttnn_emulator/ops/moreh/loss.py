"""moreh_nll_loss and its gradients."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import truncate_bf16
from ttnn_emulator.numerics.programs.moreh.optimizer_steps import chosen, likelihood, likelihood_gradient
from ttnn_emulator.ops.moreh.checks import require_operand, settings_of, tiled
from ttnn_emulator.ops.support.common_checks import into, require_on_device, require_tile
from ttnn_emulator.tensors.spec import Spec

TARGET = (DataType.INT32,)
ANY_NEGATIVE = -1  # a negative ignore_index reaches the kernel as the largest unsigned integer


def _ignored(index: int) -> int:
    return ANY_NEGATIVE if index < 0 else index


# -- forward ----------------------------------------------------------------------------------------------------------


@internal("ttnn.prim.moreh_nll_loss_step1")
def weights_of_targets(target: Spec, weight: Spec | None, ignore_index, dtype, channels, memory_config=None):
    """The weight of every target's class: 1 without weights, 0 for what is ignored."""
    require_on_device(target, "target_tensor")
    require_tile(target, "target_tensor")
    if weight is not None:
        require_on_device(weight, "weight_tensor")
        require(weight.dtype is DataType.BFLOAT16, f"weight_tensor is {weight.dtype}, it must be BFLOAT16")
    out = tiled(target, target.shape, memory_config).with_(dtype=dtype)

    def compute(classes: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
        table = torch.ones(channels) if weights is None else weights.reshape(-1)
        return chosen(table[:channels], classes.to(torch.int64), _ignored(ignore_index))[0]

    return Plan(out, compute, reads=("target", "weight"))


@internal("ttnn.prim.moreh_nll_loss_step2")
def losses(
    input_tensor: Spec,
    target: Spec,
    weight: Spec | None,
    divisor: Spec | None,
    output: Spec | None,
    ignore_index,
    memory_config=None,
    compute_kernel_config=None,
):
    """The loss of every target."""
    require_operand(input_tensor, "input_tensor")
    require_operand(target, "target_tensor", TARGET)
    require_operand(weight, "weight_tensor")
    require_operand(divisor, "divisor_tensor")
    sizes = (input_tensor.shape[0], *input_tensor.shape[2:])
    if len(input_tensor.padded_shape) == 2:
        sizes = (1, *sizes)
    out = output if output is not None else tiled(input_tensor, sizes, memory_config)
    config = settings_of(compute_kernel_config)

    def compute(x, classes, weights, by):
        # One row per class, one column per target.
        table = x.movedim(1, 0).reshape(x.shape[1], -1)
        flat = classes.to(torch.int64).reshape(-1)
        valid = (flat >= 0) & (flat < table.shape[0]) & (flat != _ignored(ignore_index))
        picked = torch.where(valid, table.gather(0, torch.where(valid, flat, 0).unsqueeze(0)).squeeze(0), 0.0)
        factors = None if weights is None else chosen(weights.reshape(-1), flat, _ignored(ignore_index))[0]
        return likelihood(picked, factors, by, config).reshape(out.shape)

    return Plan(out, compute, reads=("input_tensor", "target", "weight", "divisor"), into=into(output, "output"))


@composite("ttnn.moreh_nll_loss")
def moreh_nll_loss(
    input_tensor,
    target_tensor,
    reduction,
    *,
    weight_tensor=None,
    divisor_tensor=None,
    output_tensor=None,
    ignore_index=-100,
    memory_config=None,
    compute_kernel_config=None,
):
    """The negative log likelihood of targets: of each, or their sum, or their mean by weight."""
    options = {"memory_config": memory_config, "compute_kernel_config": compute_kernel_config}
    if reduction not in ("mean", "sum"):
        output = output_tensor if reduction == "none" else None
        return losses(input_tensor, target_tensor, weight_tensor, None, output, ignore_index, **options)
    if reduction == "mean":
        require(divisor_tensor is not None, "the mean needs divisor_tensor")
        dtype = output_tensor.dtype if output_tensor is not None else input_tensor.dtype
        channels = input_tensor.padded_shape[1]
        weights = weights_of_targets(target_tensor, weight_tensor, ignore_index, dtype, channels, memory_config)
        ttnn.moreh_sum(weights, None, output=divisor_tensor, **options)
    else:
        divisor_tensor = None
    each = losses(input_tensor, target_tensor, weight_tensor, divisor_tensor, None, ignore_index, **options)
    return ttnn.moreh_sum(each, None, output=output_tensor, **options)


# -- backward ---------------------------------------------------------------------------------------------------------


def _require_backward(target: Spec, gradient: Spec, weight: Spec | None, out: Spec | None) -> None:
    require_operand(target, "target_tensor", TARGET)
    require_operand(gradient, "output_grad_tensor")
    require_operand(out, "input_grad_tensor")
    require_operand(weight, "weight_tensor")
    require(out is not None, "input_grad_tensor is needed: nothing else tells the number of classes")


def _where_chosen(classes: torch.Tensor, weights: torch.Tensor | None, out: Spec, index: int) -> torch.Tensor:
    """Of the input's shape: the weight of a class where a target names it, zero elsewhere."""
    channels = out.shape[1]
    table = torch.ones(channels) if weights is None else weights.reshape(-1)[:channels]
    flat = classes.to(torch.int64).reshape(-1)
    values, valid = chosen(table, flat, _ignored(index))
    rows = torch.zeros(channels, flat.numel()).scatter_(
        0, torch.where(valid, flat, 0).unsqueeze(0), values.unsqueeze(0)
    )
    return rows.reshape(channels, out.shape[0], *out.shape[2:]).movedim(0, 1)


@operation("ttnn.moreh_nll_loss_backward", ignores=("memory_config", "reduction_mean"))
def moreh_nll_loss_backward(
    target_tensor,
    output_grad_tensor,
    *,
    weight_tensor=None,
    input_grad_tensor=None,
    divisor_tensor=None,
    ignore_index=-100,
    compute_kernel_config=None,
):
    """The gradient of the summed or averaged loss; averaged if there is a divisor."""
    _require_backward(target_tensor, output_grad_tensor, weight_tensor, input_grad_tensor)
    require_operand(divisor_tensor, "divisor_tensor")
    config = settings_of(compute_kernel_config)

    def compute(classes, gradient, weights, by):
        placed = _where_chosen(classes, weights, input_grad_tensor, ignore_index)
        return likelihood_gradient(placed, gradient.reshape(-1)[0], by, config)

    reads = ("target_tensor", "output_grad_tensor", "weight_tensor", "divisor_tensor")
    return Plan(input_grad_tensor, compute, reads=reads, into=("input_grad_tensor",))


@operation("ttnn.moreh_nll_loss_unreduced_backward", ignores=("memory_config", "compute_kernel_config"))
def moreh_nll_loss_unreduced_backward(
    target_tensor, output_grad_tensor, *, weight_tensor=None, input_grad_tensor=None, ignore_index=-100
):
    """The gradient of the loss of every target."""
    _require_backward(target_tensor, output_grad_tensor, weight_tensor, input_grad_tensor)

    def compute(classes, gradient, weights):
        placed = _where_chosen(classes, weights, input_grad_tensor, ignore_index)
        shape = (input_grad_tensor.shape[0], 1, *input_grad_tensor.shape[2:])
        return truncate_bf16(torch.where(placed == 0, 0.0, -gradient.reshape(shape) * placed))

    reads = ("target_tensor", "output_grad_tensor", "weight_tensor")
    return Plan(input_grad_tensor, compute, reads=reads, into=("input_grad_tensor",))
