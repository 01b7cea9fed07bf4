"""Runs an operation as a program of one operation, or on the host where that is impossible."""

from __future__ import annotations

from typing import Any

from torch_ttnn.compiler.errors import BeyondBounds
from torch_ttnn.compiler.fusion.composites import BeyondDomain
from torch_ttnn.eager import log, numbers
from torch_ttnn.eager.arguments import Call
from torch_ttnn.eager.capture import NotCaptured
from torch_ttnn.eager.host import run_on_host
from torch_ttnn.eager.programs import program_of
from torch_ttnn.eager.schemas import returns_of


def run_program(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation whose tensors are on the device, and leave its results there."""
    call = Call(function, args, kwargs)
    returns = returns_of(function)
    if not call.storages or call.is_empty:
        return run_on_host(function, args, kwargs, "")
    reason = call.held_on_host
    if reason:
        return run_on_host(function, args, kwargs, reason)
    if function in numbers.OPERANDS:
        call = numbers.with_operands(call)
    try:
        entry = program_of(call, returns.new)
    except NotCaptured as why:
        return run_on_host(function, args, kwargs, str(why))
    reason = entry.beyond(call) if entry.is_checked else ""
    if reason:
        return run_on_host(function, args, kwargs, reason)
    if entry.on_host:
        for name, reason in entry.on_host:
            log.note_host(name, reason)
    else:
        log.note(function, log.DEVICE)
    try:
        made = entry.run(call)
    except (BeyondBounds, BeyondDomain) as beyond:
        return run_on_host(function, args, kwargs, str(beyond))
    return returns.assembled(made, args, kwargs)
