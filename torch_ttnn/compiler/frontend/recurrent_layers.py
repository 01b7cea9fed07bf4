"""Decompositions of `torch.lstm`, `torch.gru`, `torch.rnn_tanh` and `torch.rnn_relu` in captured graphs.

Each layer and direction becomes one operator of ours (`recurrent_operators.py`); the operations between them (dropout,
joining directions, transposing) are ordinary torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F

from torch_ttnn.compiler.frontend.recurrent_operators import last_step

Tensor = torch.Tensor
aten = torch.ops.aten
operators = torch.ops.torch_ttnn


def lstm(
    x: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.lstm` of padded sequences."""
    h0, c0 = hx
    has_projections = h0.shape[-1] != c0.shape[-1]

    def layer(x: Tensor, weights: Sequence[Tensor], number: int, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
        w_ih, w_hh, *rest = weights
        w_hr = rest.pop() if has_projections else None
        b_ih, b_hh = rest if has_biases else (None, None)
        hidden, cell, _, _ = operators.lstm_layer(x, h0[number], c0[number], w_ih, w_hh, b_ih, b_hh, w_hr, reverse)
        return hidden, last_step(hidden, reverse), cell

    kinds = 2 + 2 * has_biases + has_projections
    output, (h_n, c_n) = _stacked(
        layer, x, params, kinds, num_layers, dropout if train else 0.0, bidirectional, batch_first
    )
    return output, h_n, c_n


def _of_one_state(
    operator: Callable[..., Tensor],
    x: Tensor,
    h0: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """Layers of `operator`, which returns the hidden states of all time steps."""

    def layer(x: Tensor, weights: Sequence[Tensor], number: int, reverse: bool) -> tuple[Tensor, Tensor]:
        hidden = operator(x, h0[number], *_with_biases(weights), reverse)
        return hidden, last_step(hidden, reverse)

    kinds = 2 + 2 * has_biases
    output, (h_n,) = _stacked(
        layer, x, params, kinds, num_layers, dropout if train else 0.0, bidirectional, batch_first
    )
    return output, h_n


def gru(*args: Any) -> tuple[Tensor, Tensor]:
    """`torch.gru` of padded sequences."""
    return _of_one_state(lambda *given: operators.gru_layer(*given)[0], *args)


def rnn_tanh(*args: Any) -> tuple[Tensor, Tensor]:
    """`torch.rnn_tanh` of padded sequences."""
    return _of_one_state(lambda *given: operators.rnn_layer(*given[:-1], "tanh", given[-1]), *args)


def rnn_relu(*args: Any) -> tuple[Tensor, Tensor]:
    """`torch.rnn_relu` of padded sequences."""
    return _of_one_state(lambda *given: operators.rnn_layer(*given[:-1], "relu", given[-1]), *args)


def _with_biases(weights: Sequence[Tensor]) -> tuple:
    return (*weights, None, None) if len(weights) == 2 else tuple(weights)


def _stacked(
    layer: Callable[..., tuple],
    x: Tensor,
    params: Sequence[Tensor],
    kinds: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Stacked layers, each in one direction or two; returns the sequence, and the last states of each kind.

    `kinds` is the number of weights of a layer in one direction.
    """
    x = x.transpose(0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    weights = [params[start : start + kinds] for start in range(0, len(params), kinds)]
    last: list[tuple] = []
    for number in range(num_layers):
        both = []
        for direction in range(directions):
            index = number * directions + direction
            hidden, *states = layer(x, weights[index], index, direction == 1)
            both.append(hidden)
            last.append(tuple(states))
        x = torch.cat(both, -1) if bidirectional else both[0]
        if dropout and number < num_layers - 1:
            x = F.dropout(x, dropout, training=True)
    return x.transpose(0, 1) if batch_first else x, [torch.stack(states) for states in zip(*last)]


# Functions that a graph of Dynamo calls, and their replacements.
LAYERS: dict[Any, Callable[..., Any]] = {
    torch.lstm: lstm,
    aten.lstm.input: lstm,
    torch.gru: gru,
    aten.gru.input: gru,
    torch.rnn_tanh: rnn_tanh,
    aten.rnn_tanh.input: rnn_tanh,
    torch.rnn_relu: rnn_relu,
    aten.rnn_relu.input: rnn_relu,
}


def decompose_layers(graph_module: torch.fx.GraphModule) -> None:
    """Replace recurrent layers in a graph of Dynamo, and in its nested graphs, by our operators."""
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        found = [node for node in module.graph.nodes if node.target in LAYERS and _is_ours(node)]
        for node in found:
            node.target = LAYERS[node.target]
        if found:
            module.recompile()


def _is_ours(node: torch.fx.Node) -> bool:
    """Whether its sequences are padded (packed ones have another signature), and autocast does not change its dtype."""
    if node.op != "call_function" or node.kwargs or len(node.args) != 9:
        return False
    is_padded = isinstance(node.args[2], list | tuple) and isinstance(node.args[3], bool)
    x: Any = node.args[0]
    given = x.meta.get("example_value", x.meta.get("val"))
    made = node.meta.get("example_value", node.meta.get("val"))
    return is_padded and (given is None or made is None or made[0].dtype is given.dtype)
