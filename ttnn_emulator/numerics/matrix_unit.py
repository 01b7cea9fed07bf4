"""The matrix unit: how the chip multiplies and adds.

One step multiplies 16 values of a row with 16 of a column. A fidelity phase takes 5 bits of one operand's mantissa and
7 of the other's; LoFi runs one phase, HiFi4 four. The 16 products of a phase are aligned to the largest exponent of
their group of eight, rounded to 12 bits, added, and added to the destination register, which holds bfloat16 or float32.

`matmul` follows this bit for bit while the product is small enough (see `mode`); beyond that it cuts the operands to
the bits that the phases see and leaves the adding to float32, a thousand times faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.numerics.formats import bits_of, from_bits
from ttnn_emulator.numerics.matrix_kernels import TILE, multiply
from ttnn_emulator.numerics.mode import exactly

PHASES = {MathFidelity.LoFi: 1, MathFidelity.HiFi2: 2, MathFidelity.HiFi3: 3, MathFidelity.HiFi4: 4}


@dataclass(frozen=True)
class MathConfig:
    """What a compute kernel config comes down to.

    inner_block  tiles of the inner dimension that are accumulated in the destination register before its content goes
                 to L1. With `l1_acc` the packer adds it to what is there, rounding to bfloat16 (or float32) each time;
                 the last block starts from that sum. None: all of the inner dimension in one go.
    """

    fidelity: MathFidelity = MathFidelity.HiFi4
    fp32_acc: bool = False
    approx: bool = False
    l1_acc: bool = False
    inner_block: int | None = None


def truncate_mantissa(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Keep the leading `bits` bits of the mantissa, the hidden one counted."""
    return from_bits(bits_of(values) & ~((1 << (24 - bits)) - 1))


def operand_bits(fidelity: MathFidelity) -> tuple[int, int]:
    """Bits of mantissa that all phases together see: of in0 (source register B) and of in1 (source register A)."""
    phases = PHASES[fidelity]
    return (11 if phases >= 3 else 7), (10 if phases >= 2 else 5)


def matmul(in0: torch.Tensor, in1: torch.Tensor, config: MathConfig) -> torch.Tensor:
    """in0 [..., M, K] @ in1 [..., K, N]: what the destination register holds at the end, as float32."""
    rows, inner, columns = in0.shape[-2], in0.shape[-1], in1.shape[-1]
    batch = torch.broadcast_shapes(in0.shape[:-2], in1.shape[:-2])
    work = int(np.prod(batch, dtype=np.int64)) * rows * inner * columns * PHASES[config.fidelity]
    if not exactly(work):
        return matmul_fast(in0, in1, config)
    left = in0.expand(*batch, rows, inner).reshape(-1, rows, inner)
    right = in1.expand(*batch, inner, columns).reshape(-1, inner, columns)
    result = torch.empty(left.shape[0], rows, columns)
    for number in range(left.shape[0]):
        result[number] = matmul_exact(left[number], right[number], config)
    return result.reshape(*batch, rows, columns)


def matmul_fast(in0: torch.Tensor, in1: torch.Tensor, config: MathConfig) -> torch.Tensor:
    """in0 @ in1 in float32, on operands cut to what the fidelity phases see."""
    bits0, bits1 = operand_bits(config.fidelity)
    if bits0 < 8:
        in0 = truncate_mantissa(in0, bits0)
    if bits1 < 8:
        in1 = truncate_mantissa(in1, bits1)
    return in0 @ in1


def matmul_exact(in0: torch.Tensor, in1: torch.Tensor, config: MathConfig) -> torch.Tensor:
    """in0 [M, K] @ in1 [K, N], bit for bit."""
    padding = -in0.shape[1] % TILE
    if padding:
        in0 = torch.nn.functional.pad(in0, (0, padding))
        in1 = torch.nn.functional.pad(in1, (0, 0, 0, padding))
    tiles = in0.shape[1] // TILE
    block = config.inner_block or tiles
    result = np.empty((in0.shape[0], in1.shape[1]), np.uint32)
    multiply(
        *_registers(in0),
        *_registers(in1.T),
        result,
        PHASES[config.fidelity],
        config.fp32_acc,
        block if config.l1_acc else max(tiles, 1),
    )
    return torch.from_numpy(result.view(np.float32))


def _registers(values: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sign, exponent and the 11 leading bits of the mantissa, as the source registers hold them; zero never wins."""
    raw = values.contiguous().view(torch.int32).numpy()
    exponent = (raw >> 23) & 0xFF
    mantissa = ((raw >> 13) & 0x3FF) | 0x400
    empty = exponent == 0
    return (
        (raw < 0).astype(np.int32),
        np.where(empty, -10000, exponent).astype(np.int32),
        np.where(empty, 0, mantissa).astype(np.int32),
    )
