"""The weights of a torch model as TT-NN tensors."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator import model_preprocessing as preprocessing


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 32), torch.nn.Linear(32, 64, bias=False)])
        self.steps = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.words = torch.nn.Embedding(10, 64)


def test_a_model_becomes_a_tree_of_tensors_that_compute_the_same(device) -> None:
    torch.manual_seed(0)
    model = Block()
    parameters = preprocessing.preprocess_model_parameters(initialize_model=lambda: model, device=device)
    assert list(parameters) == ["scale", "norm", "layers", "steps", "words"]
    assert list(parameters.layers[0].weight.shape) == [64, 32]
    assert list(parameters.layers[0].bias.shape) == [1, 32]
    assert "bias" not in parameters.layers[1]
    assert 1 in parameters.layers and 2 not in parameters.layers
    assert list(parameters.steps) == [0]
    assert "layers:" in repr(parameters) and "shape=Shape([64, 32]), layout=Layout.TILE" in repr(parameters)
    x = torch.randn(5, 64)
    on_device = ttnn.from_torch(x, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    normed = ttnn.layer_norm(on_device, weight=parameters.norm.weight, bias=parameters.norm.bias, epsilon=1e-5)
    ours = ttnn.to_torch(ttnn.linear(normed, parameters.layers[0].weight, bias=parameters.layers[0].bias)).float()
    theirs = model.layers[0](model.norm(x)).detach()
    assert torch.corrcoef(torch.stack([ours.flatten(), theirs.flatten()]))[0, 1] > 0.999


def test_unconverted_parameters_stay_torch_and_a_custom_rule_has_priority() -> None:
    parameters = preprocessing.preprocess_model_parameters(
        initialize_model=Block,
        convert_to_ttnn=lambda model, name: not name.startswith("steps"),
        custom_preprocessor=lambda model, name: {"weight": "mine"} if isinstance(model, torch.nn.Embedding) else None,
    )
    assert isinstance(parameters.steps[0].weight, torch.Tensor)
    assert isinstance(parameters.norm.weight, ttnn.Tensor)
    assert parameters.words.weight == "mine"
    with pytest.raises(ttnn.InvalidArgument, match="custom preprocessor"):
        preprocessing.preprocess_model_parameters(initialize_model=Block, custom_preprocessor=lambda model: None)


def test_batch_norm_folds_into_a_convolution() -> None:
    torch.manual_seed(0)
    conv, norm = torch.nn.Conv2d(4, 8, 3), torch.nn.BatchNorm2d(8)
    norm.running_mean, norm.running_var = torch.randn(8), torch.rand(8) + 0.5
    weight, bias = preprocessing.fold_batch_norm2d_into_conv2d(conv, norm.eval())
    x = torch.randn(1, 4, 9, 9)
    assert torch.allclose(torch.nn.functional.conv2d(x, weight, bias), norm(conv(x)), atol=1e-5)
    with pytest.raises(ttnn.InvalidArgument, match="running statistics"):
        preprocessing.fold_batch_norm2d_into_conv2d(conv, torch.nn.BatchNorm2d(8, track_running_stats=False))
