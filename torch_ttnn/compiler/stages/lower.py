"""The stage `lower`: every ATen operation becomes TT-NN calls, or stays on the host with a reason."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis import (
    complements,
    exponents,
    factorised,
    index_bounds,
    losses,
    nan_observers,
    truncation,
)
from torch_ttnn.compiler.analysis.assertions import ASSERTIONS
from torch_ttnn.compiler.analysis.overwriting import overwriting
from torch_ttnn.compiler.analysis.ranges import Range, Ranges, beyond, divides_by_zero
from torch_ttnn.compiler.errors import CompileError, StaysOnHost
from torch_ttnn.compiler.frontend import kept_on_host
from torch_ttnn.compiler.frontend.higher_order import HigherOrderCall
from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.compiler.ir.metadata import (
    CAPTURED,
    EFFECT,
    MOVE,
    OWN_STRIDES,
    PREPARED,
    SETS_RANDOM_STATE,
    SPEC,
    Move,
    annotate,
)
from torch_ttnn.compiler.ir.nodes import call_node, captured_vals, drop_dead_code
from torch_ttnn.compiler.ir.resident import Residents, Written
from torch_ttnn.compiler.ir.source_lines import source_line
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering import registry

COMPARISONS = tuple([getattr(torch.ops.aten, name).Tensor for name in ("eq", "ne", "lt", "le", "gt", "ge")])
NO_LOWERING = "no lowering is registered for this operation"


@dataclass
class Lowered:
    """The two graphs of a program, and the value of each captured node."""

    main: torch.fx.Graph
    prepare: torch.fx.Graph
    weights: list[tuple[torch.fx.Node, torch.fx.Node]]  # (node in prepare, placeholder in main)
    inputs: list[torch.fx.Node | None]  # of main, one per captured placeholder; None where unused or static
    statics: dict[int, torch.fx.Node]  # index of the captured placeholder: its node in prepare
    values: dict[torch.fx.Node, Any] = field(default_factory=dict)  # captured node: its value
    residents: Residents = field(default_factory=Residents)  # tensors that are on the device before or after it


def lower(
    graph_module: torch.fx.GraphModule,
    static_inputs: Sequence[int],
    builder: ProgramBuilder,
    captured: torch.fx.GraphModule,
) -> Lowered:
    """Write both graphs of the program for `graph_module`, which was derived from the captured graph."""
    return _Lowering(graph_module, frozenset(static_inputs), builder, captured).run()


class _Lowering:
    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        statics: frozenset[int],
        builder: ProgramBuilder,
        captured: torch.fx.GraphModule,
    ) -> None:
        self.graph_module = graph_module
        self.static_numbers = statics
        self.builder = builder
        self.host_ops = kept_on_host.overloads_of(builder.options.host_ops)
        self.env: dict[torch.fx.Node, Any] = {}
        self.inputs: list[torch.fx.Node | None] = []
        self.statics: dict[int, torch.fx.Node] = {}
        inputs = self._input_ranges(captured)
        self.ranges = builder.ranges = Ranges(inputs, self._constant_of, self._is_static)
        for each in (exponents, complements, truncation, losses):
            builder.in_float32 |= each.in_float32(graph_module.graph)
        self.updates = self._float32_updates()
        builder.in_float32 |= self.updates
        self.kept = factorised.host_reasons(graph_module.graph)
        if builder.may_overwrite:
            builder.overwriting = overwriting(graph_module.graph, builder.residents.written)
        if not builder.accepts("nan"):
            self.kept |= self._host_reasons_of_nan(inputs)

    def _input_ranges(self, captured: torch.fx.GraphModule) -> dict[torch.fx.Node, Range]:
        """The ranges of integer inputs, which every call is checked against."""
        placeholders = self.graph_module.graph.find_nodes(op="placeholder")
        return index_bounds.ranges_of_inputs(captured, placeholders, self.static_numbers)

    def _float32_updates(self) -> set[torch.fx.Node]:
        """The pointwise operations that compute a new value of a float32 input from its old one.

        A running average changes by less than bfloat16 resolves.
        """
        outputs: Any = self.graph_module.graph.output_node().args[0]
        found: set[torch.fx.Node] = set()
        left = [outputs[result] for result in self.builder.residents.written]
        while left:
            node = left.pop()
            lowering = registry.find(node.target) if isinstance(node, torch.fx.Node) else None
            if node in found or lowering is None or not lowering.pointwise:
                continue
            if node.meta["val"].dtype is torch.float32:
                found.add(node)
                left += node.all_input_nodes
        return found

    def _host_reasons_of_nan(self, inputs: dict[torch.fx.Node, Range]) -> dict[torch.fx.Node, str]:
        """Operations that stay on the host because another one observes NaN, with the reason."""

        def ranges() -> Ranges:  # before lowering no node is known to be static
            return Ranges(inputs, lambda node: None, lambda node: False)

        return nan_observers.host_reasons(self.graph_module, self.static_numbers, ranges)

    def _is_static(self, node: torch.fx.Node) -> bool:
        value = self.env.get(node)
        return isinstance(value, Value) and value.is_static

    def _constant_of(self, node: torch.fx.Node) -> torch.Tensor | None:
        return self.builder.constant_of(self.env[node])

    def run(self) -> Lowered:
        builder = self.builder
        for node in self.graph_module.graph.nodes:
            builder.origin = node
            self.env[node] = getattr(self, f"_{node.op}")(node)
        drop_dead_code(builder.main)
        weights = []
        for prepared, placeholder in builder.weights.items():
            if placeholder.users:
                weights.append((prepared, placeholder))
            else:
                builder.main.erase_node(placeholder)
        builder.prepare_graph.output(tuple([prepared for prepared, _ in weights]))
        builder.prepare_graph.eliminate_dead_code()
        return Lowered(
            builder.main, builder.prepare_graph, weights, self.inputs, self.statics, self.env, builder.residents
        )

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _placeholder(self, node: torch.fx.Node) -> Any:
        number = len(self.inputs)
        val = node.meta.get("val")
        if not isinstance(val, torch.Tensor):
            self.inputs.append(None)
            return val
        is_static = number in self.static_numbers
        graph = self.builder.prepare_graph if is_static else self.builder.main
        placeholder = graph.placeholder(f"input_{number}")
        annotate(placeholder, val=val, number=number, origin=node)
        if is_static:
            self.statics[number] = placeholder
        self.inputs.append(None if is_static else placeholder)
        resident = self.builder.residents.inputs.get(number)
        if resident is not None:
            return self.builder.resident(placeholder, resident, tuple(val.shape), val.dtype)
        return Value(self.builder, val.shape, val.dtype, host=placeholder, is_static=is_static)

    def _get_attr(self, node: torch.fx.Node) -> Any:
        held = operator.attrgetter(str(node.target))(self.graph_module)
        return self.builder.static(held) if isinstance(held, torch.Tensor) else held

    # -- operations ---------------------------------------------------------------------------------------------------

    def _call_function(self, node: torch.fx.Node) -> Any:
        args, kwargs = self._values_of(node.args), self._values_of(node.kwargs)
        if node.target is operator.getitem and not isinstance(args[0], Value):
            return args[0][args[1]]
        if node.target in ASSERTIONS and not self._is_asserted_on_host(args[0]):
            return self.builder.require(("assertion", node), args[0].tile, "an assertion failed")
        if EFFECT.on(node):
            return self._on_host(node, args, kwargs, "it is run for its effect, such as raising an error")
        values = [item for item in leaves((args, kwargs)) if isinstance(item, Value)]
        if all(value.is_static for value in values) and not registry.is_random(node.target):
            return self._prepared(node, args, kwargs)
        if MOVE.on(node):
            return self._on_host(node, args, kwargs, "")
        if node in self.kept:
            return self._on_host(node, args, kwargs, self.kept[node])
        if _is_view(node.target) and isinstance(args[0], Value) and args[0].is_host_result:
            return self._view_on_host(node, args, kwargs)
        try:
            return self._lowered(node, args, kwargs)
        except StaysOnHost as reason:
            return self._on_host(node, args, kwargs, str(reason))
        except CompileError:
            raise
        except Exception as error:
            raise CompileError(_failure_message(node, args, kwargs, error)) from error

    def _is_asserted_on_host(self, condition: Any) -> bool:
        return not isinstance(condition, Value) or condition.is_static or not condition.is_on_device

    def _values_of(self, arguments: Any) -> Any:
        return mapped(arguments, lambda item: self.env[item] if isinstance(item, torch.fx.Node) else item)

    def _prepared(self, node: torch.fx.Node, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Lower an operation that depends only on weights and constants."""
        function: Any = node.target
        if not isinstance(node.meta.get("val"), torch.Tensor | tuple | list):
            return function(*args, **kwargs)
        return self.builder.prepare_call(function, args, kwargs, node.meta["val"])

    def _lowered(self, node: torch.fx.Node, args: tuple, kwargs: dict[str, Any]) -> Any:
        if node.target in self.host_ops:
            raise StaysOnHost(kept_on_host.REASON)
        lowering = registry.find(node.target)
        if isinstance(node.target, HigherOrderCall):
            raise StaysOnHost("it calls graphs or writes to its arguments, which only the host does")
        if lowering is None:
            raise StaysOnHost(NO_LOWERING)
        self._require_supported(node, args, kwargs)
        if lowering.when is not None:
            reason = lowering.when(self.builder.ttnn, self.builder, *args, **kwargs)
            if reason:
                raise StaysOnHost(reason)
        if lowering.pointwise:
            return self._pointwise(node, lowering, args, kwargs)
        result = lowering.function(self.builder.ttnn, self.builder, *args, **kwargs)
        if isinstance(node.meta["val"], tuple | list):
            result = [self._empty(its) if each is None else each for each, its in zip(result, node.meta["val"])]
            missing = [number for number in self.builder.used if result[number] is None]
            if missing:
                raise StaysOnHost(f"its output {missing[0]} is used, which the device does not compute")
        return self._as_values(result, node.meta["val"], node)

    def _empty(self, val: Any) -> Any:
        """An output without elements, such as statistics that are not computed; None for any other."""
        if not isinstance(val, torch.Tensor) or 0 not in val.shape:
            return None
        return self.builder.prepare_call(torch.ops.aten.zeros.default, (list(val.shape),), {"dtype": val.dtype}, val)

    def _require_supported(self, node: torch.fx.Node, args: tuple, kwargs: dict[str, Any]) -> None:
        """Refuse what no lowering supports: empty tensors, and dtypes that the device lacks."""
        checked: list[Any] = [item for item in leaves((args, kwargs)) if isinstance(item, Value)]
        val = node.meta["val"]
        if isinstance(val, tuple | list):
            used = [val[number] for number in self.builder.used if isinstance(val[number], torch.Tensor)]
            checked += [each for each in used if 0 not in each.shape] or used
        elif isinstance(val, torch.Tensor):
            checked.append(val)
        for item in checked:
            if 0 in item.shape:
                raise StaysOnHost("an empty tensor has no counterpart on the device")
            if item.dtype is torch.float64 or item.dtype.is_complex:
                raise StaysOnHost(f"{dtype_name(item.dtype)} has no counterpart on the device")
        if beyond(node, self.ranges):
            raise StaysOnHost("its integers may exceed the device's 32 bits")
        if index_bounds.looks_beyond(node, self.ranges):
            raise StaysOnHost("its index may be out of range, which torch rejects")
        if divides_by_zero(node, self.ranges):
            raise StaysOnHost("it may divide an integer by zero, which torch rejects")

    def _pointwise(self, node: torch.fx.Node, lowering: registry.Lowering, args: tuple, kwargs: dict[str, Any]) -> Any:
        val = node.meta["val"]
        if node in self.updates:
            args, kwargs = mapped((args, kwargs), self.builder.in_full_precision)
        tensors = [item for item in (*args, *kwargs.values()) if isinstance(item, Value)]
        aligned, form = self.builder.aligned(tensors, val.shape)
        handles = iter(aligned)

        def handle_of(item: Any) -> Any:
            return next(handles) if isinstance(item, Value) else item

        args = tuple([handle_of(item) for item in args])
        kwargs = {name: handle_of(item) for name, item in kwargs.items()}
        result = lowering.function(self.builder.ttnn, self.builder, *args, **kwargs)
        if isinstance(result, Value):
            return result
        return Value(self.builder, val.shape, val.dtype, base=result, form=form)

    def _as_values(self, result: Any, val: Any, node: torch.fx.Node) -> Any:
        if isinstance(val, tuple | list):
            return tuple([self._as_values(each, its, node) for each, its in zip(result, val)])
        if result is None or not isinstance(val, torch.Tensor):
            return result
        if isinstance(result, Handle):
            if _without_ones(result.shape) != _without_ones(val.shape):
                raise CompileError(
                    f"the lowering of {node.target} returns {list(result.shape)} where torch has {list(val.shape)}"
                )
            return Value(self.builder, val.shape, val.dtype, base=result)
        if result.shape != tuple(val.shape):
            raise CompileError(f"the lowering of {node.target} returns {result} where torch has {list(val.shape)}")
        if result.dtype is not val.dtype:
            result = Value(
                self.builder, result.shape, val.dtype, base=result.base(), form=result.form, is_static=result.is_static
            )
        return result

    # -- the host -----------------------------------------------------------------------------------------------------

    def _on_host(self, node: torch.fx.Node, args: tuple, kwargs: dict[str, Any], reason: str) -> Any:
        function: Any = node.target
        wanted = captured_vals(node)
        if function in COMPARISONS:
            args = (*self._rounded_alike(*args[:2]), *args[2:])
        call = call_node(
            self.builder.main, function, self._as_host_nodes(args, wanted), self._as_host_nodes(kwargs, wanted)
        )
        annotate(call, val=node.meta["val"], origin=node)
        move = Move.RANDOM_STATE if SETS_RANDOM_STATE.on(node) else MOVE.get(node)
        if move is not None:
            annotate(call, move=move)
        else:
            annotate(call, reason=reason, source=source_line(node))
        if EFFECT.on(node):
            annotate(call, effect=True)
        if _may_choose_strides(call):
            annotate(call, own_strides=True)
        return self._host_values(call, node.meta["val"])

    def _view_on_host(self, node: torch.fx.Node, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A view of what a host operation returned: an upload would round it, and download it again for the host."""
        wanted = captured_vals(node)
        call = call_node(
            self.builder.main,
            node.target,  # type: ignore[arg-type]
            self._as_host_nodes(args, wanted),
            self._as_host_nodes(kwargs, wanted),
        )
        annotate(call, val=node.meta["val"], origin=node, move=Move.HOST_VIEW)
        return self._host_values(call, node.meta["val"])

    def _rounded_alike(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The operands of a comparison on the host, both rounded if the device rounded one of them.

        A maximum computed on the host from unrounded numbers would equal none of the rounded ones.
        """
        if not all(isinstance(each, Value) and each.is_float for each in (x, y)):
            return x, y
        roundings = [dtype for each in (x, y) if (dtype := self.builder.rounding_of(each)) is not None]
        if not roundings:
            return x, y
        dtype = torch.bfloat16 if torch.bfloat16 in roundings else torch.float32
        return self.builder.rounded_on_host(x, dtype), self.builder.rounded_on_host(y, dtype)

    def _as_host_nodes(self, arguments: Any, vals: Iterator[Any] | None = None) -> Any:
        """Arguments as torch tensors of the main graph: downloaded, or prepared and stored on the host.

        `vals` are the captured arguments, leaf by leaf: tensors get their strides.
        """
        builder = self.builder

        def node_of(item: Any) -> Any:
            val = next(vals, None) if vals is not None else None
            if not isinstance(item, Value):
                return item
            host = item.host()
            here = builder.weight(host, None) if host.graph is builder.prepare_graph else host
            return builder.restrided(here, val.stride()) if isinstance(val, torch.Tensor) else here

        return mapped(arguments, node_of)

    def _host_values(self, node: torch.fx.Node, val: Any) -> Any:
        if isinstance(val, torch.Tensor):
            return Value(self.builder, val.shape, val.dtype, host=node)
        if not isinstance(val, tuple | list):
            return node
        values = []
        for index, each in enumerate(val):
            item = call_node(self.builder.main, operator.getitem, (node, index))
            annotate(item, val=each, origin=self.builder.origin)
            if OWN_STRIDES.on(node):
                annotate(item, own_strides=True)
            values.append(self._host_values(item, each))
        return tuple(values)

    # -- outputs ------------------------------------------------------------------------------------------------------

    def _output(self, node: torch.fx.Node) -> None:
        outputs = tuple(node.args[0])  # type: ignore[arg-type]
        values = self._values_of(outputs)
        written = self._new_values(values)
        kept = self._kept(values, written) if self.builder.residents.results else [None] * len(outputs)
        hosts = self._as_host_nodes(tuple([None if stays else value for value, stays in zip(values, kept)]))
        hosts = tuple([self._view_of_input(each) or host for each, host in zip(outputs, hosts)])
        self.builder.write_requirements()
        made = self._without_aliases(outputs, tuple([None if stays else host for stays, host in zip(kept, hosts)]))
        for result, handle in written.items():
            if handle is not None:
                self.builder.write_in_place(handle, self.builder.residents.written[result])
        output = self.builder.main.output(tuple([stays[0] if stays else host for stays, host in zip(kept, made)]))
        if any(kept):
            annotate(output, kept=[stays and stays[1] for stays in kept])
        captured: Any = CAPTURED[node].args[0]  # fusions keep shapes, but not always strides
        known = [ours if _is_generator_state(ours) else item for ours, item in zip(outputs, captured)]
        annotate(output, vals=[item.meta.get("val") if isinstance(item, torch.fx.Node) else item for item in known])

    def _new_values(self, values: Sequence[Any]) -> dict[int, Handle | None]:
        """Results that are written into the memory of inputs, by index; None for those that have been already."""
        found: dict[int, Handle | None] = {}
        for result, number in self.builder.residents.written.items():
            if number in self.builder.updated:
                found[result] = None
                continue
            handle = self.builder.new_values_of(values[result], number) if isinstance(values[result], Value) else None
            if handle is not None:
                found[result] = handle
        return found

    def _kept(self, values: Sequence[Any], written: Collection[int]) -> list[Any]:
        """Results that stay on the device as distinct tensors, each with how it is stored; None for the others."""
        seen: set[torch.fx.Node] = set()
        found: list[Any] = []
        for number, value in enumerate(values):
            if number in written:
                found.append((None, Written.IN_PLACE))
                continue
            stays = isinstance(value, Value) and self.builder.residents.stays(number)
            kept = self._kept_value(value, number) if stays else None
            if kept is not None and kept[0] in seen:
                kept = self.builder.ttnn.clone(Handle(kept[0], SPEC[kept[0]])).node, kept[1]
            if kept is not None:
                seen.add(kept[0])
            found.append(kept)
        return found

    def _kept_value(self, value: Value, result: int) -> tuple[torch.fx.Node, Any] | None:
        """A result that stays on the device; the new value of an input is stored as the old one."""
        builder = self.builder
        written = builder.residents.written.get(result)
        as_input = builder.kept_as_input(value, written) if written is not None else None
        return as_input or builder.kept(value)

    def _view_of_input(self, node: Any) -> torch.fx.Node | None:
        """A result that is a view of an input, as a view: `x.as_strided_(...)` reads its storage offset."""
        if not isinstance(node, torch.fx.Node) or self._is_static(node):
            return None
        if node.op == "placeholder":
            value = self.env[node]
            return value.host() if isinstance(value, Value) else None
        is_view = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
        if not is_view or len(node.all_input_nodes) != 1 or not isinstance(node.meta["val"], torch.Tensor):
            return None
        source = self._view_of_input(node.args[0])
        return self.builder.viewed_on_host(source, node) if source is not None else None

    def _without_aliases(self, outputs: tuple, hosts: tuple) -> tuple:
        """Results as distinct tensors: a clone must not alias its input, nor another result."""
        results: list[Any] = []
        outputs_of: dict[torch.fx.Node, torch.fx.Node] = {}
        for output, host in zip(outputs, hosts):
            if isinstance(host, torch.fx.Node):
                is_input = host.op == "placeholder" and not PREPARED.on(host)
                if (is_input and output.op != "placeholder") or outputs_of.setdefault(host, output) is not output:
                    host = self.builder.copied(host)
            results.append(host)
        return tuple(results)


def _is_generator_state(item: Any) -> bool:
    """Whether an output is a generator's state, whose size the partitioner does not know."""
    return isinstance(item, torch.fx.Node) and SETS_RANDOM_STATE.on(item)


def _failure_message(node: torch.fx.Node, args: tuple, kwargs: dict[str, Any], error: Exception) -> str:
    """What failed in a lowering, for which arguments, and what to do about it."""
    arguments = [repr(item) for item in args] + [f"{name}={item!r}" for name, item in kwargs.items()]
    return (
        f"lowering {node.target} failed: {type(error).__name__}: {error}\n"
        f"  called with {', '.join(arguments)}\n"
        f"  at {source_line(node) or 'an unknown line of the model'}\n"
        "  This is a bug of torch_ttnn, not of the model. Until it is fixed, options={'bypass_compile': True} runs "
        "the model with torch."
    )


def _may_choose_strides(call: torch.fx.Node) -> bool:
    """Whether torch's kernel may return other strides than the captured ones.

    Meta functions and kernels agree where all tensors are contiguous, which is what torch's own tests compare.
    """
    target = call.target
    if isinstance(target, HigherOrderCall):
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.is_view:
        return False
    arguments = [each.meta.get("val") for each in call.all_input_nodes]
    tensors = [each for each in leaves((arguments, call.meta["val"])) if isinstance(each, torch.Tensor)]
    return not all(each.is_contiguous() for each in tensors)


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _is_view(target: Any) -> bool:
    """Whether an operator returns views of its first argument, such as `slice` or `permute`."""
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.arguments:
        return False
    alias = target._schema.arguments[0].alias_info
    return alias is not None and not alias.is_write
