"""Recurrent layers: one product for the inputs of all time steps, then a loop unrolled in the program.

Gates are concatenated in the columns of one matrix, each padded to whole tiles, so that a step needs one product and
slices gates at tile boundaries. Padding stays zero in all states: it only meets rows and columns of zeros. Sums and
cells are float32, since a cell accumulates over the whole sequence; hidden states are in the dtype that the matrix unit
multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.frontend.recurrent_operators import steps
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.data_movement.padding import padded
from torch_ttnn.compiler.lowering.products.matmul import product
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.preparation import prepares
from ttnn_emulator import TILE_SIZE, DataType

operators = torch.ops.torch_ttnn

FLOAT32 = DataType.FLOAT32
MOST_JOINED = 32  # tensors per `ttnn.concat`; kernel arguments grow with them


MOST_STEPS = 4096  # of an unrolled loop: some 45,000 calls for an LSTM, which take 15 s to record


def require_few_steps(count: int) -> None:
    if count > MOST_STEPS:
        refuse(f"a loop of {count} steps is too long to unroll; the limit is {MOST_STEPS}")


def in_tiles(size: int) -> int:
    """Rounded up to whole tiles."""
    return -(-size // TILE_SIZE) * TILE_SIZE


@prepares
def gate_columns(weight: torch.Tensor, gates: int, rows: int) -> torch.Tensor:
    """[gates x H, K] as [rows, gates x columns]: transposed, and each gate padded to whole tiles."""
    size, inputs = weight.shape[0] // gates, weight.shape[1]
    by_gate = F.pad(weight.view(gates, size, inputs), (0, rows - inputs, 0, in_tiles(size) - size))
    return by_gate.flatten(0, 1).T


@prepares
def gate_row(bias: torch.Tensor, gates: int) -> torch.Tensor:
    """[gates x H] as one row, each gate padded to whole tiles."""
    by_gate = bias.view(gates, -1)
    return F.pad(by_gate, (0, in_tiles(by_gate.shape[1]) - by_gate.shape[1])).reshape(1, -1)


@prepares
def recurrent_bias_of_new_gate(bias: torch.Tensor) -> torch.Tensor:
    """Of a GRU: r multiplies it, so it cannot be merged into the input bias, as those of r and z can."""
    return torch.cat([torch.zeros_like(bias[: 2 * len(bias) // 3]), bias[2 * len(bias) // 3 :]])


@prepares
def joint_bias_of_gru(input_bias: torch.Tensor, recurrent: torch.Tensor) -> torch.Tensor:
    """The bias of the input projection: both biases of r and z, the input bias of n."""
    return input_bias + recurrent - recurrent_bias_of_new_gate(recurrent)


def _columns(ttnn: Any, builder: ProgramBuilder, weight: Value, gates: int, rows: int) -> Value:
    if weight.is_static:
        return weight.prepared(gate_columns, gates, rows)
    size, inputs = weight.shape[0] // gates, weight.shape[1]
    by_gate = padded(
        ttnn, builder, weight.view((gates, size, inputs)), [(0, 0), (0, in_tiles(size) - size), (0, rows - inputs)], 0.0
    )
    return by_gate.view((gates * in_tiles(size), rows)).permute((1, 0))


def _row(ttnn: Any, builder: ProgramBuilder, bias: Value | None, gates: int) -> Value | None:
    if bias is None:
        return None
    if bias.is_static:
        return bias.prepared(gate_row, gates)
    size = bias.numel // gates
    return padded(ttnn, builder, bias.view((gates, size)), [(0, 0), (0, in_tiles(size) - size)], 0.0).view(
        (1, gates * in_tiles(size))
    )


def _sum(ttnn: Any, builder: ProgramBuilder, one: Value | None, other: Value | None) -> Value | None:
    if one is None or other is None:
        return one or other
    if one.is_static and other.is_static:
        return one.prepared(torch.add, other)
    return builder.value(ttnn.add(one, other), one.shape, one.dtype)


def _state(ttnn: Any, builder: ProgramBuilder, state: Value, dtype: DataType) -> Handle:
    """The state before the first step, [1, B, columns]."""
    whole = state.view((1, *state.shape))
    missing = in_tiles(state.shape[-1]) - state.shape[-1]
    if whole.is_static:
        return whole.prepared(torch.constant_pad_nd, [0, missing]).tile(dtype)
    return padded(ttnn, builder, whole, [(0, 0), (0, 0), (0, missing)], 0.0).tile(dtype)


def joined(ttnn: Any, handles: Sequence[Handle], dim: int = 0) -> Handle:
    """Concatenates in batches of limited size."""
    while len(handles) > 1:
        groups = [handles[start : start + MOST_JOINED] for start in range(0, len(handles), MOST_JOINED)]
        handles = [ttnn.concat(group, dim=dim) if len(group) > 1 else group[0] for group in groups]
    return handles[0]


def at(ttnn: Any, sequence: Handle, step: int) -> Handle:
    """One time step, which is the first dimension."""
    if sequence.shape[0] == 1:
        return sequence
    return ttnn.slice(sequence, [step, *[0] * (len(sequence.shape) - 1)], [step + 1, *sequence.shape[1:]])


def columns_at(ttnn: Any, sequence: Handle, step: int, start: int, end: int) -> Handle:
    """Columns of one time step of [T, B, columns]."""
    return ttnn.slice(sequence, [step, 0, start], [step + 1, sequence.shape[1], end])


def columns_from(ttnn: Any, handle: Handle, start: int, end: int) -> Handle:
    if (start, end) == (0, handle.shape[-1]):
        return handle
    return ttnn.slice(handle, [0, 0, start], [*handle.shape[:-1], end])


class Layer:
    """Shared by all layer types: the input projection, and the conversion of results."""

    def __init__(self, ttnn: Any, builder: ProgramBuilder, x: Value, w_hh: Value, gates: int, reverse: bool) -> None:
        require_few_steps(x.shape[0])
        self.ttnn, self.builder, self.gates = ttnn, builder, gates
        self.count, self.batch = x.shape[:2]
        self.hidden = w_hh.shape[0] // gates  # features per gate
        self.width = in_tiles(self.hidden)
        self.order = steps(self.count, reverse)
        self.x = x

    def of_inputs(self, w_ih: Value, bias: Value | None) -> Handle:
        """The input projection of all steps, [T, B, gates]."""
        columns = _columns(self.ttnn, self.builder, w_ih, self.gates, w_ih.shape[1])
        return product(
            self.ttnn, self.builder, self.x, columns, _row(self.ttnn, self.builder, bias, self.gates), dtype=FLOAT32
        )

    def recurrent(self, w_hh: Value) -> Handle:
        return _columns(self.ttnn, self.builder, w_hh, self.gates, in_tiles(w_hh.shape[1])).tile()

    def times(self, h: Handle, weight: Handle, bias: Handle | None = None, dtype: DataType = FLOAT32) -> Handle:
        options = {"compute_kernel_config": self.builder.accurate, "dtype": dtype}
        if bias is None:
            return self.ttnn.matmul(h, weight, **options)
        return self.ttnn.linear(h, weight, bias=bias, **options)

    def gate(self, sums: Handle, number: int) -> Handle:
        return columns_from(self.ttnn, sums, number * self.width, (number + 1) * self.width)

    def sequence(self, result: Sequence[Handle], size: int) -> Handle:
        """States of all steps, in the order of computation, as [T, B, size]."""
        ordered = [result[step] for step in self.order] if self.order[0] else list(result)
        return columns_from(self.ttnn, joined(self.ttnn, ordered), 0, size)

    def stacked(self, sums: Sequence[Handle], gates: int) -> Handle:
        """Gates of all steps as [gates, T, B, H]."""
        whole = self.sequence(sums, gates * self.width)
        parts = [
            columns_from(self.ttnn, whole, gate * self.width, gate * self.width + self.hidden) for gate in range(gates)
        ]
        return self.builder.reshaped(self.ttnn.concat(parts, dim=0), (gates, self.count, self.batch, self.hidden))


def _function(ttnn: Any, name: str) -> list[Any]:
    return [ttnn.UnaryWithParam(getattr(ttnn.UnaryOpType, name))]


@lowers(operators.lstm_layer.default)
def lstm_layer(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    h: Value,
    c: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
    w_hr: Value | None,
    reverse: bool,
) -> tuple[Any, ...]:
    layer = Layer(ttnn, builder, x, w_hh, 4, reverse)
    projected = layer.of_inputs(w_ih, _sum(ttnn, builder, b_ih, b_hh))
    weight = layer.recurrent(w_hh)
    projection = None if w_hr is None else _columns(ttnn, builder, w_hr, 1, layer.width).tile()
    hidden, cell = _state(ttnn, builder, h, builder.float_dtype), _state(ttnn, builder, c, FLOAT32)
    sigmoid, tanh = _function(ttnn, "SIGMOID"), _function(ttnn, "TANH")
    states: list[Handle] = []
    cells: list[Handle] = []
    gates: list[Handle] = []
    for step in layer.order:
        sums = ttnn.add(layer.times(hidden, weight), at(ttnn, projected, step))
        i, f, g, o = [layer.gate(sums, number) for number in range(4)]
        new = ttnn.multiply(i, g, input_tensor_a_activations=sigmoid, input_tensor_b_activations=tanh)
        cell = ttnn.add(ttnn.multiply(f, cell, input_tensor_a_activations=sigmoid), new)
        hidden = ttnn.multiply(
            o, cell, input_tensor_a_activations=sigmoid, input_tensor_b_activations=tanh, dtype=builder.float_dtype
        )
        if projection is not None:
            hidden = layer.times(hidden, projection, dtype=builder.float_dtype)
        states.append(hidden)
        cells.append(cell)
        gates.append(sums)
    return (
        layer.sequence(states, h.shape[-1]),
        columns_from(ttnn, cell, 0, layer.hidden),
        layer.sequence(cells, layer.hidden) if 2 in builder.used else None,
        layer.stacked(gates, 4) if 3 in builder.used else None,
    )


@lowers(operators.gru_layer.default)
def gru_layer(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    h: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
    reverse: bool,
) -> tuple[Any, ...]:
    layer = Layer(ttnn, builder, x, w_hh, 3, reverse)
    of_new, joint = _gru_biases(ttnn, builder, b_ih, b_hh)
    projected = layer.of_inputs(w_ih, joint)
    weight = layer.recurrent(w_hh)
    bias = None if of_new is None else of_new.tile()
    hidden = _state(ttnn, builder, h, builder.float_dtype)
    sigmoid, tanh = _function(ttnn, "SIGMOID"), _function(ttnn, "TANH")
    width = layer.width
    states: list[Handle] = []
    gates: list[Handle] = []
    for step in layer.order:
        of_hidden = layer.times(hidden, weight, bias)
        sums = ttnn.add(columns_at(ttnn, projected, step, 0, 2 * width), columns_from(ttnn, of_hidden, 0, 2 * width))
        r, z, kept = layer.gate(sums, 0), layer.gate(sums, 1), layer.gate(of_hidden, 2)
        part = ttnn.multiply(r, kept, input_tensor_a_activations=sigmoid)
        n = ttnn.add(columns_at(ttnn, projected, step, 2 * width, 3 * width), part)
        # tanh(n) + sigmoid(z) (h - tanh(n))
        change = ttnn.subtract(hidden, n, input_tensor_b_activations=tanh, dtype=FLOAT32)
        part = ttnn.multiply(z, change, input_tensor_a_activations=sigmoid)
        hidden = ttnn.add(part, n, input_tensor_b_activations=tanh, dtype=builder.float_dtype)
        states.append(hidden)
        if 1 in builder.used:
            gates.append(ttnn.concat([sums, n, kept], dim=-1))
    return layer.sequence(states, layer.hidden), layer.stacked(gates, 4) if gates else None


def _gru_biases(
    ttnn: Any, builder: ProgramBuilder, b_ih: Value | None, b_hh: Value | None
) -> tuple[Value | None, Value | None]:
    """The bias of the recurrent projection (a row of gates), and that of the input projection."""
    if b_ih is None or b_hh is None:
        return None, b_ih
    if b_ih.is_static and b_hh.is_static:
        return b_hh.prepared(recurrent_bias_of_new_gate).prepared(gate_row, 3), b_ih.prepared(joint_bias_of_gru, b_hh)
    return _row(ttnn, builder, b_hh, 3), b_ih


@lowers(operators.rnn_layer.default)
def rnn_layer(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    h: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None,
    b_hh: Value | None,
    activation: str,
    reverse: bool,
) -> Handle:
    layer = Layer(ttnn, builder, x, w_hh, 1, reverse)
    projected = layer.of_inputs(w_ih, _sum(ttnn, builder, b_ih, b_hh))
    weight, hidden = layer.recurrent(w_hh), _state(ttnn, builder, h, builder.float_dtype)
    function = _function(ttnn, activation.upper())
    states: list[Handle] = []
    for step in layer.order:
        sums = layer.times(hidden, weight)
        hidden = ttnn.add(sums, at(ttnn, projected, step), activations=function, dtype=builder.float_dtype)
        states.append(hidden)
    return layer.sequence(states, layer.hidden)
