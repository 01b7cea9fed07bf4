"""The border between a program and the library that runs it.

A program holds descriptions: the path of each operation, and enumerations and configs as the operation table knows
them. Here, and nowhere else, they become functions and objects of a library. What runs on every call crosses as source,
in which the library is called `ttnn`; what prepares weights crosses call by call.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Protocol

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.ir.arguments import DeviceMarker
from torch_ttnn.compiler.ir.metadata import PATH
from torch_ttnn.compiler.stages import emit

# Gets the path of a call, its arguments as the library gets them, and what the library gave back.
CallListener = Callable[[str, tuple, Mapping[str, Any], Any], None]


class Holder(Protocol):
    """Whoever keeps tensors on a device between calls."""

    def release(self) -> None: ...


def library_function(library: Any, path: str) -> Any:
    """What programs call by this path in one of the libraries, for example `ttnn.transformer.concatenate_heads`."""
    return operator.attrgetter(path.removeprefix("ttnn."))(library)


class Border:
    """One library with one device of it."""

    def __init__(self, library: ModuleType, device: Any) -> None:
        self.library: Any = library
        self.device = device
        self.is_closed = False
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()  # of tensors on the device
        self._objects: dict[str, Any] = {}
        self._listeners: tuple[CallListener, ...] = ()
        self._reported: _ReportedCalls | None = _ReportedCalls(library, "ttnn", self)

    @property
    def ttnn(self) -> Any:
        """The library as programs see it: itself, or with its calls reported while somebody listens."""
        return self._reported if self._listeners else self.library

    @property
    def is_heard(self) -> bool:
        """Whether somebody listens."""
        return bool(self._listeners)

    def function(self, path: str) -> Callable[..., Any]:
        return library_function(self.ttnn, path)

    def argument(self, item: Any) -> Any:
        """What the library gets for a described argument that is neither a tensor nor a list of them."""
        if isinstance(item, DeviceMarker):
            return self.device
        if self.library is ttnn_emulator or not is_description(item):
            return item
        source = emit.literal(item)
        if source not in self._objects:
            self._objects[source] = eval(source, {"ttnn": self.library, "torch": torch})
        return self._objects[source]

    def bound(self, graph: torch.fx.Graph) -> torch.fx.Graph:
        """A graph that calls functions of this library; the graph itself where that is the emulator."""
        if self.library is ttnn_emulator:
            return graph
        copy = torch.fx.Graph()
        copied: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in graph.nodes:
            copied[node] = copy.node_copy(node, copied.__getitem__)
            if PATH.on(node):
                copied[node].target = library_function(self.library, PATH[node])
        return copy

    def release_programs(self) -> None:
        """Let programs give back what they keep on the device; their next call prepares it again."""
        for holder in list(self.holders):
            holder.release()

    def close(self) -> None:
        """Let go of the library and of everything that came from it."""
        self.release_programs()
        self.is_closed = True
        self._objects.clear()
        self.library = self.device = self._reported = None

    @contextmanager
    def listening(self, listener: CallListener) -> Iterator[None]:
        """Report every call that programs make while this lasts, once the library has returned."""
        self._listeners += (listener,)
        try:
            yield
        finally:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def report(self, path: str, args: tuple, kwargs: Mapping[str, Any], result: Any) -> None:
        for listener in self._listeners:
            listener(path, args, kwargs, result)


_DESCRIPTIONS = frozenset(each for each in vars(ttnn_emulator).values() if isinstance(each, type))


def is_description(item: Any) -> bool:
    """Whether something is of a class of the emulator, which describes what another library has a class of its own for.

    >>> is_description(ttnn_emulator.bfloat16), is_description(torch.bfloat16)
    (True, False)
    """
    kind = type(item)
    return kind in _DESCRIPTIONS or kind.__module__.partition(".")[0] == ttnn_emulator.__name__


class _ReportedCalls:
    """A namespace of the library; calls of its operations are reported, all else is the library's own."""

    def __init__(self, namespace: Any, path: str, border: Border) -> None:
        self._namespace = namespace
        self._path = path
        self._border = border

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._namespace, name)
        path = f"{self._path}.{name}"
        if isinstance(found, ModuleType) or type(found).__name__ == "Namespace":
            made: Any = _ReportedCalls(found, path, self._border)
        elif not callable(found) or isinstance(found, type):
            made = found
        else:
            made = self._reported(found, path)
        setattr(self, name, made)
        return made

    def _reported(self, function: Callable[..., Any], path: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self._border.report(path, args, kwargs, result)
            return result

        return call
