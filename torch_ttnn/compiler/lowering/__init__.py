"""Lowerings by family. Importing this package fills the registry; a new family is one file here."""

from __future__ import annotations

import importlib
import pkgutil

from torch_ttnn.compiler.lowering.registry import LOWERINGS, Lowering, find, lowers, pointwise

__all__ = ["LOWERINGS", "Lowering", "find", "lowers", "pointwise"]

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
