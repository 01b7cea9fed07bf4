"""Arguments of calls as the emulator passes them, or as call lists record them: objects or JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ttnn_emulator.enums import DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.timing.calls import Call

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


@dataclass(frozen=True, slots=True)
class Precision:
    """What affects time in a compute kernel config: phases per product, and the width of the destination register."""

    fidelity: MathFidelity
    fp32_acc: bool = False


def precision_of(record: Any, default: MathFidelity) -> Precision:
    """From a compute kernel config, from the emulator's own form of it, or from a record of either."""
    fidelity = field_of(record, "math_fidelity", field_of(record, "fidelity"))
    wide = field_of(record, "fp32_dest_acc_en", field_of(record, "fp32_acc", False))
    return Precision(fidelity_of(fidelity, default), bool(wide))


def precision_of_call(call: Call, default: MathFidelity) -> Precision:
    """From the compute kernel config that a call was passed."""
    return precision_of(call.arguments.get("compute_kernel_config"), default)


def grid_of(record: Any) -> int | None:
    """Cores of a grid: an object with x and y, or a pair."""
    if record is None:
        return None
    if isinstance(record, list | tuple):
        return int(record[0]) * int(record[1])
    return int(field_of(record, "x")) * int(field_of(record, "y"))
