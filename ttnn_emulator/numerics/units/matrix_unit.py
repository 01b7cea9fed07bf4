"""The matrix unit: how the chip multiplies and adds.

One step multiplies 16 values of a row with 16 of a column. A fidelity phase reads 5 mantissa bits of one operand and 7
of the other; LoFi runs one phase, HiFi4 four. The 16 products of a phase are aligned to the largest exponent of their
group of eight, rounded to 12 bits, summed, and added to the destination register, which holds bfloat16 or float32.

`matmul` is bit-exact for small products (see `mode`); larger ones truncate the operands to the bits that the phases
read and accumulate in float32.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.numerics.broadcasting import joined
from ttnn_emulator.numerics.formats.carriers import bits_of, from_bits, masked
from ttnn_emulator.numerics.kernels import exact_matmul
from ttnn_emulator.numerics.kernels import matrix_unit as matrix_kernels
from ttnn_emulator.numerics.kernels.exact_matmul import ALL_IN_L1, KEEP, RELOAD, TILE
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.worker_threads import WORKERS, cut, share
from ttnn_emulator.numerics.programs.products import float32_product as product

# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_matmul.h, _llk_math_matmul_
PHASES = {MathFidelity.LoFi: 1, MathFidelity.HiFi2: 2, MathFidelity.HiFi3: 3, MathFidelity.HiFi4: 4}

# Multiplications that the compiled panels do in the time that `mode.EXACT_LIMIT` budgets for one, and the cost of
# unpacking one operand element, in multiplications.
PANEL_SPEED = 8
PACKING_WORK = 16
ONE_WORKER = 1 << 18  # multiplications below which threads cost more than they save

FLOAT32_BITS = 24  # significant bits of a float32, including the hidden bit
BFLOAT16_BITS = 8
ALL_BITS, UPPER_HALF, TF32_BITS = np.int32(-1), np.int32(-0x10000), np.int32(-0x2000)


@dataclass(frozen=True)
class MathConfig:
    """The numerically relevant part of a compute kernel config.

    inner_block  tiles of the inner dimension accumulated in the destination register before it is packed to L1. With
                 `l1_acc` the packer accumulates in L1, rounding to bfloat16 (or float32) each time; the last block
                 starts from that sum. None: the whole inner dimension at once.
    """

    fidelity: MathFidelity = MathFidelity.HiFi4
    fp32_acc: bool = False
    approx: bool = False
    l1_acc: bool = False
    inner_block: int | None = None


def truncate_mantissa(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Keep the leading `bits` mantissa bits, including the hidden bit."""
    return masked(values, mantissa_mask(bits))


def mantissa_mask(bits: int) -> int:
    """The bit mask that keeps this many mantissa bits of a float32."""
    return ~((1 << (FLOAT32_BITS - bits)) - 1)


# tt-metal v0.77.0: tech_reports/matrix_engine/matrix_engine.md, "Math Fidelity"
def operand_bits(fidelity: MathFidelity, fp32_acc: bool = True) -> tuple[int, int]:
    """Mantissa bits that all phases together read: of in0 (source register B) and of in1 (source register A).

    Without a 32-bit destination register, float32 operands are truncated to bfloat16 by the unpacker.
    """
    phases = PHASES[fidelity]
    in0, in1 = (11 if phases >= 3 else 7), (10 if phases >= 2 else 5)
    return (in0, in1) if fp32_acc else (min(in0, BFLOAT16_BITS), min(in1, BFLOAT16_BITS))


def is_exact(batches: int, rows: int, inner: int, columns: int, fidelity: MathFidelity) -> bool:
    """Whether a product of this size is emulated bit-exactly."""
    packing = (rows + columns) * inner * PACKING_WORK
    return exactly(batches * (rows * inner * columns * PHASES[fidelity] + packing) // PANEL_SPEED)


def matmul(
    in0: torch.Tensor,
    in1: torch.Tensor,
    config: MathConfig,
    *,
    transposed: bool = False,
    all_in_l1: bool = False,
    start: torch.Tensor | None = None,
    bits: tuple[int, int] = (FLOAT32_BITS, FLOAT32_BITS),
) -> torch.Tensor:
    """in0 [..., M, K] @ in1 [..., K, N]: the final destination register as float32.

    transposed  in1 is [..., N, K]
    all_in_l1   with `l1_acc`, the last block is accumulated in L1, too; the result is that sum
    start       initial value of the destination register
    bits        significant bits of the operands' dtypes: operands with few bits need no truncation
    """
    rows, inner = in0.shape[-2:]
    columns = in1.shape[-2] if transposed else in1.shape[-1]
    batch = joined(in0.shape[:-2], in1.shape[:-2])
    if not is_exact(math.prod(batch), rows, inner, columns, config.fidelity):
        product = matmul_fast(in0, in1.mT if transposed else in1, config, bits)
        return product if start is None else product.add_(start)
    result = torch.zeros(*batch, rows, columns) if start is None else start.clone()
    mode = KEEP if not config.l1_acc else ALL_IN_L1 if all_in_l1 else RELOAD
    if not batch:
        _accumulate(in0, in1, transposed, result, config, mode)
        return result
    lefts, rights = in0.expand(*batch, rows, inner), in1.expand(*batch, *in1.shape[-2:])
    for left, right, each in zip(lefts.reshape(-1, rows, inner), _matrices(rights), _matrices(result)):
        _accumulate(left, right, transposed, each, config, mode)
    return result


def _matrices(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, *values.shape[-2:])


def matmul_fast(
    in0: torch.Tensor,
    in1: torch.Tensor,
    config: MathConfig,
    bits: tuple[int, int] = (FLOAT32_BITS, FLOAT32_BITS),
) -> torch.Tensor:
    """in0 @ in1 in float32, on operands truncated to the bits that the fidelity phases read."""
    if in0.shape[-2] * in1.numel() > product.SMALL:
        return product.multiply(in0, in1, masks=seen_bits(config, bits))
    seen0, seen1 = operand_bits(config.fidelity, config.fp32_acc)
    in0, in1 = in0.float(), in1.float()
    if seen0 < bits[0]:
        in0 = truncate_mantissa(in0, seen0)
    if seen1 < bits[1]:
        in1 = truncate_mantissa(in1, seen1)
    return in0 @ in1


def seen_bits(config: MathConfig, bits: tuple[int, int]) -> tuple[int, int]:
    """Masks of the bits that the fidelity phases read of operands with `bits` significant bits."""
    one, other = (mantissa_mask(min(each)) for each in zip(operand_bits(config.fidelity, config.fp32_acc), bits))
    return one, other


def matmul_exact(in0: torch.Tensor, in1: torch.Tensor, config: MathConfig) -> torch.Tensor:
    """in0 [M, K] @ in1 [K, N], bit-exact."""
    result = torch.zeros(in0.shape[0], in1.shape[1])
    _accumulate(in0, in1, False, result, config, RELOAD if config.l1_acc else KEEP)
    return result


def _accumulate(
    in0: torch.Tensor,
    in1: torch.Tensor,
    transposed: bool,
    result: torch.Tensor,
    config: MathConfig,
    mode: int,
) -> None:
    """Accumulate a bit-exact matrix product in `result`, on all worker threads if it is large enough."""
    left, right = in0.contiguous().view(torch.int32).numpy(), in1.contiguous().view(torch.int32).numpy()
    sums = result.view(torch.int32).numpy()
    rows, inner = left.shape
    columns = sums.shape[1]
    if not sums.size or not inner:
        return
    phases = PHASES[config.fidelity]
    keep = ALL_BITS if config.fp32_acc else UPPER_HALF
    tiles = -(-inner // TILE)
    end = (phases, config.fp32_acc, min(config.inner_block or tiles, tiles), mode)
    before = sums
    if rows * inner * columns * phases <= ONE_WORKER or WORKERS == 1:
        fits = exact_matmul.multiply(left, right, transposed, 0, columns, keep, sums, *end)
    elif columns >= rows:
        before = sums.copy()
        edges = np.linspace(0, columns, WORKERS + 1).astype(int).tolist()
        fits = _in_threads(
            [
                (left, right, transposed, *edge, keep, sums, *end)
                for edge in itertools.pairwise(edges)
                if edge[0] < edge[1]
            ]
        )
    else:
        before = sums.copy()
        parts = zip(np.array_split(left, WORKERS), np.array_split(sums, WORKERS))
        fits = _in_threads([(part, right, transposed, 0, columns, keep, out, *end) for part, out in parts if out.size])
    if not fits:
        sums[:] = before
        _accumulate_any_range(in0, in1.T if transposed else in1, sums, keep, end)


def _in_threads(calls: list[tuple]) -> bool:
    """Run the parts on worker threads; whether all of them could be computed."""
    computed: list[bool] = []
    share(lambda *call: computed.append(exact_matmul.multiply(*call)), calls)
    return all(computed)


def _accumulate_any_range(in0: torch.Tensor, in1: torch.Tensor, sums: np.ndarray, keep: np.int32, end: tuple) -> None:
    padding = -in0.shape[1] % TILE
    in0, in1 = (from_bits(bits_of(values) & int(keep)) for values in (in0, in1))
    left = torch.nn.functional.pad(in0, (0, padding))
    right = torch.nn.functional.pad(in1, (0, 0, 0, padding))
    operands = (*_registers(left), *_registers(right.T), sums.view(np.uint32), *end)
    share(matrix_kernels.multiply, [(*part, *operands) for part in cut(left.shape[0], 1)])


def _registers(values: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sign, exponent and 11 mantissa bits, as in the source registers; zero gets an exponent below all others."""
    raw = values.contiguous().view(torch.int32).numpy()
    exponent = (raw >> 23) & 0xFF
    mantissa = ((raw >> 13) & 0x3FF) | 0x400
    empty = exponent == 0
    return (
        (raw < 0).astype(np.int32),
        np.where(empty, -10000, exponent).astype(np.int32),
        np.where(empty, 0, mantissa).astype(np.int32),
    )
