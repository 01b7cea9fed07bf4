"""Buffers that calls write."""

from __future__ import annotations

import copy

import torch
from torch import nn

import torch_ttnn
from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled


@torch.no_grad()
def test_a_key_value_cache_in_a_buffer():
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(1, 8, WIDTH))

        def forward(self, x, position):
            self.cache.index_copy_(1, position, x)
            return self.cache.sum(1)

    model = Cached()
    reference = copy.deepcopy(model)
    function = compiled(model)
    for step in range(3):
        x = torch.randn(1, 1, WIDTH)
        assert_near(function(x, torch.tensor([step])), reference(x, torch.tensor([step])))
    assert_near(model.cache, reference.cache, 0.01)


@torch.no_grad()
def test_a_buffer_written_by_every_call_is_not_a_weight():
    """A changed weight is prepared again and its trace captured again, which must not happen for every token."""

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)
            self.register_buffer("total", torch.zeros(1, WIDTH))

        def forward(self, x):
            self.total += self.layer(x)
            return self.total * 2

    model = Counted()
    reference = copy.deepcopy(model)
    options = torch_ttnn.TorchTtnnOption()
    function = torch.compile(model, backend="ttnn", options=options)
    traces = []
    for step in range(4):
        if step == 2:
            model.total.zero_(), reference.total.zero_()
        x = torch.randn(1, WIDTH)
        assert_near(function(x), reference(x))
        traced = options.programs[0]._traced
        traces.append((options.programs[0].weights.uploads, traced and traced._trace))
    assert_near(model.total, reference.total)
    assert len(set(traces)) == 1
    assert len(options.programs[0].lowered.statics) == 2
