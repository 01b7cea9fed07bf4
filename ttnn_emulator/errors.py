"""Errors of the emulated device, one class per kind; every message names the operation and its arguments."""

from __future__ import annotations

from typing import Any

__all__ = [
    "EmulatorError",
    "InvalidArgument",
    "SignatureError",
    "OutOfMemory",
    "UseAfterFree",
    "DeviceMismatch",
    "ChipFault",
    "NotEmulated",
    "require",
]


class EmulatorError(RuntimeError):
    """Base class of all errors of the emulated device; the real library raises RuntimeError in the same places."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.operation = ""
        self.arguments = ""

    def at(self, operation: str, arguments: str) -> EmulatorError:
        """Name the refused call. The innermost operation wins, because it knows the reason."""
        if not self.operation:
            self.operation, self.arguments = operation, arguments
        return self

    def __str__(self) -> str:
        lines = [f"{self.operation}: {self.message}" if self.operation else self.message]
        if self.arguments:
            lines.append(f"  called with {self.arguments}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class InvalidArgument(EmulatorError):
    """The operation does not take these values, shapes, dtypes, layouts or memory configs."""


class SignatureError(EmulatorError, TypeError):
    """No overload of the operation takes arguments of these types."""


class OutOfMemory(EmulatorError):
    """A buffer does not fit into the free memory of the board."""


class UseAfterFree(EmulatorError):
    """A tensor was used after its buffer was deallocated."""


class DeviceMismatch(EmulatorError):
    """Tensors of one call are on different devices, or not on a device where one is needed."""


class ChipFault(EmulatorError):
    """The card returns a wrong result here; the emulator raises instead of imitating it."""


class NotEmulated(EmulatorError, NotImplementedError):
    """A feature of `ttnn` that is not emulated yet."""


def require(condition: Any, message: str, *, hint: str = "") -> None:
    """Raise `InvalidArgument(message)` unless `condition` is true."""
    if not condition:
        raise InvalidArgument(message, hint=hint)
