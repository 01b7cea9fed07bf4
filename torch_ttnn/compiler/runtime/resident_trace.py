"""Traces of programs whose inputs and results stay on the device.

A replay reads and writes fixed buffers. Tensors that are there at every call (a parameter, a cache, the results of
another trace) are read where they are. One that is another tensor from call to call is copied into a buffer of the
trace; a large one (the cache of the next text) only if it is another tensor at each call, else the trace is captured
again. Results are the trace's own buffers, from the first call on: one that is still in use at the next replay is moved
out of them first, by a copy.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import torch.fx

from torch_ttnn.compiler.ir.metadata import NUMBER, SPEC
from torch_ttnn.compiler.runtime.trace import Parts, TracedProgram
from torch_ttnn.devices import Target

MOST_MOVES = 8  # of an input among the results of traces: then it is copied in every call
# Values of an input that is copied rather than capturing the trace again. One that is written is copied both ways.
SMALL, SMALL_AND_WRITTEN = 1 << 18, 1 << 14


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
        outputs = parts.after[-1].args[0]
        self._kept = [place for place, node in enumerate(parts.downloaded) if node in outputs]  # type: ignore[operator]
        self._changing: set[int] = set()  # inputs that are other tensors from call to call
        self._moves: Counter[int] = Counter()  # by input: how often it was another trace's result
        self._small = {NUMBER[node] for node in parts.residents if SPEC[node].spec.volume <= self._limit(node)}
        self._moved: set[int] = set()  # large inputs for which the trace has been captured again by the last call
        self._read: dict[int, Any] = {}  # input: the tensor that replays read
        self._in_use: list[tuple[Any, weakref.ref[Owner]]] = []  # results, and what they are part of
        self._results_of_traces = target.border.results_of_traces

    def __call__(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        if self._made_from is None or any(one is not other for one, other in zip(self._made_from, weights)):
            return self._first(weights, inputs)
        read = self._read
        moved = [each for each in self._numbers if inputs[each] is not read[each] and each not in self._changing]
        if moved:
            self._note_moved(moved, inputs)
            return self._first(weights, inputs)
        self._moved = set()
        ttnn = self._target.border.ttnn
        for number in self._changing:
            ttnn.copy(inputs[number], read[number])
        self._move_out()
        outputs = self._replay(weights, inputs)
        for number in self._written:
            if number in self._changing:
                ttnn.copy(read[number], inputs[number])
        return outputs

    def _limit(self, node: torch.fx.Node) -> int:
        return SMALL_AND_WRITTEN if NUMBER[node] in self._written else SMALL

    def _note_moved(self, moved: Sequence[int], inputs: Sequence[Any]) -> None:
        """Decide which inputs are copied from now on; for the others the trace is captured again."""
        own = {id(result) for result in self._results}
        for number in moved:
            self._moves[number] += 1
            if id(inputs[number]) in own:  # a replay writes it before it has read all of it
                is_changing = True
            elif id(inputs[number]) in self._results_of_traces:  # fixed until that trace is captured again
                is_changing = self._moves[number] > MOST_MOVES
            else:
                is_changing = number in self._small or number in self._moved
            if is_changing:
                self._changing.add(number)
        self._moved = set(moved)

    def _first(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        return super().__call__(weights, inputs) if not self._has_room else self._capture(weights, inputs)

    def _recorded(self, weights: list[Any], inputs: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        """Capture the trace; the results that stay on the device become those of its own buffers."""
        ttnn = self._target.border.ttnn
        self._read = {
            number: ttnn.clone(inputs[number]) if number in self._changing else inputs[number]
            for number in self._numbers
        }
        every: list[Any] = [None] * len(inputs)
        for number, tensor in self._read.items():
            every[number] = tensor
        super()._recorded(weights, every, results)
        handed_out = list(results)
        for place in self._kept:
            ttnn.copy(results[place], self._results[place])
            handed_out[place] = self._results[place]
        self._results_of_traces.update(id(self._results[place]) for place in self._kept)
        return handed_out

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
        for place in self._kept if self._results else ():
            self._results_of_traces.discard(id(self._results[place]))
        super().release()
        self._read = {}
        self._in_use = []
