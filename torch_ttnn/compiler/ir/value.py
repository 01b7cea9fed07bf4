"""Values of a program while it is being written: torch's shape and dtype, and the tensors that store them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

import ttnn_emulator as ttnn
from torch_ttnn.compiler.ir.describe import shape_and_dtype
from torch_ttnn.compiler.ir.storage_order import Form, Shape

if TYPE_CHECKING:
    from torch_ttnn.compiler.ir.builder import ProgramBuilder

TILE, ROW_MAJOR = ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT


class Handle:
    """A tensor of the program: the node that computes it, and its spec from the operation table."""

    __slots__ = ("node", "tensor")

    def __init__(self, node: torch.fx.Node, tensor: ttnn.Tensor) -> None:
        self.node = node
        self.tensor = tensor

    @property
    def shape(self) -> Shape:
        return self.tensor.spec.shape

    @property
    def dtype(self) -> ttnn.DataType:
        return self.tensor.spec.dtype

    @property
    def layout(self) -> ttnn.Layout:
        return self.tensor.spec.layout

    def __repr__(self) -> str:
        return f"Handle({self.node.name}: {self.tensor.spec.brief()})"


class Value:
    """One value of the captured graph.

    It may be stored in a torch tensor on the host, in a tensor on the device, or both. A move is written when a
    lowering first asks for the missing one, and never twice.

    shape, dtype   torch's
    is_static      it depends on weights and constants only, so it is prepared once and not on every call
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        shape: Sequence[int],
        dtype: torch.dtype,
        *,
        host: torch.fx.Node | None = None,
        base: Handle | None = None,
        form: Form | None = None,
        is_static: bool = False,
    ) -> None:
        self.builder = builder
        self.shape: Shape = tuple(shape)
        self.dtype = dtype
        self.is_static = is_static
        self._host = host
        self._base = base
        self._form = form if form is not None else Form.plain(self.shape)
        self._plain: dict[tuple[ttnn.Layout, ttnn.DataType], Handle] = {}

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_bool(self) -> bool:
        return self.dtype is torch.bool

    @property
    def is_integer(self) -> bool:
        return not (self.dtype.is_floating_point or self.dtype.is_complex or self.is_bool)

    @property
    def is_on_device(self) -> bool:
        return self._base is not None

    @property
    def is_host_result(self) -> bool:
        """Whether a host operation computed it, and it was not uploaded."""
        return self._base is None and not self._plain and self._host is not None and self._host.op == "call_function"

    @property
    def form(self) -> Form:
        """Its storage order on the device."""
        return self._form

    @property
    def device_dtype(self) -> ttnn.DataType:
        """Its dtype on the device, or the one that it would have there."""
        return self._base.dtype if self._base is not None else self.builder.device_dtype(self.dtype)

    def constant(self) -> torch.Tensor | None:
        """Its tensor, if it depends on no weight and no input."""
        return self.builder.constant_of(self)

    def __repr__(self) -> str:
        where = "static" if self.is_static else "device" if self._base is not None else "host"
        return f"Value({shape_and_dtype(self)} {where})"

    # -- on the device ----------------------------------------------------------------------------------------------

    def base(self) -> Handle:
        """Its tensor on the device, with dimensions in the order of `form` (possibly merged or split)."""
        if self._base is None:
            for found in self._plain.values():
                self._base = self.builder.cast(found, self.device_dtype)
                return self._base
            self._base = self.builder.upload(self)
        return self._base

    def tile(self, dtype: ttnn.DataType | None = None) -> Handle:
        """Its tensor in tile layout, in torch's order and shape."""
        return self._as(TILE, dtype)

    def row_major(self, dtype: ttnn.DataType | None = None) -> Handle:
        """Its tensor in row-major layout, in torch's order and shape."""
        return self._as(ROW_MAJOR, dtype)

    def _as(self, layout: ttnn.Layout, dtype: ttnn.DataType | None) -> Handle:
        if self._is_wider(dtype) and self._held_in(ttnn.float32) is None:
            self._plain[layout, ttnn.float32] = self.builder.upload(self, layout, dtype)
        elif dtype is ttnn.float32 and self._is_narrowed:
            self._widen()
        elif self._base is None and self._host is not None and not self._plain:
            self._base = self.builder.upload(self, layout, dtype if self._loses_nothing(dtype) else None)
        key = layout, dtype or self.device_dtype
        found = self._plain.get(key)
        if found is None:
            found = self.builder.converted(self._held_in(key[1]) or self._in_order(), layout, key[1])
            self._plain[key] = found
        return found

    def _held_in(self, dtype: ttnn.DataType) -> Handle | None:
        """Its tensor in torch's order and shape and this dtype, in either layout, if it exists already."""
        return next((handle for (_, held), handle in self._plain.items() if held is dtype), None)

    def _loses_nothing(self, dtype: ttnn.DataType | None) -> bool:
        """Whether it can be uploaded directly in this dtype, from which other dtypes are cast."""
        return self.is_bool or (self.is_integer and dtype in (ttnn.int32, ttnn.uint32))

    def _is_wider(self, dtype: ttnn.DataType | None) -> bool:
        """Whether float32 is asked for and the host still has it: a detour through bfloat16 would lose digits."""
        on_host = self._host is not None and (self.is_static or self._base is None)
        return on_host and self.dtype is torch.float32 and dtype is ttnn.float32 is not self.device_dtype

    @property
    def _is_narrowed(self) -> bool:
        """Whether it is a float32 that the device has only in lower precision."""
        held = self._base is not None and self._base.dtype is not ttnn.float32
        return held and self.dtype is torch.float32 and self._held_in(ttnn.float32) is None

    def _widen(self) -> None:
        """Switch to float32 if it is an upload, or a view of one."""
        assert self._base is not None
        wide = self.builder.widened(self._base)
        if wide is not None:
            made = self.builder.in_order(wide, self._form)
            self._plain[made.layout, made.dtype] = made

    def _in_order(self) -> Handle:
        """Its tensor in torch's order and shape, in any layout."""
        for found in self._plain.values():
            return found
        made = self.builder.in_order(self.base(), self._form)
        self._plain[made.layout, made.dtype] = made
        return made

    def stored(self) -> tuple[Handle, Form]:
        """Its tensor on the device and the form: in torch's order if that exists already."""
        for found in self._plain.values():
            return found, Form.plain(self.shape)
        return self.base(), self._form

    # -- on the host ------------------------------------------------------------------------------------------------

    def host(self) -> torch.fx.Node:
        """Its torch tensor on the host."""
        if self._host is None:
            self._host = self.builder.download(self)
        return self._host

    def prepared(self, function: Callable[..., torch.Tensor], *others: Any, **options: Any) -> Value:
        """A static value computed from this one (and others) by a torch function, once and not on every call."""
        return self.builder.prepare(function, self, *others, **options)

    # -- views: no operation until a use needs torch's order -----------------------------------------------------

    def view(self, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        if self.is_static:
            return self.prepared(torch.reshape, list(shape))
        if shape == self.shape:
            return self
        base = self.base()
        form = self._form.viewed(shape)
        if form is not None:
            return self._seen_as(base, form)
        joined = self.builder.joined_heads(base, self._form, shape)
        return self._seen_as(joined if joined is not None else self._in_order(), Form.plain(shape))

    def permute(self, dims: Sequence[int]) -> Value:
        dims = [dim % self.ndim for dim in dims] if self.ndim else []
        if self.is_static:
            return self.prepared(torch.permute, list(dims))
        return self._seen_as(self.base(), self._form.permuted(dims))

    def with_rank(self, rank: int) -> Value:
        """With leading dimensions of size 1, as broadcasting adds them."""
        return self if rank <= self.ndim else self.view((1,) * (rank - self.ndim) + self.shape)

    def _seen_as(self, base: Handle, form: Form) -> Value:
        return Value(self.builder, form.shape, self.dtype, base=base, form=form)


def align(values: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], Form]:
    """Operands of a pointwise operation in one common order, and the form of its result.

    If an operand of the result's shape is stored in another order than torch's (NHWC), the others are converted to that
    order, so that chains of convolutions and pointwise operations stay in NHWC.
    """
    shape = tuple(shape)
    leader = _leader(values, shape)
    if leader is None:
        return [value.tile() if isinstance(value, Value) else value for value in values], Form.plain(shape)
    form, base = leader.form, leader.base()
    same = [isinstance(value, Value) and _has_storage_order(value, form, base) for value in values]
    others = [value for value, is_same in zip(values, same) if isinstance(value, Value) and not is_same]
    actual = base.shape
    if actual != form.stored_shape and not all(_fits_merged(value, form, actual) for value in others):
        actual = form.stored_shape
    builder = leader.builder
    operands: list[Any] = []
    for value, is_same in zip(values, same):
        if not isinstance(value, Value):
            operands.append(value)
        elif is_same:
            operands.append(builder.tiled(builder.reshaped(value.base(), actual)))
        elif value.numel == 1:
            operands.append(value.tile())
        else:
            ordered = value.with_rank(len(shape)).permute(form.order)
            if actual != form.stored_shape:
                last = ordered.shape[-1]
                ordered = ordered.view(actual if value.shape == shape else (1,) * (len(actual) - 1) + (last,))
            operands.append(ordered.tile())
    return operands, form


def _leader(values: Sequence[Any], shape: Shape) -> Value | None:
    for value in values:
        if isinstance(value, Value) and value.is_on_device and value.shape == shape and not value.is_static:
            in_torch_order = value.form.is_plain and value.base().shape == shape
            if not in_torch_order:
                return value
    return None


def _has_storage_order(value: Value, form: Form, base: Handle) -> bool:
    return not value.is_static and value.is_on_device and value.form == form and value.base().shape == base.shape


def _fits_merged(value: Value, form: Form, actual: Shape) -> bool:
    """Whether it broadcasts against dimensions merged into `actual`: it has all, or only the last stored one."""
    if value.numel == 1 or value.shape == form.shape:
        return True
    padded = (1,) * (len(form.shape) - value.ndim) + value.shape
    return actual[-1] == form.stored_shape[-1] and math.prod(padded) == padded[form.order[-1]]
