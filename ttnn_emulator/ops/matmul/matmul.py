"""matmul, linear, addmm: the device operation, and the library's steps before and after it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS, BufferType, DataType, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreGrid
from ttnn_emulator.numerics.functions.apply import BY_NAME
from ttnn_emulator.ops.matmul.device_operation import (
    Asked,
    chosen_program,
    default_math,
    is_full_block_bias,
    kernel_config,
    run,
    target_of,
)
from ttnn_emulator.ops.matmul.operands import Operands, height_of, is_batched, output_shape
from ttnn_emulator.ops.matmul.program_configs import TRANSPOSES_ITSELF, Kind, Program, program_of
from ttnn_emulator.ops.prefetch.dram_prefetcher import delivery_of, take
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import Tile
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

UnaryOpType = ALL_ENUMS["UnaryOpType"]
_PLAIN = Asked()


def as_unary(activation: str | UnaryWithParam | None) -> UnaryWithParam | None:
    """An activation, looked up if it is a name."""
    if not isinstance(activation, str):
        return activation
    require(activation in BY_NAME, f"no activation is called {activation!r}")
    name, params = BY_NAME[activation]
    return UnaryWithParam(UnaryOpType[name.upper()], *params)


def _refuse_pipes(prefetcher_pipes: Any) -> None:
    if prefetcher_pipes:
        raise NotEmulated("weights that come through prefetcher_pipes are not emulated")


@composite("ttnn.matmul")
def matmul(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: Any = None,
    activation: str | UnaryWithParam | None = None,
    compute_kernel_config: Any = None,
    core_grid: CoreGrid | None = None,
    output_tile: Tile | None = None,
    optional_output_tensor: Tensor | None = None,
    global_cb: Any = None,
    sub_device_id: Any = None,
    prefetcher_pipes: Any = (),
) -> Tensor:
    """The matrix product of two tensors, with torch's rules for vectors, and a subset of its batch broadcasting."""
    _refuse_pipes(prefetcher_pipes)
    asked = _asked(
        input_tensor_b,
        transpose_a,
        transpose_b,
        memory_config,
        dtype,
        program_config,
        activation,
        compute_kernel_config,
        core_grid,
        output_tile,
    )
    output = optional_output_tensor
    return _received(input_tensor_a, input_tensor_b, None, asked, output, global_cb, sub_device_id)


@composite("ttnn.linear")
def linear(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    bias: Tensor | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: Any = None,
    activation: str | UnaryWithParam | None = None,
    compute_kernel_config: Any = None,
    core_grid: CoreGrid | None = None,
    output_tile: Tile | None = None,
    optional_output_tensor: Tensor | None = None,
    global_cb: Any = None,
    sub_device_id: Any = None,
    prefetcher_pipes: Any = (),
    in0_column_offset: int | None = None,
) -> Tensor:
    """A matrix product plus a bias, then an activation."""
    _refuse_pipes(prefetcher_pipes)
    if in0_column_offset is not None:
        raise NotEmulated("in0_column_offset is not emulated")
    asked = _asked(
        input_tensor_b,
        transpose_a,
        transpose_b,
        memory_config,
        dtype,
        program_config,
        activation,
        compute_kernel_config,
        core_grid,
        output_tile,
    )
    if asked.program is not None and asked.program.untilize_out:
        asked = asked._replace(program=Program(**{**vars(asked.program), "untilize_out": False}))
    output = optional_output_tensor
    return _received(input_tensor_a, input_tensor_b, bias, asked, output, global_cb, sub_device_id)


def _received(
    a: Tensor, b: Tensor, bias: Tensor | None, asked: Asked, output: Tensor | None, global_cb: Any, part: Any
) -> Tensor:
    """A matmul; with a global circular buffer, it consumes the next weight in it."""
    if global_cb is None:
        return bound_matmul(a, b, bias, asked, output)
    asked = asked._replace(delivery=delivery_of(global_cb))
    result = bound_matmul(a, b, bias, asked, output)
    if asked.program is not None and asked.program.gather_in0:
        take(global_cb, a, b, result, asked.program, part)
    return result


def _asked(
    b: Tensor,
    transpose_a: bool,
    transpose_b: bool,
    memory_config: MemoryConfig | None,
    dtype: DataType | None,
    program_config: Any,
    activation: str | UnaryWithParam | None,
    compute_kernel_config: Any,
    core_grid: CoreGrid | None,
    output_tile: Tile | None,
) -> Asked:
    rest = (program_config, activation, compute_kernel_config, core_grid, output_tile)
    batched = is_batched(b._spec.shape)
    if not batched and memory_config is None and dtype is None and rest == (None,) * 5:
        return _PLAIN if not (transpose_a or transpose_b) else Asked(transpose_a, transpose_b)
    math, full_sync = kernel_config(compute_kernel_config)
    return Asked(
        transpose_a,
        transpose_b,
        memory_config if memory_config is not None else DRAM_MEMORY_CONFIG,
        dtype,
        program_of(program_config) if program_config is not None else None,
        math,
        full_sync,
        (core_grid.x, core_grid.y) if core_grid is not None else None,
        as_unary(activation),
        output_tile,
        batched,
    )


def bound_matmul(a: Tensor, b: Tensor, bias: Tensor | None, asked: Asked, output: Tensor | None) -> Tensor:
    """The entry point with all arguments bound."""
    spec_a, spec_b = a._spec, b._spec
    require(
        spec_a.rank > 0 and spec_b.rank > 0,
        f"the operands must have a dimension at least, their shapes are {list(spec_a.shape)} and {list(spec_b.shape)}",
    )
    activation = asked.activation
    require(
        activation is None or not (spec_a.is_sharded or spec_b.is_sharded),
        "with sharded operands, the activation must be the program config's fused_activation",
    )
    if 0 in spec_a.shape or 0 in spec_b.shape:
        return _empty_product(a, b, bias, asked)
    shape = _product_shape(spec_a, spec_b, asked.transpose_a, asked.transpose_b)
    is_vector = spec_b.rank == 1
    if asked.transpose_a or asked.transpose_b or is_vector:
        a, b, asked = _adjusted(a, b, bias, asked, output)
        if bias is not None or output is not None:
            _refuse_wrong_shape(shape, spec_a, spec_b, bias, asked)
    bias_after = bias is not None and _is_added_after(a._spec, b._spec, bias._spec, asked)
    fuses = asked.core_grid is not None and not bias_after
    if activation is not None and not fuses:
        require(
            asked.core_grid is None or not asked.batched, "an activation cannot be fused with a batched second operand"
        )
        asked = asked._replace(activation=None)
    result = run(a, b, None if bias_after else bias, asked, output)
    if is_vector:
        result = ttnn.reshape(result, shape)
    if bias is not None:
        if bias_after:
            result = ttnn.add(result, bias, memory_config=result.memory_config(), output_tensor=output)
        shape = _broadcast(shape, bias._spec.shape)
    if output is not None:
        require(
            output._spec.volume == math.prod(shape),
            f"the output tensor passed has shape {list(output._spec.shape)}, the result {list(shape)}",
        )
        shape = output._spec.shape
    if result._spec.shape != shape:
        if result._spec.volume != math.prod(shape) and result._spec.padded_shape[-2:] == shape[-2:]:
            raise ChipFault(
                f"a bias of {shape[-2]} rows is added to a product of one row: the card adds it to the tile's padding"
            )
        result = ttnn.reshape(result, shape)
    if activation is not None and not fuses:
        result = ttnn.unary_chain(result, [activation], memory_config=result.memory_config(), output_tensor=output)
    return result


@functools.lru_cache(maxsize=4096)
def _product_shape(a: Spec, b: Spec, transpose_a: bool, transpose_b: bool) -> tuple[int, ...]:
    of = Operands(a, b, transpose_a, transpose_b)
    return output_shape(of.a_shape, of.b_shape)


def _refuse_wrong_shape(shape: tuple[int, ...], a: Spec, b: Spec, bias: Tensor | None, asked: Asked) -> None:
    """After transposing operands itself, the library still checks the output shape against the original shapes."""
    expected = _product_shape(a, b, asked.transpose_a, asked.transpose_b)
    if bias is not None:
        expected, shape = (_broadcast(each, bias._spec.shape) for each in (expected, shape))
    if expected != shape:
        raise ChipFault(
            f"the library returns this product of shape {list(shape)} as a tensor of shape {list(expected)}",
            hint="Transpose the operand with ttnn.transpose, or give a program config that transposes it.",
        )


def _adjusted(
    a: Tensor, b: Tensor, bias: Tensor | None, asked: Asked, output: Tensor | None
) -> tuple[Tensor, Tensor, Asked]:
    """Transpose operands that the program cannot transpose, and view a vector on the right as a column."""
    require(a._device is not None, "the first operand must be on a device")
    of = Operands(a._spec, b._spec, asked.transpose_a, asked.transpose_b)
    target = target_of(a._device)
    dtype = asked.dtype or (output.dtype if output is not None else a.dtype)
    math = asked.math or default_math(of, asked, dtype, target.arch)
    program, _ = chosen_program(of, asked, math, dtype, bias._spec if bias is not None else None, target)
    manually = program.kind not in TRANSPOSES_ITSELF
    if asked.transpose_a and manually:
        a = ttnn.transpose(a, -1, -2, memory_config=a.memory_config())
        asked = asked._replace(transpose_a=False)
    if b._spec.rank == 1:
        b = ttnn.reshape(b, (b._spec.shape[-1], 1))
        asked = asked._replace(transpose_b=asked.transpose_b and not manually)
    elif asked.transpose_b and manually:
        b = ttnn.transpose(b, -1, -2, memory_config=b.memory_config())
        asked = asked._replace(transpose_b=False)
    return a, b, asked


def _is_added_after(a: Spec, b: Spec, bias: Spec, asked: Asked) -> bool:
    """Whether a separate operation adds the bias, because the program does not fuse it or may not."""
    of = Operands(a, b, asked.transpose_a, asked.transpose_b)
    program = asked.program
    width = bias.shape[-1] if bias.shape else 1
    if is_full_block_bias(of, program, bias):
        return False
    if program is not None and program.kind is Kind.REUSE and height_of(bias.shape) == 1:
        return True
    if is_batched(b.shape) or is_batched(bias.shape):
        return True
    if height_of(bias.padded_shape) != of.in0_tile.height or width < of.b_shape[-1]:
        return True
    if program is not None:
        return program.kind is Kind.MULTI_CORE
    if asked.core_grid is not None:
        return False
    if asked.memory_config.buffer_type is not BufferType.DRAM:
        return True
    configs = (a.memory_config, b.memory_config, asked.memory_config)
    return not a.is_sharded and not all(
        config.memory_layout is TensorMemoryLayout.INTERLEAVED and config.buffer_type is BufferType.DRAM
        for config in configs
    )


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(shape), len(other))
    ours, theirs = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other
    require(
        all(x == y or 1 in (x, y) for x, y in zip(ours, theirs)),
        f"a bias of shape {list(other)} cannot be broadcast over {list(shape)}",
    )
    return tuple(max(x, y) for x, y in zip(ours, theirs))


def _empty_product(a: Tensor, b: Tensor, bias: Tensor | None, asked: Asked) -> Tensor:
    shape = _product_shape(a._spec, b._spec, asked.transpose_a, asked.transpose_b)
    require(a._device is not None, "the first operand must be on a device")
    result = ttnn.full(
        shape,
        0.0,
        dtype=asked.dtype or a.dtype,
        layout=a.layout,
        device=a._device,
        memory_config=asked.memory_config,
    )
    return ttnn.add(result, bias, memory_config=asked.memory_config) if bias is not None else result


ADDMM_DTYPES = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B})


@composite("ttnn.addmm")
def addmm(
    input_tensor: Tensor,
    mat1_tensor: Tensor,
    mat2_tensor: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: Any = None,
    compute_kernel_config: Any = None,
    core_grid: CoreGrid | None = None,
    output_tile: Tile | None = None,
    optional_output_tensor: Tensor | None = None,
) -> Tensor:
    """beta × input + alpha × (mat1 @ mat2)."""
    require(output_tile is None, "addmm does not support output_tile")
    require(alpha != 0.0, "the alpha parameter cannot be 0")
    named = [("mat1_tensor", mat1_tensor), ("mat2_tensor", mat2_tensor)]
    if beta != 0.0:
        shapes = input_tensor._spec.shape, mat1_tensor._spec.shape, mat2_tensor._spec.shape
        of_input, of_first, of_second = ((1,) * (2 - len(shape)) + shape for shape in shapes)
        require(
            of_input[0] == of_first[0] and of_input[1] == of_second[1],
            "input_tensor must have shape matching one of result of mat1_tensor @ mat2_tensor: "
            f"{list(shapes[0])} against {list(shapes[1])} @ {list(shapes[2])}",
        )
        named.insert(0, ("input_tensor", input_tensor))
    for name, tensor in named:
        require(
            tensor.dtype in ADDMM_DTYPES,
            f"only bfloat16, float32 and bfloat8_b types are supported for {name}, not {tensor.dtype}",
        )
    asked = _asked(
        mat2_tensor,
        False,
        False,
        memory_config,
        dtype,
        program_config,
        None,
        compute_kernel_config,
        core_grid,
        None,
    )
    result = bound_matmul(mat1_tensor, mat2_tensor, None, asked._replace(batched=False), optional_output_tensor)
    if alpha != 1.0:
        result = ttnn.multiply_(result, alpha)
    if beta == 0.0:
        return result
    addend = input_tensor if beta == 1.0 else ttnn.multiply(input_tensor, beta, dtype=result.dtype)
    if addend.dtype is not result.dtype:
        addend = ttnn.typecast(addend, result.dtype)
    return ttnn.add_(result, addend)


@composite("ttnn.matmul_batched_weights")
def matmul_batched_weights(
    input_tensor_a: Tensor,
    input_tensors_b: Sequence[Tensor],
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: Any = None,
    activation: str | UnaryWithParam | None = None,
    compute_kernel_config: Any = None,
    core_grid: CoreGrid | None = None,
    output_tile: Tile | None = None,
    optional_output_tensor: Tensor | None = None,
    global_cb: Any = None,
    sub_device_id: Any = None,
) -> list[Tensor]:
    """One operand times each of several weights, which a prefetcher delivers in order."""
    require(not transpose_a and not transpose_b, "batched weights are not transposed")
    for name, value in (("memory_config", memory_config), ("program_config", program_config)):
        require(value is not None, f"{name} must be given")
    for name, value in (
        ("activation", activation),
        ("core_grid", core_grid),
        ("output_tile", output_tile),
        ("optional_output_tensor", optional_output_tensor),
    ):
        require(value is None, f"{name} must not be given")
    require(global_cb is not None, "global_cb must be given")
    require(sub_device_id is not None, "sub_device_id must be given")
    first = input_tensors_b[0]
    alike = all(each._spec == first._spec for each in input_tensors_b)
    require(alike, "all weights must have the same shape, dtype, layout and memory config")
    rest = (memory_config, dtype, program_config, None, compute_kernel_config, None, None)
    asked = _asked(first, False, False, *rest)
    assert asked.program is not None
    in_dram = first._spec.is_sharded and first._spec.memory_config.buffer_type is BufferType.DRAM
    require(
        len(input_tensors_b) == 1 or (in_dram and asked.program.kind is Kind.MCAST_1D),
        "only programs of one dimension take several weights, which must be sharded in DRAM",
    )
    return [_received(input_tensor_a, b, None, asked, None, global_cb, sub_device_id) for b in input_tensors_b]
