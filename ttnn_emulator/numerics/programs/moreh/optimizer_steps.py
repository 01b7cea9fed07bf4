"""Steps of optimizers and the negative log likelihood as the `moreh` kernels compute them."""

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
    """The numbers of a step. `decoupled`: the decay goes off the parameters, not onto the gradient."""

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
    """New parameters, averages of gradients and of their squares, and the largest of the latter if one is kept."""
    core = Core.of(config, param.numel())
    middle = core.middle if core.wide else dtype

    def kept(dest: torch.Tensor) -> torch.Tensor:
        return core.through(dest, middle)

    def number(value: float) -> torch.Tensor:
        return scalar(core, value, core.middle)

    def apply(name: str, dest: torch.Tensor, *params: float) -> torch.Tensor:
        return kept(core.apply(name, dest, *params, approx=config.approx))

    decay, lr, one = number(settings.weight_decay), number(settings.lr), number(1.0)
    if settings.decoupled:
        param = kept(core.sub(param, kept(core.mul(lr, kept(core.mul(decay, param))))))
    else:
        gradient = kept(core.add(gradient, kept(core.mul(param, decay))))
    betas = [number(settings.beta1), number(settings.beta2)]
    complements = [kept(core.sub(one, beta)) for beta in betas]
    average = kept(core.add(kept(core.mul(average, betas[0])), kept(core.mul(gradient, complements[0]))))
    square = kept(core.mul(complements[1], kept(core.mul(gradient, gradient))))
    average_square = kept(core.add(kept(core.mul(average_square, betas[1])), square))
    outputs = [core.packed(average, dtype), core.packed(average_square, dtype)]
    if settings.decoupled:
        exact = [float(np.float32(beta) ** settings.step) for beta in (settings.beta1, settings.beta2)]
        powers = [number(each) for each in exact]
    else:
        powers = [apply("power_iterative", beta, float(settings.step)) for beta in betas]
    corrections = [apply("recip", core.sub(one, power)) for power in powers]
    measure = average_square
    if largest is not None:
        measure = torch.maximum(largest, average_square)
        outputs.append(core.packed(measure, dtype))
    root = apply("sqrt", core.mul(measure, corrections[1]))
    inverse = apply("recip", core.add(root, number(settings.epsilon)))
    move = kept(core.mul(kept(core.mul(lr, corrections[0])), average))
    return [core.packed(core.sub(param, kept(core.mul(inverse, move))), dtype), *outputs]


@dataclass(frozen=True)
class Sgd:
    """The numbers of a step; `started`: there is a momentum from the step before."""

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
    """The norm of all gradients from the power sums of each."""
    core = Core.of(config, totals.numel())
    return core.packed(raised(core, chained(core, list(totals.reshape(-1).unbind(0))), split_power(1.0 / power)), BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_clip_grad_norm/moreh_clip_grad_norm_step3/device/kernels/moreh_clip_grad_norm_step3_kernel.cpp, kernel_main  # noqa: E501
def clipped(values: torch.Tensor, factor: torch.Tensor, config: MathConfig) -> torch.Tensor:
    core = Core.of(config, values.numel())
    return core.packed(core.mul(values, factor.reshape(())), BF16)


# -- negative log likelihood ------------------------------------------------------------------------------------------


def chosen(values: torch.Tensor, target: torch.Tensor, ignored: int) -> tuple[torch.Tensor, torch.Tensor]:
    """values[target] for every target, and which targets count at all."""
    valid = (target >= 0) & (target < values.shape[0]) & (target != ignored)
    return torch.where(valid, values[torch.where(valid, target, 0)], 0.0), valid


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_nll_loss/moreh_nll_loss_step2/device/kernels/moreh_nll_loss_step2_kernel.cpp, kernel_main  # noqa: E501
def likelihood(
    picked: torch.Tensor, weights: torch.Tensor | None, divisor: torch.Tensor | None, config: MathConfig
) -> torch.Tensor:
    """-picked × weights ÷ divisor."""
    core = Core.of(config, picked.numel())
    made = -picked
    if weights is not None:
        made = core.mul(core.source(made, core.middle), weights)
    if divisor is not None:
        inverse = core.through(core.apply("recip", divisor.reshape(()), approx=config.approx))
        made = core.mul(core.through(made), inverse)
    return core.packed(made, BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_nll_loss_backward/device/kernels/moreh_nll_loss_backward_kernel.cpp, kernel_main  # noqa: E501
def likelihood_gradient(
    weights: torch.Tensor, gradient: torch.Tensor, divisor: torch.Tensor | None, config: MathConfig
) -> torch.Tensor:
    """-weights × gradient ÷ divisor; the gradient is one number, or one a target."""
    core = Core.of(config, weights.numel())
    made = -core.mul(weights, gradient)
    if divisor is not None:
        inverse = core.through(core.apply("recip", divisor.reshape(()), approx=config.approx))
        made = core.mul(core.through(made), inverse)
    return core.packed(made, BF16)
