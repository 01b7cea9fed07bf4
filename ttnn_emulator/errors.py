"""What can go wrong on the device, one class a kind, every message naming the operation and its arguments."""

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
    """Base of everything the emulated device refuses; the real library raises RuntimeError in the same places."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.operation = ""
        self.arguments = ""

    def at(self, operation: str, arguments: str) -> EmulatorError:
        """Say which call was refused. The innermost operation wins: it is the one that knows why."""
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
    """A buffer does not fit into what is free on the board."""


class UseAfterFree(EmulatorError):
    """A tensor was used after its buffer had been given back."""


class DeviceMismatch(EmulatorError):
    """Tensors of one call live on different devices, or on none where one is needed."""


class ChipFault(EmulatorError):
    """The card gives a wrong answer here; we raise rather than imitate it."""


class NotEmulated(EmulatorError, NotImplementedError):
    """`ttnn` has this, the emulator does not have it yet."""


def require(condition: Any, message: str, *, hint: str = "") -> None:
    """Refuse the call with `message` unless `condition` holds."""
    if not condition:
        raise InvalidArgument(message, hint=hint)
