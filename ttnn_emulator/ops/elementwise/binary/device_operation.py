"""The binary device operation: checks, computation and program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import (
    BLOCK_FLOAT_DTYPES,
    FLOAT_DTYPES,
    DataType,
    Layout,
)
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, bindable
from ttnn_emulator.numerics.formats import casts
from ttnn_emulator.numerics.programs.elementwise import binary as elementwise
from ttnn_emulator.numerics.programs.elementwise import bound_binary
from ttnn_emulator.ops.elementwise.binary.circular_buffers import buffer_bytes
from ttnn_emulator.ops.elementwise.binary.operand_rules import (
    CAST_BEFORE,
    INT32,
    PROMOTING_NUMBERS,
    PROMOTING_TENSORS,
    QUANTIZING,
    ROUNDS_WHEN_ACCURATE,
    WHERE,
    WIDE_INTEGERS,
    Number,
    activation_names,
    as_number,
    broadcast,
    fits,
    number_carrier,
    output_memory,
    promoted,
    require_dtypes,
    same_but_for_leading_ones,
    tiled,
    within_tiles,
)
from ttnn_emulator.ops.support.common_checks import hashed
from ttnn_emulator.ops.support.fused_functions import fault_of, raising, require_fusable
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

# -- the operation ----------------------------------------------------------------------------------------------------


def plan_binary(
    kind: str,
    a: Spec,
    b: Spec | Number,
    *,
    names: Sequence[str],
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output: Spec | None = None,
    output_name: str = "output_tensor",
    activations: Sequence[UnaryWithParam] = (),
    input_tensor_a_activations: Sequence[UnaryWithParam] = (),
    input_tensor_b_activations: Sequence[UnaryWithParam] = (),
    fast: bool = False,
    accurate_asked: bool = False,
    number_first: bool = False,
    convert_layouts: bool = True,
    after: tuple[tuple, ...] = (),
    parameters: tuple = (),
) -> Plan:
    """Check one call and prepare it. `names` are the tensor operands; `b` is a number if there is only one."""
    for operand in (a, b):
        require(
            not isinstance(operand, Spec) or operand.on_device, "all operands must be on a device, one is on the host"
        )
    casts_in: list[Any] = [None, None]
    a, b = _promote(kind, a, b, casts_in)
    b_spec = b if isinstance(b, Spec) else None
    if isinstance(b, int | float):
        b = _number_for(kind, a, b)
    out_dtype = _result_dtype(kind, a, b_spec, dtype, output)
    layouts = _Layouts.of(a, b_spec, convert_layouts)
    require(
        not (output is not None and layouts.rows and convert_layouts),
        "row-major operands exclude an output tensor",
    )
    if not layouts.in_rows and convert_layouts:
        a = tiled(a)
        b_spec = tiled(b_spec) if b_spec is not None else None
    b_dtype = b_spec.dtype if b_spec is not None else None
    require_dtypes(kind, a.dtype, b_dtype)
    if kind in ROUNDS_WHEN_ACCURATE and accurate_asked:
        require(
            out_dtype is DataType.BFLOAT16,
            f"fast_and_approximate_mode=False is for results in bfloat16, not {out_dtype}",
        )
    out = _result(a, b_spec, out_dtype, memory_config, output, layouts)
    before = (*input_tensor_a_activations, *input_tensor_b_activations)
    for each in (*before, *activations):
        require_fusable(each, packs_relu=each not in before)
    before_a, before_b = activation_names(input_tensor_a_activations), activation_names(input_tensor_b_activations)
    after = after + activation_names(activations)
    in_kernel = _dtypes_in_kernel(kind, a.dtype, b_dtype, fast)
    compute = _computation(
        kind,
        a,
        b if b_spec is None else b_spec,
        out,
        in_kernel,
        casts_in,
        layouts.in_rows,
        number_first,
        parameters,
        before_a=before_a,
        before_b=before_b,
        after=after,
    )
    fault = fault_of(*before, *activations)
    if fault is not None and compute is not None:
        compute = raising(fault)
    _, right_dtype, vector = in_kernel
    own_a, own_b, between = elementwise.functions_of_operands(kind, a.dtype, vector)
    l1_bytes = buffer_bytes(
        a,
        b_spec,
        out,
        b_dtype=DataType.FLOAT32 if b_spec is None and kind in QUANTIZING else right_dtype,
        vector=vector,
        functions=(bool(before_a) or own_a, bool(before_b) or own_b),
        between=between,
    )
    program = (
        "binary",
        (kind, fast, accurate_asked, number_first, parameters, before_a, before_b, after),
        hashed(a),
        hashed(b_spec),
        hashed(out),
        None if b_spec is None else _turns(a.shape, b_spec.shape),
    )
    into = () if output is None else (output_name,)
    work = kind, vector, before_a, before_b, after
    return Plan(out, compute, reads=tuple(names), into=into, l1_bytes=l1_bytes, program=program, work=work)


def _number_for(kind: str, a: Spec, b: Number) -> Number:
    """A number as the kernel receives it for a tensor like `a`."""
    number = as_number(b)
    if a.dtype in WIDE_INTEGERS and kind not in QUANTIZING:
        require(fits(number, a.dtype), f"{kind} of {a.dtype} cannot represent the number {number}")
    return number


def _result_dtype(kind: str, a: Spec, b: Spec | None, dtype: DataType | None, output: Spec | None) -> DataType:
    """The dtype of the result: the output tensor's, the requested one, or the operands'."""
    given = output.dtype if output is not None else dtype
    made = given or (b.dtype if kind in WHERE and b else a.dtype)
    if kind == "DIV" and a.dtype is INT32 and (b is None or b.dtype is INT32):
        require(given in (None, DataType.FLOAT32), f"the quotient of integers is float32, not {given}")
        made = DataType.FLOAT32
    if dtype is not None and output is not None:
        require(dtype is output.dtype, f"the output tensor is {output.dtype}, {dtype} was requested")
    return made


@dataclass(frozen=True)
class _Layouts:
    """The layouts of the operands, and the layout in which the kernel reads them.

    rows      no operand is in tiles
    in_rows   the kernel computes on rows, if they are interleaved
    converts  whether the library converts layouts for the kernel
    """

    rows: bool
    in_rows: bool
    converts: bool

    @classmethod
    def of(cls, a: Spec, b: Spec | None, converts: bool) -> _Layouts:
        rows = not a.is_tile and (b is None or not b.is_tile)
        return cls(rows, rows and not a.is_sharded and not (b is not None and b.is_sharded), converts)


def _result(
    a: Spec,
    b: Spec | None,
    dtype: DataType,
    memory_config: MemoryConfig | None,
    output: Spec | None,
    layouts: _Layouts,
) -> Spec:
    """The output spec: that of the output tensor if there is one, else one of the broadcast shape."""
    shape = broadcast(a.shape, b.shape) if b is not None else a.shape
    if output is not None:
        require(
            same_but_for_leading_ones(output.shape, shape),
            f"the output tensor has shape {list(output.shape)}, the result {list(shape)}",
        )
        return output
    config = output_memory(a, b, memory_config, shape)
    stays = layouts.in_rows or (layouts.rows and not layouts.converts)
    made = Spec.of(shape, dtype, Layout.ROW_MAJOR if stays else Layout.TILE, config)
    back_to_rows = layouts.rows and not layouts.in_rows and layouts.converts
    return made.with_(layout=Layout.ROW_MAJOR) if back_to_rows else made


def _turns(a: Sequence[int], b: Sequence[int]) -> tuple:
    """The operand that is broadcast along the height and along the width of tiles; each case has its own kernel."""
    (height, width), (height_b, width_b) = (1, 1, *a)[-2:], (1, 1, *b)[-2:]
    return height == 1 != height_b, height_b == 1 != height, width == 1 != width_b, width_b == 1 != width


def _dtypes_in_kernel(kind: str, a: DataType, b: DataType | None, fast: bool) -> tuple[DataType, DataType, bool]:
    """The formats in which the operands reach the kernel, and whether the vector unit computes."""
    vector = elementwise.on_vector_unit(kind, a, a if b is None else b, fast)
    if b is not None:
        return a, b, vector
    narrow = a in BLOCK_FLOAT_DTYPES or (a in FLOAT_DTYPES and not vector)
    return a, DataType.BFLOAT16 if narrow else a, vector


def _promote(kind: str, a: Spec, b: Spec | Number, casts_in: list[Any]) -> tuple[Spec, Spec | Number]:
    """32-bit integers become floats where they meet floats; bytes are compared as uint16."""
    before = CAST_BEFORE.get(kind)
    if before is not None:
        source, target = before
        pair: list[Any] = [a, b]
        for place, operand in enumerate(pair):
            if isinstance(operand, Spec) and operand.dtype is source:
                casts_in[place] = casts.typecast(source, target)
                pair[place] = operand.with_(dtype=target)
        return pair[0], pair[1]
    if isinstance(b, Spec):
        if kind not in PROMOTING_TENSORS:
            return a, b
        if a.dtype in WIDE_INTEGERS and b.dtype in FLOAT_DTYPES:
            casts_in[0] = casts.typecast(a.dtype, promoted(a.dtype, b.dtype))
            return a.with_(dtype=promoted(a.dtype, b.dtype)), b
        if b.dtype in WIDE_INTEGERS and a.dtype in FLOAT_DTYPES:
            casts_in[1] = casts.typecast(b.dtype, promoted(b.dtype, a.dtype))
            return a, b.with_(dtype=promoted(b.dtype, a.dtype))
        return a, b
    if kind in PROMOTING_NUMBERS and a.dtype in WIDE_INTEGERS and isinstance(as_number(b), float):
        casts_in[0] = casts.typecast(a.dtype, DataType.FLOAT32)
        return a.with_(dtype=DataType.FLOAT32), b
    return a, b


def _computation(
    kind: str,
    a: Spec,
    b: Spec | Number,
    out: Spec,
    held: tuple[DataType, DataType, bool],
    casts_in: list[Any],
    in_rows: bool,
    number_first: bool,
    parameters: tuple,
    **functions: tuple,
) -> Any:
    a_dtype, b_dtype, vector = held
    number = None if isinstance(b, Spec) else b
    flush = isinstance(b, Spec) and not in_rows and a_dtype is b_dtype and a_dtype is DataType.BFLOAT16
    setting = elementwise.Setting(
        b_dtype if number_first else a_dtype,
        a_dtype if number_first else b_dtype,
        out.dtype,
        vector,
        flush_a=flush and isinstance(b, Spec) and within_tiles(a, b),
        flush_b=flush and isinstance(b, Spec) and within_tiles(b, a),
    )
    if kind in WHERE or kind in QUANTIZING:
        return None  # their operations provide the computation
    join = elementwise.prepare(kind, setting, parameters=parameters, **functions)
    cast_a, cast_b = casts_in
    shape = out.shape

    def fitted(values: torch.Tensor) -> torch.Tensor:
        return values if values.shape == shape else values.reshape(shape)

    if number is not None:
        filled = number_carrier(number, b_dtype)

        def compute_with_number(x: torch.Tensor) -> torch.Tensor:
            x = cast_a(x) if cast_a is not None else x
            return fitted(join(filled, x) if number_first else join(x, filled))

        def bind_with_number(carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
            pair = (filled, carriers[0]) if number_first else (carriers[0], filled)
            return _bound(kind, setting, pair, shape, functions)

        return bindable(compute_with_number, bind_with_number if cast_a is None else None)

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = cast_a(x) if cast_a is not None else x
        y = cast_b(y) if cast_b is not None else y
        return fitted(join(x, y))

    def bind(carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
        return _bound(kind, setting, carriers, shape, functions)

    return bindable(compute, bind if cast_a is None and cast_b is None else None)


def _bound(
    kind: str,
    setting: elementwise.Setting,
    pair: Sequence[torch.Tensor],
    shape: tuple[int, ...],
    functions: dict[str, tuple],
) -> Any:
    """See `Bindable`."""
    if any(values.dtype is not torch.float32 for values in pair):
        return None
    made = bound_binary.bind(kind, setting, pair[0], pair[1], **functions)
    return None if made is None else (made[0], made[1].reshape(shape))
