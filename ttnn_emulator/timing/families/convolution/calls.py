"""`ttnn.conv2d` and its relatives, from the emulator's plan or from a call list."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.convolution.plans import planned_launches
from ttnn_emulator.timing.families.convolution.records import recorded_launches
from ttnn_emulator.timing.launches import Launch


@prices("ttnn.conv2d", "ttnn.conv1d", "ttnn.conv_transpose2d")
def convolution(call: Call) -> Sequence[Launch]:
    if call.work is not None:
        outcome, math = call.work
        return planned_launches(call, outcome, math.fidelity)
    return recorded_launches(call)


@prices(
    "ttnn.prepare_conv_weights",
    "ttnn.prepare_conv_bias",
    "ttnn.prepare_conv_transpose2d_weights",
    "ttnn.prepare_conv_transpose2d_bias",
    "ttnn.conv3d.spread_groups",
    "ttnn.prepare_grid_sample_grid.on_host",
)
def on_host(call: Call) -> Sequence[Launch]:
    """The host prepares weights and grids."""
    return []
