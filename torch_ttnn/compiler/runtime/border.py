"""The border between a program and the library that runs it.

A program consists of descriptions: the path of each operation, and enumerations and configs as the operation table
defines them. Only this module turns them into functions and objects of a library. The code that runs on every call
crosses as source, in which the library is called `ttnn`; calls that prepare weights cross one by one.
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

# Receives the path of a call, the arguments passed to the library, and the library's result.
CallListener = Callable[[str, tuple, Mapping[str, Any], Any], None]


class Holder(Protocol):
    """An object that keeps tensors on a device between calls."""

    def release(self) -> None: ...


def library_function(library: Any, path: str) -> Any:
    """The function of a library at a path such as `ttnn.transformer.concatenate_heads`."""
    return operator.attrgetter(path.removeprefix("ttnn."))(library)


class Border:
    """One library with one of its devices."""

    def __init__(self, library: ModuleType, device: Any) -> None:
        self.library: Any = library
        self.device = device
        self.is_closed = False
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()  # of tensors on the device
        self.results_of_traces: set[int] = set()  # the ids of tensors that every replay of a trace writes
        self._objects: dict[str, Any] = {}
        self._listeners: tuple[CallListener, ...] = ()
        self._reported: _ReportedCalls | None = _ReportedCalls(library, "ttnn", self)

    @property
    def ttnn(self) -> Any:
        """The library as programs see it: itself, or a wrapper that reports calls while there are listeners."""
        return self._reported if self._listeners else self.library

    @property
    def has_listeners(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    def function(self, path: str) -> Callable[..., Any]:
        return library_function(self.ttnn, path)

    def argument(self, item: Any) -> Any:
        """The library's object for a described argument that is neither a tensor nor a list of tensors."""
        if isinstance(item, DeviceMarker):
            return self.device
        if self.library is ttnn_emulator or not is_description(item):
            return item
        source = emit.literal(item)
        if source not in self._objects:
            self._objects[source] = eval(source, {"ttnn": self.library, "torch": torch})
        return self._objects[source]

    def bound(self, graph: torch.fx.Graph) -> torch.fx.Graph:
        """A graph that calls the functions of this library; for the emulator, the graph itself."""
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
        """Free what programs keep on the device; their next call prepares it again."""
        for holder in list(self.holders):
            holder.release()

    def close(self) -> None:
        """Drop all references to the library and its objects."""
        self.release_programs()
        self.is_closed = True
        self._objects.clear()
        self.library = self.device = self._reported = None

    @contextmanager
    def listening(self, listener: CallListener) -> Iterator[None]:
        """Report every call that programs make within this context, once the library has returned."""
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
    """Whether an object is of a class of the emulator, for which another library has its own class.

    >>> is_description(ttnn_emulator.bfloat16), is_description(torch.bfloat16)
    (True, False)
    """
    kind = type(item)
    return kind in _DESCRIPTIONS or kind.__module__.partition(".")[0] == ttnn_emulator.__name__


class _ReportedCalls:
    """A namespace of the library that reports calls of its operations; other attributes are the library's own."""

    def __init__(self, namespace: Any, path: str, border: Border) -> None:
        self._namespace = namespace
        self._path = path
        self._border = border

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._namespace, name)
        path = f"{self._path}.{name}"
        if isinstance(attribute, ModuleType) or type(attribute).__name__ == "Namespace":
            wrapped: Any = _ReportedCalls(attribute, path, self._border)
        elif not callable(attribute) or isinstance(attribute, type):
            wrapped = attribute
        else:
            wrapped = self._reported(attribute, path)
        setattr(self, name, wrapped)
        return wrapped

    def _reported(self, function: Callable[..., Any], path: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self._border.report(path, args, kwargs, result)
            return result

        return call
