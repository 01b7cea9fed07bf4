"""Fields of config records: conversion to fused functions, and refused values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn

GELU = ttnn.UnaryOpType.GELU
TAKEN = {
    "list": ([GELU, True], (1.0,)),
    "tuple": ((GELU, True), (1.0,)),
    "float": ([GELU, 1.0], (1.0,)),
    "int": ([GELU, 1], (1.0,)),
    "alone": (GELU, ()),
    "whole": (ttnn.UnaryWithParam(GELU, 1.0), (1.0,)),
}
REFUSED = [[GELU], (GELU,), (GELU, 1.0, 2.0), [1.0, GELU], "gelu", [], [GELU, "x"]]


def program(activation: Any) -> Any:
    return ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=(1, 1),
        in0_block_w=1,
        out_subblock_h=1,
        out_subblock_w=1,
        per_core_M=1,
        per_core_N=1,
        transpose_mcast=False,
        fused_activation=activation,
    )


def set_later(activation: Any) -> Any:
    record = program(None)
    record.fused_activation = activation
    return record


@pytest.mark.parametrize("make", [program, set_later])
@pytest.mark.parametrize("name", TAKEN)
def test_fused_functions_are_converted(make: Any, name: str) -> None:
    given, params = TAKEN[name]
    assert make(given).fused_activation == ttnn.UnaryWithParam(GELU, *params)
    assert ttnn.Conv2dConfig(activation=given).activation == ttnn.UnaryWithParam(GELU, *params)


@pytest.mark.parametrize("make", [program, set_later, lambda given: ttnn.UnaryWithParam(given)])
@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_other_values_are_no_fused_functions(make: Any, given: Any) -> None:
    with pytest.raises(TypeError):
        make(given)


def test_a_list_computes_like_the_fused_function(device: Any) -> None:
    x = ttnn.from_torch(torch.randn(32, 32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    one = ttnn.matmul(x, x, program_config=program([GELU, True]))
    other = ttnn.matmul(x, x, program_config=program(ttnn.UnaryWithParam(GELU, 1.0)))
    assert torch.equal(ttnn.to_torch(one), ttnn.to_torch(other))
    listed, whole = (ttnn.linear(x, x, activation=each) for each in ([GELU, True], ttnn.UnaryWithParam(GELU, 1.0)))
    assert torch.equal(ttnn.to_torch(listed), ttnn.to_torch(whole))


def test_fields_without_a_constructor_parameter_can_be_set() -> None:
    router = ttnn.FabricRouterConfig()
    router.max_packet_payload_size_bytes = 6144
    assert router.max_packet_payload_size_bytes == 6144
    with pytest.raises(TypeError, match="cannot be"):
        router.max_packet_payload_size_bytes = 6144.0
    params = ttnn.LayerNormParams()
    assert (params.eps, params.dtype) == (0.0, None)
    params.eps, params.dtype = 1e-5, ttnn.bfloat16
    assert params.dtype == ttnn.bfloat16
    assert ttnn.MatmulParams().transpose_a is False
