"""Fusions of ATen operations, done on the normalised graph before it is lowered."""

from torch_ttnn.compiler.fusion.fuse import FusionRecord, fuse
from torch_ttnn.compiler.fusion.rule import Fusion

__all__ = ["Fusion", "FusionRecord", "fuse"]
