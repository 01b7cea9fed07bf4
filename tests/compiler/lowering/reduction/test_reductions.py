"""Reductions: every form of `dim`, exact integers and booleans, storage order kept."""

import math

import pytest
import torch

from tests.compiler.against_torch import check
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.lowering.reduction.reductions import _grouped, _places
from torch_ttnn.compiler.lowering.registry import LOWERINGS, lowers

r = torch.randn
aten = torch.ops.aten
DIMS = [0, -1, (1,), (0, 2), (-2, -1), (0, 1, 2), ()]
FLOATS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "var": torch.var,
    "std": lambda x, dim, keepdim: torch.std(x, dim, correction=0, keepdim=keepdim),
    "logsumexp": torch.logsumexp,
}


def norm(order):
    return lambda x, dim, keepdim: torch.linalg.vector_norm(x, order, dim, keepdim)


FLOATS |= {f"norm {order}": norm(order) for order in (0, 1, 2, 3, 2.5, math.inf, -math.inf)}


@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name, dim):
    if name == "logsumexp" and dim == ():
        dim = (1,)  # torch itself fails
    check(lambda x: [FLOATS[name](x, dim, keepdim) for keepdim in (False, True)], r(3, 5, 34) + 1)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_spreads_of_values_far_from_zero(precision):
    check(lambda x: torch.var_mean(x, (0, 2)), (r(3, 4, 65) + 30).bfloat16().float(), precision=precision)


def test_whole_tensors():
    names = ("sum", "mean", "max", "min", "amax", "norm", "prod")
    check(lambda x: [getattr(x, name)() for name in names] + [x.std()], r(3, 4))
    check(lambda x: [getattr(x, name)() for name in names] + [x.logsumexp(0), x.sum(0), x.any()], r(()))


@pytest.mark.parametrize("dim", [0, 1, (0, 1), None], ids=str)
def test_many_booleans_are_counted_exactly(dim):
    """In bfloat16 a count would stop at 256."""
    check(lambda x: x.sum() if dim is None else x.sum(dim), torch.rand(300, 301) < 0.9)
    check(
        lambda x: torch.count_nonzero(x) if dim is None else torch.count_nonzero(x, dim), torch.rand(300, 301).round()
    )


@pytest.mark.parametrize("function", [torch.sum, torch.amax, torch.amin])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_integers_are_exact(function, dtype):
    x = torch.randint(-30000, 30000, (3, 50, 70)).to(dtype)
    for dim in (0, 1, 2, (0, 2)):
        check(lambda x: function(x, dim), x)  # noqa: B023


def test_the_dtype_of_a_sum():
    check(lambda x: x.sum(0, dtype=torch.float32), torch.randint(9, (5, 7)))
    check(lambda x: x.sum(0, dtype=torch.float32), torch.rand(500, 7) < 0.9)
    check(lambda x: x.mean(0, dtype=torch.float32), torch.randint(9, (5, 7)))
    check(lambda x: x.sum(0, dtype=torch.float32), r(5, 7).bfloat16())
    outcome = check(lambda x: x.sum(dtype=torch.int64), r(5, 7) * 9, on_device=False)
    assert outcome.host_ops


@pytest.mark.parametrize("function", [torch.any, torch.all])
def test_any_and_all(function):
    for x in (torch.rand(3, 4, 5) < 0.5, torch.randint(-1, 2, (3, 4, 5)), r(3, 4, 5).round()):
        check(function, x)
        for dim in (0, -1, (0, 2), (0, 1, 2)):
            check(lambda x: function(x, dim), x)  # noqa: B023
            check(lambda x: function(x, dim, keepdim=True), x)  # noqa: B023
    check(function, torch.zeros(3, 4, dtype=torch.bool))
    check(function, torch.ones(3, 4, dtype=torch.bool))
    check(function, torch.tensor(True))


def test_products():
    check(lambda x: x.prod(1), r(3, 4, 5))
    check(lambda x: x.prod(-1, keepdim=True), r(3, 4, 5))
    assert check(lambda x: x.prod(1), torch.randint(1, 9, (3, 4)), on_device=False).host_ops


def test_logsumexp_of_infinities():
    x = r(4, 5)
    x[0], x[1, 2], x[2, 3] = -math.inf, -math.inf, math.inf
    check(lambda x: x.logsumexp(1), x)


def test_a_variance_that_is_no_number_is_left_to_torch():
    outcome = check(lambda x: x.var(1), r(3, 1), on_device=False)
    assert "not a number" in outcome.host_ops["aten.var.correction"]


def test_which_stored_dimensions_go():
    nhwc = (2, 7, 7, 64)
    assert _places(nhwc, {1, 2}, nhwc) == [1, 2]
    assert _places(nhwc, {1, 2}, (1, 1, 98, 64)) is None
    assert _places((1, 7, 7, 64), {1, 2}, (1, 1, 49, 64)) == [2]
    assert _places(nhwc, {3}, (1, 1, 98, 64)) == [3]
    assert _grouped(nhwc, {1, 2}) == ((2, 49, 64), [1])


@pytest.fixture
def image_order(monkeypatch):
    """`aten.relu` returns merged NHWC, as a convolution does."""

    def as_convolution(ttnn, builder, x):
        n, c, h, w = x.shape
        handle = ttnn.relu(x.permute((0, 2, 3, 1)).view((1, 1, n * h * w, c)))
        return builder.value(handle, x.shape, x.dtype, form=Form((n, h, w, c), (0, 3, 1, 2)))

    monkeypatch.delitem(LOWERINGS, aten.relu.default)
    lowers(aten.relu.default)(as_convolution)
    yield
    LOWERINGS.pop(aten.relu.default)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dim", [(2, 3), (-1, -2), 1, (0, 2, 3), 0, 3, (1, 2), (0, 1, 2, 3)], ids=str)
def test_an_image_is_reduced_as_it_is_stored(image_order, batch, dim):
    for keepdim in (False, True):
        outcome = check(lambda x: torch.relu(x).mean(dim, keepdim), r(batch, 5, 6, 7))  # noqa: B023
        after = outcome.device_ops[outcome.device_ops.index("ttnn.relu") + 1 :]
        moved_first = after[:1] == ["ttnn.permute"]
        assert not moved_first or (batch == 1 and dim == 0), "the image was brought into another order first"
    check(lambda x: torch.relu(x).amax(dim), r(batch, 5, 6, 7))
    check(lambda x: torch.relu(x).var(dim, correction=0, keepdim=True), r(batch, 5, 6, 7) + 3)


def test_what_is_reduced_next_to_what_is_stored_otherwise(image_order):
    check(lambda x: torch.relu(x) - torch.relu(x).mean(1, keepdim=True), r(2, 5, 6, 7))
    check(lambda x: torch.relu(x) * torch.relu(x).mean((2, 3), keepdim=True), r(2, 5, 6, 7))
