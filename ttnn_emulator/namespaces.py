"""The nested names of the library: `ttnn.transformer`, `ttnn.experimental`, `ttnn.operations.matmul`, …"""

from __future__ import annotations

import sys
import types
from typing import Any

from ttnn_emulator.api.recorded import operation_names
from ttnn_emulator.table import OPERATIONS, find


class Namespace(types.ModuleType):
    """A module of operations; what the library has and we lack answers too, by saying so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        nested = f"{full}."
        if any(known.startswith(nested) for known in operation_names()):
            return namespace(full)
        if full in operation_names():
            return find(full)
        # `ttnn.types.CoreGrid`, `ttnn.device.manage_device`: the same objects under the name of their module.
        return getattr(sys.modules[__package__], name)


_made: dict[str, Namespace] = {}


def namespace(full_name: str) -> Namespace:
    """The namespace of this full name, made on first use and importable from then on."""
    if full_name not in _made:
        made = _made[full_name] = Namespace(full_name)
        prefix = f"{full_name}."
        for name, op in OPERATIONS.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                setattr(made, name[len(prefix) :], op)
    return _made[full_name]


def top_level_operations() -> dict[str, Any]:
    """Operations that stand directly in `ttnn`."""
    return {name[5:]: op for name, op in OPERATIONS.items() if name.count(".") == 1}


def nested_namespaces() -> dict[str, Namespace]:
    """The first-level namespaces that hold at least one operation of the library."""
    firsts = sorted({name.split(".")[1] for name in operation_names() if name.count(".") > 1})
    return {first: namespace(f"ttnn.{first}") for first in firsts}


def register_as_ttnn(package: types.ModuleType) -> None:
    """Make `import ttnn` and `import ttnn.<namespace>` give the emulator, in this process."""
    sys.modules["ttnn"] = package
    for name, made in _made.items():
        sys.modules.setdefault(name, made)
