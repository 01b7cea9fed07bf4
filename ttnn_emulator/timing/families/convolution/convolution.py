"""Convolutions: windows are gathered from L1, tilized, and multiplied with weights that arrive block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch, DataType, MathFidelity, TensorMemoryLayout
from ttnn_emulator.ops.conv.circular_buffers import TILIZE_CYCLES
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import tile_bytes
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES, Chip
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.vector_unit import activation_cycles

OP_CODE = "Conv2dDeviceOperation"
FAMILY = "convolution"
HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Constants of the convolution's kernels on one architecture.

    read_ns, shared_read_ns  gathering one run of pixels, by one processor or by both at the same time
    weight_ns                reading a tile of weights from DRAM
    multicast                GB/s of weights and activations to other cores
    call, step               cycles of a call of `matmul_block`; of starting a block: formats, tilize, matmul
    reload, bias, untilize   cycles per tile of partial sums, of the bias, and of leaving the tile format
    """

    read_ns: float
    shared_read_ns: float
    weight_ns: float
    multicast: float
    call: float
    step: float
    reload: float
    bias: float
    untilize: float


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_local_l1_noc_transfer_rate (read_ns), get_all_dram_noc_transfer_rate (weight_ns of Wormhole) and
# get_mcast_many_l1_linked_noc_transfer_rate (multicast). All others are fits on Blackhole; those of Wormhole are
# the same cycles, or scaled by what matmuls need there.
KERNELS = {
    Arch.WORMHOLE_B0: KernelTimes(18.5, 24.0, 38.3, 25.3, 20.0, 250.0, 50.0, 40.0, 200.0),
    Arch.BLACKHOLE: KernelTimes(14.2, 18.5, 33.0, 57.7, 4.0, 200.0, 48.0, 30.0, 230.0),
    Arch.GRAYSKULL: KernelTimes(18.5, 24.0, 38.3, 20.0, 20.0, 250.0, 50.0, 40.0, 200.0),
}


@dataclass(frozen=True, slots=True)
class Convolution:
    """One program. Sizes of blocks are in tiles, per core.

    down, across   cores along the pixels, and along the channels of the input
    act_h, act_w   a block of gathered windows
    sub_h, sub_w   what the destination register holds
    out_h, out_w   a core's output
    steps          blocks of the inner dimension that a core gathers; block- and width-sharded inputs: per core
    kernel         rows and columns of the window
    stick          bytes of a pixel's channels in one core
    apart          pixels of a window's row are gathered one by one: dilated, or a part of the channels
    splits         both processors gather
    in_one         all rows of a window are in one block
    reuses         rows of the previous windows are kept; `row` is then the width of the output image
    depthwise      the kernel of 1D depthwise convolutions: products and sums of tiles, one tap at a time
    """

    scheme: TensorMemoryLayout
    down: int
    across: int
    act_h: int
    act_w: int
    sub_h: int
    sub_w: int
    out_h: int
    out_w: int
    steps: int
    kernel: tuple[int, int]
    stick: int
    fidelity: MathFidelity
    in_dtype: DataType
    out_dtype: DataType
    weight_dtype: DataType
    fp32_acc: bool = False
    l1_acc: bool = False
    has_bias: bool = False
    activation: Any = None
    untilizes: bool = False
    apart: bool = False
    depthwise: bool = False
    splits: bool = False
    in_one: bool = False
    reuses: bool = False
    row: int = 0
    doubles_act: bool = False
    doubles_weights: bool = False

    @property
    def blocks(self) -> int:
        """Blocks of a core's output."""
        return div_up(self.out_h, max(self.act_h, 1))

    @property
    def weight_tiles(self) -> int:
        """Tiles of weights that belong to one block of the inner dimension."""
        return self.act_w * (self.act_h if self.depthwise else self.out_w)


@dataclass(frozen=True, slots=True)
class Block:
    """Times of the parts of one block of the inner dimension, in nanoseconds."""

    gather: float
    tilize: float
    multiply: float
    weights: float


def convolution_launch(work: Convolution, arch: Arch) -> Launch:
    """The predicted time of one convolution program."""
    chip, kernel = CHIPS[arch], KERNELS[arch]
    block = Block(
        _gather_ns(work, chip, kernel),
        chip.ns(work.act_h * work.act_w * _tilize_cycles(work, arch)),
        chip.ns(_multiply_cycles(work, chip, kernel)),
        _weights_ns(work, chip, kernel),
    )
    ending = chip.ns(_ending_cycles(work, arch, kernel))
    busy = _by_height(work, block) if work.scheme is HEIGHT else _with_multicast(work, block, chip, kernel)
    total = chip.launch_ns + chip.dram.latency_ns + busy + work.blocks * ending
    senders = 1 if work.scheme is HEIGHT else work.across
    rounds = work.blocks * work.steps
    compute = rounds * (block.tilize + senders * block.multiply) + work.blocks * ending
    data = rounds * max(block.gather, senders * block.weights)
    cores = work.down * work.across
    weights = work.steps * senders * work.weight_tiles * tile_bytes(DEFAULT_TILE, work.weight_dtype)
    columns = 1 if work.scheme is HEIGHT else work.across
    products = work.out_h * work.out_w * work.act_w * work.steps * senders * cores
    return Launch(
        OP_CODE,
        FAMILY,
        cores,
        total,
        Bound.COMPUTE if compute >= data else Bound.NOC if block.gather >= senders * block.weights else Bound.DRAM,
        compute,
        data,
        flops=2.0 * products * TILE_SIZE**3,
        dram_bytes=float(weights * columns * (1 if work.scheme is HEIGHT else work.blocks)),
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/device/kernels/conv_bmm_tilize.cpp, kernel_main
# A block of windows can be gathered again when it was tilized; a block of weights can be read again when it was
# multiplied. Weights stay in L1 from the first block of the output on.
def _by_height(work: Convolution, block: Block) -> float:
    gathering = block.gather if work.doubles_act else block.gather + block.tilize
    kept = max(block.tilize + block.multiply, gathering)
    if work.doubles_weights:
        first = max(kept, block.weights)
    else:
        first = max(max(block.tilize, block.weights) + block.multiply, gathering)
    # Reused windows are gathered row by row while the rows before them are tilized.
    filled = max(block.gather, block.tilize) if work.reuses else block.gather + block.tilize
    start = max(filled, block.weights) + block.multiply
    return start + (work.steps - 1) * first + work.steps * (work.blocks - 1) * kept


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/device/conv2d_op_sharded_program_factory.cpp,
# act_mcast_sender_semaphore_id
# After a block was gathered and tilized, the cores along the channels multicast theirs in turn. Weights are read again
# for every block of the output.
def _with_multicast(work: Convolution, block: Block, chip: Chip, kernel: KernelTimes) -> float:
    tiles = work.act_h * work.act_w
    sent = 0.0
    if work.across > 1:
        sent = tiles * tile_bytes(DEFAULT_TILE, work.out_dtype) / kernel.multicast + chip.semaphore_ns
    waits = max(0.0 if work.doubles_act else sent, 0.0 if work.doubles_weights else block.weights)
    turn = max(block.multiply + waits, sent, block.weights)
    rounds = work.blocks * work.steps
    # The next block is gathered while the last one of this round is multiplied.
    gathering = block.gather + (rounds - 1) * max(block.gather - block.multiply, 0.0)
    return gathering + rounds * (block.tilize + work.across * turn)


def _gather_ns(work: Convolution, chip: Chip, kernel: KernelTimes) -> float:
    """Time to gather a block of windows from the core's own L1."""
    high, wide = work.kernel
    rows = work.act_h * TILE_SIZE
    if work.splits:
        rows = div_up(work.act_h, 2) * TILE_SIZE
    runs: float = rows * (wide if work.apart else 1)
    if work.scheme is WIDTH:
        runs *= high
    elif work.reuses and work.row:
        # Only the last row of a window is new, except in the first output row and in the padding of every row.
        padded = div_up(work.row, TILE_SIZE) * TILE_SIZE
        new = 1 + (high - 1) * (1 - work.row / padded)
        runs = rows * new + (high - 1) * min(padded, rows)
    elif work.in_one:
        runs *= high
    size = work.stick * (1 if work.apart else wide)
    issue = kernel.shared_read_ns if work.splits else kernel.read_ns
    if work.reuses:
        issue *= REUSE
    return runs * max(issue, size / chip.local.bytes_per_ns) + chip.local.latency_ns


REUSE = 1.3  # fit: finding out for every pixel what can be reused


def _tilize_cycles(work: Convolution, arch: Arch) -> float:
    """Cycles to tilize one tile; tilized activations have the dtype of the output."""
    table = TILIZE_CYCLES.get(arch, TILIZE_CYCLES[Arch.WORMHOLE_B0])
    source = DataType.FLOAT32 if work.in_dtype is DataType.FLOAT32 else DataType.BFLOAT16
    cycles = table.get((source, work.out_dtype), table[source, DataType.BFLOAT16])
    return float(cycles[work.fp32_acc])


def _multiply_cycles(work: Convolution, chip: Chip, kernel: KernelTimes) -> float:
    """The matrix unit's cycles for one block of the inner dimension."""
    if work.depthwise:
        return work.act_h * work.act_w * DEPTHWISE_CYCLES + kernel.step
    high, wide = max(work.sub_h, 1), max(work.sub_w, 1)
    tiles = high * wide
    if wide >= high:
        unpacked = tile_bytes(DEFAULT_TILE, work.weight_dtype) / chip.unpack_bytes_per_cycle
    else:
        unpacked = tile_bytes(DEFAULT_TILE, work.out_dtype) / ACTIVATION_BYTES_PER_CYCLE
    products = tiles * max(FIDELITY_CYCLES[work.fidelity], unpacked)
    subblocks = div_up(work.act_h, high) * div_up(work.out_w, wide)
    partial = tile_bytes(DEFAULT_TILE, _partial_dtype(work))
    pack = tiles * (partial / chip.pack_bytes_per_cycle + PACK_CYCLES)
    cycles = subblocks * max(work.act_w * (products + kernel.call), pack)
    if not work.l1_acc and work.steps * (1 if work.scheme is HEIGHT else work.across) > 1:
        cycles += work.act_h * work.out_w * kernel.reload
    return cycles + kernel.step


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/ccl/reduce_scatter/device/reduce_scatter_device_operation.cpp,
# bytes per cycle of the unpackers
ACTIVATION_BYTES_PER_CYCLE = 80.0
PACK_CYCLES = 12.0  # fit, per tile beyond its bytes
DEPTHWISE_CYCLES = 120.0  # a product, a sum and two packed tiles


def _partial_dtype(work: Convolution) -> DataType:
    if not work.l1_acc:
        return work.out_dtype
    return DataType.FLOAT32 if work.fp32_acc else DataType.BFLOAT16


def _weights_ns(work: Convolution, chip: Chip, kernel: KernelTimes) -> float:
    """Time until a block of weights has arrived: read by one core of a column, and multicast to the others."""
    tile = tile_bytes(DEFAULT_TILE, work.weight_dtype)
    tiles = work.weight_tiles
    rate = min(chip.dram.bytes_per_ns, chip.dram_bytes_per_ns / (work.across if work.scheme is not HEIGHT else 1))
    total = tiles * max(kernel.weight_ns, tile / rate) + chip.dram.latency_ns
    if work.scheme is not WIDTH and work.down > 1:
        total += tiles * tile / kernel.multicast + chip.semaphore_ns
    return total


def _ending_cycles(work: Convolution, arch: Arch, kernel: KernelTimes) -> float:
    """Bias, activation and untilizing, once per block of the output."""
    tiles = work.act_h * work.out_w
    cycles = 0.0
    if work.has_bias:
        cycles += tiles * kernel.bias + kernel.step / 2
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/device/conv2d_op_sharded_program_factory.cpp, pack_relu
    if work.activation is not None and not is_relu(work.activation):
        cycles += tiles * activation_cycles(work.activation, arch)
    if work.untilizes:
        cycles += tiles * kernel.untilize
    return cycles


def is_relu(activation: Any) -> bool:
    """Whether an activation is a plain ReLU, from a record or from its text."""
    text = str(activation)
    return text.split("(")[0].upper().endswith("RELU") or "::RELU)" in text or "::RELU," in text
