"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.metadata import PATH, SPEC
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.norm_summands import is_read_by_norm_only
from torch_ttnn.compiler.lowering.support.routing import is_score
from ttnn_emulator import DataType

aten = torch.ops.aten

BLOCK_FLOATS = {"bfloat8_b": DataType.BFLOAT8_B, "bfloat4_b": DataType.BFLOAT4_B}


def product(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    y: Value,
    bias: Value | None = None,
    activation: str | None = None,
    dtype: Any = None,
) -> Handle:
    """x @ y + bias, then an activation, in one call; `bias` is one row.

    An operand that is a transposed view is passed as stored.
    """
    for operand in (x, y):
        if not operand.is_float:
            refuse("the matrix unit does not multiply integers")
    x, y = _flattened(builder, x, y)
    x, transpose_x = _as_stored(x)
    y, transpose_y = _as_stored(y)
    left, right = _operand(builder, x), _operand(builder, y)
    options: dict[str, Any] = {"compute_kernel_config": builder.accurate}
    if transpose_x:
        options["transpose_a"] = True
    if transpose_y:
        options["transpose_b"] = True
    dtype = dtype or _result_dtype(builder)
    if dtype is not left.dtype:
        options["dtype"] = dtype
    if activation is not None:
        options["activation"] = activation
    if bias is None:
        return ttnn.matmul(left, right, **options)
    return ttnn.linear(left, right, bias=bias.with_rank(2), **options)


def _flattened(builder: ProgramBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """For rows that are flattened images: the image in storage order, and the weight's rows in the same order.

    So no call has to move channels back to torch's order.
    """
    node = x.base().node if x.is_on_device and not x.is_static else None
    if node is None or not y.is_static or (x.ndim, y.ndim) != (2, 2) or PATH.get(node) != "ttnn.permute":
        return x, y
    source: Any = node.args[0]
    order: Any = node.args[1]
    shape = SPEC[node].spec.shape
    if order[0] != 0 or shape[0] != x.shape[0]:
        return x, y
    stored = sorted(range(1, len(order)), key=order.__getitem__)  # torch's dimensions in storage order
    as_image = y.view((*shape[1:], y.shape[1]))
    rows = as_image.permute((*[dim - 1 for dim in stored], len(stored))).view(y.shape)
    image = Handle(source, SPEC[source])
    return builder.value(builder.reshaped(image, x.shape), x.shape, x.dtype), rows


def _as_stored(x: Value) -> tuple[Value, bool]:
    """The operand, or its transpose if that is how it is stored on the device."""
    if x.is_static or x.ndim < 2 or x.form.is_plain:
        return x, False
    swapped = x.permute([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])
    return (swapped, True) if swapped.form.is_plain else (x, False)


def _operand(builder: ProgramBuilder, x: Value) -> Handle:
    """Converts weights to the format that the user chose for them."""
    block_float = BLOCK_FLOATS.get(builder.options.weights)
    if not x.is_static or block_float is None or x.ndim < 2:
        return x.tile()
    x.base()  # upload unconverted first: other readers of this weight keep full precision
    return x.tile(block_float)


def _result_dtype(builder: ProgramBuilder) -> DataType:
    """Accumulation is in float32; the result stays float32 for a norm that adds it to a residual, and for a router."""
    stays_wide = is_read_by_norm_only(builder.origin) or is_score(builder.origin)
    return DataType.FLOAT32 if stays_wide else builder.float_dtype


def _plus(
    ttnn: Any,
    builder: ProgramBuilder,
    bias: Value,
    result: Handle,
    shape: tuple[int, ...],
    beta: float,
    alpha: float,
    activation: str | None,
) -> Any:
    """beta × bias + alpha × result, then an activation; with beta = 0 the bias is ignored, as in torch."""
    if alpha != 1:
        result = ttnn.multiply(result, alpha)
    if beta != 0:
        result = builder.reshaped(result, shape)
        term = builder.cast(bias.tile(), result.dtype)
        result = ttnn.add(result, term if beta == 1 else ttnn.multiply(term, beta))
    return result if activation is None else getattr(ttnn, activation)(result)


@lowers(aten.mm.default, aten.bmm.default)
def mm(ttnn: Any, builder: ProgramBuilder, x: Value, y: Value, *, activation: str | None = None) -> Handle:
    return product(ttnn, builder, x, y, activation=activation)


@lowers(aten.addmm.default)
def addmm(
    ttnn: Any,
    builder: ProgramBuilder,
    bias: Value,
    x: Value,
    y: Value,
    *,
    beta: float = 1,
    alpha: float = 1,
    activation: str | None = None,
) -> Handle:
    is_row = bias.ndim > 0 and bias.shape[-1] == y.shape[-1] and bias.numel == bias.shape[-1]
    if beta == 1 and alpha == 1 and is_row and bias.is_float:
        return product(ttnn, builder, x, y, bias, activation)
    return _plus(ttnn, builder, bias, product(ttnn, builder, x, y), (x.shape[0], y.shape[1]), beta, alpha, activation)


@lowers(aten.baddbmm.default)
def baddbmm(
    ttnn: Any, builder: ProgramBuilder, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1
) -> Handle:
    return _plus(ttnn, builder, bias, product(ttnn, builder, x, y), (*x.shape[:2], y.shape[2]), beta, alpha, None)


@lowers(aten.addbmm.default)
def addbmm(
    ttnn: Any, builder: ProgramBuilder, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1
) -> Handle:
    result = ttnn.sum(product(ttnn, builder, x, y), dim=0, compute_kernel_config=builder.accurate)
    return _plus(ttnn, builder, bias, result, (x.shape[1], y.shape[2]), beta, alpha, None)


@lowers(aten.mv.default)
def mv(ttnn: Any, builder: ProgramBuilder, x: Value, vector: Value) -> Handle:
    return product(ttnn, builder, x, vector.view((vector.numel, 1)))


@lowers(aten.addmv.default)
def addmv(
    ttnn: Any, builder: ProgramBuilder, bias: Value, x: Value, vector: Value, *, beta: float = 1, alpha: float = 1
) -> Handle:
    return _plus(ttnn, builder, bias, mv(ttnn, builder, x, vector), (x.shape[0],), beta, alpha, None)


@lowers(aten.dot.default, aten.vdot.default)
def dot(ttnn: Any, builder: ProgramBuilder, x: Value, y: Value) -> Handle:
    return product(ttnn, builder, x.view((1, x.numel)), y.view((y.numel, 1)))


@lowers(aten.linear.default)
def linear(ttnn: Any, builder: ProgramBuilder, x: Value, weight: Value, bias: Value | None = None) -> Handle:
    if weight.ndim != 2 or x.ndim == 0:
        refuse("a linear layer whose weight is not a matrix")
    rows = x.view((x.numel // x.shape[-1], x.shape[-1]))
    result = product(ttnn, builder, rows, weight.permute((1, 0)), bias)
    return builder.reshaped(result, (*x.shape[:-1], weight.shape[0]))
