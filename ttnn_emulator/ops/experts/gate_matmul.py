"""moe_gate_mm: DeepSeek's gate including its matmul, on the cores next to the DRAM banks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ttnn_emulator.enums import BufferType, DataType, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, EmulatorError, NotEmulated, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord
from ttnn_emulator.numerics.programs.experts import gate_on_ring as numeric
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.prefill.mesh_positions import require_unsigned
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.cores_near_banks import cores_of, near_banks, shard_numbers, shards_of
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

BF16 = DataType.BFLOAT16
TILE_BYTES = 2 * TILE_SIZE * TILE_SIZE

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/moe_gate_mm_program_factory.cpp,  # noqa: E501
# required_cores
CORES = 12
TRIO = 3  # every third core of the ring sends partial products to the two cores after it
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/compute.cpp,
# num_w_tiles_h
# Pairs of tiles in the bank of a receiving core, and of a sending core.
OWN_PAIRS, SENT_PAIRS = 76, 72
INNER = (2 * OWN_PAIRS + SENT_PAIRS) * TILE_SIZE
CUT = 2 * OWN_PAIRS * TILE_SIZE  # columns of the input before those of the cores that send
LAYER_ROWS = (OWN_PAIRS + 1) * TILE_SIZE  # of a bank: one more pair of tiles, whose first row is the bias
BANK_WIDTH = 2 * TILE_SIZE
INPUT_BYTES = INNER // TILE_SIZE * TILE_BYTES
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/moe_gate_mm_program_factory.cpp,  # noqa: E501
# cb_specs0
# 96 weight tiles, one number, one float32 tile, 3 bfloat16 tiles, and twice 4 more.
BUFFERS = 96 * TILE_BYTES + 4 + 2 * TILE_BYTES + (3 + 4 + 4) * TILE_BYTES
MATH = MathConfig(MathFidelity.LoFi, fp32_acc=False, approx=True)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/dm1.cpp,
# collector_semaphore_noc_addr
@operation("ttnn.experimental.deepseek.moe.moe_gate_mm")
def moe_gate_mm(input_tensor: Spec, *, w_tensor: Spec, output_tensor: Spec, layer_id: int, column_id: int) -> Plan:
    """The 8 best of 256 experts for 32 tokens by sigmoid(input @ weight) + bias, of the 4 best of 8 groups.

    A copy of the input [32, 7168] is on each of the cores next to the banks of DRAM. In a ring of them, from the
    highest core to the lowest, every third one multiplies the end of the inner dimension for the two after it. The
    last one's tile of the output is the result (`numeric.collected`); the others' tiles hold intermediate values:
    biased scores of their group, or the partial product of the core after them.

    The library's own test is disabled because it hung (issue 44858). The kernels of 0.81.1 no longer increment and set
    one semaphore concurrently; their results are the same as before.
    """
    require_unsigned(layer_id=layer_id, column_id=column_id)
    for name, spec in (("input", input_tensor), ("weight", w_tensor), ("output", output_tensor)):
        require_on_device(spec, f"the {name}")
    board = current_board()
    require(board.dram_banks == CORES, f"{CORES} banks of DRAM are needed, {board.name} has {board.dram_banks}")
    for name, spec, least in (("input", input_tensor, INPUT_BYTES), ("output", output_tensor, TILE_BYTES)):
        require(spec.memory_config.buffer_type is not BufferType.DRAM, f"the {name} must be in L1")
        room = spec.bytes_per_bank(board.cores, board.l1_alignment)
        require(room >= least, f"the {name} has {room} bytes per core, the kernels need {least}")
    ring = _ring()
    fault = _fault(input_tensor, w_tensor, output_tensor, layer_id, ring)
    multiply = Kernel(MATH, BF16, BF16, BF16).compute()

    def compute(x: torch.Tensor, weight: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        copies, places = (shard_numbers(spec, [each.core for each in ring]) for spec in (input_tensor, output_tensor))
        shards = shard_numbers(w_tensor, [CoreCoord(each.bank, 0) for each in ring])
        rows = shards_of(w_tensor).shape[0]
        inputs, banks = x.reshape(-1, TILE_SIZE, INNER), weight.reshape(-1, rows, BANK_WIDTH)
        core = Core.of(MATH, TILE_SIZE * TILE_SIZE * numeric.GROUPS)
        tiles: list[torch.Tensor] = []
        groups: list[torch.Tensor] = []
        sent: tuple[torch.Tensor, ...] = ()
        for number, (copy, shard) in enumerate(zip(copies, shards)):
            own, bank = inputs[copy], banks[shard]
            if number % TRIO == 0:
                right = bank[: SENT_PAIRS * TILE_SIZE].contiguous()
                sent = multiply(own[:, CUT:].contiguous(), right).split(TILE_SIZE, -1)
                tiles.append(sent[0])
                continue
            product = core.add(multiply(own[:, :CUT].contiguous(), _column(bank)), sent[number % TRIO - 1].contiguous())
            scores = core.apply("sigmoid", product)
            groups.append(numeric.biased(scores, bank[OWN_PAIRS * TILE_SIZE, :TILE_SIZE]))
            tiles.append(groups[-1])
        tiles[-1] = numeric.collected(torch.stack(groups), column_id)
        made = held.reshape(TILE_SIZE, -1).clone()
        for tile, column in zip(tiles, places):
            made[:, column * TILE_SIZE : (column + 1) * TILE_SIZE] = tile
        return made.reshape(output_tensor.shape)

    reads = ("input_tensor", "w_tensor", "output_tensor")
    return Plan(output_tensor, compute, reads=reads, into=("output_tensor",), l1_bytes=BUFFERS)


def _column(bank: torch.Tensor) -> torch.Tensor:
    """Pairs of tiles side by side as one column of tiles, the left one of a pair first."""
    pairs = bank[: OWN_PAIRS * TILE_SIZE].reshape(OWN_PAIRS, TILE_SIZE, 2, TILE_SIZE)
    return pairs.transpose(1, 2).reshape(-1, TILE_SIZE).contiguous()


@dataclass(frozen=True)
class _Member:
    core: CoreCoord
    bank: int


def _ring() -> list[_Member]:
    """The cores next to the banks, from the highest row down and from right to left (ring_pos2bank_id)."""
    members = [_Member(core, bank) for bank, core in enumerate(near_banks())]
    return sorted(members, key=lambda each: (each.core.y, each.core.x), reverse=True)


def _fault(x: Spec, weight: Spec, out: Spec, layer: int, ring: list[_Member]) -> EmulatorError | None:
    """The library does not check shapes; the kernels support a single one."""
    height, width = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
    if len(ring) != CORES:
        return NotEmulated(f"which {CORES} cores of {current_board().name} are next to banks of DRAM is not known")
    cores, banks = [each.core for each in ring], [CoreCoord(each.bank, 0) for each in ring]
    for name, spec, layout, least, where in (
        ("input", x, height, (TILE_SIZE, INNER), cores),
        ("weight", weight, height, (LAYER_ROWS, BANK_WIDTH), banks),
        ("output", out, width, (TILE_SIZE, TILE_SIZE), cores),
    ):
        shards = spec.memory_config.shard_spec
        tiled = spec.is_tile and tuple(spec.tile.tile_shape) == (TILE_SIZE, TILE_SIZE)
        if spec.dtype is not BF16 or not tiled or spec.memory_config.memory_layout is not layout or not shards:
            return ChipFault(f"the kernels take the {name} for {BF16.name} in tiles, {layout.name}")
        rows, columns = shards.shape
        if columns != least[1] or (rows < least[0] if spec is weight else rows != least[0]):
            return ChipFault(f"the kernels take shards of the {name} for {list(least)}, they are {list(shards.shape)}")
        if spec.padded_shape != spec.shape or spec.volume % (rows * columns):
            return ChipFault(f"the {name} {list(spec.shape)} does not fill its shards: the kernels read the rest, too")
        if not set(where) <= set(cores_of(spec)):
            return ChipFault(f"the {name} is not on all of the cores that the kernels work on")
    if weight.memory_config.buffer_type is not BufferType.DRAM:
        return ChipFault("the kernels read the weight from DRAM")
    if layer and shards_of(weight).shape[0] >= 2 * LAYER_ROWS:
        return ChipFault(f"the kernels read the first layer of a bank, not layer {layer}")
    return None
