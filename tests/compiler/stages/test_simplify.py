"""Conversions that the stage `simplify` removes, and those it must leave."""

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.against_torch import check
from torch_ttnn.compiler.ir.metadata import PATH

r = torch.randn


def _paths(outcome):
    return [PATH[node] for node in outcome.program.graph.nodes if PATH.on(node)]


def test_a_product_that_is_read_as_float32_is_written_as_float32():
    outcome = check(lambda x, w: F.log_softmax(x @ w, dim=1), r(3, 64), r(64, 10), statics=(1,))
    assert "ttnn.typecast" not in _paths(outcome)


def test_a_product_with_another_user_keeps_its_dtype():
    outcome = check(lambda x, w: (F.log_softmax(x @ w, dim=1), F.relu(x @ w)), r(3, 64), r(64, 10), statics=(1,))
    assert _paths(outcome).count("ttnn.matmul") == 1
    assert _paths(outcome).count("ttnn.typecast") == 1


def test_the_host_reads_float32_without_rounding():
    x = r(40, 40)
    outcome = check(lambda x: F.log_softmax(x, dim=1), x)
    made, exact = outcome.outputs[0], F.log_softmax(x.bfloat16().float(), dim=1)
    assert (made - exact).abs().max() < 1e-3  # bfloat16 would be off by up to 2^-7


@pytest.mark.parametrize("dtype", [torch.bfloat16])
def test_a_bfloat16_model_returns_bfloat16(dtype):
    outcome = check(lambda x: F.log_softmax(x, dim=1), r(40, 40, dtype=dtype))
    assert outcome.outputs[0].dtype is dtype
