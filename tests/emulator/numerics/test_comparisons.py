"""Comparisons with constants: the sign of the difference, whether or not it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from ttnn_emulator.numerics.functions import kernel_vocabulary
from ttnn_emulator.numerics.units.vector_unit import bits, sub

CONSTANTS = (6.0, -6.0, 1.0, 0.5, 3.14159, -88.5, 1e-30, 2.0**-100, -(2.0**-100), 2.0**-101, 2.0**-140, 3e38)
SIGNS = {
    "less": np.less,
    "at_least": np.greater_equal,
    "greater": np.greater,
    "at_most": np.less_equal,
    "equal": np.equal,
}


@pytest.mark.parametrize("constant", CONSTANTS)
def test_the_sign_of_the_difference(constant: float) -> None:
    """All exponents and signs with some mantissas, values near the constant, infinities and NaN."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    near = (np.arange(-100, 100) + int(bits(np.float32(constant)).view(np.uint32))).astype(np.uint32)
    patterns = np.concatenate([upper, upper | 1, upper | 0xFFFF, near, near ^ np.uint32(0x80000000)])
    values = patterns.view(np.float32)
    difference = bits(sub(values, np.float32(constant)))
    for name, of_sign in SIGNS.items():
        compared = getattr(kernel_vocabulary, name)(values, constant)
        assert np.array_equal(compared, of_sign(difference, 0)), name
