"""The largest angles that the device supports, and bounds of inputs that guarantee them.

The library reduces angles by multiples of π with constants of about 60 bits (tt-metal,
`ckernel_sfpu_trigonometry.h`): for large angles the remainder has no correct digits. Where the analysis cannot bound an
angle, the program checks it (`lowering/support/angles.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges import Range, Ranges

aten = torch.ops.aten

# Determined by comparing all bfloat16 values with torch (tests/compiler/lowering/elementwise/test_domains.py).
LARGEST: dict[Any, float] = {
    aten.sin.default: 2.0**18,
    aten.cos.default: 2.0**18,
    aten.tan.default: 2.0**16,
}


def is_beyond(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether its angle may be too large for the device."""
    largest = LARGEST.get(node.target)
    return largest is not None and not ranges(node.args[0]).within(Range(-largest, largest))


# Bounds to try for inputs, in bits. Values that may well be larger are better checked on the device: torch runs the
# whole call if an input or a weight is out of bounds.
INTEGER_WIDTHS = (24, 20, 18, 16)
FLOAT_WIDTHS = (18, 16, 14, 12, 10)


def narrowings(integers: Iterable[int], floats: Iterable[int]) -> list[Mapping[int, int]]:
    """Widths to try for inputs that an angle is computed from, from wide to narrow: index of the input to bits.

    None for two floating-point inputs: it is unknown which one is small.
    """
    integers, floats = list(integers), list(floats)
    if len(floats) > 1:
        return []
    tried = [dict.fromkeys(integers, width) for width in INTEGER_WIDTHS] if integers else [{}]
    return [{**each, **dict.fromkeys(floats, width)} for each in tried for width in (FLOAT_WIDTHS if floats else (0,))]


def trigonometric(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The sines, cosines and tangents of a graph."""
    return [node for target in LARGEST for node in graph.find_nodes(op="call_function", target=target)]
