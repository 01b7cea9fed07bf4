"""Jobs, their limits and their outcomes."""

from __future__ import annotations

import enum
import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Status(str, enum.Enum):
    """How a job ended."""

    OK = "ok"
    ERROR = "error"  # it raised an exception
    CRASH = "crash"  # its process died: a signal, or an exit without a result
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"  # it could not write: the disk is full or read-only


@dataclass(frozen=True)
class Job:
    """A function by its address `package.module:function`, and its keyword arguments."""

    name: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        try:
            json.dumps(dict(self.arguments), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the arguments of job {self.name!r} must be representable in JSON: {error}") from error

    @property
    def fingerprint(self) -> str:
        """Equal for jobs with the same function and arguments."""
        text = json.dumps([self.function, dict(self.arguments)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def call(self) -> Any:
        """Run the job in this process."""
        return load(self.function)(**self.arguments)


def load(address: str) -> Callable[..., Any]:
    """The object at `package.module:name` or `package.module:outer.inner`."""
    module, _, path = address.partition(":")
    if not module or not path:
        raise ValueError(f"{address!r} is not the address of a function; write package.module:function")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@dataclass(frozen=True)
class Limits:
    """Limits of a job; None is unlimited."""

    seconds: float | None = None
    memory: int | None = None  # bytes, for all its processes together

    def __post_init__(self) -> None:
        for name in ("seconds", "memory"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"a limit of {value} {name} lets no job run; omit it for no limit")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job."""

    name: str
    status: Status
    result: Any = None
    reason: str = ""  # one sentence; empty on success
    details: str = ""  # the traceback, or the last lines of the log
    seconds: float = 0.0
    peak_memory: int = 0  # bytes, of all its processes together

    @property
    def ok(self) -> bool:
        return self.status is Status.OK
