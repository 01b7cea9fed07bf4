"""Number formats: how values of each dtype are represented, and how the host rounds to them.

A *carrier* is the torch tensor that holds a tensor's values exactly:

    bfloat16, bfloat8_b, bfloat4_b   torch.float32 (wide) or torch.bfloat16 (narrow); every value of the three formats
                                     is a bfloat16, so both carriers hold the same numbers
    float32                          torch.float32
    int32, uint16, uint8             torch.int32
    uint32                           torch.int64
    fp8_e4m3                         torch.uint8, the bytes themselves

Most operations compute on wide carriers. Narrow ones save memory for large tensors: data movement keeps them narrow,
and matrix products widen them panel by panel, so a model's weights are never copied to float32.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.formats.float8 import to_fp8
from ttnn_emulator.numerics.formats.host_casts import truncated
from ttnn_emulator.numerics.kernels import formats
from ttnn_emulator.numerics.kernels.formats import BLOCK
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.native.large_pages import in_large_pages
from ttnn_emulator.numerics.native.worker_threads import cut, share

CARRIER = {
    DataType.BFLOAT16: torch.float32,
    DataType.BFLOAT8_B: torch.float32,
    DataType.BFLOAT4_B: torch.float32,
    DataType.FLOAT32: torch.float32,
    DataType.INT32: torch.int32,
    DataType.UINT16: torch.int32,
    DataType.UINT8: torch.int32,
    DataType.INT8: torch.int32,
    DataType.UINT32: torch.int64,
    DataType.FP8_E4M3: torch.uint8,
}
TORCH_DTYPE = {
    DataType.BFLOAT16: torch.bfloat16,
    DataType.BFLOAT8_B: torch.float32,
    DataType.BFLOAT4_B: torch.float32,
    DataType.FLOAT32: torch.float32,
    DataType.INT32: torch.int32,
    DataType.UINT16: torch.uint16,
    DataType.UINT8: torch.uint8,
    DataType.INT8: torch.int8,
    DataType.UINT32: torch.uint32,
    DataType.FP8_E4M3: torch.float8_e4m3fn,
}
INTEGER_RANGE = {
    DataType.INT32: (-(2**31), 2**31 - 1),
    DataType.UINT32: (0, 2**32 - 1),
    DataType.UINT16: (0, 2**16 - 1),
    DataType.UINT8: (0, 2**8 - 1),
    DataType.INT8: (-(2**7), 2**7 - 1),
}
# tt-metal v0.77.0: tech_reports/data_formats/data_formats.md, "Mantissa Rounding"
MANTISSA_BITS = {DataType.BFLOAT8_B: 7, DataType.BFLOAT4_B: 3}
ONE_WORKER = 1 << 17  # elements below which threads cost more than they save
MANY = 1 << 20  # elements up to which a short loop finishes before a thread wakes up
FEW = 1 << 15  # elements up to which widening is cheaper than a cache lookup


def wide(values: torch.Tensor) -> torch.Tensor:
    """The carrier that operations compute on; it is read-only."""
    if values.dtype is not torch.bfloat16:
        return values
    return values.float() if values.numel() <= FEW else _widened.recall(values)


def version_of(values: torch.Tensor) -> int:
    """The version counter of a tensor; inference tensors have none and return 0."""
    return 0 if values.is_inference() else values._version


class _Widened:
    """An LRU cache of widened 16-bit tensors, for as long as those are alive: convolution weights, for example.

    Matrix products read narrow carriers directly, so the large weights of a model are not cached here.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit  # bytes
        self._bytes = 0
        self._entries: OrderedDict[int, tuple[weakref.ref, int, torch.Tensor]] = OrderedDict()
        self._lock = threading.RLock()  # the garbage collector may drop an entry during a call

    def recall(self, values: torch.Tensor) -> torch.Tensor:
        key = id(values)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0]() is values and entry[1] == version_of(values):
                self._entries.move_to_end(key)
                return entry[2]
        widened = values.float()
        if widened.nbytes <= self._limit // 4:
            with self._lock:
                self._drop(key)
                self._entries[key] = weakref.ref(values, lambda _: self._drop(key)), version_of(values), widened
                self._bytes += widened.nbytes
                while self._bytes > self._limit:
                    self._drop(next(iter(self._entries)))
        return widened

    def _drop(self, key: int) -> None:
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._bytes -= entry[2].nbytes


_widened = _Widened(limit=1 << 27)


def narrow(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """The narrow carrier of values that are already representable in `dtype`."""
    return upper_halves(values) if dtype in FLOAT_DTYPES and dtype is not DataType.FLOAT32 else values


def upper_halves(values: torch.Tensor) -> torch.Tensor:
    """bfloat16 from the upper 16 bits of float32. Unlike a cast, it preserves NaN payloads on every processor."""
    if values.dtype is torch.bfloat16:
        return values
    return _narrowed(formats.upper_halves_at, values)


def _narrowed(loop: Callable[[int, int, int], None], values: torch.Tensor) -> torch.Tensor:
    source = values.contiguous()
    result = in_large_pages(torch.empty(source.shape, dtype=torch.bfloat16))
    in_parts(loop, address_of(source), result.data_ptr(), source.numel(), (4, 2))
    return result


def widened(values: torch.Tensor) -> torch.Tensor:
    """bfloat16 widened to float32. Unlike a cast, it preserves NaN payloads."""
    source = values.contiguous()
    result = torch.empty(source.shape)
    in_parts(formats.widen_at, source.data_ptr(), result.data_ptr(), source.numel(), (2, 4))
    return result


# -- bit patterns -----------------------------------------------------------------------------------------------------


def bits_of(values: torch.Tensor) -> torch.Tensor:
    """float32 bit patterns as int32."""
    if values.dtype is torch.bfloat16:
        values = wide(values)
    return values.contiguous().view(torch.int32)


def from_bits(bits: torch.Tensor) -> torch.Tensor:
    return bits.view(torch.float32)


# -- rounding to bfloat16 ---------------------------------------------------------------------------------------------


def round_bf16_nearest_even(values: torch.Tensor) -> torch.Tensor:
    """Round to nearest even, as the host and most kernels of the vector unit do. NaN keeps its sign.

    torch's cast changes the sign of NaN on some processors.
    """
    source = values.contiguous()
    result = torch.empty_like(source)
    in_parts(formats.round_nearest_even_at, address_of(source), address_of(result), source.numel())
    return result


def round_bf16_half_away(values: torch.Tensor) -> torch.Tensor:
    """Round half away from zero, as the packer does from a 32-bit destination register."""
    source = values.contiguous()
    result = torch.empty_like(source)
    in_parts(formats.round_half_away_at, address_of(source), address_of(result), source.numel())
    return result


def truncate_bf16(values: torch.Tensor) -> torch.Tensor:
    """Drop the lower 16 bits, as the vector unit does when it stores into a 16-bit destination register."""
    return masked(values, -0x10000)


def masked(values: torch.Tensor, mask: int) -> torch.Tensor:
    """Values with a bit mask applied."""
    source = values.float().contiguous()
    result = torch.empty_like(source)
    in_parts(formats.mask_at, address_of(source), address_of(result), source.numel(), (4, 4), np.int32(mask))
    return result


def flushed_in_place(values: torch.Tensor) -> torch.Tensor:
    """`flush` of a tensor without other references."""
    if not values.is_contiguous():
        return flush(values)
    _flush(values, values)
    return values


def flush(values: torch.Tensor) -> torch.Tensor:
    """Flush as the packer does for 16-bit float formats: NaN to infinity of its sign, denormals and -0 to +0."""
    source = values.contiguous()
    result = torch.empty_like(source) if source is values else source  # a temporary copy may be overwritten
    _flush(source, result)
    return result


def _flush(source: torch.Tensor, result: torch.Tensor) -> None:
    if source.dtype is torch.bfloat16:
        in_parts(formats.flush_halves_at, source.data_ptr(), result.data_ptr(), source.numel(), (2, 2))
    else:
        in_parts(formats.flush_at, address_of(source), address_of(result), source.numel())


def in_parts(
    loop: Callable[..., None],
    source: int,
    target: int,
    count: int,
    sizes: tuple[int, int] = (4, 4),
    *arguments: Any,
) -> None:
    """Run a loop over values by their addresses, on all cores if there are many; `sizes` are bytes per value."""
    if count <= MANY:
        loop(source, target, count, *arguments)
        return
    parts = cut(count, MANY)
    share(loop, [(source + sizes[0] * a, target + sizes[1] * a, b - a, *arguments) for a, b in parts])


def flushed_rows(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Selected rows of a table [rows, width], flushed, as a wide carrier; other rows are not read."""
    if table.dtype is not torch.bfloat16 or not table.is_contiguous():
        return flushed_in_place(table.index_select(0, places).float())
    count, width = places.numel(), table.shape[1]
    result = torch.empty(count, width)
    end = (table.data_ptr(), width, places.contiguous().numpy(), result.data_ptr())
    share(formats.gather_flushed, [(*part, *end) for part in cut(count, max(ONE_WORKER // max(width, 1), 1))])
    return result


# -- block floats -----------------------------------------------------------------------------------------------------


def _blocks(values: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The last dimension split into blocks of 16, zero-padded."""
    width = values.shape[-1]
    pad = -width % BLOCK
    if pad:
        values = torch.nn.functional.pad(values, (0, pad))
    return values.reshape(*values.shape[:-1], (width + pad) // BLOCK, BLOCK), width


def _unblock(blocks: torch.Tensor, width: int) -> torch.Tensor:
    flat = blocks.reshape(*blocks.shape[:-2], blocks.shape[-2] * BLOCK)
    return flat[..., :width].contiguous() if flat.shape[-1] != width else flat


def scaled_blocks(mantissa: torch.Tensor, exponent: torch.Tensor, bits: int, sign: torch.Tensor) -> torch.Tensor:
    """mantissa × 2^(exponent - 127 - (bits - 1)), with the sign of `sign`; infinities and NaNs keep their fraction."""
    magnitude = torch.ldexp(mantissa.float(), exponent - (126 + bits))
    signed = torch.where(sign < 0, -magnitude, magnitude) + 0.0  # + 0.0: a zero mantissa has no sign
    top = 1 << (bits - 1)
    special = (exponent == 0xFF) & (mantissa >= top)
    if not bool(special.any()):
        return signed
    pattern = ((mantissa & (top - 1)) << (24 - bits)) | 0x7F800000 | (sign & -0x80000000)
    return torch.where(special, from_bits(pattern.to(torch.int32)), signed)


def host_pack_block_float(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Quantise as the library's host code does: denormals to zero, shift right, then round half to even."""
    if values.dim() == 0:
        return host_pack_block_float(values.reshape(1), dtype).reshape(())
    bits = MANTISSA_BITS[dtype]
    blocks, width = _blocks(values.float())
    mantissa, exponent, raw = host_block_parts(blocks, bits)
    return _unblock(scaled_blocks(mantissa, exponent, bits, raw), width)


# tt-metal v0.77.0: tt_metal/impl/data_format/blockfloat_common.cpp, convert_u32_to_bfp
def host_block_parts(blocks: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mantissas, shared exponents and the values' own bits of float32 values [..., 16], with `bits` of mantissa."""
    raw = bits_of(blocks)
    exponent = (raw >> 23) & 0xFF
    shared = exponent.amax(dim=-1, keepdim=True)
    mantissa = torch.where(exponent == 0, torch.zeros_like(raw), (raw & 0x7FFFFF) | 0x800000)
    mantissa = mantissa >> (shared - exponent).clamp(max=31)
    drop = 24 - bits
    kept = mantissa >> drop
    rest = mantissa & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    kept = kept + ((rest > half) | ((rest == half) & ((kept & 1) == 1)))
    return kept.clamp(max=(1 << bits) - 1), shared, raw


def wrap_integer(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Integers modulo the width of `dtype`, in its carrier."""
    if dtype is DataType.INT32:
        return values.to(torch.int32)
    if dtype is DataType.INT8:
        return values.to(torch.int64).to(torch.int8).to(torch.int32)
    mask = INTEGER_RANGE[dtype][1]
    return (values.to(torch.int64) & mask).to(CARRIER[dtype])


# -- host conversion --------------------------------------------------------------------------------------------------


def host_convert(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """A torch tensor as the host code of the library stores it in `dtype`."""
    if dtype in BLOCK_FLOAT_DTYPES:
        return host_pack_block_float(_as_float32(values), dtype)
    if dtype is DataType.BFLOAT16:
        # The host preserves bit patterns, including NaN payloads and denormals.
        if values.dtype is torch.bfloat16:
            return values
        return _nearest_even(_as_float32(values))
    if dtype is DataType.FLOAT32:
        return _as_float32(values)
    if dtype is DataType.FP8_E4M3:
        return to_fp8(values)
    integers = truncated(values, dtype) if values.is_floating_point() else values.to(torch.int64)
    return wrap_integer(integers, dtype)


def _nearest_even(values: torch.Tensor) -> torch.Tensor:
    """Rounded to bfloat16; a large column-major matrix is transposed while rounding."""
    if values.dim() != 2 or values.numel() < ONE_WORKER or not values.mT.is_contiguous():
        return _narrowed(formats.narrow_nearest_even_at, values)
    result = in_large_pages(torch.empty(values.shape, dtype=torch.bfloat16))
    rows, columns = values.shape
    end = (address_of(values.mT), result.data_ptr(), rows, columns)
    share(formats.narrow_transposed, [(*part, *end) for part in cut(rows, max(ONE_WORKER // columns, 1))])
    return result


def _as_float32(values: torch.Tensor) -> torch.Tensor:
    return values.float()


def to_torch_dtype(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """A carrier as the torch tensor that `ttnn.to_torch` returns."""
    if dtype is DataType.BFLOAT16 and values.dtype is torch.float32:
        # A plain cast would canonicalise NaN payloads: keep the upper halves of the bit patterns.
        return upper_halves(values)
    if dtype is DataType.FP8_E4M3:
        return values.contiguous().view(torch.float8_e4m3fn)
    target = TORCH_DTYPE[dtype]
    return values if values.dtype is target else values.to(target)
