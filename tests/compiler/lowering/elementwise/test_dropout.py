"""Dropout on the device: its rate and scale, seeds, and that backward uses the mask of forward."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_ttnn
from tests.compiler.against_torch import assert_like
from torch_ttnn.compiler.ir.metadata import REASON


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function: Any, **options: Any) -> tuple[Callable[..., Any], torch_ttnn.TorchTtnnOption]:
    chosen = torch_ttnn.TorchTtnnOption(**{"cache_dir": "", **options})
    return torch.compile(function, backend="ttnn", options=chosen), chosen


def host_ops(options: torch_ttnn.TorchTtnnOption) -> list[str]:
    assert options.programs, "nothing was compiled"
    nodes = [node for program in options.programs for node in program.graph.nodes]
    return [f"{node.target}: {REASON[node]}" for node in nodes if REASON.on(node)]


def stochastic_depth(x: torch.Tensor) -> torch.Tensor:
    """As timm and torchvision write it."""
    noise = torch.empty([x.shape[0]] + [1] * (x.dim() - 1), dtype=x.dtype).bernoulli_(0.75).div_(0.75)
    return x * noise


FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of channels": lambda x: F.dropout2d(x, 0.3),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.3, training=True),
    "alpha dropout of channels": lambda x: F.feature_alpha_dropout(x, 0.3, training=True),
    "dropout of a convolution": lambda x: F.dropout(F.conv2d(x, torch.ones(8, x.shape[1], 3, 3) / 30), 0.3),
    "dropout in attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.3),
    "stochastic depth": stochastic_depth,
    "checkpointed": lambda x: checkpoint(lambda y: F.dropout(y * 2, 0.3) * 3, x, use_reentrant=False),
}


@pytest.mark.parametrize("name", FORMS)
def test_seeds_determine_the_numbers(name: str) -> None:
    """On the device, with the same numbers for the same seed and others in each call, including warm calls."""
    run, options = compiled(FORMS[name])
    x = torch.randn(8, 6, 8, 8, requires_grad=True)
    runs = []
    for seed in (5, None, None, 5):
        if seed is not None:
            torch.manual_seed(seed)
        x.grad = None
        made = run(x)
        made.sum().backward()
        runs.append((made.detach(), x.grad))
    first, second, third, again = runs
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], second[0]) and not torch.equal(second[0], third[0])
    assert not host_ops(options)


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_rate_and_scale(p: float, precision: str) -> None:
    run, _ = compiled(lambda x: F.dropout(x, p), precision=precision)
    x = torch.rand(300, 1000) + 0.5
    made = run(x)
    kept = made != 0
    deviation = math.sqrt(p * (1 - p) / x.numel())
    assert abs(float((~kept).float().mean()) - p) < 5 * deviation
    torch.testing.assert_close(made[kept], x[kept] / (1 - p), rtol=0.01 if precision == "bfloat16" else 1e-5, atol=0)
    for dim in (0, 1):  # rows and columns are dropped independently of each other
        counts = kept.float().mean(dim)
        assert float(counts.std()) < 2 * math.sqrt(p * (1 - p) / x.shape[dim])
    assert abs(float(torch.corrcoef(torch.stack([kept[:, :-1].flatten(), kept[:, 1:].flatten()]).float())[0, 1])) < 0.02


def test_bias_of_the_mean_is_small() -> None:
    run, _ = compiled(lambda x: F.alpha_dropout(x, 0.2, training=True), precision="float32")
    made = run(torch.randn(500, 1000))
    assert abs(float(made.mean())) < 0.01 and abs(float(made.std()) - 1) < 0.01


@pytest.mark.parametrize("name", ["dropout", "dropout of channels", "checkpointed"])
def test_backward_uses_the_mask_of_forward(name: str) -> None:
    run, _ = compiled(FORMS[name])
    x = (torch.rand(4, 6, 8, 8) + 0.5).requires_grad_()
    made = run(x)
    torch.rand(7)  # advances the generator
    made.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, made != 0)
    torch.testing.assert_close((x.grad * x).detach(), made.detach(), rtol=0.02, atol=0)


def test_two_equal_dropouts_are_independent() -> None:
    run, _ = compiled(lambda x: (F.dropout(x, 0.5), F.dropout(x, 0.5)))
    one, other = run(torch.ones(64, 64))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_none_and_all(p: float) -> None:
    run, options = compiled(lambda x: F.dropout(x + 1, p))
    x = torch.rand(5, 7)
    assert_like(run(x), F.dropout(x + 1, p), 0.01, 0.01)
    assert not host_ops(options)


def test_eval_drops_nothing() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.AlphaDropout(0.5)).eval()
    run, options = compiled(model)
    x = torch.randn(4, 8)
    with torch.no_grad():
        assert_like(run(x), model(x), 0.02, 0.01)
    assert "drawn_seed" not in options.programs[0].source


def test_a_trace_gets_new_masks() -> None:
    """It would replay the same mask if it drew the numbers itself."""
    run, options = compiled(lambda x: F.dropout(x, 0.5), trace=True)
    x = torch.ones(32, 32)
    masks = [run(x) for _ in range(4)]
    assert options.programs[0].parts is not None
    assert not any(torch.equal(one, other) for one, other in itertools.pairwise(masks))


def test_programs_are_kept(tmp_path: Any) -> None:
    x = torch.ones(32, 32)
    made = []
    for _ in range(2):
        torch._dynamo.reset()
        torch.manual_seed(3)
        run, options = compiled(lambda x: F.dropout(x, 0.5), cache_dir=str(tmp_path))
        made.append(run(x))
    assert torch.equal(*made) and not torch.equal(run(x), made[0])
    assert "lower" not in options.programs[0].seconds


def test_changing_shapes() -> None:
    run, options = compiled(lambda x: F.dropout(x, 0.5).sin())
    for size in (5, 8, 11):
        x = torch.ones(size, 40, requires_grad=True)
        run(x).sum().backward()
        assert 0.2 < float((x.grad == 0).float().mean()) < 0.8
    assert not host_ops(options)


def test_other_random_numbers_are_torchs() -> None:
    """They stay on the host, and equal those of eager torch."""

    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x) * torch.bernoulli(torch.full_like(x, 0.5))

    run, _ = compiled(noisy, warn=False)
    x = torch.randn(16, 16)
    torch.manual_seed(1)
    got = run(x)
    torch.manual_seed(1)
    assert_like(got, noisy(x), 0.02, 0.01)


def test_random_numbers_of_the_host_are_drawn_again_when_checkpointed() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda y: (torch.rand_like(y) * y.sin()).cos(), x, use_reentrant=False)

    run, _ = compiled(noisy, warn=False, precision="float32")
    grads = []
    for function in (run, noisy):
        x = torch.linspace(-1, 1, 64).view(8, 8).requires_grad_()
        torch.manual_seed(1)
        function(x).sum().backward()
        grads.append(x.grad)
    assert_like(grads[0], grads[1], 1e-3, 1e-3)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2), (2, 6, 32)),
    "lstm": (lambda: nn.LSTM(12, 20, num_layers=3, dropout=0.3, bidirectional=True), (5, 2, 12)),
    "gru": (lambda: nn.GRU(12, 20, num_layers=2, dropout=0.3), (5, 2, 12)),
    "attention": (lambda: nn.MultiheadAttention(32, 4, dropout=0.2, batch_first=True), (2, 6, 32)),
    "network": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.Dropout2d(0.2), nn.Flatten(), nn.SELU(), nn.AlphaDropout(0.2), nn.Linear(288, 4)
        ),
        (2, 3, 8, 8),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_train_on_the_device(name: str) -> None:
    make, shape = MODELS[name]
    model = make().train()
    before = copy.deepcopy(model.state_dict())
    run, options = compiled(model)
    x = torch.randn(shape)
    inputs = (x, x, x) if name == "attention" else (x,)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        made = run(*inputs)
        (made[0] if isinstance(made, tuple) else made).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not host_ops(options)
    assert any(not torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(value.isfinite().all() for value in model.state_dict().values())
