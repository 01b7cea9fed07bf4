"""Binds a call's arguments as the library's native bindings do, from the recorded signatures.

Each overload becomes one small generated function: Python's own calling mechanism resolves names and defaults, and
one line per parameter checks and normalises its value. Binding takes less than two microseconds; a generic loop over
the signature takes ten.
"""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.api.recorded import recorded_api
from ttnn_emulator.errors import SignatureError
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import Shape

Converter = Callable[[Any], Any]


class NoMatch(Exception):
    """This overload does not take these arguments."""


@dataclass(frozen=True, eq=False)  # hashed by identity, which is cheaper: every call does it
class Overload:
    """One way to call an operation."""

    parameters: tuple[tuple[str, str, str, tuple[Any, ...]], ...]  # name, kind, type, (default,) or ()
    bind: Callable[..., tuple]  # → values in parameter order, or raises TypeError / NoMatch
    bind_strictly: Callable[
        ..., tuple
    ]  # the same without implicit conversions: no int for a float, no list for a Shape
    key: Callable[[tuple], tuple]  # values → the key of the call: specs for tensors, other arguments by value
    tensor_slots: tuple[int, ...]  # positions that may hold a tensor or a sequence of tensors
    device_slot: int | None  # position of a device argument

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter[0] for parameter in self.parameters)

    def text(self, name: str) -> str:
        parts, starred = [], False
        for parameter, kind, type_text, default in self.parameters:
            if kind == "k" and not starred:
                parts.append("*")
                starred = True
            parts.append(f"{parameter}: {type_text}" + (f" = {default[0]!r}" if default else ""))
        return f"{name}({', '.join(parts)})"


# -- values -----------------------------------------------------------------------------------------------------------


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    raise NoMatch


def _floating(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        return float(value)
    raise NoMatch


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise NoMatch


def _strict_floating(value: Any) -> float:
    if isinstance(value, float):
        return value
    raise NoMatch


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise NoMatch


def _none(value: Any) -> None:
    if value is None:
        return
    raise NoMatch


def _anything(value: Any) -> Any:
    return value.frozen() if value.__class__ is MemoryConfig else value


def _memory_config(value: Any) -> MemoryConfig:
    if value.__class__ is MemoryConfig:
        return value.frozen()  # the caller may change its config afterwards
    raise NoMatch


def _never(value: Any) -> Any:
    raise NoMatch


def _sequence_of(element: Converter) -> Converter:
    def convert(value: Any) -> tuple:
        if isinstance(value, list | tuple):
            return tuple([element(item) for item in value])
        if isinstance(value, Shape):
            return tuple([element(item) for item in value.dims])
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return tuple([element(item) for item in value])
        raise NoMatch

    return convert


def _instance_of(cls: type, *, also: Converter | None = None) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if also is not None:
            return also(value)
        raise NoMatch

    return convert


def _first_of(options: list[Converter]) -> Converter:
    def convert(value: Any) -> Any:
        for option in options:
            try:
                return option(value)
            except NoMatch:
                continue
        raise NoMatch

    return convert


def _number(value: Any) -> int | float:
    """`int | int | float`: keeps an integer an integer."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        return float(value)
    raise NoMatch


PLAIN: dict[str, Converter] = {
    "int": _integer,
    "float": _floating,
    "bool": _boolean,
    "str": _string,
    "None": _none,
    "object": _anything,
}


class TypeTable:
    """Maps recorded type names to classes."""

    def __init__(self) -> None:
        self.classes: dict[str, type] = {}
        self.records: set[str] = set()  # types with mutable instances
        self.implicit: dict[str, Converter] = {}

    def register(self, name: str, cls: type, *, implicit: Converter | None = None, record: bool = False) -> None:
        """`implicit` converts other types to this class, e.g. a list to a Shape."""
        self.classes[name] = cls
        if record:
            self.records.add(name)
        if implicit is not None:
            self.implicit[name] = implicit

    def converter(self, type_text: str, strict: bool = False) -> Converter:
        options = [part.strip() for part in _split_union(type_text)]
        if set(options) <= {"int", "float", "None"} and "float" in options and "int" in options:
            return _number if "None" not in options else _first_of([_none, _number])
        converters = [self._single(option, strict) for option in dict.fromkeys(options)]
        return converters[0] if len(converters) == 1 else _first_of(converters)

    def _single(self, text: str, strict: bool) -> Converter:
        if text == "float" and strict:
            return _strict_floating
        if text in PLAIN:
            return PLAIN[text]
        if text.startswith(("Sequence[", "Set[", "list[")):
            return _sequence_of(self.converter(text[text.index("[") + 1 : -1], strict))
        if text.startswith("tuple["):
            return self._tuple([self.converter(part, strict) for part in _split_commas(text[6:-1])])
        if text in self.classes:
            if self.classes[text] is MemoryConfig:
                return _memory_config
            return _instance_of(self.classes[text], also=None if strict else self.implicit.get(text))
        return _never

    @staticmethod
    def _tuple(elements: list[Converter]) -> Converter:
        def convert(value: Any) -> tuple:
            if not isinstance(value, list | tuple) or len(value) != len(elements):
                raise NoMatch
            return tuple(element(item) for element, item in zip(elements, value))

        return convert


TYPES = TypeTable()


def _split_union(text: str) -> list[str]:
    return _split(text, "|")


def _split_commas(text: str) -> list[str]:
    return _split(text, ",")


def _split(text: str, separator: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == separator and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()]


# -- generated binders ------------------------------------------------------------------------------------------------


def default_value(recorded: Any) -> Any:
    from ttnn_emulator.enums import ALL_ENUMS

    if isinstance(recorded, list):
        return tuple(default_value(item) for item in recorded)
    if isinstance(recorded, dict):
        if "$enum" in recorded:
            enum_name, member = recorded["$enum"].split(".")[-2:]
            # Enums nested in unused classes are not recorded; they are kept as text.
            return ALL_ENUMS[enum_name][member] if enum_name in ALL_ENUMS else recorded["$enum"]
        return None
    return recorded


def _may_hold_tensor(type_text: str) -> bool:
    return any(word == "Tensor" for word in type_text.replace("[", " ").replace("]", " ").replace("|", " ").split())


def _as_identifier(name: str) -> str:
    """`from` cannot be a parameter in Python, only a key of `**kwargs`; it is called `from_` here."""
    return f"{name}_" if keyword.iskeyword(name) else name


def make_overload(parameters: Sequence[Sequence[Any]]) -> Overload:
    """Compile one recorded overload."""
    entries = tuple(
        (_as_identifier(name), kind, type_text, tuple(default_value(value) for value in default))
        for name, kind, type_text, *default in parameters
    )
    names = [entry[0] for entry in entries]
    unpacked = f"({', '.join(names)}{',' if names else ''})"
    key_parts = [_key_part(name, type_text) for name, _, type_text, _ in entries]
    source = f"def key(values):\n  {unpacked} = values\n  return ({', '.join(key_parts)}{',' if names else ''})\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "<ttnn binding>", "exec"), scope)
    slots = tuple(index for index, entry in enumerate(entries) if _may_hold_tensor(entry[2]))
    devices = [index for index, entry in enumerate(entries) if "MeshDevice" in entry[2]]
    return Overload(
        entries,
        _make_bind(entries, strict=False),
        _make_bind(entries, strict=True),
        scope["key"],
        slots,
        devices[0] if devices else None,
    )


def _make_bind(entries: tuple, *, strict: bool) -> Callable[..., tuple]:
    scope: dict[str, Any] = {"NoMatch": NoMatch, "missing": object()}
    head, body, starred, had_default = [], [], False, False
    for index, (name, kind, type_text, default) in enumerate(entries):
        if kind == "k" and not starred:
            head.append("*")
            starred = True
        scope[f"convert_{index}"] = TYPES.converter(type_text, strict)
        if default:
            scope[f"default_{index}"] = default[0]
            head.append(f"{name}=default_{index}")
            body.append(f"  if {name} is not default_{index}: {name} = convert_{index}({name})")
            had_default = True
        else:
            if had_default and kind == "p":
                # nanobind allows a required parameter after one with a default; Python does not.
                head.append(f"{name}=missing")
                body.append(f"  if {name} is missing: raise NoMatch")
            else:
                head.append(name)
            body.append(f"  {name} = convert_{index}({name})")
    names = [entry[0] for entry in entries]
    source = f"def bind({', '.join(head)}):\n" + "\n".join(body)
    source += f"\n  return ({', '.join(names)}{',' if names else ''})\n"
    exec(compile(source, "<ttnn binding>", "exec"), scope)
    return scope["bind"]


def _key_part(name: str, type_text: str) -> str:
    """An expression for a parameter's part of a call's key: specs for tensors, no devices, 1 distinct from 1.0."""
    options = set(_split_union(type_text))
    if "MeshDevice" in options:
        return f"{name} is None"
    if "Tensor" in options:
        return f"getattr({name}, '_spec', {name})"
    if _may_hold_tensor(type_text):
        return f"{name} and tuple([getattr(item, '_spec', item) for item in {name}])"
    if "float" in options and "int" in options:
        return f"({name}, {name}.__class__)"
    if any(option in TYPES.records for option in options):
        return f"{name}.snapshot_key() if hasattr({name}, 'snapshot_key') else {name}"
    return name


@functools.cache
def overloads_of(name: str) -> tuple[Overload, ...]:
    """All recorded overloads of an operation; empty for operations that the library implements in Python."""
    record = recorded_api()["operations"].get(name, {})
    return tuple(make_overload(item["parameters"]) for item in record.get("overloads", ()) if "parameters" in item)


def bind(name: str, overloads: Sequence[Overload], args: tuple, kwargs: dict[str, Any]) -> tuple[int, tuple]:
    """The first overload that takes these arguments, and the values in its parameter order.

    Overloads that take the arguments without conversion are tried first.
    """
    if "from" in kwargs:
        kwargs = {_as_identifier(key): value for key, value in kwargs.items()}
    if len(overloads) > 1:
        for index, overload in enumerate(overloads):
            try:
                return index, overload.bind_strictly(*args, **kwargs)
            except (TypeError, NoMatch):
                continue
    for index, overload in enumerate(overloads):
        try:
            return index, overload.bind(*args, **kwargs)
        except (TypeError, NoMatch):
            continue
    raise _no_overload(name, overloads, args, kwargs)


def signatures_against(name: str, args: tuple, kwargs: dict[str, Any]) -> str:
    """The signatures of an operation, if none takes this number of arguments with these names, regardless of types."""
    named = {key: value for key, value in kwargs.items() if key not in ("queue_id", "cq_id")}
    overloads = overloads_of(name)
    for overload in overloads:
        try:
            inspect.signature(overload.bind).bind(*args, **named)
        except TypeError:
            continue
        return ""
    return "\n    ".join(overload.text(name) for overload in overloads)


def _no_overload(name: str, overloads: Sequence[Overload], args: tuple, kwargs: dict[str, Any]) -> SignatureError:
    types = [type(value).__name__ for value in args]
    types += [f"{key}={type(value).__name__}" for key, value in kwargs.items()]
    signatures = "\n    ".join(overload.text(name) for overload in overloads)
    error = SignatureError(
        f"incompatible arguments ({', '.join(types)})", hint=f"Available signatures:\n    {signatures}"
    )
    return error.at(name, "")  # type: ignore[return-value]
