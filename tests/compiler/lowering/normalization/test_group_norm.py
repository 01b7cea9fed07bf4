"""Group norms, and the statistics that come with them."""

import pytest
import torch

from tests.compiler.against_torch import check

F = torch.nn.functional
FLOAT32 = {"precision": "float32", "relative": 6e-3, "absolute": 3e-3}


@pytest.mark.parametrize("options", [{}, FLOAT32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("shape", [(2, 8, 7, 9), (1, 8, 5), (3, 8, 2, 3, 4)], ids=str)
def test_group_norm(shape, groups, options):
    operands = torch.randn(shape) + 1, torch.randn(8), torch.randn(8)
    check(lambda x, weight, bias: F.group_norm(x, groups, weight, bias), *operands, statics=(1, 2), **options)
    check(lambda x: F.group_norm(x, groups), operands[0], **options)


def test_statistics():
    def norm(x, weight, bias):
        return torch.ops.aten.native_group_norm(x, weight, bias, 2, 8, 63, 4, 1e-5)

    check(norm, torch.randn(2, 8, 7, 9) + 1, torch.randn(8), torch.randn(8), statics=(1, 2))
