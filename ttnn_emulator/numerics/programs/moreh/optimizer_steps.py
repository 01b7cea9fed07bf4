"""Optimizer steps and the negative log likelihood, as the `moreh` kernels compute them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.programs.moreh.sums_and_powers import BF16, chained, raised, scalar, split_power
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig


@dataclass(frozen=True)
class Adam:
    """The parameters of a step. `decoupled`: weight decay applies to the parameters, not to the gradient (AdamW)."""

    lr: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    step: int
    decoupled: bool


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_adam/device/kernels/moreh_adam.cpp, kernel_main
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_adamw/device/kernels/moreh_adamw.cpp, kernel_main
def adam(
    param: torch.Tensor,
    gradient: torch.Tensor,
    average: torch.Tensor,
    average_square: torch.Tensor,
    largest: torch.Tensor | None,
    settings: Adam,
    config: MathConfig,
    dtype: DataType,
) -> list[torch.Tensor]:
    """New parameters, averages of gradients and of squared gradients, and with AMSGrad the maximum of the latter."""
    core = Core.of(config, param.numel())
    middle = core.middle if core.wide else dtype

    def buffered(dest: torch.Tensor) -> torch.Tensor:
        return core.through(dest, middle)

    def constant(value: float) -> torch.Tensor:
        return scalar(core, value, core.middle)

    def apply(name: str, dest: torch.Tensor, *params: float) -> torch.Tensor:
        return buffered(core.apply(name, dest, *params, approx=config.approx))

    decay, lr, one = constant(settings.weight_decay), constant(settings.lr), constant(1.0)
    if settings.decoupled:
        param = buffered(core.sub(param, buffered(core.mul(lr, buffered(core.mul(decay, param))))))
    else:
        gradient = buffered(core.add(gradient, buffered(core.mul(param, decay))))
    betas = [constant(settings.beta1), constant(settings.beta2)]
    complements = [buffered(core.sub(one, beta)) for beta in betas]
    average = buffered(core.add(buffered(core.mul(average, betas[0])), buffered(core.mul(gradient, complements[0]))))
    square = buffered(core.mul(complements[1], buffered(core.mul(gradient, gradient))))
    average_square = buffered(core.add(buffered(core.mul(average_square, betas[1])), square))
    outputs = [core.packed(average, dtype), core.packed(average_square, dtype)]
    if settings.decoupled:
        exact = [float(np.float32(beta) ** settings.step) for beta in (settings.beta1, settings.beta2)]
        powers = [constant(each) for each in exact]
    else:
        powers = [apply("power_iterative", beta, float(settings.step)) for beta in betas]
    corrections = [apply("recip", core.sub(one, power)) for power in powers]
    measure = average_square
    if largest is not None:
        measure = torch.maximum(largest, average_square)
        outputs.append(core.packed(measure, dtype))
    root = apply("sqrt", core.mul(measure, corrections[1]))
    inverse = apply("recip", core.add(root, constant(settings.epsilon)))
    move = buffered(core.mul(buffered(core.mul(lr, corrections[0])), average))
    return [core.packed(core.sub(param, buffered(core.mul(inverse, move))), dtype), *outputs]


@dataclass(frozen=True)
class Sgd:
    """The parameters of a step; `started`: there is a momentum from the previous step."""

    lr: float
    momentum: float
    dampening: float
    weight_decay: float
    nesterov: bool
    started: bool


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_sgd/device/kernels/moreh_sgd.cpp, kernel_main
def sgd(
    param: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor | None, settings: Sgd, config: MathConfig
) -> list[torch.Tensor]:
    """New parameters and, with momentum, the new momentum."""
    core = Core.of(config, param.numel())
    numbers = {name: scalar(core, getattr(settings, name)) for name in ("lr", "momentum", "dampening", "weight_decay")}
    outputs = []
    if settings.weight_decay:
        gradient = core.through(core.add(gradient, core.through(core.mul(param, numbers["weight_decay"]))))
    step = gradient
    if settings.momentum:
        if settings.started and momentum is not None:
            share = core.through(core.sub(scalar(core, 1.0), numbers["dampening"]))
            new = core.through(core.mul(gradient, share))
            step = core.through(core.add(new, core.through(core.mul(momentum, numbers["momentum"]))))
        outputs.append(core.packed(step, BF16))
        if settings.nesterov:
            step = core.through(core.add(core.through(core.mul(step, numbers["momentum"])), gradient))
    moved = core.sub(param, core.through(core.mul(numbers["lr"], step)))
    return [core.packed(moved, BF16), *outputs]


# -- clipping ---------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_clip_grad_norm/moreh_clip_grad_norm_step2/device/kernels/moreh_clip_grad_norm_step2_kernel.cpp, kernel_main  # noqa: E501
def total_norm(totals: torch.Tensor, power: float, config: MathConfig) -> torch.Tensor:
    """The norm of all gradients from their power sums."""
    core = Core.of(config, totals.numel())
    return core.packed(raised(core, chained(core, list(totals.reshape(-1).unbind(0))), split_power(1.0 / power)), BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_clip_grad_norm/moreh_clip_grad_norm_step3/device/kernels/moreh_clip_grad_norm_step3_kernel.cpp, kernel_main  # noqa: E501
def clipped(values: torch.Tensor, factor: torch.Tensor, config: MathConfig) -> torch.Tensor:
    core = Core.of(config, values.numel())
    return core.packed(core.mul(values, factor.reshape(())), BF16)


# -- negative log likelihood ------------------------------------------------------------------------------------------


def chosen(values: torch.Tensor, target: torch.Tensor, ignored: int) -> tuple[torch.Tensor, torch.Tensor]:
    """values[target] for every target, and which targets are valid."""
    valid = (target >= 0) & (target < values.shape[0]) & (target != ignored)
    return torch.where(valid, values[torch.where(valid, target, 0)], 0.0), valid


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_nll_loss/moreh_nll_loss_step2/device/kernels/moreh_nll_loss_step2_kernel.cpp, kernel_main  # noqa: E501
def likelihood(
    picked: torch.Tensor, weights: torch.Tensor | None, divisor: torch.Tensor | None, config: MathConfig
) -> torch.Tensor:
    """-picked × weights ÷ divisor."""
    core = Core.of(config, picked.numel())
    result = -picked
    if weights is not None:
        result = core.mul(core.source(result, core.middle), weights)
    if divisor is not None:
        inverse = core.through(core.apply("recip", divisor.reshape(()), approx=config.approx))
        result = core.mul(core.through(result), inverse)
    return core.packed(result, BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_nll_loss_backward/device/kernels/moreh_nll_loss_backward_kernel.cpp, kernel_main  # noqa: E501
def likelihood_gradient(
    weights: torch.Tensor, gradient: torch.Tensor, divisor: torch.Tensor | None, config: MathConfig
) -> torch.Tensor:
    """-weights × gradient ÷ divisor; the gradient is a scalar, or has one value per target."""
    core = Core.of(config, weights.numel())
    result = -core.mul(weights, gradient)
    if divisor is not None:
        inverse = core.through(core.apply("recip", divisor.reshape(()), approx=config.approx))
        result = core.mul(core.through(result), inverse)
    return core.packed(result, BF16)
