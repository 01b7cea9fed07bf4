"""Errors name the operation, its arguments, the line of the model and what to do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ttnn_emulator
from torch_ttnn.compiler.errors import CompileError, ProgramError
from torch_ttnn.compiler.lowering import registry


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def test_out_of_memory_names_sizes_and_the_line_of_the_model():
    class Wide(nn.Module):
        def forward(self, x):
            return x.expand(4096, 1024, 4096) * 2  # 16 GiB of bfloat16

    with ttnn_emulator.open_device(device_id=0, holds_values=False) as device, torch.no_grad():
        run = torch.compile(Wide(), backend="ttnn", options={"device": device, "trace": False})
        with pytest.raises(ProgramError) as raised:
            run(torch.ones(1, 1, 4096))
    message = str(raised.value)
    assert "x.expand(4096, 1024, 4096)" in message
    assert "ttnn." in message and "B" in message


def test_a_failing_lowering_is_reported_as_our_bug(monkeypatch):
    def broken(ttnn, builder, x):
        raise KeyError("missing")

    monkeypatch.setitem(registry.LOWERINGS, torch.ops.aten.sin.default, registry.Lowering(broken, None, False))

    def model(x):
        return torch.sin(x)

    with pytest.raises(Exception) as raised:
        torch.compile(model, backend="ttnn")(torch.ones(2))
    error = raised.value
    while error is not None and not isinstance(error, CompileError):
        error = error.__cause__ or error.__context__
    message = str(error) + str(raised.value)
    assert "lowering aten.sin.default failed: KeyError" in message
    assert "Value([2] float32" in message
    assert "return torch.sin(x)" in message


def test_an_unknown_device_lists_the_known_ones():
    with pytest.raises(Exception, match='choose "emulator"'):
        torch.compile(lambda x: x + 1, backend="ttnn", options={"device": "gpu"})(torch.ones(2))
