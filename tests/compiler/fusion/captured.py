"""Captures models and functions as the compiler does, and fuses the captured graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch.fx.experimental.proxy_tensor import make_fx

from tests.compiler.against_torch import assert_like
from torch_ttnn import devices
from torch_ttnn.compiler.fusion.composites import is_composite
from torch_ttnn.compiler.ir.metadata import PATH, REASON
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.compiler.stages.fuse import FusionRecord, fuse
from torch_ttnn.compiler.stages.normalise import normalise
from torch_ttnn.options import TorchTtnnOption

RELATIVE = 1e-5  # error that a fusion may add in float32, relative to the largest magnitude
VIEWS_AND_COPIES = (
    "view",
    "_unsafe_view",
    "reshape",
    "clone",
    "t",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "getitem",
)


@dataclass
class Fused:
    """A graph before and after its fusions, with the inputs that it was captured for."""

    before: torch.fx.GraphModule
    after: torch.fx.GraphModule
    records: list[FusionRecord]
    inputs: list[Any]
    statics: tuple[int, ...]

    @property
    def names(self) -> dict[str, int]:
        """How often each fusion was applied."""
        return dict(Counter(record.name for record in self.records))

    @property
    def calls(self) -> list[str]:
        """The remaining calls, by name, without views and copies."""
        names = [target_name(node.target) for node in self.after.graph.nodes if node.op == "call_function"]
        return [name for name in names if name not in VIEWS_AND_COPIES]

    def on_device(self, bound: float | None = None, precision: str = "bfloat16") -> list[str]:
        """Compile the fused graph, compare with torch, and return the `ttnn` calls of the program.

        With a bound, every element must be within it; without, the correlation must exceed 0.999.
        """
        options = TorchTtnnOption(precision=precision)
        mode = next(node.meta["val"].fake_mode for node in self.after.graph.nodes if node.op == "placeholder")
        program = compile_graph(Compilation(self.after, self.statics, devices.resolve("emulator"), options, mode))
        for got, want in zip(program(self.inputs), self.before(*self.inputs)):
            if bound is not None:
                assert_like(got, want, bound, bound / 2)
            else:
                assert got.shape == want.shape
                pairs = torch.stack((got.detach().flatten().double(), want.detach().flatten().double()))
                assert torch.corrcoef(pairs)[0, 1] > 0.999
        left = {str(node.target): REASON[node] for node in program.graph.nodes if REASON.on(node)}
        assert not left, left
        return [PATH[node] for node in program.graph.nodes if PATH.on(node)]


def target_name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return str(target).split(".")[1]
    return target.__name__


def fused(function: Callable[..., Any], *args: Any, statics: tuple[int, ...] = (), decompose: bool = False) -> Fused:
    """Trace a function, fuse its graph, and check that results are unchanged."""
    table = core_aten_decompositions() if decompose else {}
    with torch.no_grad():
        captured = make_fx(function, decomposition_table=table, tracing_mode="fake")(*args)
    output = next(iter(reversed(captured.graph.nodes)))
    output.args = (tuple(pytree.tree_leaves(output.args[0])),)
    captured.recompile()
    return _fused(captured, pytree.tree_leaves(args), statics)


def fused_model(model: torch.nn.Module, *args: Any, decompose: bool = False, **kwargs: Any) -> Fused:
    """The same for a module in eval mode, captured by torch.compile; its parameters and buffers are static."""
    found: list[Fused] = []

    def compiler(graph_module: torch.fx.GraphModule, example: Any) -> Any:
        context = torch._guards.TracingContext.get()
        statics = tuple(context.fw_metadata.static_input_indices)
        place = len(found)
        found.append(Fused(graph_module, graph_module, [], [], statics))

        def run(inputs: list[Any]) -> Any:
            kept = list(inputs)
            found[place].inputs = kept
            return graph_module(*kept)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    table = core_aten_decompositions() if decompose else {}
    torch._dynamo.reset()
    with torch.no_grad():
        backend = aot_autograd(fw_compiler=compiler, inference_compiler=compiler, decompositions=table)
        torch.compile(model.eval(), backend=backend)(*args, **kwargs)
    assert len(found) == 1, f"captured as {len(found)} graphs"
    return _fused(found[0].before, found[0].inputs, found[0].statics)


def _fused(captured: torch.fx.GraphModule, inputs: list[Any], statics: tuple[int, ...]) -> Fused:
    before, after = normalise(captured), normalise(captured)
    placeholders = [node for node in after.graph.nodes if node.op == "placeholder"]
    static = {placeholders[number] for number in statics}
    records = fuse(after, static)
    after.graph.lint()
    _verify_types(after)
    fused_graph = Fused(before, after, records, inputs, statics)
    _assert_results_unchanged(fused_graph)
    assert fuse(after, static) == [], "a second run must find nothing more"
    return fused_graph


def _verify_types(graph_module: torch.fx.GraphModule) -> None:
    """Check that every call has the shape and dtype that its metadata records."""
    for node in graph_module.graph.nodes:
        if node.op != "call_function":
            continue
        args, kwargs = pytree.tree_map(
            lambda item: item.meta["val"] if isinstance(item, torch.fx.Node) else item, (node.args, dict(node.kwargs))
        )
        modes = [each.fake_mode for each in pytree.tree_leaves((args, kwargs)) if hasattr(each, "fake_mode")]
        if not modes:
            continue
        with modes[0], torch.no_grad():
            vals = pytree.tree_leaves(node.target(*args, **kwargs))
        for val, recorded in zip(vals, pytree.tree_leaves(node.meta["val"])):
            if isinstance(val, torch.Tensor):
                assert (val.shape, val.dtype) == (recorded.shape, recorded.dtype), (
                    f"{node.format_node()}: {val}, recorded as {recorded}"
                )
        if is_composite(node.target):
            assert node.target.name == node.target.__name__


def _assert_results_unchanged(fused_graph: Fused) -> None:
    with torch.no_grad():
        expected, got = fused_graph.before(*fused_graph.inputs), fused_graph.after(*fused_graph.inputs)
    for one, other in zip(expected, got):
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            bound = RELATIVE if one.dtype is torch.float32 else 2 * torch.finfo(one.dtype).eps
            assert_like(other, one, bound, bound)
