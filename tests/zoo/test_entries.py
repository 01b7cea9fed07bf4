"""Every model of the zoo can be built and run, has the stated size, and returns meaningful results."""

from __future__ import annotations

import csv
import pathlib
import random
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.zoo.installed import need, need_source
from torch_ttnn import zoo
from torch_ttnn.zoo.fake import on_meta
from torch_ttnn.zoo.sources import Torchvision, library
from torch_ttnn.zoo.torchvision_ops import ensure_operators
from torch_ttnn.zoo.trained.entries import ENTRIES as TRAINED

# Parameters of every model, of the published size or of the config that its sentence describes.
with (pathlib.Path(__file__).parent / "parameters.csv").open(encoding="utf-8") as file:
    PARAMETERS = {row["model"]: int(row["parameters"]) for row in csv.DictReader(file)}
SAMPLE = random.Random(5).sample(sorted(PARAMETERS), 16)  # parameters counted in every run
READS_VALUES = ("swinv2_tiny_window8_256", "ssdlite320_mobilenet_v3_large")  # in their constructors

QUICK = [
    "mnist-cnn", "resnet18-32px", "mobilenetv2", "vit-base-2L", "segformer-b0-128px", "detr-2L", "yolos-2L",
    "albert-2L", "perceiver-mlm-2L", "llama-2L", "llama-2L-decode-static", "mistral-2L", "qwen2-2L", "phi-2L",
    "bloom-2L", "gptneo-2L", "mamba-2L", "autoencoder-linear", "autoencoder-conv", "gaussian-splatting", "lcnet_050",
]  # fmt: skip
SLOW = [name for name in zoo.names() if name not in QUICK]

# Outputs of these are unit vectors or shares of an image, so their deviation says nothing.
NORMALISED = {"clip", "clip-2L", "detr-2L", "yolos-2L"}


def run(entry: zoo.ModelEntry, model: torch.nn.Module, seed: int) -> list[torch.Tensor]:
    arguments, keywords = entry.inputs(seed)
    with torch.no_grad():
        return [values.clone() for values in zoo.tensors(model(*arguments, **keywords))]


def correlation(one: torch.Tensor, other: torch.Tensor) -> float:
    return torch.corrcoef(torch.stack([one.flatten().double(), other.flatten().double()]))[0, 1].item()


def check_results(name: str) -> None:
    entry = zoo.find(name)
    need_source(entry)
    model = entry.build()
    assert not any(module.training for module in model.modules())
    results = run(entry, model, seed=1)
    assert results
    assert all(values.isfinite().all() for values in results)
    deviation = results[0].std().item()
    assert 0.1 < deviation < 10
    if name not in NORMALISED:
        assert all(0.1 < values.std() < 10 for values in results)
    assert all(torch.equal(a, b) for a, b in zip(results, run(entry, model, seed=1))), "one seed, two results"
    assert correlation(results[0], run(entry, model, seed=2)[0]) < 0.995, "the result hardly depends on the input"


@pytest.mark.parametrize("name", QUICK)
def test_results_are_finite_of_sensible_size_and_depend_on_the_input(name: str) -> None:
    check_results(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_results_of_large_models_too(name: str) -> None:
    check_results(name)


def marked(names: Iterable[str], quick: Collection[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", marked(PARAMETERS, SAMPLE))
def test_a_model_has_as_many_parameters_as_the_published_one(name: str) -> None:
    entry = zoo.find(name)
    need_source(entry)
    model = entry.architecture.blank() if name in READS_VALUES else on_meta(entry)
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[name]


def test_sizes_that_torchvision_publishes() -> None:
    """An independent check of the table above."""
    need("torchvision")
    models = library("torchvision.models")
    for entry in zoo.entries(source="torchvision", size="full"):
        if entry.task.endswith("classification") and isinstance(entry.architecture, Torchvision):
            published = {each.meta["num_params"] for each in models.get_model_weights(entry.architecture.model)}
            assert PARAMETERS[entry.name] in published, entry.name


@pytest.mark.parametrize("name", ["mnist-cnn", "resnet18-32px", "qwen2-2L", "mamba-2L"])
def test_weights_are_determined_by_the_seed(name: str) -> None:
    entry = zoo.find(name)
    need_source(entry)
    before = torch.random.get_rng_state()
    first, second, other = (entry.build(seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state()), "building a model changed the caller's random numbers"
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", ["mnist-cnn", "resnet18-32px", "qwen2-2L", "vit-base-2L", "detr-2L"])
def test_no_parameter_is_one_constant(name: str) -> None:
    """A dropped bias, scale or statistic would not be noticed if it were 0 or 1."""
    entry = zoo.find(name)
    need_source(entry)
    constant = [
        key
        for key, values in entry.build().state_dict().items()
        if values.is_floating_point() and values.numel() > 1 and values.min() == values.max()
    ]
    assert constant == []


@pytest.mark.parametrize("name", ["resnet18-32px", "mobilenetv2", "vit-base-2L", "detr-2L"])
def test_rounding_to_bfloat16_changes_little(name: str) -> None:
    """Otherwise PCC would measure how random weights amplify errors, not the compiler."""
    entry = zoo.find(name)
    need_source(entry)
    model = entry.build()
    exact = run(entry, model, seed=1)[0]
    rounded = {key: value.bfloat16().float() for key, value in model.state_dict().items() if value.is_floating_point()}
    model.load_state_dict(rounded, strict=False)
    assert 0.99 < correlation(exact, run(entry, model, seed=1)[0]) < 1


def test_inputs_have_the_requested_batch_and_length() -> None:
    _, keywords = zoo.find("codegen-350M").inputs(seed=0)
    assert keywords["input_ids"].shape == (1, 64)
    _, keywords = zoo.find("codegen-350M").inputs(seed=0, length=128, batch=3)
    assert keywords["input_ids"].shape == (3, 128)
    _, keywords = zoo.find("bert-large-qa").inputs(length=50)
    assert {name: tuple(values.shape) for name, values in keywords.items()} == {
        "input_ids": (1, 50), "attention_mask": (1, 50), "token_type_ids": (1, 50),
    }  # fmt: skip
    assert keywords["attention_mask"].sum() == 45
    (image,), _ = zoo.find("resnet18").inputs(batch=2)
    assert image.shape == (2, 3, 224, 224)


def test_decoding_reads_the_cache_and_writes_its_token_into_it() -> None:
    entry = zoo.find("llama-2L-decode-static")
    need_source(entry)
    model = entry.build()
    _, keywords = entry.inputs(seed=0)
    cache = keywords["past_key_values"]
    before = [values.clone() for values in zoo.tensors(cache)]
    with torch.no_grad():
        logits = model(**keywords).logits
        emptied = entry.inputs(seed=0)[1]
        for values in zoo.tensors(emptied["past_key_values"]):
            values.zero_()
        assert not torch.allclose(logits, model(**emptied).logits)
    for old, new in zip(before, zoo.tensors(cache)):
        changed = (old != new).any(dim=3).any(dim=1).flatten().nonzero().flatten()
        assert changed.tolist() == [32], "the first free position"


def test_tensors_of_nested_outputs_come_in_order() -> None:
    a, b, c = torch.zeros(1), torch.zeros(2), torch.zeros(3)
    assert [len(t) for t in zoo.tensors({"x": (a, None, [b]), "y": c, "loss": 1.0})] == [1, 2, 3]
    with pytest.raises(TypeError, match="set"):
        zoo.tensors({a})


def test_entries_are_found_by_name_and_filtered() -> None:
    assert zoo.find("gpt2").source == "transformers"
    assert len(set(zoo.names())) == len(zoo.names())
    assert {entry.source for entry in zoo.entries()} == {"torchvision", "timm", "transformers", "diffusers", "ours"}
    assert all(entry.size == "full" and not entry.reduced for entry in zoo.entries(size="full"))
    assert all(entry.reduced.endswith(".") for entry in zoo.entries(size="reduced"))
    assert [entry.name for entry in zoo.entries("gptneo", size="full")] == ["gptneo-125M"]
    with pytest.raises(zoo.UnknownModel, match="resnet18"):
        zoo.find("resnet-18")


def test_every_model_has_its_parameters_counted() -> None:
    assert set(PARAMETERS) == set(zoo.names()) - {entry.name for entry in TRAINED}


def test_there_are_enough_models() -> None:
    assert len(zoo.entries()) >= 200
    assert len(zoo.entries(train=True)) >= 30
    assert {entry.name for entry in zoo.entries("resnet", train=True)} >= {"resnet18", "resnet50"}


def test_only_models_of_transformers_have_settings() -> None:
    with pytest.raises(TypeError, match="torchvision"):
        zoo.find("resnet18").resized("resnet6", "Fewer layers.", layers=6)
    assert replace(zoo.find("gpt2"), batch=2).inputs()[1]["input_ids"].shape[0] == 2


@pytest.mark.parametrize(("name", "library"), [("qwen2-2L", "transformers"), ("resnet18", "torchvision")])
def test_a_library_that_is_not_installed_is_named(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_operators()
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"{library}.models", raising=False)
    with pytest.raises(zoo.LibraryMissing, match=f"pip install {library}"):
        zoo.find(name).build()
