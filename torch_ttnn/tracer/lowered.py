"""What the compiler does with one operation, determined by compiling a graph of this operation alone.

The answer is one of these:

    device       nothing is left for torch to compute in a call: TT-NN calls, a free view, or a constant that is
                 computed once
    host         torch computes it in every call; the reason says why
    decomposed   it is decomposed first; without a reason all its parts run on the device, else the reason names one
                 that stays on the host
    (empty)      the query failed; the reason says why

The compiler treats weights as static and knows constants, so the query marks both. In the whole graph the outcome can
differ, because fusions match several operations; `torch_ttnn.explain` shows it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn import devices
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.compiler.pipeline import STAGES, Compilation
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.tracer.calls import Verdict
from torch_ttnn.tracer.questions import Question, as_graph

DEVICE, HOST, DECOMPOSED = "device", "host", "decomposed"
MOST_ANSWERS = 4096  # cached answers; a large transformer makes some fifty queries
NOT_STRIDED = "sparse and other non-strided tensors have no counterpart on the device"
VALUE_DEPENDENT = "its result depends on values, so torch.compile leaves it to Python"


class Lowerings:
    """Answers queries for one board and caches the answers."""

    def __init__(self, device: Any = "emulator", most: int = MOST_ANSWERS) -> None:
        self.device = device
        self.most = most
        self.asked = 0
        self._answers: OrderedDict[Question, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._options: TorchTtnnOption | None = None

    def of(self, question: Question) -> Verdict:
        """What becomes of an operation."""
        with self._lock:
            known = self._answers.get(question)
            if known is not None:
                self._answers.move_to_end(question)
                return known
            self.asked += 1
            answer = self._answers[question] = self._ask(question)
            if len(self._answers) > self.most:
                self._answers.popitem(last=False)
            return answer

    def _ask(self, question: Question) -> Verdict:
        if not question.is_strided:
            return Verdict(HOST, NOT_STRIDED)
        with _disable_current_modes(), torch.no_grad(), _no_autocast():
            fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
            try:
                graph_module = as_graph(question, fake_mode)
            except (DataDependentOutputException, DynamicOutputShapeException):
                return Verdict(HOST, VALUE_DEPENDENT)
            except (UnsupportedOperatorException, NotImplementedError) as error:
                return Verdict(HOST, f"torch cannot infer its result without running it: {_first_line(error)}")
            except Exception as error:  # the model runs on; the record says that the answer is unknown
                return Verdict("", f"the compiler could not be queried: {_first_line(error)}")
            try:
                left = self._left_to_host(graph_module, question.statics, fake_mode)
            except Exception as error:  # a bug of the compiler must not stop the traced model
                return Verdict(HOST, f"the compiler fails on it: {_first_line(error)}")
        return _verdict(question.op, graph_module.graph, left)

    def _left_to_host(
        self, graph_module: torch.fx.GraphModule, statics: Sequence[int], fake_mode: FakeTensorMode
    ) -> list[tuple[Any, str]]:
        """Run the compiler's stages; returns what stays on the host, and why."""
        if self._options is None:
            self._options = TorchTtnnOption(debug=())
        target = devices.resolve(self.device)
        compilation = Compilation(graph_module, statics, target, self._options, fake_mode)
        for stage in STAGES:
            stage.run(compilation)
        assert compilation.lowered is not None
        return [(node.target, REASON[node]) for node in compilation.lowered.main.nodes if REASON.on(node)]


def _verdict(op: Any, graph: torch.fx.Graph, left: list[tuple[Any, str]]) -> Verdict:
    parts = [node.target for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    if op in parts:
        return Verdict(HOST, left[0][1]) if left else Verdict(DEVICE)
    if not left:
        return Verdict(DECOMPOSED)
    part, reason = left[0]
    return Verdict(DECOMPOSED, f"{part}: {reason}")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _no_autocast() -> Any:
    return torch.autocast("cpu", enabled=False)
