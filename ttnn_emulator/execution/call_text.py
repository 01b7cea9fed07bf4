"""Calls as text, for error messages and captured graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor


def describe(names: Sequence[str], values: Sequence[Any]) -> str:
    """The explicit arguments of a call for an error message, tensors by their specs."""
    shown = []
    for name, value in zip(names, values):
        if value is None or value is False or (value.__class__ is tuple and not value):
            continue
        shown.append(f"{name}={brief(value)}")
    return ", ".join(shown)


def brief(value: Any) -> str:
    """One argument as text, tensors by their specs."""
    if isinstance(value, Tensor | Spec):
        return value.brief()
    if isinstance(value, tuple):
        return "[" + ", ".join(brief(item) for item in value) + "]"
    if isinstance(value, torch.Tensor):
        return f"torch.Tensor({list(value.shape)} {str(value.dtype).removeprefix('torch.')})"
    own = getattr(value, "brief", None)
    return own() if own is not None else repr(value)
