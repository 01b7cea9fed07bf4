"""PyTorch models on Tenstorrent hardware, in one line: `torch.compile(model, backend="ttnn")`."""

from __future__ import annotations

import importlib as _importlib
from importlib.metadata import entry_points as _entry_points
from typing import Any as _Any

from torch._dynamo import register_backend as _register_backend

from torch_ttnn.backend import backend, compile
from torch_ttnn.check import check
from torch_ttnn.compiler.errors import GraphBreakWarning, HostOperationWarning
from torch_ttnn.explain import explain
from torch_ttnn.export import export_code
from torch_ttnn.options import TorchTtnnOption

__version__ = "0.4.0"
__all__ = [
    "GraphBreakWarning",
    "HostOperationWarning",
    "TorchTtnnOption",
    "backend",
    "check",
    "compile",
    "explain",
    "export_code",
    "tracer",
]


def _torch_stat(*args: _Any, **kwargs: _Any) -> _Any:
    """The tracer's backend, imported when it is used."""
    from torch_ttnn.tracer import backend as traced

    return traced(*args, **kwargs)


def __getattr__(name: str) -> _Any:
    if name == "tracer":
        return _importlib.import_module("torch_ttnn.tracer")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Installed, the package is found by its entry points, and torch registers them; a second time would be an error.
_registered = _entry_points(group="torch_dynamo_backends").names
for _name, _backend in {"ttnn": backend, "torch_stat": _torch_stat}.items():
    if _name not in _registered:
        _register_backend(_backend, name=_name)
