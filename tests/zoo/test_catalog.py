"""Any architecture by name, with inputs of the requested shape."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
import torch

from tests.zoo.installed import need
from torch_ttnn import zoo
from torch_ttnn.zoo import catalog
from torch_ttnn.zoo.catalog.factories import FactoryError
from torch_ttnn.zoo.catalog.transformers_inputs import UnknownArgument, inputs_of
from torch_ttnn.zoo.catalog.transformers_models import NoConfig
from torch_ttnn.zoo.fake import fake
from torch_ttnn.zoo.reduction import reduced
from torch_ttnn.zoo.sources import library

FACTORIES = """
import torch
from torch import nn

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x, scale=1.0):
        return self.layer(x) * scale

def alone(): return Tiny()
def with_tensor(): return Tiny(), torch.randn(2, 8)
def with_tuple(): return Tiny(), (torch.randn(2, 8), 3.0)
def with_keywords(): return Tiny(), {"x": torch.randn(2, 8)}
def with_both(): return Tiny(), ((torch.randn(2, 8),), {"scale": 2.0})
instance = Tiny()
def wrong(): return 7
"""


def shapes(entry: zoo.ModelEntry) -> list[tuple[int, ...]]:
    arguments, keywords = entry.inputs(seed=0)
    return [tuple(each.shape) for value in (*arguments, *keywords.values()) for each in zoo.tensors(value)]


@pytest.mark.parametrize(
    ("name", "source", "called", "fed"),
    [
        ("mnist-cnn", "ours", "mnist-cnn", (1, 1, 28, 28)),
        ("zoo:gpt2-2L", "transformers", "gpt2-2L", (1, 128)),
        ("resnet18", "torchvision", "resnet18", (1, 3, 224, 224)),
        ("alexnet", "torchvision", "alexnet", (1, 3, 224, 224)),
        ("torchvision:inception_v3", "torchvision", "inception_v3", (1, 3, 299, 299)),
        ("torchvision:fcn_resnet50", "torchvision", "fcn_resnet50", (1, 3, 520, 520)),
        ("torchvision:fasterrcnn_resnet50_fpn", "torchvision", "fasterrcnn_resnet50_fpn", (3, 480, 640)),
        ("torchvision:r3d_18", "torchvision", "r3d_18", (1, 3, 16, 112, 112)),
        ("timm:resnet18", "timm", "timm.resnet18", (1, 3, 224, 224)),
        ("swinv2_small_window8_256", "timm", "timm.swinv2_small_window8_256", (1, 3, 256, 256)),
        ("timm:dla34.in1k", "timm", "timm.dla34.in1k", (1, 3, 224, 224)),
        ("transformers:BertModel", "transformers", "BertModel", (1, 128)),
        ("BertForMaskedLM", "transformers", "BertForMaskedLM", (1, 128)),
        ("transformers:bert", "transformers", "BertModel", (1, 128)),
        ("transformers:BertConfig", "transformers", "BertModel", (1, 128)),
        ("ViTModel", "transformers", "ViTModel", (1, 3, 224, 224)),
        ("phiyodr/bert-large-finetuned-squad2", "transformers", "phiyodr/bert-large-finetuned-squad2", (1, 128)),
    ],
)
def test_names_are_resolved(name: str, source: str, called: str, fed: tuple[int, ...]) -> None:
    need("torchvision", "timm", "transformers")
    entry = catalog.resolve(name)
    assert (entry.source, entry.name) == (source, called)
    assert shapes(entry)[0] == fed


@pytest.mark.parametrize(
    ("name", "choice", "fed"),
    [
        ("resnet18", {"shape": (2, 3, 64, 96)}, [(2, 3, 64, 96)]),
        ("resnet18", {"batch": 4}, [(4, 3, 224, 224)]),
        ("torchvision:ssd300_vgg16", {"batch": 2}, [(3, 300, 300)] * 2),
        ("torchvision:ssd300_vgg16", {"shape": (1, 3, 200, 240)}, [(3, 200, 240)]),
        ("torchvision:r3d_18", {"shape": (2, 3, 8, 64, 64)}, [(2, 3, 8, 64, 64)]),
        ("bert-large-qa-2L", {"length": 32}, [(1, 32)] * 3),
        ("BertModel", {"shape": (2, 48)}, [(2, 48)] * 2),
        ("BertModel", {"length": 16, "batch": 3}, [(3, 16)] * 2),
    ],
)
def test_inputs_of_chosen_shapes(name: str, choice: dict, fed: list) -> None:
    need("torchvision", "transformers")
    assert shapes(catalog.resolve(name, **choice)) == fed


def test_a_shape_that_does_not_fit_a_model_is_rejected() -> None:
    need("torchvision", "transformers")
    with pytest.raises(ValueError, match="resnet18 takes Picture"):
        catalog.resolve("resnet18", shape=(1, 224))
    with pytest.raises(ValueError, match="takes Padded, Tokens"):
        catalog.resolve("BertModel", shape=(1, 3, 32, 32))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("resnet-18", "zoo:resnet18"),
        ("torchvision:resnet81", "torchvision:resnet18"),
        ("timm:convnext_tinny", "timm:convnext_tiny"),
        ("BertForQuestionAnswerin", "transformers:BertForQuestionAnswering"),
        ("zoo:gpt3", "gpt2"),
        ("model.py", "model.py:function"),
    ],
)
def test_unknown_names_suggest_similar_ones(name: str, hint: str) -> None:
    need("torchvision", "timm", "transformers")
    with pytest.raises(zoo.UnknownModel, match=hint):
        catalog.resolve(name)


def test_patterns() -> None:
    need("torchvision", "timm")
    assert catalog.expand(["torchvision:vgg1?", "alexnet", "torchvision:vgg11"]) == [
        "torchvision:vgg11", "torchvision:vgg13", "torchvision:vgg16", "torchvision:vgg19", "alexnet",
    ]  # fmt: skip
    assert "torchvision:maskrcnn_resnet50_fpn" in catalog.expand(["torchvision:mask*"])
    assert len(catalog.expand(["timm:*"])) > 1000
    with pytest.raises(zoo.UnknownModel, match="nothing-like-this"):
        catalog.expand(["nothing-like-this*"])


def test_the_number_of_models() -> None:
    need("torchvision", "timm", "transformers")
    assert len(catalog.names("torchvision")) == 80
    assert len(catalog.names("torchvision", "segmentation")) == 6
    assert len(catalog.names("torchvision", "detection")) == 12
    assert not [name for task in catalog.TASKS for name in catalog.names("torchvision", task) if "quantized" in name]
    assert len(catalog.names("timm")) > 1000
    assert len(set(catalog.names("transformers"))) >= 60
    assert len(catalog.names("zoo")) == len(zoo.names())


@pytest.fixture
def factories(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    path = tmp_path / "factories.py"
    path.write_text(FACTORIES)
    return path


@pytest.mark.parametrize(
    ("name", "arguments", "keywords"),
    [
        ("with_tensor", 1, []),
        ("with_tuple", 2, []),
        ("with_keywords", 0, ["x"]),
        ("with_both", 1, ["scale"]),
    ],
)
def test_a_factory_with_inputs(name: str, arguments: int, keywords: list[str], factories: pathlib.Path) -> None:
    for address in (f"factories:{name}", f"factories.py:{name}", f"{factories}:{name}"):
        entry = catalog.resolve(address)
        model = entry.build()
        args, kwargs = entry.inputs(seed=1)
        assert len(args) == arguments
        assert list(kwargs) == keywords
        assert model(*args, **kwargs).shape == (2, 4)
        assert entry.name == f"factories.{name}"


@pytest.mark.parametrize("name", ["alone", "Tiny", "instance"])
def test_a_factory_without_inputs_takes_a_shape(name: str, factories: pathlib.Path) -> None:
    entry = catalog.resolve(f"factories:{name}", shape=(5, 8))
    args, kwargs = entry.inputs(seed=1)
    assert entry.build()(*args, **kwargs).shape == (5, 4)
    with pytest.raises(FactoryError, match="--input-shape"):
        catalog.resolve(f"factories:{name}").inputs()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("factories:nothing", "no model at 'factories:nothing'"),
        ("no_such_module:tiny", "No module named 'no_such_module'"),
        ("no_such_file.py:tiny", "no_such_file.py"),
    ],
)
def test_a_missing_factory_is_named(address: str, reason: str, factories: pathlib.Path) -> None:
    with pytest.raises(FactoryError, match=reason):
        catalog.resolve(address)


def test_a_factory_must_return_a_module(factories: pathlib.Path) -> None:
    with pytest.raises(FactoryError, match="returns int"):
        catalog.resolve("factories:wrong").build()


# -- transformers -----------------------------------------------------------------------------------------------------


def test_depth_is_reduced_and_nothing_else() -> None:
    need("transformers")
    transformers = library("transformers")
    config = reduced(transformers.BertConfig())
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (2, 768, 30522)
    assert reduced(transformers.GPT2Config(), 3).n_layer == 3
    assert reduced(transformers.BertConfig(num_hidden_layers=1)).num_hidden_layers == 1
    assert reduced(transformers.SwinConfig()).depths == [2, 2, 2, 2]
    parts = reduced(transformers.CLIPConfig())
    assert (parts.text_config.num_hidden_layers, parts.vision_config.num_hidden_layers) == (2, 2)


def test_one_layer_of_each_kind_is_kept() -> None:
    need("transformers")
    config = reduced(library("transformers").Gemma3TextConfig())
    assert config.layer_types == ["sliding_attention", "full_attention"]
    assert config.num_hidden_layers == 2


def test_layers_as_published_on_request() -> None:
    need("transformers")
    assert catalog.resolve("BertModel", layers=None).architecture.configuration().num_hidden_layers == 12
    large = catalog.resolve("phiyodr/bert-large-finetuned-squad2", layers=None).architecture.configuration()
    assert (large.num_hidden_layers, large.hidden_size) == (24, 1024)


def test_a_folder_with_a_config(tmp_path: pathlib.Path) -> None:
    need("transformers")
    config = library("transformers").BertConfig(hidden_size=32, num_attention_heads=2, intermediate_size=64)
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(tmp_path / "mine")
    entry = catalog.resolve(f"transformers:{tmp_path / 'mine'}")
    assert entry.name == "mine"
    assert type(entry.build()).__name__ == "BertForMaskedLM"
    assert entry.architecture.configuration().hidden_size == 32


def test_weights_of_a_folder_are_loaded(tmp_path: pathlib.Path) -> None:
    need("transformers")
    settings = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "num_hidden_layers": 1}
    saved = library("transformers").BertModel(library("transformers").BertConfig(**settings))
    saved.save_pretrained(tmp_path / "mine")
    entry = catalog.resolve(f"transformers:{tmp_path / 'mine'}", layers=None)
    for weights in ("pretrained", tmp_path / "mine"):
        loaded = entry.build(weights=weights).state_dict()
        assert all(torch.equal(loaded[name], values) for name, values in saved.state_dict().items())


def test_without_a_network_a_hub_name_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    need("transformers")

    def unreachable(name: str) -> None:
        raise OSError("We couldn't connect to the hub.\nCheck your connection.")

    monkeypatch.setattr(library("transformers").AutoConfig, "from_pretrained", unreachable)
    with pytest.raises(NoConfig, match=r"'nobody/nothing' could not be loaded: We couldn't connect.* name a class"):
        catalog.resolve("nobody/nothing")


def test_an_unknown_argument_is_named() -> None:
    class Odd(torch.nn.Module):
        def forward(self, input_ids, wind_direction, labels=None):
            pass

    with pytest.raises(UnknownArgument, match=r"Odd needs the argument 'wind_direction'.* write a function"):
        inputs_of(Odd, object())


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("BertModel", {"input_ids": (1, 128), "attention_mask": (1, 128)}),
        ("GPT2LMHeadModel", {"input_ids": (1, 128)}),
        ("T5Model", {"input_ids": (1, 128), "attention_mask": (1, 128), "decoder_input_ids": (1, 16)}),
        ("ViTModel", {"pixel_values": (1, 3, 224, 224)}),
        ("VideoMAEModel", {"pixel_values": (1, 16, 3, 224, 224)}),
        ("WhisperModel", {"input_features": (1, 80, 3000), "decoder_input_ids": (1, 16)}),
        ("Wav2Vec2Model", {"input_values": (1, 16000)}),
        ("ASTModel", {"input_values": (1, 1024, 128)}),
        ("CLIPModel", {"input_ids": (1, 64), "pixel_values": (1, 3, 224, 224)}),
        ("LayoutLMModel", {"input_ids": (1, 128), "bbox": (1, 128, 4), "attention_mask": (1, 128)}),
        ("LlavaForConditionalGeneration", {"input_ids": (1, 608), "pixel_values": (1, 3, 336, 336)}),
    ],
)  # fmt: skip
def test_models_of_transformers_get_their_inputs(name: str, keywords: dict) -> None:
    need("transformers")
    _, given = catalog.resolve(name).inputs(seed=0)
    assert {key: tuple(values.shape) for key, values in given.items()} == keywords


# -- without values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["resnet18", "torchvision:regnet_y_128gf", "timm:vit_tiny_patch16_224", "LlamaForCausalLM"]
)
def test_a_fake_model_has_all_parameters_and_no_memory(name: str) -> None:
    need("torchvision", "timm", "transformers")
    entry = catalog.resolve(name)
    with fake(entry) as faked, torch.no_grad():
        assert all(parameter.device.type == "cpu" for parameter in faked.model.parameters())
        (output, *_) = zoo.tensors(
            dict(faked.model(*faked.arguments, **faked.keywords)) if "Llama" in name else faked.model(*faked.arguments)
        )
        count = sum(parameter.numel() for parameter in faked.model.parameters())
    assert type(output).__name__ == "FakeTensor"
    published = {"resnet18": 11.69, "torchvision:regnet_y_128gf": 644.81}
    if name in published:
        assert count / 1e6 == pytest.approx(published[name], abs=0.006)


def test_a_fake_model_has_no_side_effects() -> None:
    need("torchvision")
    with fake(catalog.resolve("resnet18")):
        pass
    layer = torch.nn.Linear(2, 2)
    assert not layer.weight.is_meta
    assert torch.ones(2).sum().item() == 2


def test_tied_weights_stay_tied_without_values() -> None:
    need("transformers")
    with fake(catalog.resolve("GPT2LMHeadModel")) as faked:
        assert faked.model.lm_head.weight is faked.model.transformer.wte.weight


def test_catalog_imports_no_library_before_it_is_needed() -> None:
    code = """
import sys, json
from torch_ttnn.zoo import catalog
catalog.resolve("mnist-cnn")
print(json.dumps(sorted({"torchvision", "timm", "transformers"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert json.loads(done.stdout) == [], done.stderr
