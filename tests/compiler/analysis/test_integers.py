"""Integers of any size are exact: the device's 32 bits are used only where they suffice."""

from __future__ import annotations

import logging
import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch.nn import functional

import torch_ttnn
from torch_ttnn.compiler.ir.metadata import REASON

LEAST = torch.iinfo(torch.int64).min
SMALL = torch.tensor([1000, 3, -5, 7])


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def host_operations(options: torch_ttnn.TorchTtnnOption) -> list[str]:
    graphs = [program.graph for program in options.programs]
    return [str(node.target) for graph in graphs for node in graph.nodes if REASON.on(node)]


def assert_exact(function, *args, on_device=False):
    options = torch_ttnn.TorchTtnnOption()
    got, wanted = torch.compile(function, backend="ttnn", options=options)(*args), function(*args)
    assert torch.equal(got, wanted) and got.dtype is wanted.dtype
    if on_device:
        assert not host_operations(options)


BEYOND = {
    "powers": (lambda a: a**4 + 1, SMALL),
    "a sum of constants": (lambda a: torch.full((4,), 2**30).sum() + a * 0, SMALL),
    "a large addend": (lambda a: (a + 2**40) // 1000, SMALL),
    "a range beyond 32 bits": (lambda a: torch.arange(2**31, 2**31 + 4) + a, SMALL),
    "a large factor": (lambda a: a * torch.tensor([2**33, 1, 1, 1]), SMALL),
    "a comparison": (lambda a: (a * 2**25) > 2**32, SMALL),
    "a cast to float": (lambda a: (a * 2**25).float(), SMALL),
    "the least int64": (lambda a: a.masked_fill(a > 3, LEAST), SMALL),
    "cumsum": (lambda a: a.cumsum(0), torch.full((8,), 2**29)),
    "sum": (lambda a: a.sum(), torch.full((100,), 2**28)),
    "mul": (lambda a: a * a, torch.tensor([2**20, 5])),
    "neg": (lambda a: -a, torch.tensor([-(2**31), 5])),
    "abs": (lambda a: a.abs(), torch.tensor([-(2**31), 5])),
    "prod": (lambda a: a.prod(), torch.full((10,), 100)),
    "matmul": (lambda a: a @ a, torch.full((4, 4), 2**20)),
    "shifts": (lambda a: (a << 20) >> 10, torch.tensor([4096, 1])),
    "int32 wraps around": (lambda a: a * a, torch.tensor([70000], dtype=torch.int32)),
    "uint8 wraps around": (lambda a: a + 100, torch.tensor([200, 3], dtype=torch.uint8)),
    "a cast of a large float": (lambda x: (x * 2.0**40).long() // 2**39, torch.tensor([1.0, -2.0, 4.0])),
    "scatter_add": (lambda a: a.scatter_add(0, torch.zeros(4, dtype=torch.int64), a), torch.full((4,), 2**30)),
    "not selected, but read elsewhere": (
        lambda a: torch.where(a < 100, a**4, a) + (a**4).clamp(max=2**40),
        torch.tensor([2**17, 5]),
    ),
    "selected by other elements": (lambda a: torch.where(a < 100, (a**4).flip(0), a), torch.tensor([2**17, 5])),
    "in the selected arm": (lambda a: torch.where(a < 100, a, a**4), torch.tensor([2**17, 5])),
}


@pytest.mark.parametrize("name", BEYOND)
@torch.no_grad()
def test_values_beyond_32_bits_are_exact(name):
    assert_exact(*BEYOND[name])


def bucket(distance: torch.Tensor, exact: int = 16, furthest: int = 128) -> torch.Tensor:
    """Relative positions as T5 counts them: log(0) is cast to an integer, which nothing reads."""
    scale = exact / math.log(furthest / exact)
    large = exact + (torch.log(distance.float() / exact) * scale).long()
    large = torch.min(large, torch.full_like(large, 2 * exact - 1))
    return torch.where(distance < exact, distance, large)


WITHIN = {
    "positions": (lambda a: (a + 1).cumsum(0) * 2, torch.arange(10)),
    "a mask": (lambda m: (1 - m) * 3, torch.tensor([[1, 0, 1]])),
    "positions of a mask": (lambda m: (m.cumsum(-1) - 1).clamp(min=0), torch.tensor([[0, 1, 1, 0, 1]])),
    "argmax": (lambda a: a.float().argmax(0) + 1, torch.tensor([3, 9, 4])),
    "a cast after a clamp": (lambda x: x.clamp(0, 10).long() + 1, torch.tensor([1.0, 20.0])),
    "a mask given as floats": (lambda x: x[:, None].long().sum(-1), torch.tensor([1.0, 0.0])),
    "bits": (lambda a: (a & 255) | 256, torch.tensor([1, 1000])),
    "logarithms of positive integers": (lambda a: bucket(a.clamp(0, 200)), torch.arange(201)),
    "an index from a logarithm": (lambda a: torch.arange(32)[bucket(a.clamp(0, 200))], torch.arange(201)),
    "an element that is not selected": (
        lambda a: torch.where(a < 100, a**4, a).clamp(min=0),
        torch.tensor([2**29, 5, 99, 100, -3]).clamp(min=0),
    ),
    "selected by a later comparison": (lambda a: torch.where(a >= 2**10, 7, a * a * a), torch.arange(0, 2**11, 37)),
    "halves": (lambda a: a // 2 + a % 3, torch.arange(-8, 8)),
}


@pytest.mark.parametrize("name", WITHIN)
@torch.no_grad()
def test_values_within_32_bits_run_on_the_device(name):
    assert_exact(*WITHIN[name], on_device=True)


@torch.no_grad()
def test_a_call_with_larger_integers_runs_with_torch(caplog):
    function = torch.compile(lambda a: a.cumsum(0), backend="ttnn")
    assert torch.equal(function(torch.arange(8)), torch.arange(8).cumsum(0))
    large = torch.full((8,), 2**29)
    with caplog.at_level(logging.WARNING, "torch_ttnn"):
        assert torch.equal(function(large), large.cumsum(0))
    assert "on the host" in caplog.text


@torch.no_grad()
def test_weights_beyond_32_bits_are_exact():
    class Shifted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.tensor([2**40, 1]))

        def forward(self, a):
            return a + self.shift

    model = Shifted()
    compiled = torch.compile(model, backend="ttnn")
    a = torch.tensor([1, 2])
    assert torch.equal(compiled(a), a + model.shift)
    model.shift.fill_(7)
    assert torch.equal(compiled(a), a + 7)
    model.shift.fill_(2**50)
    assert torch.equal(compiled(a), a + 2**50)


STEPS = {
    "add": lambda x, n: x + n,
    "sub": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "square": lambda x, n: x * x,
    "cumsum": lambda x, n: x.cumsum(0),
    "floor": lambda x, n: x // (abs(n) + 1),
    "mod": lambda x, n: x % (abs(n) + 1),
    "neg": lambda x, n: -x,
    "abs": lambda x, n: x.abs(),
    "max": lambda x, n: torch.maximum(x, torch.full_like(x, n)),
    "where": lambda x, n: torch.where(x > n, x, n),
    "clamp": lambda x, n: x.clamp(-abs(n), abs(n)),
    "and": lambda x, n: x & n,
    "xor": lambda x, n: x ^ n,
    "not": lambda x, n: ~x,
    "sum": lambda x, n: x + x.sum(),
    "sort": lambda x, n: x.sort().values,
    "flip": lambda x, n: x.flip(0),
}


@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    number=st.sampled_from([1, -3, 100, 2**16, -(2**20), 2**31 - 1, 2**35]),
    values=st.lists(st.sampled_from([0, 1, -1, 7, -1000, 2**15, 2**24, 2**31 - 1, -(2**31)]), min_size=1, max_size=5),
)
@torch.no_grad()
def test_any_chain_of_operations_is_exact(names, number, values):
    def function(x):
        for name in names:
            x = STEPS[name](x, number)
        return x

    torch._dynamo.reset()
    assert_exact(function, torch.tensor(values))


# -- errors of torch -------------------------------------------------------------------------------------------------

TABLE = torch.linspace(-1, 1, 24).reshape(6, 4)
REFUSED = {  # name: (function, valid arguments, arguments that torch rejects)
    "division": (lambda a, b: a // b, ([6, 2], [3, 1]), ([1, 2], [1, 0])),
    "remainder": (lambda a, b: a % b, ([6, 2], [4, 1]), ([1, 2], [1, 0])),
    "scatter": (lambda a, b: TABLE.scatter(0, (a * 2).view(1, 2), TABLE[:1, :2]) + b[0], ([1, 2], [0]), ([1, 4], [0])),
    "index_put": (lambda a, b: torch.index_put(TABLE, (a + b,), TABLE[:2]), ([1, 2], [0, 1]), ([1, 9], [0, 1])),
    "index_add": (lambda a, b: TABLE.index_add(0, a + 1, TABLE[:2]) + b[0], ([1, 2], [0]), ([1, 5], [0])),
    "index": (lambda a, b: TABLE[a * b], ([1, 2], [1, 2]), ([3, 2], [1, 3])),
    "embedding": (lambda a, b: functional.embedding(a + b, TABLE), ([1, 2], [1, 2]), ([3, 2], [1, 9])),
    "gather": (lambda a, b: TABLE.gather(0, (a + b).view(1, 2)), ([1, 2], [1, 2]), ([3, 2], [1, 9])),
}


@pytest.mark.parametrize("name", REFUSED)
@torch.no_grad()
def test_invalid_arguments_raise_torchs_error(name):
    function, right, wrong = REFUSED[name]
    right, wrong = [torch.tensor(each) for each in right], [torch.tensor(each) for each in wrong]
    compiled = torch.compile(function, backend="ttnn")
    torch.testing.assert_close(compiled(*right), function(*right), rtol=0.02, atol=0.02)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        function(*wrong)
    with pytest.raises(type(expected.value)) as found:
        compiled(*wrong)
    assert str(found.value) == str(expected.value)
    torch.testing.assert_close(compiled(*right), function(*right), rtol=0.02, atol=0.02)
