"""All forms of softmax, compared with torch."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Buffers, pcc, stored, upload, values
from ttnn_emulator.execution import listeners
from ttnn_emulator.numerics.mode import numerics


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["softmax", "softmin", "logsoftmax"])
def test_gradients(name, dim, device):
    x = upload(values((2, 3, 17, 40), -2, 2, "bfloat16", 1), "bfloat16", "TILE", device)
    gradient = upload(values((2, 3, 17, 40), -2, 2, "bfloat16", 2), "bfloat16", "TILE", device)
    y = getattr(ttnn, f"moreh_{name}")(x, dim)
    result = stored(getattr(ttnn, f"moreh_{name}_backward")(y, gradient, dim))
    leaf = stored(x).requires_grad_()
    reference = {"softmax": leaf.softmax(dim), "softmin": (-leaf).softmax(dim), "logsoftmax": leaf.log_softmax(dim)}[
        name
    ]
    reference.backward(stored(gradient))
    assert pcc(result, leaf.grad) >= 0.999
    assert torch.allclose(result, leaf.grad, atol=0.05)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bfloat8_b"])
def test_scale_and_mask(dtype, device):
    x = upload(values((2, 1, 64, 96), -4, 4, dtype, 1), dtype, "TILE", device)
    shown = (torch.arange(96) < 50).expand(2, 1, 32, 96)
    mask = upload(torch.where(shown, 0.0, -1e9), "bfloat16", "TILE", device)
    reference = torch.where(shown[:, :, :1], stored(x) * 0.125, -torch.inf).softmax(-1)
    for result in (ttnn.scale_mask_softmax(x, 0.125, mask), ttnn.scale_mask_softmax_in_place(x, 0.125, mask)):
        assert torch.allclose(stored(result), reference, atol=2e-3)
        assert (stored(result)[..., 50:] == 0).all()
    assert torch.allclose(stored(x), reference, atol=2e-3)


def test_attention_softmax_in_place(device):
    x = upload(values((1, 2, 32, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    reference = (stored(x) / 8).softmax(-1)
    mask = upload(torch.zeros(1, 1, 32, 64), "bfloat16", "TILE", device)
    result = ttnn.transformer.attention_softmax_(x, head_size=64, attention_mask=mask)
    assert result.buffer_address() == x.buffer_address()
    assert torch.allclose(stored(x), reference, atol=2e-3)


def test_causal_mask_of_shards(device):
    grid, block = ttnn.CoreCoord(2, 1), 2
    memory = ttnn.create_sharded_memory_config(
        [64, 64], ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT, use_height_and_width_as_shard_shape=True
    )
    x = upload(values((1, 2, 64, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    causal = torch.full((1, 1, 64, 64), -1e9).triu(1)
    mask = upload(causal, "bfloat16", "TILE", device)
    program = ttnn.SoftmaxShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=grid, subblock_w=block, block_h=2, block_w=block
    )
    reference = (stored(x) * 0.125 + causal).softmax(-1)
    result = ttnn.scale_causal_mask_hw_dims_softmax_in_place(
        ttnn.to_memory_config(x, memory), 0.125, mask, program_config=program
    )
    assert torch.allclose(stored(result), reference, atol=1.2e-2)


@pytest.mark.parametrize("name", ["softmax", "softmax_in_place"])
def test_padding_does_not_leak(name, device):
    """The 33 columns of a row sum to 1, without the 31 columns of padding."""
    x = upload(torch.full((1, 1, 5, 33), -20.0), "bfloat16", "TILE", device)
    assert torch.allclose(stored(getattr(ttnn, name)(x)), torch.full((1, 1, 5, 33), 1 / 33), rtol=0.02)


def test_a_row_of_infinities_is_uniform(device):
    x = upload(torch.full((32, 64), torch.inf), "bfloat16", "TILE", device)
    assert torch.allclose(stored(ttnn.softmax(x, dim=-1)), torch.full((32, 64), 1 / 64), rtol=0.02)


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
def test_special_values_raise_nothing(special, stable, device):
    """A special value may affect its row, but raises no error in any mode."""
    x = torch.linspace(-3, 3, 64).repeat(32, 1)
    x[:, 5] = special
    tensor = upload(x, "bfloat16", "TILE", device)
    for mode in ("fast", "exact"):
        with numerics(mode):
            assert stored(ttnn.softmax(tensor, dim=-1, numeric_stable=stable)).shape == (32, 64)


def test_a_float32_row_with_nan_is_zero(device):
    """The maximum becomes infinity in the matrix unit; the exponential of NaN minus that is infinite, its inverse 0."""
    x = torch.linspace(-3, 3, 64).repeat(32, 1)
    x[:, 5] = torch.nan
    with numerics("exact"):
        result = stored(ttnn.softmax(upload(x, "float32", "TILE", device), dim=-1, compute_kernel_config=ACCURATE))
    assert torch.equal(result, torch.zeros(32, 64))


ACCURATE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi3, math_approx_mode=False, fp32_dest_acc_en=True, packer_l1_acc=True
)


# width, stable, with a mask, bytes of circular buffers as reported by the library
WIDE = (
    (6144, True, False, 1212416),
    (7168, True, False, 864256),
    (9216, False, False, 1224704),
    (10240, False, False, 860160),
    (5120, True, True, 1357824),
    (5120, False, True, 1353728),
)


@pytest.mark.parametrize(("width", "stable", "masked", "expected"), WIDE)
def test_wide_rows_are_processed_in_pieces(width, stable, masked, expected, device):
    x = upload(torch.zeros(1, 1, 32, width), "bfloat16", "TILE", device)
    options = {"compute_kernel_config": ACCURATE, "numeric_stable": stable}
    with listeners.listening(Buffers()) as buffers:
        if masked:
            ttnn.scale_mask_softmax(x, 0.5, x, **options)
        else:
            ttnn.softmax(x, dim=-1, **options)
    assert buffers.largest == expected


def test_pieces_are_summed_by_the_vector_unit(device):
    """Sums of 80 tiles are truncated to 19 bits between pieces, so that the last one is too small."""
    width = 3 * 80 * 32
    x = upload(torch.zeros(32, width), "bfloat16", "TILE", device)
    with numerics("exact"):
        result = stored(ttnn.softmax(x, dim=-1, compute_kernel_config=ACCURATE))
    assert torch.allclose(result, torch.full((32, width), 1 / width), rtol=0.01)
