"""How a tensor prints: like the library's, which prints like torch's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ttnn_emulator.tensor import Tensor

INDENT = 13  # under the first bracket of "ttnn.Tensor(["


@dataclass
class PrintOptions:
    threshold: int = 1000
    edge_items: int = 2
    precision: int = 4
    sci_mode: bool = False


OPTIONS = PrintOptions()
PROFILES = {
    "empty": PrintOptions(threshold=0, edge_items=0),
    "short": PrintOptions(),
    "full": PrintOptions(threshold=2**62),
}


def set_printoptions(*, profile: str = "short", sci_mode: Any = "default", precision: int | None = None) -> None:
    """Choose how much of a tensor prints: "empty", "short" or "full"; digits after the point; scientific notation."""
    name = profile.lower()
    if name not in PROFILES:
        raise RuntimeError(f"Invalid print profile {profile!r}: use one of {', '.join(PROFILES)}")
    chosen = PROFILES[name]
    OPTIONS.threshold, OPTIONS.edge_items = chosen.threshold, chosen.edge_items
    if precision is not None:
        OPTIONS.precision = precision
    if sci_mode != "default":
        OPTIONS.sci_mode = sci_mode is True or str(sci_mode).lower() == "true"


def tensor_text(tensor: Tensor) -> str:
    spec = tensor._spec
    tail = f"shape={tensor.shape}, dtype=DataType::{spec.dtype.name}, layout=Layout::{spec.layout.name}"
    storage = tensor._storage
    if not storage.is_allocated:
        return f"ttnn.Tensor(<buffer is not allocated>, {tail})"
    if storage.values is None:
        return f"ttnn.Tensor(<spec only>, {tail})"
    from ttnn_emulator.numerics.formats import wide

    texts = [values_text(wide(values), INDENT) for values in storage.values]
    if len(texts) == 1:
        return f"ttnn.Tensor({texts[0]}, {tail})"
    return "\n".join(f"device_id:{number}, ttnn.Tensor({text}, {tail})" for number, text in enumerate(texts))


def values_text(values: torch.Tensor, indent: int) -> str:
    if values.numel() == 0:
        return "[]"
    summarize = values.numel() > OPTIONS.threshold
    width = max((len(_number(value)) for value in _shown(values, summarize)), default=0)
    return _block(values, indent, summarize, width)


def _shown(values: torch.Tensor, summarize: bool) -> list[Any]:
    for dim, size in enumerate(values.shape):
        if summarize and size > 2 * OPTIONS.edge_items:
            keep = [*range(OPTIONS.edge_items), *range(size - OPTIONS.edge_items, size)]
            values = values.index_select(dim, torch.tensor(keep, dtype=torch.int64))
    return values.reshape(-1).tolist()


def _number(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{OPTIONS.precision}{'e' if OPTIONS.sci_mode else 'f'}}"
    return text if value < 0 or text.startswith("-") else " " + text


def _block(values: torch.Tensor, indent: int, summarize: bool, width: int) -> str:
    if values.dim() == 0:
        return _number(values.item()).rjust(width)
    size, edge = values.shape[0], OPTIONS.edge_items
    cut = summarize and size > 2 * edge
    indices: list[int | None] = list(range(size))
    if cut:
        indices = [*range(edge), None, *range(size - edge, size)]
    parts = ["..." if i is None else _block(values[i], indent + 1, summarize, width) for i in indices]
    separator = ", " if values.dim() == 1 else "," + "\n" * (values.dim() - 1) + " " * indent
    if values.dim() == 1 and cut:
        parts = [part if part != "..." else " ..." for part in parts]
    return "[" + separator.join(parts) + "]"
