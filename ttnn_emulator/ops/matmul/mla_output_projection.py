"""matmul_wo: the output projection of DeepSeek's attention, on the cores next to the DRAM banks."""

from __future__ import annotations

from itertools import accumulate

import torch

from ttnn_emulator.enums import BufferType, DataType, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.cores_near_banks import cores_of, near_banks, shard_numbers, shards_of
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

BF16 = DataType.BFLOAT16
TILE_BYTES = 2 * TILE_SIZE * TILE_SIZE

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/mla/matmul_wo/device/kernels/matmul_wo_ring_common.h,
# K_TILES_PER_CORE_A
# Inner-dimension tiles per DRAM bank.
BANK_TILES = (44, 44, 42, 42, 42, 42, 42, 42, 44, 44, 42, 42)
INNER = sum(BANK_TILES) * TILE_SIZE
COLLECTORS = 7  # cores that add partial sums, one per column tile of a group of 7
TURNS = 4
COLUMNS = COLLECTORS * TURNS * TILE_SIZE
LAYER_ROWS = max(BANK_TILES) * TURNS * TILE_SIZE  # rows of a layer per bank, including the padding of smaller banks
BANK_WIDTH = COLLECTORS * TILE_SIZE
INPUT_BYTES = INNER // TILE_SIZE * TILE_BYTES
OUTPUT_BYTES = TURNS * TILE_BYTES
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek/mla/matmul_wo/device/matmul_wo_program_factory.cpp,
# circular buffers
# 42 bfloat8_b weight tiles, 28 tiles of partial sums, 48 tiles of partial sums to add.
BUFFERS = 42 * 1088 + (28 + 48) * TILE_BYTES
MATH = MathConfig(MathFidelity.LoFi, fp32_acc=False, approx=True)


@operation("ttnn.experimental.deepseek.mla.matmul_wo")
def matmul_wo(input_tensor: Spec, *, w_tensor: Spec, output_tensor: Spec, layer_id: int) -> Plan:
    """[rows, 16384] @ [16384, 896] of one layer, for at most 32 rows, replicated on the cores next to the DRAM banks.

    Each bank holds its inner-dimension tiles of the weight, in groups of seven column tiles. Tile 7 × i + j of the
    result is tile i of collector core j, counted from the last core of the grid.
    """
    for name, spec in (("input", input_tensor), ("weight", w_tensor), ("output", output_tensor)):
        require_on_device(spec, f"the {name}")
    require(0 <= layer_id < 1 << 32, f"layer_id must be an unsigned number of 32 bits, not {layer_id}")
    require(input_tensor.rank >= 2, f"the input must have at least two dimensions, not {input_tensor.rank}")
    board = current_board()
    for name, spec, least in (("input", input_tensor, INPUT_BYTES), ("output", output_tensor, OUTPUT_BYTES)):
        require(spec.memory_config.buffer_type is BufferType.L1, f"the {name} must be in L1")
        room = spec.bytes_per_bank(board.cores, board.l1_alignment)
        require(room >= least, f"the {name} has {room} bytes per core, the kernel needs {least}")
    fault = _fault(input_tensor, w_tensor, output_tensor, layer_id)
    multiply = Kernel(MATH, BF16, DataType.BFLOAT8_B, BF16).compute()
    starts = [0, *accumulate(BANK_TILES)]

    def compute(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        copies = shard_numbers(input_tensor, near_banks())
        banks = shard_numbers(w_tensor, [CoreCoord(bank, 0) for bank in range(len(BANK_TILES))])
        shards = shards_of(w_tensor).shape[0]
        x = x.reshape(-1, *x.shape[-2:])
        weight = weight.reshape(-1, BANK_WIDTH)
        core = Core.of(MATH, x.shape[-2] * COLUMNS * len(BANK_TILES))
        total = torch.zeros(x.shape[-2], COLUMNS)
        for bank, tiles in enumerate(BANK_TILES):
            left = x[copies[bank], :, starts[bank] * TILE_SIZE : starts[bank + 1] * TILE_SIZE].contiguous()
            first = banks[bank] * shards + layer_id * LAYER_ROWS
            right = weight[first : first + tiles * TURNS * TILE_SIZE].reshape(TURNS, tiles * TILE_SIZE, BANK_WIDTH)
            part = torch.cat([multiply(left, turn.contiguous()) for turn in right], -1)
            total = core.add(total, part)
        return _collected(core.packed(total, BF16), output_tensor)

    return Plan(
        output_tensor,
        compute,
        reads=("input_tensor", "w_tensor"),
        into=("output_tensor",),
        l1_bytes=BUFFERS,
    )


def _collected(product: torch.Tensor, out: Spec) -> torch.Tensor:
    """The product's columns in the order of the output's cores."""
    places = shard_numbers(out, _collectors())
    tiles = product.reshape(-1, TURNS, COLLECTORS, TILE_SIZE)
    made = torch.empty(tiles.shape[0], COLLECTORS, TURNS, TILE_SIZE)
    for number, column in enumerate(places):
        made[:, column] = tiles[:, :, number]
    rows = made.reshape(-1, COLUMNS)
    missing = out.volume // COLUMNS - rows.shape[0]
    return torch.nn.functional.pad(rows, (0, 0, 0, missing)).reshape(out.shape)


def _collectors() -> list[CoreCoord]:
    """The last cores of the grid that are not next to a bank."""
    taken = near_banks()
    width, height = current_board().grid
    free = [CoreCoord(x, y) for y in range(height - 1, -1, -1) for x in range(width - 1, -1, -1)]
    return [core for core in free if core not in taken][:COLLECTORS]


def _fault(x: Spec, weight: Spec, out: Spec, layer: int) -> ChipFault | None:
    """The library does not check shapes; the kernel supports a single one."""
    height, width = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
    wanted = (
        ("input", x, BF16, height, (TILE_SIZE, INNER)),
        ("weight", weight, DataType.BFLOAT8_B, height, None),
        ("output", out, BF16, width, (TILE_SIZE, TURNS * TILE_SIZE)),
    )
    near = near_banks()
    if len(near) != len(BANK_TILES):
        return ChipFault(f"the kernel supports {len(BANK_TILES)} banks of DRAM, the board has {len(near)}")
    for name, spec, dtype, layout, shard in wanted:
        shards = spec.memory_config.shard_spec
        if spec.dtype is not dtype or not spec.is_tile or spec.memory_config.memory_layout is not layout or not shards:
            return ChipFault(f"the kernel takes the {name} for {dtype.name} in tiles, {layout.name}")
        if shard is not None and tuple(shards.shape) != shard:
            return ChipFault(f"the kernel takes shards of the {name} for {list(shard)}, they are {list(shards.shape)}")
    shards = shards_of(weight)
    if weight.memory_config.buffer_type is not BufferType.DRAM or shards.shape[1] != BANK_WIDTH:
        return ChipFault(f"the weight must be in DRAM, {BANK_WIDTH} wide")
    if shards.shape[0] % LAYER_ROWS or not 0 <= layer < shards.shape[0] // LAYER_ROWS:
        return ChipFault(f"{shards.shape[0]} rows per bank have no layer {layer} of {LAYER_ROWS} rows")
    if weight.padded_shape != weight.shape or weight.volume != len(BANK_TILES) * shards.shape[0] * BANK_WIDTH:
        return ChipFault(f"a weight of {list(weight.shape)} does not fill its {len(BANK_TILES)} banks")
    if x.shape[-1] != INNER or out.shape[-1] != COLUMNS or x.padded_shape[-2:-1] != (TILE_SIZE,):
        return ChipFault(
            f"the kernel multiplies rows of {INNER} to rows of {COLUMNS}, not {x.shape[-1]} to {out.shape[-1]}"
        )
    banks = [CoreCoord(bank, 0) for bank in range(len(BANK_TILES))]
    for name, spec, cores in (("input", x, near), ("weight", weight, banks), ("output", out, _collectors())):
        if not set(cores) <= set(cores_of(spec)):
            return ChipFault(f"the {name} is not on all of the cores that the kernel works on")
    return None
