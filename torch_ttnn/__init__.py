"""PyTorch models on Tenstorrent hardware, in one line: `torch.compile(model, backend="ttnn")`.

Importing the package imports nothing else, not even torch: each public name loads its module on first use.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from torch_ttnn import tracer
    from torch_ttnn.backend import backend, compile
    from torch_ttnn.check import check
    from torch_ttnn.compiler.errors import GraphBreakWarning, HostOperationWarning, refuse
    from torch_ttnn.compiler.lowering.registry import lowers
    from torch_ttnn.eager.log import eager
    from torch_ttnn.explain import explain
    from torch_ttnn.export import export_code
    from torch_ttnn.generation.prepare import prepare_for_generation
    from torch_ttnn.options import TorchTtnnOption
    from torch_ttnn.perf.profile import profile

__version__ = "0.4.0"
__all__ = [
    "GraphBreakWarning",
    "HostOperationWarning",
    "TorchTtnnOption",
    "backend",
    "check",
    "compile",
    "eager",
    "explain",
    "export_code",
    "lowers",
    "prepare_for_generation",
    "profile",
    "refuse",
    "tracer",
]

# The module that defines each public name; `tracer` is itself a package.
_DEFINED_IN = {
    "GraphBreakWarning": "torch_ttnn.compiler.errors",
    "HostOperationWarning": "torch_ttnn.compiler.errors",
    "TorchTtnnOption": "torch_ttnn.options",
    "backend": "torch_ttnn.backend",
    "check": "torch_ttnn.check",
    "compile": "torch_ttnn.backend",
    "eager": "torch_ttnn.eager.log",
    "explain": "torch_ttnn.explain",
    "export_code": "torch_ttnn.export",
    "lowers": "torch_ttnn.compiler.lowering.registry",
    "prepare_for_generation": "torch_ttnn.generation.prepare",
    "profile": "torch_ttnn.perf.profile",
    "refuse": "torch_ttnn.compiler.errors",
}


def __getattr__(name: str) -> _Any:
    if name == "tracer":
        return _importlib.import_module("torch_ttnn.tracer")
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_importlib.import_module(_DEFINED_IN[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(_ModuleType):
    """Keeps public functions from being replaced by packages of the same name.

    Importing `torch_ttnn.explain`, or anything in it, makes Python assign that package to the attribute `explain` of
    this one, which is the public function.
    """

    def __setattr__(self, name: str, value: _Any) -> None:
        if not (name in _DEFINED_IN and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package


def _register_backends() -> None:
    """Register the backends with Dynamo where the package is not installed (a checkout on PYTHONPATH).

    An installed package is found by its entry points when `torch.compile` looks for a backend. Registering takes
    seconds, because it imports Dynamo.
    """
    installed = _entry_points("torch_dynamo_backends")
    if {"ttnn", "torch_stat"} <= installed:
        return
    from torch._dynamo import register_backend

    from torch_ttnn.compiler.frontend.dynamo_rules import traces_recurrent_modules

    @traces_recurrent_modules
    def ttnn(*args: _Any, **kwargs: _Any) -> _Any:
        return __getattr__("backend")(*args, **kwargs)

    def torch_stat(*args: _Any, **kwargs: _Any) -> _Any:
        return __getattr__("tracer").backend(*args, **kwargs)

    for function in (ttnn, torch_stat):
        if function.__name__ not in installed:
            register_backend(function)


def _register_device() -> None:
    """Register the device `ttnn` where torch does not do it: in a checkout on PYTHONPATH.

    An installed package is found by its entry point when torch is imported.
    """
    if "ttnn" not in _entry_points("torch.backends"):
        from torch_ttnn.eager.device.registration import register

        register()


def _entry_points(group: str) -> set[str]:
    """The names that the installed package has in a group; none in a checkout."""
    from importlib import metadata

    try:
        return set(metadata.distribution("torch_ttnn").entry_points.select(group=group).names)
    except metadata.PackageNotFoundError:
        return set()


_register_backends()
_register_device()
