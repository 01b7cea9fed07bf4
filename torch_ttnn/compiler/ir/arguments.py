"""Arguments of calls in a graph: nested lists, tuples and dicts, whose leaves may be nodes or the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch.fx
from torch.fx.immutable_collections import immutable_dict, immutable_list

LISTS = (list, immutable_list)
DICTS = (dict, immutable_dict)


class DeviceMarker:
    """Stands for the device in recorded calls; printed as `device`."""

    def __repr__(self) -> str:
        return "device"


DEVICE = DeviceMarker()


def mapped(item: Any, function: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dicts, with the function applied to every leaf.

    >>> mapped(([1, 2], {"dim": 3}), lambda number: number * 10)
    ([10, 20], {'dim': 30})
    """
    kind = item.__class__
    if kind is tuple:
        return tuple([mapped(each, function) for each in item])
    if kind in LISTS:
        return [mapped(each, function) for each in item]
    if kind in DICTS:
        return {key: mapped(each, function) for key, each in item.items()}
    return function(item)


def leaves(item: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts.

    >>> leaves(([1, 2], {"dim": 3}))
    [1, 2, 3]
    """
    found: list[Any] = []
    mapped(item, found.append)
    return found


def call_with(
    function: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any], value_of: Callable[[Any], Any]
) -> Any:
    """Call a function with `value_of` applied to every leaf of its arguments."""
    return function(*mapped(args, value_of), **mapped(kwargs, value_of))


def frozen(item: Any, node_of: Callable[[torch.fx.Node], torch.fx.Node]) -> Any:
    """Arguments as a hashable key, equal for equal arguments; nodes are replaced by `node_of` of them."""
    if isinstance(item, torch.fx.Node):
        return node_of(item)
    if isinstance(item, tuple | list):
        return type(item).__name__, *[frozen(each, node_of) for each in item]
    if isinstance(item, dict):
        return tuple([(name, frozen(each, node_of)) for name, each in item.items()])
    if isinstance(item, slice):
        return "slice", item.start, item.stop, item.step
    return type(item), item  # 1, 1.0 and True are equal, but not the same argument
