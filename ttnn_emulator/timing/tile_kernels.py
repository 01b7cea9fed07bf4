"""Cycles of compute kernels that work tile by tile: copies to the destination register, sums, products, handing over.

The steps of one tile follow each other on the math thread; the unpackers and the packer work on other tiles meanwhile.
"""

from __future__ import annotations

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.timing.chips import Chip

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/ccl/reduce_scatter/device/reduce_scatter_device_operation.cpp,
# UNPACKER_BW_BYTES_PER_CYCLE: both unpackers together
UNPACK_BYTES_PER_CYCLE = 80.0
STEP_CYCLES = 300.0  # fit of attention: configuring the unpackers and the packer for other buffers
HANDOVER_CYCLES = 45.0  # fit: circular buffers and halves of the destination register, once per block of tiles
COPY_CYCLES = 19.0  # fit, per tile, beside unpacking
COMBINE_CYCLES = 11.0  # fit, per tile, beside unpacking
PACK_CYCLES = 6.0  # fit, per tile, beside packing
WIDE_COPY_CYCLES = 133.0  # fit: operands of 32 bits are unpacked to the destination register, which the math waits for
# The vendor's report on the matrix engine: 128 values per cycle and phase of a product.
PHASE_CYCLES = 8.0
PHASES = {MathFidelity.LoFi: 1, MathFidelity.HiFi2: 2, MathFidelity.HiFi3: 3, MathFidelity.HiFi4: 4}
WIDE = frozenset({DataType.FLOAT32, DataType.INT32, DataType.UINT32})


def copy_cycles(bytes_of_tile: float, dtype: DataType) -> float:
    """Copying a tile from a circular buffer to the destination register."""
    return COPY_CYCLES + bytes_of_tile / UNPACK_BYTES_PER_CYCLE + (WIDE_COPY_CYCLES if dtype in WIDE else 0.0)


def combine_cycles(bytes_of_tiles: float, phases: int = 1) -> float:
    """A sum, difference or product of two tiles on the matrix unit."""
    return COMBINE_CYCLES + bytes_of_tiles / UNPACK_BYTES_PER_CYCLE + PHASE_CYCLES * (phases - 1)


def pack_cycles(bytes_of_tile: float, chip: Chip) -> float:
    """Packing a tile to a circular buffer."""
    return PACK_CYCLES + bytes_of_tile / chip.pack_bytes_per_cycle


def tile_cycles(math: float, packed: float, tiles_per_block: int = 1) -> float:
    """A tile of the output, if the math thread and the packer work at the same time."""
    return max(math, packed) + HANDOVER_CYCLES / tiles_per_block
