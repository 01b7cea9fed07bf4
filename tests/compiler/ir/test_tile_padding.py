"""Which shapes are better off in rows than in tiles."""

from __future__ import annotations

import pytest

from torch_ttnn.compiler.ir.tile_padding import UPLOAD_LIMIT, is_mostly_padding, tile_volume


@pytest.mark.parametrize(
    ("shape", "volume"),
    [((), 1024), ((5,), 1024), ((33,), 2048), ((32, 32), 1024), ((33, 65), 6144), ((3, 2, 1, 33), 12288)],
)
def test_tile_volume(shape, volume):
    assert tile_volume(shape) == volume


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 64, 3, 3), True),
        ((32, 32, 3, 3), False),  # at the limit
        ((2048, 32, 8), False),  # 4 times its elements
        ((2048, 32, 7), True),
        ((2048, 2048), False),
        ((UPLOAD_LIMIT,), False),  # vectors are uploaded in tiles
        ((), False),
    ],
)
def test_uploads(shape, expected):
    assert is_mostly_padding(shape) is expected


@pytest.mark.parametrize(
    ("shape", "stored", "expected"),
    [
        ((8, 4, 32), (32, 32), True),  # 8 times the tiles
        ((4, 8, 32), (32, 32), False),  # 4 times
        ((5, 5), (5, 5), False),
        ((64, 2, 2, 64), (1, 1, 256, 64), True),
        ((32, 64), (2, 32, 32), False),
    ],
)
def test_reshapes(shape, stored, expected):
    assert is_mostly_padding(shape, stored) is expected
