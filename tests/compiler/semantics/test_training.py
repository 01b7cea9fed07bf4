"""Train and eval mode, gradients, dropout and autocast."""

from __future__ import annotations

import copy

import torch
from torch import nn

from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.norm(self.linear(x))))


def test_batch_norm_keeps_its_statistics():
    torch.manual_seed(0)
    model = Normed().train()
    model.drop.p = 0.0
    reference = copy.deepcopy(model)
    function = compiled(model)
    for _ in range(3):
        x = torch.randn(16, WIDTH)
        function(x)
        reference(x)
    assert_near(model.norm.running_mean, reference.norm.running_mean)
    assert_near(model.norm.running_var, reference.norm.running_var)
    assert model.norm.num_batches_tracked == 3
    model.eval(), reference.eval()
    x = torch.randn(16, WIDTH)
    assert_near(function(x), reference(x), 0.1)  # eval-mode BatchNorm outside no_grad
    with torch.inference_mode():
        assert_near(function(x), reference(x), 0.1)


def test_gradients_are_correct_at_every_step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))
    reference = copy.deepcopy(model)
    function = compiled(model)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, reference)]
    for _ in range(4):
        x, y = torch.randn(16, WIDTH), torch.randn(16, 8)
        for run, optimizer in zip((function, reference), optimizers):
            optimizer.zero_grad()
            nn.functional.mse_loss(run(x), y).backward()
        for mine, theirs in zip(model.parameters(), reference.parameters()):
            scale = theirs.grad.abs().max()
            assert (mine.grad - theirs.grad).abs().max() <= 0.05 * scale
        for optimizer in optimizers:
            optimizer.step()


def test_dropout_in_training_drops_and_scales():
    model = nn.Dropout(0.25).train()
    function = compiled(model)
    torch.manual_seed(0)
    y = function(torch.ones(200, 100))
    kept = y != 0
    assert 0.73 < kept.float().mean() < 0.77
    assert_near(y[kept], torch.full_like(y[kept], 1 / 0.75), 0.01)
    assert not torch.equal(function(torch.ones(200, 100)), y)


@torch.no_grad()
def test_autocast_regions():
    model = nn.Linear(WIDTH, WIDTH)

    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = model(x)
        return y, y.float() + 1

    x = torch.randn(4, WIDTH)
    got, want = compiled(function)(x), function(x)
    assert got[0].dtype is torch.bfloat16
    for mine, theirs in zip(got, want):
        assert_near(mine, theirs)
