"""The definition of a fusion, as data for the families' tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.fx

from torch_ttnn.compiler.fusion.matcher import Match, Pattern
from torch_ttnn.compiler.fusion.rewriting import Rewriter


@dataclass(frozen=True)
class Fusion:
    """Where `pattern` matches and `when` holds, `build` inserts the replacement of its root.

    `build` returns the new value. It returns None if there is nothing to gain. If it has replaced nodes itself, it
    returns the node of the result for the record.
    """

    name: str
    pattern: Pattern
    build: Callable[[Rewriter, Match], torch.fx.Node | None]
    when: Callable[[Rewriter, Match], bool] | None = None
