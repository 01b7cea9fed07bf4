"""Pooling compared with torch: maxima exactly, means within the error of the matrix unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc
from ttnn_emulator.numerics.formats.carriers import flush

# A mean is rounded three times: the scaler (downwards), the sum of products, the result.
MEAN_ULPS = 2.5


@dataclass(frozen=True)
class Window:
    """Arguments of one pool; padding is (height, width) or (top, bottom, left, right)."""

    image: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    ceil_mode: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.image}-{self.kernel}-{self.stride}-{self.padding}-{self.dilation}-{self.ceil_mode}"


WINDOWS = (
    Window((1, 8, 8, 32), (2, 2), (2, 2)),
    Window((2, 7, 9, 40), (3, 3), (2, 2), (1, 1)),
    Window((1, 9, 9, 5), (3, 3), (2, 2), (1, 1), ceil_mode=True),
    Window((1, 6, 10, 64), (2, 5), (1, 3), (1, 2)),
    Window((1, 10, 10, 16), (4, 3), (2, 2), (2, 1, 0, 1)),
    Window((1, 12, 12, 33), (7, 7), (1, 1), (3, 3)),
    Window((3, 5, 5, 96), (5, 5), (1, 1)),
    Window((1, 16, 16, 128), (2, 2), (2, 2), ceil_mode=True),
)


def images(window: Window, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(window.image, generator=generator).bfloat16().float()


def around(window: Window) -> tuple[int, int, int, int]:
    """Padding in the order of torch.nn.functional.pad."""
    sides = window.padding if len(window.padding) == 4 else [side for side in window.padding for _ in (0, 1)]
    top, bottom, left, right = sides
    return left, right, top, bottom


def flattened(result: torch.Tensor) -> torch.Tensor:
    """[N, C, H, W] → [1, 1, N × H × W, C]"""
    return result.permute(0, 2, 3, 1).reshape(1, 1, -1, result.shape[1])


def run(op: Any, x: torch.Tensor, window: Window, device: Any, layout: Any = None, **options: Any) -> Any:
    source = ttnn.from_torch(x, dtype=ttnn.bfloat16, layout=layout or ttnn.ROW_MAJOR_LAYOUT, device=device)
    arguments = [source, *window.image, window.kernel, window.stride, window.padding]
    if op is ttnn.max_pool2d:
        arguments.append(window.dilation)
    return op(*arguments, ceil_mode=window.ceil_mode, **options)


def largest(x: torch.Tensor, window: Window) -> torch.Tensor:
    if len(window.padding) == 2:
        return F.max_pool2d(
            x.permute(0, 3, 1, 2),
            window.kernel,
            window.stride,
            window.padding,
            window.dilation,
            ceil_mode=window.ceil_mode,
        )
    padded = F.pad(x.permute(0, 3, 1, 2), around(window), value=float("-inf"))
    return F.max_pool2d(padded, window.kernel, window.stride, 0, window.dilation)


def mean(x: torch.Tensor, window: Window, **options: Any) -> torch.Tensor:
    source, padding = x.permute(0, 3, 1, 2), window.padding
    if len(padding) == 4:
        source, padding = F.pad(source, around(window)), (0, 0)
    return F.avg_pool2d(source, window.kernel, window.stride, padding, window.ceil_mode, **options)


def assert_near(ours: Any, reference: torch.Tensor, magnitude: float, ulps: float = MEAN_ULPS) -> None:
    actual, reference = ttnn.to_torch(ours).float(), reference.reshape(ttnn.to_torch(ours).shape)
    error = ((actual - reference).abs() / (reference.abs().clamp(min=magnitude / 4) * 2.0**-7)).max().item()
    assert error <= ulps, f"error of {error:.3g} ulp"
    assert pcc(actual, reference) >= LEAST_PCC["bfloat16"]


# -- maxima ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", (*WINDOWS, Window((1, 9, 9, 32), (3, 3), (1, 1), (1, 1), (2, 2))), ids=str)
def test_max_pool_is_exact(window: Window, device: Any) -> None:
    x = images(window)
    assert torch.equal(ttnn.to_torch(run(ttnn.max_pool2d, x, window, device)).float(), flattened(largest(x, window)))


@pytest.mark.parametrize("window", [window for window in WINDOWS if len(window.padding) == 2], ids=str)
def test_max_pool_returns_indices(window: Window, device: Any) -> None:
    """Random bfloat16 values may tie, so the value at the index is compared."""
    x = images(window)
    values, places = run(ttnn.max_pool2d, x, window, device, return_indices=True)
    expected = flattened(largest(x, window))
    assert torch.equal(ttnn.to_torch(values).float(), expected)
    batch, height, width, channels = window.image
    places = ttnn.to_torch(places).to(torch.int64).reshape(batch, -1, channels)
    at_indices = x.reshape(batch, height * width, channels).gather(1, places)
    assert torch.equal(at_indices.reshape(expected.shape), expected)


ODD = torch.tensor([0x7FC0, -0x40, 0x7F80, -0x80, 1, -0x7FFF, 0, -0x8000], dtype=torch.int16).view(torch.bfloat16)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_max_pool_of_special_values(window: Window, device: Any) -> None:
    """NaN, infinities, denormals and zeros of both signs: the maximum of the packed values."""
    x = torch.randn(window.image).bfloat16()
    x = torch.where(torch.rand(window.image) < 0.4, ODD[torch.randint(8, window.image)], x)
    result = ttnn.to_torch(run(ttnn.max_pool2d, x, window, device))
    expected = flattened(largest(flush(x.float()), window)).bfloat16()
    assert torch.equal(result.view(torch.int16), flush(expected).view(torch.int16))


def test_max_pool_treats_nan_as_infinity(device: Any) -> None:
    window = Window((1, 4, 4, 32), (2, 2), (2, 2))
    x = images(window).bfloat16()
    x[0, 0, 0, 0], x[0, 0, 2, 0], x[0, 2, 2, :] = float("nan"), float("inf"), float("-inf")
    result = ttnn.to_torch(run(ttnn.max_pool2d, x, window, device)).float()
    assert result[0, 0, 0, 0] == float("inf") and result[0, 0, 1, 0] == float("inf")
    assert not result.isnan().any()


# -- means ------------------------------------------------------------------------------------------------------------


# torch cannot exclude padding of four sides from the mean.
MEANS = [(window, counts) for window in WINDOWS for counts in (True, False) if counts or len(window.padding) == 2]


@pytest.mark.parametrize(("window", "counts"), MEANS, ids=str)
def test_avg_pool(window: Window, counts: bool, device: Any) -> None:
    x = images(window)
    ours = run(ttnn.avg_pool2d, x, window, device, count_include_pad=counts)
    assert_near(ours, flattened(mean(x, window, count_include_pad=counts)), x.abs().max().item())


@pytest.mark.parametrize("divisor", (1, 3, 7))
def test_avg_pool_takes_a_divisor(divisor: int, device: Any) -> None:
    window = WINDOWS[1]
    x = images(window)
    ours = run(ttnn.avg_pool2d, x, window, device, divisor_override=divisor)
    assert_near(ours, flattened(mean(x, window, divisor_override=divisor)), x.abs().max().item() * 9 / divisor)


@pytest.mark.parametrize("layout", (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT))
@pytest.mark.parametrize("op", (ttnn.max_pool2d, ttnn.avg_pool2d))
def test_layouts_do_not_matter(op: Any, layout: Any, device: Any) -> None:
    window = WINDOWS[0]
    x = images(window).reshape(1, 1, -1, window.image[-1])  # a tile of [N, H, W, C] would have one row of pixels
    plain = run(op, x, window, device)
    other = run(op, x, window, device, layout, output_layout=ttnn.TILE_LAYOUT)
    assert other.layout == ttnn.TILE_LAYOUT and list(other.shape) == list(plain.shape)
    assert torch.equal(ttnn.to_torch(other), ttnn.to_torch(plain))


@pytest.mark.parametrize("dtype", ("bfloat8_b", "bfloat4_b"))
@pytest.mark.parametrize("op", (ttnn.max_pool2d, ttnn.avg_pool2d))
def test_block_float_outputs(op: Any, dtype: str, device: Any) -> None:
    window = WINDOWS[0]
    x = images(window)
    plain = ttnn.to_torch(run(op, x, window, device)).float()
    ours = run(op, x, window, device, dtype=getattr(ttnn, dtype), output_layout=ttnn.TILE_LAYOUT)
    assert pcc(ttnn.to_torch(ours).float(), plain) >= LEAST_PCC[dtype]


# -- adaptive and global ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ((1, 1), (2, 2), (4, 4), (8, 8), (2, 4)))
def test_adaptive_pools(size: tuple[int, int], device: Any) -> None:
    image = (2, 8, 8, 40)
    x = images(Window(image, (1, 1), (1, 1)))
    source = ttnn.from_torch(x, dtype=ttnn.bfloat16, device=device)
    planes = x.permute(0, 3, 1, 2)
    ours = ttnn.adaptive_max_pool2d(source, *image, size)
    assert torch.equal(ttnn.to_torch(ours).float(), flattened(F.adaptive_max_pool2d(planes, size)))
    ours = ttnn.adaptive_avg_pool2d(source, *image, size)
    assert_near(ours, flattened(F.adaptive_avg_pool2d(planes, size)), x.abs().max().item())


def test_adaptive_pool_rejects_uneven_windows(device: Any) -> None:
    source = ttnn.zeros((1, 7, 10, 32), dtype=ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    with pytest.raises(RuntimeError, match="cannot be made equal"):
        ttnn.adaptive_avg_pool2d(source, 1, 7, 10, 32, (5, 7))


@pytest.mark.parametrize("shape", ((1, 8, 8, 32), (2, 7, 7, 64), (5, 9, 33), (1, 1, 1, 32)))
def test_global_mean(shape: tuple[int, ...], device: Any) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).bfloat16().float()
    source = ttnn.from_torch(x, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    four = x if x.dim() == 4 else x.unsqueeze(0)
    assert_near(ttnn.global_avg_pool2d(source), four.mean((1, 2), keepdim=True), x.abs().max().item())


# -- any window -------------------------------------------------------------------------------------------------------


@st.composite
def windows(draw: Any) -> Window:
    kernel = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    size = tuple(draw(st.integers(extent, 14)) for extent in kernel)
    image = (draw(st.integers(1, 3)), *size, draw(st.integers(1, 70)))
    stride = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    padding = tuple(draw(st.integers(0, extent // 2)) for extent in kernel)
    return Window(image, kernel, stride, padding, ceil_mode=draw(st.booleans()))


@settings(max_examples=25, deadline=None)
@given(window=windows(), seed=st.integers(0, 1000))
def test_any_window(window: Window, seed: int, device: Any) -> None:
    x = images(window, seed)
    ours = ttnn.to_torch(run(ttnn.max_pool2d, x, window, device)).float()
    assert torch.equal(ours, flattened(largest(x, window)))
    if window.kernel != window.image[1:3]:  # whole images are reduced with another rounding
        reference = flattened(mean(x, window, count_include_pad=False))
        ours = run(ttnn.avg_pool2d, x, window, device, count_include_pad=False)
        actual = ttnn.to_torch(ours).float()
        scale = reference.abs().clamp(min=x.abs().max().item() / 4) * 2.0**-7
        assert ((actual - reference).abs() / scale).max() <= MEAN_ULPS
