"""argmax, sorting and cumulative sums: ties and integers exactly as in torch."""

import pytest
import torch

from tests.compiler.against_torch import check

r = torch.randn


def with_ties(*shape):
    return torch.randint(-3, 4, shape).float()


@pytest.mark.parametrize("function", [torch.argmax, torch.argmin])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("kind", ["floats", "ties", "integers"])
def test_the_first_of_the_largest(function, dim, keepdim, kind):
    x = {"floats": r(3, 5, 34), "ties": with_ties(3, 5, 34), "integers": torch.randint(-9, 9, (3, 5, 34))}[kind]
    check(lambda x: function(x, dim, keepdim), x)


def test_neighbours_in_float32_are_distinguished():
    """As bfloat16 the two largest would be equal."""
    check(lambda x: x.argmax(-1), torch.tensor([[1.0, 3.0, 3.001, 2.0]]))
    check(lambda x: x.min(1), torch.tensor([[1.0, -3.0, -3.001, 2.0]]))


def test_of_a_single_number():
    check(lambda x: (x.argmax(), x.argmin(0), x.argmax(keepdim=True)), r(()))
    check(lambda x: x.argmax(0), r(1))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, -2, 2])
@pytest.mark.parametrize("keepdim", [False, True])
def test_extremes_with_their_places(name, dim, keepdim):
    for x in (with_ties(4, 5, 33), torch.randint(-99, 99, (4, 5, 33)), r(4, 5, 33).bfloat16()):
        check(lambda x: getattr(x, name)(dim, keepdim), x)
        check(lambda x: getattr(x, name)(dim, keepdim)[0], x)


def test_places_are_not_searched_if_nobody_reads_them():
    assert "ttnn.argmax" not in check(lambda x: x.max(1)[0], r(3, 5)).device_ops


def test_computed_on_what_is_computed():
    check(lambda x, y: (x @ y).argmax(-1), torch.eye(8) * 3, torch.randperm(64).reshape(8, 8).float())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_topk(largest, dim):
    check(lambda x: x.topk(3, dim, largest)[0], with_ties(7, 70, 5))
    check(lambda x: x.topk(3, dim, largest), torch.randperm(7 * 70 * 5).reshape(7, 70, 5).float(), accept="ties")


def test_places_of_equal_values_are_left_to_torch():
    outcome = check(lambda x: x.topk(3)[1], with_ties(2, 70), on_device=False)
    assert "equal values" in outcome.host_ops["aten.topk.default"]
    outcome = check(lambda x: x.sort(), with_ties(2, 70), on_device=False)
    assert "equal values" in outcome.host_ops["aten.sort.default"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort(descending, dim):
    check(lambda x: torch.sort(x, dim, descending)[0], with_ties(5, 40, 3))
    check(lambda x: torch.sort(x, dim=dim, descending=descending, stable=True), with_ties(5, 40, 3))
    assert check(lambda x: x.sort(dim)[0], torch.randint(9, (5, 40, 3)), on_device=False).host_ops


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_totals(dim):
    check(lambda x: x.cumsum(dim), r(3, 40, 35))
    check(lambda x: x.cumsum(dim), torch.randint(-1000, 1000, (3, 40, 35)))
    check(lambda x: x.cumsum(dim), torch.rand(3, 400, 5) < 0.9)
    check(lambda x: x.cumsum(dim, dtype=torch.float32), torch.randint(9, (3, 40, 5)))
    check(lambda x: x.cumprod(dim), r(3, 5, 6))


def test_running_totals_do_not_stand_still():
    check(lambda x: x.cumsum(0), torch.ones(1000))


HOST = {
    "aten.median.default": torch.median,
    "aten.kthvalue.default": lambda x: x.kthvalue(2),
    "aten.cummax.default": lambda x: x.cummax(0),
    "aten.logcumsumexp.default": lambda x: x.logcumsumexp(0),
    "aten.cumprod.default": lambda x: x.to(torch.int64).cumprod(0),
}


@pytest.mark.parametrize("name", HOST)
def test_what_stays_on_the_host_says_why(name):
    outcome = check(HOST[name], r(9), on_device=False)
    assert len(outcome.host_ops[name]) > 10
    assert "no lowering" not in outcome.host_ops[name]
