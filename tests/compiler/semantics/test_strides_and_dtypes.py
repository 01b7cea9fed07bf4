"""Strides, empty and expanded tensors, and dtypes and values that the device does not have."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.compiler.semantics.compiled_models import assert_near, compiled
from torch_ttnn.compiler.ir.metadata import REASON

STRIDED = {
    "transposed": lambda x: (x * 2).transpose(1, 2),
    "contiguous again": lambda x: (x * 2).permute(1, 0, 2).contiguous(),
    "first row": lambda x: (x[:1] * 2)[:, 0],  # dimensions of one element keep torch's strides too
    "first column": lambda x: (x * 2)[:, :, :1],
    "expanded": lambda x: (x * 2).sum(0, keepdim=True).expand(3, 5, 4),
}


@pytest.mark.parametrize("name", STRIDED)
@torch.no_grad()
def test_outputs_have_torchs_strides(name):
    x = torch.randn(3, 5, 4)
    want, run = STRIDED[name](x), compiled(STRIDED[name])
    for _ in range(3):
        got = run(x)
        assert got.stride() == want.stride()
        assert_near(got, want)


@torch.no_grad()
def test_an_expanded_output():
    y = compiled(lambda x: (x + 1).expand(4, 3, 5))(torch.ones(3, 1))
    assert torch.equal(y, torch.full((4, 3, 5), 2.0))
    assert y.stride()[0] == 0


@torch.no_grad()
def test_empty_and_scalar_tensors():
    function = compiled(lambda x, s: (x * 2, s + 1, x.sum()))
    x, s, total = function(torch.ones(0, 4), torch.tensor(3.0))
    assert x.shape == (0, 4)
    assert s.shape == () and s.item() == 4
    assert total.item() == 0


@torch.no_grad()
def test_non_contiguous_and_expanded_inputs():
    function = compiled(lambda x, y: x + y)
    x, y = torch.arange(12.0).view(3, 4).t(), torch.ones(3).expand(4, 3)
    assert torch.equal(function(x, y), x + y)


@torch.no_grad()
def test_integer_inputs_beyond_32_bits_are_exact():
    function = compiled(lambda x: x + 1)
    assert function(torch.tensor([1, 2])).tolist() == [2, 3]
    assert function(torch.tensor([2**40, -(2**40)])).tolist() == [2**40 + 1, -(2**40) + 1]


@torch.no_grad()
def test_float64_and_complex_stay_on_the_host():
    options = torch_ttnn.TorchTtnnOption()
    function = torch.compile(lambda x: x * 2, backend="ttnn", options=options)
    x = torch.rand(5, dtype=torch.float64)
    assert torch.equal(function(x), x * 2)
    reasons = [REASON[node] for node in options._out_fx_graphs[0].nodes if REASON.on(node)]
    assert reasons == ["float64 has no counterpart on the device"]


def test_complex_constants_of_cached_programs(tmp_path):
    def function(x):
        return torch.view_as_real(torch.complex(x, x) * (2 - 1j))

    x = torch.rand(5)
    for _ in range(2):  # compiled, then read from the cache
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="ttnn", options={"cache_dir": str(tmp_path), "warn": False})
        torch.testing.assert_close(compiled(x), function(x), rtol=2**-7, atol=2**-7)


@torch.no_grad()
def test_a_mask_of_the_least_float32_masks_evenly():
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.full((4,), torch.finfo(torch.float32).min))

        def forward(self, x, mask):
            return torch.softmax(x + self.mask, -1), torch.softmax(x + mask, -1), x + self.mask

    model = Masked()
    even, also_even, least = compiled(model)(torch.zeros(2, 4), model.mask.clone())
    assert torch.equal(even, torch.full((2, 4), 0.25))
    assert torch.equal(also_even, torch.full((2, 4), 0.25))
    assert least.isfinite().all()
