"""Functions of two tensors, or of a tensor and a number, on the matrix unit or on the vector unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, Arch, DataType, Layout, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.numerics.programs.elementwise.binary import WIDE_DTYPES, on_vector_unit, recipe_of
from ttnn_emulator.ops.elementwise.binary.circular_buffers import MATRIX_TILES, VECTOR_TILES, computes_in_shards
from ttnn_emulator.ops.elementwise.binary.named_operations import FAST_BY_DEFAULT, IN_PLACE, PLAIN
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.elementwise.unary import rows_of, typecast_launch, unary_launch
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import PROGRAMS, ProgramRun, times
from ttnn_emulator.timing.releases import Release
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_by_tile import (
    COSTS,
    Stream,
    Traffic,
    bytes_of_tile,
    shard_tiles,
    stream_launch,
    tiles_of,
    traffic_of,
)
from ttnn_emulator.timing.tile_kernels import (
    HANDOVER_CYCLES,
    PHASES,
    combine_cycles,
    copy_cycles,
    pack_cycles,
    tile_cycles,
)
from ttnn_emulator.timing.vector_unit import activation_cycles, as_activation, binary_cycles, unary_cycles

PROGRAM, FAMILY = "BinaryNgDeviceOperation", "binary"
# The functions of the vector unit, by the names of the emulator's kernels.
KERNELS = {
    "addition": "add",
    "subtraction": "sub",
    "reversed_subtraction": "rsub",
    "multiplication": "mul",
    "division": "div",
    "equals": "eq",
    "differs": "ne",
    "precedes": "lt",
    "follows": "gt",
    "not_after": "le",
    "not_before": "ge",
    "largest": "maximum",
    "smallest": "minimum",
}
# Kernels that are a sum between functions of both operands and of the result.
OF_EXPONENTIALS = {"logaddexp": ("exp", "log"), "logaddexp2": ("exp2", "log2")}
RECONFIGURE_CYCLES = 100.0  # fit: changing the formats of unpackers and packer between two passes
SCALAR_WORDS = 512  # 4-byte stores that fill a tile of 16-bit values; twice as many for 32 bits


@dataclass(frozen=True, slots=True)
class Combination:
    """What a binary program computes: the functions are applied to each operand and to the result.

    vector  on the vector unit, not on the matrix unit
    """

    kind: str
    vector: bool
    before_a: tuple[Any, ...] = ()
    before_b: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Which operand the kernel repeats within tiles, how often a tile of it is read, and how it is filled."""

    operand: Spec
    per_tile: float
    filled_by_reader: bool


def binary_launch(
    a: Spec,
    b: Spec | None,
    out: Spec,
    combination: Combination,
    board: Board,
    *,
    cores: int | None = None,
    release: Release = Release.CURRENT,
) -> Launch:
    """A binary program. Without `b`, the other operand is a number."""
    chip = CHIPS[board.arch]
    if release is Release.CURRENT:
        native = computes_in_shards(a, b, out)
        local = {id(spec): native and is_local(spec) for spec in (a, b, out) if spec is not None}
    else:
        local = {id(spec): is_local(spec) for spec in (a, b, out) if spec is not None}
    broadcast = _broadcast(a, b, combination, board, release)
    in_place = all(local.values())
    at_once = (VECTOR_TILES if combination.vector else MATRIX_TILES) if in_place and broadcast is None else 1
    cycles = _cycles(a, b, out, combination, board, at_once)
    reader = 0.0
    whole: list[Traffic] = []
    for spec in (a, b):
        if spec is None or local[id(spec)]:
            continue
        if broadcast is not None and spec is broadcast.operand and broadcast.per_tile < 1:
            path = COSTS[board.arch].dram if not spec.memory_config.is_l1 else COSTS[board.arch].l1
            reader += broadcast.per_tile * (path.latency_ns + bytes_of_tile(spec) / path.bytes_per_ns)
        else:
            whole.append(traffic_of(spec))
    if broadcast is not None:
        if broadcast.filled_by_reader:
            reader += broadcast.per_tile * _fill_ns(broadcast.operand, board)
        else:
            copied = copy_cycles(bytes_of_tile(broadcast.operand), broadcast.operand.dtype)
            cycles += broadcast.per_tile * (copied + 2 * HANDOVER_CYCLES + RECONFIGURE_CYCLES)
    writes = () if local[id(out)] else (traffic_of(out),)
    steps, used, total = _split(a, b, out, local, board, cores)
    if not out.is_tile and not out.is_sharded:
        read, write, total = rows_of(out, out)
        part = read.page_bytes / bytes_of_tile(out)
        whole = [Traffic(part * each.page_bytes, each.in_dram, read.pages) for each in whole]
        writes = (write,)
        used = min(total, cores or board.cores)
        steps = div_up(total, used)
    once = 0.0 if b is not None else _fill_ns(a, board)
    stream = Stream(used, steps, whole, writes, chip.ns(cycles), once_ns=once, reader_ns=reader, all_steps=total)
    overhead = 0.0 if in_place else COSTS[board.arch].dataflow_ns
    return stream_launch(PROGRAM, FAMILY, stream, board, overhead_ns=overhead)


def _split(
    a: Spec, b: Spec | None, out: Spec, local: Mapping[int, bool], board: Board, cores: int | None
) -> tuple[int, int, int]:
    """Tiles of the busiest core, the cores, and the tiles of all of them."""
    for spec in (out, a, b):
        if spec is not None and local[id(spec)] and spec.shard_spec is not None:
            return shard_tiles(spec), spec.shard_spec.num_cores(), tiles_of(out)
    tiles = tiles_of(out)
    used = min(tiles, cores or board.cores)
    return div_up(tiles, used), used, tiles


def _fill_ns(spec: Spec, board: Board) -> float:
    words = SCALAR_WORDS * (2 if spec.dtype in WIDE_DTYPES else 1)
    return CHIPS[board.arch].ns(words * COSTS[board.arch].store_cycles)


# -- compute kernel ---------------------------------------------------------------------------------------------------


def _cycles(a: Spec, b: Spec | None, out: Spec, combination: Combination, board: Board, at_once: int) -> float:
    """Cycles per tile of the output, without broadcasting."""
    arch, chip = board.arch, CHIPS[board.arch]
    b_dtype = a.dtype if b is None else b.dtype
    wide = out.dtype in WIDE_DTYPES or DataType.FLOAT32 in (a.dtype, b_dtype)
    recipe = recipe_of(combination.kind, combination.vector)
    in_a = bytes_of_tile(a)
    in_b = in_a if b is None else bytes_of_tile(b)
    extra = 0.0
    before_a: tuple[Any, ...] = (*combination.before_a, *recipe.of_a)
    before_b: tuple[Any, ...] = (*combination.before_b, *recipe.of_b)
    after: tuple[Any, ...] = (*recipe.after, *combination.after)
    kernel = KERNELS.get(recipe.kernel, recipe.kernel.lower())
    if kernel in OF_EXPONENTIALS:
        inner, outer = OF_EXPONENTIALS[kernel]
        before_a, before_b, after, kernel = (*before_a, inner), (*before_b, inner), (outer, *after), "add"
    for functions, size, dtype in ((before_a, in_a, a.dtype), (before_b, in_b, b_dtype)):
        if functions:
            math = copy_cycles(size, dtype) + sum([_before(each, arch, dtype) for each in functions])
            extra += tile_cycles(math, pack_cycles(size, chip), at_once) + RECONFIGURE_CYCLES / at_once
    if combination.vector:
        math = copy_cycles(in_a, a.dtype) + copy_cycles(in_b, b_dtype)
        math += binary_cycles(kernel, arch, a.dtype, fp32_dest=wide)
    else:
        math = combine_cycles(in_a + in_b, PHASES[MathFidelity.HiFi4] if kernel == "mul" else 1)
    math += sum([activation_cycles(each, arch, fp32_dest=wide) for each in after])
    return extra + tile_cycles(math, pack_cycles(bytes_of_tile(out), chip), at_once)


def _before(function: Any, arch: Arch, dtype: DataType) -> float:
    made = as_activation(function)
    return unary_cycles(made.name, arch, dtype, approximate=made.approx)


# -- broadcasting -----------------------------------------------------------------------------------------------------


def _sides(spec: Spec) -> tuple[int, int]:
    shape = (1, 1, *spec.shape)
    return shape[-2], shape[-1]


def _broadcast(a: Spec, b: Spec | None, combination: Combination, board: Board, release: Release) -> Broadcast | None:
    if b is None:
        return None
    (a_height, a_width), (b_height, b_width) = _sides(a), _sides(b)
    if (a_height, a_width) == (b_height, b_width):
        return None
    small = b if b_height < a_height or b_width < a_width else a
    height, width = max(a_height, b_height), max(a_width, b_width)
    own_height, own_width = _sides(small)
    across = 1 if own_width != 1 or width == 1 else div_up(width, 32)
    down = 1 if own_height != 1 or height == 1 else div_up(height, 32)
    # A row is read again for every row of tiles; a column once per row of tiles, a single value once per matrix.
    per_tile = 1.0 / (across * down) if across > 1 or own_width == 1 else 1.0
    return Broadcast(small, per_tile, not _broadcasts_in_hardware(a, b, board, release))


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/binary_ng/device/binary_ng_program_factory.cpp, is_llk_bcast
def _broadcasts_in_hardware(a: Spec, b: Spec, board: Board, release: Release) -> bool:
    """Whether the unpacker repeats a row, column or value; in earlier releases the reader filled tiles."""
    if release is not Release.CURRENT or a.dtype is not b.dtype:
        return False
    narrow = a.dtype in BLOCK_FLOAT_DTYPES or a.dtype is DataType.BFLOAT16
    return narrow or board.arch is Arch.WORMHOLE_B0


# -- programs of performance sheets -----------------------------------------------------------------------------------


_FUNCTION = re.compile(r"BinaryOpType::(\w+)")


@times(PROGRAM, "BinaryDeviceOperation", family=FAMILY)
def binary(run: ProgramRun) -> Launch:
    """Sheets name the function among the attributes; sums are the most frequent. A third input is the output."""
    a = run.inputs[0]
    b = run.inputs[1] if len(run.inputs) > 1 else None
    combination = run.settings
    if not isinstance(combination, Combination):
        found = _FUNCTION.search(run.attributes)
        kind = found[1] if found is not None and found[1] in KINDS.values() else "ADD"
        combination = Combination(kind, on_vector_unit(kind, a.dtype, a.dtype if b is None else b.dtype, True))
    return binary_launch(a, b, run.outputs[0], combination, run.board, cores=run.cores, release=Release.AUTUMN_2025)


# -- operations -------------------------------------------------------------------------------------------------------

KINDS = {
    **PLAIN,
    **IN_PLACE,
    "sub": "SUB",
    "mul": "MUL",
    "sub_": "SUB",
    "mul_": "MUL",
    **dict.fromkeys(("divide", "div", "divide_", "div_"), "DIV"),
    "remainder": "REMAINDER",
    "fmod": "FMOD",
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "bitwise_and": "BITWISE_AND",
    "bitwise_or": "BITWISE_OR",
    "bitwise_xor": "BITWISE_XOR",
    **dict.fromkeys(("bitwise_left_shift", "logical_left_shift"), "LEFT_SHIFT"),
    "bitwise_right_shift": "RIGHT_SHIFT",
    "pow": "POWER",
    **dict.fromkeys(("addalpha",), "ADD"),
    **dict.fromkeys(("subalpha",), "SUB"),
    "isclose": "ISCLOSE",
    **dict.fromkeys(("bias_gelu", "bias_gelu_"), "BIAS_GELU"),
    "clamped_silu_glu": "MUL",
    "situ_glu": "MUL",
}
# With a number, these run a unary kernel that has it as a parameter.
UNARY_WITH_NUMBER = {
    "MAXIMUM": "maximum",
    "MINIMUM": "minimum",
    "BITWISE_AND": "bitwise_and",
    "BITWISE_OR": "bitwise_or",
    "BITWISE_XOR": "bitwise_xor",
    "LEFT_SHIFT": "left_shift",
    "RIGHT_SHIFT": "right_shift",
    "POWER": "power",
    "REMAINDER": "remainder",
    "FMOD": "fmod",
}


@prices(*[f"ttnn.{name}" for name in KINDS], "ttnn.prim.binary_ng")
def binary_operation(call: Call) -> Sequence[Launch]:
    a, b, out = call.tensors[0], call.tensors[1] if len(call.tensors) > 1 else None, call.outputs[0]
    if b is not None and _is_output(call, b):
        b = None
    combination = combination_of(call, a, b)
    if b is None and combination.kind in UNARY_WITH_NUMBER and not combination.before_a:
        kind = _power(call) if combination.kind == "POWER" else UNARY_WITH_NUMBER[combination.kind]
        return [unary_launch(a, out, unary_cycles(kind, call.board.arch, a.dtype), call.board)]
    launches: list[Launch] = []
    a, b = _promoted(a, b, call.board, launches)
    in_tiles = [spec for spec in (a, b) if spec is not None and spec.is_tile]
    if not in_tiles and not any(spec.is_sharded for spec in (a, b) if spec is not None):
        return [*launches, binary_launch(a, b, out, combination, call.board)]
    made = out if out.is_tile else out.with_(layout=Layout.TILE)
    a, b = (_tiled(spec, call.board, launches) for spec in (a, b))  # type: ignore[assignment]
    launches.append(binary_launch(a, b, made, combination, call.board))
    if made is not out:
        launches += _converted("UntilizeDeviceOperation", made, out, call.board)
    return launches


def _tiled(spec: Spec | None, board: Board, launches: list[Launch]) -> Spec | None:
    """The kernels compute on tiles, unless all operands are interleaved rows."""
    if spec is None or spec.is_tile:
        return spec
    made = spec.with_(layout=Layout.TILE)
    launches += _converted("TilizeWithValPaddingDeviceOperation", spec, made, board)
    return made


def _converted(program: str, source: Spec, out: Spec, board: Board) -> list[Launch]:
    timed = PROGRAMS.get(program)
    return [] if timed is None else [timed.timer(ProgramRun(program, (source,), (out,), board.cores, board))]


def _is_output(call: Call, spec: Spec) -> bool:
    names = [name for name, each in call.inputs if each is spec]
    return all(name in ("output_tensor", "optional_output_tensor") for name in names)


def _power(call: Call) -> str:
    numbers = [value for value in call.arguments.values() if isinstance(value, int | float)]
    return "power_iterative" if any(value in (0, 1, 2, 3) for value in numbers) else "power"


def _promoted(a: Spec, b: Spec | None, board: Board, launches: list[Launch]) -> tuple[Spec, Spec | None]:
    """Integers that meet floats are cast by a program of their own."""
    if b is None or (a.dtype in FLOAT_DTYPES) == (b.dtype in FLOAT_DTYPES):
        return a, b
    whole, real = (b, a) if a.dtype in FLOAT_DTYPES else (a, b)
    cast = whole.with_(dtype=DataType.FLOAT32 if real.dtype is DataType.FLOAT32 else DataType.BFLOAT16)
    launches.append(typecast_launch(whole, cast, board))
    return (a, cast) if whole is b else (cast, b)


def combination_of(call: Call, a: Spec, b: Spec | None) -> Combination:
    """What a call computes: from its plan, or from its name and arguments."""
    work = call.work
    if isinstance(work, tuple) and len(work) == 5 and isinstance(work[0], str):
        return Combination(*work)
    given = call.arguments
    kind = str(given.get("kind") or KINDS.get(call.name.rsplit(".", 1)[-1], "ADD"))
    dtypes = (a.dtype, a.dtype if b is None else b.dtype)
    fast = given.get("fast_and_approximate_mode")
    if fast is None:
        fast = kind in FAST_BY_DEFAULT
    if kind == "MUL" and any(dtype in BLOCK_FLOAT_DTYPES for dtype in dtypes):
        fast = True
    return Combination(
        kind,
        on_vector_unit(kind, *dtypes, bool(fast)),
        tuple(given.get("input_tensor_a_activations") or ()),
        tuple(given.get("input_tensor_b_activations") or ()),
        tuple(given.get("activations") or ()),
    )
