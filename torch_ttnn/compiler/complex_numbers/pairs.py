"""Decomposes complex tensors into pairs of real tensors: the device has no complex dtype.

After `normalise`, operations on complex64 that have a simple real form (`rules.py`) are written in real ATen. The host
joins the parts of outputs, and of operands of operations without a real form (`fft`, `linalg`), and splits the results
of such operations. Both are parts of moves, like views and casts around uploads and downloads.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.complex_numbers.rules import CONDITIONS, RULES, VIEWING, Pair, RealCalls, flat_neighbours
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import EFFECT, MOVE, Move, annotate
from torch_ttnn.compiler.ir.nodes import drop_dead_code
from torch_ttnn.compiler.lowering.registry import is_random

aten = torch.ops.aten
Node = torch.fx.Node

REAL_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8,
               torch.uint8, torch.bool)  # fmt: skip


def decompose(graph_module: torch.fx.GraphModule, statics: Collection[int]) -> None:
    """Replace complex operations by real ones; `statics` are the indices of the inputs that are weights."""
    graph = graph_module.graph
    fake_mode = next((val.fake_mode for node in graph.nodes for val in _complex_vals(node)), None)
    if fake_mode is not None:
        _Decomposition(graph, statics, fake_mode).run()
        drop_dead_code(graph)


def _complex_vals(node: Node) -> Iterator[Any]:
    """Its complex results that have a captured val."""
    for val in leaves(node.meta.get("val")):
        if isinstance(val, torch.Tensor) and val.dtype.is_complex and hasattr(val, "fake_mode"):
            yield val


def is_complex(node: Node) -> bool:
    return any(True for _ in _complex_vals(node))


class _Decomposition:
    def __init__(self, graph: torch.fx.Graph, statics: Collection[int], fake_mode: Any) -> None:
        self.graph = graph
        self.calls = RealCalls(graph, fake_mode)
        placeholders = graph.find_nodes(op="placeholder")
        self.static = {placeholders[number] for number in statics}
        self.whole: set[Node] = set()  # complex values on the host that no device operation computed
        self.wants_pair: set[Node] = set()
        self.wants_whole: set[Node] = set()
        self.by_rule: set[Node] = set()
        self.rotated: dict[Node, tuple[Node, Node]] = {}  # view_as_real of a product: view_as_complex, the factor

    def run(self) -> None:
        nodes = list(self.graph.nodes)
        for node in nodes:
            self._look_at(node)
        for node in reversed(nodes):
            self._ask_for_arguments(node)
        for node in nodes:
            self.calls.anchor = node
            self._write(node)

    # -- what there is ------------------------------------------------------------------------------------------------

    def _look_at(self, node: Node) -> None:
        if node.op == "get_attr" or (
            node.op == "call_function"
            and not is_random(node.target)
            and not EFFECT.on(node)
            and all(each in self.static for each in node.all_input_nodes)
        ):
            self.static.add(node)
        elif node.op == "call_function" and self._has_rule(node):
            self.by_rule.add(node)
            if node.target is aten.view_as_real.default:
                self._look_for_rotation(node)
        if not is_complex(node):
            return
        sources = [each for each in node.all_input_nodes if is_complex(each)]
        is_view = node.target in VIEWING and all(each in self.whole for each in sources)
        made_by_host = node.target is aten.view_as_complex.default or (
            node.target is aten._to_copy.default and not sources
        )
        if node not in self.by_rule or is_view or made_by_host:
            self.whole.add(node)

    def _has_rule(self, node: Node) -> bool:
        if node.target not in RULES or EFFECT.on(node):
            return False
        if node.target is operator.getitem and node.args[0] not in self.by_rule:  # a result of a host operation
            return False
        vals = [each.meta.get("val") for each in (node, *node.all_input_nodes)]
        tensors = [val for val in leaves(vals) if isinstance(val, torch.Tensor)]
        if not any(val.dtype.is_complex for val in tensors):
            return False
        if any(val.dtype not in (*REAL_DTYPES, torch.complex64) or 0 in val.shape for val in tensors):
            return False
        return node.target not in CONDITIONS or CONDITIONS[node.target](node)

    def _look_for_rotation(self, node: Node) -> None:
        """`view_as_real(view_as_complex(x) * factor)`: rotates pairs of neighbours, as rotary embeddings do."""
        product: Any = node.args[0]
        if product.target is not aten.mul.Tensor or product not in self.by_rule:
            return
        shape = product.meta["val"].shape
        for one, other in (product.args[:2], product.args[1::-1]):
            if (
                isinstance(one, Node)
                and isinstance(other, Node)
                and one in self.by_rule
                and one.target is aten.view_as_complex.default
                and is_complex(other)
                and one.meta["val"].shape == shape
                and flat_neighbours(one.args[0]) is not None  # type: ignore[arg-type]
                and other.meta["val"].shape[-1:] == shape[-1:]
            ):
                self.rotated[node] = one, other
                return

    # -- what is wanted -----------------------------------------------------------------------------------------------

    def _ask_for_arguments(self, node: Node) -> None:
        arguments = [each for each in node.all_input_nodes if is_complex(each)]
        if node in self.static:
            return
        if node in self.rotated:
            self.wants_pair.add(self.rotated[node][1])
            return
        if is_complex(node):
            if node in self.wants_whole and node in self.whole:
                self.wants_whole.update(arguments)
            if node in self.by_rule and (node in self.wants_pair or node in self.wants_whole - self.whole):
                self.wants_pair.update(arguments)
            if node not in self.by_rule:
                self.wants_whole.update(arguments)
        elif node in self.by_rule and not self._is_seen_by_host(node):
            self.wants_pair.update(arguments)
        elif not self._is_part(node):
            self.wants_whole.update(arguments)

    def _is_seen_by_host(self, node: Node) -> bool:
        """Whether `view_as_real` runs on the host: as a view of a host value, unless only its parts are read."""
        return (
            node.target is aten.view_as_real.default
            and node.args[0] in self.whole
            and node.args[0].target is not aten.view_as_complex.default  # type: ignore[union-attr]
            and not all(self._is_part(user) for user in node.users)
        )

    def _is_part(self, node: Node) -> bool:
        """Whether it selects the real or the imaginary part, as torch decomposes `real` and `imag`."""
        if node.target is not aten.select.int:
            return False
        source, dim, _ = node.args
        if source.target is not aten.view_as_real.default or source not in self.by_rule:  # type: ignore[union-attr]
            return False
        return dim % source.meta["val"].ndim == source.meta["val"].ndim - 1  # type: ignore[operator, union-attr]

    # -- writing ------------------------------------------------------------------------------------------------------

    def _write(self, node: Node) -> None:
        if is_complex(node):
            self._write_complex(node)
        elif node in self.static:
            return
        elif self._is_part(node) and (pair := self.calls.pairs.get(node.args[0].args[0])):  # type: ignore[union-attr, arg-type]
            node.replace_all_uses_with(pair[int(node.args[2]) % 2])  # type: ignore[arg-type, call-overload]
        elif node.target is aten._neg_view.default and not any(user.op == "output" for user in node.users):
            node.replace_all_uses_with(self.calls.call(aten.neg.default, node.args[0]))  # the imaginary part of a conj
        elif node in self.rotated:
            node.replace_all_uses_with(self._rotation(node))
        elif node in self.by_rule and self._is_seen_by_host(node):
            annotate(node, move=Move.COMPLEX_UPLOAD)
        elif node in self.by_rule:
            node.replace_all_uses_with(RULES[node.target](self.calls, node))

    def _write_complex(self, node: Node) -> None:
        if node in self.wants_pair or (node in self.wants_whole and node not in self.whole):
            if node in self.by_rule and node not in self.static:
                pair = RULES[node.target](self.calls, node)
                val = node.meta["val"]
                self.calls.pairs[node] = pair if isinstance(val, tuple | list) else self.calls.filled(pair, val.shape)
            else:
                self._split_on_host(node)
        if node in self.wants_whole and node in self.whole and node in self.by_rule and node not in self.static:
            if node.target in (aten.view_as_complex.default, aten._to_copy.default):
                annotate(node, move=Move.COMPLEX_DOWNLOAD)
        elif node in self.wants_whole and node not in self.whole:
            self._join_on_host(node)

    def _split_on_host(self, node: Node) -> None:
        after = node.next
        while after.op == "placeholder":
            after = after.next
        self.calls.anchor = after
        parts = [self.calls.call(part, node) for part in (composites.real_part, composites.imaginary_part)]
        for part in parts:
            annotate(part, move=Move.COMPLEX_UPLOAD)
        self.calls.pairs[node] = Pair(*parts)

    def _join_on_host(self, node: Node) -> None:
        val = node.meta["val"]
        pair = self.calls.pairs[node]
        strides = [int(step) for step in val.stride()]
        made = self.calls.call(composites.put_together, *pair, strides, val.is_conj())
        made.meta.update({name: item for name, item in node.meta.items() if name != MOVE.name})
        annotate(made, move=Move.COMPLEX_DOWNLOAD)
        node.replace_all_uses_with(made)
        self.calls.pairs[made] = pair

    def _rotation(self, node: Node) -> Node:
        """The rotation as the fused operation of rotary embeddings."""
        calls = self.calls
        seen, factor = self.rotated[node]
        x: Any = flat_neighbours(seen.args[0])  # type: ignore[arg-type]
        shape = factor.meta["val"].shape
        wide = [*shape[:-1], 2 * shape[-1]]
        cos, sin = [
            calls.call(aten.reshape.default, calls.call(aten.stack.default, [part, part], -1), wide)
            for part in calls.pairs[factor]
        ]
        made = calls.call(composites.rotary_embedding, x, cos, sin, True, wide[-1])
        return calls.call(aten.reshape.default, made, list(node.meta["val"].shape))
