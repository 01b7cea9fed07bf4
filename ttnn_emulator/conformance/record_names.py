"""Records every public name of the library: `python -m ttnn_emulator.conformance.record_names`.

Modules are recorded by name, classes by member. A second name of an object is recorded as `= <its first name>`, and the
bound function of an operation below `ttnn._ttnn` as `~ <the operation>`.
"""

from __future__ import annotations

import json
import pathlib

from ttnn_emulator.api import recorded
from ttnn_emulator.conformance.real import RealTtnn

QUESTION = r"""
import enum, importlib, inspect, json, pkgutil, sys, types
import tt_lib

PACKAGES = (ttnn, tt_lib)
# Executed when they are imported under a second name (operations), or no Python modules at all.
NOT_IMPORTED = tuple("ttnn." + name for name in ("operations.", "_ttnn", "ttnn", "build", "runtime", "tt_metal"))
# Operators count as members; what every class has does not.
OPERATORS = {f"__{name}__" for name in (
    "add radd sub rsub mul rmul truediv rtruediv neg pos matmul rmatmul pow rpow mod rmod floordiv rfloordiv and or "
    "xor invert lshift rshift eq ne lt le gt ge iadd isub imul itruediv getitem setitem iter len contains hash call "
    "int index enter exit bool repr str").split()}
PLAIN = (int, float, str, bool, tuple, list, dict, set, frozenset, type(None))

for package in PACKAGES:
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if not found.name.startswith(NOT_IMPORTED):
            importlib.import_module(found.name)


def is_ours(module):
    file = getattr(module, "__file__", None) or ""
    return module.__name__.split(".")[0] in ("ttnn", "tt_lib") or "/ttnn/operations/" in file


modules, canonical = {}, {}
waiting = [(package.__name__, package) for package in PACKAGES]
while waiting:
    path, module = waiting.pop(0)
    if id(module) in canonical:
        continue
    canonical[id(module)] = path
    modules[path] = module
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if isinstance(value, types.ModuleType) and is_ours(value) and (name == "_ttnn" or not name.startswith("_")):
            waiting.append((path + "." + name, value))
importable = {}
for name, module in sorted(sys.modules.items()):
    if isinstance(module, types.ModuleType) and name.split(".")[0] in ("ttnn", "tt_lib"):
        if id(module) not in canonical:  # its name stands for something else: `tt_lib.fused_ops.softmax`
            canonical[id(module)] = name
            modules[name] = module
        importable[name] = canonical[id(module)]
homes = {module.__name__ for module in modules.values()}


def qualified(value):
    found = getattr(value, "python_fully_qualified_name", None)
    return found if isinstance(found, str) and not inspect.isclass(value) else None


def kind(value):
    if isinstance(value, types.ModuleType):
        return "module" if id(value) in canonical else None
    if qualified(value):
        return "operation"
    home = getattr(value, "__module__", None) or ""
    if inspect.isclass(value):
        if hasattr(value, "python_fully_qualified_name"):
            return None  # the types of bound functions, one each
        return "class" if home in homes or home.split(".")[0] in ("ttnn", "tt_lib") else None
    if isinstance(value, PLAIN) or isinstance(value, enum.Enum):
        return "value"
    if callable(value):
        return "function" if home in homes or home.split(".")[0] in ("ttnn", "tt_lib") else None
    return "value" if type(value).__module__.split(".")[0] in ("ttnn", "tt_lib") else None


def member_kind(owner, name):
    if name in getattr(owner, "__members__", ()):
        return "member"
    value = inspect.getattr_static(owner, name)
    if isinstance(value, owner):
        return "value"
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "property"
    if inspect.isclass(value):
        if hasattr(value, "python_fully_qualified_name"):
            return None  # the types of bound functions, one each
        return "class"
    if callable(value) or isinstance(value, (staticmethod, classmethod)):
        return "method"
    return "value"


def members(owner):
    names = [name for name in dir(owner) if not name.startswith("_")]
    names += [name for name in OPERATORS if any(name in vars(base) for base in owner.__mro__ if base is not object)]
    names += getattr(owner, "__members__", ())
    return {name: member_kind(owner, name) for name in sorted(set(names))}


# An operation is called what it calls itself.
for path, module in modules.items():
    for name, value in vars(module).items():
        if qualified(value) == path + "." + name:
            canonical[id(value)] = qualified(value)

offered = {path + "." + name for path, module in modules.items() for name in vars(module)}

names, classes = {}, {}
for path in sorted(modules, key=lambda path: (path.count("."), path)):
    module, found = modules[path], {}
    for name in sorted(vars(module)):
        value, full = vars(module)[name], path + "." + name
        if not name.isidentifier() or (name.startswith("_") and name != "_ttnn"):
            continue
        what = kind(value)
        if what is None:
            continue
        if what == "module":
            found[name] = what if canonical[id(value)] == full else "= " + canonical[id(value)]
            continue
        if what == "operation" and path.startswith("ttnn._ttnn") and qualified(value) in offered:
            found[name] = "~ " + qualified(value)
            continue
        plain = what == "value" and (isinstance(value, PLAIN) or isinstance(value, enum.Enum))
        if not plain and canonical.get(id(value), full) != full:
            found[name] = "= " + canonical[id(value)]
            continue
        if not plain:
            canonical[id(value)] = full
        found[name] = what
        if what == "class":
            classes[full] = members(value)
    names[path] = found
result = json.dumps({"modules": names, "classes": classes, "importable": importable})
"""


def main() -> None:
    with RealTtnn() as real:
        answer = real.ask({"exec": QUESTION})
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    text = json.dumps(json.loads(answer["out"]), indent=0, sort_keys=True)
    pathlib.Path(recorded.__file__).with_name("public_names.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
