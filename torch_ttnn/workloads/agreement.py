"""Agreement of two tensors: PCC and relative error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Agreement:
    """Agreement of the outputs of two runs: the worst of all outputs."""

    pcc: float = 1.0
    relative_error: float = 0.0

    def and_(self, other: Agreement) -> Agreement:
        return Agreement(min(self.pcc, other.pcc), max(self.relative_error, other.relative_error))


def agreement(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor]) -> Agreement:
    """Compare outputs with torch's, one by one. Integers must be equal.

    >>> agreement([torch.tensor([1.0, 2.0]), torch.tensor(3)], [torch.tensor([1.0, 2.0]), torch.tensor(4)]).pcc
    0.0
    """
    if len(got) != len(want):
        raise AssertionError(f"the compiled model returns {len(got)} tensors, torch {len(want)}")
    worst = Agreement()
    for mine, theirs in zip(got, want):
        if mine.shape != theirs.shape:
            worst = worst.and_(Agreement(0.0, 1.0))
        elif theirs.is_floating_point():
            worst = worst.and_(Agreement(pcc(mine, theirs), relative_error(mine, theirs)))
        elif not torch.equal(mine, theirs):
            worst = worst.and_(Agreement(0.0))
    return worst


def pcc(one: torch.Tensor, other: torch.Tensor) -> float:
    """Pearson correlation of two tensors, flattened. 1 if both are constant and equal, 0 if they cannot be compared.

    >>> round(pcc(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 4.0, 6.0])), 6)
    1.0
    """
    a, b = one.detach().double().flatten(), other.detach().double().flatten()
    if a.shape != b.shape or not (a.isfinite().all() and b.isfinite().all()):
        return 1.0 if a.shape == b.shape and torch.equal(a, b) else 0.0
    a, b = a - a.mean(), b - b.mean()
    scale = a.norm() * b.norm()
    if scale == 0:
        return 1.0 if torch.allclose(one.double(), other.double(), rtol=1e-2) else 0.0
    return float((a @ b) / scale)


def relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """The norm of the difference over the norm of the expected value.

    >>> relative_error(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]))
    1.0
    """
    want = want.detach().double()
    difference = (got.detach().double() - want).norm()
    return float(difference / want.norm().clamp_min(1e-30))
