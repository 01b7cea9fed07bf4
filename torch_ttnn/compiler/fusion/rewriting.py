"""Inserts the calls that replace a fused pattern, and tracks which values are static."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.fusion.nodes import VIEWS, dtype_of, shape_of
from torch_ttnn.compiler.ir.metadata import POSITION
from torch_ttnn.compiler.ir.nodes import call_node
from torch_ttnn.compiler.lowering.registry import is_random

aten = torch.ops.aten
Node = torch.fx.Node

SOURCE_KEYS = ("stack_trace", "nn_module_stack", "source_fn_stack", POSITION.name)  # the source line in the model


class Rewriter:
    """A graph being rewritten. New calls are inserted before `anchor` and inherit its origin."""

    def __init__(self, graph_module: torch.fx.GraphModule, static: Iterable[Node] | Callable[[Node], bool]) -> None:
        self.graph = graph_module.graph
        self.graph_module = graph_module
        is_static_input = static if callable(static) else frozenset(static).__contains__
        self._static: set[Node] = set()
        self._fake_mode: FakeTensorMode | None = None
        self._vals: dict[Any, torch.Tensor] = {}
        self._shared: dict[Any, Node] = {}
        self._memo: dict[Any, Any] = {}
        for node in self.graph.nodes:
            if self._fake_mode is None:
                self._fake_mode = getattr(node.meta.get("val"), "fake_mode", None)
            if node.op == "get_attr" or (node.op == "placeholder" and is_static_input(node)):
                self._static.add(node)
            elif node.op == "call_function":
                self._note_static(node)
        self.anchor: Node = next(iter(self.graph.nodes))

    # -- static values ----------------------------------------------------------------------------------------------

    def is_static(self, item: Any) -> bool:
        """Whether it depends on weights and constants only, as numbers and None do."""
        return not isinstance(item, Node) or item in self._static

    def _note_static(self, node: Node) -> None:
        if all(each in self._static for each in node.all_input_nodes) and not is_random(node.target):
            self._static.add(node)

    # -- new calls --------------------------------------------------------------------------------------------------

    def call(self, target: Any, *args: Any, val: Any, **kwargs: Any) -> Node:
        """Insert a call before `anchor`. `val` is its type: a node of that type, (shape, dtype), or a list."""
        with self.graph.inserting_before(self.anchor):
            node = call_node(self.graph, target, args, kwargs)
        for name in SOURCE_KEYS:
            if name in self.anchor.meta:
                node.meta[name] = self.anchor.meta[name]
        node.meta["val"] = self._val(val)
        self._note_static(node)
        return node

    def item(self, node: Node, index: int) -> Node:
        """One result of a call with several."""
        result = self.call(operator.getitem, node, index, val=None)
        result.meta["val"] = node.meta["val"][index]
        return result

    def numbers(self, given: Sequence[int]) -> Node:
        """A constant tensor of these integers; equal ones are shared."""

        def make() -> Node:
            names = (f"fusion_numbers_{number}" for number in itertools.count())
            name = next(name for name in names if not hasattr(self.graph_module, name))
            with _disable_current_modes():  # fake tensors of the tracer have no values
                self.graph_module.register_buffer(name, torch.tensor(given, device="cpu"), persistent=False)
            with self.graph.inserting_before(self.anchor):
                node = self.graph.get_attr(name)
            node.meta["val"] = self._val(((len(given),), torch.int64))
            self._static.add(node)
            return node

        return self.once(("numbers", *given), make)

    def once(self, key: Any, make: Callable[[], Node]) -> Node:
        """A call shared by several sites, inserted at the first of them."""
        found = self._shared.get(key)
        if found is None or found._erased:
            found = self._shared[key] = make()
        elif found in self._static:
            self.hoist_before(found, self.anchor)
        elif self.anchor < found:
            return make()
        return found

    def memoised(self, key: Any, compute: Callable[[], Any]) -> Any:
        """A result shared by equal sites, such as the layers of a model."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def _val(self, given: Any) -> Any:
        if isinstance(given, Node):
            return given.meta["val"]
        if isinstance(given, list):
            return tuple([self._val(each) for each in given])
        if given is None:
            return None
        shape, dtype = tuple(given[0]), given[1]
        found = self._vals.get((shape, dtype))
        if found is None:
            with self._fake_mode or FakeTensorMode():
                found = self._vals[shape, dtype] = torch.empty(shape, dtype=dtype, device="cpu")
        return found

    # -- common calls -----------------------------------------------------------------------------------------------

    def view(self, node: Node, shape: Sequence[int]) -> Node:
        """A reshape; the node itself if it has that shape."""
        shape = list(shape)
        if list(shape_of(node)) == shape:
            return node
        return self.call(aten.reshape.default, node, shape, val=(shape, dtype_of(node)))

    def scaled(self, node: Node, factor: float) -> Node:
        if factor == 1:
            return node
        key = ("scaled", node, factor)
        return self.once(key, lambda: self.call(aten.mul.Tensor, node, factor, val=(shape_of(node), dtype_of(node))))

    def cast(self, node: Node, dtype: torch.dtype) -> Node:
        if dtype_of(node) is dtype:
            return node
        return self.call(aten._to_copy.default, node, dtype=dtype, val=(shape_of(node), dtype))

    def elementwise(self, target: Any, *args: Any) -> Node:
        """A call with broadcast operands. The result has the dtype of the first tensor."""
        tensors = [each for each in args if isinstance(each, Node)]
        shape = torch.broadcast_shapes(*[shape_of(each) for each in tensors])
        return self.call(target, *args, val=(shape, dtype_of(tensors[0])))

    def hoist_before(self, node: Any, target: Node) -> None:
        """Move a static node, with its dependencies, before `target`."""
        if isinstance(node, Node) and target < node:
            assert node in self._static
            for each in node.all_input_nodes:
                self.hoist_before(each, target)
            target.prepend(node)

    # -- replacing --------------------------------------------------------------------------------------------------

    def replace(self, old: Node, new: Node) -> None:
        """Replace all uses of the old value, and remove nodes that become dead."""
        old.replace_all_uses_with(new)
        self.remove(old)

    def remove(self, node: Node) -> None:
        stack = [node]
        while stack:
            node = stack.pop()
            if node.op != "call_function" or node.users or node._erased:
                continue
            inputs = node.all_input_nodes
            self.graph.erase_node(node)
            stack.extend(inputs)

    def replace_reshaped(self, old: Node, new: Node, shape: Sequence[int]) -> None:
        """Replace `old` by `new`, which has another shape: views of `old` to that shape become `new` itself."""
        shape = tuple(shape)
        for user in list(old.users):
            if user.target in VIEWS and shape_of(user) == shape_of(new):
                self.replace(user, new)
        if not old._erased and old.users:
            self.replace(old, self.view(new, shape))
        elif not old._erased:
            self.remove(old)
