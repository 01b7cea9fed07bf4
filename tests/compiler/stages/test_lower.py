"""The stage `lower`."""

from __future__ import annotations

import pytest
import torch

from tests.compiler.against_torch import run


@torch.no_grad()
def test_a_view_of_a_host_result_is_not_rounded():
    """Singular values are compared with the first of them: both must be the host's."""
    x = torch.randn(5, 5)
    outcome = run(lambda x: torch.linalg.matrix_rank(x, rtol=1.0), x)
    assert outcome.outputs[0].item() == torch.linalg.matrix_rank(x, rtol=1.0).item() == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", [torch.linspace, torch.logspace])
@torch.no_grad()
def test_ranges_are_those_of_torchs_kernels(function, dtype):
    outcome = run(lambda x: (x + function(4.3, -3, 50, dtype=dtype), function(0, 4, 50, dtype=dtype)), torch.zeros(50))
    assert torch.equal(outcome.outputs[1], function(0, 4, 50, dtype=dtype))
    assert not outcome.host_ops
