"""Records the public API of the installed `ttnn`: every operation's overloads, every type, every enum.

Runs on a Python with the real `ttnn` (started with `mock_card`), needs nothing else, and prints one JSON document. The
emulator reads it to bind arguments exactly as the library does: signatures are never written by hand.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import sys
from importlib import metadata
from typing import Any

NATIVE_PREFIX = "ttnn._ttnn."
OPENING, CLOSING = "[({", "])}"


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """Split at separators outside of brackets and strings."""
    parts, depth, quote, current = [], 0, "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in OPENING:
            depth += 1
        elif char in CLOSING:
            depth -= 1
        if char == separator and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts


def plain(value: Any) -> Any:
    """A default value as JSON; objects become {"$repr": …}."""
    if isinstance(value, enum.Enum) or type(type(value)).__name__ == "EnumType":
        return {"$enum": f"{type(value).__name__}.{value.name}"}
    if isinstance(value, bool | int | float | str | None):
        return value if value == value else {"$repr": "nan"}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return {"$repr": re.sub(r" at 0x[0-9a-f]+", "", repr(value))}


def parse_signature(text: str, defaults: tuple | None) -> dict[str, Any]:
    """Parse nanobind's text of a signature to [[name, kind, type, default?], …]."""
    text = text.replace("\\*", "*")
    match = re.match(r"def \w+\((.*?)\)(?: -> (.*))?$", text, re.DOTALL)
    if match is None:
        return {"text": text}
    body, returns = match.groups()
    parameters: list[list[Any]] = []
    keyword_only = False
    for part in split_top_level(body):
        if part in ("self", "/"):
            continue
        if part == "*":
            keyword_only = True
            continue
        name, _, rest = part.partition(":")
        type_text, *default = rest.split(" = ")
        entry: list[Any] = [name.strip(), "k" if keyword_only else "p", shorten(type_text.strip())]
        if default:
            index = default[0].strip()
            if index.startswith("\\"):
                entry.append(plain((defaults or ())[int(index[1:])]))
            else:
                entry.append({"$repr": index})
        parameters.append(entry)
    return {"parameters": parameters, "returns": shorten(returns or "None")}


def shorten(type_text: str) -> str:
    """Keep only the last name of every type: `ttnn._ttnn.tensor.DataType | None` becomes `DataType | None`."""
    return re.sub(r"(?:\w+(?:\.|::))+(\w+)", r"\1", type_text.replace('"', ""))


def overloads(native: Any) -> list[dict[str, Any]]:
    return [parse_signature(text, defaults) for text, _, defaults in native.__nb_signature__]


def describe_callable(value: Any) -> dict[str, Any] | None:
    function = getattr(value, "function", value)
    for native in (function, vars(type(function)).get("__call__")):
        if hasattr(native, "__nb_signature__"):
            return {"overloads": overloads(native)}
    try:
        return {"python": str(inspect.signature(function))}
    except (TypeError, ValueError):
        return None


def describe_type(cls: type) -> dict[str, Any]:
    members = [name for name in dir(cls) if not name.startswith("_")]
    init = cls.__dict__.get("__init__")
    record: dict[str, Any] = {"members": members}
    if hasattr(init, "__nb_signature__"):
        record["overloads"] = overloads(init)
        fields = set_later(cls, {entry[0] for item in record["overloads"] for entry in item.get("parameters", ())})
        if fields:
            record["fields"] = fields
    return record


def set_later(cls: type, in_constructor: set[str]) -> dict[str, list[Any]]:
    """Fields without a constructor parameter: their types and, for classes without required arguments, values."""
    setters: dict[str, Any] = {
        name: member.fset
        for name, member in vars(cls).items()
        if isinstance(member, property) and name not in in_constructor and hasattr(member.fset, "__nb_signature__")
    }
    if not setters:
        return {}
    try:
        instance = cls()
    except TypeError:
        instance = None
    fields: dict[str, list[Any]] = {}
    for name, setter in sorted(setters.items()):
        [[text, *_]] = setter.__nb_signature__
        match = re.search(r"\(self, arg: (.*?)(?:, /)?\) -> None", text)
        if match is None:
            continue
        first = plain(getattr(instance, name)) if instance is not None else {"$repr": ""}
        # An object cannot be recorded, and its text may name folders of this machine.
        fields[name] = [shorten(match[1]), *([] if isinstance(first, dict) and "$repr" in first else [first])]
    return fields


def walk(module: Any, prefix: str, seen: set[int], out: dict[str, dict[str, Any]]) -> None:
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        path = f"{prefix}.{name}"
        kind = type(value).__name__
        if inspect.ismodule(value):
            if (
                value.__name__.startswith("ttnn.")
                and not value.__name__.startswith(NATIVE_PREFIX)
                and id(value) not in seen
            ) or (value.__name__.startswith(NATIVE_PREFIX) and prefix.count(".") < 2 and id(value) not in seen):
                seen.add(id(value))
                walk(value, path, seen, out)
        elif kind == "EnumType":
            out["enums"][path] = {name: plain(member.value) for name, member in value.__members__.items()}
        elif kind == "nb_type_0" or kind.startswith("nb_type"):
            out["types"][path] = describe_type(value)
            for nested in (getattr(value, member) for member in out["types"][path]["members"]):
                if type(nested).__name__ == "EnumType":
                    out["enums"][f"{path}.{nested.__name__}"] = {
                        name: plain(member.value) for name, member in nested.__members__.items()
                    }
        elif kind in ("FastOperation", "Operation", "nb_func"):
            description = describe_callable(value)
            if description is not None:
                out["operations"][path] = {"operation": kind != "nb_func", **description}
        elif kind == "function" and prefix == "ttnn" and value.__module__.startswith("ttnn.operations."):
            native = getattr(module._ttnn.operations.conv, name, value)  # plain wrappers of native functions
            out["operations"][path] = {"operation": False, **(describe_callable(native) or {})}


def main() -> None:
    import ttnn

    out: dict[str, Any] = {"version": metadata.version("ttnn"), "operations": {}, "types": {}, "enums": {}}
    walk(ttnn, "ttnn", {id(ttnn)}, out)
    json.dump(out, sys.stdout, separators=(",", ":"), sort_keys=True)


if __name__ == "__main__":
    main()
