"""Bytes of block floats; the checksums are those of the library's bytes for the same values."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import ttnn_emulator as ttnn


def _values() -> np.ndarray:
    """Signed values of many magnitudes, with zeros, an infinity, a NaN and a denormal."""
    n = np.arange(64 * 64, dtype=np.int64)
    values = (((n * 7919) % 4001 - 2000) / np.float32(977)).astype(np.float32)
    values *= np.exp2((n * 31) % 13 - 6).astype(np.float32)
    values = values.reshape(64, 64)
    values[3, :16], values[7, 7], values[8, 8], values[9, 0] = 0, np.inf, np.nan, 1e-40
    return values


@pytest.mark.parametrize(
    ("name", "tile", "size", "checksum"),
    [
        ("tilize_and_pack_bfp4_b", (32, 32), 2304, 0x38C553F4),
        ("tilize_and_pack_bfp4_b", (16, 32), 2304, 0xAAA0407C),
        ("tilize_and_pack_bfp4_b", (1, 32), 4096, 0xDD6D0DE6),
        ("tilize_and_pack_bfp4_b", (16, 16), 2304, 0x7A488673),
        ("tilize_and_pack_bfp4_b", (4, 32), 2560, 0x700D90A9),
        ("tilize_and_pack_bfp8_b", (32, 32), 4352, 0x7F98C7AC),
        ("tilize_and_pack_bfp8_b", (16, 32), 4352, 0x43C9F67F),
        ("tilize_and_pack_bfp8_b", (1, 32), 6144, 0x52F8FE2D),
        ("tilize_and_pack_bfp8_b", (16, 16), 4352, 0x5ED3B9D2),
        ("tilize_and_pack_bfp8_b", (4, 32), 4608, 0xB4472A65),
    ],
)
def test_tiles_have_the_bytes_of_the_library(name, tile, size, checksum):
    stored = getattr(ttnn._ttnn.core, name)(_values(), 64, 64, *tile)
    assert (len(stored), zlib.crc32(stored)) == (size, checksum)


@pytest.mark.parametrize(
    ("bits", "row_major", "packed", "unpacked"),
    [
        (2, False, 0xD1C2D1EF, 0x70238276),
        (2, True, 0x6A6FC0EA, 0x70238276),
        (4, False, 0x5A1AF006, 0x3D113C87),
        (4, True, 0x8452524D, 0x3D113C87),
        (8, False, 0x2220FAAB, 0xD0763860),
        (8, True, 0xD8828553, 0xD0763860),
    ],
)
def test_packs_and_unpacks_words_as_the_library(bits, row_major, packed, unpacked):
    words = getattr(ttnn._ttnn.bfp_utils, f"pack_bfp{bits}")(_values()[:32].reshape(-1), row_major)
    assert zlib.crc32(words.tobytes()) == packed
    values = getattr(ttnn._ttnn.bfp_utils, f"unpack_bfp{bits}")(words, row_major)
    assert zlib.crc32(values.tobytes()) == unpacked


def test_refuses_a_wrong_number_of_values():
    with pytest.raises(RuntimeError, match="not 128 rows of 64"):
        ttnn._ttnn.core.tilize_and_pack_bfp8_b(_values(), 128, 64)
    with pytest.raises(RuntimeError):
        ttnn._ttnn.core.tilize_and_pack_bfp8_b(_values(), 64, 64, 32, 8)
    with pytest.raises(ttnn.NotEmulated):
        ttnn._ttnn.bfp_utils.pack_bfp8(_values().reshape(-1), False, True)
