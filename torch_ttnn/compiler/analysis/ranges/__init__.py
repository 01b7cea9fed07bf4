"""Ranges of the values of a graph."""

from torch_ttnn.compiler.analysis.ranges import rules as rules
from torch_ttnn.compiler.analysis.ranges.limits import beyond
from torch_ttnn.compiler.analysis.ranges.propagation import Range, Ranges, divides_by_zero

__all__ = ["Range", "Ranges", "beyond", "divides_by_zero"]
