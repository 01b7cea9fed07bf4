"""The ranges of operations, from those of their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges.propagation import (
    ANYTHING,
    BOOLEAN,
    SEVERAL,
    Number,
    Range,
    Ranges,
    ordered,
    rule,
)
from torch_ttnn.compiler.ir.arguments import leaves

aten = torch.ops.aten

# -- copies and casts ------------------------------------------------------------------------------------------------


@rule(
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.squeeze.default, aten.expand.default, aten.clone.default, aten.alias.default,
    aten.detach.default, aten.slice.Tensor, aten.select.int, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.repeat.default, aten.flip.default, aten.roll.default, aten.gather.default, aten.index.Tensor,
    aten._unsafe_index.Tensor, aten.index_select.default, aten.diagonal.default, aten.unfold.default,
    aten.lift_fresh_copy.default, aten.lift_fresh.default, aten.contiguous.default, aten.flatten.using_ints,
    aten.embedding.default, aten.as_strided.default, aten.view_copy.default, aten.expand_copy.default,
    aten.repeat_interleave.self_int, aten.amax.default, aten.amin.default, aten.max.default, aten.min.default,
    aten.median.default, aten.take.default, aten.pixel_shuffle.default, aten.pixel_unshuffle.default,
    aten.upsample_nearest2d.default, aten.upsample_nearest1d.default, aten.upsample_nearest3d.default,
    aten.upsample_nearest2d.vec, aten.upsample_nearest1d.vec, aten.upsample_nearest3d.vec,
    aten.floor.default, aten.ceil.default, aten.round.default, aten.trunc.default, aten.masked_select.default,
    aten.split_copy.Tensor, aten.cummax.default, aten.unsqueeze_copy.default, aten.squeeze_copy.dim,
)  # fmt: skip
def _passes_on(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    rounds = node.target in (aten.floor.default, aten.ceil.default, aten.round.default, aten.trunc.default)
    return Range(_whole(operand.low, math.floor), _whole(operand.high, math.ceil)) if rounds else operand


def _whole(number: Number, toward: Callable[[float], int]) -> Number:
    return toward(number) if math.isfinite(number) else number


@rule(aten._to_copy.default, aten.to.dtype, torch.ops.prims.convert_element_type.default)
def _cast(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    if node.meta["val"].dtype.is_floating_point:
        return operand
    return Range(_whole(operand.low, math.floor), _whole(operand.high, math.ceil))


@rule(aten.cat.default, aten.stack.default)
def _all_of_them(node: torch.fx.Node, ranges: Ranges) -> Range:
    return _union([ranges(item) for item in node.args[0]])  # type: ignore[union-attr]


def _union(parts: Iterable[Range]) -> Range:
    parts = list(parts)
    return Range(min(each.low for each in parts), max(each.high for each in parts)) if parts else ANYTHING


# -- creation --------------------------------------------------------------------------------------------------------


@rule(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.zero.default)
def _zeros(node: torch.fx.Node, ranges: Ranges) -> Range:
    return Range(0, 0)


@rule(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def _ones(node: torch.fx.Node, ranges: Ranges) -> Range:
    return Range(1, 1)


@rule(aten.scalar_tensor.default)
def _scalar(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0])


@rule(aten.full.default, aten.full_like.default, aten.fill.Scalar, aten.fill.Tensor)
def _full(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[1])


@rule(aten.new_full.default)
def _new_full(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[2])


@rule(aten.arange.default, aten.arange.start, aten.arange.start_step)
def _arange(node: torch.fx.Node, ranges: Ranges) -> Range:
    numbers = [each for each in node.args if isinstance(each, int | float)]
    start, end = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    return Range(min(start, end), max(start, end))


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _both(node: torch.fx.Node, ranges: Ranges) -> tuple[Range, Range]:
    return ranges(node.args[0]), ranges(node.args[1])


def _alpha(node: torch.fx.Node) -> Number:
    alpha: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("alpha", 1)
    return alpha


def times(left: Range, right: Range) -> Range:
    corners = [_product(one, other) for one in left for other in right]
    return Range(min(corners), max(corners))


def _product(one: Number, other: Number) -> Number:
    return 0 if one == 0 or other == 0 else one * other  # 0 also for an infinite bound


@rule(aten.add.Tensor, aten.add.Scalar)
def _add(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    right = times(right, ranges(_alpha(node)))
    return ordered(left.low + right.low, left.high + right.high)


@rule(aten.sub.Tensor, aten.sub.Scalar)
def _sub(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    right = times(right, ranges(_alpha(node)))
    return ordered(left.low - right.high, left.high - right.low)


@rule(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    left = times(left, ranges(_alpha(node)))
    return ordered(right.low - left.high, right.high - left.low)


@rule(aten.mul.Tensor, aten.mul.Scalar)
def _mul(node: torch.fx.Node, ranges: Ranges) -> Range:
    return times(*_both(node, ranges))


@rule(aten.square.default)
def _square(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = _magnitudes(ranges(node.args[0]))
    return times(operand, operand)


@rule(aten.neg.default)
def _neg(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    return Range(-operand.high, -operand.low)


@rule(aten.abs.default)
def _abs(node: torch.fx.Node, ranges: Ranges) -> Range:
    return _magnitudes(ranges(node.args[0]))


def _magnitudes(operand: Range) -> Range:
    low = 0 if operand.low <= 0 <= operand.high else min(abs(operand.low), abs(operand.high))
    return Range(low, max(abs(operand.low), abs(operand.high)))


@rule(aten.sign.default, aten.sgn.default)
def _sign(node: torch.fx.Node, ranges: Ranges) -> Range:
    return Range(-1, 1)


@rule(aten.relu.default)
def _relu(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    return Range(max(operand.low, 0), max(operand.high, 0))


@rule(aten.pow.Tensor_Scalar)
def _pow(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand, exponent = ranges(node.args[0]), node.args[1]
    if not isinstance(exponent, int) or not 0 <= exponent <= 64 or not operand.within(Range(-(2**64), 2**64)):
        return ANYTHING
    reach = _magnitudes(operand).high
    high = math.floor(reach) ** exponent if isinstance(reach, int) else reach**exponent
    return Range(0 if exponent % 2 == 0 or operand.low >= 0 else -high, max(high, 1))


@rule(aten.floor_divide.default, aten.floor_divide.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode)
def _whole_division(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Division by zero raises an error in torch; the divisors next to it have the largest quotients."""
    left, right = _both(node, ranges)
    if node.meta["val"].dtype.is_floating_point or not math.isfinite(left.low) or not math.isfinite(left.high):
        return ANYTHING
    divisors = {each for each in (right.low, right.high, -1, 1) if each and right.low <= each <= right.high}
    corners = [number // divisor for number in left for divisor in divisors if math.isfinite(divisor)]
    if not corners:
        return ANYTHING
    return Range(math.floor(min(*corners, 0)), math.ceil(max(*corners, 0)))


@rule(aten.div.Tensor, aten.div.Scalar)
def _division(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    if right.low <= 0 <= right.high:
        return ANYTHING
    corners = [one / other for one in left for other in right]
    return ordered(min(corners), max(corners))


@rule(aten.remainder.Tensor, aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar)
def _remainder(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Smaller than the divisor; with its sign, or with that of the dividend."""
    left, right = _both(node, ranges)
    reach = max(_magnitudes(right).high, 0)
    sign = left if node.target in (aten.fmod.Tensor, aten.fmod.Scalar) else right
    return Range(-reach if sign.low < 0 else 0, reach if sign.high > 0 else 0)


@rule(aten.maximum.default)
def _maximum(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    return Range(max(left.low, right.low), max(left.high, right.high))


@rule(aten.minimum.default)
def _minimum(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    return Range(min(left.low, right.low), min(left.high, right.high))


@rule(aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default)
def _clamp(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    limits = [*node.args[1:], None, None]
    low, high = node.kwargs.get("min", limits[0]), node.kwargs.get("max", limits[1])
    if node.target is aten.clamp_max.default:
        low, high = None, limits[0]
    if node.target is aten.hardtanh.default:
        low, high = (-1 if limits[0] is None else limits[0]), (1 if limits[1] is None else limits[1])
    if low is not None:
        least = ranges(low)
        operand = Range(max(operand.low, least.low), max(operand.high, least.high))
    if high is not None:
        most = ranges(high)
        operand = Range(min(operand.low, most.low), min(operand.high, most.high))
    return operand


# -- bits ------------------------------------------------------------------------------------------------------------


@rule(aten.bitwise_not.default)
def _bitwise_not(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    return Range(-1 - operand.high, -1 - operand.low)


@rule(
    aten.bitwise_and.Tensor, aten.bitwise_and.Scalar, aten.bitwise_or.Tensor, aten.bitwise_or.Scalar,
    aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar,
)  # fmt: skip
def _bitwise(node: torch.fx.Node, ranges: Ranges) -> Range:
    """As many bits as the wider operand; for `and`, as the narrower non-negative one."""
    left, right = _both(node, ranges)
    is_and = node.target in (aten.bitwise_and.Tensor, aten.bitwise_and.Scalar)
    positive = [each.high for each in (left, right) if each.low >= 0]
    if is_and and positive:
        return Range(0, min(positive))
    if not all(math.isfinite(number) for number in (*left, *right)):
        return ANYTHING
    most = (1 << max(_bits(number) for number in (*left, *right))) - 1
    return Range(0 if left.low >= 0 and right.low >= 0 else -most - 1, most)


def _bits(number: Number) -> int:
    """The number of bits of an integer, without its sign."""
    return int(number if number >= 0 else ~int(number)).bit_length()


@rule(
    aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar, aten.__lshift__.Scalar,
    aten.__lshift__.Tensor,
)  # fmt: skip
def _left_shift(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand, by = _both(node, ranges)
    return times(operand, Range(1, 2**by.high)) if by.low >= 0 and by.high < 64 else ANYTHING


@rule(
    aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar, aten.__rshift__.Scalar,
    aten.__rshift__.Tensor,
)  # fmt: skip
def _right_shift(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Towards 0 or -1, for any shift."""
    return ranges(node.args[0]).joined(Range(-1, 0))


# -- selecting and writing -------------------------------------------------------------------------------------------


@rule(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(ranges(node.args[2]))


@rule(aten.constant_pad_nd.default)
def _pad(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(ranges(node.args[2] if len(node.args) > 2 else 0))


@rule(aten.tril.default, aten.triu.default)
def _triangle(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(Range(0, 0))


# The index of the argument that is written.
WRITTEN: dict[Any, int] = {
    aten.scatter.src: 3,
    aten.scatter.value: 3,
    aten.index_copy.default: 3,
    aten.index_fill.int_Scalar: 3,
    aten.masked_scatter.default: 2,
    aten.slice_scatter.default: 1,
    aten.select_scatter.default: 1,
    aten.copy.default: 1,
}


@rule(*WRITTEN)
def _written(node: torch.fx.Node, ranges: Ranges) -> Range:
    """The old values, or the written ones."""
    number = WRITTEN[node.target]
    written = node.args[number] if len(node.args) > number else node.kwargs.get("src", node.kwargs.get("value"))
    return ranges(node.args[0]).joined(ranges(written))


@rule(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(node: torch.fx.Node, ranges: Ranges) -> Range:
    written: Any = node.args[2]
    accumulates = node.args[3] if len(node.args) > 3 else node.kwargs.get("accumulate", False)
    return _accumulated(node, ranges, written) if accumulates else ranges(node.args[0]).joined(ranges(written))


@rule(aten.scatter_add.default, aten.index_add.default)
def _scatter_add(node: torch.fx.Node, ranges: Ranges) -> Range:
    return _accumulated(node, ranges, node.args[3])


@rule(aten.scatter_reduce.two)
def _scatter_reduce(node: torch.fx.Node, ranges: Ranges) -> Range:
    kind = node.args[4]
    if kind == "sum":
        return _accumulated(node, ranges, node.args[3])
    return ranges(node.args[0]).joined(ranges(node.args[3])) if kind in ("amax", "amin") else ANYTHING


def _accumulated(node: torch.fx.Node, ranges: Ranges, written: Any) -> Range:
    """All written values may be added to one element."""
    there, each = ranges(node.args[0]), ranges(written)
    count = written.meta["val"].numel() if isinstance(written, torch.fx.Node) else math.prod(node.meta["val"].shape)
    added = times(each, Range(0, max(count, 1)))
    return ordered(there.low + added.low, there.high + added.high)


# -- reductions ------------------------------------------------------------------------------------------------------


def _length(node: torch.fx.Node) -> int:
    """The number of values that are reduced to one, at most."""
    source: Any = node.args[0]
    before, after = source.meta["val"].numel(), node.meta["val"].numel()
    return before // after if after else 1


@rule(aten.sum.default, aten.sum.dim_IntList)
def _sum(node: torch.fx.Node, ranges: Ranges) -> Range:
    return times(ranges(node.args[0]), Range(_length(node), _length(node)))


@rule(aten.cumsum.default)
def _cumsum(node: torch.fx.Node, ranges: Ranges) -> Range:
    sizes = node.meta["val"].shape
    return times(ranges(node.args[0]), Range(1, sizes[node.args[1]] if sizes else 1))  # type: ignore[index]


@rule(aten.prod.default, aten.prod.dim_int, aten.cumprod.default)
def _prod(node: torch.fx.Node, ranges: Ranges) -> Range:
    sizes = node.meta["val"].shape
    count = _length(node) if node.target is not aten.cumprod.default else (sizes[node.args[1]] if sizes else 1)  # type: ignore[index]
    reach = _magnitudes(ranges(node.args[0])).high
    if not math.isfinite(reach) or (reach > 1 and count > 64):
        return BOOLEAN if reach <= 1 and ranges(node.args[0]).low >= 0 else ANYTHING
    high = max(1, int(reach) ** count if reach > 1 else 1)
    return Range(0 if ranges(node.args[0]).low >= 0 else -high, high)


@rule(aten.mm.default, aten.bmm.default)
def _product_of_matrices(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Angles of rotary embeddings are products of a column and a row."""
    source: Any = node.args[0]
    length = source.meta["val"].shape[-1]
    return times(times(*_both(node, ranges)), Range(length, length))


@rule(aten.argmax.default, aten.argmin.default)
def _place(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Positions along a dimension, or in the flattened tensor."""
    source: Any = node.args[0]
    val = source.meta["val"]
    dim: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    return Range(0, (val.numel() if dim is None or not val.ndim else val.shape[dim]) - 1)


@rule(
    aten.argsort.default, aten.argsort.stable, aten.count_nonzero.default,
    aten.nonzero.default, aten.searchsorted.Tensor, aten.bucketize.Tensor, aten.count_nonzero.dim_IntList,
    aten.searchsorted.Scalar, aten.bucketize.Scalar,
)  # fmt: skip
def _places(node: torch.fx.Node, ranges: Ranges) -> Range:
    reach = [item.meta["val"].numel() for item in leaves(node.args) if isinstance(item, torch.fx.Node)]
    return Range(0, max(reach, default=0))


@rule(aten.sigmoid.default, aten._softmax.default, aten.softmax.int, aten.hardsigmoid.default)
def _unit(node: torch.fx.Node, ranges: Ranges) -> Range:
    return BOOLEAN


@rule(aten.tanh.default, aten.sin.default, aten.cos.default, aten.erf.default)
def _both_units(node: torch.fx.Node, ranges: Ranges) -> Range:
    return Range(-1, 1)


SLOW: dict[Any, Callable[[float], float]] = {
    aten.log2.default: math.log2,
    aten.log.default: math.log,
    aten.log10.default: math.log10,
    aten.sqrt.default: math.sqrt,
}


@rule(*SLOW)
def _slow(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Monotonic functions that are finite for finite positive arguments."""
    operand = ranges(node.args[0])
    function = SLOW[node.target]
    if operand.low < 0 or (operand.low == 0 and function is not math.sqrt) or not math.isfinite(operand.high):
        return ANYTHING
    return Range(function(operand.low), function(operand.high))


@rule(aten.exp.default)
def _exp(node: torch.fx.Node, ranges: Ranges) -> Range:
    operand = ranges(node.args[0])
    return Range(math.exp(operand.low), math.exp(operand.high)) if operand.high < LARGEST_LOGARITHM else ANYTHING


LARGEST_LOGARITHM = 88  # below the logarithm of the largest float32


# -- several results: values and their positions ---------------------------------------------------------------------


def _values_and_places(node: torch.fx.Node, ranges: Ranges, output: int) -> Range:
    """Values of the input, and positions along the reduced dimension."""
    source: Any = node.args[0]
    if output == 0:
        return ranges(source)
    sizes = source.meta["val"].shape
    number = 2 if node.target in (aten.topk.default, aten.kthvalue.default) else 1
    dim: Any = node.kwargs.get("dim", node.args[number] if len(node.args) > number else -1)
    return Range(0, max((sizes[dim] if sizes else 1) - 1, 0))


def _values_and_pixels(node: torch.fx.Node, ranges: Ranges, output: int) -> Range:
    """Values of the input, and positions in a flattened image."""
    source: Any = node.args[0]
    dims = 3 if "3d" in str(node.target) else 2
    return ranges(source) if output == 0 else Range(0, max(math.prod(source.meta["val"].shape[-dims:]) - 1, 0))


def _parts(node: torch.fx.Node, ranges: Ranges, output: int) -> Range:
    return ranges(node.args[0])


for _overload in (
    aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim, aten.min.dim, aten.kthvalue.default,
    aten.median.dim, aten.mode.default, aten.cummax.default, aten.cummin.default,
):  # fmt: skip
    SEVERAL[_overload] = _values_and_places
for _overload in (
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
):
    SEVERAL[_overload] = _values_and_pixels
for _overload in (
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.chunk.default,
    aten.aminmax.default,
):
    SEVERAL[_overload] = _parts
