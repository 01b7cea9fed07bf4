"""Compiles a torch function and compares its results with torch's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn import devices
from torch_ttnn.compiler.ir.metadata import PATH, REASON
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.stages.capture import decompositions
from torch_ttnn.options import TorchTtnnOption

# Tolerances by the device's float dtype: relative, and as a share of the reference's largest magnitude.
BOUNDS = {"bfloat16": (0.02, 0.01), "float32": (1e-4, 1e-4)}


@dataclass
class Outcome:
    """The results of a compiled function, and where its operations ran."""

    outputs: list[Any]
    program: Program

    @property
    def host_ops(self) -> dict[str, str]:
        """Operations that stay on the host, with their reasons."""
        return {str(node.target): REASON[node] for node in self.program.graph.nodes if REASON.on(node)}

    @property
    def device_ops(self) -> list[str]:
        """The `ttnn` calls of the program, without moves."""
        moves = ("ttnn.from_torch", "ttnn.to_torch", "ttnn.to_layout", "ttnn.typecast", "ttnn.reshape")
        paths = [PATH.get(node) for node in self.program.graph.nodes]
        return [path for path in paths if path and path not in moves]


def run(function: Callable[..., Any], *args: Any, statics: tuple[int, ...] = (), **options: Any) -> Outcome:
    """Compile `function` for these arguments and call it; `statics` are the indices of inputs to treat as weights."""
    chosen = TorchTtnnOption.of(options)
    mode = FakeTensorMode()
    tensors, _ = pytree.tree_flatten(args)
    with torch.no_grad():
        captured = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")(*args)
        outputs = pytree.tree_leaves(function(*pytree.tree_map(_copied, args)))
    _as_tuple(captured.graph)
    fake_mode = next(
        (node.meta["val"].fake_mode for node in captured.graph.nodes if hasattr(node.meta.get("val"), "fake_mode")),
        mode,
    )
    program = compile_graph(Compilation(captured, statics, devices.resolve("emulator"), chosen, fake_mode))
    made = program(tensors)
    assert len(made) == len(outputs)
    return Outcome(made, program)


def check(
    function: Callable[..., Any],
    *args: Any,
    statics: tuple[int, ...] = (),
    on_device: bool = True,
    relative: float | None = None,
    absolute: float | None = None,
    terms: float = 0.0,
    **options: Any,
) -> Outcome:
    """Compile and run; outputs must equal torch's within the dtype, and `on_device` permits no host operation.

    `terms` is the magnitude of terms that may cancel in a result: errors are small compared with it.

    With `on_device=False` operations may stay on the host, but each with a reason.
    """
    outcome = run(function, *args, statics=statics, **options)
    with torch.no_grad():
        expected = pytree.tree_leaves(function(*pytree.tree_map(_copied, args)))
    bound = BOUNDS[options.get("precision", "bfloat16")]
    for got, want in zip(outcome.outputs, expected):
        share = bound[1] if absolute is None else absolute
        assert_like(got, want, bound[0] if relative is None else relative, share, terms)
    if on_device:
        assert not outcome.host_ops, f"left to the host: {outcome.host_ops}\n{outcome.program.code}"
    assert all(outcome.host_ops.values())
    return outcome


def assert_like(got: Any, want: Any, relative: float, absolute: float, terms: float = 0.0) -> None:
    if not isinstance(want, torch.Tensor):
        assert got == want
        return
    assert isinstance(got, torch.Tensor)
    assert got.shape == want.shape, f"shape {list(got.shape)}, torch has {list(want.shape)}"
    assert got.dtype == want.dtype, f"dtype {got.dtype}, torch has {want.dtype}"
    if not want.dtype.is_floating_point:
        assert torch.equal(got, want), f"{int((got != want).sum())} of {want.numel()} integers or booleans differ"
        return
    finite = want.isfinite()
    torch.testing.assert_close(got[~finite], want[~finite], equal_nan=True, rtol=0, atol=0)
    got, want = got[finite].double(), want[finite].double()
    if not want.numel():
        return
    error = (got - want).abs()
    allowed = relative * want.abs() + absolute * max(float(want.abs().max()), terms) + 1e-30
    worst = int((error / allowed).argmax())
    assert (error <= allowed).all(), (
        f"{int((error > allowed).sum())} of {want.numel()} are off; the worst is {got[worst]:g} for {want[worst]:g}"
    )


def _copied(item: Any) -> Any:
    return item.clone() if isinstance(item, torch.Tensor) else item


def _as_tuple(graph: torch.fx.Graph) -> None:
    """Captured graphs return a flat tuple."""
    output = next(iter(reversed(graph.nodes)))
    output.args = (tuple(pytree.tree_leaves(output.args[0])),)
    graph.owning_module.recompile()
