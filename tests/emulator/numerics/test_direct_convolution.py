"""Convolutions in compiled loops equal torch's results rounded once, on any threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from ttnn_emulator.numerics.kernels.product_endings import RELU, ROUNDED
from ttnn_emulator.numerics.kernels.register_tiles.products import COLUMNS
from ttnn_emulator.numerics.kernels.register_tiles.windows import PIXELS
from ttnn_emulator.numerics.native import openmp, torch_threads
from ttnn_emulator.numerics.native.instruction_set import MULTIPLIES_FAST
from ttnn_emulator.numerics.native.worker_threads import WORKERS
from ttnn_emulator.numerics.programs.convolution.direct import LEAST_USE, DirectConvolution, convolve_pieces

pytestmark = pytest.mark.skipif(not MULTIPLIES_FAST, reason="this processor lacks the vector instructions")


def convolution(
    batch=1, height=8, width=PIXELS, depth=3, kernel=(3, 3), stride=(1, 1), rows_apart=1, channels=COLUMNS, narrow=False
):
    """A convolution whose output has `height` lines of `width` pixels."""
    images = (
        batch,
        (height - 1) * stride[0] + (kernel[0] - 1) * rows_apart + 1,
        (width - 1) * stride[1] + kernel[1],
        depth,
    )
    return DirectConvolution(images, kernel, stride, (rows_apart, 1), (height, width), channels, narrow)


def operands(how: DirectConvolution, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, filters [out, in, rows, columns] and a bias."""
    generator = torch.Generator().manual_seed(seed)
    shapes = how.images, (how.channels, how.images[3], *how.kernel), (how.channels,)
    images, filters, bias = (torch.randn(shape, generator=generator).bfloat16().float() for shape in shapes)
    return images.to(how.dtype), filters, bias


def convolved(how: DirectConvolution, images: Any, filters: Any, bias: Any, relu: bool = False) -> torch.Tensor:
    result = torch.full((how.images[0] * how.size[0] * how.size[1], how.channels), torch.nan)
    packed = how.packed(filters.permute(2, 3, 1, 0).reshape(-1, how.channels))
    how.binding(images, packed, bias, result, RELU if relu else ROUNDED)()
    return result


def by_torch(how: DirectConvolution, images: Any, filters: Any, bias: Any, relu: bool = False) -> torch.Tensor:
    seen = images.permute(0, 3, 1, 2).double()
    last = None if bias is None else bias.double()
    result = functional.conv2d(seen, filters.double(), last, stride=how.stride, dilation=how.dilation)
    result = result.permute(0, 2, 3, 1).reshape(-1, how.channels)
    return result.relu() if relu else result


def assert_rounded(got: torch.Tensor, want: torch.Tensor) -> None:
    """bfloat16 values within one rounding of the reference."""
    assert torch.equal(got, got.bfloat16().float())
    assert ((got - want).abs() <= want.abs() * 2**-8 + 1e-4).all()


@given(
    batch=st.integers(1, 3),
    height=st.integers(1, 5),
    width=st.integers(PIXELS, 20),
    depth=st.integers(1, 9),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    rows_apart=st.integers(1, 3),
    panels=st.integers(1, 5),
    relu=st.booleans(),
    biased=st.booleans(),
    narrow=st.booleans(),
)
def test_results_equal_torchs(batch, height, width, depth, kernel, stride, rows_apart, panels, relu, biased, narrow):
    how = convolution(batch, height, width, depth, kernel, stride, rows_apart, panels * COLUMNS, narrow)
    images, filters, bias = operands(how)
    row = bias if biased else None
    assert_rounded(convolved(how, images, filters, row, relu), by_torch(how, images, filters, row, relu))


def test_bits_do_not_depend_on_the_number_of_threads():
    how = convolution(height=24, width=24, depth=32, channels=64)
    case = operands(how)
    many = convolved(how, *case)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert torch.equal(convolved(how, *case), many)
    finally:
        torch.set_num_threads(before)


def test_worker_threads_without_openmp(monkeypatch):
    how = convolution(height=24, width=24, depth=32, channels=64)
    case = operands(how)
    many = convolved(how, *case)
    monkeypatch.setattr(openmp, "parallel", lambda: None)
    assert torch_threads.size() == WORKERS
    assert torch.equal(convolved(how, *case), many)


def test_several_callers_at_once():
    how = convolution(height=24, width=24, depth=32, channels=64)
    cases = [operands(how, seed) for seed in range(4)]
    expected = [convolved(how, *case) for case in cases]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if not torch.equal(convolved(how, *cases[number]), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_every_call_recomputes_all_pieces():
    how = convolution(height=24, width=24, depth=32, channels=64)
    images, filters, bias = operands(how)
    result = torch.empty(24 * 24, 64)
    packed = how.packed(filters.permute(2, 3, 1, 0).reshape(-1, 64))
    run = how.binding(images, packed, bias, result, ROUNDED)
    for seed in range(3):
        images.copy_(operands(how, seed)[0])
        result.fill_(torch.nan)
        run()
        assert_rounded(result, by_torch(how, images, filters, bias))


def test_unsupported_convolutions_are_not_fit():
    assert convolution(width=24).is_fit
    assert not convolution(channels=COLUMNS + 1).is_fit
    assert not convolution(width=PIXELS - 1).is_fit
    assert not convolution(width=PIXELS + 1).is_fit and (PIXELS + 1) / (2 * PIXELS) < LEAST_USE
    assert not convolution(height=512, width=504, depth=64, channels=256).is_fit
    assert not DirectConvolution((1, 30, 30, 3), (3, 3), (1, 1), (1, 2), (28, 26), 64).is_fit
    assert convolve_pieces.address
