"""The compiled program: prepared weights and a Python function of `ttnn` calls."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._prims_common import make_contiguous_strides_for

from torch_ttnn.compiler.analysis import index_bounds
from torch_ttnn.compiler.analysis.nan_inputs import has_nan, uploaded_floats
from torch_ttnn.compiler.errors import BeyondBounds, ProgramError
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.composites import BeyondDomain
from torch_ttnn.compiler.ir.metadata import KEPT, NUMBER, ORIGIN, OUTPUT_VALS, PATH, PREPARED, REASON, SPEC
from torch_ttnn.compiler.ir.source_lines import failed_call
from torch_ttnn.compiler.lowering.registry import is_random
from torch_ttnn.compiler.runtime.as_captured import run_as_captured
from torch_ttnn.compiler.runtime.resident_trace import Owner, ResidentTrace
from torch_ttnn.compiler.runtime.shared_storage import sharing
from torch_ttnn.compiler.runtime.trace import Parts, TracedProgram
from torch_ttnn.compiler.runtime.weights import Weights
from torch_ttnn.compiler.stages import emit
from torch_ttnn.compiler.stages.lower import Lowered
from torch_ttnn.devices import Target
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator.numerics.mode import numerics

log = logging.getLogger("torch_ttnn")


class Program:
    """One graph, compiled for one set of shapes and one device."""

    def __init__(
        self, lowered: Lowered, captured: torch.fx.GraphModule, target: Target, options: TorchTtnnOption
    ) -> None:
        self.graph = lowered.main
        self.lowered = lowered
        self.captured = captured
        self.target = target
        self.kind = "inference"  # or, in training, "forward" or "backward"
        self.seconds: dict[str, float] = {}
        self.ops_before = 0
        self.fusions: list[Any] = []
        places = {here: number for number, (_, here) in enumerate(lowered.weights)}
        self.weights = Weights(
            lowered.prepare, [made for made, _ in lowered.weights], lowered.statics, target, options.load_params_once
        )
        self.weight_places = places
        self.parts = self._traceable_parts(options)
        kind = ResidentTrace if lowered.residents else TracedProgram
        self._traced = kind(self.parts, places, target) if self.parts is not None else None
        if self._traced is not None:
            self.weights.when_released = self._traced.release
        self._lock = target.lock
        emulated = functools.partial(numerics, options.numerics)
        self._numerics: Callable[[], Any] = emulated if target.is_emulator else contextlib.nullcontext
        self.before_first_call: Callable[[Sequence[Any]], None] | None = None
        output = lowered.main.output_node()
        self.outputs = len({node for node in output.args[0] if isinstance(node, torch.fx.Node)})  # type: ignore[union-attr]
        self._vals = OUTPUT_VALS[output]
        self._outputs = [_finisher(node, val) for node, val in zip(output.args[0], self._vals)]  # type: ignore[arg-type]
        self.kept: Sequence[Any] = KEPT.get(output) or ()
        self._sharing = sharing(captured) if not any(self.kept) else []
        bounds = index_bounds.of_inputs(captured, lowered.statics)
        self.weights.bounds = {number: bounds[number] for number in lowered.statics if number in bounds}
        own = [NUMBER[node] for node in lowered.main.nodes if node.op == "placeholder" and node not in places]
        self.bounds = [(number, bounds[number]) for number in own if number in bounds]
        accepts_nan = "nan" in options.accept
        self.floats = [] if accepts_nan else uploaded_floats(captured.graph, lowered.main, places)
        self.weights.refuse_nan = not accepts_nan
        self.is_random = any(is_random(node.target) for node in captured.graph.nodes)

    @functools.cached_property
    def _forward(self) -> Callable[..., Any]:
        """The whole graph as one function, which runs it without a trace."""
        return emit.compiled(self.source, "forward", self.graph.nodes)

    @property
    def source(self) -> str:
        """The source of the program as it runs."""
        return emit.forward_source(self.graph, self.weight_places)

    @property
    def code(self) -> str:
        """The source of the program with comments, for reading."""
        return emit.forward_source(self.graph, self.weight_places, comments=True)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        for each in inputs:
            if isinstance(each, torch.Tensor) and each.is_meta:
                return [_without_values(val) for val in self._vals]
        for number, bounds in self.bounds:
            if not bounds.hold(inputs[number]):
                log.warning("input %d has values beyond %d to %d: torch runs this call on the host", number, *bounds)
                return self.on_host(inputs)
        for number in self.floats:
            if has_nan(inputs[number]):
                log.warning("input %d has NaN, which the device does not preserve: torch runs this call", number)
                return self.on_host(inputs)
        if self.before_first_call is not None:
            call, self.before_first_call = self.before_first_call, None
            call(inputs)
        random_state = torch.get_rng_state() if self.is_random else None
        # Entering no_grad takes time, and AOTAutograd usually has done so already.
        without_gradients = torch.no_grad() if torch.is_grad_enabled() else contextlib.nullcontext()
        try:
            with self._lock, without_gradients, self._numerics():
                outputs = self._run(inputs)
        except (BeyondBounds, BeyondDomain) as reason:
            log.warning("%s: torch runs this call on the host", reason)
            if random_state is not None:
                torch.set_rng_state(random_state)  # the call draws its numbers once
            return self.on_host(inputs)
        results = [finish(each) if finish is not None else each for finish, each in zip(self._outputs, outputs)]
        for share in self._sharing:
            share(results)
        return results

    def _run(self, inputs: Sequence[Any]) -> Any:
        try:
            weights = self.weights.current(inputs)
            if self._traced is not None:
                return self._traced(weights, inputs)
            return self._forward(self.target.border.ttnn, self.target.device, weights, inputs)
        except (BeyondBounds, BeyondDomain):
            raise
        except Exception as error:
            if not self.target.is_open:
                raise ProgramError(
                    "the device that this program was compiled for is closed; open one and compile again"
                ) from error
            located = _with_source_line(error, self.graph)
            if located is error:
                raise
            raise located from error

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The results as the program returns them, some on the device.

        The caller has checked `bounds` and NaN, and handles BeyondBounds and BeyondDomain.
        """
        with self._lock, self._numerics():
            return self._run(inputs)

    def finished(self, outputs: list[Any]) -> list[Any]:
        """Outputs of the last run with torch's strides; those on the device have them already."""
        return [each if finish is None else finish(each) for finish, each in zip(self._outputs, outputs)]

    def hand_out(self, result: Any, owner: Owner) -> None:
        """Note what a result of the last run, a tensor of the device, has become part of."""
        if isinstance(self._traced, ResidentTrace):
            self._traced.hand_out(result, owner)

    def release(self) -> None:
        """Free what the program keeps on the device; its next run prepares it again."""
        self.weights.release()

    def _traceable_parts(self, options: TorchTtnnOption) -> Parts | None:
        """The graph split in three, if warm calls should and can run as a trace."""
        wanted = self.target.is_emulator if options.trace is None else options.trace
        if wanted and not self.target.can_trace:
            log.warning("a %s cannot capture traces: programs run call by call", self.target.name)
            return None
        parts = Parts(self.graph, self.weight_places) if wanted else None
        return parts if parts is not None and parts.is_whole and parts.body else None

    def on_host(self, inputs: Sequence[Any]) -> list[Any]:
        """Run a call with torch: for integers beyond 32 bits, indices out of range, or too large angles."""
        return run_as_captured(self.captured, inputs)


def _without_values(val: Any) -> Any:
    if not isinstance(val, torch.Tensor):
        return val
    return torch.empty_strided(val.shape, val.stride(), dtype=val.dtype, device="meta")


def _with_source_line(error: Exception, graph: torch.fx.Graph) -> Exception:
    """An error of a call of the program, with the line of the model that the call comes from.

    An error of a host operation keeps torch's type, because the caller may expect it.
    """
    line = emit.failing_line(error)
    name = line.partition(" = ")[0].strip()
    node = next((each for each in graph.nodes if each.name == name), None)
    if node is None:
        return error
    located = failed_call(error, line, ORIGIN.get(node))
    if not REASON.on(node):
        return located
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(str(located).partition("\n")[2])
    return error


def _finisher(node: Any, val: Any) -> Any:
    """The function applied to an output before it is returned: it copies constants and restores torch's strides."""
    if not isinstance(node, torch.fx.Node) or not isinstance(val, torch.Tensor) or SPEC.get(node) is not None:
        return None
    copied = node.op == "placeholder" and PREPARED.on(node)
    if node.op == "placeholder" and not copied:
        return None
    shape, stride = tuple(val.shape), tuple(val.stride())
    is_plain = stride == make_contiguous_strides_for(shape)
    if is_plain and (copied or PATH.get(node) == "ttnn.to_torch"):
        return functools.partial(torch.clone, memory_format=torch.contiguous_format) if copied else None
    is_whole = val.is_contiguous()  # only dimensions of one element may have other strides

    def restride(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.stride() == stride and not copied:
            return tensor
        if is_whole and tensor.is_contiguous() and not copied:
            return tensor.as_strided(shape, stride)
        return composites.copied_to_strides(tensor, stride)

    return restride
