"""Arguments of modules inferred by running a model, and parameters stored in files."""

from __future__ import annotations

import pytest
import torch
from ttnn_emulator.dot_access import DotAccessDict, make_dot_access_dict
from ttnn_emulator.model_preprocessing import Conv2dArgs, infer_ttnn_module_args, preprocess_model_parameters

import ttnn_emulator as ttnn


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.pool = torch.nn.MaxPool2d(2)
        self.rest = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 1), torch.nn.GroupNorm(2, 16))

    def forward(self, x):
        return self.rest(self.pool(self.first(x)))


def test_arguments_are_nested_like_the_calls() -> None:
    found = infer_ttnn_module_args(model=Net(), run_model=lambda model: model(torch.rand(2, 3, 16, 12)), device=None)
    assert isinstance(found.first, Conv2dArgs) and found.first.padding == (1, 1)
    assert (found.pool.input_channels, found.pool.input_height, found.pool.input_width) == (8, 16, 12)
    assert found.rest[0] is found.rest["0"] and found.rest[0].input_width == 6 and found.rest[1].num_groups == 2
    assert infer_ttnn_module_args(model=Net(), run_model=None, device=None) is None


def test_a_cached_model_is_not_initialized_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ttnn, "CONFIG", ttnn.Config())
    ttnn.CONFIG.enable_model_cache = True
    ttnn.CONFIG.model_cache_path = tmp_path
    arguments = {"model_name": "linear", "version": "1"}
    made = preprocess_model_parameters(initialize_model=lambda: torch.nn.Linear(32, 64).eval(), **arguments)
    read = preprocess_model_parameters(**arguments)
    assert torch.equal(ttnn.to_torch(read.weight), ttnn.to_torch(made.weight))
    with pytest.raises(RuntimeError, match="no cached weights"):
        preprocess_model_parameters(model_name="linear", version="2")


def test_keys_are_attributes() -> None:
    made = make_dot_access_dict({"a": {"b": 1}, "c": Conv2dArgs(d=2)}, ignore_types=(Conv2dArgs,))
    assert made.a.b == 1 and isinstance(made.a, DotAccessDict) and isinstance(made.c, Conv2dArgs)
