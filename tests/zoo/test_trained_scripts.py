"""The training scripts: their inputs, resuming, and their output."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.zoo.installed import need
from torch_ttnn.zoo.trained import networks
from torch_ttnn.zoo.trained.images import Images

SCRIPTS = pathlib.Path(__file__).parents[2] / "training"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts import each other from their folder."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.fixture
def cifar10(scripts: None) -> ModuleType:
    import cifar10

    return cifar10


def pictures(number: int) -> Images:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (number, 3, 32, 32), generator=generator, dtype=torch.uint8)
    return Images(pixels, torch.arange(number) % 10)


def test_a_picture_is_moved_mirrored_and_scaled(cifar10: Any) -> None:
    pixels, mirrored = pictures(6).pixels, torch.tensor([False, True] * 3)
    plain = replace(cifar10.Recipe(), shift=0, hidden=0)
    still = cifar10.augmented(pixels, mirrored, 32, plain, torch.Generator())
    expected = networks.cifar_input(pixels)
    assert torch.equal(still[0::2], expected[0::2])
    assert torch.equal(still[1::2], expected[1::2].flip(3))
    moving = replace(plain, shift=2)
    moved = cifar10.augmented(pixels, mirrored, 32, moving, torch.Generator().manual_seed(0))
    inner = slice(2, -2)
    places = [
        [
            (down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            if torch.equal(one[:, inner, inner], other.roll((down, right), (1, 2))[:, inner, inner])
        ]
        for one, other in zip(moved, still)
    ]
    assert all(len(found) == 1 for found in places)
    assert len({found[0] for found in places}) > 1, "each picture is moved in its own way"
    assert cifar10.augmented(pixels, mirrored, 16, moving, torch.Generator()).shape == (6, 3, 16, 16)


def test_a_square_of_each_picture_is_hidden(cifar10: Any) -> None:
    pixels, mirrored = pictures(40).pixels, torch.zeros(40, dtype=torch.bool)
    recipe = replace(cifar10.Recipe(), shift=0, hidden=8)
    result = cifar10.augmented(pixels, mirrored, 32, recipe, torch.Generator().manual_seed(0))
    hidden = (result == 0).all(1)
    corners = set()
    for one, other, where in zip(result, networks.cifar_input(pixels), hidden):
        rows, columns = where.any(1).nonzero().flatten(), where.any(0).nonzero().flatten()
        high, across = int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1
        assert high <= 8 and across <= 8 and int(where.sum()) == high * across
        assert high == 8 or rows[0] == 0 or rows[-1] == 31, "it is complete, or beyond the edge"
        assert across == 8 or columns[0] == 0 or columns[-1] == 31
        assert torch.equal(one[:, ~where], other[:, ~where])
        corners.add((int(rows[0]), int(columns[0])))
    assert len(corners) > 20


def test_the_learning_rate_rises_and_falls(cifar10: Any) -> None:
    recipe = replace(cifar10.Recipe(), rates=((0, 0.0), (1, 0.4), (3, 0.0), (3, 0.2), (4, 0.0)))
    rates = [cifar10.rate_at(epochs, recipe) for epochs in (0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0)]
    assert rates == pytest.approx([0.0, 0.2, 0.4, 0.2, 0.0, 0.1, 0.0])


def test_the_recipe_has_a_rate_for_every_epoch(cifar10: Any) -> None:
    recipe = cifar10.Recipe()
    assert recipe.rates[-1] == (recipe.epochs, 0.0), "it ends with the last step"
    assert all(cifar10.rate_at(epoch + 0.5, recipe) > 0 for epoch in range(recipe.epochs))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_convolutions_as_products(cifar10: Any, size: int) -> None:
    layer, signal = torch.nn.Conv2d(5, 7, 3, padding=1, bias=False), torch.randn(4, 5, size, size, requires_grad=True)
    found, wanted = cifar10.convolved(layer, signal), layer(signal)
    assert torch.allclose(found, wanted, atol=1e-5)
    upstream = torch.randn_like(wanted)
    gradients = [torch.autograd.grad(each, [layer.weight, signal], upstream) for each in (found, wanted)]
    for mine, theirs in zip(*gradients):
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_training_resumes(cifar10: Any, tmp_path: pathlib.Path) -> None:
    need("torchvision")
    recipe, data = replace(cifar10.Recipe(), sizes=(16, 16), batch=4), pictures(8)

    def epoch(state: Any) -> None:
        cifar10.train_epoch(state, recipe, data, worker=0, workers=1)
        state.epoch += 1

    whole, stopped, resumed = (cifar10.fresh(recipe) for _ in range(3))
    for state in (whole, whole, stopped):
        epoch(state)
    stopped.save(tmp_path / "checkpoint.pt")
    resumed.restore(tmp_path / "checkpoint.pt")
    epoch(resumed)
    assert resumed.epoch == 2
    for name in ("model", "average"):
        one, other = (getattr(state, name).state_dict() for state in (whole, resumed))
        assert all(values.isfinite().all() and torch.equal(values, other[key]) for key, values in one.items()), name
    start = cifar10.fresh(recipe).model.state_dict()
    assert not torch.equal(start["fc.weight"], whole.model.state_dict()["fc.weight"])


def test_norms_are_calibrated_on_pictures_as_they_are_tested(cifar10: Any) -> None:
    need("torchvision")
    data = pictures(20)
    model = networks.cifar_resnet18()
    cifar10.calibrate(model, data)
    with torch.no_grad():
        stem = model.conv1(networks.cifar_input(data.pixels))  # type: ignore[operator]
    assert not model.training
    assert torch.allclose(model.bn1.running_mean, stem.mean((0, 2, 3)), atol=1e-5)  # type: ignore[arg-type, union-attr]


def test_published_weights(scripts: None, tmp_path: pathlib.Path) -> None:
    from publish import publish

    model, scored = torch.nn.BatchNorm2d(3), []
    torch.nn.init.constant_(model.weight, 1 / 3)

    def score(some: torch.nn.Module) -> float:
        scored.append(some.state_dict()["weight"][0].item())
        return 90.0 + len(scored)

    path = tmp_path / "weights" / "norm.safetensors"
    facts = publish("norm", model, score, {"seed": 7}, path)
    assert scored == [pytest.approx(1 / 3, abs=1e-7), float(torch.tensor(1 / 3).bfloat16())]
    assert facts["accuracy, float32 weights"] == "91.00 %"
    assert facts["accuracy, bfloat16 weights"] == "92.00 %"
    with safe_open(str(path), framework="pt") as file:
        assert file.metadata() == facts
    assert json.loads(facts["recipe"]) == {"seed": 7}
    stored = load_file(path)
    assert stored["weight"].dtype == torch.bfloat16
    assert stored["num_batches_tracked"].dtype == torch.int64


def test_digits_of_a_batch_are_moved_within_their_margin(scripts: None) -> None:
    import mnist

    batch = networks.mnist_input(torch.randint(0, 256, (2, 1, 28, 28), dtype=torch.uint8))
    moved = mnist.moved(batch, 2, torch.Generator().manual_seed(1))
    assert not torch.equal(moved, batch)
    assert torch.allclose(moved.flatten().sort().values, batch.flatten().sort().values)
