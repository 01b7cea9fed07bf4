"""Decompositions that keep the checks of torch's kernels: torch's own decompositions leave them out.

A check is an assertion (`compiler/analysis/assertions.py`), which is dropped where it cannot fail: probabilities that a
sigmoid computed, indices of a pool in the same graph.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

Tensor = torch.Tensor
aten = torch.ops.aten


def _require_all(condition: Tensor, message: str) -> None:
    aten._assert_async.msg(condition.all(), message)


def _probabilities(decomposed: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    # aten/src/ATen/native/Loss.cpp: binary_cross_entropy_out_cpu
    _require_all(torch.logical_and(x >= 0, x <= 1), "all elements of input should be between 0 and 1")
    return decomposed(x, *args, **kwargs)


def _pixels(
    decomposed: Callable[..., Tensor], x: Tensor, indices: Tensor, output_size: Sequence[int], *args: Any, **kwargs: Any
) -> Tensor:
    # aten/src/ATen/native/cpu/MaxUnpoolKernel.cpp: cpu_max_unpool
    _require_all(
        torch.logical_and(indices >= 0, indices < math.prod(output_size)),
        f"Found an invalid max index (output volumes are of size {'x'.join(map(str, output_size))})",
    )
    return decomposed(x, indices, output_size, *args, **kwargs)


def decompositions() -> dict[Any, Callable[..., Any]]:
    checked = {
        aten.binary_cross_entropy.default: _probabilities,
        aten.max_unpool2d.default: _pixels,
        aten.max_unpool3d.default: _pixels,
    }
    core = core_aten_decompositions()
    return {overload: functools.partial(rule, core[overload]) for overload, rule in checked.items()}
