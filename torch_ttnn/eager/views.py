"""Views: a view is its storage and the chain of ATen views that leads to it.

A view computes nothing. A program that reads it applies the chain to the storage as part of the program, where most
views are free; a program that writes it writes the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from torch_ttnn.compiler.ir.arguments import frozen

MOST_GEOMETRIES = 20_000  # results of views that are remembered


class Step(NamedTuple):
    """One ATen view, without its first argument; `result` is the index of the result, if it returns several."""

    function: Any
    args: tuple
    kwargs: dict[str, Any]
    result: int | None
    key: Any

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        made = self.function(tensor, *self.args, **self.kwargs)
        return made if self.result is None else made[self.result]


class Chain:
    """Views in order, from the storage on; hashed once, because programs are looked up by it."""

    __slots__ = ("steps", "_key", "_hash")

    def __init__(self, steps: tuple[Step, ...] = ()) -> None:
        self.steps = steps
        self._key = tuple([step.key for step in steps])
        self._hash = hash(self._key)

    def then(self, step: Step) -> Chain:
        return Chain((*self.steps, step))

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The view of a torch tensor with the storage's geometry."""
        for step in self.steps:
            tensor = step.of(tensor)
        return tensor

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Chain) and self._key == other._key)

    def __bool__(self) -> bool:
        return bool(self.steps)


WHOLE = Chain()


class Geometry(NamedTuple):
    """The metadata of a tensor."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Geometry:
        return cls(tuple(tensor.size()), tuple(tensor.stride()), int(tensor.storage_offset()), tensor.dtype)

    def on(self, device: str) -> torch.Tensor:
        """A tensor with this geometry, without values."""
        reach = 1 + self.offset + sum((size - 1) * stride for size, stride in zip(self.size, self.stride))
        whole = torch.empty(max(reach, self.offset), dtype=self.dtype, device=device)
        return whole.as_strided(self.size, self.stride, self.offset)


_geometries: dict[Any, Any] = {}


def step_of(function: Any, args: Sequence[Any], kwargs: dict[str, Any], index: int | None = None) -> Step:
    args = tuple(args)
    key = function, frozen(args, _no_nodes), frozen(kwargs, _no_nodes), index
    return Step(function, args, kwargs, index, key)


def geometry_after(source: Geometry, step: Step) -> Geometry | list[Geometry]:
    """The geometry of a view, or of several; torch raises its error for an invalid one."""
    key = source, step.key
    found = _geometries.get(key)
    if found is None:
        made = step.function(source.on("meta"), *step.args, **step.kwargs)
        found = Geometry.of(made) if isinstance(made, torch.Tensor) else [Geometry.of(each) for each in made]
        if len(_geometries) >= MOST_GEOMETRIES:
            _geometries.clear()
        _geometries[key] = found
    return found


def _no_nodes(node: Any) -> Any:
    return node
