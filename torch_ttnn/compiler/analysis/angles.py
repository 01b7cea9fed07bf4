"""How large an angle may be on the device, and which inputs keep it so.

The library takes multiples of π away with constants of 60 bits or so (tt-metal, `ckernel_sfpu_trigonometry.h`): from
some angle on nothing of the remainder is left. Where an angle cannot be told to be smaller, the program looks at it
(`lowering/support/angles.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges import Range, Ranges

aten = torch.ops.aten

# Found by comparing all of bfloat16 with torch (tests/compiler/lowering/elementwise/test_domains.py).
LARGEST: dict[Any, float] = {
    aten.sin.default: 2.0**18,
    aten.cos.default: 2.0**18,
    aten.tan.default: 2.0**16,
}


def is_beyond(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether it is of an angle that may be too large for the device."""
    largest = LARGEST.get(node.target)
    return largest is not None and not ranges(node.args[0]).within(Range(-largest, largest))


# How far numbers may be narrowed, in bits. What may well be beyond is better looked at on the device: a call with an
# input or a weight beyond its bounds runs with torch as a whole.
INTEGER_WIDTHS = (24, 20, 18, 16)
FLOAT_WIDTHS = (18, 16, 14, 12, 10)


def narrowings(integers: Iterable[int], floats: Iterable[int]) -> list[Mapping[int, int]]:
    """Widths to try for inputs that an angle is computed of, from wide to narrow: number of the input to bits.

    Of two floating-point inputs it cannot be told which one is small.
    """
    integers, floats = list(integers), list(floats)
    if len(floats) > 1:
        return []
    tried = [dict.fromkeys(integers, width) for width in INTEGER_WIDTHS] if integers else [{}]
    return [{**each, **dict.fromkeys(floats, width)} for each in tried for width in (FLOAT_WIDTHS if floats else (0,))]


def turning(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Sines, cosines and tangents."""
    return [node for target in LARGEST for node in graph.find_nodes(op="call_function", target=target)]
