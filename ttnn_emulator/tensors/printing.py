"""Printing of tensors, in the library's format, which follows torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.enums import DataType

if TYPE_CHECKING:
    from ttnn_emulator.tensors.tensor import Tensor

INDENT = 13  # under the first bracket of "ttnn.Tensor(["
INTEGER_WIDTH = 5
# tt-metal v0.77.0: ttnn/core/tensor/tensor_impl.cpp, should_use_scientific_notation
WIDEST_RATIO = 1000.0  # between the largest and the smallest magnitude, beyond which numbers print with exponents


@dataclass
class PrintOptions:
    edge_items: int | None = 2  # shown at either end of a dimension; None shows all
    precision: int = 4
    sci_mode: bool | None = None  # None: depends on the magnitudes


OPTIONS = PrintOptions()
PROFILES: dict[str, int | None] = {"empty": 0, "short": 2, "full": None}


def set_printoptions(*, profile: str = "short", sci_mode: Any = "default", precision: int | None = None) -> None:
    """Choose how much of a tensor prints: "empty", "short" or "full"; digits after the point; scientific notation."""
    name = profile.lower()
    if name not in PROFILES:
        raise RuntimeError(f"Invalid print profile {profile!r}: use one of {', '.join(PROFILES)}")
    OPTIONS.edge_items = PROFILES[name]
    if precision is not None:
        OPTIONS.precision = precision
    OPTIONS.sci_mode = None if sci_mode == "default" else sci_mode is True or str(sci_mode).lower() == "true"


def tensor_text(tensor: Tensor) -> str:
    spec = tensor._spec
    tail = f"shape={tensor.shape}, dtype=DataType::{spec.dtype.name}, layout=Layout::{spec.layout.name}"
    storage = tensor._storage
    if not storage.is_allocated:
        return f"ttnn.Tensor(<buffer is not allocated>, {tail})"
    if storage.values is None:
        return f"ttnn.Tensor(<spec only>, {tail})"
    from ttnn_emulator.numerics.formats.carriers import wide
    from ttnn_emulator.numerics.formats.float8 import from_fp8

    shown = from_fp8 if spec.dtype is DataType.FP8_E4M3 else wide
    texts = [values_text(shown(values), INDENT) for values in storage.values]
    if len(texts) == 1:
        return f"ttnn.Tensor({texts[0]}, {tail})"
    return "\n".join(f"device_id:{number}, ttnn.Tensor({text}, {tail})" for number, text in enumerate(texts))


def values_text(values: torch.Tensor, indent: int) -> str:
    if values.numel() == 0 or OPTIONS.edge_items == 0:
        return "[]" if values.numel() == 0 else "..."
    return _block(values, indent, _number_format(_shown(values)))


def _shown(values: torch.Tensor) -> torch.Tensor:
    """Only the elements that are printed."""
    edge = OPTIONS.edge_items
    for dim, size in enumerate(values.shape):
        if edge is not None and size > 2 * edge:
            keep = torch.tensor([*range(edge), *range(size - edge, size)])
            values = values.index_select(dim, keep)
    return values


def _number_format(shown: torch.Tensor) -> str:
    """A common format of these numbers."""
    if not shown.is_floating_point():
        return f"{INTEGER_WIDTH}d"
    scientific = OPTIONS.sci_mode
    if scientific is None:
        sizes = shown.double().abs()
        sizes = sizes[(sizes > 0) & sizes.isfinite()]
        scientific = sizes.numel() > 0 and bool(
            sizes.max() / sizes.min() > WIDEST_RATIO or sizes.max() > 1e8 or sizes.min() < 1e-4
        )
    digits = OPTIONS.precision
    return f"{digits + 7}.{digits}e" if scientific else f"{digits + 3}.{digits}f"


def _block(values: torch.Tensor, indent: int, number_format: str) -> str:
    if values.dim() == 0:
        return format(values.item(), number_format)
    size, edge = values.shape[0], OPTIONS.edge_items
    indices: list[int | None] = list(range(size))
    if edge is not None and size > 2 * edge:
        indices = [*range(edge), None, *range(size - edge, size)]
    flat = values.dim() == 1
    skipped = " ..." if flat else "..."
    parts = [skipped if i is None else _block(values[i], indent + 1, number_format) for i in indices]
    lines = "\n" if values.dim() == 2 else "\n\n"
    return "[" + (", " if flat else f",{lines}{' ' * indent}").join(parts) + "]"
