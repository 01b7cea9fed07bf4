"""Composites: their own reference in torch, on real and fake tensors, callable by name from generated source."""

from __future__ import annotations

import pytest
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.lowering import LOWERINGS

CALLS = {
    "linear": lambda: (torch.randn(3, 4), torch.randn(4, 5), torch.randn(5), "gelu"),
    "convolution": lambda: (
        torch.randn(1, 3, 5, 5), torch.randn(4, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, "relu6",
    ),
    "quick_gelu": lambda: (torch.randn(3, 4),),
    "scale_mask_softmax": lambda: (torch.randn(2, 3, 4), 0.5, torch.randn(4)),
    "rotary_embedding": lambda: (torch.randn(2, 3, 4, 8), torch.randn(4, 6), torch.randn(4, 6), True, 6),
    "qkv_heads": lambda: (torch.randn(2, 3, 16), 2, 1),
    "restrided": lambda: (torch.ones(2, 3), [1, 2]),
}  # fmt: skip


def test_every_composite_is_tested_and_has_a_lowering():
    # Of torch's generator, which is the host's: tests/compiler/lowering/elementwise/test_dropout.py.
    random = {composites.drawn_seed, composites.rng_state, composites.exchanged_rng_state}
    # Parts of moves: tests/compiler/complex_numbers/test_pairs.py. Of a check: lowering/elementwise/test_domains.py.
    parts = {composites.real_part, composites.imaginary_part, composites.put_together, composites.require}
    assert set(CALLS) | {each.__name__ for each in random | parts} == set(composites.COMPOSITES)
    on_the_host = {composites.restrided, *random, *parts}  # so are strides
    assert all(function in LOWERINGS for function in set(composites.COMPOSITES.values()) - on_the_host)


@pytest.mark.parametrize("name", CALLS)
def test_on_fake_tensors(name):
    function = composites.COMPOSITES[name]
    real = function(*CALLS[name]())
    with FakeTensorMode():
        fake = function(*CALLS[name]())
    for one, other in zip(real if isinstance(real, tuple) else [real], fake if isinstance(fake, tuple) else [fake]):
        assert one.shape == other.shape and one.dtype == other.dtype


@pytest.mark.parametrize("name", CALLS)
def test_in_the_source_of_a_graph(name):
    function = composites.COMPOSITES[name]
    args = CALLS[name]()
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(f"input_{k}") if isinstance(arg, torch.Tensor) else arg for k, arg in enumerate(args)]
    graph.output(graph.call_function(function, tuple(nodes)))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    assert f"composites_{name}" in module.code.replace(".", "_")
    result = module(*[arg for arg in args if isinstance(arg, torch.Tensor)])
    torch.testing.assert_close(result, function(*args))
    assert function.name == name and composites.is_composite(function)


def test_activations_are_known_by_name():
    x = torch.randn(7)
    assert torch.equal(composites.ACTIVATIONS["gelu_tanh"](x), torch.nn.functional.gelu(x, approximate="tanh"))
    assert not composites.is_composite(torch.relu)
