"""Keeps tied weights tied when a module moves to `ttnn` or back.

`Module.to` gives a parameter new values in place only between devices whose tensors are of one kind; otherwise each
module makes a parameter of its own. So a weight that two modules share would become two.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from torch import nn


class _Depth(threading.local):
    value = 0


_depth = _Depth()


def keep_tied() -> None:
    """Wrap `Module._apply`, which all moves of modules call."""
    original = nn.Module._apply

    @functools.wraps(original)
    def apply(self: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        if _depth.value:  # of a child
            return original(self, *args, **kwargs)
        shared = _shared(self)
        _depth.value += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            _depth.value -= 1
            for places in shared:
                _tie(places)

    nn.Module._apply = apply  # type: ignore[method-assign]


Place = tuple[dict[str, Any], str]


def _shared(module: nn.Module) -> list[list[Place]]:
    """The places of each parameter or buffer that several modules, or names, share."""
    places: dict[int, list[Place]] = {}
    for each in module.modules():
        for table in (each._parameters, each._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    places.setdefault(id(tensor), []).append((table, name))
    return [each for each in places.values() if len(each) > 1]


def _tie(places: list[Place]) -> None:
    table, name = places[0]
    for other, its in places[1:]:
        other[its] = table[name]
