"""Runs the numeric rows of all case tables: every operation compared with its torch counterpart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import check, shapes
from ttnn_emulator.conformance.case_tables import families, numeric_rows_of
from ttnn_emulator.conformance.numeric_row import Row

ROWS = {family: numeric_rows_of(family) for family in families()}
ROWS_OF_ANY_SHAPE = {family: [row for row in rows if row.takes_any_shape] for family, rows in ROWS.items()}
PAIRS = [
    pytest.param(row, dtype, id=f"{family}-{row}-{dtype}")
    for family, rows in ROWS.items()
    for row in rows
    for dtype in row.dtypes
]


@pytest.mark.parametrize(("row", "dtype"), PAIRS)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


@pytest.mark.parametrize("family", [family for family, rows in ROWS_OF_ANY_SHAPE.items() if rows])
@given(data=st.data(), shape=shapes, seed=st.integers(0, 1000))
def test_any_shape_and_values(family: str, data: st.DataObject, shape: tuple[int, ...], seed: int) -> None:
    row = data.draw(st.sampled_from(ROWS_OF_ANY_SHAPE[family]))
    dtype = data.draw(st.sampled_from(row.dtypes))
    with ttnn.open_device(device_id=0) as device:
        check(row, dtype, shape, seed, device)
