"""Warm calls as one captured trace: inputs are copied into persistent buffers, and the device replays the rest.

A program can be traced if no host operation is between uploading inputs and downloading outputs. A capture requires
all device programs to be compiled, so it follows the first ordinary run.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.metadata import MOVE, PATH, REASON, SPEC, Move
from torch_ttnn.compiler.runtime.direct_replay import DirectReplay
from torch_ttnn.compiler.runtime.dispatch_modes import unobserved
from torch_ttnn.compiler.stages import emit
from torch_ttnn.devices import Target

log = logging.getLogger("torch_ttnn")


class Parts:
    """A main graph split in three: before the device, on it, and after it."""

    def __init__(self, graph: torch.fx.Graph, weights: dict[torch.fx.Node, int]) -> None:
        self.before: list[torch.fx.Node] = []
        self.body: list[torch.fx.Node] = []
        self.after: list[torch.fx.Node] = []
        self.is_whole = True  # no host operation is between
        kinds: dict[torch.fx.Node, str] = {}
        for node in graph.nodes:
            kind = kinds[node] = self._kind(node, kinds, weights)
            if kind in ("before", "body", "after"):
                getattr(self, kind).append(node)
        self.placeholders = [node for node, kind in kinds.items() if kind in ("input", "weight", "resident")]
        self.residents = [node for node, kind in kinds.items() if kind == "resident"]
        self.uploaded = [node for node in self.before if any(kinds[user] == "body" for user in node.users)]
        self.downloaded = [node for node in self.body if any(kinds[user] == "after" for user in node.users)]
        if any(kinds.get(node) == "before" for after in self.after for node in after.all_input_nodes):
            self.is_whole = False  # an uploaded input is also an output: rare, and a trace gains nothing
        if any(user in self.after for node in self.written() for user in node.users):
            self.is_whole = False  # it downloads what a replay has overwritten

    def written(self) -> list[torch.fx.Node]:
        """The inputs on the device that the program writes."""
        targets = [node.args[1] for node in self.body if PATH.get(node) == "ttnn.copy"]
        return [node for node in self.residents if node in targets]

    def _kind(self, node: torch.fx.Node, kinds: dict[torch.fx.Node, str], weights: dict[torch.fx.Node, int]) -> str:
        if node.op == "placeholder":
            if node in weights:
                return "weight"
            return "resident" if SPEC.on(node) else "input"
        if node.op == "output":
            return "after"
        if REASON.on(node) or MOVE.get(node) is Move.RANDOM_STATE:  # a trace would replay the same random numbers
            self.is_whole = False
        inputs = {kinds[each] for each in node.all_input_nodes}
        path, move = PATH.get(node), MOVE.get(node)
        if path == "ttnn.from_torch" or (move is not None and move.is_upload):
            if not inputs <= {"input", "before"}:
                self.is_whole = False
            return "before"
        if path == "ttnn.to_torch" or (move is not None and move.is_download) or "after" in inputs:
            return "after"
        return "body"


class TracedProgram:
    """Runs a whole program as a trace; captures it again when weights change."""

    def __init__(self, parts: Parts, weights: dict[torch.fx.Node, int], target: Target) -> None:
        self._target = target
        self._has_room = True  # for the trace on the device
        self._made_from: list[Any] | None = None
        self._trace: Any = None
        self._buffers: Sequence[Any] = ()
        self._results: Sequence[Any] = ()
        self._upload, self._body, self._download = _functions(parts, weights)
        self._direct_replay = (
            DirectReplay.of(parts, functools.partial(_function, weights=weights)) if target.is_emulator else None
        )

    def __call__(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        if not self._has_room:
            outputs = self._without_trace(weights, inputs)
            self._buffers = ()
            return outputs
        if self._made_from is None or any(one is not other for one, other in zip(self._made_from, weights)):
            return self._capture(weights, inputs)
        if self._direct_replay is None or self._target.border.has_listeners:
            return self._replay(weights, inputs)
        outputs = self._direct_replay(weights, inputs)
        if outputs is None:
            outputs = self._replay(weights, inputs)
            self._direct_replay.prepare(self._target.device, self._trace, self._buffers, self._results)
        return outputs

    def _replay(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        ttnn, device = self._target.border.ttnn, self._target.device
        for made, buffer in zip(self._upload(ttnn, None, inputs), self._buffers):
            ttnn.copy_host_to_device_tensor(made, buffer)
        ttnn.execute_trace(device, self._trace, cq_id=0, blocking=True)
        return self._download(ttnn, weights, inputs, self._results)

    def _without_trace(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        ttnn, device = self._target.border.ttnn, self._target.device
        self._buffers = self._upload(ttnn, device, inputs)
        results = self._body(ttnn, device, weights, inputs, self._buffers)
        return self._download(ttnn, weights, inputs, results)

    @unobserved()
    def _capture(self, weights: list[Any], inputs: Sequence[Any]) -> Any:
        self.release()
        outputs = self._without_trace(weights, inputs)
        try:
            self._record(weights, inputs)
        except RuntimeError as error:  # the program itself has just run
            self.release()
            self._has_room = False
            log.warning("a program runs without a trace from now on, call by call: %s", error)
        return outputs

    def _record(self, weights: list[Any], inputs: Sequence[Any]) -> None:
        """Capture the trace; tensors among the inputs that are on the device are those that every replay reads."""
        ttnn, device = self._target.border.ttnn, self._target.device
        trace = ttnn.begin_trace_capture(device, cq_id=0)
        try:
            self._results = self._body(ttnn, device, weights, inputs, self._buffers)
        finally:  # an interrupted capture must not leave the device recording
            ttnn.end_trace_capture(device, trace, cq_id=0)
            self._trace = trace
        self._made_from = list(weights)

    def release(self) -> None:
        """Free the buffers; the next call captures the trace again."""
        if self._trace is not None and self._target.is_open:
            self._target.ttnn.release_trace(self._target.device, self._trace)
        self._trace = self._made_from = None
        if self._direct_replay is not None:
            self._direct_replay.forget()
        self._buffers = self._results = ()

    def __del__(self) -> None:
        self.release()


def _functions(parts: Parts, weights: dict[torch.fx.Node, int]) -> list[Callable[..., Any]]:
    inputs = [node for node in parts.placeholders if node not in weights]
    weight_nodes = [node for node in parts.placeholders if node in weights]
    write = functools.partial(_function, weights=weights)
    return [
        write("upload(ttnn, device, inputs)", inputs, parts.before, result=parts.uploaded),
        write(
            "body(ttnn, device, weights, inputs, uploaded)",
            [*weight_nodes, *parts.residents],
            parts.body,
            parts.uploaded,
            parts.downloaded,
        ),
        write("download(ttnn, weights, inputs, made)", [*inputs, *weight_nodes], parts.after, parts.downloaded),
    ]


def _function(
    signature: str,
    placeholders: Sequence[torch.fx.Node],
    nodes: Sequence[torch.fx.Node],
    given: Sequence[torch.fx.Node] = (),
    result: Sequence[torch.fx.Node] | None = None,
    *,
    weights: dict[torch.fx.Node, int],
) -> Callable[..., Any]:
    """A part as a function: unpacks its arguments, and returns `result` unless it ends with the graph's output."""
    read = {each for node in nodes for each in node.all_input_nodes}
    own = [node for node in placeholders if node in read]
    source = emit.function_source(signature, [*own, *nodes], weights, kept=result or ())
    head, _, rest = source.partition("\n")
    name, _, parameters = signature.partition("(")
    if given:
        last = parameters.rstrip(")").split(", ")[-1]
        head += f"\n{emit.INDENT}{emit.literal(tuple(given))} = {last}"
    if result is not None:
        rest += f"{emit.INDENT}return {emit.literal(tuple(result))}\n"
    return emit.compiled(f"{head}\n{rest}", name, nodes)
