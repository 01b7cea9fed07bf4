"""moreh_softmax, moreh_softmin and moreh_logsoftmax with their gradients."""

from __future__ import annotations

import math
from typing import Any

import torch

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.moreh.norms import softmax_gradient, tiles_of
from ttnn_emulator.numerics.programs.normalization.softmax import softmax_general
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.moreh.checks import TILE, settings_of
from ttnn_emulator.ops.normalization.softmax import SMALL_KERNEL_LIMIT
from ttnn_emulator.ops.support.common_checks import into, math_config, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

FORWARD = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32)
BACKWARD = (DataType.BFLOAT16, DataType.BFLOAT8_B)
STRATEGIES = {-1: ("SMALL_W", "LARGE_W"), -2: ("SMALL_H", "LARGE_H")}


def _member(value: Any) -> str:
    """The name of an enum's member. The library does not export these enums; their defaults are known by name."""
    return str(value).rsplit(".", 1)[-1]


def _in_pieces(strategy: Any, from_end: int, whole_line: int) -> bool:
    """Whether the large kernel runs: by the strategy, or because a whole row or column does not fit."""
    chosen = _member(strategy)
    fits = current_board().l1_base + whole_line <= SMALL_KERNEL_LIMIT
    names = STRATEGIES.get(from_end, ("LARGE_C",))
    if chosen == "NONE":
        return from_end < -2 or not fits
    require(chosen in names, f"strategy {chosen} is not for this dimension, but {' or '.join(names)}")
    small = chosen.startswith("SMALL")
    require(fits or not small, f"there is not enough L1 for strategy {chosen}")
    return not small


def _softmax(
    spec: Spec, dim: int, output: Spec | None, op: Any, strategy: Any, memory: MemoryConfig | None, given: Any
) -> Plan:
    require_on_device(spec)
    require_tile(spec)
    require(spec.dtype in FORWARD, f"the input is {spec.dtype}, supported are BFLOAT16, BFLOAT8_B and FLOAT32")
    require(0 <= dim < spec.rank, f"dimension {dim} is not between 0 and {spec.rank - 1}")
    config = math_config(given, fidelity=MathFidelity.HiFi4, fp32_acc=spec.dtype is DataType.FLOAT32)
    from_end = dim - spec.rank
    pieces = _in_pieces(strategy, from_end, _line_bytes(spec, from_end, config))
    middle = DataType.FLOAT32 if config.fp32_acc else spec.dtype
    out = output if output is not None else spec.with_(memory_config=memory or spec.memory_config)
    dtype = spec.dtype
    options: dict[str, Any] = {
        "negative": _member(op) == "SOFTMIN",
        "logarithm": _member(op) == "LOGSOFTMAX",
        "in_pieces": pieces,
        "middle": middle,
    }
    return Plan(
        out,
        lambda x: _written(softmax_general(x, from_end, dtype, config, **options), out),
        reads=("input_tensor",),
        into=into(output, "output_tensor"),
    )


def _written(values: torch.Tensor, out: Spec) -> torch.Tensor:
    """The kernel ignores the output's shape: it writes the result's tiles in order."""
    if tuple(values.shape) == tuple(out.shape):
        return values
    made, kept = (tiles_of(each[None, None, None])[0] for each in (values, values.new_zeros(tuple(out.shape))))
    count = min(len(made), len(kept))
    kept[:count] = made[:count]
    *batches, height, width = (1, 1, *out.shape)
    rows = kept.unflatten(0, (math.prod(batches), div_up(height, TILE), div_up(width, TILE))).transpose(-2, -3)
    return rows.flatten(-2).flatten(1, 2)[:, :height, :width].reshape(tuple(out.shape))


def _line_bytes(spec: Spec, from_end: int, config: MathConfig) -> int:
    """L1 of the kernel that buffers a whole row or column of tiles."""
    if from_end < -2:
        return 0
    tiles = div_up(spec.shape[from_end], TILE)
    own = tile_bytes(spec.tile, spec.dtype)
    middle = 4096 if config.fp32_acc else own
    scaler = 2048 if spec.dtype is DataType.BFLOAT8_B else own
    return 2 * tiles * own + 3 * scaler + (2 * tiles + 3) * middle


def _gradient(
    y: Spec, dy: Spec, dim: int, output: Spec | None, op: Any, strategy: Any, memory: MemoryConfig | None, given: Any
) -> Plan:
    for spec, name in ((y, "output_tensor"), (dy, "output_grad_tensor")):
        require_on_device(spec, name)
        require_tile(spec, name)
        require(spec.dtype in BACKWARD, f"{name} is {spec.dtype}, supported are BFLOAT16 and BFLOAT8_B")
    require(0 <= dim < y.rank, f"dimension {dim} is not between 0 and {y.rank - 1}")
    config = settings_of(given)
    from_end = dim - y.rank
    tiles = div_up(y.shape[from_end], TILE) if from_end >= -2 else 0
    pieces = _in_pieces(strategy, from_end, (3 * tiles + 6) * tile_bytes(y.tile, y.dtype))
    out = output if output is not None else y.with_(memory_config=memory or y.memory_config)
    dtype = y.dtype
    negative, logarithm = _member(op) == "SOFTMIN", _member(op) == "LOGSOFTMAX"
    return Plan(
        out,
        lambda a, b: _written(
            softmax_gradient(a, b, from_end, dtype, config, negative=negative, logarithm=logarithm, in_pieces=pieces),
            out,
        ),
        reads=("output_tensor", "output_grad_tensor"),
        into=into(output, "input_grad_tensor"),
    )


def _forward_operation(name: str, summary: str) -> None:
    default = name.upper()

    @operation(f"ttnn.moreh_{name}")
    def forward(
        input_tensor,
        dim,
        *,
        output_tensor=None,
        op=default,
        strategy="NONE",
        memory_config=None,
        compute_kernel_config=None,
    ):
        return _softmax(input_tensor, dim, output_tensor, op, strategy, memory_config, compute_kernel_config)

    forward.__doc__ = summary


def _backward_operation(name: str, summary: str) -> None:
    default = name.upper()

    @operation(f"ttnn.moreh_{name}_backward")
    def backward(
        output_tensor,
        output_grad_tensor,
        dim,
        *,
        input_grad_tensor=None,
        op=default,
        strategy="NONE",
        memory_config=None,
        compute_kernel_config=None,
    ):
        arguments = (dim, input_grad_tensor, op, strategy, memory_config, compute_kernel_config)
        return _gradient(output_tensor, output_grad_tensor, *arguments)

    backward.__doc__ = summary


for _name, _formula in (("softmax", "softmax"), ("softmin", "softmax of -x"), ("logsoftmax", "log of softmax")):
    _forward_operation(_name, f"{_formula} along a dimension.")
    _backward_operation(_name, f"The gradient of the {_formula}.")
