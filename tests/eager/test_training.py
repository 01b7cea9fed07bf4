"""Training on `ttnn`: gradients, optimizers, autocast, dropout, random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_ttnn

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
    "SGD foreach": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, foreach=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "AdamW foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01),
}


def losses(device: str, optimizer: str, steps: int = 6) -> list[float]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    x, target = torch.randn(12, 8).to(device), torch.randint(0, 4, (12,)).to(device)
    stepper = OPTIMIZERS[optimizer](module.to(device).parameters())
    found = []
    for _ in range(steps):
        stepper.zero_grad()
        loss = F.cross_entropy(module(x), target)
        loss.backward()
        stepper.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_follow_torchs(optimizer: str) -> None:
    with torch_ttnn.eager() as log:
        ours = losses("ttnn", optimizer)
    assert ours == pytest.approx(losses("cpu", optimizer), rel=2e-3, abs=1e-3)  # RMSprop divides by small numbers
    assert log.host_operations == 0, log


def test_a_step_size_that_changes_needs_no_more_programs() -> None:
    from torch_ttnn.eager.programs import number_of_programs

    module = nn.Linear(4, 4).to("ttnn")
    optimizer = torch.optim.AdamW(module.parameters())
    counts = []
    for _ in range(8):
        module(torch.ones(2, 4, device="ttnn")).sum().backward()
        optimizer.step()
        counts.append(number_of_programs())
    assert counts[-1] == counts[4]


def test_statistics_of_a_batch_norm() -> None:
    here, x = nn.BatchNorm2d(3), torch.randn(4, 3, 5, 5)
    there = nn.BatchNorm2d(3).to("ttnn")
    with torch_ttnn.eager(strict=True):
        got = there(x.to("ttnn"))
    assert torch.allclose(got.cpu(), here(x), atol=1e-2)
    assert torch.allclose(there.running_mean.cpu(), here.running_mean, atol=1e-3)
    assert torch.allclose(there.running_var.cpu(), here.running_var, atol=1e-2)
    assert there.num_batches_tracked.item() == 1


def test_autocast() -> None:
    module, x = nn.Linear(4, 4).to("ttnn"), torch.randn(3, 4, device="ttnn")
    with torch.autocast("ttnn", dtype=torch.bfloat16):
        product = module(x)
        assert product.dtype is torch.bfloat16
        assert torch.softmax(product, -1).dtype is torch.float32
        assert torch.cat([product, x]).dtype is torch.float32
    product.float().sum().backward()
    assert module.weight.grad.dtype is torch.float32
    assert module(x).dtype is torch.float32


def test_checkpointing() -> None:
    from torch.utils.checkpoint import checkpoint

    module, x = nn.Linear(4, 4).to("ttnn"), torch.randn(3, 4, device="ttnn", requires_grad=True)
    for reentrant in (False, True):
        checkpoint(module, x, use_reentrant=reentrant).sum().backward()
    assert torch.allclose(module.bias.grad.cpu(), torch.full((4,), 6.0))


def test_gradients_are_clipped() -> None:
    module = nn.Linear(4, 4).to("ttnn")
    (module(torch.ones(2, 4, device="ttnn")) * 100).sum().backward()
    nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    total = sum((each.grad.cpu() ** 2).sum() for each in module.parameters())
    assert total.item() == pytest.approx(1.0, rel=1e-3)


def attended(device: str, mask: bool, grad: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 6, 8).to(device).requires_grad_(grad) for _ in range(3))
    bias = torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -1e4).to(device) if mask else None
    made = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=not mask)
    if not grad:
        return [made.cpu()]
    made.sum().backward()
    return [each.cpu() for each in (made.detach(), q.grad, k.grad, v.grad)]


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_attention_is_one_operation(mask: bool, grad: bool) -> None:
    with torch_ttnn.eager(strict=True) as log:
        made = attended("ttnn", mask, grad)
    assert sum("scaled_dot_product" in row.operation for row in log.rows) == 1 + grad
    for ours, want in zip(made, attended("cpu", mask, grad), strict=True):
        assert torch.allclose(ours, want, atol=2e-2)


def test_seeds() -> None:
    torch.manual_seed(3)
    there = torch.randn(5, device="ttnn"), torch.rand(2, 2, device="ttnn"), torch.randperm(4, device="ttnn")
    torch.manual_seed(3)
    for ours, want in zip(there, (torch.randn(5), torch.rand(2, 2), torch.randperm(4)), strict=True):
        assert torch.equal(ours.cpu(), want)
    drawn = [torch.randn(3, device="ttnn", generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(drawn[0], drawn[1])


def test_dropout_depends_on_the_seed() -> None:
    x, masks = torch.ones(1000, device="ttnn"), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(F.dropout(x, 0.5).cpu())
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])
    assert masks[0].mean().item() == pytest.approx(1.0, abs=0.2)
