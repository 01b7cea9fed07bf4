"""FLOPs and bytes: torch's own counter for products, the table's rules for the rest."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from tests.tracer.traced import MODELS, SAMPLES, loss, traces
from torch_ttnn import tracer
from torch_ttnn.tracer.calls import Call, Facts
from torch_ttnn.tracer.facts import ALSO_KNOWN_AS, MOVES, REDUCTIONS, RENAMES, RULES, base_name, facts_of

aten: Any = torch.ops.aten


def facts(op: Any, *args: Any, **kwargs: Any) -> Facts:
    return facts_of(Call(op, args, kwargs, op(*args, **kwargs)))


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


# -- products: as torch counts them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_products_of_models_count_as_in_torch(name: str, tmp_path: pathlib.Path) -> None:
    model, given_input = SAMPLES[name].build().train(), SAMPLES[name].feed()
    with FlopCounterMode(display=False) as counter, tracer.tracing(name, out_folder=tmp_path, lowering=False):
        loss(model(given_input)).backward()
    known = {str(packet): 0 for packet in flop_registry}
    for record in (record for trace in traces(tmp_path) for record in trace.records):
        packet = record.op_type.rpartition(".")[0]
        if packet in known:
            known[packet] += record.flops
    wanted = {str(packet): flops for packet, flops in counter.get_flop_counts()["Global"].items()}
    assert sum(wanted.values()) > 0
    gradients = "aten.convolution_backward"
    ours, torchs = known.pop(gradients), wanted.pop(gradients, 0)
    assert {name: flops for name, flops in known.items() if flops} == wanted
    assert ours <= torchs if "mobile" in name or "shuffle" in name or "convnext" in name else ours == torchs


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_gradients_of_convolutions_take_twice_the_convolution(groups: int, transposed: bool) -> None:
    """torch's own count agrees for one group, and ignores groups otherwise."""
    x, weight = ones(2, 8, 10, 10), ones(8, 8 // groups, 3, 3)
    how = ([1, 1], [0, 0], [1, 1], transposed, [0, 0], groups)
    forward = facts(aten.convolution.default, x, weight, None, *how)
    output = aten.convolution.default(x, weight, None, *how)
    assert facts(aten.convolution_backward.default, output, x, weight, None, *how, [True, True, False]).flops == (
        2 * forward.flops
    )
    assert facts(aten.convolution_backward.default, output, x, weight, None, *how, [False, True, False]).flops == (
        forward.flops
    )


def test_attention_on_the_cpu_counts_as_attention_elsewhere() -> None:
    q, k, v = (torch.randn(2, 4, 16, 8) for _ in range(3))
    found = facts(aten._scaled_dot_product_flash_attention_for_cpu.default, q, k, v)
    assert found.flops == 2 * (2 * 4 * 16 * 16 * 8) * 2


# -- the rest: by rule ------------------------------------------------------------------------------------------------

TABLE = [
    # views and allocations
    (aten.view.default, (ones(4, 6), [24]), 0, 0, 0),
    (aten.t.default, (ones(4, 6),), 0, 0, 0),
    (aten.detach.default, (ones(4, 6),), 0, 0, 0),
    (aten.slice.Tensor, (ones(4, 6), 0, 1, 3), 0, 0, 0),
    (aten.empty_like.default, (ones(4, 6),), 0, 0, 0),
    # moves: bytes, no FLOPs
    (aten.clone.default, (ones(4, 6),), 0, 96, 96),
    (aten._to_copy.default, (ones(4, 6),), 0, 96, 96),
    (aten.cat.default, ([ones(4, 6), ones(2, 6)],), 0, 144, 144),
    (aten.embedding.default, (ones(1000, 8), torch.zeros(3, dtype=torch.int64)), 0, 24 + 96, 96),
    (aten.index_select.default, (ones(1000, 8), 0, torch.zeros(3, dtype=torch.int64)), 0, 24 + 96, 96),
    # pointwise: one per output element
    (aten.relu.default, (ones(4, 6),), 24, 96, 96),
    (aten.relu_.default, (ones(4, 6),), 24, 96, 96),
    (aten.add.Tensor, (ones(4, 6), ones(6)), 24, 96 + 24, 96),
    (aten.gelu_backward.default, (ones(4, 6), ones(4, 6)), 24, 192, 96),
    (aten.add.Tensor, (ones(4, 6, dtype=torch.bfloat16), 1), 24, 48, 48),
    # reductions: one per input element
    (aten.sum.dim_IntList, (ones(4, 6), [1]), 24, 96, 16),
    (aten.max.dim, (ones(4, 6), 1), 24, 96, 16 + 32),
    (aten.cumsum.default, (ones(4, 6), 1), 24, 96, 96),
    # specific rules
    (aten._softmax.default, (ones(4, 6), 1, False), 5 * 24, 96, 96),
    (aten.native_layer_norm.default, (ones(4, 6), [6], ones(6), ones(6), 1e-5), 7 * 24, 96 + 48, 96 + 32),
    (aten.max_pool2d_with_indices.default, (ones(1, 2, 8, 8), [2, 2], [2, 2]), 4 * 32, 512, 128 + 256),
    (aten.avg_pool2d.default, (ones(1, 2, 8, 8), [3]), 9 * 8, 512, 32),
    (aten._adaptive_avg_pool2d.default, (ones(1, 2, 8, 8), [1, 1]), 128, 512, 8),
    (aten.upsample_bilinear2d.vec, (ones(1, 2, 4, 4), [8, 8], False, None), 8 * 128, 128, 512),
    (aten.sort.default, (ones(4, 8), 1), 32 * 3, 128, 128 + 256),
    (aten.mv.default, (ones(4, 6), ones(6)), 48, 96 + 24, 16),
    (aten.dot.default, (ones(6), ones(6)), 12, 48, 4),
    (aten.native_dropout.default, (ones(4, 6), 0.5, True), 48, 96, 96 + 24),
    (aten._foreach_add.Scalar, ([ones(4), ones(6)], 1), 10, 40, 40),
    (aten._foreach_add_.Scalar, ([ones(4), ones(6)], 1), 10, 40, 40),
]


@pytest.mark.parametrize("op, args, flops, read, written", TABLE, ids=[str(row[0]) for row in TABLE])
def test_rules(op: Any, args: tuple, flops: int, read: int, written: int) -> None:
    assert facts(op, *args) == Facts(flops, read, written)


def test_recurrent_layers_count_every_gate_in_every_step() -> None:
    layer = torch.nn.LSTM(8, 16).eval()
    found = []

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            found.append(facts_of(Call(func, args, kwargs or {}, result)).flops)
            return result

    with torch.no_grad(), Seen():
        layer(torch.randn(5, 2, 8))
    products = 2 * 5 * 2 * 4 * 16 * (8 + 16)
    assert products <= sum(found) < 1.2 * products


@given(st.lists(st.integers(0, 5), min_size=0, max_size=4))
def test_a_pointwise_operation_of_any_shape_counts_its_elements(shape: list[int]) -> None:
    x = torch.ones(shape)
    assert facts(aten.exp.default, x) == Facts(x.numel(), x.nbytes, x.nbytes)


def test_every_pointwise_operation_counts() -> None:
    """Every operation that torch calls pointwise."""
    for packet in dir(aten):
        if packet in ("op", "name") or base_name_of(packet) in MOVES | RENAMES:
            continue
        op = getattr(getattr(aten, packet), "default", None)
        if not isinstance(op, torch._ops.OpOverload) or op.is_view or torch.Tag.pointwise not in op.tags:
            continue
        call = Call(op, (ones(2, 3),), {}, ones(2, 3))
        assert facts_of(call).flops > 0, op


def base_name_of(packet: str) -> str:
    return packet[:-1] if packet.endswith("_") else packet


def test_the_names_in_the_tables_exist() -> None:
    """A misspelt name, or one that torch has removed, would be a rule without effect."""
    known = {base_name_of(name.partition("::")[2].partition(".")[0]) for name in torch._C._dispatch_get_all_op_names()}
    for table in (MOVES, RENAMES, REDUCTIONS, RULES, ALSO_KNOWN_AS):
        assert not set(table) - known
    assert not set(RULES) & MOVES and not MOVES & RENAMES and not set(RULES) & REDUCTIONS


def test_the_name_is_the_same_in_place() -> None:
    assert base_name(aten.add_.Tensor) == base_name(aten.add.Tensor) == "add"
    assert base_name(aten.__and__.Tensor) == "__and__"
