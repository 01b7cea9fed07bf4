"""Created tensors have the requested values; random ones follow their distribution and seed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer, shapes, stored, upload
from ttnn_emulator.conformance.numeric_row import SHAPES
from ttnn_emulator.errors import InvalidArgument

DTYPES = ("bfloat16", "float32", "bfloat8_b", "bfloat4_b", "int32", "uint32", "uint16", "uint8")
TILE = ttnn.TILE_LAYOUT


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "value"), [("zeros", 0), ("ones", 1), ("full", 3)])
def test_one_value(name: str, value: int, dtype: str, device: Any) -> None:
    extra = (value,) if name == "full" else ()
    for shape in (*SHAPES, (), (0, 32)):
        result = getattr(ttnn, name)(list(shape), *extra, dtype=getattr(ttnn, dtype), layout=TILE, device=device)
        assert (tuple(result.shape), result.dtype) == (shape, getattr(ttnn, dtype))
        assert stored(result).eq(value).all()
        like = getattr(ttnn, f"{name}_like")(result, *extra)
        assert stored(like).eq(value).all()
        assert like.buffer_address() != result.buffer_address() or result.volume() == 0


@given(shape=shapes, value=st.floats(-(2.0**99), 2.0**99, width=32), dtype=st.sampled_from(("bfloat16", "float32")))
def test_any_value_is_rounded_by_the_host(shape: tuple[int, ...], value: float, dtype: str) -> None:
    with ttnn.open_device(device_id=0) as device:
        result = stored(ttnn.full(list(shape), value, dtype=getattr(ttnn, dtype), device=device))
    expected = torch.tensor(value, dtype=getattr(torch, dtype)).float()
    assert result.eq(expected).all()


def test_a_value_filled_by_the_kernel_is_truncated(device: Any) -> None:
    like = upload(torch.zeros(32, 32), "bfloat16", "TILE", device)
    third = torch.tensor(2 / 3)
    assert stored(ttnn.full_like(like, third.item()))[0, 0] == (third.view(torch.int32) & -0x10000).view(torch.float32)
    assert stored(ttnn.full([32, 32], third.item(), device=device))[0, 0] == third.bfloat16().float()


def test_a_value_written_over_a_tensor(device: Any) -> None:
    target = upload(torch.zeros(5, 33), "float32", "TILE", device)
    assert same_buffer(ttnn.full([5, 33], 2.5, optional_tensor=target), target)
    assert stored(target).eq(2.5).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32", "uint32", "uint16"])
@pytest.mark.parametrize("bounds", [(0, 40, 1), (2, 33, 3), (40, 0, -7), (5, 5, 1)])
def test_ranges(bounds: tuple[int, int, int], dtype: str, device: Any) -> None:
    result = ttnn.arange(*bounds, dtype=getattr(ttnn, dtype), device=device)
    assert stored(result).tolist() == torch.arange(*bounds).tolist()


def test_fractional_ranges_are_computed_on_the_device(device: Any) -> None:
    result = ttnn.moreh_arange(0.5, 8.0, 0.75, device, dtype=ttnn.float32, untilize_out=True)
    assert torch.allclose(stored(result), torch.arange(0.5, 8.0, 0.75))
    assert list(ttnn.moreh_arange(0, 40, 1, device).shape) == [1, 40]


def test_moreh_full(device: Any) -> None:
    result = ttnn.moreh_full([5, 33], 7, device, dtype=ttnn.int32)
    assert stored(result).eq(7).all()
    assert stored(ttnn.moreh_full_like(result, 9)).eq(9).all()


def test_a_filled_corner(device: Any) -> None:
    like = upload(torch.zeros(1, 1), "bfloat16", "TILE", device)
    result = stored(ttnn.fill_rm(1, 2, 32, 64, 5, 33, like, 3.0, 1.0))
    assert result[:, :, :5, :33].eq(3).all()
    assert result.sum() == 2 * (32 * 64 + 2 * 5 * 33)
    assert stored(ttnn.fill_ones_rm(1, 1, 4, 4, 2, 2, like)).sum() == 4


def test_lists(device: Any) -> None:
    result = ttnn.from_buffer([1, 2, 3, 4, 5, 6], ttnn.Shape([2, 3]), ttnn.uint32, device)
    assert stored(result).tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(InvalidArgument, match="do not fit"):
        ttnn.from_buffer([1, 2], ttnn.Shape([3]), ttnn.uint32, device)


def test_empty_and_complex(device: Any) -> None:
    result = ttnn.empty([5, 33], dtype=ttnn.float32, layout=TILE, device=device)
    assert list(ttnn.empty_like(result).padded_shape) == [32, 64]
    number = ttnn.complex_tensor(result, result)
    assert number.real is result
    assert number.imag is result


# -- random values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_uniform_distribution(dtype: str, device: Any) -> None:
    result = stored(ttnn.rand([128, 128], device, dtype=getattr(ttnn, dtype), low=-2.0, high=6.0, seed=5))
    assert result.min() >= -2
    assert result.max() < 6
    assert abs(result.mean().item() - 2) < 0.1
    assert abs(result.std().item() - 8 / 12**0.5) < 0.05


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_normal_distribution(dtype: str, device: Any) -> None:
    result = stored(ttnn.randn([128, 128], device, dtype=getattr(ttnn, dtype), seed=5))
    assert abs(result.mean().item()) < 0.03
    assert abs(result.std().item() - 1) < 0.03
    assert 0.66 < result.abs().lt(1).float().mean().item() < 0.71


def test_a_seed_repeats_and_no_seed_does_not(device: Any) -> None:
    first, again, other = (stored(ttnn.rand([32, 32], device, seed=seed)) for seed in (7, 7, 8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(stored(ttnn.rand([32, 32], device)), stored(ttnn.rand([32, 32], device)))


def test_uniform_overwrites_its_input(device: Any) -> None:
    x = upload(torch.zeros(64, 64), "float32", "TILE", device)
    assert same_buffer(ttnn.uniform(x, 1.0, 2.0, 3), x)
    assert stored(x).ge(1).all()
    assert stored(x).lt(2).all()
    assert same_buffer(ttnn.uniform(x, **{"from": 3.0, "to": 4.0}), x)
    assert stored(x).ge(3).all()


def test_bernoulli_follows_the_probabilities(device: Any) -> None:
    chances = torch.linspace(0, 1, 4096).reshape(64, 64)
    drawn = stored(ttnn.bernoulli(upload(chances, "float32", "TILE", device), 3))
    assert set(drawn.unique().tolist()) <= {0.0, 1.0}
    assert abs(drawn.mean().item() - 0.5) < 0.03
    assert drawn[:16].mean() < 0.25 < 0.75 < drawn[-16:].mean()


def test_dropout_scales_kept_values(device: Any) -> None:
    x = upload(torch.ones(128, 128), "bfloat16", "TILE", device)
    kept = stored(ttnn.experimental.dropout(x, 0.25, 2.0, 3))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert abs(kept.ne(0).float().mean().item() - 0.75) < 0.02


def test_an_empty_range_is_rejected(device: Any) -> None:
    with pytest.raises(InvalidArgument, match="is empty"):
        ttnn.rand([32, 32], device, low=1.0, high=1.0)


def test_manual_seed_needs_a_device(device: Any) -> None:
    assert list(ttnn.manual_seed(5, device=device).shape) == [1]
    with pytest.raises(InvalidArgument, match="a device is needed"):
        ttnn.manual_seed(5)
