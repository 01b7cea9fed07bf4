"""Functions fused into other operations: those that the card omits are reported, invalid ones rejected."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.errors import ChipFault, InvalidArgument
from ttnn_emulator.execution.call_context import specs_only
from ttnn_emulator.numerics.mode import numerics

L1_SMALL = 32768
KINDS = ttnn.UnaryOpType

OMITTED = {"HARDSWISH": (), "LGAMMA": (), "LOGIT": (1e-6,), "LOGSIGMOID": ()}
# kind, parameters: rejected by the real library for all operations
REJECTED = (("LOGIT", ()), ("MISH", ()), ("ROUND", ()), ("HARDMISH", (1.0,)), ("RDIV", (1.0,)), ("SIGMOID", (1.0,)))
# kinds that need a dtype, which a convolution does not pass
UNTYPED = ("CEIL", "FLOOR", "GTZ", "LOGICAL_NOT_UNARY", "NEG", "SIGNBIT", "SQUARE", "TRUNC")


@pytest.fixture(scope="module")
def device():
    opened = ttnn.open_device(device_id=0, l1_small_size=L1_SMALL)
    yield opened
    ttnn.close_device(opened)


def drawn(device, *shape, dtype=ttnn.bfloat16):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def fused(kind: str, *params: float):
    return ttnn.UnaryWithParam(getattr(KINDS, kind), *params)


def convolve(device, function, *, kernel=(3, 3), size=(8, 8), channels=32, groups=1, bias=False, **settings):
    """A convolution of random images; `function` is fused into it."""
    options = {
        "in_channels": channels, "out_channels": channels, "batch_size": 1, "input_height": size[0],
        "input_width": size[1], "kernel_size": kernel, "stride": (1, 1),
        "padding": (kernel[0] // 2, kernel[1] // 2), "groups": groups,
    }  # fmt: skip
    weight = ttnn.from_torch(torch.randn(channels, channels // groups, *kernel), dtype=ttnn.bfloat16)
    row = ttnn.from_torch(torch.zeros(1, 1, 1, channels), dtype=ttnn.bfloat16) if bias else None
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, activation=function, **settings)
    x = drawn(device, 1, 1, size[0] * size[1], channels)
    return ttnn.conv2d(
        input_tensor=x, weight_tensor=weight, bias_tensor=row, device=device, conv_config=config, **options
    )


OPERATIONS = {
    "add": lambda device, function: ttnn.add(drawn(device, 33, 70), drawn(device, 33, 70), activations=[function]),
    "multiply by a scalar": lambda device, function: ttnn.multiply(drawn(device, 33, 70), 2.0, activations=[function]),
    "first operand": lambda device, function: ttnn.subtract(
        drawn(device, 33, 70), drawn(device, 33, 70), input_tensor_a_activations=[function]
    ),
    "second operand": lambda device, function: ttnn.add(
        drawn(device, 33, 70), drawn(device, 33, 70), input_tensor_b_activations=[function]
    ),
    "conv2d": convolve,
    "depthwise conv2d": lambda device, function: convolve(device, function, groups=32),
    "minimal_matmul": lambda device, function: ttnn.experimental.minimal_matmul(
        drawn(device, 64, 64), drawn(device, 64, 64), fused_activation=function
    ),
}


@pytest.mark.parametrize("kind", OMITTED)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_omitted_functions_are_reported(device, operation, kind):
    function = fused(kind, *OMITTED[kind])
    with pytest.raises(ChipFault, match=f"leaves {kind} out"):
        OPERATIONS[operation](device, function)
    with specs_only():  # the library accepts the call
        assert OPERATIONS[operation](device, function).shape


@pytest.mark.parametrize(("kind", "params"), REJECTED)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rejected_functions(device, operation, kind, params):
    with pytest.raises(InvalidArgument):
        OPERATIONS[operation](device, fused(kind, *params))


@pytest.mark.parametrize("kind", UNTYPED)
def test_convolutions_reject_functions_that_need_a_dtype(device, kind):
    with pytest.raises(InvalidArgument, match="needs a dtype"):
        convolve(device, fused(kind))
    assert OPERATIONS["add"](device, fused(kind)).shape == (33, 70)


def test_linear_applies_unfusable_functions_afterwards(device):
    x, w = drawn(device, 64, 64), drawn(device, 64, 96)
    result = ttnn.to_torch(ttnn.linear(x, w, activation=fused("HARDSWISH")))
    assert torch.equal(result, ttnn.to_torch(ttnn.hardswish(ttnn.linear(x, w))))


LINE = {"kernel": (1, 9), "size": (1, 32), "channels": 64, "groups": 64}


def test_1d_depthwise_without_bias_reads_garbage(device):
    with pytest.raises(ChipFault, match="config_tensors_in_dram"):
        convolve(device, None, config_tensors_in_dram=True, **LINE)
    torch.manual_seed(0)
    in_l1 = ttnn.to_torch(convolve(device, None, **LINE))
    torch.manual_seed(0)
    with_bias = ttnn.to_torch(convolve(device, None, config_tensors_in_dram=True, bias=True, **LINE))
    assert torch.allclose(in_l1.float(), with_bias.float(), rtol=0.05, atol=0.1)


def test_1d_depthwise_without_bias_omits_its_activation(device):
    with pytest.raises(ChipFault, match="leaves its activation RELU out"):
        convolve(device, fused("RELU"), **LINE)
    assert ttnn.to_torch(convolve(device, fused("RELU"), bias=True, **LINE)).min() >= 0


def test_erf_is_fast_by_default(device):
    """That is the default template argument of `erf_tile`, which is used without a parameter."""
    x, zero = drawn(device, 64, 64), ttnn.zeros((64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    plain, fast, slow = (
        ttnn.to_torch(ttnn.add(x, zero, activations=[fused("ERF", *params)])) for params in ((), (1.0,), (0.0,))
    )
    assert torch.equal(plain, fast)
    assert not torch.equal(plain, slow)


@pytest.mark.parametrize(
    ("kind", "params", "alone"),
    [
        ("ELU", (1.0,), lambda x: ttnn.elu(x, alpha=1.0)),
        ("SOFTPLUS", (1.0, 20.0), ttnn.softplus),
        ("ERF", (0.0,), lambda x: ttnn.erf(x, fast_and_approximate_mode=False)),
    ],
)
def test_fused_functions_use_the_bfloat16_polynomials(device, kind, params, alone):
    x = drawn(device, 64, 64, dtype=ttnn.float32)
    zero = ttnn.zeros((64, 64), dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT, device=device)
    with numerics("exact"):
        inside = ttnn.to_torch(ttnn.add(x, zero, activations=[fused(kind, *params)]))
        outside = ttnn.to_torch(alone(x))
    assert torch.allclose(inside, outside, atol=2e-2)
    assert not torch.equal(inside, outside)
