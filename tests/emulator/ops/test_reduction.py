"""Reductions, compared with torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, shapes, stored, upload, values
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.units.reductions import extreme as extreme_of

SUMS = {"bfloat16": 4.0, "float32": 2.0**8, "bfloat8_b": 2.0}
SPREADS = {"bfloat16": 1.0, "float32": 2.0**6}
EXACT = {"bfloat16": 0.0, "float32": 0.0}
MANY = ((3, 4, 17, 40), (3, 2, 5, 33))
FEW = ((1, 3, 5, 33), (1, 2, 3, 70))  # variances of many values are nearly equal
DIMS = (-1, -2, 0)
DEEP = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40), (1, 2, 3, 5, 33))


def extreme(name: str):
    return getattr(torch, f"a{name}")


def of_dim(name: str, dim: int | list[int] | None, keepdim: bool = False):
    return lambda x: getattr(ttnn, name)(x, dim=dim, keepdim=keepdim)


def everything(shape: tuple[int, ...]) -> list[int]:
    return list(range(len(shape)))


ROWS = (
    *(
        Row(
            f"{name} over {dim}",
            of_dim(name, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim),
            ulps=SUMS,
            floor=1.0,
            shapes=DEEP,
        )
        for name in ("sum", "mean")
        for dim in DIMS
    ),
    *(
        Row(
            f"{name} over {dim}",
            of_dim(name, dim, True),
            lambda x, name=name, dim=dim: extreme(name)(x, dim, keepdim=True),
            ulps=EXACT,
            shapes=DEEP,
        )
        for name in ("max", "min")
        for dim in DIMS
    ),
    *(
        Row(
            f"{name} over {dim}",
            of_dim(name, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim),
            ulps=SPREADS,
            shapes=((32, 64), (5, 33), (3, 45, 70)),
        )
        for name in ("var", "std")
        for dim in DIMS
    ),
    *(
        Row(
            f"{name} over {dims}",
            of_dim(name, dims, True),
            lambda x, reference=reference, dims=dims: reference(x, dims if dims is not None else everything(x.shape)),
            ulps=EXACT if name in ("max", "min") else SUMS,
            floor=1.0,
            shapes=FEW if name in ("var", "std") else MANY,
        )
        for dims in (None, [-1, -2], [0, 1], [1, 3], [0, 2])
        for name, reference in (
            ("sum", lambda x, dims: x.sum(dims, keepdim=True)),
            ("mean", lambda x, dims: x.mean(dims, keepdim=True)),
            ("max", lambda x, dims: x.amax(dims, keepdim=True)),
            ("min", lambda x, dims: x.amin(dims, keepdim=True)),
            ("var", lambda x, dims: x.var(dims, keepdim=True)),
            ("std", lambda x, dims: x.std(dims, keepdim=True)),
        )
    ),
    Row(
        "sum with scalar",
        lambda x: ttnn.sum(x, dim=-1, scalar=0.25),
        lambda x: 0.25 * x.sum(-1),
        ulps=SUMS,
        floor=1.0,
    ),
    # The library supports products of bfloat16 only.
    *(
        Row(
            f"prod over {dim}",
            lambda x, dim=dim: ttnn.prod(x, dim),
            lambda x, dim=dim: x.prod(dim),
            low=0.5,
            high=1.5,
            dtypes=("bfloat16",),
            ulps={"bfloat16": ulps},
        )
        for dim, ulps in ((0, 8.0), (-1, 40.0))
    ),
)
OF_ONE_DIM = tuple(row for row in ROWS if row.name in ("sum over -1", "mean over 0", "max over -1", "min over 0"))


@each_dtype(ROWS)
def test_against_torch(row, dtype, device):
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


@given(
    row=st.sampled_from(OF_ONE_DIM),
    shape=shapes,
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(("bfloat16", "float32")),
)
def test_any_shape_and_values(row, shape, seed, dtype):
    with ttnn.open_device(device_id=0) as device:
        check(row, dtype, shape, seed, device)


def test_product_of_everything(device):
    x = upload(values((5, 33), 0.9, 1.1, "bfloat16", 1), "bfloat16", "TILE", device)
    assert stored(ttnn.prod(x)).item() == pytest.approx(stored(x).prod().item(), rel=0.3)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("dim", DIMS)
def test_integers(name, dim, device):
    x = upload(values((3, 45, 70), -1000, 1000, "int32", 1), "int32", "TILE", device)
    reference = stored(x).sum(dim) if name == "sum" else extreme(name)(stored(x), dim)
    assert torch.equal(stored(getattr(ttnn, name)(x, dim=dim)), reference)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("dim", [-1, -2, None])
def test_row_major_input(name, dim, device):
    x = upload(values((3, 45, 70), -4, 4, "bfloat16", 1), "bfloat16", "ROW_MAJOR", device)
    reference = getattr(torch, name)(stored(x)) if dim is None else getattr(torch, name)(stored(x), dim)
    assert torch.allclose(
        stored(getattr(ttnn, name)(x, dim=dim)).reshape(reference.shape), reference, rtol=0.01, atol=0.01
    )


def test_block_floats(device):
    x = upload(values((2, 3, 40, 64), -4, 4, "bfloat8_b", 1), "bfloat8_b", "TILE", device)
    for dim in DIMS:
        assert torch.allclose(stored(ttnn.mean(x, dim=dim)), stored(x).mean(dim), atol=0.05)
        assert torch.equal(stored(ttnn.max(x, dim=dim)), stored(x).amax(dim))


def test_tall_columns_are_split_into_slices(device):
    x = upload(values((1, 1, 2048, 32), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    assert torch.allclose(stored(ttnn.sum(x, dim=-2)), stored(x).sum(-2), rtol=0.01, atol=0.02)


def test_sum_of_outer_dimensions_by_tiles(device):
    x = upload(values((2, 3, 32, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    result = ttnn.experimental.fast_reduce_nc(x, dims=[0, 1])
    assert torch.allclose(stored(result), stored(x).sum((0, 1), keepdim=True), rtol=0.02, atol=0.05)


# -- edge cases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [-1, -2])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_padding_does_not_leak(dtype, dim, device):
    """The maximum of negative and the minimum of positive values are not the zeros of the padding."""
    low, high = (upload(torch.full((5, 33), value), dtype, "TILE", device) for value in (-3.0, 3.0))
    assert (stored(ttnn.max(low, dim=dim)) == -3).all()
    assert (stored(ttnn.min(high, dim=dim)) == 3).all()
    mean = stored(ttnn.mean(high, dim=dim))  # the scaler, 1 ÷ 5 or 1 ÷ 33, is truncated to bfloat16
    assert torch.allclose(mean, torch.full_like(mean, 3.0), rtol=0.01)
    assert (stored(ttnn.var(high, dim=dim)) == 0).all()


def test_variance_of_one_value(device):
    x = upload(torch.full((1, 1), 3.0), "bfloat16", "TILE", device)
    assert math.isnan(stored(ttnn.std(x, dim=-1)).item())
    assert stored(ttnn.var(x, dim=-1, correction=False)).item() == 0


@pytest.mark.parametrize("largest", [True, False])
def test_extremes_of_rows_follow_sign_and_magnitude(largest):
    bits = [0x7FC00000, -0x400000, 0x7F800000, -0x800000, 1, -0x7FFFFFFF, 0, -0x80000000]
    odd = torch.tensor(bits, dtype=torch.int32).view(torch.float32)
    for share in (0.0, 0.3, 1.0):
        x = torch.where(torch.rand(50, 9) < share, odd[torch.randint(8, (50, 9))], torch.randn(50, 9))
        raw = x.view(torch.int32).long()
        order = torch.where(raw < 0, -(raw & 0x7FFFFFFF) - 1, raw)
        places = order.argmax(-1, keepdim=True) if largest else order.argmin(-1, keepdim=True)
        result = extreme_of(x, -1, largest=largest)
        assert torch.equal(result.view(torch.int32), x.view(torch.int32).gather(-1, places).squeeze(-1))
        by_columns = extreme_of(x.mT.contiguous().mT, -1, largest=largest)
        assert torch.equal(by_columns.view(torch.int32), result.view(torch.int32))


def test_nan_is_larger_than_infinity(device):
    x = upload(torch.tensor([[1.0, math.inf, math.nan, 2.0]]), "float32", "TILE", device)
    assert not math.isfinite(stored(ttnn.max(x, dim=-1)).item())
    assert stored(ttnn.min(x, dim=-1)).item() == 1.0


def test_keepdim_and_shapes(device):
    x = upload(torch.ones(2, 3, 17, 40), "bfloat16", "TILE", device)
    assert list(ttnn.sum(x, dim=1, keepdim=True).shape) == [2, 1, 17, 40]
    assert list(ttnn.sum(x, dim=[1, 3]).shape) == [2, 17]
    assert list(ttnn.sum(x).shape) == []


def test_chip_faults_are_reported(device):
    x = upload(torch.arange(1.0, 34.0).expand(5, 33), "bfloat8_b", "TILE", device)
    with pytest.raises(ChipFault):
        ttnn.max(x, dim=-1)


def test_rejected_arguments(device):
    x = upload(torch.ones(32, 64), "bfloat16", "TILE", device)
    for dim in (2, -3, [0, 0]):
        with pytest.raises(RuntimeError):
            ttnn.sum(x, dim=dim)
    with pytest.raises(RuntimeError):
        ttnn.mean(upload(torch.ones(32, 64), "int32", "TILE", device))


@pytest.mark.parametrize("dim", [-1, -2])
@pytest.mark.parametrize(("name", "tiny"), [("max", 1e-40), ("max", -1e-40), ("min", 1e-40), ("min", -1e-40)])
def test_extremes_of_float32_flush_denormals(name, tiny, dim, device):
    x = upload(torch.full((64, 64), tiny), "float32", "TILE", device)
    for mode in ("exact", "fast"):
        with numerics(mode):
            result = stored(getattr(ttnn, name)(x, dim=dim))
        assert torch.equal(result, torch.zeros_like(result)), mode


@pytest.mark.parametrize("fidelity", list(ttnn.MathFidelity)[:4], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_an_infinity_stays_one_in_fast_numerics(name, fidelity, device):
    x = upload(torch.tensor([[math.inf, 1.0, 2.0, -4.0, 7.0]]), "float32", "TILE", device)
    config = ttnn.WormholeComputeKernelConfig(math_fidelity=fidelity, fp32_dest_acc_en=False)
    with numerics("fast"):
        result = getattr(ttnn, name)(x, dim=-1, compute_kernel_config=config)
    assert stored(result).item() == math.inf
