"""Writes the program: calls of `ttnn` functions on values become nodes, typed immediately by the operation table.

A lowering gets two objects. `ttnn` has the library's names only: `ttnn.linear(x, weight, bias=bias)` writes a device
call. Values passed to a call are moved to the device as tiles in torch's order; a call returns a `Handle`. `builder`,
a `ProgramBuilder`, has everything else: conversions, constants, dtypes, and the operation that is being lowered.

Two graphs are written. Computations on weights and constants only go into `prepare`, which runs once, and again for
weights that changed; all others go into `main`, which runs on every call.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

import ttnn_emulator
from torch_ttnn.compiler.analysis.index_bounds import INT32
from torch_ttnn.compiler.analysis.ranges import Range
from torch_ttnn.compiler.errors import StaysOnHost, refuse
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.arguments import DEVICE, call_with, leaves, mapped
from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.compiler.ir.metadata import (
    CONSTANT,
    MOVE,
    NUMBER,
    ORIGIN,
    OWN_STRIDES,
    PATH,
    REASON,
    SPEC,
    Move,
    annotate,
)
from torch_ttnn.compiler.ir.nodes import call_node
from torch_ttnn.compiler.ir.resident import WRITES, Resident, Residents
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.tile_padding import is_mostly_padding
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value, align
from torch_ttnn.compiler.lowering.support import heads, preparation
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator import DataType, EmulatorError, Layout
from ttnn_emulator.tensors.storage import SpecStorage

if TYPE_CHECKING:
    from torch_ttnn.devices import Target

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
# The torch dtype that `ttnn.to_torch` returns for each dtype.
DOWNLOADED = {
    DataType.BFLOAT16: torch.bfloat16,
    DataType.FLOAT32: torch.float32,
    DataType.INT32: torch.int32,
    DataType.UINT32: torch.uint32,
    DataType.UINT16: torch.uint16,
    DataType.UINT8: torch.uint8,
    DataType.BFLOAT8_B: torch.float32,
    DataType.BFLOAT4_B: torch.float32,
}
ATTENTION_CHUNK = 32  # rows; the library's default
CONSTANT_LIMIT = 1 << 22  # elements up to which a constant is evaluated while compiling, for lowerings to inspect

BEYOND = "an angle of sin, cos or tan, or a quotient of a remainder, is too large for the device"


class Namespace:
    """`ttnn` or a namespace in it: calls of the library's functions are written into the program."""

    def __init__(self, builder: ProgramBuilder, path: str, module: Any) -> None:
        self._builder = builder
        self._path = path
        self._module = module

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._module, name)
        if isinstance(attribute, ModuleType) or type(attribute).__name__ == "Namespace":
            return Namespace(self._builder, f"{self._path}.{name}", attribute)
        if not callable(attribute) or isinstance(attribute, type):
            return attribute
        builder, path = self._builder, f"{self._path}.{name}"

        def write(*args: Any, **kwargs: Any) -> Any:
            return builder.call(path, attribute, args, kwargs)

        setattr(self, name, write)
        return write


class ProgramBuilder:
    """Writes the graphs of a program while a captured graph is lowered."""

    def __init__(
        self,
        target: Target,
        options: TorchTtnnOption,
        fake_mode: FakeTensorMode,
        residents: Residents | None = None,
        may_overwrite: bool = True,
    ) -> None:
        self.ttnn = Namespace(self, "ttnn", ttnn_emulator)
        self.target = target
        self.options = options
        self.fake_mode = fake_mode
        self.residents = residents if residents is not None else Residents()
        self.may_overwrite = may_overwrite  # inputs, before the last step of the program
        self.main = torch.fx.Graph()
        self.prepare_graph = torch.fx.Graph()
        self.device = DEVICE
        self.origin: Any = None  # the ATen node being lowered
        self.ranges: Any = None  # of the graph being lowered
        self.in_float32: set[torch.fx.Node] = set()  # ATen nodes whose results are not rounded to bfloat16
        self.weights: dict[torch.fx.Node, torch.fx.Node] = {}  # node in `prepare`: its placeholder in `main`
        self._constants: dict[torch.fx.Node, torch.Tensor | None] = {}
        self._required: dict[Any, Handle] = {}  # requirements on the program's values, by key
        self._broken: dict[str, None] = {}  # what it means that one does not hold
        self._uploads: dict[torch.fx.Node, Handle] = {}  # the cast of an upload: the upload itself, in float32
        self._restrided: dict[tuple[torch.fx.Node, tuple[int, ...]], torch.fx.Node] = {}
        self.overwriting: Mapping[torch.fx.Node, int] = {}  # ATen calls that may write over an input of this index
        self.updated: set[int] = set()  # inputs that have been written in place

    # -- dtypes -----------------------------------------------------------------------------------------------------

    @property
    def float_dtype(self) -> DataType:
        """The dtype of floating-point values on the device, in the operation being lowered."""
        is_wide = self.options.precision == "float32" or self.origin in self.in_float32
        return DataType.FLOAT32 if is_wide else DataType.BFLOAT16

    def device_dtype(self, dtype: torch.dtype) -> DataType:
        if dtype in FLOATS:
            return DataType.BFLOAT16 if dtype is torch.bfloat16 else self.float_dtype
        if dtype is torch.bool:
            return DataType.BFLOAT16
        if dtype in INTEGERS:
            return DataType.INT32
        return refuse(f"{dtype_name(dtype)} has no counterpart on the device")

    @functools.cached_property
    def accurate(self) -> Any:
        """The compute config. HiFi4 with float32 accumulation has a hardware bug on Wormhole, so it is HiFi3."""
        return ttnn_emulator.WormholeComputeKernelConfig(
            math_fidelity=ttnn_emulator.MathFidelity.HiFi3,
            math_approx_mode=False,
            fp32_dest_acc_en=True,
            packer_l1_acc=True,
        )

    @functools.cached_property
    def accurate_attention(self) -> Any:
        """The library's default chunk sizes, with the exact exponential: the approximate one loses two digits."""
        return ttnn_emulator.SDPAProgramConfig(
            compute_with_storage_grid_size=self.target.typing.compute_with_storage_grid_size(),
            q_chunk_size=ATTENTION_CHUNK,
            k_chunk_size=ATTENTION_CHUNK,
            exp_approx_mode=False,
        )

    @property
    def used(self) -> frozenset[int]:
        """Indices of the outputs of the operation being lowered that are read."""
        users = [user for user in self.origin.users if user.target is operator.getitem]
        return frozenset([int(user.args[1]) for user in users])  # type: ignore[arg-type]

    def range_of(self, number: int) -> Range:
        """The range of an argument of the operation being lowered."""
        return self.ranges(self.origin.args[number])

    def accepts(self, difference: str) -> bool:
        """Whether the user accepts a known difference between the chip's arithmetic and torch's."""
        return difference in self.options.accept

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, path: str, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Type a call, write its node, and return its result as handles."""
        args, kwargs = mapped(args, self._as_handle), mapped(kwargs, self._as_handle)
        handles = [item for item in leaves((args, kwargs)) if isinstance(item, Handle)]
        once = bool(handles) and all(handle.node.graph is self.prepare_graph for handle in handles)
        graph = self.prepare_graph if once else self.main
        if not once:
            args, kwargs = mapped(args, self._in_main), mapped(kwargs, self._in_main)
        try:
            typed = self.typed(function, *args, **kwargs)
        except EmulatorError as error:
            raise StaysOnHost(str(error).splitlines()[0]) from error
        node = call_node(graph, function, mapped(args, _node_of), mapped(kwargs, _node_of))
        annotate(node, path=path, origin=self.origin, spec=typed)
        return self._handles(graph, node, typed)

    def typed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The specs that a call would return; no node is written."""
        with ttnn_emulator.specs_only():
            return call_with(function, args, kwargs, self._typed)

    def _handles(self, graph: torch.fx.Graph, node: torch.fx.Node, typed: Any) -> Any:
        if isinstance(typed, ttnn_emulator.Tensor):
            return Handle(node, typed)
        if not isinstance(typed, (list, tuple)):
            return None
        handles = []
        for index, tensor in enumerate(typed):
            item = call_node(graph, operator.getitem, (node, index))
            annotate(item, origin=self.origin, spec=tensor)
            handles.append(self._handles(graph, item, tensor))
        return type(typed)(handles) if type(typed) in (list, tuple) else tuple(handles)

    def _as_handle(self, item: Any) -> Any:
        return item.tile() if isinstance(item, Value) else item

    def _in_main(self, item: Any) -> Any:
        """A prepared tensor as a weight of the main graph."""
        if not isinstance(item, Handle) or item.node.graph is self.main:
            return item
        return Handle(self.weight(item.node, item.tensor), item.tensor)

    def _typed(self, item: Any) -> Any:
        if isinstance(item, Handle):
            return item.tensor
        if isinstance(item, torch.fx.Node):  # a seed
            return item.meta["val"]
        return self.target.typing if item is DEVICE else item

    def weight(self, prepared: torch.fx.Node, tensor: Any) -> torch.fx.Node:
        """The main graph's placeholder for a value of `prepare`."""
        weight_node = self.weights.get(prepared)
        if weight_node is None:
            with self.main.inserting_before():  # placeholders come first
                weight_node = self.main.placeholder(f"weight_{len(self.weights)}")
            annotate(weight_node, prepared=prepared, spec=tensor, val=prepared.meta.get("val"))
            self.weights[prepared] = weight_node
        return weight_node

    # -- conversions ------------------------------------------------------------------------------------------------

    def converted(self, handle: Handle, layout: Layout, dtype: DataType) -> Handle:
        """Convert a tensor to this layout and dtype; casts run on tiles."""
        if handle.dtype is not dtype:
            handle = self.cast(handle, dtype)
        if handle.layout is not layout:
            handle = self.ttnn.to_layout(handle, layout)
        return handle

    def cast(self, handle: Handle, dtype: DataType) -> Handle:
        if handle.dtype is dtype:
            return handle
        same_bits = {handle.dtype, dtype} == {DataType.INT32, DataType.UINT32}
        return self.ttnn.typecast(handle if same_bits else self.tiled(handle), dtype)

    def tiled(self, handle: Handle) -> Handle:
        return handle if handle.layout is TILE else self.ttnn.to_layout(handle, TILE)

    def reshaped(self, handle: Handle, shape: Sequence[int]) -> Handle:
        shape = tuple(shape)
        return handle if handle.shape == shape else self.ttnn.reshape(handle, list(shape))

    def in_order(self, handle: Handle, form: Form) -> Handle:
        """Materialise a form: the stored tensor in torch's order and shape."""
        apart = None if form.is_plain else self.split_heads(handle, form)
        if apart is not None:
            return apart
        if handle.layout is TILE and is_mostly_padding(form.stored_shape, handle.shape):
            handle = self.ttnn.to_layout(handle, ROW_MAJOR)
        if form.is_plain:
            return self.reshaped(handle, form.shape)
        return self.ttnn.permute(self.reshaped(handle, form.stored_shape), list(form.axes))

    def split_heads(self, handle: Handle, form: Form) -> Handle | None:
        """[B, S, H * D] to [B, H, S, D] in one operation, where the library has one."""
        return heads.split_heads(self.ttnn, self, handle, form)

    def joined_heads(self, handle: Handle, form: Form, shape: Shape) -> Handle | None:
        """[B, H, S, D] in storage, viewed as [B, S, H, D], to [B, S, H * D] in one operation of the library."""
        return heads.joined_heads(self.ttnn, self, handle, form, shape)

    # -- moves between host and device ----------------------------------------------------------------------------

    def upload(self, value: Value, layout: Layout | None = None, dtype: DataType | None = None) -> Handle:
        """Upload a host value to the device, in the layout and dtype of its first use."""
        if 0 in value.shape:
            refuse("an empty tensor has no counterpart on the device")
        own = self.device_dtype(value.dtype)  # rejects dtypes that the device lacks, even if another dtype is requested
        dtype = dtype or own
        if value.is_static and value.dtype is torch.float32 and dtype is not DataType.FLOAT32:
            value = value.prepared(preparation.saturated)
        elif value.is_static and value.dtype is torch.int64:
            value = value.prepared(preparation.within_32_bits)
        host = value.host()
        layout = layout or (ROW_MAJOR if is_mostly_padding(value.shape) else TILE)
        graph = host.graph
        if value.is_bool or value.dtype in (torch.int16, torch.int8, torch.uint8, torch.float16):
            host_dtype = torch.bfloat16 if value.is_bool else torch.float32 if value.is_float else torch.int32
            val = host.meta["val"]
            host = call_node(graph, torch.ops.aten._to_copy.default, (host,), {"dtype": host_dtype})
            with self.fake_mode:
                annotate(host, val=val.to(host_dtype), move=Move.UPLOAD, origin=self.origin)
        kwargs: dict[str, Any] = {"dtype": dtype, "layout": layout, "device": DEVICE}
        node = call_node(graph, ttnn_emulator.from_torch, (host,), kwargs)
        typed = ttnn_emulator.spec_tensor(value.shape, dtype, layout, device=self.target.typing)
        annotate(node, path="ttnn.from_torch", origin=self.origin, spec=typed)
        return Handle(node, typed)

    def widened(self, handle: Handle) -> Handle | None:
        """Change an upload in bfloat16 to float32, as the host has it; its users get a cast of it.

        None if the tensor is not an upload of a float32.
        """
        node = handle.node
        if node in self._uploads:
            return self._uploads[node]
        if PATH.get(node) != "ttnn.from_torch" or node.args[0].meta["val"].dtype is not torch.float32:  # type: ignore[union-attr]
            return None
        users = list(node.users)
        typed = ttnn_emulator.spec_tensor(handle.shape, DataType.FLOAT32, handle.layout, device=self.target.typing)
        node.kwargs = {**node.kwargs, "dtype": DataType.FLOAT32}  # type: ignore[dict-item]
        annotate(node, spec=typed)
        wide = Handle(node, typed)
        with node.graph.inserting_before(node.next):
            narrow = self.converted(wide, handle.layout, handle.dtype)
        for user in users:
            user.replace_input_with(node, narrow.node)
        handle.node, handle.tensor = narrow.node, narrow.tensor
        self._uploads[narrow.node] = wide
        return wide

    def download(self, value: Value) -> torch.fx.Node:
        """Download a device value; on the host, views restore torch's order and shape at no cost."""
        handle, form = value.stored()
        if (source := self._uploaded_from(handle, value.dtype)) is not None:
            whole = {"memory_format": torch.contiguous_format}
            copy = self._host_call(self.main, torch.ops.aten.clone.default, (source,), whole)
            return self._seen_on_host(copy, handle.shape, value.shape, form)
        graph = handle.node.graph
        kwargs: dict[str, Any] = {"dtype": value.dtype} if value.is_float else {}
        node = call_node(graph, ttnn_emulator.to_torch, (handle.node,), kwargs)
        host_dtype = value.dtype if value.is_float else DOWNLOADED[handle.dtype]
        with self.fake_mode:
            annotate(
                node,
                path="ttnn.to_torch",
                origin=self.origin,
                val=torch.empty(handle.shape, dtype=host_dtype, device="cpu"),
            )
        if host_dtype is torch.uint32:  # the bits of a signed integer
            node = self._host_call(graph, torch.ops.aten._to_copy.default, (node,), {"dtype": torch.int32})
            host_dtype = torch.int32
        if host_dtype is not value.dtype:
            node = self._host_call(graph, torch.ops.aten._to_copy.default, (node,), {"dtype": value.dtype})
        return self._seen_on_host(node, handle.shape, value.shape, form)

    def _seen_on_host(self, node: torch.fx.Node, actual: Shape, shape: Shape, form: Form) -> torch.fx.Node:
        """View a torch tensor of shape `actual` in torch's order and shape."""
        graph = node.graph
        if form.is_plain:
            form = Form.plain(shape)
        if actual != form.stored_shape:
            node = self._host_call(graph, torch.ops.aten.view.default, (node, list(form.stored_shape)), {})
        if not form.is_plain:
            node = self._host_call(graph, torch.ops.aten.permute.default, (node, list(form.axes)), {})
        return node

    def _uploaded_from(self, handle: Handle, dtype: torch.dtype) -> torch.fx.Node | None:
        """The host tensor of which this is an unchanged upload, if it has this dtype: no download is needed."""
        node = self._uploads[handle.node].node if handle.node in self._uploads else handle.node
        if PATH.get(node) != "ttnn.from_torch" or node.graph is not self.main:
            return None
        source = node.args[0]
        if MOVE.get(source) is Move.UPLOAD:  # type: ignore[union-attr]
            source = source.args[0]  # type: ignore[union-attr]
        return source if source.meta["val"].dtype is dtype else None  # type: ignore[union-attr, return-value]

    def _host_call(self, graph: torch.fx.Graph, target: Any, args: tuple, kwargs: dict) -> torch.fx.Node:
        """A torch call that is part of a move."""
        node = call_node(graph, target, args, kwargs)
        with self.fake_mode:
            node.meta["val"] = call_with(target, args, kwargs, _val_of)
        annotate(node, move=Move.DOWNLOAD, origin=self.origin)
        return node

    def rounding_of(self, value: Value) -> torch.dtype | None:
        """The device dtype that a host value was, or may have been, rounded to; None if it was never on the device."""
        node = value.host()
        while MOVE.get(node) is Move.DOWNLOAD:
            node = node.args[0]  # type: ignore[assignment]
        if PATH.get(node) == "ttnn.to_torch":
            return DOWNLOADED[SPEC[node.args[0]].spec.dtype]  # type: ignore[union-attr]
        is_saved = node.op == "placeholder" and _is_saved(ORIGIN.get(node))
        return DOWNLOADED[self.device_dtype(value.dtype)] if is_saved and value.dtype in FLOATS else None

    def rounded_on_host(self, value: Value, dtype: torch.dtype) -> Value:
        """A host value rounded to a dtype."""
        if torch.promote_types(value.dtype, dtype) is dtype:
            return value
        host = value.host()
        here = self.weight(host, None) if host.graph is self.prepare_graph else host
        node = self._host_call(self.main, torch.ops.aten._to_copy.default, (here,), {"dtype": dtype})
        return Value(self, value.shape, dtype, host=node)

    def restrided(self, host: torch.fx.Node, stride: Sequence[int]) -> torch.fx.Node:
        """A torch tensor of the main graph with these strides; itself if it has them already."""
        val = host.meta["val"]
        are_known = not OWN_STRIDES.on(host)
        steps = zip(val.shape, val.stride(), stride)
        if val.numel() <= 1 or (are_known and all(size == 1 or mine == theirs for size, mine, theirs in steps)):
            return host
        key = host, tuple([int(step) for step in stride])
        if key not in self._restrided:
            self._restrided[key] = self._host_call(self.main, composites.restrided, (host, list(key[1])), {})
        return self._restrided[key]

    def viewed_on_host(self, host: torch.fx.Node, view: torch.fx.Node) -> torch.fx.Node:
        """Apply the view of a captured node to a torch tensor of the main graph."""
        viewed = call_node(self.main, view.target, (host, *view.args[1:]), dict(view.kwargs))  # type: ignore[arg-type]
        annotate(viewed, val=view.meta["val"], move=Move.DOWNLOAD, origin=view)
        return viewed

    def copied(self, host: torch.fx.Node) -> torch.fx.Node:
        """A copy of a torch tensor of the main graph."""
        return self._host_call(self.main, torch.ops.aten.clone.default, (host,), {})

    # -- tensors that stay on the device -----------------------------------------------------------------------------

    def resident(self, placeholder: torch.fx.Node, resident: Resident, shape: Shape, dtype: torch.dtype) -> Value:
        """An input that is on the device already, in the dtype that this program computes it in."""
        typed = ttnn_emulator.Tensor.of(resident.spec, SpecStorage(self.target.typing), self.target.typing)
        annotate(placeholder, spec=typed)
        return self._held(Handle(placeholder, typed), shape, dtype, resident.form)

    def _held(self, whole: Handle, shape: Shape, dtype: torch.dtype, form: Form) -> Value:
        """A tensor of the device as a value, in the dtype that this program computes it in."""
        handle = self.cast(whole, self.device_dtype(dtype))
        if handle is not whole and whole.dtype is DataType.FLOAT32:
            self._uploads[handle.node] = whole
        return Value(self, shape, dtype, base=handle, form=form)

    def kept(self, value: Value) -> tuple[torch.fx.Node, Resident] | None:
        """A result that stays on the device, and how it is stored there; None if it is on the host, or has to be."""
        if not self._is_exact_constant(value) if value.is_static else value.is_host_result:
            return None
        try:
            if value.is_static:
                is_wide = value.dtype is torch.float32
                handle, form = value.tile(DataType.FLOAT32 if is_wide else None), Form.plain(value.shape)
            else:
                handle, form = value.stored()
                is_exact = value.numel == 1 and value.is_float and handle.dtype is DataType.FLOAT32
                handle = handle if is_exact else self.cast(handle, self.device_dtype(value.dtype))
            handle = self._in_main(handle)
            if not is_mostly_padding(handle.shape):  # as uploads are stored, so that programs need not convert it
                handle = self.tiled(handle)
            if _is_memory_of_input(handle.node):  # a result must not be the memory of an input, or of a constant
                handle = self.ttnn.clone(handle)
        except StaysOnHost:
            return None
        return handle.node, Resident(handle.tensor.spec, form if not form.is_plain else Form.plain(value.shape))

    def _is_exact_constant(self, value: Value) -> bool:
        """Whether a static value is a constant that the device holds as it is."""
        constant = self.constant_of(value)
        if constant is None or not constant.numel():
            return False
        return not bool(constant.isnan().any()) if value.is_float else INT32.hold(constant)

    def in_full_precision(self, item: Any) -> Any:
        """A float32 value of the device as float32; any other argument as it is."""
        if not isinstance(item, Value) or item.is_static or item.dtype is not torch.float32:
            return item
        return Value(self, item.shape, item.dtype, base=item.tile(DataType.FLOAT32))

    def new_values_of(self, value: Value, number: int) -> Handle | None:
        """A value that may be written into the memory of an input, in memory of its own; None if it may not be."""
        return None if self._required else self._stored_as_input(value, number)  # one that fails leaves inputs alone

    def kept_as_input(self, value: Value, number: int) -> tuple[torch.fx.Node, Resident] | None:
        """The new value of an input as a tensor of its own that is stored as the old one; None if it cannot be.

        Stored differently, it would need another program at the next call.
        """
        handle = self._stored_as_input(value, number)
        return (handle.node, self.residents.inputs[number]) if handle is not None else None

    def _stored_as_input(self, value: Value, number: int) -> Handle | None:
        """A value as an input of the device is stored; None if that is in another order, or the value on the host."""
        resident = self.residents.inputs.get(number)
        if resident is None or not resident.form.is_plain or value.is_host_result:
            return None
        try:
            dtype, layout = resident.spec.dtype, resident.spec.layout
            value = value.view(resident.spec.shape)
            handle = self._in_main(value.tile(dtype) if layout is TILE else value.row_major(dtype))
            return self.ttnn.clone(handle) if _is_memory_of_input(handle.node) else handle
        except StaysOnHost:
            return None

    def overwritten(self) -> Handle | None:
        """The memory of the input that the operation being lowered may write over, if it has one."""
        number = self.overwriting.get(self.origin)
        resident = self.residents.inputs.get(number) if number is not None else None
        if resident is None or not resident.form.is_plain:
            return None
        placeholder = next(node for node in self.main.find_nodes(op="placeholder") if NUMBER.get(node) == number)
        return Handle(placeholder, SPEC[placeholder])

    def overwritten_by(self, written: Handle, old: Value) -> Value:
        """The new value of an input that the operation being lowered has written over the old one."""
        annotate(written.node, effect=True)
        self.updated.add(self.overwriting[self.origin])
        return self._held(written, old.shape, old.dtype, Form.plain(old.shape))

    @property
    def overwrites_too_early(self) -> bool:
        """Whether an input is written although the call may fail afterwards, and has to leave it as it was."""
        return bool(self.updated) and (bool(self._required) or any(REASON.on(node) for node in self.main.nodes))

    def write_in_place(self, handle: Handle, number: int) -> None:
        """Write new values into the memory of an input, as the last step of the program."""
        placeholder = next(node for node in self.main.find_nodes(op="placeholder") if NUMBER.get(node) == number)
        self.ttnn.copy(handle, Handle(placeholder, SPEC[placeholder]))
        annotate(next(iter(reversed(self.main.nodes))), effect=True)

    # -- requirements -----------------------------------------------------------------------------------------------

    def require(self, key: Any, holds: Callable[[], Handle], otherwise: str = BEYOND) -> None:
        """Require a condition for the device's result to be correct: a tensor of one element, 1 or 0, once per key.

        `otherwise` says what it means that the condition does not hold.
        """
        if key not in self._required:
            self._required[key] = holds()
            self._broken.setdefault(otherwise)

    def write_requirements(self) -> None:
        """Download whether all requirements hold; if not, the program raises an error, and torch runs the call."""
        if not self._required:
            return
        first, *others = [
            self.reshaped(self.cast(holds, DataType.BFLOAT16), (1, 1)) for holds in self._required.values()
        ]
        for other in others:
            first = self.ttnn.multiply(first, other)
        all_hold = self.value(first, (1, 1), torch.bfloat16).host()
        node = call_node(self.main, composites.require, (all_hold, ", or ".join(self._broken)))
        annotate(node, val=True, move=Move.CHECK, origin=self.origin, effect=True)

    # -- random numbers ---------------------------------------------------------------------------------------------

    def seed(self) -> torch.fx.Node:
        """A seed for random numbers, which torch's generator draws at each call of the program."""
        node = call_node(self.main, composites.drawn_seed)
        annotate(node, val=1, move=Move.RANDOM_STATE, origin=self.origin)
        return node

    # -- static values ----------------------------------------------------------------------------------------------

    def prepare(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Write a torch call on static values into `prepare`; returns a static value (or a tuple of them)."""
        return self.prepare_call(function, args, kwargs)

    def prepare_call(
        self, function: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any], val: Any = None
    ) -> Any:
        """The same for arguments as a tuple and a dict. `val` is the captured result, if it is known already."""
        if any(isinstance(item, Value) and not item.is_static for item in leaves((args, kwargs))):
            raise ValueError("only static values can be prepared")
        node = call_node(self.prepare_graph, function, mapped(args, _host_node_of), mapped(kwargs, _host_node_of))
        if val is None:
            with self.fake_mode:
                val = call_with(function, node.args, node.kwargs, _val_of)
        annotate(node, val=val, origin=self.origin)
        return self._static_values(node)

    def _static_values(self, node: torch.fx.Node) -> Any:
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            return Value(self, val.shape, val.dtype, host=node, is_static=True)
        values = []
        for index, each in enumerate(val):
            item = call_node(self.prepare_graph, operator.getitem, (node, index))
            annotate(item, val=each, origin=self.origin)
            values.append(self._static_values(item) if isinstance(each, torch.Tensor) else None)
        return tuple(values)

    def constant_of(self, value: Value) -> torch.Tensor | None:
        """The tensor of a static value that depends on no weight, if it is small enough to inspect."""
        if not value.is_static or value.numel > CONSTANT_LIMIT:
            return None
        return self._evaluate(value.host())

    def _evaluate(self, node: torch.fx.Node) -> Any:
        if node in self._constants:
            return self._constants[node]
        result = None
        if node.op == "get_attr":
            result = CONSTANT[node]
        elif node.op == "call_function":
            inputs = {each: self._evaluate(each) for each in node.all_input_nodes}
            if all(each is not None for each in inputs.values()):

                def value_of(item: Any) -> Any:
                    return inputs[item] if isinstance(item, torch.fx.Node) else item

                with torch.no_grad(), _disable_current_modes():
                    result = call_with(node.target, node.args, node.kwargs, value_of)  # type: ignore[arg-type]
        self._constants[node] = result
        return result

    def static(self, tensor: torch.Tensor) -> Value:
        """A constant created by a lowering."""
        with self.fake_mode:
            val = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        node = self.prepare_graph.create_node("get_attr", f"constant_{len(self._constants)}")
        annotate(node, val=val, constant=tensor, origin=self.origin)
        self._constants[node] = tensor
        return Value(self, tensor.shape, tensor.dtype, host=node, is_static=True)

    # -- what lowerings return ----------------------------------------------------------------------------------------

    def value(self, handle: Handle, shape: Sequence[int], dtype: torch.dtype, form: Form | None = None) -> Value:
        """A value stored in `handle`; `form` is its order of dimensions, by default torch's."""
        return Value(self, shape, dtype, base=handle, form=form)

    def aligned(self, values: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], Form]:
        return align(values, shape)


def _is_saved(node: Any) -> bool:
    """Whether an input of a backward graph was saved by the forward graph, by AOTAutograd's names."""
    if node is None or node.name.startswith(("primals", "tangents")):
        return False
    return any(each.name.startswith("tangents") for each in node.graph.find_nodes(op="placeholder"))


def _is_memory_of_input(node: Any) -> bool:
    """Whether a node may be the memory of an input, perhaps in another layout or shape."""
    while PATH.get(node) in ("ttnn.reshape", "ttnn.to_layout", "ttnn.permute", "ttnn.typecast"):
        node = node.args[0]
    return node.op == "placeholder" or PATH.get(node) in WRITES


def _node_of(item: Any) -> Any:
    return item.node if isinstance(item, Handle) else item


def _host_node_of(item: Any) -> Any:
    return item.host() if isinstance(item, Value) else item


def _val_of(item: Any) -> Any:
    return item.meta["val"] if isinstance(item, torch.fx.Node) else item
