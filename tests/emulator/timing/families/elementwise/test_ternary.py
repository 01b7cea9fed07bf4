"""Operations of three and more operands, the older broadcast, gradients and optimizers."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import BFP8, INT32, height_sharded, nanoseconds, tensor
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of


def where(predicate: Spec, **chosen: Spec) -> tuple[Launch, ...]:
    inputs = (("predicate", predicate), *chosen.items())
    out = next(iter(chosen.values()), predicate)
    return launches_of(Call("ttnn.where", inputs, (out,), {}, find_board("n150")))


def test_where_reads_its_tensors() -> None:
    a = tensor(2048, 2048)
    three = where(a, true_value=a, false_value=a)
    two = where(a, true_value=a)
    one = where(a)
    assert [len(each) for each in (three, two, one)] == [1, 1, 1]
    assert three[0].dram_bytes > two[0].dram_bytes > one[0].dram_bytes
    assert [each[0].program for each in (three, two, one)] == [
        "TernaryDeviceOperation",
        "BinaryNgDeviceOperation",
        "UnaryDeviceOperation",
    ]


def test_integer_flags_are_cast_first() -> None:
    a = tensor(64, 64)
    programs = [each.program for each in where(tensor(64, 64, dtype=INT32), true_value=a, false_value=a)]
    assert programs == ["TypecastDeviceOperation", "TernaryDeviceOperation"]


def test_kinds_of_three_operands() -> None:
    a = height_sharded(8192, 256, cores=64)
    product, quotient = (nanoseconds("ttnn.prim.ternary", a, a, a, kind=kind) for kind in ("ADDCMUL", "ADDCDIV"))
    assert quotient > product * 1.5


def test_the_older_broadcast() -> None:
    a = height_sharded(8192, 256, cores=64, dtype=BFP8)
    value = tensor(1, 1, dtype=BFP8)
    sharded = nanoseconds("ttnn.bcast", a, value, math_op="MUL", dim="HW")
    interleaved = nanoseconds("ttnn.bcast", tensor(8192, 256, dtype=BFP8), value, math_op="MUL", dim="HW")
    assert sharded < interleaved / 2
    assert nanoseconds("ttnn.bcast", a, value, math_op="ADD", dim="HW") < sharded


@pytest.mark.parametrize("name", ["ttnn.tanh_bw", "ttnn.sigmoid_bw", "ttnn.gelu_bw"])
def test_gradients_take_longer_than_a_product(name: str) -> None:
    a = tensor(1024, 1024)
    assert nanoseconds(name, a, a) > nanoseconds("ttnn.multiply", a, a, fast_and_approximate_mode=True)


def test_an_optimizer_moves_all_its_tensors() -> None:
    a = tensor(1024, 1024)
    steps = nanoseconds("ttnn.moreh_adam", a, a, a, a, outputs=(a, a, a))
    assert steps > 2 * nanoseconds("ttnn.add", a, a)
    assert steps > nanoseconds("ttnn.moreh_sgd", a, a, outputs=(a,))
