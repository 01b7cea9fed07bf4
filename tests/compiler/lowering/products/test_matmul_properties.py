"""Products of matrices of any size, rank, order of storage and dtype."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import precisions

SIZES = st.sampled_from([1, 2, 3, 5, 8, 31, 32, 33, 64])
FACTORS = st.sampled_from([1, 1, 0, 2, -0.5, 0.25])
DTYPES = st.sampled_from([torch.float32, torch.float32, torch.bfloat16])
SEEDS = st.integers(0, 1 << 20)
ERROR = 0.012  # relative to the sum of all magnitudes; also in float32, as the matrix unit rounds its operands


def check_product(function, factors, *args, **options):
    """Terms may cancel: the allowed error is relative to the sum of their magnitudes."""
    want = function(*args, *factors).abs().max()
    size = function(*[each.abs() for each in args], *[abs(each) for each in factors]).abs().max()
    allowed = ERROR * float(size) / max(float(want), 1e-30)
    check(lambda *args: function(*args, *factors), *args, relative=0.01, absolute=allowed, **options)


def matrix(draw, *shape, dtype=torch.float32):
    """A stored matrix, and whether to swap its last two dimensions."""
    swapped = draw(st.booleans())
    stored = (*shape[:-2], shape[-1], shape[-2]) if swapped else shape
    return torch.randn(stored).to(dtype), swapped


def seen(x, swapped):
    return x.mT if swapped else x


@given(st.data(), SIZES, SIZES, SIZES, DTYPES, precisions, SEEDS)
def test_products_of_stored_and_transposed_matrices(data, rows, inner, columns, dtype, precision, seed):
    torch.manual_seed(seed)
    batch = data.draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    x, swap_x = matrix(data.draw, *batch, rows, inner, dtype=dtype)
    y, swap_y = matrix(data.draw, *batch, inner, columns, dtype=dtype)
    statics = data.draw(st.sampled_from([(), (1,), (0,)]))
    check_product(lambda x, y: seen(x, swap_x) @ seen(y, swap_y), (), x, y, statics=statics, precision=precision)


@given(st.data(), SIZES, SIZES, SIZES, FACTORS, FACTORS, SEEDS)
def test_products_and_sums(data, rows, inner, columns, beta, alpha, seed):
    torch.manual_seed(seed)
    x, swap_x = matrix(data.draw, rows, inner)
    y, swap_y = matrix(data.draw, inner, columns)
    bias = torch.randn(data.draw(st.sampled_from([(columns,), (1, columns), (rows, columns), (rows, 1), (1,), ()])))
    statics = data.draw(st.sampled_from([(), (0, 2)]))

    def function(bias, x, y, beta, alpha):
        return torch.addmm(bias, seen(x, swap_x), seen(y, swap_y), beta=beta, alpha=alpha)

    check_product(function, (beta, alpha), bias, x, y, statics=statics)


@given(st.data(), st.integers(1, 4), SIZES, SIZES, SIZES, FACTORS, FACTORS, SEEDS)
def test_products_of_batches_and_sums(data, batch, rows, inner, columns, beta, alpha, seed):
    torch.manual_seed(seed)
    x, swap_x = matrix(data.draw, batch, rows, inner)
    y, swap_y = matrix(data.draw, batch, inner, columns)

    def each(bias, x, y, beta, alpha):
        return torch.baddbmm(bias, seen(x, swap_x), seen(y, swap_y), beta=beta, alpha=alpha)

    def together(bias, x, y, beta, alpha):
        return torch.addbmm(bias, seen(x, swap_x), seen(y, swap_y), beta=beta, alpha=alpha)

    shapes = [(batch, rows, columns), (rows, columns), (1, columns), (batch, 1, 1)]
    check_product(each, (beta, alpha), torch.randn(data.draw(st.sampled_from(shapes))), x, y)
    shapes = [(rows, columns), (columns,), (rows, 1)]
    check_product(together, (beta, alpha), torch.randn(data.draw(st.sampled_from(shapes))), x, y)


@given(SIZES, SIZES, FACTORS, FACTORS, SEEDS)
def test_products_with_vectors(rows, inner, beta, alpha, seed):
    torch.manual_seed(seed)
    bias, x, y = torch.randn(rows), torch.randn(rows, inner), torch.randn(inner)
    check_product(lambda b, x, y, beta, alpha: torch.addmv(b, x, y, beta=beta, alpha=alpha), (beta, alpha), bias, x, y)
    check_product(torch.Tensor.mv, (), x, y)
    check_product(torch.Tensor.dot, (), y, y)
