"""ttnn.experimental.broadcast_to."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/bcast_to/bcast_to.cpp, input_shape
MOST_DIMENSIONS = 4


@operation("ttnn.experimental.broadcast_to")
def broadcast_to(
    input: Spec, output_shape: Any, *, memory_config: MemoryConfig | None = None, output: Spec | None = None
) -> Plan:
    """A tensor repeated along its dimensions of size 1, and along new ones in front."""
    shape = tuple(output_shape)
    require(
        input.rank <= len(shape),
        f"{list(input.shape)}: output_shape must be at least as large as the broadcast shape, not {list(shape)}",
    )
    require(len(shape) <= MOST_DIMENSIONS, f"{list(shape)} must be at most {MOST_DIMENSIONS}D")
    require(len(shape) >= 2, f"{list(shape)} has less than two dimensions")
    for ours, wanted in zip(reversed(input.shape), reversed(shape)):
        require(ours in (wanted, 1), f"size {ours} cannot be broadcast to output dimension {wanted}: {list(shape)}")
    require_tile(input)
    require_on_device(input)
    config = memory_of(memory_config, input)
    require(
        not input.is_sharded and not config.is_sharded(),
        "bcast_to: Invalid input memory config or output memory config, both must be interleaved",
    )
    if output is not None:
        require(output.shape == shape, f"the output is {list(output.shape)}, requested is {list(shape)}")
        require(output.layout is input.layout, f"the output must be in {input.layout}, it is in {output.layout}")
        require(output.dtype is input.dtype, f"the output must be {input.dtype}, it is {output.dtype}")
    out = output or Spec.of(shape, input.dtype, input.layout, config)
    within_tiles = (1, 1, *input.shape)[-2:] != shape[-2:]  # else whole tiles are copied, bit for bit

    def compute(x: Any) -> Any:
        x = flush(x) if within_tiles and x.is_floating_point() else x
        return contiguous(x.expand(shape))

    return Plan(out, compute, reads=("input",), into=into(output, "output"))
