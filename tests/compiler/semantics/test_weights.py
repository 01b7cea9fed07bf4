"""Weights are uploaded when they change and only then, and freed with their program."""

from __future__ import annotations

import copy
import gc
import io

import pytest
import torch
from torch import nn

import torch_ttnn
import ttnn_emulator
from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled, dram_in_use


@torch.no_grad()
@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.mul_(2),
        lambda w: w.data.mul_(2),
        lambda w: w.data.__setitem__((0, 0), 30.0),
        lambda w: setattr(w, "data", torch.randn(WIDTH, WIDTH)),
        lambda w: w.detach().view(-1)[:5].fill_(9),
    ],
    ids=["in place", "data in place", "one element", "data replaced", "through a view"],
)
def test_a_changed_weight_is_uploaded_again(change):
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    before = function(x)
    change(model.weight)
    after = function(x)
    assert_near(after, model(x), 0.2)
    assert not torch.equal(before, after)


@torch.no_grad()
def test_an_unchanged_weight_is_uploaded_once():
    options = torch_ttnn.TorchTtnnOption()
    model = nn.Linear(WIDTH, WIDTH)
    function = torch.compile(model, backend="ttnn", options=options)
    for _ in range(3):
        function(torch.randn(4, WIDTH))
    assert options.programs[0].weights.uploads == 2
    model.weight.data_ptr()  # moves the memory, but changes no value
    function(torch.randn(4, WIDTH))
    assert options.programs[0].weights.uploads == 2


@torch.no_grad()
def test_weights_in_memory_not_allocated_by_torch():
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    numbers = torch.randn(WIDTH, WIDTH).numpy()
    model.weight.data = torch.from_numpy(numbers)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    assert_near(function(x), model(x), 0.2)
    numbers *= 3
    assert_near(function(x), model(x), 0.5)


@torch.no_grad()
def test_load_state_dict_and_optimizer_steps():
    model, other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    function(x)
    model.load_state_dict(other.state_dict())
    assert_near(function(x), other(x))


@torch.no_grad()
def test_two_models_of_one_class_are_independent():
    first, second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    one, two = compiled(first), compiled(second)
    assert_near(one(x), first(x))
    assert_near(two(x), second(x))
    assert_near(one(x), first(x))


@torch.no_grad()
def test_dropping_the_model_frees_its_weights():
    with ttnn_emulator.open_device(device_id=0) as device:
        model = nn.Linear(256, 256)
        function = compiled(model, device=device)
        function(torch.randn(4, 256))
        assert dram_in_use(device) > 0
        del model, function
        gc.collect()
        assert dram_in_use(device) == 0


@torch.no_grad()
def test_an_evicted_program_frees_its_weights():
    model = nn.Linear(256, 256)
    with ttnn_emulator.open_device(device_id=0) as device:
        run = torch.compile(model, backend="ttnn", dynamic=True, options={"device": device, "max_programs": 1})
        run(torch.randn(3, 256))
        one = dram_in_use(device)
        for length in range(4, 9):
            run(torch.randn(length, 256))
        gc.collect()
        assert dram_in_use(device) <= one


@torch.no_grad()
def test_two_devices_in_one_process():
    model = nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    with ttnn_emulator.open_device(device_id=0) as one, ttnn_emulator.open_device(device_id=1) as two:
        for device in (one, two):
            torch._dynamo.reset()
            function = compiled(model, device=device)
            assert_near(function(x), model(x))
            assert dram_in_use(device) > 0


@torch.no_grad()
def test_the_uncompiled_model_can_be_copied_and_saved():
    model = nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    function(x)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals([nn.Linear]):
        loaded = torch.load(buffer, weights_only=True)
    for reference in (copy.deepcopy(model), loaded):
        assert torch.equal(reference(x), model(x))
    assert_near(function(x), model(x))
