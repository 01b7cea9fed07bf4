"""Errors and warnings of the compiler that users see."""

from __future__ import annotations

from typing import NoReturn


class TorchTtnnError(RuntimeError):
    """Base class of the compiler's errors."""


class StaysOnHost(TorchTtnnError):
    """Raised by a lowering for a case that it does not support; the message is the reason shown in the report."""


class CompileError(TorchTtnnError):
    """A graph cannot be compiled. Names the operation, its arguments and the line of the model."""


class ProgramError(TorchTtnnError):
    """A call of the compiled program failed. Names the call, the operation it comes from and the line of the model."""


class VerifyError(TorchTtnnError):
    """A stage produced an invalid graph. This is a bug of the compiler, not of the model."""


def refuse(reason: str) -> NoReturn:
    """Keep the operation being lowered on the host, for this reason."""
    raise StaysOnHost(reason)


class BeyondBounds(ValueError):
    """Weights contain integers outside the bounds that a program was compiled for; torch runs the call."""


class HostOperationWarning(UserWarning):
    """Some operations of a compiled graph stay on the host."""


class GraphBreakWarning(UserWarning):
    """Parts of a model do not reach the backend: Dynamo leaves them to Python, or no longer compiles a function."""
