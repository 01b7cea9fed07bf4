"""moreh_adam, moreh_adamw, moreh_sgd and moreh_clip_grad_norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.programs.moreh import optimizer_steps as numeric
from ttnn_emulator.numerics.programs.moreh.sums_and_powers import power_total
from ttnn_emulator.ops.moreh.checks import BFLOAT16, require_operand, settings_of, tiled
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

ADAMW = (DataType.BFLOAT16, DataType.BFLOAT8_B)
ADAM_OUTPUTS = ("param_out", "exp_avg_out", "exp_avg_sq_out", "max_exp_avg_sq_out")
ADAM_INPUTS = ("param_in", "grad", "exp_avg_in", "exp_avg_sq_in", "max_exp_avg_sq_in")
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_clip_grad_norm/moreh_clip_grad_norm.cpp, max_norm divided by
# total_norm + 1e-6
CLIP_OFFSET = 1e-6


def _updates(
    param: Spec, names: Sequence[str], given: Sequence[Spec | None], wanted: Sequence[bool], memories: Sequence[Any]
) -> tuple[list[Spec], dict[str, Any]]:
    """The outputs of a step: preallocated ones, new ones where required, None for the others."""
    specs = [
        spec if spec is not None else (tiled(param, param.shape, memory) if want else None)
        for spec, want, memory in zip(given, wanted, memories)
    ]
    places = [index for index, spec in enumerate(specs) if spec is not None]

    def wrap(tensors: list[Any]) -> list[Any]:
        row: list[Any] = [None] * len(specs)
        for index, tensor in zip(places, tensors):
            row[index] = tensor
        return row

    targets = tuple(names[index] if given[index] is not None else None for index in places)
    return [spec for spec in specs if spec is not None], {"into": targets, "wrap": wrap}


def _adam(
    inputs: Sequence[Spec | None],
    outputs: Sequence[Spec | None],
    settings: numeric.Adam,
    amsgrad: bool,
    memory: MemoryConfig | None,
    given: Any,
    dtypes: Sequence[DataType],
) -> Plan:
    for spec, name in zip((*inputs, *outputs), (*ADAM_INPUTS, *ADAM_OUTPUTS)):
        require_operand(spec, name, dtypes)
    param = inputs[0]
    assert param is not None
    wanted = (True, True, True, amsgrad)
    specs, options = _updates(param, ADAM_OUTPUTS, outputs, wanted, (memory,) * 4)
    config, dtype = settings_of(given), param.dtype

    def compute(
        values: torch.Tensor,
        gradient: torch.Tensor,
        average: torch.Tensor,
        square: torch.Tensor,
        largest: torch.Tensor | None,
    ) -> list[torch.Tensor]:
        state = (values, gradient, average, square, largest if amsgrad else None)
        made = numeric.adam(*state, settings, config, dtype)
        return made if len(made) == len(specs) else [*made, torch.zeros(specs[3].shape)]

    return Plan(specs, compute, reads=ADAM_INPUTS, **options)


@operation("ttnn.moreh_adam")
def moreh_adam(
    param_in,
    grad,
    exp_avg_in,
    exp_avg_sq_in,
    *,
    lr=0.001,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.0,
    step=0,
    amsgrad=False,
    max_exp_avg_sq_in=None,
    param_out=None,
    exp_avg_out=None,
    exp_avg_sq_out=None,
    max_exp_avg_sq_out=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """A step of Adam; weight decay is added to the gradient."""
    settings = _adam_settings(lr, beta1, beta2, eps, weight_decay, step, 0.0, decoupled=False)
    inputs = (param_in, grad, exp_avg_in, exp_avg_sq_in, max_exp_avg_sq_in)
    outputs = (param_out, exp_avg_out, exp_avg_sq_out, max_exp_avg_sq_out)
    return _adam(inputs, outputs, settings, bool(amsgrad), memory_config, compute_kernel_config, BFLOAT16)


@operation("ttnn.moreh_adamw")
def moreh_adamw(
    param_in,
    grad,
    exp_avg_in,
    exp_avg_sq_in,
    lr=0.001,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.01,
    step=0,
    amsgrad=False,
    *,
    max_exp_avg_sq_in=None,
    param_out=None,
    exp_avg_out=None,
    exp_avg_sq_out=None,
    max_exp_avg_sq_out=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """A step of AdamW; weight decay is subtracted from the parameters."""
    settings = _adam_settings(lr, beta1, beta2, eps, weight_decay, step, 0.01, decoupled=True)
    inputs = (param_in, grad, exp_avg_in, exp_avg_sq_in, max_exp_avg_sq_in)
    outputs = (param_out, exp_avg_out, exp_avg_sq_out, max_exp_avg_sq_out)
    return _adam(inputs, outputs, settings, bool(amsgrad), memory_config, compute_kernel_config, ADAMW)


def _adam_settings(
    lr: float | None,
    beta1: float | None,
    beta2: float | None,
    eps: float | None,
    weight_decay: float | None,
    step: int | None,
    decay: float,
    *,
    decoupled: bool,
) -> numeric.Adam:
    """None takes the library's default."""
    require(step is None or step >= 0, f"step is {step}, it counts from 0")

    def rate(given: float | None, default: float) -> float:
        return default if given is None else given

    rates = (rate(lr, 0.001), rate(beta1, 0.9), rate(beta2, 0.999), rate(eps, 1e-8), rate(weight_decay, decay))
    return numeric.Adam(*rates, step=step or 0, decoupled=decoupled)


@operation("ttnn.moreh_sgd")
def moreh_sgd(
    param_in,
    grad,
    momentum_buffer_in=None,
    param_out=None,
    momentum_buffer_out=None,
    lr=0.001,
    momentum=0.0,
    dampening=0.0,
    weight_decay=0.0,
    nesterov=False,
    *,
    momentum_initialized,
    param_out_memory_config=None,
    momentum_buffer_out_memory_config=None,
    compute_kernel_config=None,
):
    """A step of gradient descent with momentum."""
    named = (
        (param_in, "param_in"),
        (grad, "grad"),
        (momentum_buffer_in, "momentum_buffer_in"),
        (param_out, "param_out"),
        (momentum_buffer_out, "momentum_buffer_out"),
    )
    for spec, name in named:
        require_operand(spec, name)
    settings = numeric.Sgd(lr, momentum, dampening, weight_decay, nesterov, momentum_initialized)
    specs, options = _updates(
        param_in,
        ("param_out", "momentum_buffer_out"),
        (param_out, momentum_buffer_out),
        (True, momentum != 0.0),
        (param_out_memory_config, momentum_buffer_out_memory_config),
    )
    config = settings_of(compute_kernel_config)

    def compute(param, gradient, buffer):
        made = numeric.sgd(param, gradient, buffer, settings, config)
        return made if len(made) == len(specs) else [*made, torch.zeros(specs[1].shape)]

    return Plan(specs, compute, reads=("param_in", "grad", "momentum_buffer_in"), **options)


# -- clipping ---------------------------------------------------------------------------------------------------------


@internal("ttnn.prim.moreh_clip_grad_norm_step1")
def power_sum(gradient: Spec, norm_type, compute_kernel_config=None):
    """The sum of |x|^norm_type of one gradient."""
    require_operand(gradient, "a gradient")
    require(gradient.rank >= 4, f"a gradient has rank {gradient.rank}, it must be at least 4")
    config = settings_of(compute_kernel_config)
    out = tiled(gradient, (1, 1, 1), None)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if gradient.rank > 4:
            raise ChipFault(f"of a gradient of rank {gradient.rank} dimensions 2 and 3 are taken for height and width")
        return power_total(values, norm_type, config).reshape(1, 1, 1)

    return Plan(out, compute)


@internal("ttnn.prim.moreh_clip_grad_norm_step2")
def norm_of_sums(
    sums: Sequence[Spec], norm_type, total_norm: Spec | None = None, memory_config=None, compute_kernel_config=None
):
    """The norm of all gradients."""
    require_operand(total_norm, "total_norm")
    out = total_norm if total_norm is not None else tiled(sums[0], (1, 1), memory_config)
    config = settings_of(compute_kernel_config)

    def compute(parts):
        return numeric.total_norm(torch.stack([each.reshape(()) for each in parts]), norm_type, config).reshape(
            out.shape
        )

    return Plan(out, compute, reads=("sums",), into=into(total_norm, "total_norm"))


@internal("ttnn.prim.moreh_clip_grad_norm_step3")
def scaled_gradient(gradient: Spec, factor: Spec, compute_kernel_config=None):
    """A gradient times the clipping factor, in its own buffer."""
    require_operand(gradient, "a gradient")
    require_operand(factor, "the factor")
    config = settings_of(compute_kernel_config)
    compute = lambda x, by: numeric.clipped(x, by, config)  # noqa: E731
    return Plan(gradient, compute, reads=("gradient", "factor"), into=("gradient",))


@composite("ttnn.moreh_clip_grad_norm")
def moreh_clip_grad_norm(
    inputs,
    max_norm,
    norm_type=2.0,
    error_if_nonfinite=False,
    *,
    total_norm=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """Gradients scaled down together so that their norm is at most max_norm; returns their norm before scaling."""
    require(not (error_if_nonfinite and math.isnan(norm_type)), "norm_type is not a number")
    require(len(inputs) > 0, "there are no gradients")
    sums = [power_sum(each, norm_type, compute_kernel_config) for each in inputs]
    norm = norm_of_sums(sums, norm_type, total_norm, memory_config, compute_kernel_config)
    if error_if_nonfinite and norm._storage.values is not None:
        require(math.isfinite(norm.to_torch().reshape(-1)[0].item()), "the norm of the gradients is not finite")
    first, device = inputs[0], inputs[0].device()
    largest = ttnn.full([1], max_norm, dtype=first.dtype, layout=Layout.TILE, device=device)
    factor = ttnn.div(largest, ttnn.add(norm, CLIP_OFFSET))
    one = ttnn.full([1], 1.0, dtype=first.dtype, layout=Layout.TILE, device=device)
    factor = ttnn.minimum(factor, one)
    for each in inputs:
        scaled_gradient(each, factor, compute_kernel_config)
    return norm
