"""Cycles of the vector unit: by function, mode, architecture and destination register."""

from __future__ import annotations

import pytest

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS, Arch, DataType
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.ops.elementwise.unary.kinds import WITH_PARAMETERS, WITHOUT_PARAMETERS
from ttnn_emulator.timing import vector_unit_cycles as counted
from ttnn_emulator.timing.releases import Release
from ttnn_emulator.timing.vector_unit import (
    activation_cycles,
    binary_cycles,
    cast_cycles,
    chain_cycles,
    ternary_cycles,
    unary_cycles,
)

WORMHOLE, BLACKHOLE = Arch.WORMHOLE_B0, Arch.BLACKHOLE
UnaryOpType = ALL_ENUMS["UnaryOpType"]


@pytest.mark.parametrize("name", sorted((WITHOUT_PARAMETERS | WITH_PARAMETERS) - {"typecast"}))
def test_every_kind_of_function_is_counted(name: str) -> None:
    assert name in counted.UNARY


@pytest.mark.parametrize("name", sorted(counted.UNARY_APPROXIMATE))
def test_the_approximate_mode_is_faster(name: str) -> None:
    for arch in (WORMHOLE, BLACKHOLE):
        assert unary_cycles(name, arch, approximate=True) < unary_cycles(name, arch)


@pytest.mark.parametrize(
    "given",
    [
        UnaryWithParam(UnaryOpType.GELU, True),
        "UnaryWithParam(op_type=UnaryOpType::GELU, params=[1.0])",
        ["gelu", True],
        ("gelu~",),
        "gelu_approx",
        Activation("gelu", (), True),
    ],
    ids=repr,
)
def test_a_function_is_read_from_every_form_of_it(given: object) -> None:
    assert activation_cycles(given, WORMHOLE) == unary_cycles("gelu", WORMHOLE, approximate=True)


def test_the_packer_does_relu() -> None:
    assert activation_cycles("relu", WORMHOLE) == 0.0
    assert unary_cycles("relu", WORMHOLE) > 0.0


def test_float32_takes_longer_where_it_is_more_exact() -> None:
    for name in ("exp", "gelu", "tanh", "log"):
        assert unary_cycles(name, WORMHOLE, DataType.FLOAT32) > unary_cycles(name, WORMHOLE)


def test_blackhole_has_a_reciprocal_instruction() -> None:
    assert unary_cycles("recip", BLACKHOLE) < unary_cycles("recip", WORMHOLE) / 2
    assert binary_cycles("div", BLACKHOLE, DataType.BFLOAT16) < binary_cycles("div", WORMHOLE, DataType.BFLOAT16)


def test_a_chain_takes_the_sum_of_its_functions() -> None:
    chain = (Activation("relu"), Activation("exp"))
    assert chain_cycles(chain, WORMHOLE) == unary_cycles("relu", WORMHOLE) + unary_cycles("exp", WORMHOLE)


def test_an_earlier_release_squared_repeatedly() -> None:
    earlier = unary_cycles("exp", WORMHOLE, release=Release.AUTUMN_2025)
    assert earlier == pytest.approx(1997)
    assert unary_cycles("exp", WORMHOLE) < earlier / 2


def test_casts_between_narrow_floats_are_the_packers() -> None:
    assert cast_cycles(DataType.BFLOAT16, DataType.BFLOAT8_B, BLACKHOLE) == 0.0
    assert cast_cycles(DataType.FLOAT32, DataType.BFLOAT16, BLACKHOLE) > 0.0
    assert cast_cycles(DataType.BFLOAT16, DataType.UINT32, BLACKHOLE) > 0.0


def test_functions_of_several_operands() -> None:
    assert ternary_cycles("addcdiv", WORMHOLE) > ternary_cycles("addcmul", WORMHOLE)
    assert binary_cycles("gcd", WORMHOLE, DataType.INT32) > binary_cycles("add", WORMHOLE, DataType.INT32)
    assert unary_cycles("no_such_function", WORMHOLE) > 0.0
