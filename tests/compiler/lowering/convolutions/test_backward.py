"""Gradients of convolutions, for input, weight and bias."""

import math

import pytest
import torch

from tests.compiler.against_torch import check
from torch_ttnn.compiler.ir.metadata import SPEC

aten = torch.ops.aten

# input, weight, stride, padding, dilation, transposed, output padding, groups
CASES = {
    "plain": ((2, 6, 8, 9), (4, 6, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
    "strided": ((2, 6, 8, 9), (4, 6, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
    "groups": ((2, 6, 8, 9), (4, 3, 3, 3), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
    "depthwise": ((2, 6, 8, 9), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 6),
    "one pixel": ((2, 6, 8, 9), (4, 6, 1, 1), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "strided pixel": ((2, 6, 8, 9), (4, 6, 1, 1), [2, 2], [0, 0], [1, 1], False, [0, 0], 1),
    "line": ((2, 6, 9), (4, 6, 3), [1], [1], [1], False, [0], 1),
    "depthwise line": ((2, 5, 9), (5, 1, 3), [2], [1], [1], False, [0], 5),
    "two of each channel": ((2, 3, 8, 9), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 3),
    "blocks": ((2, 6, 8, 9), (4, 6, 2, 3), [2, 3], [0, 0], [1, 1], False, [0, 0], 1),
    "blocks and a rest": ((2, 6, 9, 10), (4, 6, 2, 3), [2, 3], [0, 0], [1, 1], False, [0, 0], 1),
    "blocks of a line": ((2, 6, 10), (4, 6, 3), [3], [0], [1], False, [0], 1),
    "space": ((1, 4, 4, 5, 6), (4, 4, 2, 2, 2), [1] * 3, [1] * 3, [1] * 3, False, [0] * 3, 1),
    "transposed": ((2, 6, 5, 7), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    "transposed groups": ((2, 6, 5, 7), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 2),
}


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_all_three(case, precision):
    image, kernel, *settings = CASES[case]
    x, weight = torch.randn(image), torch.randn(kernel)
    result = aten.convolution(x, weight, None, *settings)

    def gradients(gradient, x, weight):
        return aten.convolution_backward(gradient, x, weight, [result.shape[1]], *settings, [True, True, True])

    check(gradients, torch.randn_like(result), x, weight, precision=precision, relative=0.03, absolute=0.01)


def test_only_the_requested_gradients():
    x, weight, gradient = torch.randn(1, 4, 5, 5), torch.randn(3, 4, 1, 1), torch.randn(1, 3, 5, 5)

    def of_weight(gradient, x, weight):
        mask = [False, True, False]
        return aten.convolution_backward(gradient, x, weight, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)[1]

    assert check(of_weight, gradient, x, weight).device_ops.count("ttnn.matmul") == 1


def test_patches_of_many_taps_are_one_permutation():
    """The embedding of a vision transformer: 256 slices would be a long program."""
    x, weight, gradient = torch.randn(2, 3, 48, 32), torch.randn(8, 3, 16, 16), torch.randn(2, 8, 3, 2)

    def of_weight(gradient, x, weight):
        mask = [False, True, False]
        return aten.convolution_backward(gradient, x, weight, [8], [16, 16], [0, 0], [1, 1], False, [0, 0], 1, mask)[1]

    assert "ttnn.slice" not in check(of_weight, gradient, x, weight, relative=0.03).device_ops


def test_large_weights_are_not_uploaded_as_tiles_of_three_by_three():
    x, weight, gradient = torch.randn(1, 64, 3, 3), torch.randn(64, 64, 3, 3), torch.randn(1, 64, 3, 3)

    def of_input(gradient, x, weight):
        mask = [True, False, False]
        return aten.convolution_backward(gradient, x, weight, [64], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)[0]

    outcome = check(of_input, gradient, x, weight, relative=0.03, absolute=0.01)
    sizes = [SPEC[node].spec.padded_shape for node in outcome.program.graph.nodes if SPEC.on(node)]
    assert max(math.prod(size) for size in sizes) < 10 * weight.numel()
