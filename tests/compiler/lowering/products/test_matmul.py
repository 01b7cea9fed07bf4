"""Matrix products: every argument form, transposed operands, weights in block formats."""

import dataclasses
import functools

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.against_torch import check, run
from torch_ttnn.compiler.lowering.products.matmul import addmm, mm
from torch_ttnn.compiler.lowering.registry import LOWERINGS

aten = torch.ops.aten
r = torch.randn

FORMS = {
    "mm": (lambda x, y: x @ y, [(5, 7), (7, 3)]),
    "bmm": (lambda x, y: x @ y, [(3, 5, 7), (3, 7, 2)]),
    "batches": (lambda x, y: x @ y, [(2, 3, 5, 7), (2, 3, 7, 2)]),
    "broadcast": (lambda x, y: x @ y, [(2, 3, 5, 7), (7, 2)]),
    "mv": (torch.mv, [(5, 7), (7,)]),
    "dot": (torch.dot, [(70,), (70,)]),
    "vdot": (torch.vdot, [(7,), (7,)]),
    "inner": (torch.inner, [(2, 7), (3, 7)]),
    "einsum": (lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y), [(2, 3, 5, 8), (2, 3, 4, 8)]),
    "einsum to heads": (lambda x, y: torch.einsum("bld,dhk->bhlk", x, y), [(2, 5, 8), (8, 3, 4)]),
    "linear": (F.linear, [(2, 5, 7), (3, 7), (3,)]),
    "linear of a vector": (F.linear, [(7,), (3, 7), (3,)]),
    "bilinear": (F.bilinear, [(5, 3), (5, 4), (2, 3, 4)]),
}


@pytest.mark.parametrize("name", FORMS)
def test_like_torch(name):
    function, shapes = FORMS[name]
    check(function, *[r(*shape) for shape in shapes])


@pytest.mark.parametrize("bias", [(3,), (1, 3), (5, 3), (5, 1), (1,), ()], ids=str)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 2), (0, 1), (0, -1.5), (1, 3), (2, 1)])
def test_addmm_with_every_bias_and_factor(bias, beta, alpha):
    check(lambda b, x, y: torch.addmm(b, x, y, beta=beta, alpha=alpha), r(bias), r(5, 7), r(7, 3))


def test_addmm_with_no_part_of_the_bias_does_not_look_at_it():
    check(lambda b, x, y: torch.addmm(b, x, y, beta=0), torch.full((3,), torch.inf), r(5, 7), r(7, 3))


@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 2), (0, 3)])
def test_sums_of_products(beta, alpha):
    factors = {"beta": beta, "alpha": alpha}
    check(lambda b, x, y: torch.baddbmm(b, x, y, **factors), r(2, 5, 3), r(2, 5, 7), r(2, 7, 3))
    check(lambda b, x, y: torch.baddbmm(b, x, y, **factors), r(1, 3), r(2, 5, 7), r(2, 7, 3))
    check(lambda b, x, y: torch.addbmm(b, x, y, **factors), r(5, 3), r(2, 5, 7), r(2, 7, 3))
    check(lambda b, x, y: torch.addmv(b, x, y, **factors), r(5), r(5, 7), r(7))
    check(lambda b, x, y: torch.addr(b, x, y, **factors), r(5, 3), r(5), r(3), on_device=False)


def test_a_bias_in_a_row_is_part_of_the_product():
    assert check(torch.addmm, r(3), r(5, 7), r(7, 3)).device_ops == ["ttnn.linear"]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_transposed_operands_go_in_as_they_are_stored(left, right):
    def function(x, y):
        x, y = torch.relu(x), torch.relu(y)
        return (x.mT if left else x) @ (y.mT if right else y)

    outcome = check(function, r(2, 6, 6), r(2, 6, 6))
    assert outcome.device_ops == ["ttnn.relu", "ttnn.relu", "ttnn.matmul"]
    assert ("transpose_a=True" in outcome.program.code, "transpose_b=True" in outcome.program.code) == (left, right)


def test_a_transposed_weight_is_transposed_once():
    outcome = check(F.linear, r(5, 64), r(32, 64), r(32), statics=(1, 2))
    assert "transpose" not in outcome.program.code
    assert outcome.device_ops == ["ttnn.linear"]


@pytest.mark.parametrize(("format", "error"), [("bfloat8_b", 0.03), ("bfloat4_b", 0.3)])
def test_weights_in_the_format_that_the_user_chose(format, error):
    arguments = r(5, 64), r(32, 64), r(32)
    outcome = check(F.linear, *arguments, statics=(1, 2), weights=format, relative=error, absolute=error)
    exact = run(F.linear, *arguments, statics=(1, 2))
    assert not torch.equal(outcome.outputs[0], exact.outputs[0])


def test_a_weight_that_others_read_too_loses_nothing_for_them():
    """A tied embedding: the product reads bfloat4_b, the sum the weight itself."""
    x, weight = r(64, 64), r(64, 64)
    small, plain = [
        run(lambda x, w: (x @ w, x + w), x, weight, statics=(1,), weights=format).outputs
        for format in ("bfloat4_b", "same")
    ]
    assert torch.equal(small[1], plain[1])
    assert not torch.equal(small[0], plain[0])


def test_integers_stay_on_the_host():
    outcome = check(lambda x, y: x @ y, torch.randint(9, (3, 4)), torch.randint(9, (4, 5)), on_device=False)
    assert "integers" in outcome.host_ops["aten.mm.default"]


def test_float32_is_multiplied_as_exactly_as_the_matrix_unit_can():
    arguments = r(40, 70), r(70, 30)
    exact = arguments[0].double() @ arguments[1].double()
    wide = run(torch.mm, *arguments, precision="float32").outputs[0]
    narrow = run(torch.mm, *arguments).outputs[0]
    assert (wide - exact).abs().max() < 0.5 * (narrow - exact).abs().max()


def test_fusions_may_ask_for_an_activation():
    assert LOWERINGS[aten.addmm.default].function is addmm
    assert LOWERINGS[aten.mm.default].function is mm


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("beta", [1, 2])
def test_an_activation_follows_the_product(activation, beta, monkeypatch):
    activated = dataclasses.replace(
        LOWERINGS[aten.addmm.default], function=functools.partial(addmm, activation=activation)
    )
    monkeypatch.setitem(LOWERINGS, aten.addmm.default, activated)
    arguments = r(3), r(5, 7), r(7, 3)
    made = run(lambda b, x, y: torch.addmm(b, x, y, beta=beta), *arguments).outputs[0]
    wanted = getattr(F, activation)(torch.addmm(*arguments, beta=beta))
    torch.testing.assert_close(made, wanted, rtol=0.02, atol=0.05)


# -- flattened images -----------------------------------------------------------------------------------------------


def _classifier(x, kernel, weight, bias):
    return F.linear(F.max_pool2d(F.relu(F.conv2d(x, kernel)), 2).flatten(1), weight, bias)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_flattened_image_is_multiplied_as_it_is_stored(batch):
    outcome = check(_classifier, r(batch, 3, 14, 14), r(32, 3, 3, 3), r(7, 32 * 36) / 30, r(7), statics=(1, 2, 3))
    assert "ttnn.permute" not in outcome.device_ops[outcome.device_ops.index("ttnn.conv2d") :]


def test_a_weight_that_is_no_constant_is_not_reordered():
    outcome = check(_classifier, r(2, 3, 14, 14), r(32, 3, 3, 3), r(7, 32 * 36) / 30, r(7), statics=(1,))
    assert "ttnn.permute" in outcome.device_ops[outcome.device_ops.index("ttnn.conv2d") :]


FLATTENED = {
    "columns before rows": lambda x, k, w: F.conv2d(x, k).transpose(2, 3).flatten(1) @ w,
    "lines": lambda x, k, w: F.conv1d(x.flatten(2), k.flatten(2)).flatten(1) @ w,
}


@pytest.mark.parametrize("name", FLATTENED)
def test_any_order_is_multiplied_as_it_is_stored(name):
    size = {"columns before rows": 6 * 8, "lines": 8 * 10 - 8}[name]
    weight = r(32 * size, 5) / 30
    outcome = check(FLATTENED[name], r(2, 3, 8, 10), r(32, 3, 3, 3), weight, statics=(1, 2))
    assert outcome.device_ops[-1] == "ttnn.matmul"
    assert outcome.device_ops.count("ttnn.permute") <= 1  # of the input


def test_rows_that_mix_images_are_moved():
    """The batch is not the first of the flattened dimensions."""

    def mixed(x, kernel, weight):
        return F.conv2d(x, kernel).permute(1, 0, 2, 3).flatten(1) @ weight

    check(mixed, r(2, 3, 8, 10), r(32, 3, 3, 3), r(2 * 48, 5) / 30, statics=(1, 2))
