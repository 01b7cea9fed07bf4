"""Lets Dynamo trace modules of torch at which it would otherwise break the graph.

**Recurrent modules.** By default Dynamo breaks the graph at `nn.LSTM`, `nn.GRU` and `nn.RNN` and runs them with torch:
a backend never sees them. `torch._dynamo.config.allow_rnn` allows them for every backend of the process: Inductor would
unroll their loops. So the flag is set only while Dynamo traces such a module for a backend that has the attribute
`TRACES_RNN`.

**Masks of transformers.** `nn.TransformerEncoder` and `nn.TransformerDecoder` inspect the values of a mask to detect
whether it is causal, which breaks the graph. The answer is only a hint: the mask is applied in any case. Captured
graphs do without it, for every backend; eager torch is not affected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch._dynamo import config
from torch._dynamo.eval_frame import innermost_backend
from torch._dynamo.variables.builder import VariableBuilder

TRACES_RNN = "_torch_ttnn_traces_rnn"
Backend = TypeVar("Backend", bound=Callable[..., Any])


def traces_recurrent_modules(backend: Backend) -> Backend:
    """Mark a backend (a function, or a class whose instances are backends) as one that accepts recurrent modules."""
    setattr(backend, TRACES_RNN, True)
    _patch_dynamo()
    return backend


def wants_recurrent_modules(backend: Any) -> bool:
    """Whether a backend is marked, also if Dynamo, `torch.compile` or `functools.partial` wrapped it."""
    while backend is not None:
        if getattr(backend, TRACES_RNN, False):
            return True
        inner: Any = innermost_backend(backend)
        if inner is backend:
            inner = getattr(backend, "compiler_fn", None) or getattr(backend, "func", None)
        backend = inner
    return False


@functools.cache
def _patch_dynamo() -> None:
    """Wrap the only method that reads the flag (torch/_dynamo/variables/builder.py, VariableBuilder.wrap_module)."""
    wrap_module = VariableBuilder.wrap_module

    @functools.wraps(wrap_module)
    def wrap_module_for_backend(self: VariableBuilder, value: torch.nn.Module) -> Any:
        if not isinstance(value, torch.nn.RNNBase) or not wants_recurrent_modules(self.tx.output.compiler_fn):
            return wrap_module(self, value)
        with config.patch(allow_rnn=True):
            return wrap_module(self, value)

    VariableBuilder.wrap_module = wrap_module_for_backend  # type: ignore[method-assign]


@torch.compiler.substitute_in_graph(torch.nn.modules.transformer._detect_is_causal_mask)  # type: ignore[arg-type]
def _detect_is_causal_mask(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    return is_causal is True
