"""What a fusion is: data, for the tables of the families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.fx

from torch_ttnn.compiler.fusion.matcher import Match, Pattern
from torch_ttnn.compiler.fusion.rewriting import Rewriter


@dataclass(frozen=True)
class Fusion:
    """Where `pattern` is found and `when` holds, `build` writes what takes the place of its root.

    `build` returns the new value, or None if it turns out that there is nothing to gain, or if it has replaced what it
    wanted itself (it then returns the node that shows for it).
    """

    name: str
    pattern: Pattern
    build: Callable[[Rewriter, Match], torch.fx.Node | None]
    when: Callable[[Rewriter, Match], bool] | None = None
