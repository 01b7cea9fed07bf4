"""Our operators for recurrent layers: `torch.ops.torch_ttnn.lstm_layer`, `gru_layer`, `rnn_layer`.

ATen decomposes a recurrent layer into operations for every time step before a backend sees it. Here one layer in one
direction is one operator, with its gradient, so that a graph does not grow with the sequence; a lowering writes the
loop (`lowering/recurrent/`). On the host the operators run as implemented here.

Sequences are [T, B, features]. A reversed layer reads its sequence from the end; its results are still in the order of
the sequence. Gates are in torch's order: i, f, g, o of an LSTM and r, z, n of a GRU.

The gradient of a layer is also a loop, over states only: `lstm_backward` and `recurrent_backward` compute the gradients
of all states, and gradients of weights and inputs are products over all time steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
NAMESPACE = "torch_ttnn"
LIBRARY = torch.library.Library(NAMESPACE, "DEF")

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


def _operator(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the CPU implementation of an operator."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        LIBRARY.define(function.__name__ + schema, tags=(torch.Tag.pt2_compliant_tag,))
        LIBRARY.impl(function.__name__, function, "CPU")
        return function

    return enter


def _shapes(operator: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the meta function of an operator."""
    return torch.library.register_fake(f"{NAMESPACE}::{operator.__name__}", lib=LIBRARY)


def steps(count: int, reverse: bool) -> Sequence[int]:
    """The time steps in the order in which a layer processes them."""
    return range(count - 1, -1, -1) if reverse else range(count)


def last_step(sequence: Tensor, reverse: bool) -> Tensor:
    return sequence[0 if reverse else -1]


def _states_before(sequence: Tensor, first: Tensor, reverse: bool) -> Tensor:
    """The state before each time step."""
    return torch.cat([sequence[1:], first[None]]) if reverse else torch.cat([first[None], sequence[:-1]])


# -- long short-term memory -------------------------------------------------------------------------------------------


@_operator(
    "(Tensor x, Tensor h, Tensor c, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? w_hr, bool reverse)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)
def lstm_layer(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    w_hr: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Hidden states [T, B, P], the last cell [B, H], all cells [T, B, H], gates before activation [4, T, B, H]."""
    given = F.linear(x, w_ih, b_ih)
    hidden, cells, sums = [h] * len(x), [c] * len(x), [c] * len(x)
    for step in steps(len(x), reverse):
        sums[step] = given[step] + F.linear(h, w_hh, b_hh)
        i, f, g, o = sums[step].chunk(4, -1)
        cells[step] = c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        hidden[step] = h = _projected(o.sigmoid() * c.tanh(), w_hr)
    gates = torch.stack(sums).unflatten(-1, (4, -1)).permute(2, 0, 1, 3).contiguous()
    return torch.stack(hidden), c.clone(), torch.stack(cells), gates


def _projected(h: Tensor, w_hr: Tensor | None) -> Tensor:
    return h if w_hr is None else F.linear(h, w_hr)


@_shapes(lstm_layer)
def _(x: Tensor, h: Tensor, c: Tensor, *others: Any) -> tuple[Tensor, ...]:
    sequence = x.shape[:2]
    shapes = [(*sequence, h.shape[-1]), c.shape, (*sequence, c.shape[-1]), (4, *sequence, c.shape[-1])]
    return tuple([x.new_empty(shape) for shape in shapes])


@_operator(
    "(Tensor grad, Tensor? grad_c, Tensor by_hidden, Tensor by_cell, Tensor forget, Tensor w_hh, Tensor? w_hr,"
    " bool reverse) -> (Tensor, Tensor, Tensor, Tensor)"
)
def lstm_backward(
    grad: Tensor,
    grad_c: Tensor | None,
    by_hidden: Tensor,
    by_cell: Tensor,
    forget: Tensor,
    w_hh: Tensor,
    w_hr: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of all hidden states [T, B, P], of all cells [T, B, H], and of the states before the first step.

    The factors are derivatives: `by_hidden` [T, 2, B, H] of a hidden state (before its projection) with respect to the
    gate o and the cell, `by_cell` [T, 3, B, H] of a cell with respect to the gates i, f, g, `forget` [T, B, H] of a
    cell with respect to the cell before.
    """
    count, _, batch, size = by_hidden.shape
    after_h = grad.new_zeros(grad.shape[1:])
    after_c = grad.new_zeros(batch, size) if grad_c is None else grad_c
    hidden, cells = [after_h] * count, [after_c] * count
    for step in steps(count, not reverse):
        hidden[step] = grad[step] + after_h
        raw = hidden[step] if w_hr is None else hidden[step] @ w_hr
        cells[step] = after_c + raw * by_hidden[step, 1]
        gates = [*(cells[step] * by_cell[step]), raw * by_hidden[step, 0]]
        after_h = torch.cat(gates, -1) @ w_hh
        after_c = cells[step] * forget[step]
    return torch.stack(hidden), torch.stack(cells), after_h, after_c


@_shapes(lstm_backward)
def _(grad: Tensor, grad_c: Tensor | None, by_hidden: Tensor, by_cell: Tensor, forget: Tensor, *others: Any) -> Any:
    empty = grad.new_empty
    return empty(grad.shape), empty(forget.shape), empty(grad.shape[1:]), empty(forget.shape[1:])


def _lstm_saved(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, h, c, w_ih, w_hh, b_ih, _, w_hr, ctx.reverse = inputs
    hidden, _, cells, sums = output
    ctx.save_for_backward(x, h, c, w_ih, w_hh, w_hr, hidden, cells, sums)
    ctx.has_bias = b_ih is not None
    ctx.mark_non_differentiable(cells, sums)
    ctx.set_materialize_grads(False)


def _lstm_gradient(ctx: Any, grad: Tensor | None, grad_c: Tensor | None, *unused: Any) -> tuple:
    x, h, c, w_ih, w_hh, w_hr, hidden, cells, sums = ctx.saved_tensors
    grad = torch.zeros_like(hidden) if grad is None else grad
    i, f, o = sums[0].sigmoid(), sums[1].sigmoid(), sums[3].sigmoid()
    g, cell = sums[2].tanh(), cells.tanh()
    before = _states_before(cells, c, ctx.reverse)
    by_gates = [g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)]
    by_hidden = [cell * o * (1 - o), o * (1 - cell * cell)]
    grad_hidden, grad_cells, grad_h0, grad_c0 = torch.ops.torch_ttnn.lstm_backward(
        grad, grad_c, torch.stack(by_hidden, 1), torch.stack(by_gates, 1), f, w_hh, w_hr, ctx.reverse
    )
    raw = grad_hidden if w_hr is None else grad_hidden @ w_hr
    gates = torch.cat([*[grad_cells * each for each in by_gates], raw * by_hidden[0]], -1)
    grad_w_hr = None if w_hr is None else _weight_gradient(grad_hidden, o * cell)
    given, recurrent = _layer_gradients(ctx, gates, gates, x, _states_before(hidden, h, ctx.reverse), w_ih)
    return given[0], grad_h0, grad_c0, given[1], recurrent[0], given[2], recurrent[1], grad_w_hr, None


def _weight_gradient(grad: Tensor, given: Tensor) -> Tensor:
    """The weight gradient of a linear layer without bias, over all time steps at once."""
    return grad.flatten(0, 1).T @ given.flatten(0, 1)


def _layer_gradients(
    ctx: Any, of_given: Tensor, of_recurrent: Tensor, x: Tensor, before: Tensor, w_ih: Tensor
) -> tuple[tuple, tuple]:
    """Gradients of x, w_ih, b_ih and of w_hh, b_hh from those of the gates [T, B, gates]."""
    grad_x = of_given @ w_ih if ctx.needs_input_grad[0] else None
    biases = [None, None]
    if ctx.has_bias:
        biases = [of_given.sum((0, 1)), of_recurrent.sum((0, 1))]  # type: ignore[list-item]
    given = grad_x, _weight_gradient(of_given, x), biases[0]
    return given, (_weight_gradient(of_recurrent, before), biases[1])


torch.library.register_autograd(f"{NAMESPACE}::lstm_layer", _lstm_gradient, setup_context=_lstm_saved, lib=LIBRARY)


# -- gated recurrent units and plain ones -----------------------------------------------------------------------------


@_operator(
    "(Tensor x, Tensor h, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, bool reverse) -> (Tensor, Tensor)"
)
def gru_layer(
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """Hidden states [T, B, H]; r, z, n before activation and the operand of r, [4, T, B, H]."""
    given = F.linear(x, w_ih, b_ih)
    hidden, sums = [h] * len(x), [h] * len(x)
    for step in steps(len(x), reverse):
        xr, xz, xn = given[step].chunk(3, -1)
        hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, -1)
        r, z = xr + hr, xz + hz
        n = xn + r.sigmoid() * hn
        sums[step] = torch.stack([r, z, n, hn])
        new = n.tanh()
        hidden[step] = h = new + z.sigmoid() * (h - new)
    return torch.stack(hidden), torch.stack(sums, 1)


@_shapes(gru_layer)
def _(x: Tensor, h: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[:2], h.shape[-1])
    return x.new_empty(shape), x.new_empty((4, *shape))


@_operator(
    "(Tensor x, Tensor h, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, str activation, bool reverse) -> Tensor"
)
def rnn_layer(
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    activation: str,
    reverse: bool,
) -> Tensor:
    """Hidden states [T, B, H]."""
    given = F.linear(x, w_ih, b_ih)
    hidden = [h] * len(x)
    for step in steps(len(x), reverse):
        hidden[step] = h = ACTIVATIONS[activation](given[step] + F.linear(h, w_hh, b_hh))
    return torch.stack(hidden)


@_shapes(rnn_layer)
def _(x: Tensor, h: Tensor, *others: Any) -> Tensor:
    return x.new_empty((*x.shape[:2], h.shape[-1]))


@_operator("(Tensor grad, Tensor by_gates, Tensor? kept, Tensor w_hh, bool reverse) -> (Tensor, Tensor)")
def recurrent_backward(
    grad: Tensor, by_gates: Tensor, kept: Tensor | None, w_hh: Tensor, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of all hidden states [T, B, H], and of the one before the first step.

    The factors are derivatives: `by_gates` [T, G, B, H] of a hidden state with respect to its gates, `kept` [T, B, H]
    with respect to the hidden state before, other than through gates.
    """
    after = grad.new_zeros(grad.shape[1:])
    hidden = [after] * len(grad)
    for step in steps(len(grad), not reverse):
        hidden[step] = grad[step] + after
        after = torch.cat([*(hidden[step] * by_gates[step])], -1) @ w_hh
        if kept is not None:
            after = after + hidden[step] * kept[step]
    return torch.stack(hidden), after


@_shapes(recurrent_backward)
def _(grad: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return grad.new_empty(grad.shape), grad.new_empty(grad.shape[1:])


def _gru_saved(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, h, w_ih, w_hh, b_ih, _, ctx.reverse = inputs
    ctx.save_for_backward(x, h, w_ih, w_hh, *output)
    ctx.has_bias = b_ih is not None
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _gru_gradient(ctx: Any, grad: Tensor | None, *unused: Any) -> tuple:
    x, h, w_ih, w_hh, hidden, sums = ctx.saved_tensors
    grad = torch.zeros_like(hidden) if grad is None else grad
    r, z, n = sums[0].sigmoid(), sums[1].sigmoid(), sums[2].tanh()
    before = _states_before(hidden, h, ctx.reverse)
    by_n = (1 - z) * (1 - n * n)
    by_gates = [by_n * sums[3] * r * (1 - r), (before - n) * z * (1 - z), by_n * r]
    grad_hidden, grad_h0 = torch.ops.torch_ttnn.recurrent_backward(grad, torch.stack(by_gates, 1), z, w_hh, ctx.reverse)
    of_recurrent = torch.cat([grad_hidden * each for each in by_gates], -1)
    of_given = torch.cat([grad_hidden * each for each in (*by_gates[:2], by_n)], -1)
    given, recurrent = _layer_gradients(ctx, of_given, of_recurrent, x, before, w_ih)
    return given[0], grad_h0, given[1], recurrent[0], given[2], recurrent[1], None


torch.library.register_autograd(f"{NAMESPACE}::gru_layer", _gru_gradient, setup_context=_gru_saved, lib=LIBRARY)


def _rnn_saved(ctx: Any, inputs: tuple, output: Tensor) -> None:
    x, h, w_ih, w_hh, b_ih, _, ctx.activation, ctx.reverse = inputs
    ctx.save_for_backward(x, h, w_ih, w_hh, output)
    ctx.has_bias = b_ih is not None


def _rnn_gradient(ctx: Any, grad: Tensor) -> tuple:
    x, h, w_ih, w_hh, hidden = ctx.saved_tensors
    slope = 1 - hidden * hidden if ctx.activation == "tanh" else (hidden > 0).to(hidden.dtype)
    grad_hidden, grad_h0 = torch.ops.torch_ttnn.recurrent_backward(grad, slope[:, None], None, w_hh, ctx.reverse)
    gates = grad_hidden * slope
    given, recurrent = _layer_gradients(ctx, gates, gates, x, _states_before(hidden, h, ctx.reverse), w_ih)
    return given[0], grad_h0, given[1], recurrent[0], given[2], recurrent[1], None, None


torch.library.register_autograd(f"{NAMESPACE}::rnn_layer", _rnn_gradient, setup_context=_rnn_saved, lib=LIBRARY)
