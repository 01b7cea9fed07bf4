"""`torch_ttnn.tracer.tracing`: records everything that runs in a block, without `torch.compile`."""

from __future__ import annotations

import linecache
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_ttnn.tracer.calls import Call, record
from torch_ttnn.tracer.facts import facts_of
from torch_ttnn.tracer.graphs import UNNAMED
from torch_ttnn.tracer.options import TracerOption
from torch_ttnn.tracer.questions import about_call
from torch_ttnn.tracer.recording import Recording
from torch_ttnn.tracer.records import BACKWARD, FORWARD, Record

MOST_RECORDS = 10_000  # kept in memory, then written as one more graph
TORCH = f"{Path(torch.__file__).parent}{os.sep}"  # with the separator: torchvision is next to it


@contextmanager
def tracing(model_name: str = "", *, options: Any = None, **fields: Any) -> Iterator[None]:
    """Record every operation that this thread runs in the block, forward and backward.

    >>> import os, tempfile, torch, torch_ttnn
    >>> model, folder = torch.nn.Linear(8, 4), tempfile.TemporaryDirectory()
    >>> with torch_ttnn.tracer.tracing("linear", out_folder=folder.name):
    ...     model(torch.ones(2, 8)).sum().backward()
    >>> sorted(os.listdir(f"{folder.name}/raw"))
    ['bw_linear_0.json', 'fw_linear_0.json']

    The options are those of `TracerOption`. It works for any model, also one that `torch.compile` cannot capture, and
    records what eager torch runs. So it differs from the backend `torch_stat`:

    - In-place operations are recorded as they are (`aten.relu_.default`), and so are operations between what would be
      graphs. Repeated calls are recorded every time.
    - A new graph begins where a forward operation follows a backward one, and after ten thousand operations, so that
      memory use stays small. A forward that is computed again during backward (checkpointing) counts as
      backward.
    - Backward operations have no source line and no module.
    - Only parameters are weights to the compiler's verdict, and of several outputs the first alone is read unless
      gradients are recorded.
    """
    if fields and options is not None:
        raise TypeError("pass either `options` or its fields, not both")
    option = TracerOption.of(fields or options)
    if option.decompositions != "none" or option.trace_modi or not option.trace_orig:
        raise ValueError("tracing() records what runs: decompositions, trace_orig and trace_modi must stay as they are")
    mode = TracingMode(option, Recording(option, model_name or UNNAMED))
    with mode:
        try:
            yield
        finally:
            mode.flush()


class TracingMode(TorchDispatchMode):
    """Intercepts every operation before its kernel runs."""

    def __init__(self, option: TracerOption, recording: Recording) -> None:
        super().__init__()
        self.option = option
        self.recording = recording
        self.pending: dict[str, list[Record]] = {FORWARD: [], BACKWARD: []}
        self._modules = _ModuleNames()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        in_backward = torch._C._current_graph_task_id() != -1
        result = func(*args, **kwargs)
        if isinstance(func, torch._ops.OpOverload):
            self._note(func, args, kwargs, result, in_backward)
        return result

    def _note(self, func: Any, args: tuple, kwargs: dict[str, Any], result: Any, in_backward: bool) -> None:
        forward, backward = self.pending[FORWARD], self.pending[BACKWARD]
        if len(forward) + len(backward) >= MOST_RECORDS or (backward and not in_backward):
            self.flush()
        source, module = ("", "") if in_backward else self._modules.where()
        call = Call(func, tuple(args), kwargs, result, source, module)
        facts = facts_of(call) if self.option.facts else None
        lowerings = self.option.lowerings
        verdict = lowerings.of(about_call(call, torch.is_grad_enabled() or in_backward)) if lowerings else None
        self.pending[BACKWARD if in_backward else FORWARD].append(record(call, facts, verdict))

    def flush(self) -> None:
        """Write the records kept in memory."""
        forward, backward = self.pending[FORWARD], self.pending[BACKWARD]
        if forward or backward:
            self.recording.write(FORWARD, forward)
        if backward:
            self.recording.write(BACKWARD, backward)
        forward.clear()
        backward.clear()


class _ModuleNames:
    """Module and source line of an operation, read from the stack: no hooks on the model."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[torch.nn.Module, dict[int, str]] = weakref.WeakKeyDictionary()

    def where(self) -> tuple[str, str]:
        """`file:line: code` of the innermost frame outside of torch, and the path of the innermost module."""
        source, inner, root = "", None, None
        frame = sys._getframe(3)  # this method and two of the mode
        while frame is not None:
            code = frame.f_code
            if code in _CALLS:
                owner = frame.f_locals.get("self")
                if isinstance(owner, torch.nn.Module):
                    inner, root = inner or owner, owner
            elif not source and not code.co_filename.startswith((TORCH, "<")):
                text = linecache.getline(code.co_filename, frame.f_lineno).strip()
                source = f"{code.co_filename}:{frame.f_lineno}: {text}"
            frame = frame.f_back  # type: ignore[assignment]
        return source, self._path(inner, root) if inner is not None and root is not None else ""

    def _path(self, inner: torch.nn.Module, root: torch.nn.Module) -> str:
        names = self._names.get(root)
        if names is None or id(inner) not in names:
            names = self._names[root] = {id(module): name for name, module in root.named_modules()}
        return names.get(id(inner), "")


_CALLS: frozenset[Any] = frozenset([torch.nn.Module._call_impl.__code__])
