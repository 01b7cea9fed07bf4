"""Operators of other libraries in a program: the modules that a script must import to register them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
import torch.fx
from torch._library.custom_ops import OPDEFS

# Namespaces of operators that come with torch itself.
OF_TORCH = frozenset(
    {"aten", "prims", "prim", "rngprims", "inductor", "higher_order", "profiler", "quantized", "mkldnn"}
)
# Files there register operators on behalf of others: torch.library, and torchvision's stand-ins.
_REGISTER_FOR_OTHERS = (Path(torch.__file__).parent, Path(__file__).parents[1])
_REGISTERED = re.compile(r"registered at ([^\n]*?):\d+")


def imports_of(graphs: Iterable[torch.fx.Graph]) -> str:
    """Import statements for the operators of other libraries that graphs call; empty if there are none.

    If no importable module defines an operator, the statements raise an error that names it.
    """
    named = {str(node.target.name()): node.target for graph in graphs for node in graph.nodes if _is_foreign(node)}
    modules: dict[str, list[str]] = {}
    for name in sorted(named):
        modules.setdefault(defining_module(name), []).append(name)
    lines = []
    for module, names in sorted(modules.items()):
        listed = ", ".join(names)
        if module:
            lines.append(f"import {module}  # noqa: F401, defines {listed}")
        else:
            lines += [_required(name) for name in names]
    return "".join([f"{line}\n" for line in lines])


def _is_foreign(node: torch.fx.Node) -> bool:
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and target.namespace not in OF_TORCH


def defining_module(name: str) -> str:
    """The module that defines an operator, `library::operator`; empty if another script cannot import it."""
    name = name.partition(".")[0]
    known = OPDEFS.get(name)
    if known is not None:
        return _importable(known._init_fn.__module__)
    files = [Path(each) for each in _REGISTERED.findall(torch._C._dispatch_dump(name))]
    files = [each for each in files if not any(each.is_relative_to(folder) for folder in _REGISTER_FOR_OTHERS)]
    for module_name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and any(each == Path(path) for each in files):
            return _importable(module_name)
    return _importable(name.partition("::")[0])  # defined in C++: the package usually has the name of the namespace


def _importable(module: str) -> str:
    return module if module in sys.modules and module != "__main__" else ""


def _required(name: str) -> str:
    namespace, _, operator = name.partition("::")
    message = f"this program calls {name}, which no importable module defines: import the module that registers it here"
    return f'if not hasattr(torch.ops.{namespace}, "{operator.partition(".")[0]}"):\n    raise ImportError("{message}")'
