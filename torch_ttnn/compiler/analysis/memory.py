"""The memory use of a program, simulated on a device that tracks types and sizes but no values.

The simulation makes the program's calls in their order, on an emulated board with unlimited DRAM. So views that share a
buffer, temporary buffers of operations, and frees at the last use all count as they do in a run, and a model of any
size can be measured on any machine.
"""

from __future__ import annotations

import dataclasses
import operator
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.ir.arguments import DeviceMarker, call_with, leaves, mapped
from torch_ttnn.compiler.ir.metadata import MOVE, PATH, SPEC, Move
from torch_ttnn.compiler.runtime.border import library_function
from torch_ttnn.compiler.stages import emit
from torch_ttnn.devices import TRACE_BYTES
from ttnn_emulator import BufferType, EmulatorError, MeshDevice, Tensor
from ttnn_emulator.execution.listeners import Listener, OperationEvent, listening
from ttnn_emulator.hardware.boards import board_names, find_board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import SpecStorage, Storage

ENDLESS = 1 << 50  # bytes per bank: more than any model needs


@dataclass(frozen=True)
class Step:
    """Memory use of one call of the program; bytes of DRAM in all banks, bytes of L1 in one core.

    dram, l1           after the call, when values that it used last are freed
    dram_high, l1_high the peak during the call, including its program's own buffers in L1
    """

    node: str
    dram: int
    l1: int
    dram_high: int
    l1_high: int


@dataclass(frozen=True)
class Memory:
    """The memory use of a program on the device.

    weights    bytes of DRAM that stay allocated between calls
    dram_peak  the peak of DRAM, weights included
    l1_peak    the peak of L1 in one core: tensors, and circular buffers of the running program
    problems   calls that do not fit, with the device's error messages
    """

    weights: int
    dram_peak: int
    l1_peak: int
    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Whether a model fits on a board. `split`: only with its weights split evenly over the chips, an estimate."""

    board: str
    chips: int
    bytes_needed: int
    bytes_there: int
    split: bool

    @property
    def fits(self) -> bool:
        return self.bytes_needed <= self.bytes_there


def measure(program: Any) -> Memory:
    """The memory use of a compiled program, without running it."""
    return _Measured(program, _sizing_device(program.target.typing)).measured()


def together(parts: Sequence[Memory]) -> Memory:
    """The memory use of all programs of one model: all weights stay, and one program runs at a time."""
    weights = sum(part.weights for part in parts)
    running = max((part.dram_peak - part.weights for part in parts), default=0)
    problems = tuple([each for part in parts for each in part.problems])
    return Memory(weights, weights + running, max((part.l1_peak for part in parts), default=0), (), problems)


def fits(memory: Memory) -> list[Fit]:
    """For every board, whether its memory suffices: on one chip, or with weights split evenly over all chips."""
    return [_fit(memory, name) for name in board_names()]


def _fit(memory: Memory, name: str) -> Fit:
    board = find_board(name)
    there = board.dram_banks * board.dram_usable_bank_bytes - TRACE_BYTES
    if memory.dram_peak <= there or board.chips == 1:
        return Fit(name, board.chips, memory.dram_peak, there, False)
    needed = -(-memory.weights // board.chips) + memory.dram_peak - memory.weights
    return Fit(name, board.chips, needed, there, True)


def spec_bytes(spec: Spec) -> int:
    """Size of a stored tensor in bytes, padding included."""
    return spec.num_pages * spec.page_bytes


def specs_of(node: torch.fx.Node) -> list[Spec]:
    """The specs of a node's results; a host value has none."""
    return [tensor.spec for tensor in spec_tensors(node)]


def spec_tensors(node: torch.fx.Node) -> list[Tensor]:
    """The spec tensors of a node's results."""
    return [each for each in leaves(SPEC.get(node)) if isinstance(each, Tensor)]


class _HighWater(Listener):
    """Listens to the operations of one thread, and records the peak of L1 in a core."""

    def __init__(self, device: MeshDevice) -> None:
        self.memory = device.memory(BufferType.L1)
        self.thread = threading.get_ident()
        self.l1 = 0

    def ended(self, event: OperationEvent) -> None:
        if threading.get_ident() == self.thread:
            self.l1 = max(self.l1, self.memory.allocated + event.l1_bytes)


class Walk:
    """A program's calls in their order on a device without values: the weights stay, other values end at last use."""

    def __init__(self, program: Any, device: MeshDevice) -> None:
        self.lowered = program.lowered
        self.parts = program.parts
        self.device = device

    def weights(self) -> dict[torch.fx.Node, Any]:
        """Allocate the results of `prepare` one after the other; intermediate values are freed.

        Inputs that are on the device already count as weights.
        """
        order = {node: number for number, node in enumerate(self.lowered.prepare.nodes)}
        prepared = {here for _, here in self.lowered.weights}
        placeholders = [node for node in self.lowered.main.find_nodes(op="placeholder") if node not in prepared]
        kept = {node: self.allocated(SPEC[node]) for node in placeholders if SPEC.on(node)}
        for made, here in self.lowered.weights:
            env: dict[torch.fx.Node, Any] = {}
            for node in sorted(_ancestors(made), key=order.__getitem__):
                env[node] = self.result(node, env)
            kept[here] = env[made]
        return kept

    def run(self) -> None:
        """Prepare the weights and make all calls."""
        self.calls(self.weights())

    def calls(self, env: dict[torch.fx.Node, Any]) -> None:
        """Make all calls, given the weights."""
        nodes = list(self.lowered.main.nodes)
        kept = set(env)
        if self.parts is not None:  # a trace uploads all inputs first, and keeps its inputs and results
            parts = self.parts
            nodes = [*parts.placeholders, *parts.draw, *parts.before, *parts.body, *parts.after]
            kept |= {*parts.drawn, *parts.uploaded, *parts.downloaded}
        last_uses = emit.last_uses(nodes)
        for node in nodes:
            if node.op != "call_function":
                continue
            self.before(node)
            env[node] = self.result(node, env)
            for used in last_uses.get(node, ()):
                if used not in kept:
                    env.pop(used, None)
            self.after(node)

    def before(self, node: torch.fx.Node) -> None:
        """A call is about to be made."""

    def after(self, node: torch.fx.Node) -> None:
        """A call was made, and what it used last was freed."""

    def result(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
        """The result of a call, or None for a value on the host."""
        path = PATH.get(node)
        if node.target is operator.getitem:
            held = self._value(node.args[0], env)
            return None if held is None else held[node.args[1]]  # type: ignore[index]
        if path == "ttnn.from_torch":
            return self.allocated(SPEC[node])
        if path is None or path == "ttnn.to_torch":
            return None
        function = library_function(ttnn_emulator, path)
        try:
            result = call_with(function, node.args, node.kwargs, lambda item: self._value(item, env))
        except EmulatorError as error:
            result = self.refused(node, error)
        return mapped(result, self.allocated)

    def refused(self, node: torch.fx.Node, error: EmulatorError) -> Any:
        """A call that does not fit; returns what stands for its result."""
        raise error

    def allocated(self, item: Any) -> Any:
        """An allocated tensor, also where an operation returned only its spec."""
        if not isinstance(item, Tensor) or not item.spec.on_device:
            return item
        if not isinstance(item._storage, SpecStorage) and item.device() is self.device:
            return item
        return Tensor.of(item.spec, Storage.on_device(item.spec, self.device), self.device)

    def _value(self, item: Any, env: dict[torch.fx.Node, Any]) -> Any:
        if isinstance(item, torch.fx.Node):
            return item.meta["val"] if MOVE.get(item) is Move.RANDOM_STATE else env.get(item)  # a seed
        return self.device if isinstance(item, DeviceMarker) else item


class _Measured(Walk):
    """A walk that measures memory at every call."""

    def __init__(self, program: Any, device: MeshDevice) -> None:
        super().__init__(program, device)
        self.dram = device.memory(BufferType.DRAM)
        self.l1 = device.memory(BufferType.L1)
        self.high = _HighWater(device)
        self.problems: list[str] = []
        self.steps: list[Step] = []

    def measured(self) -> Memory:
        with listening(self.high):
            kept = self.weights()
            weights = self.dram.allocated * self.dram.banks
            peak = self.dram.peak * self.dram.banks
            self.calls(kept)
        dram_peak = max([peak, *[step.dram_high for step in self.steps]])
        l1_peak = max([self.l1.peak, self.high.l1, *[step.l1_high for step in self.steps]])
        return Memory(weights, dram_peak, l1_peak, tuple(self.steps), tuple(self.problems))

    def before(self, node: torch.fx.Node) -> None:
        self.dram.peak, self.l1.peak, self.high.l1 = self.dram.allocated, self.l1.allocated, self.l1.allocated

    def after(self, node: torch.fx.Node) -> None:
        if PATH.get(node):
            dram_high, l1_high = self.dram.peak * self.dram.banks, max(self.l1.peak, self.high.l1)
            dram = self.dram.allocated * self.dram.banks
            self.steps.append(Step(node.name, dram, self.l1.allocated, dram_high, l1_high))

    def refused(self, node: torch.fx.Node, error: EmulatorError) -> Any:
        self.problems.append(f"{node.name} = {PATH[node]}: {str(error).splitlines()[0]}")
        return SPEC[node]


def _ancestors(node: torch.fx.Node) -> set[torch.fx.Node]:
    found, waiting = {node}, [node]
    while waiting:
        fresh = [each for each in waiting.pop().all_input_nodes if each not in found]
        found.update(fresh)
        waiting += fresh
    return found


def _sizing_device(like: MeshDevice) -> MeshDevice:
    board = dataclasses.replace(like.board, dram_bank_bytes=ENDLESS)
    return MeshDevice(
        board,
        shape=like.shape,
        device_ids=like.get_device_ids(),
        l1_small_size=like.l1_small_size,
        trace_region_size=like.trace_region_size,
        num_command_queues=like.num_command_queues,
        holds_values=False,
    )
