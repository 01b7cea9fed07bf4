"""moreh's products: matmul, bmm, linear, dot, and their gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, truncate_mantissa
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.numerics.units.reductions import column_sums, multiply, row_sums
from ttnn_emulator.ops.matmul.operands import height_of
from ttnn_emulator.ops.moreh.checks import require_operand, settings_of
from ttnn_emulator.ops.support.common_checks import into, math_config, memory_of
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: ttnn/api/ttnn/tensor/types.hpp, MAX_NUM_DIMENSIONS without the two of a matrix
MAX_BATCH_DIMS = 6
DOT_DTYPES = frozenset({DataType.BFLOAT16, DataType.BFLOAT8_B})
# tt-metal v0.77.0: tech_reports/matrix_engine/matrix_engine.md, "Math Fidelity"
LOFI_BITS = 5  # bits of an operand in source register A


def _batches(shape: Sequence[int]) -> tuple[int, ...]:
    """The dimensions before the last two, padded with leading ones."""
    batches = tuple(shape[:-2])
    return (1,) * (MAX_BATCH_DIMS - len(batches)) + batches


def _is_scalar(spec: Spec) -> bool:
    return spec.rank in (2, 4) and spec.volume == 1


def _is_row(spec: Spec) -> bool:
    return spec.rank in (2, 4) and all(size == 1 for size in spec.shape[:-1])


# -- matmul -----------------------------------------------------------------------------------------------------------


@composite("ttnn.moreh_matmul")
def moreh_matmul(
    input: Tensor,
    other: Tensor,
    *,
    transpose_input: bool = False,
    transpose_other: bool = False,
    output: Tensor | None = None,
    bias: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """A product with batches broadcast over each other; of two rows of rank 4, their dot product."""
    a, b = input._spec, other._spec
    is_dot = len(a.padded_shape) == len(b.padded_shape) == 4 and _is_row(a) and a.shape == b.shape
    if is_dot and not transpose_input and not transpose_other:
        return ttnn.moreh_dot(
            input,
            other,
            output=output,
            dtype=input.dtype,
            memory_config=memory_config,
            compute_kernel_config=compute_kernel_config,
        )
    return _matmul(
        input, other, output, bias, transpose_input, transpose_other, memory_config, math_config(compute_kernel_config)
    )


@internal("ttnn.moreh_matmul")
def _matmul(
    input: Spec,
    other: Spec,
    output: Spec | None,
    bias: Spec | None,
    transpose_input: bool,
    transpose_other: bool,
    memory_config: MemoryConfig | None,
    config: MathConfig,
) -> Plan:
    for spec, name in ((input, "input"), (other, "other"), (output, "output"), (bias, "bias")):
        require_operand(spec, name)
    rows, inner = _matrix(input, transpose_input)
    other_inner, columns = _matrix(other, transpose_other)
    require(inner == other_inner, f"the inner dimensions {inner} and {other_inner} do not match")
    ours, theirs = _batches(input.shape), _batches(other.shape)
    require(
        all(x == y or 1 in (x, y) for x, y in zip(ours, theirs)),
        f"the batches of {list(input.shape)} and {list(other.shape)} cannot be broadcast over each other",
    )
    batches = tuple(max(x, y) for x, y in zip(ours, theirs))
    if output is not None:
        require(
            (height_of(output.shape), output.shape[-1]) == (rows, columns) and _batches(output.shape) == batches,
            f"the output has shape {list(output.shape)}, the product {[*batches, rows, columns]}",
        )
    if bias is not None:
        require(
            bias.rank == 2 and bias.shape[-1] in (1, columns),
            f"the bias must be a row of 1 or {columns}, its shape is {list(bias.shape)}",
        )
    rank = max(len(input.padded_shape), len(other.padded_shape))
    shape = (*batches[MAX_BATCH_DIMS - (rank - 2) :], rows, columns)
    spec = output or Spec.of(shape, input.dtype, Layout.TILE, memory_of(memory_config, input))
    kernel = Kernel(
        MathConfig(config.fidelity, config.fp32_acc, config.approx),
        input.dtype,
        other.dtype,
        spec.dtype,
        transpose_b=transpose_other,
    )
    product = kernel.compute()
    cut = _masking(rows, inner) if config.fidelity is MathFidelity.LoFi else None

    def compute(*carriers: torch.Tensor) -> torch.Tensor:
        a, b, *rest = (values if values.dim() > 1 else values.unsqueeze(0) for values in carriers)
        a = a.mT if transpose_input else a
        if cut is not None:
            a = cut(a)
        return product(a, b, *(row[:1] for row in rest)).reshape(spec.shape)

    reads = ("input", "other") if bias is None else ("input", "other", "bias")
    return Plan(spec, compute, reads, into(output, "output"))


def _matrix(spec: Spec, transposed: bool) -> tuple[int, int]:
    height, width = height_of(spec.shape), spec.shape[-1] if spec.shape else 1
    return (width, height) if transposed else (height, width)


def _masking(rows: int, inner: int) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """in0's partial tiles after LoFi: they are first multiplied by a mask, in source register A."""
    last_row, last_step = (rows - 1) // TILE_SIZE * TILE_SIZE, (inner - 1) // TILE_SIZE * TILE_SIZE
    rows_padded, inner_padded = rows % TILE_SIZE != 0, inner % TILE_SIZE != 0
    if not rows_padded and not inner_padded:
        return None

    def cut(a: torch.Tensor) -> torch.Tensor:
        a = a.clone()
        corner = (..., slice(last_row, None), slice(last_step, None))
        for at, padded in (
            ((..., slice(last_row, None), slice(None)), rows_padded),
            ((..., slice(last_step, None)), inner_padded),
            (corner, True),
        ):
            if padded:
                a[at] = truncate_mantissa(a[at], LOFI_BITS)
        return a

    return cut


@composite("ttnn.moreh_bmm")
def moreh_bmm(
    input: Tensor,
    mat2: Tensor,
    *,
    output: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """The product of batches of matrices."""
    return ttnn.moreh_matmul(
        input, mat2, output=output, memory_config=memory_config, compute_kernel_config=compute_kernel_config
    )


@composite("ttnn.moreh_linear")
def moreh_linear(
    input: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None = None,
    output: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """input @ weightᵀ + bias."""
    return ttnn.moreh_matmul(
        input,
        weight,
        transpose_other=True,
        output=output,
        bias=bias,
        memory_config=memory_config,
        compute_kernel_config=compute_kernel_config,
    )


# -- dot --------------------------------------------------------------------------------------------------------------


@operation("ttnn.moreh_dot", ignores=("dtype",))
def moreh_dot(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    output: Spec | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """The dot product of two rows of rank 4."""
    a, b = input_tensor_a, input_tensor_b
    for spec in (a, b):
        require(_is_row(spec), f"shape {list(spec.shape)} is not one row")
        require(spec.rank == 4, f"rank {spec.rank} is not 4")
    require(a.shape[3] == b.shape[3], f"rows of {a.shape[3]} and {b.shape[3]} have no dot product")
    require(a.dtype in DOT_DTYPES, f"cannot take the dot product of {a.dtype}")
    require(a.on_device and b.on_device, "the operands must be on a device")
    spec = output or Spec.of((*a.shape[:3], 1), a.dtype, a.layout, memory_of(memory_config, a))
    config = settings_of(compute_kernel_config)

    def packed(values: torch.Tensor) -> torch.Tensor:
        return pack(values, a.dtype, from_fp32=config.fp32_acc)

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        products = packed(multiply(x, y, config, exact=exactly(x.numel()))).reshape(1, -1)
        total: torch.Tensor | None = None
        for part in products.split(TILE_SIZE, dim=1):
            total = packed(row_sums(part, 1.0, config, start=total).reshape(1, 1)).reshape(1)
        assert total is not None
        return total.reshape(spec.shape)

    return Plan(spec, compute, ("input_tensor_a", "input_tensor_b"), into(output, "output"))


@operation("ttnn.moreh_dot_backward", ignores=("memory_config",))
def moreh_dot_backward(
    output_grad: Spec,
    input: Spec,
    other: Spec,
    *,
    input_grad: Spec | None = None,
    other_grad: Spec | None = None,
) -> Plan:
    """The gradients of a dot product, into the tensors passed for them."""
    require(_is_scalar(output_grad), f"the gradient of a dot product is one number, not {list(output_grad.shape)}")
    for spec in (input, other):
        require(_is_row(spec), f"shape {list(spec.shape)} is not one row")
    require(input.shape == other.shape, f"the operands have shapes {list(input.shape)} and {list(other.shape)}")
    require(input.dtype in DOT_DTYPES, f"cannot take the dot product of {input.dtype}")
    require(output_grad.on_device and input.on_device and other.on_device, "the operands must be on a device")
    targets = {"input_grad": (input_grad, 1), "other_grad": (other_grad, 0)}
    for name, (grad, _) in targets.items():
        if grad is not None:
            require(grad.shape == input.shape, f"{name} has shape {list(grad.shape)}, not {list(input.shape)}")
            require(grad.on_device, f"{name} must be on a device")
    given = [name for name, (grad, _) in targets.items() if grad is not None]
    config = MathConfig(MathFidelity.HiFi4)

    def compute(grad: torch.Tensor, *operands: torch.Tensor) -> list[torch.Tensor]:
        scale = grad.reshape(())
        results = []
        for name in given:
            spec, which = targets[name]
            assert spec is not None
            values = multiply(operands[which], scale, config, exact=exactly(operands[which].numel()))
            results.append(pack(values, spec.dtype, from_fp32=False).reshape(spec.shape))
        return results

    def wrap(tensors: list[Any]) -> list[Any]:
        made = dict(zip(given, tensors))
        return [made.get(name) for name in targets]

    outputs = [grad for grad, _ in targets.values() if grad is not None]
    return Plan(outputs, compute, ("output_grad", "input", "other"), tuple(given), wrap=wrap)


# -- gradients --------------------------------------------------------------------------------------------------------


@composite("ttnn.moreh_matmul_backward")
def moreh_matmul_backward(
    output_grad: Tensor,
    input_a: Tensor,
    input_b: Tensor,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    input_a_grad: Tensor | None = None,
    input_b_grad: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> list[Tensor | None]:
    """The gradients of moreh_matmul, into the tensors passed for them."""
    specs = output_grad._spec, input_a._spec, input_b._spec
    if (
        all(len(spec.padded_shape) == 4 for spec in specs)
        and _is_scalar(specs[0])
        and _is_row(specs[1])
        and specs[1].shape == specs[2].shape
    ):
        return ttnn.moreh_dot_backward(
            output_grad,
            input_a,
            input_b,
            input_grad=input_a_grad,
            other_grad=input_b_grad,
            memory_config=memory_config,
        )
    settings = memory_config, compute_kernel_config
    results: list[Tensor | None] = [None, None]
    if are_required_outputs[0]:
        require(input_a_grad is not None, "input_a_grad is required but not passed")
        results[0] = _gradient(output_grad, output_grad, input_b, (False, True), input_a_grad, *settings)
    if are_required_outputs[1]:
        require(input_b_grad is not None, "input_b_grad is required but not passed")
        results[1] = _gradient(output_grad, input_a, output_grad, (True, False), input_b_grad, *settings)
    return results


def _gradient(
    output_grad: Tensor,
    left: Tensor,
    right: Tensor,
    transpose: tuple[bool, bool],
    grad: Any,
    memory: MemoryConfig | None,
    config: Any,
) -> Tensor:
    """left @ right into `grad`; sums over batches that only the output's gradient has."""
    named = {"transpose_input": transpose[0], "transpose_other": transpose[1]}
    settings = {"memory_config": memory, "compute_kernel_config": config}
    if _batches(output_grad._spec.padded_shape) == _batches(grad._spec.padded_shape):
        ttnn.moreh_matmul(left, right, output=grad, **named, **settings)
        return grad
    whole = ttnn.moreh_matmul(left, right, **named, **settings)
    rank = max(len(whole._spec.padded_shape), len(grad._spec.padded_shape))
    ours, theirs = _batches(whole._spec.padded_shape), _batches(grad._spec.padded_shape)
    offset = MAX_BATCH_DIMS - (rank - 2)
    dims = [dim for dim in range(rank - 2) if ours[offset + dim] != theirs[offset + dim]]
    ttnn.moreh_sum(whole, dims, keepdim=True, output=grad, **settings)
    return grad


@composite("ttnn.moreh_bmm_backward")
def moreh_bmm_backward(
    output_grad: Tensor,
    input: Tensor,
    mat2: Tensor,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    input_grad: Tensor | None = None,
    mat2_grad: Tensor | None = None,
    input_grad_memory_config: MemoryConfig | None = None,
    mat2_grad_memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> list[Tensor | None]:
    """The gradients of moreh_bmm, into the tensors passed for them."""
    results: list[Tensor | None] = [None, None]
    if are_required_outputs[0]:
        require(input_grad is not None, "input_grad is required but not passed")
        results[0] = ttnn.moreh_matmul(
            output_grad,
            mat2,
            transpose_other=True,
            output=input_grad,
            memory_config=input_grad_memory_config,
            compute_kernel_config=compute_kernel_config,
        )
    if are_required_outputs[1]:
        require(mat2_grad is not None, "mat2_grad is required but not passed")
        results[1] = ttnn.moreh_matmul(
            input,
            output_grad,
            transpose_input=True,
            output=mat2_grad,
            memory_config=mat2_grad_memory_config,
            compute_kernel_config=compute_kernel_config,
        )
    return results


@composite("ttnn.moreh_linear_backward")
def moreh_linear_backward(
    output_grad: Tensor,
    input: Tensor,
    weight: Tensor,
    *,
    are_required_outputs: Sequence[bool] = (True, True, True),
    bias: Tensor | None = None,
    input_grad: Tensor | None = None,
    weight_grad: Tensor | None = None,
    bias_grad: Tensor | None = None,
    input_grad_memory_config: MemoryConfig | None = None,
    weight_grad_memory_config: MemoryConfig | None = None,
    bias_grad_memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> list[Tensor | None]:
    """The gradients of moreh_linear, into the tensors passed for them."""
    require(len(are_required_outputs) == 3, f"are_required_outputs has 3 entries, not {len(are_required_outputs)}")
    require(all(each._spec.on_device for each in (output_grad, input, weight)), "the operands must be on a device")
    for grad, of, name in ((input_grad, input, "input_grad"), (weight_grad, weight, "weight_grad")):
        require(
            grad is None or grad._spec.shape == of._spec.shape,
            f"{name} must have shape {list(of._spec.shape)}",
        )
    require(
        bias_grad is None or _is_scalar(bias_grad._spec) or _is_row(bias_grad._spec),
        "bias_grad must be a row or one number",
    )
    config = compute_kernel_config if compute_kernel_config is not None else _hifi4()
    results: list[Tensor | None] = [None, None, None]
    if are_required_outputs[0]:
        require(input_grad is not None, "input_grad is required but not passed")
        results[0] = ttnn.moreh_matmul(
            output_grad,
            weight,
            output=input_grad,
            memory_config=input_grad_memory_config,
            compute_kernel_config=config,
        )
    if are_required_outputs[1]:
        require(weight_grad is not None, "weight_grad is required but not passed")
        results[1] = _gradient(
            output_grad, output_grad, input, (True, False), weight_grad, weight_grad_memory_config, config
        )
    if are_required_outputs[2]:
        require(bias_grad is not None, "bias_grad is required but not passed")
        results[2] = _bias_gradient(output_grad, bias_grad, math_config(config))
    return results


@functools.cache
def _hifi4() -> Any:
    return TYPES.classes["WormholeComputeKernelConfig"](math_fidelity=MathFidelity.HiFi4)


@internal("ttnn.moreh_linear_backward")
def _bias_gradient(output_grad: Spec, bias_grad: Spec, config: MathConfig) -> Plan:
    """The sum over all rows, or over everything."""
    width, height = output_grad.shape[-1], math.prod(output_grad.shape[:-1])

    def compute(grad: torch.Tensor) -> torch.Tensor:
        rows = grad if grad.dim() > 1 else grad.unsqueeze(0)
        rows = torch.nn.functional.pad(rows, (0, 0, 0, -rows.shape[-2] % TILE_SIZE)).reshape(-1, width)
        total = column_sums(rows, 1.0, config)
        if _is_scalar(bias_grad):
            total = row_sums(total.reshape(1, -1), 1.0, config)
        return pack(total, bias_grad.dtype, from_fp32=config.fp32_acc).reshape(bias_grad.shape)

    require(_is_scalar(bias_grad) or bias_grad.volume == width, f"{bias_grad.volume} sums of {height} rows of {width}")
    return Plan(bias_grad, compute, ("output_grad",), ("bias_grad",))
