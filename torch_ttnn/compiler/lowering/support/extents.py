"""Device-side checks that values are in the range where an operation is accurate."""

from __future__ import annotations

from typing import Any

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.reduction.reductions import Reduction
from torch_ttnn.compiler.lowering.support.promotion import fitted, result_dtype


def small_enough(ttnn: Any, builder: ProgramBuilder, x: Handle, largest: float) -> Handle:
    """1 if no magnitude exceeds `largest`, else 0: a tensor of one element, for `ttnn.require`. NaN is not small."""
    reduction = Reduction(ttnn, builder, builder.value(ttnn.abs(x), x.shape, result_dtype(builder)), None)
    return ttnn.le(reduction.over(ttnn.max), fitted(largest, x.dtype))
