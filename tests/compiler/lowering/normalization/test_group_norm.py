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


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("shape", [(2, 8, 7, 9), (1, 8, 5), (3, 8, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("has_weight", [True, False])
def test_gradients(shape, groups, has_weight):
    pixels = torch.Size(shape[2:]).numel()

    def gradients(grad, x, mean, rstd, *weight):
        geometry = (*shape[:2], pixels, groups, [True, has_weight, has_weight])
        made = torch.ops.aten.native_group_norm_backward(grad, x, mean, rstd, weight[0] if weight else None, *geometry)
        return [each for each in made if each is not None]

    x, weight = torch.randn(shape) + 1, torch.randn(8)
    _, mean, rstd = torch.ops.aten.native_group_norm(x, None, None, *shape[:2], pixels, groups, 1e-5)
    check(gradients, torch.randn(shape), x, mean, rstd, *([weight] if has_weight else []), **FLOAT32)


def test_gradient_that_cancels():
    """The gradient through the norm of two numbers is zero, up to epsilon: it is a difference of equal terms.

    The matrix unit rounds what it sums to 11 bits.
    """
    x = torch.tensor([[0.3, -1.7]], requires_grad=True)
    made = torch.compile(lambda x: F.group_norm(x, 1), backend="ttnn")(x)
    (gradient,) = torch.autograd.grad(made, x, torch.tensor([[1.1, 0.7]]))
    assert gradient.abs().max() < 2**-10
