"""PyTorch models on Tenstorrent hardware, in one line: `torch.compile(model, backend="ttnn")`."""

from __future__ import annotations

from importlib.metadata import entry_points as _entry_points

from torch._dynamo import register_backend as _register_backend

from torch_ttnn.backend import backend, compile
from torch_ttnn.check import check
from torch_ttnn.explain import explain
from torch_ttnn.export import export_code
from torch_ttnn.options import TorchTtnnOption

__version__ = "0.2.0"
__all__ = ["TorchTtnnOption", "backend", "check", "compile", "explain", "export_code"]

# Installed, the package is found by its entry point, and torch registers it; a second time would be an error.
if "ttnn" not in _entry_points(group="torch_dynamo_backends").names:
    _register_backend(backend, name="ttnn")
