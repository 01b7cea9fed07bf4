"""Node contents of a traced graph: tensors, parameters, torch functions and modules, ttnn calls."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import networkx
import torch

from ttnn_emulator.tensors.tensor import Tensor

TAG_TRACEDTENSOR = "TRACEDTENSOR"  # an attribute of all traced tensors
LINE = 50  # characters after which arguments are wrapped
# Modules of torch functions, and their usual names.
PUBLIC_PLACES = (
    ("torch.nn.modules", "torch.nn"),
    ("torch._tensor", "torch.Tensor"),
    ("torch._C.TensorBase", "torch.Tensor"),
    ("torch._C._nn", "torch.nn.functional"),
    ("torch._C", "torch"),
)

_unique_ids = itertools.count()


def get_unique_id() -> int:
    """A unique node id."""
    return next(_unique_ids)


@dataclass
class Node:
    """A node of a graph; its attributes are stored in the graph."""

    name: str
    unique_id: int

    def __hash__(self) -> int:
        return hash(self.name)

    def __lt__(self, other: Node) -> bool:
        return self.unique_id < other.unique_id


def new_node(kind: str) -> Node:
    number = get_unique_id()
    return Node(f"{kind}_{number}", number)


@dataclass
class PositionalArgumentName:
    """The name of a positional argument."""

    index: int

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return f"{self.index}"


@dataclass
class InputTensorIndex:
    """Placeholder of a tensor argument: the number of its edge."""

    index: int

    def __repr__(self) -> str:
        return f"${self.index}"


Pairs = list[tuple[Any, Any]]


def _call(name: str, pairs: Pairs) -> str:
    """A call as text, wrapped."""
    text, length = f"{name}(", len(name) + 1
    for number, (key, value) in enumerate(pairs):
        shown = "torch.Tensor(...)" if isinstance(value, torch.Tensor) else f"{value}"
        shown = shown if isinstance(key, PositionalArgumentName) else f"{key}={shown}"
        if length > LINE:
            text, length = text + "\n", 0
        text += shown + (", " if number < len(pairs) - 1 else "")
        length += len(shown)
    return text + ")"


class _Shown:
    """Nodes print as their text."""

    def to_string(self, verbose: bool = False) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.to_string()


@dataclass(repr=False)
class TorchTensor(_Shown):
    """A tensor from outside the graph."""

    tensor: torch.Tensor

    def to_string(self, verbose: bool = False) -> str:
        return "torch.Tensor"


@dataclass(repr=False)
class TorchParameter(_Shown):
    """A parameter of a module."""

    parameter: torch.nn.Parameter

    def to_string(self, verbose: bool = False) -> str:
        name = getattr(self.parameter, "__ttnn_tracer_name__", None)
        return "torch.nn.Parameter" if name is None else f"torch.nn.Parameter\n{name}"


@dataclass(repr=False)
class TorchFunction(_Shown):
    """A call of a torch function."""

    function: Any
    arg_name_value_pairs: Pairs

    def to_string(self, verbose: bool = False) -> str:
        owner = getattr(self.function, "__objclass__", None)
        home = getattr(self.function, "__module__", None)
        if home is None and owner is not None:
            home = f"{owner.__module__}.{owner.__name__}"
        name = f"{home or type(self.function)}.{self.function.__name__}"
        for place, known_as in PUBLIC_PLACES:
            name = name.replace(place, known_as)
        return _call(name, self.arg_name_value_pairs) if verbose else name


@dataclass(repr=False)
class TorchModule(_Shown):
    """A call of a module, with its graph."""

    module: torch.nn.Module
    graph: networkx.MultiDiGraph
    inputs: list[Any]
    outputs: list[Any]
    arg_name_value_pairs: Pairs

    def to_string(self, verbose: bool = False) -> str:
        name = f"{type(self.module).__module__}.{type(self.module).__name__}"
        text = _call(name, self.arg_name_value_pairs) if verbose else name
        where = getattr(self.module, "__ttnn_tracer_name__", "")
        return f"{text}\n{where}" if where else text


@dataclass(repr=False)
class TorchModuleInput(_Shown):
    """A tensor argument of a module, by the name of its parameter."""

    name: str

    def to_string(self, verbose: bool = False) -> str:
        return self.name


@dataclass(repr=False)
class TTNNTensor(_Shown):
    """A ttnn tensor from outside the graph."""

    def to_string(self, verbose: bool = False) -> str:
        return "ttnn.Tensor"


@dataclass(repr=False)
class TTNNOperation(_Shown):
    """A call of a ttnn operation."""

    pretty_name: str
    operation: Any
    arg_name_value_pairs: Pairs

    def to_string(self, verbose: bool = False) -> str:
        return _call(self.pretty_name, self.arg_name_value_pairs) if verbose else self.pretty_name


class ModuleIOTensor:
    """An input or output of a module, by its position in the module's graph."""

    def __init__(self, graph: networkx.MultiDiGraph, node: Node, output_index: int) -> None:
        self.graph, self.node, self.output_index = graph, node, output_index

    @classmethod
    def from_traced_tensor(cls, traced_tensor: Any) -> ModuleIOTensor:
        return cls(traced_tensor.graph, traced_tensor.node, traced_tensor.output_index)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Any:
        return self.graph.nodes[self.node]["shapes"][self.output_index]


# -- tensors of ttnn: not subclassed; which node one comes from is kept beside it, as long as it lives ---------------


@dataclass
class Source:
    """The origin of a ttnn tensor."""

    tensor: Tensor
    graph: networkx.MultiDiGraph
    node: Node
    output_index: int
    TRACEDTENSOR = None


# id of a live ttnn tensor → its origin.
_sources: dict[int, tuple[networkx.MultiDiGraph, Node, int]] = {}


class _IsTraced(type):
    """Every output of a traced call is an instance of `ttnn.tracer.TracedTTNNTensor`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and id(instance) in _sources

    def __getattr__(cls, name: str) -> Any:
        return getattr(Tensor, name)


class TracedTTNNTensor(metaclass=_IsTraced):
    """Marks a ttnn tensor as traced: `TracedTTNNTensor(tensor, graph=…, node=…, output_index=…)` returns the tensor."""

    TRACEDTENSOR = None
    name: str

    def __new__(  # type: ignore[misc]
        cls, tensor: Tensor, *, graph: networkx.MultiDiGraph, node: Node, output_index: int
    ) -> Tensor:
        if id(tensor) not in _sources:
            weakref.finalize(tensor, _sources.pop, id(tensor), None)
        _sources[id(tensor)] = graph, node, output_index
        return tensor


def source_of(tensor: Any) -> Any:
    """The object with the graph and node of a traced tensor: the tensor itself, or its entry."""
    found = _sources.get(id(tensor)) if isinstance(tensor, Tensor) else None
    return tensor if found is None else Source(tensor, *found)


def is_traced(value: Any) -> bool:
    return hasattr(value, TAG_TRACEDTENSOR) or isinstance(value, TracedTTNNTensor)
