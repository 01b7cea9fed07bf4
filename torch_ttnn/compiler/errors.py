"""What can go wrong while compiling, told to the user."""

from __future__ import annotations

from typing import NoReturn


class TorchTtnnError(RuntimeError):
    """Any error of the compiler that a user can meet."""


class StaysOnHost(TorchTtnnError):
    """Raised by a lowering for a case that it does not handle; the message is the reason that the report shows."""


class CompileError(TorchTtnnError):
    """A graph cannot be compiled; names the operation, its arguments and the line of the model."""


class ProgramError(TorchTtnnError):
    """A call of the compiled program failed; names the call, the operation it comes from and the line of the model."""


class VerifyError(TorchTtnnError):
    """A stage left a graph that is not valid. A fault of the compiler, not of the model."""


def refuse(reason: str) -> NoReturn:
    """Leave the operation being lowered to the host, for this reason."""
    raise StaysOnHost(reason)


class BeyondBounds(ValueError):
    """Weights hold integers that a program was not compiled for; torch runs the call."""


class HostOperationWarning(UserWarning):
    """Operations of a compiled graph stay on the host."""


class GraphBreakWarning(UserWarning):
    """Parts of a model never reach the backend: Dynamo leaves them to Python, or compiles a function no more."""
