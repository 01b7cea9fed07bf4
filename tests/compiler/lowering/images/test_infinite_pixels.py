"""An infinite pixel changes the pixels that it changes in torch, and no others."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from tests.compiler.against_torch import run

INF = math.inf
CASES = {
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive_avg_pool2d, wider": lambda x: functional.adaptive_avg_pool2d(x, (9, 5)),
    "adaptive_avg_pool1d": lambda x: functional.adaptive_avg_pool1d(x[:, :, 0], 3),
    "bilinear": lambda x: functional.interpolate(x, (5, 11), mode="bilinear"),
    "bilinear, twice the size": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, corners": lambda x: functional.interpolate(x, (9, 11), mode="bilinear", align_corners=True),
    "bilinear, antialiased": lambda x: functional.interpolate(x, (3, 5), mode="bilinear", antialias=True),
    "bicubic": lambda x: functional.interpolate(x, (5, 9), mode="bicubic"),
    "bicubic, antialiased": lambda x: functional.interpolate(x, (4, 3), mode="bicubic", antialias=True),
    "nearest": lambda x: functional.interpolate(x, (5, 9), mode="nearest"),
    "linear": lambda x: functional.interpolate(x[:, :, 0], 5, mode="linear"),
    "avg_pool of many": lambda x: functional.avg_pool3d(x[:, :, None].repeat(1, 1, 7, 1, 1), 5, 1),
}
PLACED = {
    "none": {},
    "one": {(0, 1, 2, 3): INF},
    "a corner": {(0, 0, 0, 0): -INF},
    "two signs": {(0, 1, 3, 3): INF, (0, 1, 3, 4): -INF, (1, 0, 6, 7): INF},
}


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("placed", PLACED)
@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_an_infinite_pixel_stays_where_it_is(name, placed, precision):
    x = torch.linspace(-2, 3, 2 * 2 * 7 * 8).reshape(2, 2, 7, 8).roll(17)
    for place, value in PLACED[placed].items():
        x[place] = value
    (got,), wanted = run(CASES[name], x, precision=precision).outputs, CASES[name](x)
    finite = wanted.isfinite()
    assert torch.equal(got.isfinite(), finite)
    torch.testing.assert_close(got[finite], wanted[finite], rtol=0.02, atol=0.03)
    signed = wanted.isinf()  # NaN is infinity of either sign
    assert torch.equal(got[signed], wanted[signed])
