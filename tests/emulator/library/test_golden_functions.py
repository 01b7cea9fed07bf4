"""Golden functions, and operations computed by them."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.execution.operation_table import OPERATIONS
from ttnn_emulator.golden_functions import GOLDEN_FUNCTIONS


def test_every_golden_function_belongs_to_an_operation() -> None:
    assert set(GOLDEN_FUNCTIONS) <= set(OPERATIONS)


def test_a_fallback_computes_on_the_host_and_returns_a_device_tensor(device) -> None:
    values = torch.arange(64.0).reshape(8, 8)
    x = ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    y = ttnn.get_fallback_function(ttnn.reshape)(x, (4, 16))
    assert (list(y.shape), y.dtype, y.layout, y.device()) == ([4, 16], ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    assert torch.equal(ttnn.to_torch(y).float(), values.reshape(4, 16))


def test_an_operation_without_a_golden_function_raises() -> None:
    with pytest.raises(ttnn.NotEmulated, match=r"ttnn\.conv2d"):
        ttnn.get_golden_function(ttnn.conv2d)


UINT32 = torch.tensor([0, 1, 7, 2**32 - 1], dtype=torch.uint32)
UINT16 = torch.tensor([0, 1, 7, 2**16 - 1], dtype=torch.uint16)
X = torch.tensor([-2.0, -0.5, 0.0, 1.5])


@pytest.mark.parametrize(
    "name, arguments, options, expected",
    [
        ("add", (X, 1.0), {}, [-1.0, 0.5, 1.0, 2.5]),
        ("add", (UINT32, UINT32), {}, [0, 2, 14, 2**32 - 2]),
        ("add", (torch.tensor([1, 2], dtype=torch.int32), 2.0), {}, [3, 4]),
        ("multiply", (torch.tensor([1, 2], dtype=torch.int32), 2.5), {}, [2.5, 5.0]),
        ("sub_", (UINT16, 1), {}, [2**16 - 1, 0, 6, 2**16 - 2]),
        ("rsub", (X, 1.0), {}, [3.0, 1.5, 1.0, -0.5]),
        ("div", (torch.tensor([7, -7], dtype=torch.int32), 2, "trunc"), {}, [3, -3]),
        ("div", (torch.tensor([7, -7], dtype=torch.int32), 2), {"rounding_mode": "floor"}, [3, -4]),
        ("gt", (UINT32, 5), {}, [False, False, True, True]),
        ("logical_and", (UINT16, 2), {}, [False, True, True, True]),
        ("maximum", (UINT32, 3), {}, [3, 3, 7, 2**32 - 1]),
        ("bitwise_right_shift", (UINT32, 40), {}, [0, 0, 0, 1]),
        ("bitwise_left_shift", (UINT16, 16), {}, [0, 0, 0, 0]),
        ("pow", (UINT16, 2), {}, [0, 1, 49, 1]),
        ("clamp", (UINT16, 1, 6), {}, [1, 1, 6, 6]),
        ("addcmul", (X, X, X), {"value": 2.0}, [6.0, 0.0, 0.0, 6.0]),
        ("where", (UINT32, X, 9.0), {}, [9.0, -0.5, 0.0, 1.5]),
        ("mac", (X, 2.0, 1.0), {}, [-3.0, 0.0, 1.0, 4.0]),
        ("hardtanh", (X,), {"min_val": -1.0, "max_val": 1.0}, [-1.0, -0.5, 0.0, 1.0]),
        ("fill", (X, 3.0), {}, [3.0] * 4),
        ("asin", (torch.tensor([0.0, 2.0], dtype=torch.bfloat16),), {}, [0.0, float("inf")]),
        ("reglu", (X.reshape(1, 4),), {}, [[-0.0, -0.75]]),
        ("sum", (X,), {"dim": 0, "keepdim": True}, [-1.0]),
        ("max", (X.reshape(2, 2),), {"dim": 1}, [-0.5, 1.5]),
        ("concat", ([X[:2], X[2:]],), {"dim": 0}, X.tolist()),
    ],
)
def test_golden_functions_ignore_unused_arguments(device, name: str, arguments, options, expected) -> None:
    golden = ttnn.get_golden_function(getattr(ttnn, name))
    assert golden is getattr(ttnn, name).golden_function
    result = golden(*arguments, **options, device=device, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    assert result.tolist() == expected


def test_activations_and_dtypes_of_binary_golden_functions() -> None:
    negated, halved = ttnn.UnaryWithParam(ttnn.UnaryOpType.NEG), ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU)
    golden = ttnn.get_golden_function(ttnn.add)
    result = golden(X, X, activations=[halved], input_tensor_a_activations=[negated], dtype=ttnn.bfloat16)
    assert (result.dtype, result.tolist()) == (torch.bfloat16, [0.0] * 4)
    assert golden(X, 1.0, dtype=ttnn.int32).dtype is torch.int32


def test_in_place_comparisons_keep_the_dtype_of_their_output() -> None:
    values = X.clone()
    assert ttnn.get_golden_function(ttnn.lt_)(values, 0.0) is values
    assert values.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_golden_groups_of_channels_alternate() -> None:
    ones, twos = torch.ones(1, 1, 1, 4), torch.full((1, 1, 1, 2), 2.0)
    assert ttnn.concat.golden_function([ones, twos], -1, 2).flatten().tolist() == [1, 1, 2, 1, 1, 2]
