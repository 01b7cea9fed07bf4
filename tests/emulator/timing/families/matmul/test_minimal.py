"""minimal_matmul."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import priced, row, row_error, tensor


def sheet(columns: int, inner: int, arch: str) -> dict[str, str]:
    memory = "TILE:BFLOAT16:DRAM_INTERLEAVED"
    inputs = f"1x1x32x{inner}:{memory}|1x1x{inner}x{columns}:{memory}|1x1x32x{columns}:{memory}"
    code = "MinimalMatmulOp"
    return row(code, 64, inputs, f"1x1x32x{columns}:{memory}", arch=arch, grid=64) | {"math_fidelity": "HiFi4"}


@pytest.mark.parametrize(
    ("columns", "inner", "arch", "measured"),
    [
        (768, 768, "blackhole", 15_035),
        (3072, 768, "blackhole", 38_000),
        (1280, 1280, "wormhole_b0", 61_084),
        (1280, 5120, "wormhole_b0", 175_802),
    ],
)
def test_rows_of_sheets(columns: int, inner: int, arch: str, measured: float) -> None:
    assert abs(row_error(sheet(columns, inner, arch), measured)) < 0.15


def test_large_products_are_bound_by_the_matrix_unit() -> None:
    (launch,) = priced(
        "ttnn.experimental.minimal_matmul", tensor(1, 1, 4096, 4096), tensor(4096, 4096), out=tensor(1, 1, 4096, 4096)
    )
    assert launch.bound.name == "COMPUTE"
    ideal = launch.flops / (64 * 2048)
    assert ideal < launch.kernel_ns < 2 * ideal


def test_tall_and_wide_outputs_take_the_same_time() -> None:
    name = "ttnn.experimental.minimal_matmul"
    (tall,) = priced(name, tensor(1, 1, 4096, 1024), tensor(1024, 512), out=tensor(1, 1, 4096, 512))
    (wide,) = priced(name, tensor(1, 1, 512, 1024), tensor(1024, 4096), out=tensor(1, 1, 512, 4096))
    assert tall.kernel_ns == pytest.approx(wide.kernel_ns, rel=0.1)
