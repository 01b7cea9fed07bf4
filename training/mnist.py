"""Trains the MNIST network on padded digits, 32 × 32, in a few minutes on one core.

python training/mnist.py
"""

from __future__ import annotations

import argparse
import pathlib
import time
from dataclasses import asdict, dataclass

import torch
from publish import publish
from torch import nn
from torch.nn import functional

from torch_ttnn.zoo.trained import images, networks


@dataclass(frozen=True)
class Recipe:
    """Everything that the weights depend on besides the data."""

    epochs: int = 5
    batch: int = 128
    rate: float = 2e-3  # peak learning rate of AdamW, one cycle
    decay: float = 1e-2
    shift: int = 2  # maximum shift of a digit in pixels
    seed: int = 0


def moved(batch: torch.Tensor, shift: int, generator: torch.Generator) -> torch.Tensor:
    """Shift all digits of a batch by the same offset; only padding wraps around."""
    down, right = torch.randint(-shift, shift + 1, (2,), generator=generator).tolist()
    return batch.roll((down, right), dims=(2, 3))


def train(recipe: Recipe) -> nn.Module:
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    data, model = images.mnist("train"), networks.mnist_net()
    steps = len(data) // recipe.batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, total_steps=recipe.epochs * steps)
    for epoch in range(recipe.epochs):
        start, total = time.time(), 0.0
        order = torch.randperm(len(data), generator=generator)
        for chosen in order[: steps * recipe.batch].split(recipe.batch):
            batch = moved(networks.mnist_input(data.pixels[chosen]), recipe.shift, generator)
            loss = functional.nll_loss(model(batch), data.labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}, {time.time() - start:.0f} s", flush=True)
    return model


@torch.no_grad()
def accuracy(model: nn.Module, data: images.Images) -> float:
    """Percent of the digits that are recognised."""
    model.eval()
    found = torch.cat([model(networks.mnist_input(batch)).argmax(1) for batch in data.pixels.split(250)])
    return 100 * (found == data.labels).float().mean().item()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=pathlib.Path, help="file for the weights (default: that of the package)")
    chosen = arguments.parse_args()
    recipe, test = Recipe(), images.mnist("test")
    print(
        publish("mnist-cnn-trained", train(recipe), lambda model: accuracy(model, test), asdict(recipe), chosen.output)
    )


if __name__ == "__main__":
    main()
