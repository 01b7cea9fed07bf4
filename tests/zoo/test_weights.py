"""Weights from files are loaded strictly by name, or rejected with a list of what does not fit."""

from __future__ import annotations

import json
import pathlib
import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.zoo.installed import need
from torch_ttnn import zoo
from torch_ttnn.zoo.sources import Transformers
from torch_ttnn.zoo.weights import load_weights

MNIST = zoo.find("mnist-cnn")


def digits() -> dict[str, torch.Tensor]:
    return dict(MNIST.build(seed=7).state_dict())


def assert_loaded(model: torch.nn.Module) -> None:
    loaded = model.state_dict()
    assert not model.training
    assert all(torch.equal(loaded[name], values) for name, values in digits().items())


def test_a_file(tmp_path: pathlib.Path) -> None:
    save_file(digits(), tmp_path / "digits.safetensors")
    assert_loaded(MNIST.build(weights=tmp_path / "digits.safetensors"))
    assert_loaded(MNIST.build(weights=str(tmp_path / "digits.safetensors")))


def test_a_folder_with_a_file(tmp_path: pathlib.Path) -> None:
    save_file(digits(), tmp_path / "model.safetensors")
    assert_loaded(MNIST.build(weights=tmp_path))


def shard(folder: pathlib.Path) -> pathlib.Path:
    """The weights in two files and an index."""
    weights = digits()
    names = sorted(weights)
    placed = {name: f"model-0000{1 + (place > 3)}-of-00002.safetensors" for place, name in enumerate(names)}
    for file in set(placed.values()):
        save_file({name: weights[name] for name in names if placed[name] == file}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": placed}), encoding="utf-8")
    return index


def test_shards(tmp_path: pathlib.Path) -> None:
    index = shard(tmp_path)
    assert_loaded(MNIST.build(weights=tmp_path))
    assert_loaded(MNIST.build(weights=index))


def test_half_precision_weights_are_widened(tmp_path: pathlib.Path) -> None:
    save_file({name: values.half() for name, values in digits().items()}, tmp_path / "half.safetensors")
    model: Any = MNIST.build(weights=tmp_path)
    assert model.conv1.weight.dtype == torch.float32
    assert torch.equal(model.conv1.weight, digits()["conv1.weight"].half().float())


def test_everything_that_does_not_fit_is_listed(tmp_path: pathlib.Path) -> None:
    weights = digits()
    weights["fc3.weight"] = weights.pop("fc2.weight")
    weights["conv1.bias"] = torch.zeros(31)
    weights["conv2.bias"] = torch.zeros(64, dtype=torch.int64)
    save_file(weights, tmp_path / "wrong.safetensors")
    with pytest.raises(zoo.WeightsError) as caught:
        MNIST.build(weights=tmp_path)
    message = str(caught.value)
    for sentence in (
        "do not fit MnistNet",
        "1 missing in the file:\n  fc2.weight",
        "1 not in the model:\n  fc3.weight",
        "conv1.bias: [31] in the file, [32] in the model",
        "conv2.bias: torch.int64 in the file, torch.float32 in the model",
    ):
        assert sentence in message


def test_a_long_list_is_cut(tmp_path: pathlib.Path) -> None:
    save_file({**digits(), **{f"extra{i}": torch.zeros(1) for i in range(20)}}, tmp_path / "long.safetensors")
    with pytest.raises(zoo.WeightsError, match=r"20 not in the model:(\n  extra.*){12}\n  … and 8 more$"):
        MNIST.build(weights=tmp_path)


class Tied(torch.nn.Module):
    """An output layer that shares the weight of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 4)
        self.head = torch.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight


@pytest.mark.parametrize("name", ["embedding.weight", "head.weight"])
def test_a_tied_weight_is_needed_once(name: str, tmp_path: pathlib.Path) -> None:
    values = torch.randn(5, 4)
    save_file({name: values}, tmp_path / "tied.safetensors")
    model = Tied()
    load_weights(model, tmp_path)
    assert torch.equal(model.head.weight, values)
    assert model.head.weight is model.embedding.weight


def test_tied_weights_that_differ_in_the_file_are_rejected(tmp_path: pathlib.Path) -> None:
    save_file({"embedding.weight": torch.zeros(5, 4), "head.weight": torch.ones(5, 4)}, tmp_path / "t.safetensors")
    with pytest.raises(zoo.WeightsError, match="tied in the model but different"):
        load_weights(Tied(), tmp_path)


def no_file(folder: pathlib.Path) -> pathlib.Path:
    return folder / "nothing.safetensors"


def empty_folder(folder: pathlib.Path) -> pathlib.Path:
    return folder


def two_files(folder: pathlib.Path) -> pathlib.Path:
    for name in "ab":
        save_file(digits(), folder / f"{name}.safetensors")
    return folder


def a_pickle(folder: pathlib.Path) -> pathlib.Path:
    torch.save(digits(), folder / "model.bin")
    return folder / "model.bin"


def shard_elsewhere(folder: pathlib.Path) -> pathlib.Path:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"conv1.weight": "../model.safetensors"}}), encoding="utf-8")
    return index


def shard_without_a_tensor(folder: pathlib.Path) -> pathlib.Path:
    index = shard(folder)
    placed = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    index.write_text(json.dumps({"weight_map": {**placed, "lost": placed["fc1.bias"]}}), encoding="utf-8")
    return index


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (no_file, "there is no file"),
        (empty_folder, "it has none"),
        (two_files, "it has a.safetensors, b.safetensors"),
        (a_pickle, "not a safetensors file"),
        (shard_elsewhere, "not a file next to it"),
        (shard_without_a_tensor, "its shards do not have: lost"),
    ],
)
def test_invalid_files_are_rejected(make, reason: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(zoo.WeightsError, match=reason):
        MNIST.build(weights=make(tmp_path))


@pytest.mark.parametrize("name", ["mnist-cnn", "resnet18-32px", "llama-2L", "gpt2-2L"])
def test_models_of_our_own_sizes_have_no_published_weights(name: str) -> None:
    with pytest.raises(zoo.NotPublished, match="pass a path"):
        zoo.find(name).build(weights="pretrained")


def test_pretrained_goes_through_transformers(tmp_path: pathlib.Path) -> None:
    """A folder in place of the hub."""
    need("transformers")
    entry = zoo.find("mamba-2L")
    saved: Any = entry.build(seed=5)
    saved.save_pretrained(tmp_path)
    assert isinstance(entry.architecture, Transformers)
    published = replace(entry, architecture=replace(entry.architecture, hub=str(tmp_path)))
    loaded: Any = published.build(weights="pretrained")
    assert not loaded.training
    assert all(torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), saved.state_dict().values()))
    assert loaded.config.use_cache is False
    again = entry.build(weights=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), saved.state_dict().values()))


def downloaded(home: pathlib.Path) -> pathlib.Path:
    """Where torchvision finds the weights of MobileNetV2 that it has downloaded before."""
    from torch_ttnn.zoo.sources import library

    url = library("torchvision.models").get_model_weights("mobilenet_v2").DEFAULT.url
    folder = home / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder / url.rsplit("/", 1)[1]


def test_pretrained_goes_through_torchvision(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("torchvision")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    entry = zoo.find("mobilenetv2")
    saved = entry.build(seed=5).state_dict()
    torch.save(saved, downloaded(tmp_path))
    loaded = entry.build(weights="pretrained")
    assert not loaded.training
    assert all(torch.equal(values, saved[name]) for name, values in loaded.state_dict().items())


class RunsCode:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('this code came with the weights')",)


def test_a_downloaded_pickle_cannot_run_code(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("torchvision")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    torch.save({"weight": RunsCode()}, downloaded(tmp_path))
    with pytest.raises(pickle.UnpicklingError):
        zoo.find("mobilenetv2").build(weights="pretrained")
