"""Gradients of recurrent layers: the loop over states, from the last step to the first, unrolled in the program.

Gates are a separate dimension here, [T, gates, B, H]. One multiplication yields the gradients of all gates. One batched
product with the weights, [gates, H, H], and a sum over gates yield the gradient of the previous state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.frontend.recurrent_operators import steps
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.recurrent.forward import at, joined, require_few_steps
from torch_ttnn.compiler.lowering.registry import lowers

operators = torch.ops.torch_ttnn


class _Loop:
    """State shared by both loops."""

    def __init__(self, ttnn: Any, builder: ProgramBuilder, grad: Value, w_hh: Value, gates: int, reverse: bool) -> None:
        require_few_steps(grad.shape[0])
        self.ttnn, self.builder = ttnn, builder
        self.count, self.batch, self.size = grad.shape
        self.order = steps(self.count, not reverse)
        self.grad = _apart(grad).tile()
        self.weight = w_hh.view((1, gates, w_hh.shape[0] // gates, w_hh.shape[1])).tile()
        self.after: Handle | None = None  # the contribution of the next step to the gradient of a hidden state

    def hidden(self, step: int) -> Handle:
        """The gradient of a hidden state, [1, 1, B, size]."""
        own = at(self.ttnn, self.grad, step)
        return own if self.after is None else self.ttnn.add(own, self.after)

    def through_gates(self, gates: Handle) -> Handle:
        """The gradient of the previous hidden state from those of the gates, [1, gates, B, H]."""
        options = {"compute_kernel_config": self.builder.accurate}
        result = self.ttnn.matmul(gates, self.weight, **options)
        return result if gates.shape[1] == 1 else self.ttnn.sum(result, dim=1, keepdim=True, **options)

    def sequence(self, result: Sequence[Handle]) -> Handle:
        """All steps, concatenated, [T, B, size]."""
        ordered = [result[step] for step in self.order] if self.order[0] else list(result)
        whole = joined(self.ttnn, ordered)
        return self.builder.reshaped(whole, (self.count, *whole.shape[2:]))

    def last(self, handle: Handle) -> Handle:
        return self.builder.reshaped(handle, handle.shape[2:])


def _apart(sequence: Value) -> Value:
    """[T, B, H] as [T, 1, B, H]."""
    return sequence.view((sequence.shape[0], 1, *sequence.shape[1:]))


@lowers(operators.lstm_backward.default)
def lstm_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    grad_c: Value | None,
    by_hidden: Value,
    by_cell: Value,
    forget: Value,
    w_hh: Value,
    w_hr: Value | None,
    reverse: bool,
) -> tuple[Handle, ...]:
    loop = _Loop(ttnn, builder, grad, w_hh, 4, reverse)
    hidden_factors, cell_factors, kept = by_hidden.tile(), by_cell.tile(), _apart(forget).tile()
    projection = None if w_hr is None else w_hr.tile()
    after = None if grad_c is None else grad_c.view((1, 1, *grad_c.shape)).tile()
    hidden: list[Handle] = []
    cells: list[Handle] = []
    for step in loop.order:
        hidden.append(loop.hidden(step))
        raw = hidden[-1]
        if projection is not None:
            raw = ttnn.matmul(raw, projection, compute_kernel_config=builder.accurate)
        both = ttnn.multiply(raw, at(ttnn, hidden_factors, step))
        of_gate, of_cell = [_gate(ttnn, both, number) for number in range(2)]
        cells.append(of_cell if after is None else ttnn.add(of_cell, after))
        gates = ttnn.concat([ttnn.multiply(cells[-1], at(ttnn, cell_factors, step)), of_gate], dim=1)
        loop.after = loop.through_gates(gates)
        after = ttnn.multiply(cells[-1], at(ttnn, kept, step))
    assert loop.after is not None and after is not None
    return loop.sequence(hidden), loop.sequence(cells), loop.last(loop.after), loop.last(after)


def _gate(ttnn: Any, gates: Handle, number: int) -> Handle:
    return ttnn.slice(gates, [0, number, 0, 0], [1, number + 1, *gates.shape[2:]])


@lowers(operators.recurrent_backward.default)
def recurrent_backward(
    ttnn: Any, builder: ProgramBuilder, grad: Value, by_gates: Value, kept: Value | None, w_hh: Value, reverse: bool
) -> tuple[Handle, ...]:
    loop = _Loop(ttnn, builder, grad, w_hh, by_gates.shape[1], reverse)
    factors = by_gates.tile()
    past = None if kept is None else _apart(kept).tile()
    hidden: list[Handle] = []
    for step in loop.order:
        hidden.append(loop.hidden(step))
        loop.after = loop.through_gates(ttnn.multiply(hidden[-1], at(ttnn, factors, step)))
        if past is not None:
            loop.after = ttnn.add(loop.after, ttnn.multiply(hidden[-1], at(ttnn, past, step)))
    assert loop.after is not None
    return loop.sequence(hidden), loop.last(loop.after)
