"""Fusions of ATen operations: patterns in a graph, and what replaces them."""

from torch_ttnn.compiler.fusion.rule import Fusion

__all__ = ["Fusion"]
