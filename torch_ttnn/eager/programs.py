"""Programs of one operation: compiled at the first use by the compiler's own stages, then looked up by their call.

Inputs that are on the device stay there, and so do results.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from torch_ttnn.compiler.analysis.nan_inputs import has_nan
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.ir.resident import Residents
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.eager.arguments import Call
from torch_ttnn.eager.capture import Captured, captured
from torch_ttnn.eager.device.boards import Board
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.results import Result
from torch_ttnn.eager.views import Geometry
from torch_ttnn.options import TorchTtnnOption

MOST_PROGRAMS = 4096


class OneOperation:
    """The program of one operation, and what becomes of its outputs.

    on_host  its operations that run on the host, with the reasons
    written  the indices of the storages that it writes; their values are the last outputs
    """

    def __init__(self, program: Program, made: Captured, board: Board, scalars: int) -> None:
        self.program = program
        self.board = board
        self.written = made.written
        self.on_host = [(target_name(node), REASON[node]) for node in program.graph.nodes if REASON.on(node)]
        self._lists = made.results
        self.is_checked = bool(program.bounds) or scalars > 0  # before each run
        outputs: Any = made.graph_module.graph.output_node().args[0]
        kept = program.kept or [None] * len(outputs)
        facts = [
            None if node is None else Result.of(node.meta["val"], stays, board) for node, stays in zip(outputs, kept)
        ]
        self._new = facts[: len(facts) - len(made.written)]
        self._values = facts[len(self._new) :]

    def beyond(self, call: Call) -> str:
        """Why the program must not run with these inputs; an empty string if it may."""
        storages = call.storages
        for number, bounds in self.program.bounds:
            if number < len(storages):
                is_within = bounds.include(storages[number].bounds()) or call.views_within(number, bounds)
            else:
                is_within = bounds.hold(call.scalars[number - len(storages)])
            if not is_within:
                return f"its input {number} has values beyond {bounds.low} to {bounds.high}"
        for tensor in call.scalars:
            if has_nan(tensor):
                return "an input has NaN, which the device does not preserve"
        return ""

    def run(self, call: Call) -> list[Any]:
        """Run the program, write storages, and return the new results as the operation returns them."""
        with quiet():
            outputs = self.program.run(call.inputs)
        board = self.board
        made: list[Any] = [None if fact is None else fact.tensor(each, board) for fact, each in zip(self._new, outputs)]
        for slot, fact, each in zip(self.written, self._values, outputs[len(made) :]):
            fact.write(call.storages[slot], each)  # type: ignore[union-attr]
        if all(count is None for count in self._lists):
            return made
        tensors = iter(made)
        return [next(tensors) if count is None else [next(tensors) for _ in range(count)] for count in self._lists]


@functools.cache
def options() -> TorchTtnnOption:
    """The options of programs of one operation: float32 is computed in float32, as torch's dtype says."""
    return TorchTtnnOption(precision="float32", trace=False, cache_dir="", warn=False)


_programs: OrderedDict[Any, OneOperation] = OrderedDict()
_lock = threading.RLock()


def program_of(call: Call, new: Sequence[int]) -> OneOperation:
    """The program of a call, compiled if there is none; raises NotCaptured."""
    board = call.storages[0].board
    found = _programs.get(call.key)
    if found is not None and found.board is board and found.program.target is board.target:
        return found
    with _lock, quiet():
        found = _programs[call.key] = _compiled(call, new, board)
        if len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    return found


def _compiled(call: Call, new: Sequence[int], board: Board) -> OneOperation:
    inputs = [Geometry(each.size, each.stride, 0, each.dtype) for each in call.storages]
    inputs += [Geometry.of(each) for each in call.scalars]
    made = captured(call.function, *call.pattern(), inputs, new)
    residents = {number: each.resident for number, each in enumerate(call.storages) if each.resident is not None}
    compilation = Compilation(
        made.graph_module, [], board.target, options(), made.fake_mode, Residents(residents, results=True)
    )
    return OneOperation(compile_graph(compilation), made, board, len(call.scalars))


def forget_programs() -> None:
    """Drop all programs: after a lowering was registered, and in tests."""
    with _lock:
        _programs.clear()


def number_of_programs() -> int:
    return len(_programs)
