"""Matrix products: blocks of the operands stream through the matrix unit while the next ones are read and multicast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch, DataType, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES, Chip
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.vector_unit import activation_cycles

OP_CODE = "MatmulDeviceOperation"
FAMILY = "matmul"


@dataclass(frozen=True, slots=True)
class KernelCycles:
    """Cycles of the compute kernel beyond its products; all are fits.

    call      a call of `matmul_block`
    subblock  handing a subblock from math to packer
    block     waiting for and releasing a block of the operands
    pack      packing a tile, beyond its bytes
    """

    call: float
    subblock: float
    block: float
    pack: float


KERNEL = {
    Arch.WORMHOLE_B0: KernelCycles(call=19.2, subblock=40.4, block=471.0, pack=11.1),
    Arch.BLACKHOLE: KernelCycles(call=15.0, subblock=0.4, block=396.0, pack=11.9),
    Arch.GRAYSKULL: KernelCycles(call=19.2, subblock=40.4, block=471.0, pack=11.1),
}


@dataclass(frozen=True, slots=True)
class Product:
    """A matmul as its program sees it. Sizes are in tiles."""

    a: Spec
    b: Spec
    out: Spec
    program: Program
    fidelity: MathFidelity
    fp32_acc: bool
    rows: int
    inner: int
    columns: int
    batch: int
    activation: Any = None
    has_bias: bool = False

    @property
    def in0_tile(self) -> int:
        return tile_bytes(self.a.tile, self.a.dtype)

    @property
    def in1_tile(self) -> int:
        return tile_bytes(self.b.tile, self.b.dtype)

    @property
    def out_tile(self) -> int:
        return tile_bytes(self.out.tile, self.out.dtype)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the blocks of one operand reach the cores.

    readers    cores that read it; 0 if every core has, or multicasts, its own shard
    receivers  cores that it is passed on to
    """

    readers: int
    receivers: int


@dataclass(frozen=True, slots=True)
class Course:
    """The work of the busiest core: `outputs` blocks of the output, each in `steps` blocks of the inner dimension."""

    cores: int
    outputs: int
    steps: int
    rows: int
    inner: int
    columns: int
    in0: Delivery
    in1: Delivery


def matmul_launch(product: Product, board: Board) -> Launch:
    """The predicted time of one matmul program."""
    launch = _launch(product, board, CHIPS[board.arch])
    return launch.of((product.a, product.b), (product.out,), product.fidelity, product.program)


def _launch(product: Product, board: Board, chip: Chip) -> Launch:
    if product.program.kind is Kind.MULTI_CORE:
        return _tile_by_tile(product, board, chip)
    if product.program.kind in (Kind.DRAM_SHARDED, Kind.BATCHED_DRAM_SHARDED):
        return _dram_sharded(product, board, chip)
    return _blocked(product, board, chip, _course(product))


def math_ns(product: Product, board: Board) -> float:
    """The time of the math threads alone: they end before the last block of the output is packed and written."""
    chip, course = CHIPS[board.arch], _course(product)
    write = _write_ns(product, chip, course.rows * course.columns, course.cores)
    return _blocked(product, board, chip, course).kernel_ns - write


def _course(product: Product) -> Course:
    program = product.program
    a, b = product.a, product.b
    if program.kind is Kind.REUSE:
        blocks = product.batch * div_up(product.rows, program.per_core_M) * div_up(product.columns, program.per_core_N)
        cores = min(blocks, program.grid[0] * program.grid[1])
        return Course(
            cores,
            div_up(blocks, cores),
            product.inner // program.in0_block_w,
            program.per_core_M,
            program.in0_block_w,
            program.per_core_N,
            Delivery(0 if a.is_sharded else cores, 0),
            Delivery(0 if b.is_sharded else cores, 0),
        )
    rows = product.rows * (product.batch if program.fuse_batch else 1)
    down, across = div_up(rows, program.per_core_M), div_up(product.columns, program.per_core_N)
    outputs = div_up(min(program.per_core_M, rows), program.out_block_h) * div_up(
        program.per_core_N, program.out_block_w
    )
    if not program.fuse_batch:
        outputs *= product.batch
    inner = program.in0_block_w
    if program.gather_in0 and a.shard_spec is not None:
        inner = a.shard_spec.shape[1] // TILE_SIZE
    in0, in1 = _deliveries(product, down, across)
    return Course(
        down * across,
        outputs,
        max(product.inner // inner, 1),
        program.out_block_h,
        inner,
        program.out_block_w,
        in0,
        in1,
    )


def _deliveries(product: Product, down: int, across: int) -> tuple[Delivery, Delivery]:
    a, b, program = product.a, product.b, product.program
    a_in_place, b_in_place = a.is_sharded, is_local(b)
    cores = down * across
    if program.kind is Kind.MCAST_2D:
        return (
            Delivery(0 if a_in_place else down, across - 1),
            Delivery(0 if b_in_place else across, down - 1),
        )
    if program.mcast_in0 or program.gather_in0:
        return Delivery(0 if a_in_place else 1, cores - 1), Delivery(0 if b_in_place else cores, 0)
    return Delivery(0 if a_in_place else cores, 0), Delivery(0 if b_in_place else 1, cores - 1)


def _blocked(product: Product, board: Board, chip: Chip, course: Course) -> Launch:
    compute = chip.ns(_block_cycles(product, board, chip, course))
    dram0, dram1 = [each / chip.dram_bytes_per_ns for each in _read_from_dram(product, course)]
    dram = dram0 + dram1
    read0, sent0 = _delivery_ns(course.in0, product.a, product.in0_tile, course.rows * course.inner, chip)
    read1, sent1 = _delivery_ns(course.in1, product.b, product.in1_tile, course.inner * course.columns, chip)
    # Reads of one operand find DRAM busy with the other one for part of a step: on average they wait for half of it.
    alone = max(read0 + sent0, read1 + sent1, dram, 1.0)
    in0 = read0 * (1 + dram1 / alone / 2) + sent0
    in1 = read1 * (1 + dram0 / alone / 2) + sent1
    in0 += chip.ns(_inner_padding_cycles(product, course)) / course.steps
    write = _write_ns(product, chip, course.rows * course.columns, course.cores)
    fill = max(in0, in1, dram)
    data = max(fill, in1 + write / course.steps) if course.outputs > 1 else fill
    count = course.outputs * course.steps
    last = chip.ns(_ending_cycles(product, board, chip, course))
    step = max(compute, data)
    total = chip.launch_ns + fill + (count - 1) * step + compute + course.outputs * last + write
    return Launch(
        OP_CODE,
        FAMILY,
        course.cores,
        total,
        Bound.COMPUTE
        if compute >= data
        else Bound.DRAM
        if dram >= max(in0, in1)
        else _data_bound(product, course, in0 >= in1),
        compute_ns=count * compute + course.outputs * last,
        data_ns=count * data,
        flops=_flops(product),
        dram_bytes=_dram_bytes(product, course),
    )


def _block_cycles(product: Product, board: Board, chip: Chip, course: Course) -> float:
    """The compute kernel's cycles for one block of the inner dimension."""
    program, kernel = product.program, KERNEL[board.arch]
    high, wide = max(program.out_subblock_h, 1), max(program.out_subblock_w, 1)
    tiles = high * wide
    # The operand with fewer tiles in the subblock is kept in its source register.
    unpacked = product.in1_tile if wide >= high else product.in0_tile
    products = max(tiles * FIDELITY_CYCLES[product.fidelity], tiles * unpacked / chip.unpack_bytes_per_cycle)
    partial = tile_bytes(DEFAULT_TILE, DataType.FLOAT32 if product.fp32_acc else DataType.BFLOAT16)
    packed = partial if course.steps > 1 else product.out_tile
    pack = tiles * (packed / chip.pack_bytes_per_cycle + kernel.pack)
    subblock = max(course.inner * (products + kernel.call) + kernel.subblock, pack)
    return div_up(course.rows, high) * div_up(course.columns, wide) * subblock + kernel.block


def _ending_cycles(product: Product, board: Board, chip: Chip, course: Course) -> float:
    """Bias and activation, once per block of the output."""
    tiles = course.rows * course.columns
    cycles = 0.0
    if product.has_bias:
        cycles += tiles * BIAS_CYCLES
    if product.activation is not None:
        cycles += tiles * activation_cycles(product.activation, board.arch)
    return cycles


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/kernel_helper_functions/pad_tile.hpp, pad_last_ktile: a loop of stores
PADDING_CYCLES = 5.0  # fit, per value


def _inner_padding_cycles(product: Product, course: Course) -> float:
    """Where the inner dimension ends within a tile, the reader of in0 zeroes the rest of the last tiles."""
    rest = product.a.shape[-1] % TILE_SIZE if product.a.shape else 0
    if not rest or not course.in0.readers:
        return 0.0
    return course.rows * TILE_SIZE * (TILE_SIZE - rest) * PADDING_CYCLES


def _delivery_ns(delivery: Delivery, spec: Spec, tile: int, tiles: int, chip: Chip) -> tuple[float, float]:
    """Time to read a block of an operand if no other core reads from DRAM, and to pass it on to its receivers."""
    read = sent = 0.0
    if delivery.readers:
        path = chip.l1_read if spec.memory_config.is_l1 else chip.dram
        read = path.ns(tile, tiles) + path.latency_ns
    if delivery.receivers:
        sent = tiles * tile / chip.multicast_bytes_per_ns
        sent += chip.semaphore_ns + delivery.receivers * chip.receiver_ns
    return read, sent


def _share_of(bytes_per_ns: float, total_bytes_per_ns: float, cores: float) -> float:
    """One core's rate when `cores` share a total."""
    return min(bytes_per_ns, total_bytes_per_ns / max(cores, 1))


def _read_from_dram(product: Product, course: Course) -> list[float]:
    """Bytes of each operand that all cores read from DRAM for one block of the inner dimension."""
    return [
        0.0 if spec.memory_config.is_l1 else float(delivery.readers * tiles * tile)
        for spec, delivery, tiles, tile in (
            (product.a, course.in0, course.rows * course.inner, product.in0_tile),
            (product.b, course.in1, course.inner * course.columns, product.in1_tile),
        )
    ]


def _write_ns(product: Product, chip: Chip, tiles: int, cores: int) -> float:
    """Time to write a block of the output."""
    out = product.out
    if is_local(out):
        return 0.0
    path = chip.l1_write if out.memory_config.is_l1 else chip.dram
    rate = path.bytes_per_ns
    if not out.memory_config.is_l1:
        rate = _share_of(rate, chip.dram_write_bytes_per_ns, cores)
    return tiles * max(path.issue_ns, product.out_tile / rate) + path.latency_ns


def _data_bound(product: Product, course: Course, in0_is_slower: bool) -> Bound:
    spec, delivery = (product.a, course.in0) if in0_is_slower else (product.b, course.in1)
    return Bound.DRAM if delivery.readers and not spec.memory_config.is_l1 else Bound.NOC


def _flops(product: Product) -> float:
    return 2.0 * product.batch * product.rows * product.inner * product.columns * TILE_SIZE**3


def _dram_bytes(product: Product, course: Course) -> float:
    """Bytes that cross to or from DRAM; operands are read again for every block of the output."""
    total = course.outputs * course.steps * sum(_read_from_dram(product, course))
    if not product.out.memory_config.is_l1:
        total += product.batch * product.rows * product.columns * product.out_tile
    return total


def _tile_by_tile(product: Product, board: Board, chip: Chip) -> Launch:
    """Every core computes whole output tiles and reads both operands again for each of them."""
    tiles = product.batch * product.rows * product.columns
    cores = min(tiles, board.cores)
    per_core = div_up(tiles, cores)
    path = chip.dram
    rate = _share_of(path.bytes_per_ns, chip.dram_bytes_per_ns, cores)
    # One tile of each operand, then a barrier: reader_bmm_8bank_output_tiles_partitioned.cpp of
    # ttnn/cpp/ttnn/operations/matmul/device/kernels/dataflow in v0.77.0.
    read = max(path.issue_ns, product.in0_tile / rate) + max(path.issue_ns, product.in1_tile / rate) + path.latency_ns
    compute = chip.ns(
        max(FIDELITY_CYCLES[product.fidelity], max(product.in0_tile, product.in1_tile) / chip.unpack_bytes_per_cycle)
        + KERNEL[board.arch].call
    )
    step = max(read, compute)
    write = path.latency_ns + product.out_tile / rate
    total = chip.launch_ns + per_core * product.inner * step + write
    return Launch(
        OP_CODE,
        FAMILY,
        cores,
        total,
        Bound.LATENCY if read >= compute else Bound.COMPUTE,
        compute_ns=per_core * product.inner * compute,
        data_ns=per_core * product.inner * read,
        flops=_flops(product),
        dram_bytes=tiles * (product.inner * (product.in0_tile + product.in1_tile) + product.out_tile),
    )


def _dram_sharded(product: Product, board: Board, chip: Chip) -> Launch:
    """Every DRAM bank streams its columns of in1 to the core next to it; in0 is multicast from its shards."""
    program = product.program
    banks = board.dram_banks
    columns = div_up(product.columns, banks)
    steps = max(product.inner // max(program.in0_block_w, 1), 1)
    rate = DRAM_SHARDED_BYTES_PER_NS[board.arch] / banks
    read = program.in0_block_w * columns * product.in1_tile / rate
    in0 = program.in0_block_w * product.rows * product.in0_tile / chip.multicast_bytes_per_ns + chip.semaphore_ns
    course = Course(
        banks, 1, steps, product.rows, program.in0_block_w, columns, Delivery(0, banks - 1), Delivery(banks, 0)
    )
    compute = chip.ns(_block_cycles(product, board, chip, course))
    step = max(read, in0, compute)
    total = chip.launch_ns + chip.dram.latency_ns + max(read, in0) + (steps - 1) * step + compute
    total += chip.ns(_ending_cycles(product, board, chip, course))
    # The results go to the cores of the output's shards.
    total += product.rows * columns * product.out_tile / chip.l1_write.bytes_per_ns + chip.l1_write.latency_ns
    return Launch(
        OP_CODE,
        FAMILY,
        banks,
        total,
        Bound.COMPUTE if compute >= max(read, in0) else Bound.DRAM if read >= in0 else Bound.NOC,
        compute_ns=steps * compute,
        data_ns=steps * max(read, in0),
        flops=_flops(product),
        dram_bytes=product.inner * product.columns * product.in1_tile,
    )


# tt-metal v0.77.0: tech_reports/LLMs/llms.md, "DRAM-sharded matmuls": 240 GB/s of Wormhole's 288
DRAM_SHARDED_BYTES_PER_NS = {Arch.WORMHOLE_B0: 240.0, Arch.BLACKHOLE: 427.0, Arch.GRAYSKULL: 80.0}
BIAS_CYCLES = 60.0


@prices("ttnn.matmul")
def matmul(call: Call) -> Sequence[Launch]:
    return [matmul_launch(product_of(call), call.board)]


def product_of(call: Call) -> Product:
    """The product that a call computes, from its plan or from a record of it."""
    a, b = call.tensors[:2]
    how = call.arguments.get("how")
    if how is None:
        return recorded_product(call, a, b, call.outputs[0], call.arguments)
    of, math = how.operands, how.kernel.math
    return Product(
        a,
        b,
        call.outputs[0],
        how.program,
        math.fidelity,
        math.fp32_acc,
        rows=of.rows(),
        inner=of.inner,
        columns=of.columns,
        batch=max(of.batch_a, of.batch_b),
        activation=how.program.fused_activation,
        has_bias=call.tensor("bias") is not None,
    )


PROGRAM_FIELDS = frozenset(Program.__dataclass_fields__) - {
    "kind",
    "grid",
    "fused_activation",
    "hop_cores",
    "allowed_worker_cores",
    "delivery",
}


def recorded_product(call: Call, a: Spec, b: Spec, out: Spec, record: Mapping[str, Any]) -> Product:
    """The product of a recorded program config and compute kernel config."""
    config, math = record["program_config"], record["compute_kernel_config"]
    program = Program(
        Kind[config["kind"]],
        tuple(config.get("grid", (0, 0))),
        **{name: value for name, value in config.items() if name in PROGRAM_FIELDS},
    )
    of = Operands(a, b, bool(record.get("transpose_a")), bool(record.get("transpose_b")))
    return Product(
        a,
        b,
        out,
        program,
        MathFidelity[math["fidelity"]],
        bool(math["fp32_acc"]),
        rows=of.rows(),
        inner=of.inner,
        columns=of.columns,
        batch=max(of.batch_a, of.batch_b),
        activation=config.get("fused_activation"),
        has_bias=call.tensor("bias") is not None or call.tensor("bias_tensor") is not None,
    )
