"""Results that share storage in torch: `y = x * 2; return y, y[1:]`. A write to one of them shows in the other.

A program downloads each result into its own storage; this module turns them into views of one, as captured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

Share = Callable[[list[Any]], None]


def sharing(captured: torch.fx.GraphModule) -> list[Share]:
    """Functions that make results of a program share storage, in place; none for most graphs."""
    outputs: Any = captured.graph.output_node().args[0]
    vals: list[Any] = [item.meta.get("val") if isinstance(item, torch.fx.Node) else None for item in outputs]
    inputs = {_storage(node.meta.get("val")) for node in captured.graph.find_nodes(op="placeholder")}
    groups: dict[Any, list[int]] = {}
    for number, (node, val) in enumerate(zip(outputs, vals)):
        storage = _storage(val)
        if storage is None or storage in inputs or node.op != "call_function":
            continue
        members = groups.setdefault((storage, val.dtype), [])
        if all(outputs[each] is not node for each in members):
            members.append(number)
    return [_share(numbers, vals) for numbers in groups.values() if len(numbers) > 1 and _can_share(numbers, vals)]


def _storage(val: Any) -> int | None:
    """An identifier of a tensor's storage, valid while the tensor lives."""
    if not isinstance(val, torch.Tensor) or val.layout is not torch.strided or not val.numel():
        return None
    return val.untyped_storage()._cdata


def _is_whole(val: torch.Tensor) -> bool:
    """Whether a tensor covers its storage without gaps or overlaps."""
    return val.storage_offset() == 0 and val.numel() == _elements(val) and not _overlaps(val)


def _overlaps(val: torch.Tensor) -> bool:
    """Whether two elements may have one address."""
    reach = 0  # of the dimensions with smaller strides
    for stride, size in sorted([(stride, size) for stride, size in zip(val.stride(), val.shape) if size > 1]):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _elements(val: torch.Tensor) -> int:
    return val.untyped_storage().nbytes() // val.element_size()


def _can_share(numbers: Sequence[int], vals: Sequence[Any]) -> bool:
    """Whether results can share storage: one covers all of it, or all can be written because only `expand` overlaps."""
    if any(_is_whole(vals[number]) for number in numbers):
        return True
    return all(_without_repeats(vals[number]) is not None for number in numbers)


def _without_repeats(val: torch.Tensor) -> torch.Tensor | None:
    """The tensor with one element of each dimension that `expand` repeats; None if its elements still overlap."""
    once = val
    for dim, stride in enumerate(val.stride()):
        if stride == 0 and val.shape[dim] > 1:
            once = once.narrow(dim, 0, 1)
    return None if _overlaps(once) else once


def _share(numbers: Sequence[int], vals: Sequence[Any]) -> Share:
    owner = next((number for number in numbers if _is_whole(vals[number])), None)
    views = {}
    for number in numbers:
        val = vals[number]
        views[number] = tuple(val.shape), val.stride(), val.storage_offset()
    size = _elements(vals[numbers[0]])

    def share(results: list[Any]) -> None:
        if owner is not None:
            base = results[owner]
            start = base.storage_offset()
        else:
            base, start = results[numbers[0]].new_empty(size), 0
        for number in numbers:
            if number == owner:
                continue
            shape, stride, offset = views[number]
            view = base.as_strided(shape, stride, start + offset)
            if owner is None:
                _write(view, results[number])
            results[number] = view

    return share


def _write(view: torch.Tensor, value: torch.Tensor) -> None:
    for dim, stride in enumerate(view.stride()):
        if stride == 0 and view.shape[dim] > 1:
            view, value = view.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
    view.copy_(value)
