"""Hooks between a script and the operations that it calls, with the arguments of the call.

Hooks do not see calls inside operations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ttnn_emulator.execution.operation_table import Operation

# hook(operation, proceed, args, kwargs) → result; `proceed(*args, **kwargs)` calls the operation.
Hook = Callable[[Operation, Callable[..., Any], tuple, dict[str, Any]], Any]

_call = Operation.__call__
_hooks: list[Hook] = []


class _Inside(threading.local):
    value = False


_inside = _Inside()


def add(hook: Hook) -> None:
    """Call `hook` for every operation from now on; repeated installation has no effect."""
    if hook not in _hooks:
        _hooks.append(hook)
    Operation.__call__ = _hooked  # type: ignore[method-assign]


def remove(hook: Hook) -> None:
    """Remove the hook; without hooks, calls use the fast path again."""
    if hook in _hooks:
        _hooks.remove(hook)
    if not _hooks:
        Operation.__call__ = _call  # type: ignore[method-assign]


def _hooked(self: Operation, *args: Any, **kwargs: Any) -> Any:
    if _inside.value:
        return _call(self, *args, **kwargs)
    _inside.value = True
    try:
        return _through(self, list(_hooks), args, kwargs)
    finally:
        _inside.value = False


def _through(operation: Operation, hooks: list[Hook], args: tuple, kwargs: dict[str, Any]) -> Any:
    if not hooks:
        return _call(operation, *args, **kwargs)
    *outer, inner = hooks
    return inner(operation, lambda *a, **k: _through(operation, outer, a, k), args, kwargs)
