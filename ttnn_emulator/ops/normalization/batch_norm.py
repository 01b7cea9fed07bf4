"""batch_norm, with batch statistics or running statistics."""

from __future__ import annotations

import math
from typing import Any

import torch

from ttnn_emulator.enums import Arch, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.programs.normalization.norms import batch_norm as normalized
from ttnn_emulator.numerics.programs.normalization.norms import running_statistic
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import into, math_config, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

TAKEN = (DataType.BFLOAT16, DataType.FLOAT32)


def _require_operand(spec: Spec, name: str, channels: int | None) -> None:
    require_on_device(spec, f"the {name}")
    require(spec.is_tile, f"the {name} must be in TILE layout, it is in {spec.layout}")
    require(not spec.is_sharded, f"the {name} must be interleaved")
    require(spec.dtype in TAKEN, f"the {name} must be BFLOAT16 or FLOAT32, not {spec.dtype}")
    require(spec.rank == 4, f"the {name} must have rank 4, it has {spec.rank}")
    if channels is not None:
        require(spec.shape[1] == channels, f"the {name} has {spec.shape[1]} channels, the input {channels}")


def _math(given: Any) -> MathConfig:
    fidelity = MathFidelity.HiFi3 if current_board().arch is Arch.WORMHOLE_B0 else MathFidelity.HiFi4
    return math_config(given, fidelity=fidelity, approx=False, fp32_acc=True, l1_acc=True)


@internal("ttnn::prim::batch_norm")
def normalize(
    tensor: Spec,
    mean: Spec,
    variance: Spec,
    epsilon: float,
    given_config: Any,
    memory_config: MemoryConfig,
    weight: Spec | None = None,
    bias: Spec | None = None,
    output: Spec | None = None,
) -> Plan:
    """(x - mean) ÷ √(variance + epsilon) × weight + bias, per channel."""
    _require_operand(tensor, "input", None)
    require(not memory_config.is_sharded(), "the output must be interleaved")
    channels = tensor.shape[1]
    others = {"mean": mean, "variance": variance, "weight": weight, "bias": bias, "output": output}
    for name, spec in others.items():
        if spec is not None:
            _require_operand(spec, name, channels)
    out = output or Spec.of(tensor.shape, tensor.dtype, Layout.TILE, memory_config)
    config = _math(given_config)
    extra = [(name, spec) for name, spec in (("weight", weight), ("bias", bias)) if spec is not None]

    def compute(x: torch.Tensor, m: torch.Tensor, v: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        operands = {name: Operand(_per_channel(values), spec.dtype) for (name, spec), values in zip(extra, rest)}
        return normalized(
            Operand(x, tensor.dtype),
            Operand(_per_channel(m), mean.dtype),
            Operand(_per_channel(v), variance.dtype),
            config,
            epsilon,
            out.dtype,
            **operands,
        )

    reads = ("tensor", "mean", "variance", *[name for name, _ in extra])
    return Plan(out, compute, reads=reads, into=into(output, "output"))


def _per_channel(values: torch.Tensor) -> torch.Tensor:
    """The value per channel that the kernel broadcasts over its tiles."""
    return values[:1, :, :1, :1]


@internal("ttnn::prim::running_statistics")
def update(
    batch_mean: Spec,
    batch_variance: Spec,
    momentum: float,
    given_config: Any,
    mean: Spec | None = None,
    variance: Spec | None = None,
) -> Plan:
    """Update the running statistics towards the batch statistics, in place."""
    config = _math(given_config)
    moved = []
    for name, statistic, batch in (("mean", mean, batch_mean), ("variance", variance, batch_variance)):
        _require_operand(batch, "batch statistic", None)
        if statistic is not None:
            _require_operand(statistic, "running statistic", batch.shape[1])
            moved.append((name, statistic, batch))

    def compute(*values: torch.Tensor) -> list[torch.Tensor]:
        made = []
        for (_, statistic, batch), old, new in zip(moved, values[::2], values[1::2]):
            operands = Operand(old, statistic.dtype), Operand(_per_channel(new), batch.dtype)
            made.append(running_statistic(*operands, config, momentum).expand(statistic.shape).contiguous())
        return made

    names = tuple(name for name, _, _ in moved)
    reads = tuple(each for name in names for each in (name, f"batch_{name}"))
    return Plan([statistic for _, statistic, _ in moved], compute, reads=reads, into=names)


def _mean(tensor: Tensor, memory: MemoryConfig, config: Any) -> Tensor:
    inner = ttnn.mean(tensor, [2, 3], True, memory_config=memory, compute_kernel_config=config)
    return ttnn.mean(inner, 0, True, memory_config=memory, compute_kernel_config=config)


@composite("ttnn.batch_norm")
def batch_norm(
    input,
    *,
    running_mean=None,
    running_var=None,
    training=False,
    eps=1e-05,
    momentum=0.1,
    weight=None,
    bias=None,
    output=None,
    memory_config=None,
    compute_kernel_config=None,
):
    """Batch norm per channel over batch, height and width; training also updates the running statistics."""
    spec = input._spec
    require(spec.rank >= 4, f"batch_norm takes tensors of rank 4, not {spec.rank}")
    if output is not None:
        require(output.dtype is spec.dtype, f"the output is {output.dtype}, the input {spec.dtype}")
    given = [each for each in (running_mean, running_var, weight, bias) if each is not None]
    require(
        len({each.dtype for each in given}) <= 1,
        f"running statistics, weight and bias must have one dtype, not {[str(each.dtype) for each in given]}",
    )
    memory = memory_of(memory_config, spec)
    if spec.volume == 0:
        return ttnn.clone(input, memory_config=memory)
    if training:
        mean = _mean(input, memory, compute_kernel_config)
        centred = ttnn.subtract(input, mean, memory_config=memory_config)
        variance = _mean(ttnn.square(centred, memory_config=memory_config), memory, compute_kernel_config)
    else:
        require(
            running_mean is not None and running_var is not None, "without training both running statistics are needed"
        )
        mean, variance = running_mean, running_var
    made = normalize(input, mean, variance, eps, compute_kernel_config, memory, weight, bias, output)
    if training and (running_mean is not None or running_var is not None):
        count = spec.shape[0] * math.prod(spec.shape[2:])
        if running_var is not None and count > 1:
            variance = ttnn.multiply(variance, count / (count - 1))
        update(mean, variance, momentum, compute_kernel_config, running_mean, running_var)
    return made
