"""Batch norms with running statistics and with the batch's own."""

import pytest
import torch

from tests.compiler.against_torch import check

aten = torch.ops.aten

CHANNELS = 5
SHAPES = [(4, 5, 7, 9), (8, 5), (4, 5, 9), (1, 5, 3, 4, 5)]
FLOAT32 = {"precision": "float32", "relative": 6e-3, "absolute": 3e-3}


def parameters():
    """weight, bias, running mean and variance"""
    return *(torch.randn(CHANNELS) for _ in range(3)), torch.rand(CHANNELS) + 0.5


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("statics", [(1, 2, 3, 4), ()], ids=["known ahead", "of the call"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_inference(shape, statics, precision):
    def norm(x, weight, bias, mean, variance):
        return aten._native_batch_norm_legit_no_training(x, weight, bias, mean, variance, 0.1, 1e-5)[0]

    out = check(norm, torch.randn(shape), *parameters(), statics=statics, precision=precision)
    if statics:
        assert [op for op in out.device_ops if op != "ttnn.permute"] == ["ttnn.addcmul"]


def test_without_weight_and_bias():
    def norm(x, mean, variance):
        return aten._native_batch_norm_legit_no_training(x, None, None, mean, variance, 0.1, 1e-5)[0]

    check(norm, torch.randn(2, CHANNELS, 3, 3), *parameters()[2:], statics=(1, 2))


def test_an_image_stays_with_channels_last():
    def network(x, kernel, weight, bias, mean, variance):
        made = torch.relu(torch.nn.functional.conv2d(torch.relu(x), kernel))
        return aten._native_batch_norm_legit_no_training(made, weight, bias, mean, variance, 0.1, 1e-5)[0] * 2

    operands = torch.randn(1, 3, 8, 8), torch.randn(CHANNELS, 3, 3, 3), *parameters()
    out = check(network, *operands, statics=(1, 2, 3, 4, 5))
    assert "ttnn.permute" not in out.device_ops[out.device_ops.index("ttnn.conv2d") : -1]


@pytest.mark.parametrize("options", [{}, FLOAT32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_training_moves_the_running_statistics(shape, options):
    def norm(x, weight, bias, mean, variance):
        return aten._native_batch_norm_legit_functional(x, weight, bias, mean, variance, True, 0.1, 1e-5)

    check(norm, torch.randn(shape) + 1, *parameters(), **options)


@pytest.mark.parametrize("options", [{}, FLOAT32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_without_running_statistics(shape, options):
    def norm(x, weight, bias):
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-5)

    check(norm, torch.randn(shape) + 1, *parameters()[:2], **options)


def test_running_statistics_keep_their_precision():
    """A thousandth of a step is lost in bfloat16; running statistics are float32."""

    def moved(x, mean, variance):
        return aten._native_batch_norm_legit_functional(x, None, None, mean, variance, True, 0.001, 1e-5)[3:]

    x, mean, variance = torch.randn(4, CHANNELS, 8, 8), torch.full((CHANNELS,), 3.0), torch.full((CHANNELS,), 5.0)
    check(moved, x, mean, variance, relative=1e-4, absolute=1e-4)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("norm", [torch.nn.InstanceNorm2d, torch.nn.BatchNorm2d], ids=lambda norm: norm.__name__)
@torch.no_grad()
def test_running_statistics_keep_all_digits(norm, precision):
    """Each call changes them a little; rounded to bfloat16 in every call, they would not change."""
    torch._dynamo.reset()
    model, reference = (norm(CHANNELS, track_running_stats=True, momentum=0.001) for _ in range(2))
    x = torch.arange(4 * CHANNELS * 16).remainder(7).float().reshape(4, CHANNELS, 4, 4)  # exact in bfloat16
    compiled = torch.compile(model, backend="ttnn", options={"precision": precision})
    for _ in range(5):
        compiled(x)
        reference(x)
    torch.testing.assert_close(model.running_mean, reference.running_mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model.running_var, reference.running_var, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("statistics", [torch.bfloat16, torch.float32])
def test_dtypes_of_statistics_are_torchs(statistics):
    """torch's fake tensors have float32 for running statistics of bfloat16."""

    def norm(x, weight, bias, mean, variance):
        made = aten._native_batch_norm_legit_functional(x, weight, bias, mean, variance, True, 0.1, 1e-5)
        return *made, made[3].view(1, CHANNELS) + 1

    check(norm, torch.randn(4, CHANNELS, 6).bfloat16(), *[each.to(statistics) for each in parameters()])


@pytest.mark.parametrize("statistics", [torch.bfloat16, torch.float32])
def test_gradients_of_mixed_dtypes(statistics):
    torch._dynamo.reset()
    model = torch.nn.BatchNorm2d(CHANNELS).to(statistics)
    x = torch.randn(4, CHANNELS, 6, 6).bfloat16()
    found = []
    for function in (model, torch.compile(model, backend="ttnn")):
        model.zero_grad()
        function(x).square().sum().backward()
        found.append(model.weight.grad.clone())
    assert found[0].dtype is found[1].dtype
    torch.testing.assert_close(found[1], found[0], rtol=0.03, atol=0.03)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_empty_statistics_are_returned_with_the_result(dtype):
    """With running statistics torch returns two empty tensors; the norm itself runs on the device."""

    def norm(x, weight, bias, mean, variance):
        return aten._native_batch_norm_legit_no_training(x, weight, bias, mean, variance, 0.1, 1e-5)

    given = [torch.randn(2, CHANNELS, 6), *parameters()]
    outcome = check(norm, *[each.to(dtype) for each in given])
    for empty in outcome.outputs[1:]:
        assert empty.shape == (0,) and empty.dtype is dtype
    again = outcome.program([each.to(dtype) for each in given])
    assert again[1] is not outcome.outputs[1]
