"""Large products, softmax, norms and attention in float32, compared with torch in double precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.kernels.product_endings import RELU, ROUNDED, round_in_place
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.native import instruction_set
from ttnn_emulator.numerics.programs.attention import whole_sequences as attention
from ttnn_emulator.numerics.programs.normalization.norms import norm_rows
from ttnn_emulator.numerics.programs.normalization.softmax import softmax_rows
from ttnn_emulator.numerics.programs.products import float32_product
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig

ACCURATE = MathConfig(fp32_acc=True)
UPPER_HALF = -0x10000
SIZES = (
    (1, 8, 3),
    (1, 1030, 70),
    (2, 515, 530),
    (2, 3, 1),
    (5, 7, 9),
    (6, 4, 16),
    (13, 33, 65),
    (100, 1030, 70),
    (200, 515, 530),
)


def in_memory(values: torch.Tensor, how: str) -> torch.Tensor:
    """The same matrix stored transposed, or narrow."""
    if "transposed" in how:
        values = values.mT.contiguous().mT
    return values.bfloat16() if "narrow" in how else values


IMPLEMENTATIONS = ("pairs", "compiled", "torch")


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request, monkeypatch):
    """All implementations; which one is used depends on the processor and the operands."""
    if request.param == "pairs" and not instruction_set.MULTIPLIES_PAIRS:
        pytest.skip("this processor does not multiply pairs of bfloat16")
    monkeypatch.setattr(float32_product, "MULTIPLIES_FAST", request.param != "torch")
    monkeypatch.setattr(float32_product, "MULTIPLIES_PAIRS", request.param == "pairs")


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_any_size_and_strides_equal_torchs(size):
    rows, inner, columns = size
    kinds = ("plain", "transposed", "narrow", "narrow transposed")
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    for one, other in itertools.product(kinds, kinds):
        a, b = in_memory(left, one), in_memory(right, other)
        torch.testing.assert_close(
            float32_product.multiply(a, b), (a.double() @ b.double()).float(), atol=2e-4, rtol=1e-5
        )


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_operands_masked_to_bfloat16(size):
    """Only these can be multiplied in pairs, for any carrier and inner dimension."""
    rows, inner, columns = size
    kinds = ("plain", "transposed", "narrow", "narrow transposed")
    left, right = torch.randn(rows, inner).bfloat16().float(), torch.randn(inner, columns).bfloat16().float()
    expected = (left.double() @ right.double()).float()
    for one, other in itertools.product(kinds, kinds):
        a, b = in_memory(left, one), in_memory(right, other)
        result = float32_product.multiply(a, b, masks=(UPPER_HALF, UPPER_HALF))
        torch.testing.assert_close(result, expected, atol=2e-4, rtol=1e-5)


@pytest.mark.usefixtures("implementation")
def test_infinities_are_not_multiplied_by_padding():
    """An odd inner dimension is padded with zeros; infinity times such a zero would be NaN."""
    a, b = torch.ones(20, 33), torch.ones(33, 40)
    a[3, 32], b[32, 5] = float("inf"), float("-inf")
    result = float32_product.multiply(a, b, masks=(UPPER_HALF, UPPER_HALF))
    assert torch.equal(result, a @ b)


@pytest.mark.usefixtures("implementation")
def test_batches_may_be_permuted_and_broadcast():
    a, b = torch.randn(2, 3, 33, 40), torch.randn(2, 21, 3, 40).permute(0, 2, 3, 1)
    torch.testing.assert_close(float32_product.multiply(a, b), a @ b, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(float32_product.multiply(a, b[:1, :1]), a @ b[:1, :1], atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(float32_product.multiply(a[:1], b), a[:1] @ b, atol=1e-4, rtol=1e-5)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("rows", [1, 20])
def test_only_masked_bits_are_multiplied(rows):
    a, b = torch.randn(rows, 30), torch.randn(30, 40)
    upper = [(each.view(torch.int32) & -0x10000).view(torch.float32) for each in (a, b)]
    result = float32_product.multiply(a, b, masks=(UPPER_HALF, UPPER_HALF))
    torch.testing.assert_close(result, upper[0] @ upper[1], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("rows", [1, 37])
def test_bias_rounding_and_activation_follow_the_product(rows):
    a, b, bias = torch.randn(rows, 64), torch.randn(64, 51), torch.randn(51)
    sums = float32_product.multiply(a, b, bias=bias)
    torch.testing.assert_close(sums, a @ b + bias, atol=1e-4, rtol=1e-5)
    rounded = round_in_place(sums.clone())
    assert torch.equal(float32_product.multiply(a, b, bias=bias, ending=ROUNDED), rounded)
    assert torch.equal(float32_product.multiply(a, b, bias=bias, ending=RELU), rounded.clamp(min=0.0))
    negated = (-(np.arange(65536, dtype=np.uint32) << 16).view(np.float32)).astype(np.float32)
    assert torch.equal(float32_product.multiply(a, b, bias=bias, ending=ROUNDED, table=negated), -rounded)


def test_a_product_ignores_stale_scratch_memory():
    """A partial panel is padded with zeros, whatever the scratch memory contained."""
    float32_product.multiply(torch.full((64, 64), float("inf")), torch.full((64, 64), float("inf")))
    a, b = torch.randn(7, 5), torch.randn(5, 3)
    torch.testing.assert_close(float32_product.multiply(a, b), a @ b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.BFLOAT16], ids=str)
def test_large_softmax(dtype):
    x = 8 * torch.randn(3, 5, 77).bfloat16().float()
    with numerics("fast"):
        result = softmax_rows(x, dtype, ACCURATE, stable=True, bulk=DataType.FLOAT32)
    torch.testing.assert_close(result, x.softmax(-1), atol=1e-6 if dtype is DataType.FLOAT32 else 4e-3, rtol=4e-3)


def test_a_large_softmax_of_a_fully_masked_row_is_uniform():
    x = torch.randn(4, 40)
    x[0, :] = float("-inf")
    x[1, 3:] = float("-inf")
    x[2, 5] = float("nan")
    with numerics("fast"):
        result = softmax_rows(x, DataType.FLOAT32, ACCURATE, stable=True, bulk=DataType.FLOAT32)
    truncated = (x.view(torch.int32) & -0x2000).view(torch.float32)  # by a source register
    seen = torch.where(x.isnan(), x, truncated)
    expected = seen.softmax(-1)
    expected[0] = 1 / 40  # as on the chip; torch returns NaN
    torch.testing.assert_close(result, expected, atol=1e-6, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("centred", [True, False], ids=["layer_norm", "rms_norm"])
def test_large_norms(centred):
    x, weight, bias = (torch.randn(*shape).bfloat16().float() for shape in ((50, 96), (96,), (96,)))
    with numerics("fast"):
        result = norm_rows(
            Operand(x, DataType.BFLOAT16), ACCURATE, 1e-5, centred=centred,
            weight=Operand(weight, DataType.BFLOAT16), bias=Operand(bias, DataType.BFLOAT16),
        )  # fmt: skip
    mean = x.mean(-1, keepdim=True) if centred else 0.0
    expected = (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias
    torch.testing.assert_close(result, expected, atol=0.04, rtol=0.02)


def kernel(**settings) -> attention.Prefill:
    settings = {"exp_approx": False, "streams": False} | settings
    return attention.Prefill(ACCURATE, 0.125, DataType.FLOAT32, 1, 1, 2, **settings)


def reference(query, key, value, mask, sink=None):
    groups = query.shape[1] // key.shape[1]
    key, value = (each.double().repeat_interleave(groups, 1) for each in (key, value))
    scores = (query.double() @ key.mT + mask) * 0.125
    if sink is not None:
        columns = (sink.double() * 0.125).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return (torch.cat([scores, columns], -1).softmax(-1)[..., :-1] @ value).float()
    return (scores.softmax(-1) @ value).float()


@pytest.mark.parametrize("queries, keys", [(1, 7), (70, 70), (100, 230)], ids=str)
def test_large_attention(queries, keys):
    query = torch.randn(2, 4, queries, 48).bfloat16().float()
    key, value = torch.randn(2, 2, keys, 48).bfloat16().float(), torch.randn(2, 2, keys, 40).bfloat16().float()
    places, columns = torch.arange(queries).unsqueeze(-1), torch.arange(keys)
    masked = torch.zeros(queries, keys).masked_fill(columns > places, float("-inf"))
    bias = torch.randn(2, 1, queries, keys)
    sink = torch.randn(4)
    cases = (
        (kernel(), None, None, torch.zeros(1)),
        (kernel(causal=True), None, None, masked),
        (kernel(), bias, None, bias),
        (kernel(), None, sink, torch.zeros(1)),
        (kernel(causal=True, window=5), None, None, masked.masked_fill(columns <= places - 5, float("-inf"))),
    )
    for how, mask, extra, expected in cases:
        result = attention.whole_rows(how, query, key, value, mask, extra)
        torch.testing.assert_close(result, reference(query, key, value, expected, extra), atol=4e-3, rtol=1e-2)
        interleaved = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in (query, key, value)]
        assert torch.equal(attention.whole_rows(how, *interleaved, mask, extra), result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [-1, -0x20000])
@pytest.mark.parametrize("columns", [1, 7, 8, 63, 64, 75, 200])
def test_sums_of_a_row_do_not_depend_on_the_stride_of_the_matrix(dtype, mask, columns):
    """Lines close to each other are multiplied by column tiles, distant ones line by line: the same bits either way."""
    if not instruction_set.MULTIPLIES_FAST:
        pytest.skip("this processor lacks the vector instructions")
    far = torch.randn(37, 5000).to(dtype)
    far[:, 3], far[0, 0] = float("inf"), float("nan")
    near, row = far[:, :columns].contiguous(), torch.randn(1, 37)
    one, other = (float32_product.multiply(row, each, masks=(-1, mask)) for each in (near, far))
    assert torch.equal(one.view(torch.int32), other[:, :columns].contiguous().view(torch.int32))
