"""Hides the work of the device from the modes of the program around it."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

import torch

from torch_ttnn.compiler.runtime.dispatch_modes import unobserved

_NOTHING = contextlib.nullcontext()


def quiet() -> AbstractContextManager:
    """A context without modes: `with torch.device("ttnn")` must not apply to tensors that the device computes with."""
    functions = torch._C._len_torch_function_stack()
    dispatch = torch._C._len_torch_dispatch_stack()
    if not functions and not dispatch:
        return _NOTHING
    stack = contextlib.ExitStack()
    if functions:
        stack.enter_context(torch._C.DisableTorchFunction())
    if dispatch:
        stack.enter_context(unobserved())
    return stack
