"""Typical vision networks: entirely on the device, channels-last from the first convolution on."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import PATH, REASON


class Residual(nn.Module):
    """Convolutions with batch norms, and a skip connection."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.around = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.around(x))


class Gated(nn.Module):
    """A depthwise convolution, gated by features of the whole image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.spatial = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False), nn.BatchNorm2d(channels), nn.SiLU()
        )
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 8, 1), nn.SiLU(), nn.Conv2d(8, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.spatial(x)
        return x + made * self.gate(made)


class LastNorm(nn.Module):
    """A block that permutes channels to the end, for a layer norm and linears."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.rest = nn.Sequential(
            nn.LayerNorm(channels), nn.Linear(channels, 4 * channels), nn.GELU(), nn.Linear(4 * channels, channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.rest(self.spatial(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Hourglass(nn.Module):
    """Downsampling and upsampling, with a skip connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.norm = nn.GroupNorm(4, 2 * channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = self.norm(torch.cat([x, self.up(self.down(x))], dim=1))
        return nn.functional.interpolate(joined, size=(24, 20), mode="bilinear", align_corners=False)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "residual": lambda: nn.Sequential(Residual(3, 32, 1), Residual(32, 48, 2), nn.AvgPool2d(2)),
    "gated": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.Hardswish(), Gated(32), Gated(32)),
    "last norm": lambda: nn.Sequential(nn.Conv2d(3, 32, 4, 4), LastNorm(32), LastNorm(32)),
    "hourglass": lambda: nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU6(), Hourglass(32)),
    "patches": lambda: nn.Sequential(nn.Conv2d(3, 64, 8, 8), nn.Flatten(2), nn.LayerNorm(4)),
}


def settled(network: nn.Module) -> nn.Module:
    """With running statistics that differ from their initial values."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network.eval()


def correlation(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]).double())[0, 1])


def compiled(network: nn.Module) -> tuple[nn.Module, TorchTtnnOption]:
    torch._dynamo.reset()
    options = TorchTtnnOption()
    return torch.compile(network, backend="ttnn", options=options), options


def paths(options: TorchTtnnOption) -> list[str]:
    return [PATH[node] for graph in options._out_fx_graphs for node in graph.nodes if PATH.on(node)]


def host_ops(options: TorchTtnnOption) -> list[str]:
    nodes = [node for graph in options._out_fx_graphs for node in graph.nodes]
    return [f"{node.target}: {REASON[node]}" for node in nodes if REASON.on(node)]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_inference(name: str, batch: int) -> None:
    network = settled(NETWORKS[name]())
    x = torch.randn(batch, 3, 16, 16)
    on_device, options = compiled(network)
    with torch.no_grad():
        got, expected = on_device(x), network(x)
    assert got.shape == expected.shape
    assert correlation(got, expected) > 0.999
    assert not host_ops(options)


def test_batch_norms_and_activations_are_part_of_convolutions() -> None:
    on_device, options = compiled(settled(NETWORKS["residual"]()))
    with torch.no_grad():
        on_device(torch.randn(1, 3, 16, 16))
    moves = ("ttnn.from_torch", "ttnn.to_torch", "ttnn.reshape", "ttnn.to_layout", "ttnn.permute")
    work = [path for path in paths(options) if path not in moves]
    convolutions = [path for path in work if path in ("ttnn.conv2d", "ttnn.linear")]
    assert len(convolutions) == 6
    assert not [path for path in work if path in ("ttnn.addcmul", "ttnn.batch_norm", "ttnn.multiply")]


def test_training() -> None:
    """Gradients of all parameters and running statistics equal torch's."""
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 5),
    )
    reference = copy.deepcopy(network)
    x = torch.randn(8, 3, 12, 12)
    on_device, options = compiled(network)
    on_device(x).square().mean().backward()
    reference(x).square().mean().backward()
    for (name, got), expected in zip(network.named_parameters(), reference.parameters()):
        assert got.grad is not None and expected.grad is not None
        assert correlation(got.grad, expected.grad) > 0.99, name
    torch.testing.assert_close(network[1].running_mean, reference[1].running_mean, rtol=0.01, atol=2e-3)
    torch.testing.assert_close(network[1].running_var, reference[1].running_var, rtol=0.01, atol=2e-3)
    assert not host_ops(options)
