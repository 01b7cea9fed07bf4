"""Pools: by the library in bfloat16, as slices where it has none, and their gradients."""

import pytest
import torch

from tests.compiler.against_torch import check

F = torch.nn.functional
aten = torch.ops.aten

PRECISIONS = pytest.mark.parametrize("precision", ["bfloat16", "float32"])


def exact(*shape):
    """Values that are exact in bfloat16, so that the largest stays the largest."""
    return torch.randn(shape).bfloat16().float()


POOLS = {
    "largest": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 33, 9, 11)),
    "largest, ceil mode": (lambda x: F.max_pool2d(x, (2, 3), 2, (1, 0), ceil_mode=True), (2, 5, 9, 10)),
    "largest, dilated": (lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), (2, 5, 9, 10)),
    "largest of one image": (lambda x: F.max_pool2d(x, 2), (5, 4, 8)),
    "largest along a line": (lambda x: F.max_pool1d(x, 3, 2, 1), (2, 40, 9)),
    "largest in space": (lambda x: F.max_pool3d(x, 2), (1, 5, 4, 8, 6)),
    "adaptive largest": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), (2, 40, 9, 6)),
    "mean": (lambda x: F.avg_pool2d(x, 2), (1, 128, 16, 16)),
    "mean along a line": (lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 40, 9)),
    "mean of all": (lambda x: F.adaptive_avg_pool2d(x, 1), (2, 40, 7, 7)),
    "adaptive mean": (lambda x: F.adaptive_avg_pool2d(x, 7), (1, 40, 14, 14)),
    "adaptive mean of as many": (lambda x: F.adaptive_avg_pool2d(x, 7) + 1, (1, 40, 7, 7)),
}


@PRECISIONS
@pytest.mark.parametrize("pool", POOLS)
def test_pools(pool, precision):
    function, shape = POOLS[pool]
    check(function, exact(*shape), precision=precision, absolute=2e-3)


@PRECISIONS
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("ceil_mode", [True, False])
def test_what_counts_in_a_mean(ceil_mode, count_include_pad, divisor, precision):
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "divisor_override": divisor}
    check(lambda x: F.avg_pool2d(x, 3, 2, 1, **options), exact(2, 5, 9, 10), precision=precision)
    check(lambda x: F.avg_pool3d(x, 2, 2, 1, **options), exact(1, 5, 5, 6, 7), precision=precision)
    many = {"precision": precision, "absolute": 5e-3}  # many taps are computed as products
    check(lambda x: F.avg_pool3d(x, (3, 5, 6), (1, 2, 2), (1, 2, 3), **options), torch.randn(1, 5, 5, 11, 12), **many)


@pytest.mark.parametrize("size", [(3, 2), (5, 1), (4, 6)])
def test_windows_of_unequal_size(size):
    check(lambda x: F.adaptive_avg_pool2d(x, size), torch.randn(2, 40, 7, 6))
    check(lambda x: F.adaptive_avg_pool3d(x, (1, *size)), torch.randn(1, 5, 3, 7, 6))


def test_the_library_pools_in_one_call():
    out = check(lambda x: F.max_pool2d(x, 3, 2, 1), exact(1, 64, 16, 16))
    assert out.device_ops.count("ttnn.max_pool2d") == 1
    out = check(lambda x: F.avg_pool2d(x, 2), torch.randn(1, 64, 16, 16))
    assert out.device_ops.count("ttnn.avg_pool2d") == 1


@PRECISIONS
def test_indices_name_the_first_of_equals(precision):
    def indices(x):
        return F.max_pool2d(x.relu(), 3, 2, 1, return_indices=True)

    check(indices, exact(2, 5, 9, 11), precision=precision)


def test_indices_of_windows_without_any_number():
    x = torch.full((1, 2, 5, 5), float("-inf"))
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], x)


def test_windows_entirely_in_the_padding():
    def pool(x):
        return F.max_pool2d(x, (2, 4), (2, 1), (1, 2), dilation=2)

    assert check(pool, exact(1, 3, 1, 5)).outputs[0].isneginf().all()
    out = check(pool, exact(1, 3, 1, 5), precision="float32", on_device=False)
    assert "minus infinity" in out.host_ops["aten.max_pool2d_with_indices.default"]


@PRECISIONS
def test_the_gradient_goes_to_the_largest(precision):
    def backward(gradient, x):
        _, indices = aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
        return aten.max_pool2d_with_indices_backward(gradient, x, [3, 3], [2, 2], [1, 1], [1, 1], False, indices)

    check(backward, exact(2, 5, 5, 6), exact(2, 5, 9, 11), precision=precision)


@PRECISIONS
def test_the_gradient_of_a_mean_is_shared(precision):
    def backward(gradient, x):
        return aten.avg_pool2d_backward(gradient, x, [3, 3], [2, 2], [1, 1], False, False, None)

    check(backward, exact(2, 5, 5, 5), exact(2, 5, 9, 10), precision=precision)
    check(aten._adaptive_avg_pool2d_backward, exact(2, 5, 3, 4), exact(2, 5, 9, 10), absolute=5e-3)
