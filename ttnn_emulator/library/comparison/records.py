"""What comparisons of tensors with their golden values found, kept until a report takes them (`ttnn.graph`)."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
KINDS = ("local_tensor_comparison_records", "global_tensor_comparison_records", "tensors")

_records: dict[str, list[Record]] = {kind: [] for kind in KINDS}


def reset_comparison_records_data() -> None:
    """Forget all of them."""
    for kept in _records.values():
        kept.clear()


def record_tensor_comparison_data(
    *,
    local_tensor_comparison_records: list[Record] | None = None,
    global_tensor_comparison_records: list[Record] | None = None,
    tensors: list[Record] | None = None,
) -> None:
    """Keep these, and of the tensors those that are not kept already."""
    _records["local_tensor_comparison_records"].extend(local_tensor_comparison_records or ())
    _records["global_tensor_comparison_records"].extend(global_tensor_comparison_records or ())
    known = {tensor["tensor_id"] for tensor in _records["tensors"]}
    for tensor in tensors or ():
        if tensor["tensor_id"] not in known:
            known.add(tensor["tensor_id"])
            _records["tensors"].append(tensor)


def all_records() -> dict[str, Any]:
    """As reports keep them."""
    return {"version": 1, **{kind: list(kept) for kind, kept in _records.items()}}


def has_comparison_records() -> bool:
    return any(_records.values())
