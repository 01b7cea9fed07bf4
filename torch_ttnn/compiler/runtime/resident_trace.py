"""Traces of programs whose inputs and results stay on the device.

A replay reads and writes fixed buffers. Tensors that are there at every call (a parameter, a cache) are read where they
are. One that is another tensor from call to call is copied into a buffer of the trace. Results are the trace's own
buffers: one that is still in use at the next replay is moved out of them first, by a copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import torch.fx

from torch_ttnn.compiler.ir.metadata import NUMBER
from torch_ttnn.compiler.runtime.trace import Parts, TracedProgram
from torch_ttnn.devices import Target


class Owner(Protocol):
    """What a result is part of: it can be moved to another tensor of the device."""

    payload: Any
    __weakref__: Any


class ResidentTrace(TracedProgram):
    """A trace that reads tensors on the device in place, and leaves its results there."""

    def __init__(self, parts: Parts, weights: dict[torch.fx.Node, int], target: Target) -> None:
        super().__init__(parts, weights, target)
        self._numbers = [NUMBER[node] for node in parts.residents]
        self._written = [NUMBER[node] for node in parts.written()]
        self._changing: set[int] = set()  # inputs that are other tensors from call to call
        self._read: dict[int, Any] = {}  # input: the tensor that replays read
        self._in_use: list[tuple[Any, weakref.ref[Owner]]] = []  # results, and what they are part of

    def __call__(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        if self._made_from is None or any(one is not other for one, other in zip(self._made_from, weights)):
            return self._first(weights, inputs)
        read = self._read
        moved = [each for each in self._numbers if inputs[each] is not read[each] and each not in self._changing]
        if moved:
            self._changing.update(moved)
            return self._first(weights, inputs)
        ttnn = self._target.border.ttnn
        for number in self._changing:
            ttnn.copy(inputs[number], read[number])
        self._move_out()
        outputs = self._replay(weights, inputs)
        for number in self._written:
            if number in self._changing:
                ttnn.copy(read[number], inputs[number])
        return outputs

    def _first(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        return super().__call__(weights, inputs) if not self._has_room else self._capture(weights, inputs)

    def _record(self, weights: list[Any], inputs: Sequence[Any]) -> None:
        clone = self._target.border.ttnn.clone
        own = {id(result) for result in self._results}
        self._changing.update(number for number in self._numbers if id(inputs[number]) in own)
        self._read = {
            number: clone(inputs[number]) if number in self._changing else inputs[number] for number in self._numbers
        }
        every: list[Any] = [None] * len(inputs)
        for number, tensor in self._read.items():
            every[number] = tensor
        super()._record(weights, every)

    def hand_out(self, result: Any, owner: Owner) -> None:
        """Note what a result has become part of."""
        self._in_use.append((result, weakref.ref(owner)))

    def _move_out(self) -> None:
        """Copy results that are still in use: the replay writes their buffers."""
        clone = self._target.border.ttnn.clone
        for result, reference in self._in_use:
            owner = reference()
            if owner is not None and owner.payload is result:
                owner.payload = clone(result)
        self._in_use.clear()

    def release(self) -> None:
        super().release()
        self._read = {}
        self._in_use = []
