"""Configuration records (program, compute and convolution configs, …), generated from the recorded API.

They behave like the library's: keyword arguments with its names and defaults, attributes that can be set later. Equal
records hash alike, so a call's plan can be looked up by them.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, ClassVar

from ttnn_emulator.api.binding import TYPES, Converter, NoMatch, Overload, bind, default_value, make_overload
from ttnn_emulator.api.recorded import recorded_api, recorded_names
from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.errors import NotEmulated

WRITTEN_BY_HAND = frozenset(
    (
        "Tensor TensorSpec Shape Tile CoreCoord CoreRange CoreRangeSet CoreGrid ShardSpec NdShardSpec MemoryConfig "
        "Config Device MeshDevice MeshShape MeshCoordinate MeshCoordinateRange MeshCoordinateRangeSet MeshEvent "
        "MeshTraceId QueueId SubDeviceId UnaryWithParam PlacementShard PlacementReplicate MeshMapperConfig "
        "MeshComposerConfig TensorTopology DispatchCoreConfig TensorToMesh MeshToTensor CppTensorToMesh CppMeshToTensor"
    ).split(" ")
)

# These send and receive data: they take named arguments, but are not records.
SERVICES = frozenset(
    (
        "InterProcessCounterChannel D2HSocket H2DSocket MeshSocket D2HStreamService H2DStreamService LayerAckService"
    ).split(" ")
)

SAME_CLASS = {"Conv1dConfig": "Conv2dConfig", "Conv2dSliceConfig": "Op2DSliceConfig"}  # two names of one class


class ConfigRecord:
    """Base of the generated records."""

    _recorded: ClassVar[list] = []
    _fields: ClassVar[tuple[str, ...]] = ()
    _set_later: ClassVar[dict[str, list]] = {}  # fields without a constructor parameter: type and initial value

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        overloads = _overloads_of(type(self))  # type: ignore[arg-type]
        index, values = bind(type(self).__name__, overloads, args, kwargs)
        for name in self._fields:
            _, *first = self._set_later.get(name, (None,))
            object.__setattr__(self, name, default_value(first[0]) if first else None)
        for name, value in zip(overloads[index].names, values):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._fields)}")
        try:
            value = _field_converter(type(self), name)(value)  # type: ignore[arg-type]
        except NoMatch:
            raise TypeError(f"{type(self).__name__}.{name} cannot be {value!r}") from None
        object.__setattr__(self, name, value)

    def _values(self) -> tuple:
        return tuple(getattr(self, name) for name in self._fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self._fields)})"

    def snapshot_key(self) -> tuple:
        """The current values, as a key for prepared calls."""
        return (type(self), self._values())

    def snapshot(self) -> ConfigRecord:
        """A copy that later changes of this record do not affect."""
        return copy.copy(self)


@functools.cache
def _overloads_of(cls: Any) -> tuple[Overload, ...]:
    return tuple(make_overload(parameters) for parameters in cls._recorded)


def _not_emulated(name: str) -> Any:
    def method(*args: Any, **kwargs: Any) -> Any:
        raise NotEmulated(f"{name} exists in ttnn but is not emulated")

    method.__name__ = name.rsplit(".", 1)[-1]
    return method


@functools.cache
def _field_converter(cls: Any, name: str) -> Converter:
    """Converts a value assigned to a field as the constructor does, e.g. a list to a fused function."""
    types = [item[2] for parameters in cls._recorded for item in parameters if item[0] == name]
    types += cls._set_later.get(name, ())[:1]
    return TYPES.converter(" | ".join(dict.fromkeys(types)))


def make_config_types() -> dict[str, type[ConfigRecord]]:
    """One class per recorded type with named fields."""
    types: dict[str, type[ConfigRecord]] = {}
    for path, record in sorted(recorded_api()["types"].items()):
        name = path.rsplit(".", 1)[-1]
        if name in WRITTEN_BY_HAND or name in SERVICES or name in types or name in SAME_CLASS:
            continue
        overloads = [item["parameters"] for item in record.get("overloads", ()) if "parameters" in item]
        if not overloads or any(parameter[0].startswith("arg") for item in overloads for parameter in item):
            continue
        fields = dict.fromkeys(parameter[0] for item in overloads for parameter in item)
        members = recorded_names()["classes"].get(path, {})
        fields |= dict.fromkeys(member for member, kind in members.items() if kind == "property")
        methods = {
            member: _not_emulated(f"{path}.{member}")
            for member, kind in members.items()
            if kind == "method" and not hasattr(ConfigRecord, member)
        }
        types[name] = type(
            name,
            (ConfigRecord,),
            methods
            | {
                "_fields": tuple(fields),
                "_recorded": overloads,
                "_set_later": record.get("fields", {}),
                "__module__": "ttnn",
            },
        )
    types |= {name: types[other] for name, other in SAME_CLASS.items()}
    for path in recorded_api()["enums"]:
        *_, owner, name = path.split(".")
        if owner in types:
            setattr(types[owner], name, ALL_ENUMS[name])
    for name, cls in types.items():
        TYPES.register(name, cls, record=True)
    for name, enum_class in ALL_ENUMS.items():
        TYPES.register(name, enum_class)
    return types


class UnaryWithParam:
    """An elementwise function to fuse into another operation: `UnaryWithParam(UnaryOpType.LEAKY_RELU, 0.1)`."""

    __slots__ = ("op_type", "params")

    def __init__(self, op_type: Any, *params: float) -> None:
        if isinstance(op_type, list | tuple) and not params and len(op_type) == 2:
            op_type, *rest = op_type
            params = tuple(rest)
        known = isinstance(op_type, ALL_ENUMS["UnaryOpType"]) and len(params) <= 2
        if not known or not all(isinstance(value, int | float) for value in params):
            raise TypeError(f"UnaryWithParam takes a UnaryOpType and up to two numbers, not {op_type!r}, {params!r}")
        self.op_type = op_type
        self.params = tuple(float(value) for value in params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnaryWithParam) and (self.op_type, self.params) == (other.op_type, other.params)

    def __hash__(self) -> int:
        return hash((self.op_type, self.params))

    def __repr__(self) -> str:
        tail = f", params={list(self.params)}" if self.params else ""
        return f"UnaryWithParam(op_type=UnaryOpType::{self.op_type.name}{tail})"


def _as_unary(value: Any) -> UnaryWithParam:
    """Convert a function, or a tuple or list of a function and a number."""
    alone = isinstance(value, ALL_ENUMS["UnaryOpType"])
    pair = isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], ALL_ENUMS["UnaryOpType"])
    if alone or (pair and isinstance(value[1], int | float)):
        return UnaryWithParam(value)
    raise NoMatch


TYPES.register("UnaryWithParam", UnaryWithParam, implicit=_as_unary)
TYPES.register("EltwiseUnaryWithParam", UnaryWithParam, implicit=_as_unary)
