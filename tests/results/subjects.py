"""Small models for the tests of measuring: some run, some fail."""

from __future__ import annotations

import os
import pathlib
import time

import torch
from torch import nn


class Small(nn.Module):
    """A network with a product, an activation and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(32, 64), nn.LayerNorm(64), nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.norm(self.first(x))))


class Sorting(Small):
    """One operation of it stays on the host."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = super().forward(x)
        return values + torch.linalg.det(torch.eye(3) + values.mean())


class Dropping(Small):
    """Two kinds of dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout, self.attention_dropout = nn.Dropout(0.5), 0.3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = nn.functional.dropout(super().forward(x), self.attention_dropout, self.training)
        return self.dropout(left)


class ManyZeroGradients(Small):
    """A bias before a norm has a zero gradient: the norm subtracts it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = self.first(x)
        return self.second(values - values.mean(dim=0, keepdim=True))


class WithLoss(Small):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        out = super().forward(x)
        return {"loss": out.square().mean(), "logits": out}


class Broken(Small):
    """Fails when it is called."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such layer\nand more of that")


class Breaking(Small):
    """Its second graph depends on a value of the first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = super().forward(x)
        if values.isfinite().all().item():
            return torch.tanh(values)
        return values


def _with_inputs(kind: type[nn.Module]) -> tuple[nn.Module, torch.Tensor]:
    return kind(), torch.randn(4, 32)


def small() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Small)


def sorting() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Sorting)


def dropping() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Dropping)


def zero_gradients() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(ManyZeroGradients)


class Normed(Small):
    """With a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(64)  # type: ignore[assignment]


def normed() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Normed)


def with_loss() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(WithLoss)


def broken() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Broken)


def breaking() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(Breaking)


def crashing() -> tuple[nn.Module, torch.Tensor]:
    os._exit(3)


def hanging() -> tuple[nn.Module, torch.Tensor]:
    note = os.environ.get("TORCH_TTNN_TEST_NOTE")
    if note:
        pathlib.Path(note).write_text(str(os.getpid()))
    time.sleep(600)
    return small()


class WithoutGradients(Small):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).argmax(dim=-1)


def without_gradients() -> tuple[nn.Module, torch.Tensor]:
    return _with_inputs(WithoutGradients)
