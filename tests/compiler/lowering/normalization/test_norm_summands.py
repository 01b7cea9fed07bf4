"""Sums that a norm adds itself stay float32 from the product to the norm; other sums do not."""

import pytest
import torch
import torch.nn.functional as F

import ttnn_emulator as ttnn
from tests.compiler.against_torch import check
from torch_ttnn.compiler.ir.metadata import PATH, SPEC
from torch_ttnn.workloads.agreement import pcc

r = torch.randn
NORMS = {
    "layer_norm": (lambda x: F.layer_norm(x, (96,)), "ttnn.layer_norm"),
    "rms_norm": (lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5), "ttnn.rms_norm"),
}


def _specs(outcome, path):
    return [SPEC[node].spec for node in outcome.program.graph.nodes if PATH.get(node) == path]


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_adds_unrounded_products(name):
    norm, path = NORMS[name]

    def block(x, weight):
        return norm(x + (x.view(64, 96) @ weight).view(2, 32, 96).clone())

    outcome = check(block, r(2, 32, 96), r(96, 96), statics=(1,))
    assert outcome.device_ops == ["ttnn.matmul", path]
    assert [spec.dtype for spec in _specs(outcome, "ttnn.matmul") + _specs(outcome, path)] == [ttnn.float32] * 2


def test_rounding_errors_are_smaller():
    torch.manual_seed(0)
    weights = [r(96, 96) / 10 for _ in range(12)]

    def blocks(x, *weights, read=False):
        for weight in weights:
            total = x + x @ weight
            x = F.layer_norm(total, (96,))
            if read:
                x = x + 0.0 * total[:1, :1]
        return x

    x = r(64, 96)
    statics = tuple(range(1, 13))
    wanted = blocks(x, *weights)
    apart = [
        1 - pcc(check(function, x, *weights, statics=statics, relative=0.2, absolute=0.2).outputs[0], wanted)
        for function in (blocks, lambda *args: blocks(*args, read=True))
    ]
    assert apart[0] < 0.6 * apart[1]


@pytest.mark.parametrize(
    "other",
    [
        lambda total: (F.layer_norm(total, (96,)), total * 2),
        lambda total: (F.relu(total),),
        lambda total: (F.layer_norm(total, (96,), weight=total[0]),),
    ],
    ids=["read by another", "no norm", "is the weight of the norm, too"],
)
def test_other_sums_are_rounded(other):
    outcome = check(lambda x, weight: other(x + x @ weight), r(64, 96), r(96, 96), statics=(1,))
    assert "ttnn.add" in outcome.device_ops
    assert [spec.dtype for spec in _specs(outcome, "ttnn.matmul")] == [ttnn.bfloat16]
