"""Several boards: `ttnn:0` and `ttnn:1`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from torch_ttnn.eager.device import boards


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    before = list(boards._boards)
    torch.ttnn.use("emulator:n150", "emulator:n150")
    yield
    boards._boards[:] = before


def test_operations_run_where_their_tensors_are() -> None:
    x = torch.ones(2, 2, device="ttnn:1", requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.device == torch.device("ttnn:1") and x.grad.tolist() == [[3, 3], [3, 3]]
    for made in (torch.zeros_like(x), x.new_zeros(2), x.new_tensor([1.0]), torch.zeros(2, device=x.device), x[0]):
        assert made.device.index == 1
    assert x._held.board.target is not torch.ones(1, device="ttnn")._held.board.target
    assert torch.accelerator.device_count() == 2 and torch.ttnn.device_name(1) == "emulated n150"


def test_moves_between_boards() -> None:
    x = torch.randn(2, 3, device="ttnn:1", requires_grad=True)
    moved = x.to("ttnn:0")
    assert moved.device.index == 0 and torch.equal(moved.cpu(), x.cpu())
    assert x.to("ttnn:1") is x and moved.to("ttnn:1").device.index == 1
    (moved * 2).sum().backward()
    assert x.grad.device.index == 1
    module = nn.Linear(2, 2).to("ttnn:1")
    assert module(x.detach()[:, :2]).device.index == 1
    assert module.to("ttnn:0").weight.device.index == 0


def test_mixed_boards_are_rejected() -> None:
    with pytest.raises(RuntimeError, match="found at least two devices, ttnn:0 and ttnn:1"):
        torch.ones(2, device="ttnn:0") + torch.ones(2, device="ttnn:1")


def test_a_board_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match=r"no device ttnn:5: there are 2.*torch\.ttnn\.use"):
        torch.ones(2, device="ttnn:5")
    with pytest.raises(RuntimeError, match="always ttnn:0"):
        torch.ttnn.set_device(1)
