"""softmax in all its forms, held against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Buffers, Row, check, pcc, shapes, stored, upload, values
from ttnn_emulator.execution import listeners
from ttnn_emulator.numerics.mode import numerics

# The default exponential of bfloat16 is a rough one; float32 goes through registers that hold 11 bits of it.
ROUGH = {"bfloat16": 8.0, "float32": 2.0**16}
MOREH = {"bfloat16": 6.0, "float32": 2.0**16}
FOUR = ((2, 3, 17, 40), (1, 1, 64, 96))
DEEP = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40))
PRECISE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
)


ROWS = (
    Row("softmax", lambda x: ttnn.softmax(x, dim=-1), lambda x: x.softmax(-1), ulps=ROUGH),
    Row("softmax columns", lambda x: ttnn.softmax(x, dim=-2), lambda x: x.softmax(-2), ulps=ROUGH, shapes=DEEP),
    Row("softmax first", lambda x: ttnn.softmax(x, dim=0), lambda x: x.softmax(0), ulps=ROUGH),
    Row(
        "softmax as it stands",
        lambda x: ttnn.softmax(x, dim=-1, numeric_stable=False),
        lambda x: x.softmax(-1),
        ulps=ROUGH,
    ),
    Row(
        "softmax precise",
        lambda x: ttnn.softmax(x, dim=-1, compute_kernel_config=PRECISE),
        lambda x: x.softmax(-1),
        ulps={"bfloat16": 2.0, "float32": 2.0**16},
    ),
    Row("softmax_in_place", ttnn.softmax_in_place, lambda x: x.softmax(-1), ulps=ROUGH, shapes=FOUR),
    Row(
        "attention_softmax",
        lambda x: ttnn.transformer.attention_softmax(x, head_size=4),
        lambda x: (x / 2).softmax(-1),
        ulps=ROUGH,
        shapes=FOUR,
    ),
    *(
        Row(
            f"moreh_{name}",
            lambda x, name=name, dim=dim: getattr(ttnn, f"moreh_{name}")(x, dim % len(x.shape)),
            lambda x, twin=twin, dim=dim: twin(x, dim),
            ulps=MOREH,
            floor=0.25 if name == "logsoftmax" else 0.0,
            shapes=DEEP,
        )
        for dim in (-1, -2, 0)
        for name, twin in (
            ("softmax", torch.softmax),
            ("softmin", lambda x, dim: (-x).softmax(dim)),
            ("logsoftmax", torch.log_softmax),
        )
    ),
)
ACCEPTS_ANY_SHAPE = tuple(row for row in ROWS if row.name in ("softmax", "softmax first", "softmax precise"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_against_torch(row, dtype, device):
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


@given(
    row=st.sampled_from(ACCEPTS_ANY_SHAPE),
    shape=shapes,
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(("bfloat16", "float32")),
)
def test_any_shape_and_values(row, shape, seed, dtype):
    with ttnn.open_device(device_id=0) as device:
        check(row, dtype, shape, seed, device)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["softmax", "softmin", "logsoftmax"])
def test_gradients(name, dim, device):
    x = upload(values((2, 3, 17, 40), -2, 2, "bfloat16", 1), "bfloat16", "TILE", device)
    gradient = upload(values((2, 3, 17, 40), -2, 2, "bfloat16", 2), "bfloat16", "TILE", device)
    y = getattr(ttnn, f"moreh_{name}")(x, dim)
    made = stored(getattr(ttnn, f"moreh_{name}_backward")(y, gradient, dim))
    leaf = stored(x).requires_grad_()
    twin = {"softmax": leaf.softmax(dim), "softmin": (-leaf).softmax(dim), "logsoftmax": leaf.log_softmax(dim)}[name]
    twin.backward(stored(gradient))
    assert pcc(made, leaf.grad) >= 0.999
    assert torch.allclose(made, leaf.grad, atol=0.05)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bfloat8_b"])
def test_scale_and_mask(dtype, device):
    x = upload(values((2, 1, 64, 96), -4, 4, dtype, 1), dtype, "TILE", device)
    shown = (torch.arange(96) < 50).expand(2, 1, 32, 96)
    mask = upload(torch.where(shown, 0.0, -1e9), "bfloat16", "TILE", device)
    twin = torch.where(shown[:, :, :1], stored(x) * 0.125, -torch.inf).softmax(-1)
    for made in (ttnn.scale_mask_softmax(x, 0.125, mask), ttnn.scale_mask_softmax_in_place(x, 0.125, mask)):
        assert torch.allclose(stored(made), twin, atol=2e-3)
        assert (stored(made)[..., 50:] == 0).all()
    assert torch.allclose(stored(x), twin, atol=2e-3)


def test_attention_softmax_in_place(device):
    x = upload(values((1, 2, 32, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    twin = (stored(x) / 8).softmax(-1)
    mask = upload(torch.zeros(1, 1, 32, 64), "bfloat16", "TILE", device)
    made = ttnn.transformer.attention_softmax_(x, head_size=64, attention_mask=mask)
    assert made.buffer_address() == x.buffer_address()
    assert torch.allclose(stored(x), twin, atol=2e-3)


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
    twin = (stored(x) * 0.125 + causal).softmax(-1)
    made = ttnn.scale_causal_mask_hw_dims_softmax_in_place(
        ttnn.to_memory_config(x, memory), 0.125, mask, program_config=program
    )
    assert torch.allclose(stored(made), twin, atol=1.2e-2)


@pytest.mark.parametrize("name", ["softmax", "softmax_in_place"])
def test_padding_does_not_leak(name, device):
    """All of a row's weight lies in its 33 columns, although the tile has 31 more."""
    x = upload(torch.full((1, 1, 5, 33), -20.0), "bfloat16", "TILE", device)
    assert torch.allclose(stored(getattr(ttnn, name)(x)), torch.full((1, 1, 5, 33), 1 / 33), rtol=0.02)


def test_a_row_of_infinities_is_uniform(device):
    x = upload(torch.full((32, 64), torch.inf), "bfloat16", "TILE", device)
    assert torch.allclose(stored(ttnn.softmax(x, dim=-1)), torch.full((32, 64), 1 / 64), rtol=0.02)


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
def test_values_out_of_the_ordinary_are_computed_too(special, stable, device):
    """One among others decides the row as it may, in every mode, but raises nothing."""
    x = torch.linspace(-3, 3, 64).repeat(32, 1)
    x[:, 5] = special
    held = upload(x, "bfloat16", "TILE", device)
    for mode in ("fast", "exact"):
        with numerics(mode):
            assert stored(ttnn.softmax(held, dim=-1, numeric_stable=stable)).shape == (32, 64)


def test_nan_of_float32_takes_all_and_leaves_nothing(device):
    """The matrix unit makes an infinity of it, from which the NaN is far enough for an infinite power."""
    x = torch.linspace(-3, 3, 64).repeat(32, 1)
    x[:, 5] = torch.nan
    with numerics("exact"):
        made = stored(ttnn.softmax(upload(x, "float32", "TILE", device), dim=-1, compute_kernel_config=ACCURATE))
    assert torch.equal(made, torch.zeros(32, 64))


ACCURATE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi3, math_approx_mode=False, fp32_dest_acc_en=True, packer_l1_acc=True
)


# width, stable, with a mask, bytes of circular buffers by the library's own accounting
WIDE = (
    (6144, True, False, 1212416),
    (7168, True, False, 864256),
    (9216, False, False, 1224704),
    (10240, False, False, 860160),
    (5120, True, True, 1357824),
    (5120, False, True, 1353728),
)


@pytest.mark.parametrize(("width", "stable", "masked", "expected"), WIDE)
def test_wide_rows_are_worked_on_in_pieces(width, stable, masked, expected, device):
    x = upload(torch.zeros(1, 1, 32, width), "bfloat16", "TILE", device)
    options = {"compute_kernel_config": ACCURATE, "numeric_stable": stable}
    with listeners.listening(Buffers()) as heard:
        if masked:
            ttnn.scale_mask_softmax(x, 0.5, x, **options)
        else:
            ttnn.softmax(x, dim=-1, **options)
    assert heard.found == expected


def test_pieces_are_summed_by_the_vector_unit(device):
    """Sums of 80 tiles wait in 19 bits, so that what is added last of all weighs less than it should."""
    width = 3 * 80 * 32
    x = upload(torch.zeros(32, width), "bfloat16", "TILE", device)
    with numerics("exact"):
        made = stored(ttnn.softmax(x, dim=-1, compute_kernel_config=ACCURATE))
    assert torch.allclose(made, torch.full((32, width), 1 / width), rtol=0.01)
