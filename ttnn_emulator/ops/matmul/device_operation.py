"""The device operation of matmul: program, checks, output spec and computation, planned once per set of specs."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, Arch, BufferType, DataType, MathFidelity
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution.operation_table import Bindable, Plan, internal
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.numerics.functions.apply import Activation, activation_of
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.matmul.checks import DEST_TILES, require_operands, require_program
from ttnn_emulator.ops.matmul.circular_buffers import circular_buffers
from ttnn_emulator.ops.matmul.operands import Operands, default_tile_bytes, is_batched, output_shape, output_tile
from ttnn_emulator.ops.matmul.outputs import output_spec
from ttnn_emulator.ops.matmul.program_configs import Delivery, Kind, Program
from ttnn_emulator.ops.matmul.program_selection import choose
from ttnn_emulator.ops.matmul.selection_inputs import Choice
from ttnn_emulator.ops.matmul.shard_placement import require_shards_near_banks
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/common/unary_op_utils.cpp, string_to_unary_with_param
# Activations that the kernels can fuse, with their default parameters.
FUSABLE: dict[str, tuple[float, ...]] = {
    "relu": (),
    "gelu": (0.0,),
    "gelu_tanh": (),
    "tanh": (0.0,),
    "silu": (),
    "relu6": (),
    "sigmoid": (),
    "hardsigmoid": (),
    "hardtanh": (-1.0, 1.0),
    "selu": (1.67326319217681884765625, 1.05070102214813232421875),
    "softplus": (1.0, 20.0),
}


class Asked(NamedTuple):
    """The arguments of a matmul besides its tensors."""

    transpose_a: bool = False
    transpose_b: bool = False
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG
    dtype: DataType | None = None
    program: Program | None = None
    math: MathConfig | None = None
    full_sync: bool = False
    core_grid: tuple[int, int] | None = None
    activation: UnaryWithParam | None = None
    tile: Tile | None = None
    batched: bool = False
    delivery: Delivery | None = None


class Target(NamedTuple):
    """Inputs of the program choice besides specs: the chip and its free L1."""

    arch: Arch
    grid: tuple[int, int]
    space: int
    dram_alignment: int


@dataclass(frozen=True, eq=False)
class Multiplication:
    """A planned matmul. The plan stays valid while at least `needs` bytes of L1 are free."""

    operands: Operands
    program: Program
    kernel: Kernel
    output: Spec
    l1_bytes: int
    needs: int


def target_of(device: Any) -> Target:
    """The chip with its currently free L1."""
    memory = device.memories[BufferType.L1]
    lowest = memory.lowest_used_address
    empty = empty_target(device)
    return empty if lowest is None else empty._replace(space=lowest - memory.base)


_empty_targets: weakref.WeakKeyDictionary[Any, Target] = weakref.WeakKeyDictionary()


def empty_target(device: Any) -> Target:
    """The chip with all of its L1 free."""
    found = _empty_targets.get(device)
    if found is None:
        board: Board = device.board
        space = device.memories[BufferType.L1].bank_bytes
        found = _empty_targets[device] = Target(board.arch, board.grid, space, board.dram_alignment)
    return found


def kernel_config(given: Any) -> tuple[MathConfig | None, bool]:
    """A compute kernel config, and whether it uses the destination register without double buffering."""
    if given is None:
        return None, False
    return math_config(given), bool(given.dst_full_sync_en)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/matmul_device_operation.cpp, math_fidelity, increase_fidelity
# and are_inputs_32F
def default_math(of: Operands, asked: Asked, dtype: DataType, arch: Arch) -> MathConfig:
    """Fidelity and accumulation when no compute kernel config is given."""
    if of.a.dtype is of.b.dtype is DataType.FLOAT32:
        fidelity = MathFidelity.HiFi3 if arch is Arch.WORMHOLE_B0 else MathFidelity.HiFi4
    elif (
        asked.program is not None
        or asked.core_grid is not None
        or (of.a.dtype in BLOCK_FLOAT_DTYPES and of.b.dtype in BLOCK_FLOAT_DTYPES)
    ):
        fidelity = MathFidelity.LoFi
    else:
        fidelity = MathFidelity.HiFi2
    wide = dtype is DataType.FLOAT32
    return math_config(None, fidelity=fidelity, approx=False, fp32_acc=wide, l1_acc=not wide)


def chosen_program(
    of: Operands, asked: Asked, math: MathConfig, dtype: DataType, bias: Spec | None, target: Target
) -> Any:
    """The program, and its estimated L1 use."""
    if asked.program is not None:
        return asked.program, 0
    choice = Choice(
        of,
        asked.memory_config,
        dtype,
        math.fp32_acc,
        default_tile_bytes(bias.dtype) if bias is not None else 0,
        asked.core_grid,
        asked.activation,
        asked.batched,
        target.grid,
        target.space,
    )
    return choose(choice), choice.needs


def _broadcasts(of: Operands, program: Program | None) -> bool:
    if program is not None and program.kind is Kind.REUSE:
        return of.batch_b == 1 and of.batch_a > 1
    return of.batch_b == 1


def _with_output(asked: Asked, output: Spec | None) -> Asked:
    """A preallocated output determines memory config and dtype; other arguments must not contradict it."""
    if output is None:
        return asked
    if asked.memory_config != DRAM_MEMORY_CONFIG:
        require(output.memory_config == asked.memory_config, "memory_config is not that of the output tensor passed")
    require(asked.dtype in (None, output.dtype), f"dtype is {asked.dtype}, the output tensor passed has {output.dtype}")
    return asked._replace(memory_config=output.memory_config, dtype=output.dtype)


@functools.lru_cache(maxsize=4096)
def multiplication(
    a: Spec, b: Spec, bias: Spec | None, asked: Asked, output: Spec | None, target: Target
) -> Multiplication:
    """Check the arguments as the library does, and plan the matmul."""
    of = Operands(a, b, asked.transpose_a, asked.transpose_b)
    require(a.on_device and b.on_device, "the operands must be on a device")
    require(asked.core_grid is None or asked.program is None, "give a core_grid or a program_config, not both")
    asked = _with_output(asked, output)
    dtype = asked.dtype or a.dtype
    math = asked.math or default_math(of, asked, dtype, target.arch)
    tile = output_tile(of, asked.memory_config, asked.tile, output.tile if output is not None else None)
    broadcasts = _broadcasts(of, asked.program)
    require_operands(of)
    program, needs = chosen_program(of, asked, math, dtype, bias, target)
    if asked.delivery is not None and program.kind is Kind.MCAST_1D:  # other kinds read the weight in place
        require(program.gather_in0, "without gather_in0, weights come from senders in DRAM, not from worker cores")
        program = replace(program, delivery=asked.delivery)
    require(
        program.num_workers_per_dram_bank == 1 or target.arch is Arch.BLACKHOLE,
        f"{target.arch} has one worker a DRAM bank, not {program.num_workers_per_dram_bank}",
    )
    spec = output
    if spec is None:
        shape = output_shape(of.a_shape, of.b_shape)
        spec = output_spec(of, program, shape, dtype, asked.memory_config, tile, target.grid)
    require_program(
        of,
        program,
        asked.memory_config,
        bias,
        broadcasts=broadcasts,
        dest_tiles=dest_tiles(math, asked.full_sync, tile),
        device_grid=target.grid,
        dtype=dtype,
    )
    kernel = kernel_of(of, program, math, dtype, bias is not None)
    l1_bytes = circular_buffers(of, program, kernel.between, spec, bias, target.dram_alignment)
    return Multiplication(of, program, kernel, spec, l1_bytes, needs)


def dest_tiles(math: MathConfig, full_sync: bool, tile: Tile) -> int:
    """The most tiles of a subblock."""
    count = DEST_TILES * TILE_SIZE * TILE_SIZE // (tile.height * tile.width)
    return count // (1 if full_sync else 2) // (2 if math.fp32_acc else 1)


def adds_up_in_l1(of: Operands, program: Program, l1_acc: bool, has_bias: bool) -> bool:
    """Whether the packer accumulates blocks of the inner dimension in L1: only if there are enough of them."""
    if program.kind is Kind.MULTI_CORE or not l1_acc:
        return False
    least = 3 if program.kind is Kind.REUSE and not has_bias else 2
    if program.gather_in0:
        return _ring(of).num_cores() >= least
    return of.inner // program.in0_block_w >= least


def _ring(of: Operands) -> ShardSpec:
    """The shards of in0 that circulate in the ring; each is one inner block, regardless of in0_block_w."""
    assert of.a.shard_spec is not None
    return of.a.shard_spec


def _block_width(of: Operands, program: Program) -> int | None:
    if program.kind is Kind.MULTI_CORE:
        return None
    return _ring(of).shape[1] // of.in0_tile.width if program.gather_in0 else program.in0_block_w


def between_blocks(math: MathConfig, in_l1: bool, dtype: DataType) -> DataType:
    """The format of partial sums between blocks."""
    if math.fp32_acc:
        return DataType.FLOAT32
    return DataType.BFLOAT16 if in_l1 else dtype


def kernel_of(of: Operands, program: Program, math: MathConfig, dtype: DataType, has_bias: bool) -> Kernel:
    """The numerical behaviour of the program."""
    in_l1 = adds_up_in_l1(of, program, math.l1_acc, has_bias)
    return Kernel(
        MathConfig(math.fidelity, math.fp32_acc, math.approx, in_l1, _block_width(of, program)),
        of.a.dtype,
        of.b.dtype,
        dtype,
        of.transpose_a,
        of.transpose_b,
        between_blocks(math, in_l1, dtype),
        activation=fused_activation(program.fused_activation),
    )


def fused_activation(given: UnaryWithParam | None) -> Activation | None:
    """The activation that the kernel applies."""
    if given is None:
        return None
    name = given.op_type.name.lower()
    if name not in FUSABLE:
        raise InvalidArgument(f"the kernels of matmul cannot apply {name}", hint=f"They can {', '.join(FUSABLE)}.")
    params = (*given.params, *FUSABLE[name][len(given.params) :])
    require(name != "softplus" or params[0] != 0.0, "softplus does not support a beta of 0")
    return activation_of(name, params)


@internal("ttnn.matmul")
def multiply(a: Spec, b: Spec, bias: Spec | None, output: Spec | None, how: Any) -> Plan:
    """The program that `multiplication` decided on."""
    shape = how.output.shape
    product = how.kernel.compute()
    width = how.operands.b_shape[-1]

    def fitted(carriers: Sequence[Any]) -> Sequence[Any]:
        if bias is None:
            return carriers
        values = carriers[2]
        return (*carriers[:2], values.reshape(values.shape[-2:])[..., :width])

    def compute(*carriers: Any) -> Any:
        result = product(*fitted(carriers))
        return result if result.shape == shape else result.reshape(shape)

    def bind(carriers: Sequence[Any], constant: Sequence[bool]) -> Any:
        made = how.kernel.bind(fitted(carriers), constant)
        return None if made is None else (made[0], made[1].reshape(shape))

    reads = ("a", "b", "bias") if bias is not None else ("a", "b")
    into = ("output",) if output is not None else ()
    return Plan(how.output, Bindable(compute, bind), reads, into, l1_bytes=how.l1_bytes, narrow=True)


def run(a: Tensor, b: Tensor, bias: Tensor | None, asked: Asked, output: Tensor | None) -> Tensor:
    """Decide and launch."""
    device = a._device
    require(device is not None, "the first operand must be on a device")
    assert device is not None
    specs = (
        a._spec,
        b._spec,
        bias._spec if bias is not None else None,
        asked,
        output._spec if output is not None else None,
    )
    how = multiplication(*specs, empty_target(device))
    if how.needs:
        target = target_of(device)
        if how.needs >= target.space:
            how = multiplication(*specs, target)
    if how.program.kind is Kind.BATCHED_DRAM_SHARDED:  # not in the plan: grids that differ only in order share one
        require_shards_near_banks(device.board, a.memory_config(), asked.memory_config)
    return multiply(a, b, bias, output, how)


def is_full_block_bias(of: Operands, program: Program | None, bias: Spec) -> bool:
    """Whether the reuse program can add this bias itself: it covers the whole matrix, and the matrix is one block."""
    if of.transpose_a or of.transpose_b or program is None or program.kind is not Kind.REUSE or is_batched(bias.shape):
        return False
    rows = of.rows()
    if of.columns != program.per_core_N or min(program.per_core_M, rows) != rows:
        return False
    return bias.shape[-2:] == (rows * of.in0_tile.height, of.columns * of.in1_tile.width)
