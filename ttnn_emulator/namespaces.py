"""The modules of the library: `ttnn.transformer`, `ttnn.operations.matmul`, `ttnn._ttnn.multi_device`, …

The names of every module are recorded from the library (`api/public_names.json`). A name resolves if a module of
`library/` supplies it, if it is an operation, or if it is recorded as an alias of a name that resolves.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.api.recorded import operation_names, public_names, recorded_names
from ttnn_emulator.execution.operation_table import OPERATIONS, AbsentValue, MissingOperation, absent, find
from ttnn_emulator.library import SUPPLIED

PACKAGE = "ttnn_emulator"


class Namespace(types.ModuleType):
    """A module of the library; names that are not emulated resolve to objects that raise when used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return self._keep(name, look_up(full))

    def _keep(self, name: str, value: Any) -> Any:
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Scripts change some settings by assignment; `ON_SET` of the supplying module is notified."""
        super().__setattr__(name, value)
        for module in SUPPLIED.get(self.__name__, ()) if name.startswith("_") and name[1:2] != "_" else ():
            on_set = vars(importlib.import_module(module)).get("ON_SET", {}).get(name)
            if on_set is not None:
                on_set(value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *recorded_names()["modules"].get(self.__name__, ())})


_namespaces: dict[str, Namespace] = {}


def namespace(full_name: str) -> Namespace:
    """The namespace of this full name, created on first use."""
    if full_name not in _namespaces:
        _namespaces[full_name] = Namespace(full_name)
    return _namespaces[full_name]


def look_up(full_name: str) -> Any:
    """The object behind a name of the library; unknown names raise AttributeError."""
    home, _, name = full_name.rpartition(".")
    kind = public_names().get(full_name, "")
    if kind[:2] == "= " and _is_emulated(kind[2:]):
        return attribute(kind[2:])
    for module in SUPPLIED.get(home, ()):
        supplied = vars(importlib.import_module(module))
        if name in supplied and (full_name in public_names() or name in supplied.get("LIBRARY_PRIVATE", ())):
            return supplied[name]
    if full_name in recorded_names()["modules"] or _contains_operations(full_name):
        return namespace(full_name)
    if full_name in OPERATIONS or full_name in operation_names():
        return find(full_name)
    if kind[:2] in ("= ", "~ "):
        return attribute(kind[2:])
    if kind == "class" and name in TYPES.classes:
        return TYPES.classes[name]
    at_top = public_names().get(f"ttnn.{name}", "module")
    if home != "ttnn" and kind and at_top != "module" and _is_emulated(f"ttnn.{name}"):
        # A value or a bound function: `ttnn.types.bfloat16`, `ttnn._ttnn.device.get_arch_name`.
        return attribute(f"ttnn.{name}")
    return absent(full_name)


def _is_emulated(full_name: str) -> bool:
    try:
        return not isinstance(attribute(full_name), MissingOperation)
    except AbsentValue:
        return False


def _contains_operations(full_name: str) -> bool:
    return any(known.startswith(f"{full_name}.") for known in operation_names())


def attribute(full_name: str) -> Any:
    """The object of this full name."""
    if full_name == "ttnn":
        return sys.modules[PACKAGE]
    module, _, name = full_name.rpartition(".")
    if not module:
        return namespace(full_name)
    is_module = module != "ttnn" and module in recorded_names()["modules"]
    return getattr(namespace(module) if is_module else attribute(module), name)


def top_level_operations() -> dict[str, Any]:
    """Operations directly in `ttnn`, and their aliases."""
    named = {name[5:]: op for name, op in OPERATIONS.items() if name.count(".") == 1}
    aliases = {name: kind[2:] for name, kind in recorded_names()["modules"]["ttnn"].items() if kind[:2] == "= "}
    return named | {name: OPERATIONS[other] for name, other in aliases.items() if other in OPERATIONS}


def nested_namespaces() -> dict[str, Namespace]:
    """The first-level modules of the library."""
    names = recorded_names()["modules"]["ttnn"]
    return {name: namespace(f"ttnn.{name}") for name, kind in names.items() if kind == "module"}


def register_as_ttnn(package: types.ModuleType) -> None:
    """Make `import ttnn`, `import ttnn.<module>` and `import tt_lib` import the emulator in this process."""
    sys.modules["ttnn"] = package
    same = {name: name for name in recorded_names()["modules"]}
    for name, recorded in (recorded_names()["importable"] | same).items():
        sys.modules.setdefault(name, package if recorded == "ttnn" else namespace(recorded))
    # The wheel includes the profiler `tracy`; scripts use its signposts.
    if importlib.util.find_spec("tracy") is None:
        sys.modules["tracy"] = importlib.import_module("ttnn_emulator.library.tracy")
