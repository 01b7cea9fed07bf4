"""Strides equal torch's: those of results, and of arguments of host operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import nn

import torch_ttnn  # noqa: F401
from tests.compiler.operators.judge import compiled
from tests.compiler.operators.samples import Call


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def numbers(*shape: int) -> torch.Tensor:
    """Small integers, which are exact in bfloat16."""
    return torch.randint(-100, 100, shape, generator=torch.Generator().manual_seed(0)).float()


def assert_same(function, *args):
    """Values, shapes and strides are torch's."""
    wanted = function(*args)
    got = torch.compile(function, backend="ttnn")(*args)
    for each, its in zip(got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)):
        torch.testing.assert_close(each, its)
        assert each.stride() == its.stride()


@torch.library.custom_op("torch_ttnn_tests::memory", mutates_args=())
def memory(x: torch.Tensor) -> torch.Tensor:
    """The memory from the first element of a tensor on."""
    reach = sum((size - 1) * step for size, step in zip(x.shape, x.stride())) + 1
    return x.as_strided((reach,), (1,), x.storage_offset()).clone()


@memory.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(sum((size - 1) * step for size, step in zip(x.shape, x.stride())) + 1)


# -- results of kernels -------------------------------------------------------------------------------------------


class NormOfTransposed(nn.Module):
    """The CPU's batch norm returns contiguous results where its meta function keeps the strides of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2).reshape(-1, 8)


@torch.no_grad()
def test_results_of_kernels_have_captured_strides():
    model = NormOfTransposed().eval().double()  # float64: every operation runs on the host
    x = numbers(2, 5, 8).double()
    torch.testing.assert_close(torch.compile(model, backend="ttnn")(x), model(x))


# -- arguments of host operations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arranged",
    [
        lambda x: x.transpose(0, 1),
        lambda x: x.transpose(0, 1).contiguous(),
        lambda x: x.permute(2, 0, 1).clone(),
        lambda x: x.permute(2, 0, 1).clone(memory_format=torch.contiguous_format),
        lambda x: x.reshape(6, 5).t(),
        lambda x: x.sum(0, keepdim=True).expand(2, 3, 5),
        lambda x: torch.cat([x, x], 1).transpose(1, 2),
        lambda x: torch.empty_like(x.mT).copy_(x.mT),
    ],
)
@torch.no_grad()
def test_an_operator_that_reads_memory_sees_torchs_strides(arranged):
    assert_same(lambda x: memory(arranged(x + 1)), numbers(2, 3, 5))


@torch.no_grad()
def test_complex_views_of_device_results():
    assert_same(
        lambda x: torch.view_as_real(torch.view_as_complex((x * 2).transpose(1, 2).contiguous()) * 2), numbers(3, 2, 5)
    )


@pytest.mark.parametrize("layers, bidirectional", [(1, False), (2, True)])
@torch.no_grad()
def test_recurrent_networks_batch_first(layers, bidirectional):
    torch.manual_seed(0)
    model = nn.LSTM(32, 48, layers, batch_first=True, bidirectional=bidirectional)
    x = torch.randn(4, 7, 32)
    with torch._dynamo.config.patch(allow_rnn=True):
        got, _ = torch.compile(model, backend="ttnn")(x)
    wanted, _ = model(x)
    torch.testing.assert_close(got, wanted, rtol=0.05, atol=0.02)
    assert got.stride() == wanted.stride()


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y[:, ::2].as_strided((3, 4), (4, 1)),  # reads the elements between those of the slice
        lambda y: y[1:].as_strided((2, 4), (4, 1)),  # the slice's own offset
        lambda y: y[1:].as_strided((2, 4), (4, 1), 0),  # the elements before the slice
        lambda y: y.t()[1].as_strided((3,), (2,)),
        lambda y: y.split([1, 2])[1].as_strided((4,), (1,), 1),
        lambda y: y.unbind(0)[2].as_strided((4,), (1,), 2),
        lambda y: y.t().contiguous().as_strided((2, 3), (5, 2)),
    ],
)
@torch.no_grad()
def test_as_strided_reads_the_storage_of_a_view(read):
    assert_same(lambda x: read(x * 2).clone(), numbers(3, 4))


# -- results -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_views_after_a_graph_break():
    convolution = nn.Conv2d(3, 4, 3)

    def function(x):
        y = convolution(x)
        torch._dynamo.graph_break()
        return y.view(1, -1), y.as_strided((5,), (1,))

    x = torch.randn(1, 3, 8, 8)
    for got, wanted in zip(torch.compile(function, backend="ttnn")(x), function(x)):
        torch.testing.assert_close(got, wanted, rtol=0.05, atol=0.05)


ARRANGEMENTS = {
    "transpose": lambda x: x.transpose(0, -1),
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(),
    "permute": lambda x: x.permute(1, 2, 0),
    "add": lambda x: x + 1,
    "relu": torch.relu,
    "expand": lambda x: x[:, :, :1].expand_as(x),
    "slice": lambda x: x[:, :, : max(1, x.shape[2] - 1)],
    "cat": lambda x: torch.cat([x, x], 1),
    "reshape": lambda x: x.reshape(x.shape[0], 1, -1),
    "zeros_like": lambda x: torch.zeros_like(x) + x,
    "softmax": lambda x: torch.where(torch.softmax(x, -1) > 2, 1.0, x),
}


@given(names=st.lists(st.sampled_from(sorted(ARRANGEMENTS)), min_size=1, max_size=4))
@torch.no_grad()
def test_strides_of_results(names):
    def function(x):
        for name in names:
            x = ARRANGEMENTS[name](x)
        return x

    torch._dynamo.reset()
    assert_same(function, numbers(2, 3, 4))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.as_strided_((2, 2), (1, 2), 1),
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1),
        lambda x: x.unsqueeze_(0),
    ],
    ids=["as_strided_", "t_", "transpose_", "unsqueeze_"],
)
def test_a_restrided_input_keeps_its_storage_offset(change: Callable[..., Any], start: int) -> None:
    mine, wanted = (torch.arange(20.0).view(5, 4)[start:] for _ in range(2))
    compiled(Call(change, (mine,), ""), [mine])  # without Dynamo, which breaks the graph there
    change(wanted)
    assert (mine.stride(), mine.storage_offset()) == (wanted.stride(), wanted.storage_offset())
    assert torch.equal(mine, wanted)


def test_a_constant_result_has_torchs_strides():
    """The indices of an identity pool are known while compiling, in channels-last order."""
    x = torch.randn(1, 4, 4, 3)

    def pooled(x):
        return torch.nn.functional.adaptive_max_pool2d(x, (None, None), return_indices=True)

    got = torch.compile(pooled, backend="ttnn", options={"device": "emulator", "warn": False})(x)
    for ours, theirs in zip(got, pooled(x), strict=True):
        assert ours.stride() == theirs.stride()
    assert torch.equal(got[1], pooled(x)[1])
