"""Which operations have integers that may exceed the device's 32 bits."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges import conditions
from torch_ttnn.compiler.analysis.ranges.propagation import INT32, Ranges
from torch_ttnn.compiler.ir.arguments import leaves


def beyond(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether an operation reads or returns int64 values that may exceed 32 bits, and matter."""
    if not _exceeds(node, ranges):
        return False
    where_read = conditions.where_read(node, ranges)
    return where_read is ranges or _exceeds(node, where_read)


def _exceeds(node: torch.fx.Node, ranges: Ranges) -> bool:
    val = node.meta.get("val")
    vals = val if isinstance(val, tuple | list) else (val,)
    for number, each in enumerate(vals):
        if _is_long(each) and _is_read(node, number, len(vals)) and not ranges(node, number).within(INT32):
            return True
    return any(
        _is_long(item.meta.get("val")) and not where_read(item).within(INT32)
        for item, where_read in _read(node, ranges)
    )


def _read(node: torch.fx.Node, ranges: Ranges) -> Iterator[tuple[torch.fx.Node, Ranges]]:
    """The values that an operation reads, with the ranges of those elements that it reads."""
    if node.target is operator.getitem or node.target in conditions.SHAPED_LIKE:
        return
    if node.target in conditions.SELECTIONS:
        arms: list[tuple[Any, Ranges]] = [(node.args[0], ranges)]
        arms += [(node.args[arm], conditions.where(node, arm, ranges)) for arm in (1, 2)]
        yield from ((item, each) for item, each in arms if isinstance(item, torch.fx.Node))
        return
    for item in leaves((node.args, node.kwargs)):
        if isinstance(item, torch.fx.Node):
            yield item, ranges


def _is_long(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and val.dtype is torch.int64


def _is_read(node: torch.fx.Node, number: int, outputs: int) -> bool:
    """Whether this output is used."""
    return outputs == 1 or any(user.target is operator.getitem and user.args[1] == number for user in node.users)
