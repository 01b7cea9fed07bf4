"""Elementwise operations of three operands: where, addcmul, addcdiv, lerp, mac."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats import carriers, casts
from ttnn_emulator.numerics.programs.elementwise import ternary as elementwise_ternary
from ttnn_emulator.ops.elementwise.binary.device_operation import plan_binary
from ttnn_emulator.ops.elementwise.binary.operand_rules import (
    INT32,
    UINT32,
    WIDE_INTEGERS,
    Number,
    adjusted_shards,
    as_number,
    broadcast,
    fits,
    inherited,
    number_carrier,
    padded,
)
from ttnn_emulator.ops.elementwise.binary.scalar import output_like
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.ops.support.derived_shards import fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

Values = torch.Tensor

# -- shapes and memory ------------------------------------------------------------------------------------------------


def _sides(shape: Sequence[int]) -> tuple[int, int]:
    """Height and width."""
    return (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)


def broadcasts(*shapes: Sequence[int]) -> bool:
    """Whether the kernels support this broadcast: each of height and width is full or 1."""
    heights, widths = zip(*map(_sides, shapes))
    return all(side in (1, max(sides)) for sides in (heights, widths) for side in sides)


def broadcasts_within_tiles(*shapes: Sequence[int]) -> bool:
    """Along the height, or along the width, or along both for operands of one value per tile."""
    heights, widths = zip(*map(_sides, shapes))
    rows, columns = len(set(heights)) > 1, len(set(widths)) > 1
    if rows and columns:
        full = max(heights), max(widths)
        return all(sides in ((1, 1), full) for sides in zip(heights, widths))
    return rows or columns


def broadcast_all(*shapes: Sequence[int]) -> tuple[int, ...]:
    joined: tuple[int, ...] = ()
    for shape in shapes:
        joined = broadcast(joined, shape)
    return joined


def ternary_output(
    operands: Sequence[Spec], dtype: DataType, memory_config: MemoryConfig | None, output: Spec | None
) -> Spec:
    """The result's spec; the shards come from the sharded operand with the most cores."""
    first = operands[0]
    for operand in operands:
        require(operand.on_device, "all operands must be on a device, one is on the host")
    require(first.is_sharded or first.is_tile, f"the first operand must be in TILE layout, it is in {first.layout}")
    shape = broadcast_all(*(operand.shape for operand in operands))
    if output is not None:
        require(output.shape == shape, f"the output tensor has shape {list(output.shape)}, the result {list(shape)}")
        require(first.is_sharded or output.is_tile, f"the output tensor must be TILE, it is {output.layout}")
        return output
    sharded = [operand for operand in operands if operand.is_sharded]
    if memory_config is None:
        config = first.memory_config
        if sharded:
            for operand in sharded:
                require(operand.shard_spec is not None, f"{operand.memory_config.brief()} has no shards to inherit")
            config = inherited(max(sharded, key=lambda spec: spec.shard_spec.num_cores()), shape)  # type: ignore[union-attr]
    elif lacks_shards(memory_config):
        after = padded(first, shape)
        if sharded and sharded[0].shard_spec is not None:
            shards = adjusted_shards(sharded[0].shard_spec, sharded[0].padded_shape, after)
        else:
            shards = fresh_shards(current_board().grid, after, memory_config.memory_layout, tiles=first.is_tile)
        config = memory_config.with_shard_spec(shards)
    else:
        config = memory_config
    return Spec.of(shape, dtype, first.layout if config.is_sharded() else Layout.TILE, config)


# -- where ------------------------------------------------------------------------------------------------------------


@operation("ttnn.where", ignores=("sub_core_grids",))
def where(
    predicate: Spec,
    true_value: Spec | Number,
    false_value: Spec | Number,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """true_value where the predicate is not zero, false_value elsewhere."""
    chosen = [value for value in (true_value, false_value) if isinstance(value, Spec)]
    condition, cast = predicate, None
    floats = chosen and all(value.dtype in FLOAT_DTYPES for value in chosen)
    if floats and predicate.dtype not in FLOAT_DTYPES:
        require(predicate.on_device, "the predicate must be on a device, it is on the host")
        cast = casts.typecast(predicate.dtype, chosen[0].dtype)
        condition = predicate.with_(dtype=chosen[0].dtype)
    if len(chosen) == 2:
        return _where_of_tensors(condition, chosen[0], chosen[1], cast, memory_config, output_tensor)
    if len(chosen) == 1:
        return _where_with_number(condition, true_value, false_value, cast, memory_config, output_tensor)
    return _where_of_numbers(predicate, true_value, false_value, memory_config, output_tensor)  # type: ignore[arg-type]


def _where_of_tensors(
    condition: Spec, chosen: Spec, other: Spec, cast: Any, memory_config: Any, output: Spec | None
) -> Plan:
    shapes = [spec.shape for spec in (condition, chosen, other)]
    require(broadcasts(*shapes), f"shapes {[list(shape) for shape in shapes]} do not broadcast as where supports it")
    dtype = output.dtype if output is not None else chosen.dtype
    out = ternary_output((condition, chosen, other), dtype, memory_config, output)
    select = elementwise_ternary.prepare_where(condition.dtype, out.dtype)

    def compute(flags: Values, x: Values, y: Values) -> Values:
        return select(cast(flags) if cast is not None else flags, x, y)

    return Plan(out, compute, reads=("predicate", "true_value", "false_value"), into=into(output))


def _where_with_number(
    condition: Spec, true_value: Any, false_value: Any, cast: Any, memory_config: Any, output: Spec | None
) -> Plan:
    number_is_true = not isinstance(true_value, Spec)
    tensor, number = (false_value, true_value) if number_is_true else (true_value, false_value)
    number = as_number(number)
    if tensor.dtype in WIDE_INTEGERS:
        # Unlike elsewhere, an integer beyond the dtype's range is not reinterpreted.
        whole = fits(float(number), tensor.dtype)
        require(whole, f"where of {tensor.dtype} cannot represent the number {number}")
    config = memory_config
    if config is None:
        config = inherited(tensor, condition.shape) if tensor.is_sharded else tensor.memory_config
    tensor_name = "false_value" if number_is_true else "true_value"
    plan = plan_binary(
        "WHERE_TST" if number_is_true else "WHERE_TTS",
        condition,
        tensor,
        names=("predicate", tensor_name),
        memory_config=config,
        output=output,
        convert_layouts=False,
    )
    out = plan.outputs
    assert isinstance(out, Spec)
    held = number_carrier(number, tensor.dtype)
    select = elementwise_ternary.prepare_where(condition.dtype, out.dtype)

    def compute(flags: Values, x: Values) -> Values:
        flags = cast(flags) if cast is not None else flags
        return (select(flags, held, x) if number_is_true else select(flags, x, held)).reshape(out.shape)

    program = ("where", number_is_true, condition, tensor, out)
    return Plan(out, compute, reads=plan.reads, into=plan.into, program=program)


def _where_of_numbers(
    predicate: Spec, true_value: Number, false_value: Number, memory_config: Any, output: Spec | None
) -> Plan:
    require(predicate.on_device, "the predicate must be on a device, it is on the host")
    require(
        predicate.dtype in FLOAT_DTYPES | WIDE_INTEGERS, f"where between two numbers does not support {predicate.dtype}"
    )
    native = DataType.FLOAT32 if predicate.dtype in WIDE_INTEGERS else predicate.dtype
    out = output_like(predicate, memory_config, output, output.dtype if output is not None else native)
    # A number is written to the destination register, which truncates it to its width.
    numbers = [torch.tensor(float(as_number(value))) for value in (true_value, false_value)]
    wide = out.dtype is DataType.FLOAT32
    held = numbers if wide else [carriers.truncate_bf16(number) for number in numbers]
    select = elementwise_ternary.prepare_where(predicate.dtype, out.dtype)
    return Plan(out, lambda flags: select(flags, *held), reads=("predicate",), into=into(output))


# -- arithmetic -------------------------------------------------------------------------------------------------------


@internal("ttnn.prim.ternary")
def joined(
    a: Spec,
    b: Spec | None,
    c: Spec | None,
    kind: str,
    b_number: float,
    c_number: float,
    value: Number,
    memory_config: MemoryConfig | None,
    output_tensor: Spec | None = None,
) -> Plan:
    """Three operands on the vector unit; b or c may be a number."""
    operands = [spec for spec in (a, b, c) if spec is not None]
    dtype = output_tensor.dtype if output_tensor is not None else a.dtype
    out = ternary_output(operands, dtype, memory_config, output_tensor)
    names = tuple(name for name, spec in (("a", a), ("b", b), ("c", c)) if spec is not None)
    if a.dtype in WIDE_INTEGERS:
        compute: Any = _integer_addcmul(a.dtype, value)
    else:
        dtypes = tuple(spec.dtype if spec is not None else DataType.FLOAT32 for spec in (a, b, c))
        join = elementwise_ternary.prepare_arithmetic(kind, dtypes, out.dtype, float(value))
        wide = out.dtype is DataType.FLOAT32
        numbers = [torch.tensor(number) for number in (b_number, c_number)]
        held = numbers if wide else [carriers.truncate_bf16(number) for number in numbers]

        def compute(*given: Values) -> Values:
            values = iter(given)
            first = next(values)
            second = next(values) if b is not None else held[0]
            third = next(values) if c is not None else held[1]
            return join(first, second, third)

    operands_seen = tuple(None if spec is None else (spec, spec.shape) for spec in (a, b, c))
    return Plan(out, compute, reads=names, into=into(output_tensor), program=("ternary", kind, operands_seen, out))


def _integer_addcmul(dtype: DataType, value: Number) -> Any:
    scalar = int(value) if math.isfinite(value) else 0

    def compute(a: Values, b: Values, c: Values) -> Values:
        product = carriers.wrap_integer(b.to(torch.int64) * scalar, INT32).to(torch.int64) * c.to(torch.int64)
        return carriers.wrap_integer(a.to(torch.int64) + product, dtype)

    return compute


def _native(*tensors: Any) -> bool:
    """Whether the kernels of three operands take these shapes and dtypes."""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    blocks = any(tensor.dtype in BLOCK_FLOAT_DTYPES for tensor in tensors)
    return broadcasts(*shapes) and not (blocks and broadcasts_within_tiles(*shapes))


ADDCMUL_DTYPES = frozenset({DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32, INT32, UINT32})


@composite("ttnn.addcmul")
def addcmul(
    input_a: Any,
    input_b: Any,
    input_c: Any,
    *,
    value: Number = 1.0,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """a + value × b × c."""
    require(input_a.dtype in ADDCMUL_DTYPES, f"addcmul does not support {input_a.dtype}")
    dtypes = {tensor.dtype for tensor in (input_a, input_b, input_c)}
    require(len(dtypes) == 1, f"addcmul takes one dtype, not {sorted(map(str, dtypes))}")
    if _native(input_a, input_b, input_c):
        return joined(input_a, input_b, input_c, "ADDCMUL", 0.0, 0.0, as_number(value), memory_config, output_tensor)
    options = {"memory_config": memory_config}
    factor = ttnn.multiply(ttnn.multiply(input_b, input_c, **options), float(as_number(value)), **options)
    return ttnn.add(input_a, factor, **options)


@composite("ttnn.addcdiv")
def addcdiv(
    input_a: Any,
    input_b: Any,
    input_c: Any,
    *,
    value: float = 1.0,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """a + value × b ÷ c."""
    tensors = (input_a, input_b, input_c)
    require(any(tensor.dtype is not INT32 for tensor in tensors), "addcdiv does not support int32")
    blocks = any(tensor.dtype in BLOCK_FLOAT_DTYPES for tensor in tensors)
    if not blocks and broadcasts(*(tuple(tensor.shape) for tensor in tensors)):
        return joined(*tensors, "ADDCDIV", 0.0, 0.0, float(as_number(value)), memory_config, output_tensor)
    options = {"memory_config": memory_config}
    factor = ttnn.multiply(input_b, float(as_number(value)), **options)
    result = ttnn.add(input_a, ttnn.divide(factor, input_c, **options), **options)
    if result.dtype is DataType.FLOAT32:
        return result
    signs = ttnn.where(ttnn.eqz(input_b, **options), 1.0, ttnn.sign(input_b, **options), **options)
    infinite = ttnn.multiply(signs, value * math.inf, **options)
    return ttnn.where(ttnn.eqz(input_c, **options), infinite, result, **options)


@composite("ttnn.lerp")
def lerp(
    input: Any,
    end: Any,
    weight: Any,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """input + weight × (end - input)."""
    number = isinstance(weight, int | float)
    tensors = (input, end) if number else (input, end, weight)
    for tensor in tensors:
        require(tensor.dtype is not UINT32, "lerp does not support uint32")
    if _native(*tensors) and any(tensor.dtype is not INT32 for tensor in tensors):
        config = memory_config if memory_config is not None else input.memory_config()
        held = float(weight) if number else 0.0
        return joined(input, end, None if number else weight, "LERP", 0.0, held, 0.0, config, output_tensor)
    require(len({tensor.dtype for tensor in tensors}) == 1, "lerp takes one dtype")
    options = {"memory_config": memory_config}
    step = ttnn.multiply(ttnn.subtract(end, input, **options), float(weight) if number else weight, **options)
    result = ttnn.add(input, step, **options)
    if output_tensor is None:
        return result
    pair = {output_tensor.dtype, input.dtype}
    require(len(pair) == 1 or pair == {DataType.FLOAT32, DataType.BFLOAT16}, f"lerp cannot write {output_tensor.dtype}")
    return ttnn.assign(result, output_tensor)


@composite("ttnn.mac", ignores=("sub_core_grids",))
def mac(
    input_tensor_a: Any,
    input_tensor_b: Any = None,
    input_tensor_c: Any = None,
    value: float | None = None,
    value1: float | None = None,
    value2: float | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """a × b + c; b and c are tensors or numbers."""
    b: Any = input_tensor_b if input_tensor_b is not None else value1 if value1 is not None else value
    c: Any = input_tensor_c if input_tensor_c is not None else value2 if value2 is not None else value
    tensors = [item for item in (input_tensor_a, b, c) if not isinstance(item, int | float)]
    floats = all(tensor.dtype in FLOAT_DTYPES for tensor in tensors)
    if len(tensors) == 1 and floats:
        return scaled_and_shifted(input_tensor_a, float(b), float(c), memory_config)
    if floats and _native(*tensors):
        config = memory_config if memory_config is not None else input_tensor_a.memory_config()
        numbers = [float(item) if isinstance(item, int | float) else 0.0 for item in (b, c)]
        held = [None if isinstance(item, int | float) else item for item in (b, c)]
        return joined(input_tensor_a, *held, "MAC", *numbers, 0.0, config, output_tensor)
    require(output_tensor is None, "mac of these shapes or dtypes is a composite and does not support an output tensor")
    options = {"memory_config": memory_config}
    return ttnn.add(ttnn.multiply(input_tensor_a, b, **options), c, **options)


@internal("ttnn.mac")
def scaled_and_shifted(source: Spec, factor: float, offset: float, memory_config: MemoryConfig | None) -> Plan:
    """A kernel of one operand with two numbers."""
    require(source.on_device, "the input tensor must be on a device, it is on the host")
    out = output_like(source, memory_config, None, source.dtype)
    join = elementwise_ternary.prepare_arithmetic(
        "MAC", (source.dtype, DataType.FLOAT32, DataType.FLOAT32), source.dtype, 0.0
    )
    numbers = torch.tensor(factor), torch.tensor(offset)
    return Plan(out, lambda values: join(values, *numbers), reads=("source",))
