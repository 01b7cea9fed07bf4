"""Fusions of ATen operations: patterns in a graph, and their replacements."""

from torch_ttnn.compiler.fusion.rule import Fusion

__all__ = ["Fusion"]
