"""Numeric rows: an operation, its torch counterpart, the range of its inputs and the allowed error.

A case table lists them in `NUMERIC_ROWS`, beside its cases; `tests/emulator/ops/test_numeric_rows.py` runs them all.

NUMERIC_ROWS = (Row("softcap", lambda x: ttnn.softcap(x, 30.0), lambda x: 30 * torch.tanh(x / 30)),)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

SHAPES: tuple[tuple[int, ...], ...] = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40), (7,), (1, 2, 3, 5, 33))


@dataclass(frozen=True)
class Row:
    """One operation and its torch counterpart.

    Every element must be within `ulps` units in the last place of the output dtype (2 by default), and PCC at least
    0.9999 in float32 and 0.999 in bfloat16. The unit is that of the larger of the reference and `floor` × the largest
    input magnitude, so that cancellation of rounded inputs is no error of the operation.
    """

    name: str
    call: Callable[..., Any]  # (ttnn tensors …) → ttnn tensor
    counterpart: Callable[..., torch.Tensor]  # (float32 or int torch tensors …) → torch tensor
    inputs: int = 1
    low: float = -4.0
    high: float = 4.0
    dtypes: tuple[str, ...] = ("bfloat16", "float32")
    ulps: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    shapes: tuple[tuple[int, ...], ...] = SHAPES
    layout: str = "TILE"

    @property
    def takes_any_shape(self) -> bool:
        """Whether random shapes are tested, too: unless the row restricts `shapes`."""
        return self.shapes is SHAPES

    def __str__(self) -> str:
        return self.name
