"""Decomposes operations on lists of tensors, such as those of optimizers, into operations on each tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

EACH = torch._C.DispatchKey.CompositeExplicitAutograd  # torch's kernel that calls the operation of each tensor


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """A decomposition of every functional `_foreach_` overload."""
    found: dict[Any, Callable[..., Any]] = {}
    for qualified in torch._C._dispatch_get_all_op_names():
        name, _, overload = qualified.removeprefix("aten::").partition(".")
        if not name.startswith("_foreach_") or name.endswith("_") or "out" in overload:
            continue
        operation = getattr(getattr(torch.ops.aten, name), overload or "default")
        if operation.has_kernel_for_dispatch_key(EACH):
            found[operation] = functools.partial(operation._op_dk, EACH)
    return found
