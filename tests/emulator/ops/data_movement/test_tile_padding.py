"""Calls whose result exposes tile padding."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

VALUES = torch.arange(2 * 5 * 33, dtype=torch.float32).reshape(2, 5, 33) % 128  # exact in bfloat16
INTO_PADDING = {
    "untilize_with_unpadding": lambda x: ttnn.untilize_with_unpadding(x, [1, 31, 50]),
    "slice": lambda x: ttnn.slice(x, [0, 0, 0], [2, 32, 51]),
    "slice from a tile on": lambda x: ttnn.slice(x, [0, 0, 32], [2, 32, 64]),
}


def padded(values: torch.Tensor, value: float, shape: tuple[int, ...]) -> torch.Tensor:
    whole = torch.full(shape, value)
    whole[tuple(slice(size) for size in values.shape)] = values
    return whole


def tiles(device, values=VALUES, pad_value=0.0, dtype=ttnn.bfloat16):
    rows = ttnn.from_torch(values, dtype=dtype, device=device)
    return ttnn.to_layout(rows, ttnn.TILE_LAYOUT, pad_value=pad_value)


@pytest.mark.parametrize("call", INTO_PADDING.values(), ids=list(INTO_PADDING))
@pytest.mark.parametrize("pad_value", [0.0, 7.0, -2.5])
def test_pad_values_are_exposed(device, call, pad_value) -> None:
    result = call(tiles(device, pad_value=pad_value))
    whole = padded(VALUES, pad_value, (2, 32, 64))
    expected = whole[..., 32:64] if result.shape[-1] == 32 else whole[..., :51]
    assert torch.equal(ttnn.to_torch(result).float(), expected)


@pytest.mark.parametrize("call", INTO_PADDING.values(), ids=list(INTO_PADDING))
def test_padding_after_an_operation_is_not_emulated(device, call) -> None:
    with pytest.raises(ttnn.NotEmulated, match="unknown values"):
        call(ttnn.relu(tiles(device)))


@pytest.mark.parametrize("call", INTO_PADDING.values(), ids=list(INTO_PADDING))
def test_specs_need_no_padding(device, call) -> None:
    source = tiles(device)
    with ttnn.specs_only():
        assert call(ttnn.relu(source)).dtype is ttnn.bfloat16


def test_filled_padding_is_exposed(device) -> None:
    source = ttnn.fill_implicit_tile_padding(ttnn.relu(tiles(device)), 3.0)
    shown = ttnn.untilize_with_unpadding(source, [1, 31, 63])
    assert torch.equal(ttnn.to_torch(shown).float(), padded(VALUES, 3.0, (2, 32, 64)))


def test_padding_is_unknown_after_a_write(device) -> None:
    source = tiles(device, pad_value=7.0)
    ttnn.add(source, 1.0, output_tensor=source)
    with pytest.raises(ttnn.NotEmulated, match="unknown values"):
        ttnn.untilize_with_unpadding(source, [1, 31, 63])


@pytest.mark.parametrize("shape", [(33,), (5, 33), (2, 1, 2, 5, 33), (1, 2, 1, 2, 5, 33)])
def test_ranks(device, shape) -> None:
    values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) % 128
    expected = (*shape[:-2], 9, 64) if len(shape) > 1 else (64,)
    shown = ttnn.untilize_with_unpadding(tiles(device, values, 7.0), [size - 1 for size in expected])
    assert torch.equal(ttnn.to_torch(shown).float(), padded(values, 7.0, expected))


def test_block_floats_share_exponents_with_their_padding(device) -> None:
    values = torch.full((5, 33), 0.01)
    source = ttnn.from_torch(values, dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device, pad_value=0.0)
    shown = ttnn.to_torch(ttnn.untilize_with_unpadding(source, [31, 63])).float()
    assert torch.equal(shown[:5, :33], ttnn.to_torch(source).float())
    assert not shown[5:].any() and not shown[:, 33:].any()


def test_an_end_beyond_the_stored_tiles_is_a_fault(device) -> None:
    with pytest.raises(ttnn.ChipFault, match="never written"):
        ttnn.untilize_with_unpadding(tiles(device), [1, 40, 63])


@pytest.mark.parametrize("pad_value", [0.0, 7.0])
def test_a_view_exposes_pad_values(device, pad_value) -> None:
    source = tiles(device, pad_value=pad_value)
    whole = ttnn.reshape(source, ttnn.Shape([2, 32, 64]), ttnn.Shape([2, 32, 64]))
    assert torch.equal(ttnn.to_torch(whole).float(), padded(VALUES, pad_value, (2, 32, 64)))
    more = ttnn.reshape(source, ttnn.Shape([2, 9, 33]), ttnn.Shape([2, 32, 64]))
    assert torch.equal(ttnn.to_torch(ttnn.relu(more)).float(), padded(VALUES, pad_value, (2, 9, 33)).relu())


def test_padding_is_not_emulated_in_traces(device) -> None:
    source = tiles(device)
    ttnn.untilize_with_unpadding(source, [1, 31, 50])
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    with pytest.raises(ttnn.NotEmulated, match="traces"):
        ttnn.untilize_with_unpadding(source, [1, 31, 50])
    ttnn.end_trace_capture(device, trace, cq_id=0)
