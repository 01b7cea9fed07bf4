"""Block floats as bytes in memory: a tile's shared exponents first, then the signs and mantissas.

Supplies `tilize_and_pack_bfp4_b` and `tilize_and_pack_bfp8_b` of `ttnn._ttnn.core` and `ttnn._ttnn.bfp_utils`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.numerics.formats.carriers import host_block_parts, scaled_blocks
from ttnn_emulator.numerics.kernels.formats import BLOCK
from ttnn_emulator.tensors.shapes import Tile

# tt-metal v0.77.0: tt_metal/impl/data_format/blockfloat_common.cpp, pack_as_bfp_tiles
EXPONENT_ALIGNMENT = 16  # bytes; the mantissas of a tile start at a multiple of it
SIDE = 32  # of tiles in `bfp_utils`


def _as_tiles(values: np.ndarray, tile: tuple[int, int], face: tuple[int, int]) -> np.ndarray:
    """[H, W] as [tiles, elements], every tile face by face; incomplete tiles are dropped."""
    down, across = values.shape[0] // tile[0], values.shape[1] // tile[1]
    whole = values[: down * tile[0], : across * tile[1]]
    parts = whole.reshape(down, tile[0] // face[0], face[0], across, tile[1] // face[1], face[1])
    return parts.transpose(0, 3, 1, 4, 2, 5).reshape(down * across, tile[0] * tile[1])


def _packed(tiles: np.ndarray, bits: int) -> np.ndarray:
    """[tiles, elements] as [tiles, bytes] with `bits` of mantissa; zeros have no sign."""
    count, elements = tiles.shape
    blocks = torch.from_numpy(np.ascontiguousarray(tiles)).reshape(count, elements // BLOCK, BLOCK)
    mantissa, exponent, raw = (part.numpy() for part in host_block_parts(blocks, bits))
    sign = ((raw < 0) & (mantissa > 0)).astype(np.uint8) << bits
    codes = (mantissa.astype(np.uint8) | sign).reshape(count, elements)
    width = bits + 1
    in_byte = np.arange(8 // width, dtype=np.uint8) * width
    body = np.bitwise_or.reduce(codes.reshape(count, -1, 8 // width) << in_byte, axis=-1)
    shared = exponent.reshape(count, -1).astype(np.uint8)
    head = np.zeros((count, -(-shared.shape[1] // EXPONENT_ALIGNMENT) * EXPONENT_ALIGNMENT), np.uint8)
    head[:, : shared.shape[1]] = shared
    return np.concatenate([head, body], axis=1)


def _unpacked(stored: np.ndarray, bits: int) -> np.ndarray:
    """The values of whole tiles of 32 × 32, [tiles, elements], in the order of the bytes."""
    blocks = SIDE * SIDE // BLOCK
    width = bits + 1
    in_byte = np.arange(8 // width, dtype=np.uint8) * width
    codes = ((stored[:, blocks:, None] >> in_byte) & ((1 << width) - 1)).reshape(len(stored), blocks, BLOCK)
    exponent = torch.from_numpy(stored[:, :blocks, None].astype(np.int32))
    mantissa = torch.from_numpy((codes & ((1 << bits) - 1)).astype(np.int32))
    sign = torch.from_numpy(-(codes >> bits).astype(np.int32))
    return scaled_blocks(mantissa, exponent, bits, sign).reshape(len(stored), -1).numpy()


def _tilize_and_pack(bits: int) -> Any:
    def tilize_and_pack(data: Any, H: int, W: int, tile_h: int = 32, tile_w: int = 32) -> bytes:
        """`H` rows of `W` values, as bytes of tiles."""
        values = np.ascontiguousarray(data, np.float32).reshape(-1)
        require(values.size >= H * W, f"{values.size} values are not {H} rows of {W}")
        high, wide = Tile((tile_h, tile_w)).face_shape
        tiles = _as_tiles(values[: H * W].reshape(H, W), (tile_h, tile_w), (high, wide))
        return _packed(tiles, bits).tobytes()

    return tilize_and_pack


tilize_and_pack_bfp8_b = _tilize_and_pack(7)
tilize_and_pack_bfp4_b = _tilize_and_pack(3)


def _only_b(is_exp_a: bool) -> None:
    if is_exp_a:
        raise NotEmulated("block floats with 5-bit exponents (is_exp_a) are not emulated")


def _packer(bits: int) -> Any:
    def pack(input: Any, row_major_input: bool = False, is_exp_a: bool = False) -> np.ndarray:
        """Values of 32 × 32 tiles as 32-bit words; an incomplete tile at the end is dropped."""
        _only_b(is_exp_a)
        values = np.ascontiguousarray(input, np.float32)
        tiles = values[: values.size // SIDE**2 * SIDE**2].reshape(-1, SIDE**2)
        if row_major_input:
            tiles = _as_tiles(tiles.reshape(-1, SIDE), (SIDE, SIDE), (BLOCK, BLOCK))
        return _packed(tiles, bits).reshape(-1).view(np.uint32)

    return pack


def _unpacker(bits: int) -> Any:
    def unpack(input: Any, row_major_output: bool = False, is_exp_a: bool = False) -> np.ndarray:
        """The values of tiles of 32 × 32, face by face or row by row."""
        _only_b(is_exp_a)
        size = SIDE * SIDE // BLOCK + SIDE * SIDE * (bits + 1) // 8
        stored = np.ascontiguousarray(input, np.uint32).view(np.uint8)
        values = _unpacked(stored[: stored.size // size * size].reshape(-1, size), bits)
        if row_major_output:
            faces = values.reshape(-1, 2, 2, BLOCK, BLOCK)
            values = np.ascontiguousarray(faces.transpose(0, 1, 3, 2, 4))
        return values.reshape(-1)

    return unpack


pack_bfp2, pack_bfp4, pack_bfp8 = (_packer(bits) for bits in (1, 3, 7))
unpack_bfp2, unpack_bfp4, unpack_bfp8 = (_unpacker(bits) for bits in (1, 3, 7))
