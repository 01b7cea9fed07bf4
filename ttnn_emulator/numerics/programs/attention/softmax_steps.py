"""Steps of the attention kernels: exponentials of scores and of maxima, reciprocals, sums in L1.

A kernel iterates over chunks of keys. Per row it keeps the running maximum of the scores, the sum of exponentials and
the sum of weighted values; when the maximum changes, both sums are scaled by the exponential of the change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even, truncate_bf16
from ttnn_emulator.numerics.functions.exponential import exp, exp_21_bits, exp_accurate
from ttnn_emulator.numerics.functions.kernel_vocabulary import to_int16, to_integer, to_uint8
from ttnn_emulator.numerics.functions.lookup_tables import ALL_BF16, apply_table
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.units.vector_unit import (
    Float,
    add,
    bits,
    floats,
    mad,
    mul,
    round_to_bf16,
    sign_magnitude_to_float,
    store_bf16,
    store_fp32,
)

TABLES_KEPT = 64
TILE = 32
NEGATIVE_INFINITY = float("-inf")

# Schraudolph's exponential: the bits of exp(x) are nearly 2⁸ ÷ ln 2 × x + 127 × 2⁸ - 11.2, shifted left by 15.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, exp_init
STEEPNESS = np.float32(256.0) * np.float32(1.4426950408889634)
OFFSET = np.float32(32500.818359375)

# exp(r) for |r| ≤ ln 2 ÷ 2, by the width of the destination register.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/experimental/llk_sfpu/ckernel_sfpu_sdpa.h,
#     calculate_exponential_polynomial
NARROW_POLYNOMIAL = (0.999848792924395, 1.0150876009852106, 0.5062836705674557)
WIDE_POLYNOMIAL = (1.0000001510806179, 0.9999622811704765, 0.49998365704615426, 0.16792157982882225, 0.041959439860014)
LN2 = np.float32(0.6931471805599453)
INVERSE_LN2 = np.float32(1.4426950408889634)


def scale_of_maxima(scale: float) -> np.float32:
    """The scale in exponentials of maxima: truncated to bfloat16."""
    return np.float32(truncate_bf16(torch.tensor(scale, dtype=torch.float32)).item())


# -- the vector unit --------------------------------------------------------------------------------------------------


def _score_power(x: Float, scale: float, wide: bool) -> Float:
    """Fast exp(scale × x) of a score; the packer's relu sets negative results, below exp(-88), to zero."""
    scaled = mad(STEEPNESS * np.float32(scale), x, OFFSET)
    whole = to_int16(scaled)
    raw = floats((whole & np.int32(0x7FFF)) << 15)
    return np.where(whole < 0, np.float32(0.0), raw)


def _exact_score_power(x: Float, scale: float, wide: bool) -> Float:
    """The accurate exponential of a score; the product passes through the destination register first."""
    product = mul(x, np.float32(scale))
    product = store_fp32(product) if wide else store_bf16(product)
    return exp(product, approx=False, fp32=wide)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp,
#     exp_tile_first_column
def maximum_power(x: Float, scale: float, wide: bool) -> Float:
    """exp(scale × x) of a difference of maxima: the kernels' approximate mode is the accurate one."""
    product = mul(x, np.float32(scale))
    return exp_accurate(product) if wide else round_to_bf16(exp_21_bits(product))


def _polynomial_power(x: Float, scale: float, wide: bool) -> Float:
    """exp(scale × x) of a difference of maxima by a polynomial, of degree 2 for a 16-bit destination, else 4."""
    x = mul(x, np.float32(scale))
    j = sign_magnitude_to_float(to_integer(mul(x, INVERSE_LN2), 127, signed=True))
    r = mad(j, -LN2, x)
    *lower, value = (np.float32(each) for each in (WIDE_POLYNOMIAL if wide else NARROW_POLYNOMIAL))
    for coefficient in reversed(lower):
        value = mad(r, value, coefficient)
    biased = add(j, np.float32(127.0))
    power = mul(value, floats(to_uint8(biased) << 23))
    power = np.where(bits(biased) == 0, np.float32(0.0), power)
    return power if wide else round_to_bf16(power)


def _quick_inverse(x: Float, _: float, wide: bool) -> Float:
    return reciprocal(x, steps=1)


def _inverse(x: Float, _: float, wide: bool) -> Float:
    return reciprocal(x, steps=2) if wide else round_to_bf16(reciprocal(x, steps=1))


def _best_inverse(x: Float, _: float, wide: bool) -> Float:
    return reciprocal(x, steps=2) if wide else reciprocal(x, steps=1, to_bf16=True)


@functools.lru_cache(maxsize=TABLES_KEPT)
def _table(function: Callable[..., Float], parameter: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        return store_bf16(function(ALL_BF16, parameter, False))


def _applied(function: Callable[..., Float], x: torch.Tensor, parameter: float, wide: bool) -> torch.Tensor:
    """The destination register after the function; for 16 bits a table lookup."""
    if not wide:
        return apply_table(_table(function, parameter), x)
    with np.errstate(all="ignore"):
        return torch.from_numpy(stored(function(x.contiguous().numpy(), parameter, True), True))


def stored(x: Float, wide: bool) -> Float:
    """x after the vector unit's store to the destination register."""
    return np.asarray(store_fp32(x) if wide else store_bf16(x), np.float32)


def score_powers(x: torch.Tensor, scale: float, *, wide: bool, accurate: bool = False) -> torch.Tensor:
    """exp(scale × x) of scores minus their maximum."""
    return _applied(_exact_score_power if accurate else _score_power, x, scale, wide)


def maximum_powers(x: torch.Tensor, scale: float, *, wide: bool, approx: bool) -> torch.Tensor:
    """exp(scale × x) of the change of a maximum."""
    parameter = float(scale_of_maxima(scale))
    return _applied(maximum_power if approx else _polynomial_power, x, parameter, wide)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp,
#     recip_tile_first_column
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_streaming.hpp,
#     recip_tile_first_column_wh_idst0_direct
def inverses(x: torch.Tensor, *, wide: bool, approx: bool, streaming: bool = False) -> torch.Tensor:
    """1 ÷ x of row sums; the `streaming` kernel uses the initial guess tuned for bfloat16."""
    function = _quick_inverse if approx else _best_inverse if streaming else _inverse
    return _applied(function, x, 0.0, wide)


def added_in_register(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Two tiles of a 16-bit destination register added by the vector unit, whose store truncates."""
    return torch.from_numpy(stored(add(a.contiguous().numpy(), b.contiguous().numpy()), False))


# -- L1 ---------------------------------------------------------------------------------------------------------------


def added_in_l1(a: torch.Tensor, b: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """The packer's accumulation in L1: a + b rounded to nearest even."""
    total = a + b
    return round_bf16_nearest_even(total) if dtype is DataType.BFLOAT16 else total


def tile_sums(powers: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """The tiles of a row accumulated in L1: [..., columns] → [..., 32]."""
    first, *rest = powers.unflatten(-1, (-1, TILE)).unbind(-2)
    total = first
    for part in rest:
        total = added_in_l1(total, part, dtype)
    return total
