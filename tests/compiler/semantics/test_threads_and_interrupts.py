"""Calls from several threads, and calls that are interrupted."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import torch_ttnn
import ttnn_emulator
from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled


@torch.no_grad()
def test_several_threads():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    function = compiled(model)
    function(torch.randn(4, WIDTH))
    inputs = [torch.randn(4, WIDTH) for _ in range(8)]
    wrong = []

    def work(x):
        with torch.no_grad():
            for _ in range(5):
                if not torch.allclose(function(x), model(x), rtol=0.1, atol=0.1):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@torch.no_grad()
def test_two_programs_of_one_device_start_in_two_threads():
    models = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(4)]
    x = torch.randn(4, WIDTH)
    wrong = []

    def work(model):
        with torch.no_grad():
            function = torch_ttnn.compile(model)
            for _ in range(5):
                if not torch.allclose(function(x), model(x), rtol=0.1, atol=0.1):
                    wrong.append(model)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@torch.no_grad()
@pytest.mark.parametrize("operation", ["from_torch", "linear"])
@pytest.mark.parametrize("call", [1, 3, 5])
def test_an_interrupted_call_can_be_repeated(monkeypatch, operation, call):
    """Interrupted while weights are prepared, in the first run, or while the trace is captured."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    x = torch.randn(4, WIDTH)
    with ttnn_emulator.open_device(device_id=0) as device:
        function = compiled(model, device=device)
        calls = iter(range(1, 1000))
        called = getattr(ttnn_emulator, operation)

        def interrupted(*args, **kwargs):
            if next(calls) == call:
                raise KeyboardInterrupt
            return called(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(ttnn_emulator, operation, interrupted)
            with pytest.raises(KeyboardInterrupt):
                function(x)
        for _ in range(3):
            assert_near(function(x), model(x))
