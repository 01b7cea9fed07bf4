"""The device operations of a program on any board: its calls repeated on tensors that have specs and no values.

The library chooses the programs of a call by the board's core grid and architecture. So for another board than the
one that a program was compiled for, every call is typed again there, with the same arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.ir.arguments import DeviceMarker, call_with, mapped
from torch_ttnn.compiler.ir.metadata import MOVE, PATH, SPEC, Move
from torch_ttnn.compiler.runtime.border import library_function
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.perf.planned_operations import PlannedOperations
from torch_ttnn.perf.program_walk import Kind, walked
from ttnn_emulator import MeshDevice, MeshShape, Tensor
from ttnn_emulator.execution.listeners import listening
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.storage import SpecStorage


@dataclass(frozen=True)
class DeviceCall:
    """A call of the program, and the device operations that it consists of."""

    node: torch.fx.Node
    operations: tuple[CallRecord, ...]


def one_chip(board: Board) -> Board:
    """What a call on one chip depends on: equal for boards with the same chip and grid."""
    return dataclasses.replace(board, name="", mesh=(1, 1), dispatch="")


def typing_device(board: Board, like: MeshDevice) -> MeshDevice:
    """A device that types calls on one chip of a board: `like`, which knows its plans already, if its chip is equal."""
    if one_chip(like.board) == one_chip(board) and like.is_open:
        return like
    return MeshDevice(
        board,
        shape=MeshShape(1, 1),
        device_ids=[0],
        l1_small_size=like.l1_small_size,
        trace_region_size=like.trace_region_size,
        holds_values=False,
    )


def device_calls(program: Program, device: MeshDevice) -> Iterator[DeviceCall]:
    """The calls of a program in order, without moves between host and device. Raises the device's error for a call
    that it refuses."""
    env: dict[torch.fx.Node, Any] = {}

    def value_of(item: Any) -> Any:
        if isinstance(item, torch.fx.Node):
            return item.meta["val"] if MOVE.get(item) is Move.RANDOM_STATE else env.get(item)  # a seed
        return device if isinstance(item, DeviceMarker) else item

    def placed(item: Any) -> Any:
        is_there = isinstance(item, Tensor) and item.spec.on_device
        return Tensor.of(item.spec, SpecStorage(device), device) if is_there else item

    operations = PlannedOperations()
    for node, kind in walked(program):
        if kind is Kind.ELEMENT:
            whole = value_of(node.args[0])
            env[node] = None if whole is None else whole[node.args[1]]  # type: ignore[index]
        elif kind in (Kind.INPUT, Kind.UPLOAD):
            env[node] = mapped(SPEC.get(node), placed)
        elif kind is Kind.CALL:
            with listening(operations):
                env[node] = call_with(library_function(ttnn_emulator, PATH[node]), node.args, node.kwargs, value_of)
            records, _ = operations.taken()
            yield DeviceCall(node, records)
