"""Code that Dynamo leaves to Python, so that it never reaches the backend.

These are graph breaks, functions that are skipped as a whole, and functions that were recompiled too often. A graph
that ends at a break has the reason. The rest is read from Dynamo's compilation metrics.
"""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch._dynamo import utils as dynamo

BREAK, SKIPPED, LIMIT = "graph break", "skipped function", "recompile limit"
TOO_OFTEN = "recompile limit exceeded"  # in the reason that Dynamo records (torch/_dynamo/convert_frame.py)
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_EXPLANATION = re.compile(r"^\s*Explanation: (.*)$", re.MULTILINE)
OURS = "torch_ttnn/capture/programs.py"  # our own call of the model is not a line of the model


@dataclass(frozen=True)
class Missed:
    """Code that torch runs as plain Python: its kind, Dynamo's reason, and the line of the model."""

    kind: str
    reason: str
    source: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.source or 'an unknown line'}: {self.reason}"


class DynamoWatch:
    """Collects what Dynamo leaves to Python while a block runs."""

    def __init__(self) -> None:
        self._breaks = 0
        self._seen: list[Any] = []
        self._functions: dict[str, str] = {}
        self._found: dict[Missed, None] = {}

    @property
    def missed(self) -> list[Missed]:
        """In order of occurrence; a function that is skipped because of a break is listed once."""
        whole = {(each.reason, each.source) for each in self._found if each.kind == SKIPPED}
        return [each for each in self._found if each.kind != BREAK or (each.reason, each.source) not in whole]

    def __enter__(self) -> DynamoWatch:
        self._breaks = len(dynamo.graph_break_reasons)
        self._seen = dynamo.get_compilation_metrics()
        return self

    def __exit__(self, *error: object) -> None:
        self.update()

    def update(self) -> None:
        """Read new records; Dynamo keeps only the latest, so this runs for every graph."""
        reasons = dynamo.graph_break_reasons
        for each in reasons[min(self._breaks, len(reasons)) :]:  # a reset empties the list
            self._note(Missed(BREAK, short_reason(each.reason), line_of(each.user_stack)))
        self._breaks = len(reasons)
        known = {id(each) for each in self._seen}
        records = dynamo.get_compilation_metrics()
        for record in records:
            if id(record) not in known:
                self._read(record)
        self._seen = records

    def _read(self, record: Any) -> None:
        """Read the record of one compilation of one function."""
        frame = str(record.compile_id).split("/")[0]
        if record.co_filename:
            name = _RESUMED.sub(r"\1", record.co_name)
            self._functions[frame] = f"{record.co_filename}:{record.co_firstlineno}: {name}"
        if not record.fail_type:
            return
        reason = short_reason(record.fail_reason or record.fail_type)
        if TOO_OFTEN in reason.lower():
            limit = torch._dynamo.config.recompile_limit
            reason = f"compiled {limit} times, torch._dynamo.config.recompile_limit; further calls run on the CPU"
            if record.recompile_reason:
                reason += f" (the last time because of {first_line(record.recompile_reason)})"
            self._note(Missed(LIMIT, reason, self._functions.get(frame, "")))
            return
        path, line = record.fail_user_frame_filename, record.fail_user_frame_lineno
        source = _at(path, line) if path else self._functions.get(frame, "")
        self._note(Missed(SKIPPED, reason, source))

    def _note(self, missed: Missed) -> None:
        if OURS not in missed.source:
            self._found.setdefault(missed)


def break_of(graph_module: torch.fx.GraphModule) -> Missed | None:
    """The break that ended a graph of Dynamo, if one did."""
    reason = getattr(graph_module, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return None
    return Missed(BREAK, short_reason(reason.reason), line_of(reason.user_stack))


def last_recompile() -> int | None:
    """The number of compilations of the function being compiled, if this is the last one that Dynamo allows."""
    compiled = torch._guards.CompileContext.current_compile_id()
    limit = torch._dynamo.config.recompile_limit
    times = getattr(compiled, "frame_compile_id", None)
    return limit if times is not None and limit > 1 and times + 1 == limit else None


def first_line(text: str) -> str:
    return " ".join(str(text).strip().partition("\n")[0].split())


def short_reason(text: str) -> str:
    """Dynamo's reason and explanation in one line, without its hints.

    >>> short_reason("Failed to trace builtin\\n  Explanation: print is unknown.\\n  Hint: file an issue")
    'Failed to trace builtin: print is unknown.'
    """
    why = _EXPLANATION.search(str(text))
    return f"{first_line(text)}: {first_line(why[1])}" if why else first_line(text)


def line_of(stack: Sequence[traceback.FrameSummary]) -> str:
    """`file:line: code` of the innermost frame."""
    return _at(stack[-1].filename, stack[-1].lineno) if stack else ""


def _at(path: str, line: int | None) -> str:
    code = linecache.getline(path, line).strip() if line else ""
    return f"{path}:{line}: {code}" if code else f"{path}:{line}"
