"""The nested names of the library: `ttnn.transformer`, `ttnn.experimental`, `ttnn.operations.matmul`, …"""

from __future__ import annotations

import sys
import types
from typing import Any

from ttnn_emulator import device, queries
from ttnn_emulator.api.recorded import operation_names, public_names
from ttnn_emulator.library import cluster, tracer
from ttnn_emulator.library.system_mesh import SystemMeshDescriptor
from ttnn_emulator.table import OPERATIONS, absent, find


def _public(module: types.ModuleType) -> dict[str, Any]:
    """Names that a module of ours defines or gives on."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


# Names that stand in a module only.
ONLY_THERE: dict[str, dict[str, Any]] = {
    "ttnn.core": {"divup": queries.divup, "roundup": queries.roundup},
    "ttnn.device": {
        "DEFAULT_L1_SMALL_SIZE": device.DEFAULT_L1_SMALL_SIZE,
        "DEFAULT_TRACE_REGION_SIZE": device.DEFAULT_TRACE_REGION_SIZE,
        "ClearKernelCache": queries.ClearKernelCache,
        "EnableMemoryReports": queries.EnableMemoryReports,
        "DisableMemoryReports": queries.DisableMemoryReports,
        "is_asynchronous_slow_dispatch_enabled": queries.is_asynchronous_slow_dispatch_enabled,
    },
}
ONLY_THERE["ttnn.cluster"] = _public(cluster)
ONLY_THERE["ttnn.tracer"] = _public(tracer)
ONLY_THERE["ttnn._ttnn.multi_device"] = {"SystemMeshDescriptor": SystemMeshDescriptor}
# Modules whose other names also stand directly in `ttnn`.
SAME_NAMES = frozenset(f"ttnn.{name}" for name in ("core", "device", "distributed", "profiler", "types"))


class Namespace(types.ModuleType):
    """A module of operations; what the library has and we lack answers too, by saying so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        package = sys.modules[__package__]
        # `ttnn.types.CoreGrid`, `ttnn.device.manage_device`: the same objects under the name of their module.
        if self.__name__ in SAME_NAMES and name in vars(package):
            return vars(package)[name]
        nested = f"{full}."
        if full in ONLY_THERE or any(known.startswith(nested) for known in operation_names()):
            return namespace(full)
        if full in operation_names():
            return find(full)
        return vars(package)[name] if name in vars(package) else absent(full)


_made: dict[str, Namespace] = {}


def namespace(full_name: str) -> Namespace:
    """The namespace of this full name, made on first use and importable from then on."""
    if full_name not in _made:
        made = _made[full_name] = Namespace(full_name)
        vars(made).update(ONLY_THERE.get(full_name, {}))
        prefix = f"{full_name}."
        for name, op in OPERATIONS.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                setattr(made, name[len(prefix) :], op)
    return _made[full_name]


def top_level_operations() -> dict[str, Any]:
    """Operations that stand directly in `ttnn`."""
    return {name[5:]: op for name, op in OPERATIONS.items() if name.count(".") == 1}


def nested_namespaces() -> dict[str, Namespace]:
    """The first-level modules of the library in which scripts look names up."""
    known = (*operation_names(), *public_names(), *(f"{module}." for module in ONLY_THERE))
    firsts = sorted({name.split(".")[1] for name in known if name.count(".") > 1})
    return {first: namespace(f"ttnn.{first}") for first in firsts}


def register_as_ttnn(package: types.ModuleType) -> None:
    """Make `import ttnn` and `import ttnn.<namespace>` give the emulator, in this process."""
    from ttnn_emulator import model_preprocessing

    sys.modules["ttnn"] = package
    sys.modules["ttnn.model_preprocessing"] = model_preprocessing
    for name, made in _made.items():
        sys.modules.setdefault(name, made)
