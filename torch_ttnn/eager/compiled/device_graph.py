"""Runs a captured graph of tensors on `ttnn`: takes them where they are, and leaves results and new values there."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_ttnn.compiler.analysis.nan_inputs import has_nan
from torch_ttnn.compiler.errors import BeyondBounds
from torch_ttnn.compiler.frontend.symbolic_numbers import Numbers
from torch_ttnn.compiler.fusion.composites import BeyondDomain
from torch_ttnn.compiler.ir.resident import Residents, Written
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.compiler.runtime.announce import announce
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.runtime.specialisation import concrete, is_symbolic
from torch_ttnn.eager.compiled.graphs import Rewritten, on_host, written_inputs
from torch_ttnn.eager.compiled.integer_ranges import result_bounds
from torch_ttnn.eager.compiled.precision import chosen
from torch_ttnn.eager.device.boards import Board, board_of
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.results import Result
from torch_ttnn.eager.storage import INTEGERS, Place, Storage
from torch_ttnn.eager.tensor import TtnnTensor, whole_of
from torch_ttnn.options import TorchTtnnOption

log = logging.getLogger("torch_ttnn")


class DeviceGraph:
    """Programs of one graph: one for each way in which its inputs are stored."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        inputs: Sequence[Any],
        statics: Sequence[int],
        options: TorchTtnnOption,
        traced: Callable[[Program], None] | None = None,
        kind: str = "inference",
    ) -> None:
        self.graph_module = graph_module
        self.options = options
        self.kind = kind
        self._traced = traced
        self.from_host = False  # programs upload their inputs and download results, as those of models on the CPU
        self.release_with_model: Callable[[], None] = lambda: None
        self._parameters = list(statics)
        self._gone: list[weakref.ref[Storage]] = []  # of the parameters that the programs were compiled for
        # In training, parameters change with every step: the program reads them where they are.
        self._statics = frozenset(statics if kind == "inference" else ())
        self._mode = next((each.fake_mode for each in inputs if hasattr(each, "fake_mode")), None) or FakeTensorMode()
        self.numbers = Numbers(graph_module) if any(is_symbolic(each) for each in inputs) else None
        self._written = frozenset(written_inputs(graph_module.graph))
        self._programs: OrderedDict[Any, OnDevice] = OrderedDict()
        self._lock = threading.RLock()

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if self.numbers is None:
            return self._run(inputs)
        outputs = self._run([*inputs, *self.numbers.operands(inputs)])
        return self.numbers.results(inputs, outputs)

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        views = {number: each for number, each in enumerate(inputs) if each.__class__ is TtnnTensor and each._chain}
        if not views:
            return self._run_whole(inputs)
        whole = [views[number].clone() if number in views else each for number, each in enumerate(inputs)]
        outputs = self._run_whole(whole)
        for number in self._written & views.keys():
            views[number].copy_(whole[number])
        return outputs

    def _run_whole(self, inputs: Sequence[Any]) -> list[Any]:
        """The results for inputs that are no views of other tensors."""
        program = self.program_for(inputs)
        if not self._gone and self._parameters:
            self._watch_parameters(inputs)
        return program.run(inputs)

    def program_for(self, inputs: Sequence[Any]) -> OnDevice:
        """The program for the way in which these inputs are stored, compiled at their first use."""
        for each in inputs:
            if each.__class__ is TtnnTensor and each._held.place is Place.NOWHERE:
                each._held.define()
        key: list[Any] = [each._held.key if each.__class__ is TtnnTensor else None for each in inputs]
        if self.numbers is not None:
            key += [tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in inputs]
        found = self._programs.get(tuple(key))
        return found if found is not None else self._added(tuple(key), inputs)

    def release(self) -> None:
        """Free what the programs keep on the device; their next run prepares it again."""
        self._gone.clear()
        for each in self._programs.values():
            each.program.release()

    def _watch_parameters(self, inputs: Sequence[Any]) -> None:
        """Release the programs when a parameter is gone: their traces refer to its memory."""
        me = weakref.ref(self)

        def when_gone(_: Any) -> None:
            graph = me()
            if graph is not None and graph._gone:
                graph.release_with_model()

        tensors = [inputs[number] for number in self._parameters]
        self._gone = [weakref.ref(each._held, when_gone) for each in tensors if isinstance(each, TtnnTensor)]

    def _added(self, key: tuple, inputs: Sequence[Any]) -> OnDevice:
        with self._lock, quiet():
            found = self._programs[key] = self._compiled(inputs)
            if len(self._programs) > self.options.max_programs:
                self.options.forget(self._programs.popitem(last=False)[1].program)
                log.warning(
                    "a graph was compiled for many ways of storing its inputs, and only %d programs are kept: pad "
                    "inputs to a few sizes, or raise the option max_programs",
                    self.options.max_programs,
                )
        return found

    def _compiled(self, inputs: Sequence[Any]) -> OnDevice:
        graph_module, mode = self.graph_module, self._mode
        if self.numbers is not None:
            graph_module, fakes = concrete(self.numbers.graph_module, inputs)
            mode = next(each.fake_mode for each in fakes if hasattr(each, "fake_mode"))
        rewritten = on_host(graph_module, mode)
        board = _board(inputs)
        storages = {number: each._held for number, each in enumerate(inputs) if isinstance(each, TtnnTensor)}
        residents = {
            number: held.resident
            for number, held in storages.items()
            if held.resident is not None and number not in self._statics
        }
        first = len(rewritten.results)
        written = {first + place: number for place, number in enumerate(rewritten.written)}
        stays = [*rewritten.results, *[number in storages for number in rewritten.written]]
        options = chosen(self.options, rewritten.graph_module)
        compilation = Compilation(
            rewritten.graph_module,
            sorted(self._statics),
            board.target,
            options,
            mode,
            Residents() if self.from_host else Residents(residents, results=stays, written=written),
        )
        program = compile_graph(compilation)
        program.kind = self.kind
        self.options.keep(program)
        announce(program, self.options.compiled, self.options)
        if self._traced is not None:
            self._traced(program)
        return OnDevice(program, rewritten, stays, board, self._statics)


def _board(inputs: Sequence[Any]) -> Board:
    boards = {each._held.board.index: each._held.board for each in inputs if isinstance(each, TtnnTensor)}
    if len(boards) > 1:
        names = ", ".join(str(each.device) for each in boards.values())
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices: {names}")
    return next(iter(boards.values()), None) or board_of()


class OnDevice:
    """One program: from inputs as torch passes them to results as torch expects them."""

    def __init__(
        self, program: Program, rewritten: Rewritten, stays: Sequence[bool], board: Board, statics: frozenset[int]
    ) -> None:
        self.program = program
        self.board = board
        self._graph = rewritten.graph_module
        self._statics = statics
        outputs: Any = self._graph.graph.output_node().args[0]
        kept = program.kept or [None] * len(outputs)
        vals = [each.meta.get("val") if isinstance(each, torch.fx.Node) else None for each in outputs]
        self._facts = [
            Result.of(val, how, board)
            if here and isinstance(val, torch.Tensor) and how is not Written.IN_PLACE
            else None
            for val, how, here in zip(vals, kept, stays)
        ]
        self._in_place = [how is Written.IN_PLACE for how in kept]
        self._results = len(rewritten.results)
        self._written = rewritten.written
        self._integers = {
            place: node
            for place, node in enumerate(outputs)
            if stays[place] and isinstance(node, torch.fx.Node) and node.meta["val"].dtype in INTEGERS
        }

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The results for these inputs; the values of inputs that the graph writes are changed."""
        beyond = self._beyond(inputs)
        if beyond:
            return self._on_host(inputs, beyond)
        passed = [self._passed(number, each) for number, each in enumerate(inputs)]
        random_state = torch.get_rng_state() if self.program.is_random else None
        known = self._bounds_of_results(inputs) if self._integers else {}
        try:
            with quiet():
                outputs = self.program.run(passed)
        except (BeyondBounds, BeyondDomain) as reason:
            if random_state is not None:
                torch.set_rng_state(random_state)
            return self._on_host(inputs, str(reason))
        return self._taken(inputs, outputs, known)

    def _passed(self, number: int, item: Any) -> Any:
        if item.__class__ is not TtnnTensor:
            return item
        return item._held if number in self._statics else item._held.payload

    def _beyond(self, inputs: Sequence[Any]) -> str:
        """Why the program must not run with these inputs; an empty string if it may."""
        for number, bounds in self.program.bounds:
            item = inputs[number]
            if isinstance(item, TtnnTensor):
                held = item._held.bounds()
                is_within = held.low >= bounds.low and held.high <= bounds.high
            else:
                is_within = bounds.hold(item)
            if not is_within:
                return f"input {number} has values beyond {bounds.low} to {bounds.high}"
        for number in self.program.floats:
            item = inputs[number]
            if has_nan(item._held.host() if isinstance(item, TtnnTensor) else item):
                return f"input {number} has NaN, which the device does not preserve"
        return ""

    def _bounds_of_results(self, inputs: Sequence[Any]) -> dict[int, Any]:
        return result_bounds(self._graph, self._integers, inputs)

    def _taken(self, inputs: Sequence[Any], outputs: Sequence[Any], known: dict[int, Any]) -> list[Any]:
        """Results as tensors, and new values in the storages of inputs."""
        made: list[Any] = []
        for place, each in enumerate(outputs[: self._results]):
            fact = self._facts[place]
            if fact is None:
                made.append(each)
                continue
            tensor = fact.tensor(each, self.board)
            self._note(tensor._held, each, place, known)
            made.append(tensor)
        for place, number in enumerate(self._written, self._results):
            fact = self._facts[place]
            if self._in_place[place]:
                inputs[number]._held.note_written(known.get(place))
            elif fact is None:  # a tensor of the host
                inputs[number].copy_(outputs[place])
            else:
                fact.write(inputs[number]._held, outputs[place])
                self._note(inputs[number]._held, outputs[place], place, known)
        return self.program.finished(made)

    def _note(self, held: Storage, payload: Any, place: int, known: dict[int, Any]) -> None:
        if held.place is Place.DEVICE:
            self.program.hand_out(payload, held)
            if place in known:
                held.keep_bounds(known[place])

    def _on_host(self, inputs: Sequence[Any], reason: str) -> list[Any]:
        log.warning("%s: torch runs this call on the host", reason)
        return self.on_host(inputs)

    def on_host(self, inputs: Sequence[Any]) -> list[Any]:
        """Run a call with torch, and upload its results."""
        with quiet(), torch.no_grad():
            hosts = [each._held.host() if isinstance(each, TtnnTensor) else each for each in inputs]
            outputs = self.program.on_host(hosts)
            made = list(outputs[: self._results])
            for place, each in enumerate(made):
                if self._facts[place] is not None:
                    made[place] = self._uploaded(place, each)
            for place, number in enumerate(self._written, self._results):
                tensor = inputs[number]
                if isinstance(tensor, TtnnTensor):
                    tensor._held.upload(outputs[place])
                else:
                    tensor.copy_(outputs[place])
        return made

    def _uploaded(self, place: int, tensor: torch.Tensor) -> TtnnTensor:
        return whole_of(Storage.of(tensor, self.board))
