"""Tokens sent to the chips of their experts, and results sent back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.collectives.exchanges import gather_launch, route_of_call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import planned_run

FAMILY = "expert exchange"
DISPATCH, COMBINE = "AllToAllDispatchDeviceOperation", "AllToAllCombineDeviceOperation"


def _chips(call: Call) -> int:
    axis = call.arguments.get("cluster_axis")
    return call.board.chips if axis is None else call.board.mesh[int(axis)]


@prices("ttnn.prim.all_to_all_dispatch")
def dispatch(call: Call) -> Sequence[Launch]:
    """Every chip gets the tokens that chose one of its experts: as a gather of that part of them."""
    tokens, chosen = call.tensors[:2]
    count = chosen.shape[-1] if chosen.shape else 1
    part = 1.0 - (1.0 - 1.0 / max(call.board.chips, 2)) ** count
    launch = gather_launch(
        planned_run(call, DISPATCH, call.tensors), route_of_call(call, _chips(call)), tokens, tokens, part
    )
    return [replace(launch, family=FAMILY)]


@prices("ttnn.prim.all_to_all_combine")
def combine(call: Call) -> Sequence[Launch]:
    """A token gets a row from every expert that it chose, if the expert is on a chip of the group."""
    results, out = call.tensors[0], call.outputs[0]
    chips = _chips(call)
    part = chips / max(call.board.chips, 1) / max(chips, 1)
    launch = gather_launch(planned_run(call, COMBINE, call.tensors), route_of_call(call, chips), out, results, part)
    return [replace(launch, family=FAMILY)]
