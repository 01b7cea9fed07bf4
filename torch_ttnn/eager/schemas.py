"""What an operation's schema says about its results: which are new, and which are arguments that it wrote."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

TENSORS = ("Tensor", "List[Tensor]", "Optional[Tensor]", "List[Optional[Tensor]]")


@dataclass(frozen=True)
class Returns:
    """The results of an operation.

    new       the indices of those that are new tensors
    written   for each of the others, the argument that it is: its position and name
    total     their number
    tensors   whether all are tensors or lists of tensors
    mutates   the positions and names of the arguments that are written
    """

    new: tuple[int, ...]
    written: dict[int, tuple[int, str]]
    total: int
    tensors: bool
    mutates: tuple[tuple[int, str], ...]

    def assembled(self, made: list[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The results in order, from the new ones."""
        if self.total == 1:
            return made[0] if self.new else argument(self.written[0], args, kwargs)
        if not self.total:
            return None
        fresh = iter(made)
        return tuple(
            [
                argument(self.written[number], args, kwargs) if number in self.written else next(fresh)
                for number in range(self.total)
            ]
        )


def argument(place: tuple[int, str], args: tuple, kwargs: dict[str, Any]) -> Any:
    number, name = place
    return args[number] if number < len(args) else kwargs.get(name)


@functools.cache
def returns_of(function: Any) -> Returns:
    schema = function._schema
    aliases: dict[str, tuple[int, str]] = {}
    mutates = []
    for number, each in enumerate(schema.arguments):
        if each.alias_info is None:
            continue
        for name in each.alias_info.before_set:
            aliases[name] = number, each.name
        if each.alias_info.is_write:
            mutates.append((number, each.name))
    written: dict[int, tuple[int, str]] = {}
    for number, each in enumerate(schema.returns):
        if each.alias_info is not None and each.alias_info.is_write:
            written[number] = aliases[next(iter(each.alias_info.before_set))]
    new = tuple([number for number in range(len(schema.returns)) if number not in written])
    tensors = all(str(each.type) in TENSORS for each in schema.returns)
    return Returns(new, written, len(schema.returns), tensors, tuple(mutates))


@functools.cache
def is_view(function: Any) -> bool:
    """Whether an operation returns views of its first argument and writes nothing."""
    if not isinstance(function, torch._ops.OpOverload):
        return False
    schema = function._schema
    if any(each.alias_info is not None and each.alias_info.is_write for each in schema.arguments):
        return False
    return any(each.alias_info is not None for each in schema.returns) or function in SHARING


# torch's kernels return views, though their schemas do not say so.
SHARING = frozenset({torch.ops.aten._unsafe_view.default})
