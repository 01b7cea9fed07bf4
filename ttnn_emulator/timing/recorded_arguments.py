"""Arguments of calls as the emulator passes them, or as call lists record them: objects or JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ttnn_emulator.enums import DataType, Layout, MathFidelity, TensorMemoryLayout

Kind = TypeVar("Kind")


def field_of(record: Any, name: str, default: Any = None) -> Any:
    """A field of an object or of a JSON record."""
    if record is None:
        return default
    found = record.get(name, default) if isinstance(record, Mapping) else getattr(record, name, default)
    return default if found is None else found


def member_of(kind: type[Kind], value: Any, default: Kind) -> Kind:
    """A member of an enumeration, from itself or from its name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        name = value.rsplit(".", 1)[-1].rsplit("::", 1)[-1].upper()
        members: Mapping[str, Kind] = kind.__members__  # type: ignore[attr-defined]
        return next((member for key, member in members.items() if key.upper() == name), default)
    return default


def dtype_of(value: Any, default: DataType) -> DataType:
    return member_of(DataType, value, default)


def layout_of(value: Any, default: Layout) -> Layout:
    if isinstance(value, str) and value.upper().startswith("ROW"):
        return Layout.ROW_MAJOR
    return member_of(Layout, value, default)


def fidelity_of(value: Any, default: MathFidelity) -> MathFidelity:
    return member_of(MathFidelity, value, default)


def scheme_of(value: Any, default: TensorMemoryLayout) -> TensorMemoryLayout:
    return member_of(TensorMemoryLayout, value, default)
