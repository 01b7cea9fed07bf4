"""Results of comparisons with golden values, stored until a report is written (`ttnn.graph`)."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
KINDS = ("local_tensor_comparison_records", "global_tensor_comparison_records", "tensors")

_records: dict[str, list[Record]] = {kind: [] for kind in KINDS}


def reset_comparison_records_data() -> None:
    """Delete all records."""
    for kept in _records.values():
        kept.clear()


def record_tensor_comparison_data(
    *,
    local_tensor_comparison_records: list[Record] | None = None,
    global_tensor_comparison_records: list[Record] | None = None,
    tensors: list[Record] | None = None,
) -> None:
    """Add records, and the tensors that are not stored yet."""
    _records["local_tensor_comparison_records"].extend(local_tensor_comparison_records or ())
    _records["global_tensor_comparison_records"].extend(global_tensor_comparison_records or ())
    known = {tensor["tensor_id"] for tensor in _records["tensors"]}
    for tensor in tensors or ():
        if tensor["tensor_id"] not in known:
            known.add(tensor["tensor_id"])
            _records["tensors"].append(tensor)


def all_records() -> dict[str, Any]:
    """All records in the format of reports."""
    return {"version": 1, **{kind: list(kept) for kind, kept in _records.items()}}


def has_comparison_records() -> bool:
    return any(_records.values())
