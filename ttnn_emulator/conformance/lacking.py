"""Public names of the library that are not emulated, and why: `python -m ttnn_emulator.conformance.lacking`.

The reasons are groups of patterns in `api/lacking.json`; a name belongs to the first group that matches.
"""

from __future__ import annotations

import json
import pathlib
import re
from importlib import resources
from typing import Any

import ttnn_emulator
from ttnn_emulator.api.recorded import public_names, recorded_names
from ttnn_emulator.execution.operation_table import AbsentValue, MissingOperation
from ttnn_emulator.namespaces import attribute

# Public names of the emulator that the library does not have: errors, listeners, boards, modules.
OWN_NAMES = frozenset(
    (
        "ChipFault DeviceMismatch EmulatorError InvalidArgument NotEmulated OutOfMemory SignatureError UseAfterFree "
        "Listener OperationEvent listening Spec spec_tensor specs_only board_names install_as_ttnn ttnn_version "
        "get_device_time annotations Any MeshMapper MeshComposer"
    ).split(" ")
)


def is_here(name: str) -> bool:
    try:
        return not isinstance(attribute(name), MissingOperation)
    except AbsentValue:
        return False


def lacking_names() -> list[str]:
    """Module-level names that are not emulated."""
    return sorted(name for name in public_names() if not is_here(name))


def lacking_members() -> dict[str, list[str]]:
    """Missing members of emulated classes; fields of records exist on instances."""
    found = {}
    for path, members in recorded_names()["classes"].items():
        if is_here(path):
            cls = attribute(path)
            fields = {*getattr(cls, "_fields", ()), *_slots(cls)}
            lacking = [name for name in members if not hasattr(cls, name) and name not in fields]
            if lacking:
                found[path] = lacking
    return found


def _slots(cls: type) -> set[str]:
    """Instance attributes: slots, annotations, and those set by a constructor."""
    names: set[str] = set()
    for base in getattr(cls, "__mro__", ()):
        names |= {*vars(base).get("__slots__", ()), *vars(base).get("__annotations__", ())}
        init = vars(base).get("__init__")
        names |= set(getattr(getattr(init, "__code__", None), "co_names", ()))
    return names


def groups() -> list[dict[str, Any]]:
    text = resources.files("ttnn_emulator.api").joinpath("lacking.json").read_text(encoding="utf-8")
    return json.loads(text)


def grouped(names: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The names of every group, and those without a group."""
    found: dict[str, list[str]] = {group["group"]: [] for group in groups()}
    unexplained = []
    for name in names:
        for group in groups():
            if any(re.search(pattern, name) for pattern in group["names"]):
                found[group["group"]].append(name)
                break
        else:
            unexplained.append(name)
    return found, unexplained


def own_names() -> list[str]:
    """Public names of the emulator's package that the library does not have, except modules."""
    known = recorded_names()["modules"]["ttnn"]
    module = type(ttnn_emulator)
    return sorted(
        name
        for name, value in vars(ttnn_emulator).items()
        if not name.startswith("_") and name not in known and not isinstance(value, module)
    )


def page() -> str:
    """The list as Markdown."""
    names = lacking_names()
    found, _ = grouped(names)
    total = len(public_names())
    lines = [
        "# Names of `ttnn` that are not emulated",
        "",
        "<!-- Written by `python -m ttnn_emulator.conformance.lacking`; do not edit. -->",
        "",
        f"Of {total:,} public names of the library's modules, {total - len(names):,} are emulated. The others raise "
        "`NotEmulated` when they are called; names that the library does not have raise `AttributeError`.",
    ]
    for group in groups():
        listed = found[group["group"]]
        lines += ["", f"## {group['group'][0].upper()}{group['group'][1:]} ({len(listed)})", "", group["reason"], ""]
        lines += ["<details><summary>Names</summary>", "", ", ".join(f"`{name}`" for name in listed), "", "</details>"]
    lines += ["", "## Members of classes", "", "| class | not emulated |", "|:--|:--|"]
    for path, lacking in lacking_members().items():
        lines.append(f"| `{path}` | {', '.join(f'`{name}`' for name in lacking)} |")
    lines += ["", "## Names that the library does not have", "", ", ".join(f"`{name}`" for name in own_names()), ""]
    return "\n".join(lines)


def main() -> None:
    target = pathlib.Path(ttnn_emulator.__file__).parents[1] / "docs" / "lacking_names.md"
    target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
