"""The stage `capture`: Dynamo and AOTAutograd produce functional ATen graphs.

Operations that have a lowering are not decomposed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from torch_ttnn.compiler.analysis.never_nan import overloads
from torch_ttnn.compiler.frontend import checked_inputs, distances, foreach, transformer_layers, weight_norm
from torch_ttnn.compiler.frontend.recurrent_layers import decompose_layers
from torch_ttnn.compiler.lowering import LOWERINGS

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]


def compile_captured(
    graph_module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    forward: Compiler,
    backward: Compiler,
    inference: Compiler,
    table: Mapping[Any, Callable[..., Any]] | None = None,
    whole: frozenset[Any] = frozenset(),
    partition: Callable[..., Any] = min_cut_rematerialization_partition,
    writes: bool = False,
) -> Callable[..., Any]:
    """Convert a graph of Dynamo into functional ATen graphs, compile each, and return the function that runs them.

    `table` maps operations to decompositions, `whole` are overloads that are not decomposed, `partition` splits a
    joint graph into forward and backward. With `writes`, graphs have the writes into their inputs, which AOTAutograd
    else does itself.
    """
    if table is None:
        decompose_layers(graph_module)
    return aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=decompositions(whole) if table is None else table,
        partition_fn=partition,
        keep_inference_input_mutations=writes,
    )(graph_module, inputs)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Adapt a function to AOTAutograd's boxed calls: it clears the list of arguments, so that inputs can be freed."""

    def run_boxed(args: list[Any]) -> Any:
        inputs = list(args)
        args.clear()
        return run(inputs)

    run_boxed._boxed_call = True  # type: ignore[attr-defined]
    return run_boxed


# torch's decompositions of `linspace` and `logspace` round in another order than its kernels: integers differ, and
# bfloat16. That of `bernoulli` compares rounded probabilities, and does not check them.
INEXACT = overloads("linspace", "logspace", "bernoulli")


@functools.cache
def _all_decompositions() -> dict[Any, Callable[..., Any]]:
    """Core ATen decompositions that compute what the operations do, and ours."""
    core = {op: rule for op, rule in core_aten_decompositions().items() if op not in INEXACT}
    return {
        **core,
        **checked_inputs.decompositions(),
        **distances.DECOMPOSITIONS,
        **foreach.decompositions(),
        **transformer_layers.DECOMPOSITIONS,
        **weight_norm.DECOMPOSITIONS,
    }


def decompositions(whole: frozenset[Any] = frozenset()) -> dict[Any, Callable[..., Any]]:
    """Decompositions of all operations that have no lowering and are not in `whole`."""
    return {op: rule for op, rule in _all_decompositions().items() if op not in LOWERINGS and op not in whole}


def static_inputs() -> list[int]:
    """Indices of the inputs of the graph being compiled that are parameters or buffers which the graph only reads.

    A buffer that it writes (a key-value cache, running statistics) changes on every call, as other inputs do.
    """
    context = torch._guards.TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return []
    written = {number for number, info in enumerate(context.fw_metadata.input_info) if info.mutates_data}
    tokens = len(context.fw_metadata.tokens)  # of operations with side effects; they come first
    return [tokens + number for number in context.fw_metadata.static_input_indices if number not in written]
