"""`nn.TransformerEncoder`, its layers and `nn.MultiheadAttention`: no host operation, and torch's values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import nn

import torch_ttnn
from tests.compiler.against_torch import assert_like
from torch_ttnn.compiler.frontend.transformer_layers import DECOMPOSITIONS
from torch_ttnn.compiler.ir.metadata import REASON

STEPS, BATCH, SIZE, HEADS = 10, 3, 64, 4


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def padding() -> torch.Tensor:
    lengths = torch.tensor([7, STEPS, 4])
    return torch.arange(STEPS)[None] >= lengths[:, None]


MASKS: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "padding": lambda: {"src_key_padding_mask": padding()},
    "numbers": lambda: {"mask": nn.Transformer.generate_square_subsequent_mask(STEPS)},
    "booleans": lambda: {"mask": torch.ones(STEPS, STEPS, dtype=torch.bool).triu(2)},
    "causal": lambda: {"mask": nn.Transformer.generate_square_subsequent_mask(STEPS), "is_causal": True},
    "of each head": lambda: {"mask": torch.rand(BATCH * HEADS, STEPS, STEPS).sub(0.7).clamp(min=0).bool()},
    "padding and booleans": lambda: {
        "src_key_padding_mask": padding(),
        "mask": torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1),
    },
}


def outcome(module: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    options = torch_ttnn.TorchTtnnOption(cache_dir="")
    got = torch.compile(module, backend="ttnn", options=options)(*args, **kwargs)
    nodes = [node for program in options.programs for node in program.graph.nodes]
    assert len(options.programs) == 1, "the graph broke"
    return got, [f"{node.target}: {REASON[node]}" for node in nodes if REASON.on(node)]


def layer(**settings: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(SIZE, HEADS, 96, **settings)


def source(batch_first: bool) -> torch.Tensor:
    return torch.randn(*((BATCH, STEPS) if batch_first else (STEPS, BATCH)), SIZE)


def visible(x: torch.Tensor, masks: dict[str, Any], batch_first: bool) -> torch.Tensor:
    """The rows that are not padding: torch's eager encoder sets the others to zero, and its graphs do not."""
    if "src_key_padding_mask" not in masks:
        return x
    return (x if batch_first else x.transpose(0, 1))[~masks["src_key_padding_mask"]]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_encoder(batch_first: bool, norm_first: bool, mask: str) -> None:
    model = nn.TransformerEncoder(layer(batch_first=batch_first, norm_first=norm_first), 2, nn.LayerNorm(SIZE)).eval()
    x, masks = source(batch_first), MASKS[mask]()
    with torch.no_grad():
        got, left = outcome(model, x, **masks)
        want = model(x, **masks)
    assert not left
    assert got.stride() == want.stride()
    assert_like(visible(got, masks, batch_first), visible(want, masks, batch_first), 0.02, 0.015)


@pytest.mark.parametrize("activation", ["relu", "gelu", torch.nn.functional.silu])
@pytest.mark.parametrize("grad", [False, True], ids=["inference", "gradients"])
def test_layer(activation: Any, grad: bool) -> None:
    model = layer(batch_first=True, activation=activation).eval()
    x = source(True)
    with torch.set_grad_enabled(grad):
        got, left = outcome(model, x, src_key_padding_mask=padding())
        want = model(x, src_key_padding_mask=padding())
    assert not left
    assert_like(got.detach(), want.detach(), 0.02, 0.01)


def test_layer_without_biases() -> None:
    model = layer(batch_first=True, bias=False).eval()
    x = source(True)
    with torch.no_grad():
        got, left = outcome(model, x)
        assert_like(got, model(x), 0.02, 0.01)
    assert not left


def test_gradients() -> None:
    model = layer(batch_first=True, dropout=0.0)
    reference = copy.deepcopy(model)
    x = source(True)
    options = torch_ttnn.TorchTtnnOption(cache_dir="", precision="float32")
    for run in (torch.compile(model, backend="ttnn", options=options), reference):
        run(x, src_key_padding_mask=padding()).square().mean().backward()
    nodes = [node for program in options.programs for node in program.graph.nodes]
    assert not [node for node in nodes if REASON.on(node)]
    for one, other in zip(model.parameters(), reference.parameters()):
        assert_like(one.grad, other.grad, 0.01, 0.01, terms=0.01)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_attention(batch_first: bool, masked: bool, average: bool) -> None:
    model = nn.MultiheadAttention(SIZE, HEADS, batch_first=batch_first).eval()
    x = source(batch_first)
    settings: dict[str, Any] = {"average_attn_weights": average}
    if masked:
        settings["key_padding_mask"] = padding()
    with torch.no_grad():
        got, left = outcome(model, x, x, x, **settings)
        want = model(x, x, x, **settings)
    assert not left
    for one, other in zip(got, want):
        assert_like(one, other, 0.02, 0.02)


def test_attention_to_another_sequence() -> None:
    model = nn.MultiheadAttention(SIZE, HEADS, kdim=24, vdim=40, batch_first=True).eval()
    q, k, v = torch.randn(2, 5, SIZE), torch.randn(2, 7, 24), torch.randn(2, 7, 40)
    with torch.no_grad():
        got, left = outcome(model, q, k, v, need_weights=False)
        assert_like(got[0], model(q, k, v, need_weights=False)[0], 0.02, 0.02)
    assert not left


def test_whole_transformer_with_masks() -> None:
    model = nn.Transformer(SIZE, HEADS, 1, 2, 96, batch_first=True).eval()
    src, tgt = source(True), torch.randn(BATCH, 6, SIZE)
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    masks = {"tgt_mask": causal, "src_key_padding_mask": padding(), "memory_key_padding_mask": padding()}
    with torch.no_grad():
        got, left = outcome(model, src, tgt, **masks)
        want = model(src, tgt, **masks)
    assert not left
    assert_like(got, want, 0.02, 0.02)


# -- decompositions of the fused operators ----------------------------------------------------------------------------


def fused_arguments() -> tuple[torch.Tensor, list[torch.Tensor]]:
    weights = [torch.randn(3 * SIZE, SIZE) / 8, torch.randn(3 * SIZE), torch.randn(SIZE, SIZE) / 8, torch.randn(SIZE)]
    return torch.randn(BATCH, STEPS, SIZE), weights


@pytest.mark.parametrize("mask_type", [None, 0, 1, 2])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_is_decomposed_exactly(need_weights: bool, mask_type: int | None) -> None:
    x, weights = fused_arguments()
    shape = {None: None, 0: (STEPS, STEPS), 1: (BATCH, STEPS), 2: (BATCH, HEADS, STEPS, STEPS)}[mask_type]
    mask = None if shape is None else (torch.rand(shape) > 0.7).index_fill(-1, torch.tensor([0]), False)
    operator = torch.ops.aten._native_multi_head_attention.default
    arguments = (x, x, x, SIZE, HEADS, *weights, mask, need_weights, True, mask_type)
    for one, other in zip(DECOMPOSITIONS[operator](*arguments), operator(*arguments)):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("use_gelu", [True, False])
def test_layer_is_decomposed_exactly(use_gelu: bool, norm_first: bool) -> None:
    x, weights = fused_arguments()
    norms = [torch.randn(SIZE) for _ in range(4)]
    feed = [torch.randn(96, SIZE) / 8, torch.randn(96), torch.randn(SIZE, 96) / 10, torch.randn(SIZE)]
    operator = torch.ops.aten._transformer_encoder_layer_fwd.default
    arguments = (x, SIZE, HEADS, *weights, use_gelu, norm_first, 1e-5, *norms, *feed, padding(), 1)
    torch.testing.assert_close(DECOMPOSITIONS[operator](*arguments), operator(*arguments), atol=1e-4, rtol=1e-4)


def test_a_fully_masked_row_is_nan() -> None:
    x, weights = fused_arguments()
    operator = torch.ops.aten._native_multi_head_attention.default
    arguments = (x, x, x, SIZE, HEADS, *weights, torch.ones(BATCH, STEPS, dtype=torch.bool), True, True, 1)
    pairs = zip(pytree.tree_leaves(DECOMPOSITIONS[operator](*arguments)), operator(*arguments))
    assert all(one.isnan().all() and other.isnan().all() for one, other in pairs)
