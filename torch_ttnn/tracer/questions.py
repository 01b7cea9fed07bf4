"""A question to the compiler: one operation with its operands, hashable, and convertible to a graph."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn.compiler.ir.arguments import frozen, mapped
from torch_ttnn.compiler.lowering import LOWERINGS
from torch_ttnn.compiler.lowering.registry import is_random
from torch_ttnn.compiler.stages.capture import decompositions
from torch_ttnn.tracer.calls import Call, concrete, sizes
from torch_ttnn.tracer.graphs import value

Node = torch.fx.Node
LARGEST_CONSTANT = 1 << 16  # constants up to this many elements are part of a question with their values
LONGEST_CHAIN = 32  # computed constants are part of a question up to this many operations


@dataclass(frozen=True)
class Input:
    """A tensor from outside; static if it is a weight. Tensors that are not strided have no strides."""

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: torch.dtype
    is_static: bool

    @classmethod
    def like(cls, tensor: torch.Tensor, is_static: bool) -> Input:
        stride = tuple(tensor.stride()) if tensor.layout is torch.strided else None
        return cls(sizes(tensor), stride, tensor.dtype, is_static)


@dataclass(frozen=True)
class Constant:
    """A tensor whose values are known."""

    digest: str
    tensor: torch.Tensor = field(compare=False)

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Constant:
        plain = tensor.detach().cpu().contiguous()
        digest = hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
        return cls(f"{tensor.dtype}{list(tensor.shape)}{digest.hexdigest()}", tensor)


@dataclass(frozen=True)
class Ref:
    """Refers to the result of an earlier part."""

    number: int


@dataclass(frozen=True)
class Step:
    """A call of a function on results of earlier parts."""

    function: Any
    key: Any
    args: tuple = field(compare=False)
    kwargs: dict[str, Any] = field(compare=False)

    @classmethod
    def of(cls, function: Any, args: tuple, kwargs: dict[str, Any]) -> Step:
        return cls(function, (frozen(args, _itself), frozen(kwargs, _itself)), args, kwargs)


@dataclass(frozen=True)
class Question:
    """Parts in order, the operation last; `used` are the outputs of it that are read (None: it has only one)."""

    parts: tuple[Input | Constant | Step, ...]
    used: tuple[int, ...] | None

    @property
    def op(self) -> Any:
        step = self.parts[-1]
        assert isinstance(step, Step)
        return step.function

    @property
    def is_strided(self) -> bool:
        return all(part.stride is not None for part in self.parts if isinstance(part, Input))

    @property
    def statics(self) -> list[int]:
        """Indices of the inputs that are weights."""
        inputs = [part for part in self.parts if isinstance(part, Input)]
        return [number for number, part in enumerate(inputs) if part.is_static]


def _itself(node: Node) -> Node:
    return node


# -- questions about calls and nodes ----------------------------------------------------------------------------------


def about_call(call: Call, needs_all_outputs: bool) -> Question:
    """Question about a call without a graph: parameters are weights, other tensors are not."""
    parts: list[Any] = []

    def part_of(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        parts.append(Input.like(item, isinstance(item, torch.nn.Parameter)))
        return Ref(len(parts) - 1)

    args, kwargs = mapped(call.args, part_of), mapped(call.kwargs, part_of)
    used = None
    if isinstance(call.result, tuple | list):
        tensors = _tensor_places(call.result)
        used = tensors if needs_all_outputs else tensors[:1]
    return Question((*parts, Step.of(call.op, args, kwargs)), used)


class GraphQuestions:
    """Questions about the nodes of one graph."""

    def __init__(self, graph_module: torch.fx.GraphModule, statics: Iterable[int]) -> None:
        self.graph_module = graph_module
        places = graph_module.graph.find_nodes(op="placeholder")
        self._static = {node: number in frozenset(statics) for number, node in enumerate(places)}
        self._chain: dict[Node, int] = {}

    def about(self, node: Node, call: Call) -> Question:
        """Question about an operation, with the weights and constants that it reads."""
        parts: list[Any] = []
        numbers: dict[Node, int] = {}

        def part_of(item: Any) -> Any:
            if not isinstance(item, Node):
                return concrete(item)
            given = value(item, self.graph_module)
            if not isinstance(given, torch.Tensor) and not self._length(item):
                return concrete(given)
            if item not in numbers:
                part = self._part(item, given, part_of)
                parts.append(part)
                numbers[item] = len(parts) - 1
            return Ref(numbers[item])

        args = node.args if node.target is call.op else call.args
        kwargs = node.kwargs if node.target is call.op else call.kwargs
        step = Step.of(call.op, mapped(tuple(args), part_of), mapped(dict(kwargs), part_of))
        return Question((*parts, step), _used(node, call))

    def _part(self, node: Node, given: Any, part_of: Any) -> Input | Constant | Step:
        if not self._length(node):
            return Input.like(concrete(given), self._is_static(node))
        if node.op == "get_attr":
            return Constant.of(operator.attrgetter(str(node.target))(self.graph_module))
        return Step.of(node.target, mapped(tuple(node.args), part_of), mapped(dict(node.kwargs), part_of))

    def _length(self, node: Node) -> int:
        """The number of operations that compute a constant, itself included; 0 if it is not one, or takes too many."""
        found = self._chain.get(node)
        if found is None:
            found = self._chain[node] = self._measured(node)
        return found

    def _measured(self, node: Node) -> int:
        if node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(self.graph_module)
            return int(isinstance(value, torch.Tensor) and not _is_fake(value) and value.numel() <= LARGEST_CONSTANT)
        if node.op != "call_function" or is_random(node.target) or not _is_plain(node.target):
            return 0
        lengths = [self._length(each) for each in node.all_input_nodes]
        total = 1 + sum(lengths)
        return total if all(lengths) and total <= LONGEST_CHAIN else 0

    def _is_static(self, node: Node) -> bool:
        """Whether a value depends on weights and constants only."""
        found = self._static.get(node)
        if found is None:
            pure = node.op == "get_attr" or (node.op == "call_function" and not is_random(node.target))
            found = self._static[node] = pure and all(map(self._is_static, node.all_input_nodes))
        return found


def _is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor) or tensor.is_meta


def _is_plain(target: Any) -> bool:
    return target is operator.getitem or (isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable)


def _used(node: Node, call: Call) -> tuple[int, ...] | None:
    """Which outputs are read; all of them if unknown."""
    if not isinstance(call.result, tuple | list):
        return None
    read = {int(user.args[1]) for user in node.users if user.target is operator.getitem}  # type: ignore[arg-type]
    places = _tensor_places(call.result)
    return tuple([number for number in places if number in read]) or places


def _tensor_places(result: Any) -> tuple[int, ...]:
    """Indices of non-empty outputs: batch norms without statistics return empty tensors with the result."""
    return tuple([number for number, each in enumerate(result) if isinstance(each, torch.Tensor) and each.numel()])


# -- as a graph -------------------------------------------------------------------------------------------------------


def as_graph(question: Question, fake_mode: FakeTensorMode) -> torch.fx.GraphModule:
    """The graph that the compiler would capture for this operation alone."""
    op = question.op
    with fake_mode:
        if op in LOWERINGS and not op._schema.is_mutable:
            return _written(question)
        inputs = [_fake(part) for part in question.parts if isinstance(part, Input)]
        function = torch.func.functionalize(_run(question)) if op._schema.is_mutable else _run(question)
        return make_fx(function, decomposition_table=decompositions(), tracing_mode="real")(*inputs)


def _fake(part: Input) -> torch.Tensor:
    assert part.stride is not None
    return torch.empty_strided(part.shape, part.stride, dtype=part.dtype, device="cpu")


def _written(question: Question) -> torch.fx.GraphModule:
    """A graph with one node per part; the operation must not be decomposed when a model is captured."""
    graph = torch.fx.Graph()
    root = torch.nn.Module()
    nodes: list[Node] = []
    for number, part in enumerate(question.parts):
        if isinstance(part, Input):
            nodes.append(graph.placeholder(f"input_{number}"))
            nodes[-1].meta["val"] = _fake(part)
        elif isinstance(part, Constant):
            setattr(root, f"constant_{number}", part.tensor)
            nodes.append(graph.get_attr(f"constant_{number}"))
            nodes[-1].meta["val"] = torch.empty_like(part.tensor, device="cpu")
        else:
            vals = _looked_up(part, [node.meta["val"] for node in nodes])
            nodes.append(graph.call_function(part.function, *_looked_up(part, nodes)))
            nodes[-1].meta["val"] = part.function(*vals[0], **vals[1])
    outputs = [nodes[-1]]
    if question.used is not None:
        outputs = []
        for number in question.used:
            outputs.append(graph.call_function(operator.getitem, (nodes[-1], number)))
            outputs[-1].meta["val"] = nodes[-1].meta["val"][number]
    graph.output(tuple(outputs))
    return torch.fx.GraphModule(root, graph)


def _run(question: Question) -> Any:
    """A function of the inputs that runs the parts and returns what is read or modified."""

    def run(*inputs: torch.Tensor) -> list[Any]:
        given = iter(inputs)
        values: list[Any] = []
        for part in question.parts:
            if isinstance(part, Input):
                values.append(next(given))
            elif isinstance(part, Constant):
                values.append(part.tensor)
            else:
                args, kwargs = _looked_up(part, values)
                values.append(part.function(*args, **kwargs))
        result = values[-1]
        read = [result] if question.used is None else [result[number] for number in question.used]
        changed = list(inputs) if question.op._schema.is_mutable else []
        return [each for each in (*read, *changed) if isinstance(each, torch.Tensor)]

    return run


def _looked_up(step: Step, values: list[Any]) -> tuple[tuple, dict[str, Any]]:
    def value_of(item: Any) -> Any:
        return values[item.number] if isinstance(item, Ref) else item

    return mapped(step.args, value_of), mapped(step.kwargs, value_of)
