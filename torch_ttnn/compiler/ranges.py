"""Between which numbers the values of a graph lie, as far as that can be told without running it.

The device has 32-bit integers, torch mostly 64-bit ones. An operation whose int64 values may leave 32 bits stays on the
host, where it is exact. Ranges start from what is checked at every call (integer inputs), from constants, comparisons
and sizes, and go through the operations below; a value of any other operation may be anything.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.fx

from torch_ttnn.compiler.arguments import leaves

aten = torch.ops.aten
Number = int | float


class Range(NamedTuple):
    """From the smallest to the largest value."""

    low: Number
    high: Number

    def joined(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high


INT32 = Range(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)
ANYTHING = Range(-math.inf, math.inf)
BOOLEAN = Range(0, 1)

Rule = Callable[[torch.fx.Node, "Ranges"], Range]
RULES: dict[Any, Rule] = {}


class Ranges:
    """The ranges of a graph's values; each is worked out when it is first asked for.

    inputs       those of placeholders
    constant_of  the value of a node, if it is known
    is_static    whether it depends on weights and constants only; such integers are looked at when they are uploaded
    """

    def __init__(
        self,
        inputs: Mapping[torch.fx.Node, Range],
        constant_of: Callable[[torch.fx.Node], torch.Tensor | None],
        is_static: Callable[[torch.fx.Node], bool],
    ) -> None:
        self._known: dict[Any, Range] = dict(inputs)
        self._constant_of = constant_of
        self._is_static = is_static

    def __call__(self, item: Any, output: int = 0) -> Range:
        """The range of a node, or of a number; of one output where there are several."""
        if not isinstance(item, torch.fx.Node):
            return Range(item, item) if isinstance(item, bool | int | float) else ANYTHING
        key = (item, output) if output else item
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._found(item, output)
        return found

    def _found(self, node: torch.fx.Node, output: int) -> Range:
        val = node.meta.get("val")
        whole = _of_dtype(val[output] if isinstance(val, tuple | list) else val)
        if whole == BOOLEAN:
            return BOOLEAN
        is_static = self._is_static(node)
        constant = self._constant_of(node) if is_static else None
        if constant is not None:
            return _of_constant(constant)
        found = _cut(self._by_rule(node, output, whole), whole)
        return INT32 if is_static and found == ANYTHING else found

    def _by_rule(self, node: torch.fx.Node, output: int, whole: Range) -> Range:
        if node.op != "call_function":
            return whole
        if node.target is operator.getitem:
            source, number = node.args
            return self(source, number)  # type: ignore[arg-type]
        if isinstance(node.meta.get("val"), tuple | list):
            rule_of_several = SEVERAL.get(node.target)
            return rule_of_several(node, self, output) if rule_of_several is not None else whole
        rule_of_one = RULES.get(node.target)
        return rule_of_one(node, self) if rule_of_one is not None else whole


def _of_dtype(val: Any) -> Range:
    """What a dtype holds. int64 may be anything: beyond its own bits torch wraps around, and so does the host."""
    if not isinstance(val, torch.Tensor):
        return ANYTHING
    if val.dtype is torch.bool:
        return BOOLEAN
    if val.dtype.is_floating_point or val.dtype.is_complex or val.dtype is torch.int64:
        return ANYTHING
    info = torch.iinfo(val.dtype)
    return Range(info.min, info.max)


def _of_constant(constant: torch.Tensor) -> Range:
    if constant.is_complex() or not constant.numel() or constant.is_meta:
        return ANYTHING
    low, high = torch.aminmax(constant)
    return _ordered(low.item(), high.item())


def _cut(found: Range, whole: Range) -> Range:
    """A narrower dtype wraps around: what may leave it may be anything in it."""
    if math.isnan(found.low) or math.isnan(found.high):
        return whole
    return found if found.within(whole) else whole


def _ordered(low: Number, high: Number) -> Range:
    return ANYTHING if math.isnan(low) or math.isnan(high) else Range(low, high)


def rule(*overloads: Any) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(overloads, function))
        return function

    return enter


def integers_beyond(nodes: Iterable[torch.fx.Node], ranges: Ranges) -> Iterator[torch.fx.Node]:
    """The operations that read or give int64 values which may leave the device's 32 bits."""
    for node in nodes:
        if node.op == "call_function" and beyond(node, ranges):
            yield node


def beyond(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether an operation reads or gives int64 values that may leave 32 bits."""
    val = node.meta.get("val")
    given = val if isinstance(val, tuple | list) else (val,)
    for number, each in enumerate(given):
        if _is_long(each) and _is_read(node, number, len(given)) and not ranges(node, number).within(INT32):
            return True
    if node.target is operator.getitem:
        return False
    read = [item for item in leaves((node.args, node.kwargs)) if isinstance(item, torch.fx.Node)]
    return any(_is_long(item.meta.get("val")) and not ranges(item).within(INT32) for item in read)


def _is_long(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and val.dtype is torch.int64


def _is_read(node: torch.fx.Node, number: int, outputs: int) -> bool:
    """Whether anybody reads this output."""
    return outputs == 1 or any(user.target is operator.getitem and user.args[1] == number for user in node.users)


# -- what passes values on -------------------------------------------------------------------------------------------


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
    found = ranges(node.args[0])
    rounds = node.target in (aten.floor.default, aten.ceil.default, aten.round.default, aten.trunc.default)
    return Range(_whole(found.low, math.floor), _whole(found.high, math.ceil)) if rounds else found


def _whole(number: Number, toward: Callable[[float], int]) -> Number:
    return toward(number) if math.isfinite(number) else number


@rule(aten._to_copy.default, aten.to.dtype, torch.ops.prims.convert_element_type.default)
def _cast(node: torch.fx.Node, ranges: Ranges) -> Range:
    found = ranges(node.args[0])
    if node.meta["val"].dtype.is_floating_point:
        return found
    return Range(_whole(found.low, math.floor), _whole(found.high, math.ceil))


@rule(aten.cat.default, aten.stack.default)
def _all_of_them(node: torch.fx.Node, ranges: Ranges) -> Range:
    return _union([ranges(item) for item in node.args[0]])  # type: ignore[union-attr]


def _union(given: Iterable[Range]) -> Range:
    given = list(given)
    return Range(min(each.low for each in given), max(each.high for each in given)) if given else ANYTHING


# -- what is made of nothing -----------------------------------------------------------------------------------------


@rule(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)
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
    given = [each for each in node.args if isinstance(each, int | float)]
    start, end = (0, given[0]) if len(given) == 1 else given[:2]
    return Range(min(start, end), max(start, end))


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _both(node: torch.fx.Node, ranges: Ranges) -> tuple[Range, Range]:
    return ranges(node.args[0]), ranges(node.args[1])


def _alpha(node: torch.fx.Node) -> Number:
    given: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("alpha", 1)
    return given


def times(left: Range, right: Range) -> Range:
    corners = [_product(one, other) for one in left for other in right]
    return Range(min(corners), max(corners))


def _product(one: Number, other: Number) -> Number:
    return 0 if one == 0 or other == 0 else one * other  # also of infinity: no value is infinite and zero


@rule(aten.add.Tensor, aten.add.Scalar)
def _add(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    right = times(right, ranges(_alpha(node)))
    return _ordered(left.low + right.low, left.high + right.high)


@rule(aten.sub.Tensor, aten.sub.Scalar)
def _sub(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    right = times(right, ranges(_alpha(node)))
    return _ordered(left.low - right.high, left.high - right.low)


@rule(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    left = times(left, ranges(_alpha(node)))
    return _ordered(right.low - left.high, right.high - left.low)


@rule(aten.mul.Tensor, aten.mul.Scalar)
def _mul(node: torch.fx.Node, ranges: Ranges) -> Range:
    return times(*_both(node, ranges))


@rule(aten.square.default)
def _square(node: torch.fx.Node, ranges: Ranges) -> Range:
    found = _magnitudes(ranges(node.args[0]))
    return times(found, found)


@rule(aten.neg.default)
def _neg(node: torch.fx.Node, ranges: Ranges) -> Range:
    found = ranges(node.args[0])
    return Range(-found.high, -found.low)


@rule(aten.abs.default)
def _abs(node: torch.fx.Node, ranges: Ranges) -> Range:
    return _magnitudes(ranges(node.args[0]))


def _magnitudes(found: Range) -> Range:
    low = 0 if found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    return Range(low, max(abs(found.low), abs(found.high)))


@rule(aten.sign.default, aten.sgn.default)
def _sign(node: torch.fx.Node, ranges: Ranges) -> Range:
    return Range(-1, 1)


@rule(aten.relu.default)
def _relu(node: torch.fx.Node, ranges: Ranges) -> Range:
    found = ranges(node.args[0])
    return Range(max(found.low, 0), max(found.high, 0))


@rule(aten.pow.Tensor_Scalar)
def _pow(node: torch.fx.Node, ranges: Ranges) -> Range:
    found, exponent = ranges(node.args[0]), node.args[1]
    if not isinstance(exponent, int) or not 0 <= exponent <= 64 or not found.within(Range(-(2**64), 2**64)):
        return ANYTHING
    reach = _magnitudes(found).high
    high = math.floor(reach) ** exponent if isinstance(reach, int) else reach**exponent
    return Range(0 if exponent % 2 == 0 or found.low >= 0 else -high, max(high, 1))


@rule(aten.floor_divide.default, aten.floor_divide.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode)
def _whole_division(node: torch.fx.Node, ranges: Ranges) -> Range:
    """A quotient is no larger than what is divided, unless it is divided by a fraction."""
    left, right = _both(node, ranges)
    if node.meta["val"].dtype.is_floating_point:
        return ANYTHING
    reach = _magnitudes(left).high
    low = 0 if left.low >= 0 and right.low >= 0 else -reach - 1
    return Range(low, max(reach, 0))


@rule(aten.div.Tensor, aten.div.Scalar)
def _division(node: torch.fx.Node, ranges: Ranges) -> Range:
    left, right = _both(node, ranges)
    if right.low <= 0 <= right.high:
        return ANYTHING
    corners = [one / other for one in left for other in right]
    return _ordered(min(corners), max(corners))


@rule(aten.remainder.Tensor, aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar)
def _remainder(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Smaller than what is divided by; of its sign, or of that of what is divided."""
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
    found = ranges(node.args[0])
    given = [*node.args[1:], None, None]
    low, high = node.kwargs.get("min", given[0]), node.kwargs.get("max", given[1])
    if node.target is aten.clamp_max.default:
        low, high = None, given[0]
    if node.target is aten.hardtanh.default:
        low, high = (-1 if given[0] is None else given[0]), (1 if given[1] is None else given[1])
    if low is not None:
        least = ranges(low)
        found = Range(max(found.low, least.low), max(found.high, least.high))
    if high is not None:
        most = ranges(high)
        found = Range(min(found.low, most.low), min(found.high, most.high))
    return found


# -- bits ------------------------------------------------------------------------------------------------------------


@rule(aten.bitwise_not.default)
def _bitwise_not(node: torch.fx.Node, ranges: Ranges) -> Range:
    found = ranges(node.args[0])
    return Range(-1 - found.high, -1 - found.low)


@rule(
    aten.bitwise_and.Tensor, aten.bitwise_and.Scalar, aten.bitwise_or.Tensor, aten.bitwise_or.Scalar,
    aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar,
)  # fmt: skip
def _bitwise(node: torch.fx.Node, ranges: Ranges) -> Range:
    """As many bits as the wider operand has; of `and`, as the narrower one that is not negative."""
    left, right = _both(node, ranges)
    is_and = node.target in (aten.bitwise_and.Tensor, aten.bitwise_and.Scalar)
    positive = [each.high for each in (left, right) if each.low >= 0]
    if is_and and positive:
        return Range(0, min(positive))
    reach = max(_magnitudes(left).high, _magnitudes(right).high)
    if not math.isfinite(reach):
        return ANYTHING
    most = (1 << int(reach).bit_length()) - 1
    return Range(0 if left.low >= 0 and right.low >= 0 else -most - 1, most)


@rule(
    aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar, aten.__lshift__.Scalar,
    aten.__lshift__.Tensor,
)  # fmt: skip
def _left_shift(node: torch.fx.Node, ranges: Ranges) -> Range:
    found, by = _both(node, ranges)
    return times(found, Range(1, 2**by.high)) if by.low >= 0 and by.high < 64 else ANYTHING


@rule(
    aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar, aten.__rshift__.Scalar,
    aten.__rshift__.Tensor,
)  # fmt: skip
def _right_shift(node: torch.fx.Node, ranges: Ranges) -> Range:
    found, by = _both(node, ranges)
    return found.joined(Range(0, 0)).joined(Range(-1, 0) if found.low < 0 else Range(0, 0)) if by.low >= 0 else ANYTHING


# -- choosing and writing --------------------------------------------------------------------------------------------


@rule(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def _where(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[1]).joined(ranges(node.args[2]))


@rule(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(ranges(node.args[2]))


@rule(aten.constant_pad_nd.default)
def _pad(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(ranges(node.args[2] if len(node.args) > 2 else 0))


@rule(aten.tril.default, aten.triu.default)
def _triangle(node: torch.fx.Node, ranges: Ranges) -> Range:
    return ranges(node.args[0]).joined(Range(0, 0))


@rule(
    aten.scatter.src, aten.scatter.value, aten.slice_scatter.default, aten.select_scatter.default,
    aten.index_copy.default, aten.masked_scatter.default, aten.copy.default, aten.index_fill.int_Scalar,
)  # fmt: skip
def _written(node: torch.fx.Node, ranges: Ranges) -> Range:
    """What was there, or what is written."""
    number = {aten.slice_scatter.default: 1, aten.select_scatter.default: 1, aten.copy.default: 1}.get(node.target, 3)
    if node.target is aten.masked_scatter.default:
        number = 2
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


def _accumulated(node: torch.fx.Node, ranges: Ranges, written: Any) -> Range:
    """All that is written may be added to one place."""
    there, each = ranges(node.args[0]), ranges(written)
    count = written.meta["val"].numel() if isinstance(written, torch.fx.Node) else math.prod(node.meta["val"].shape)
    added = times(each, Range(0, max(count, 1)))
    return _ordered(there.low + added.low, there.high + added.high)


# -- reductions ------------------------------------------------------------------------------------------------------


def _length(node: torch.fx.Node) -> int:
    """How many values become one, at most."""
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


@rule(
    aten.argmax.default, aten.argmin.default, aten.argsort.default, aten.argsort.stable, aten.count_nonzero.default,
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


@rule(aten.log2.default, aten.log.default, aten.log10.default, aten.sqrt.default)
def _slow(node: torch.fx.Node, ranges: Ranges) -> Range:
    """Functions that grow slower than what they are of: finite for what is finite and positive."""
    found = ranges(node.args[0])
    functions = {aten.log2.default: math.log2, aten.log.default: math.log, aten.log10.default: math.log10}
    function = functions.get(node.target, math.sqrt)
    if found.low < 0 or (found.low == 0 and function is not math.sqrt) or not math.isfinite(found.high):
        return ANYTHING
    return Range(function(found.low), function(found.high))


# -- several results: values and where they were ---------------------------------------------------------------------

SEVERAL: dict[Any, Callable[[torch.fx.Node, Ranges, int], Range]] = {}


def _values_and_places(node: torch.fx.Node, ranges: Ranges, output: int) -> Range:
    source: Any = node.args[0]
    return ranges(source) if output == 0 else Range(0, max(source.meta["val"].numel() - 1, 0))


def _parts(node: torch.fx.Node, ranges: Ranges, output: int) -> Range:
    return ranges(node.args[0])


for _overload in (
    aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim, aten.min.dim, aten.kthvalue.default,
    aten.median.dim, aten.mode.default, aten.cummax.default, aten.cummin.default,
    aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default, aten.adaptive_max_pool2d.default,
):  # fmt: skip
    SEVERAL[_overload] = _values_and_places
for _overload in (
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.chunk.default,
    aten.aminmax.default,
):
    SEVERAL[_overload] = _parts
