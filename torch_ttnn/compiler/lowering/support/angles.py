"""Sines, cosines and tangents, which the device computes up to a largest angle.

Angles that are proven small (`compiler/analysis/angles.py`) are lowered directly. For others the program computes
whether all of them are small enough. The flag is downloaded with the results; if it is false, torch runs the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_ttnn.compiler.analysis import angles
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.support.extents import small_enough
from torch_ttnn.compiler.lowering.support.promotion import elementwise


def _turning(name: str, largest: float) -> Callable[..., Handle]:
    def function(ttnn: Any, builder: ProgramBuilder, x: Handle) -> Handle:
        if angles.is_beyond(builder.origin, builder.ranges):
            builder.require(("angles", x.node, largest), lambda: small_enough(ttnn, builder, x, largest))
        return getattr(ttnn, name)(x)

    function.__name__ = name
    return function


for _overload, _largest in angles.LARGEST.items():
    elementwise(_overload)(_turning(str(_overload).split(".")[1], _largest))
