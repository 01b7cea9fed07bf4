"""Records which names the library offers, operations or not: `python -m ttnn_emulator.conformance.record_names`."""

from __future__ import annotations

import json
import pathlib

from ttnn_emulator.api import recorded
from ttnn_emulator.conformance.real import RealTtnn

# Modules of the library in which scripts look names up; the others hold its inner workings.
MODULES = ("core", "device", "distributed", "experimental", "graph", "profiler", "transformer", "types", "cluster")

QUESTION = """
import inspect, json, types
found = {}

def kind(value):
    if isinstance(value, types.ModuleType):
        return "module" if value.__name__.startswith("ttnn") else None
    home = getattr(value, "__module__", None) or type(value).__module__ or ""
    if not home.startswith(("ttnn", "nanobind")) and type(value).__module__ not in ("nanobind", "builtins"):
        return None
    if callable(value):
        if not home.startswith("ttnn"):
            return None
        return "class" if inspect.isclass(value) else "function"
    return "value"

for path in ["ttnn"] + ["ttnn." + name for name in MODULES if hasattr(ttnn, name)]:
    module = ttnn if path == "ttnn" else getattr(ttnn, path[5:])
    for name in dir(module):
        what = None if name.startswith("_") else kind(getattr(module, name))
        if what:
            found[path + "." + name] = what
result = json.dumps(found)
"""


def main() -> None:
    with RealTtnn() as real:
        answer = real.ask({"exec": f"MODULES = {MODULES!r}\n{QUESTION}"})
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    names = json.loads(answer["out"])
    text = json.dumps(names, indent=0, sort_keys=True)
    pathlib.Path(recorded.__file__).with_name("public_names.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
