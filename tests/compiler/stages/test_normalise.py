"""The stage `normalise`: the nodes that it removes, and those that it must keep."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.compiler.against_torch import check
from torch_ttnn.compiler.stages.normalise import normalise

aten = torch.ops.aten


def _targets(function, *args):
    graph = normalise(make_fx(function, tracing_mode="fake")(*args)).graph
    return [node.target for node in graph.nodes if node.op == "call_function"]


def test_duplicate_and_dead_computations_are_removed():
    def wasteful(x):
        x.sin()
        return x.cos() + x.cos()

    assert _targets(wasteful, torch.ones(3)) == [aten.cos.default, aten.add.Tensor]


def test_random_operations_are_not_merged():
    twice = _targets(lambda x: torch.rand_like(x) - torch.rand_like(x), torch.ones(3))
    assert twice.count(aten.rand_like.default) == 2


def test_empty_parts_of_a_cat_are_removed():
    def rotated(x):
        return torch.cat([x[:, :3].neg(), x[:, 4:].sin()], dim=1) * 2

    assert _targets(rotated, torch.ones(3, 4)) == [aten.slice.Tensor, aten.neg.default, aten.mul.Tensor]
    check(rotated, torch.randn(3, 4))
    check(lambda x, y: torch.cat([x, y[:, :0], y], dim=1), torch.randn(3, 4), torch.randn(3, 5))
    check(lambda x: torch.cat([x[:0], x[:0]]) + 1, torch.randn(3, 4), on_device=False)
