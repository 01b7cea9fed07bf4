"""Layer, RMS, group and batch norms, compared with torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Buffers, Row, check, pcc, shapes, stored, upload, values
from ttnn_emulator.execution import listeners
from ttnn_emulator.numerics.mode import numerics

EPSILON = 1e-5
# Registers keep 11 bits of a float32; in rms_norm, whose results have 16 bits by default, 8 bits.
NORMS = {"bfloat16": 3.0, "float32": 2.0**16}
ROUGH = {"bfloat16": 3.0, "float32": 2.0**18}


def first_row(tensor: ttnn.Tensor, layout: str = "TILE") -> ttnn.Tensor:
    """Weights for the last dimension, from a tensor of the input's shape."""
    row = stored(tensor).reshape(-1, tensor.shape[-1])[:1]
    return upload(row, "bfloat16", layout, tensor.device())


def as_weight(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, values.shape[-1])[0].bfloat16().float()


def layer_norm(x, *others):
    return functional.layer_norm(x, x.shape[-1:], *map(as_weight, others), eps=EPSILON)


def rms_norm(x, *others):
    return functional.rms_norm(x, x.shape[-1:], *map(as_weight, others), eps=EPSILON)


ROWS = (
    Row("layer_norm", lambda x: ttnn.layer_norm(x, epsilon=EPSILON), layer_norm, ulps=NORMS, floor=0.5),
    Row(
        "layer_norm with weight and bias",
        lambda x, w, b: ttnn.layer_norm(x, epsilon=EPSILON, weight=first_row(w), bias=first_row(b)),
        layer_norm,
        inputs=3,
        ulps=NORMS,
        floor=1.0,
    ),
    Row(
        "layer_norm with residual",
        lambda x, r: ttnn.layer_norm(x, epsilon=EPSILON, residual_input_tensor=r),
        lambda x, r: layer_norm(x + r),
        inputs=2,
        ulps=NORMS,
        floor=0.5,
    ),
    Row("rms_norm", lambda x: ttnn.rms_norm(x, epsilon=EPSILON), rms_norm, ulps=ROUGH, floor=0.5),
    Row(
        "rms_norm with weight",
        lambda x, w: ttnn.rms_norm(x, epsilon=EPSILON, weight=first_row(w)),
        rms_norm,
        inputs=2,
        ulps=ROUGH,
        floor=1.0,
    ),
    Row(
        "rms_norm with residual and bias",
        lambda x, r, b: ttnn.rms_norm(x, epsilon=EPSILON, residual_input_tensor=r, bias=first_row(b)),
        lambda x, r, b: rms_norm(x + r) + as_weight(b),
        inputs=3,
        ulps=ROUGH,
        floor=1.0,
    ),
    Row(
        "dit_rms_norm_unary_fused",
        lambda x: ttnn.experimental.dit_rms_norm_unary_fused(x, EPSILON, activation="silu"),
        lambda x: functional.silu(rms_norm(x)),
        ulps={"bfloat16": 6.0, "float32": 2.0**17},
        floor=0.5,
        shapes=((2, 40, 70), (1, 1, 64, 128)),
    ),
)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_against_torch(row, dtype, device):
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


# Rows of one or two values are normalised to 0 or ±1.
WIDE_ROWS = shapes.filter(lambda shape: shape[-1] >= 3)


@given(
    row=st.sampled_from(ROWS[:6]),
    shape=WIDE_ROWS,
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(("bfloat16", "float32")),
)
def test_any_shape_and_values(row, shape, seed, dtype):
    loose = Row(
        row.name, row.call, row.counterpart, row.inputs, ulps={"bfloat16": 8.0, "float32": 2.0**19}, floor=row.floor
    )
    with ttnn.open_device(device_id=0) as device:
        check(loose, dtype, shape, seed, device)


def test_large_rows(device):
    """Beyond the limit of bit-exact emulation the same kernels run in float32."""
    x = upload(values((512, 2048), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    assert torch.allclose(stored(ttnn.layer_norm(x, epsilon=EPSILON)), layer_norm(stored(x)), atol=0.03)
    assert torch.allclose(stored(ttnn.rms_norm(x, epsilon=EPSILON)), rms_norm(stored(x)), atol=0.03)


def test_block_floats(device):
    x = upload(values((40, 70), -4, 4, "bfloat8_b", 1), "bfloat8_b", "TILE", device)
    assert pcc(stored(ttnn.layer_norm(x, epsilon=EPSILON)), layer_norm(stored(x))) >= 0.999
    assert pcc(stored(ttnn.rms_norm(x, epsilon=EPSILON)), rms_norm(stored(x))) >= 0.999


def test_row_major_weights(device):
    x = upload(values((3, 40, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    weight = values((1, 1, 2, 32), -1, 1, "bfloat16", 2).bfloat16().float()
    rows = upload(weight, "bfloat16", "ROW_MAJOR", device)
    reference = functional.layer_norm(stored(x), (64,), weight.reshape(64), eps=EPSILON)
    assert torch.allclose(stored(ttnn.layer_norm(x, epsilon=EPSILON, weight=rows)), reference, atol=0.03)


def test_sharded_rows(device):
    memory = ttnn.create_sharded_memory_config(
        [64, 64], ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.WIDTH, use_height_and_width_as_shard_shape=True
    )
    x = upload(values((1, 1, 64, 128), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    sharded = ttnn.to_memory_config(x, memory)
    program = ttnn.create_layernorm_program_config(sharded.memory_config().shard_spec)
    result = ttnn.layer_norm(sharded, epsilon=EPSILON, program_config=program)
    assert result.memory_config() == memory
    assert torch.allclose(stored(result), layer_norm(stored(x)), atol=0.04)


# -- rows distributed over devices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_two_parts_of_a_row(name, device):
    parts = [upload(values((1, 1, 64, 128), -3, 4, "bfloat16", seed), "bfloat16", "TILE", device) for seed in (1, 2)]
    before, after = getattr(ttnn, f"{name}_pre_all_gather"), getattr(ttnn, f"{name}_post_all_gather")
    statistics = ttnn.concat([before(part) for part in parts], dim=-1)
    whole = torch.cat([stored(part) for part in parts], -1)
    reference = {"layer_norm": layer_norm, "rms_norm": rms_norm}[name](whole)
    result = torch.cat([stored(after(part, statistics, epsilon=EPSILON)) for part in parts], -1)
    assert pcc(result, reference) >= 0.999
    assert torch.allclose(result, reference, atol=0.08)


# -- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_batch_norm(dtype, device):
    x = upload(values((2, 3, 40, 33), -4, 4, dtype, 1), dtype, "TILE", device)
    channels = [values((1, 3, 1, 1), 0.5, 2, dtype, seed) for seed in range(4)]
    mean, variance, weight, bias = (upload(each, dtype, "TILE", device) for each in channels)
    result = ttnn.batch_norm(x, running_mean=mean, running_var=variance, weight=weight, bias=bias, eps=EPSILON)
    numbers = [stored(each).flatten() for each in (mean, variance, weight, bias)]
    reference = functional.batch_norm(stored(x), *numbers, eps=EPSILON)
    assert torch.allclose(stored(result), reference, atol=0.06 if dtype == "bfloat16" else 1e-5)


def test_batch_norm_in_training_updates_the_running_statistics(device):
    x = upload(values((2, 3, 40, 33), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    mean, variance = (upload(torch.full((1, 3, 1, 1), each), "bfloat16", "TILE", device) for each in (0.0, 1.0))
    result = ttnn.batch_norm(x, running_mean=mean, running_var=variance, training=True, momentum=0.5, eps=EPSILON)
    kept = [torch.zeros(3), torch.ones(3)]
    reference = functional.batch_norm(stored(x), *kept, training=True, momentum=0.5, eps=EPSILON)
    assert torch.allclose(stored(result), reference, atol=0.06)
    assert torch.allclose(stored(mean).flatten(), kept[0], atol=0.02)
    assert torch.allclose(stored(variance).flatten(), kept[1], rtol=0.02)


def test_one_program_updates_the_running_statistics(device):
    """As in the library: one program for one or both of them, none without."""
    x = upload(values((1, 4, 32, 32), 0, 1, "bfloat16", 1), "bfloat16", "TILE", device)
    device.clear_program_cache()
    counts = []
    for names in (("running_mean", "running_var"), ("running_mean",), ("running_var",), ()):
        for _ in range(2):
            statistics = {name: upload(torch.ones(1, 4, 1, 1), "bfloat16", "TILE", device) for name in names}
            ttnn.batch_norm(x, training=True, **statistics)
            counts.append(device.num_program_cache_entries())
            assert all(not torch.equal(stored(each), torch.ones(1, 4, 1, 1)) for each in statistics.values())
    assert [count - counts[0] for count in counts] == [0, 0, 1, 1, 2, 2, 2, 2]


# -- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [2, 4])
def test_group_norm(groups, device):
    x = upload(values((1, 1, 64, 64), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    cores = ttnn.get_group_norm_cores_across_channel(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.CoreGrid(y=1, x=1))
    assert cores == 1
    mask = ttnn.to_device(ttnn.create_group_norm_input_mask(64, groups, cores, ttnn.bfloat8_b), device)
    weight, bias = (values((64,), 0.5, 1.5, "bfloat16", seed).bfloat16().float() for seed in (2, 3))
    packed = [
        upload(ttnn.create_group_norm_weight_bias_rm(each, 64, 1).float(), "bfloat16", "ROW_MAJOR", device)
        for each in (weight, bias)
    ]
    result = ttnn.group_norm(
        x,
        num_groups=groups,
        epsilon=EPSILON,
        input_mask=mask,
        weight=packed[0],
        bias=packed[1],
        core_grid=ttnn.CoreGrid(y=1, x=1),
        inplace=False,
    )
    channels = stored(x).reshape(1, 64, 64).mT
    reference = functional.group_norm(channels, groups, weight, bias, eps=EPSILON).mT.reshape(1, 1, 64, 64)
    assert pcc(stored(result), reference) >= 0.999
    assert torch.allclose(stored(result), reference, atol=0.06)


def test_group_norm_setup(device):
    mask = stored(ttnn.create_group_norm_input_mask(64, 2, 1, ttnn.bfloat16))
    assert mask.shape == (1, 2, 32, 32)
    assert (mask == 1).all()
    halves = stored(ttnn.create_group_norm_input_mask(64, 4, 1, ttnn.bfloat16))
    assert (halves.sum(-1) == 16).all()
    negative = stored(ttnn.create_group_norm_input_negative_mask(64, 4, 1, ttnn.bfloat16))
    assert torch.equal(negative, 1 - halves)
    grid = ttnn.determine_expected_group_norm_dram_grid_size(
        device=device, num_channels=320, num_groups=32, input_nhw=1024
    )
    assert grid.x >= 1 and grid.y >= 1
    memory, cores = ttnn.determine_expected_group_norm_sharded_config_and_grid_size(
        device=device, num_channels=320, num_groups=32, input_nhw=1024, is_height_sharded=False
    )
    assert memory.is_sharded() and cores.x * cores.y >= 1


# -- edge cases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_padding_does_not_leak(name, device):
    """The mean and mean square of 33 equal values do not include 31 columns of padding."""
    x = upload(torch.full((5, 33), 4.0), "bfloat16", "TILE", device)
    expected = 0.0 if name == "layer_norm" else 1.0
    assert torch.allclose(stored(getattr(ttnn, name)(x, epsilon=EPSILON)), torch.full((5, 33), expected), atol=0.02)


def test_rejected_arguments(device):
    x = upload(torch.zeros(32, 64), "bfloat4_b", "TILE", device)
    with pytest.raises(RuntimeError):
        ttnn.layer_norm(x)
    with pytest.raises(RuntimeError):
        ttnn.rms_norm(upload(torch.zeros(32, 64), "bfloat16", "ROW_MAJOR", device))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_constant_rows(name, device):
    """With a variance of zero and an epsilon of zero."""
    x = upload(torch.zeros(32, 64), "bfloat16", "TILE", device)
    for mode in ("fast", "exact"):
        with numerics(mode):
            assert stored(getattr(ttnn, name)(x, epsilon=0.0)).shape == (32, 64)


# operation, dtype, width; weight, bias and residual; bytes of circular buffers as reported by the library
WIDE = (
    ("layer_norm", "bfloat16", 3712, "", 1261568),
    ("layer_norm", "bfloat16", 3840, "", 651264),
    ("layer_norm", "bfloat16", 2688, "wb", 512000),
    ("layer_norm", "bfloat16", 2304, "wbr", 602112),
    ("layer_norm", "float32", 3072, "r", 503808),
    ("rms_norm", "bfloat16", 6400, "", 643072),
    ("rms_norm", "bfloat16", 4736, "w", 446464),
    ("rms_norm", "bfloat16", 3712, "wr", 421888),
    ("rms_norm", "float32", 2944, "wbr", 528384),
)
ACCURATE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi3, math_approx_mode=False, fp32_dest_acc_en=True, packer_l1_acc=True
)


@pytest.fixture(scope="module")
def card():
    opened = ttnn.open_device(device_id=0, l1_small_size=32768)
    yield opened
    ttnn.close_device(opened)


@pytest.mark.parametrize(("name", "dtype", "width", "operands", "expected"), WIDE)
def test_wide_rows_use_another_kernel(name, dtype, width, operands, expected, card):
    """It processes pieces of the row and squares deviations in the destination register: the bits differ."""
    x = torch.randn(1, 5, width, generator=torch.Generator().manual_seed(0))
    row = torch.ones(width)
    sources = {
        "w": ("weight", row, "bfloat16"),
        "b": ("bias", row, "bfloat16"),
        "r": ("residual_input_tensor", x, dtype),
    }
    others = {key: upload(value, kind, "TILE", card) for key, value, kind in map(sources.__getitem__, operands)}
    with listeners.listening(Buffers()) as buffers, numerics("exact"):
        result = getattr(ttnn, name)(
            upload(x, dtype, "TILE", card), epsilon=EPSILON, compute_kernel_config=ACCURATE, **others
        )
    assert buffers.largest == expected
    reference = x + x if "r" in operands else x
    reference = layer_norm(reference) if name == "layer_norm" else rms_norm(reference)
    assert pcc(stored(result), reference + ("b" in operands)) > 0.9999


def test_tensors_in_l1_leave_less_memory_for_rows(card):
    x = upload(torch.ones(1, 1, 3072), "bfloat16", "TILE", card)
    occupied = ttnn.zeros(
        (1, 1, 8192, 2048),
        dtype=ttnn.bfloat16,
        layout=ttnn.TILE_LAYOUT,
        device=card,
        memory_config=ttnn.L1_MEMORY_CONFIG,
    )
    result = ttnn.layer_norm(x, epsilon=EPSILON, compute_kernel_config=ACCURATE)  # 1 MB for whole rows would clash
    assert result.shape == (1, 1, 3072)
    ttnn.deallocate(occupied)


def test_parameters_of_group_norm_in_dram(device) -> None:
    weight, bias = torch.rand(64), torch.rand(64)
    grid = ttnn.CoreGrid(x=2, y=1)
    assert ttnn.operations.normalization.dram_group_norm_virtual_columns(grid, 64, 4) == 2
    (weights, biases), mask = ttnn.dram_group_norm_params_from_torch([weight, bias], 64, 4, device, core_grid=grid)
    assert list(weights.shape) == [1, 1, 2, 32] and list(mask.shape) == [1, 4, 32, 32]
    assert torch.equal(ttnn.to_torch(biases).reshape(-1), bias.bfloat16())
    alone = ttnn.dram_group_norm_params_from_torch(weight, 64, 4, device, core_grid=grid, return_mask=False)
    assert torch.equal(ttnn.to_torch(alone), ttnn.to_torch(weights))
    with pytest.raises(AssertionError):
        ttnn.dram_group_norm_params_from_torch(weight, 32, 4, device, core_grid=grid)


@pytest.mark.parametrize("name", ("layer_norm", "rms_norm"))
def test_statistics_of_shards_are_means(device, name: str) -> None:
    """The mean of the values, then the mean of the squares; the post-all-gather norm expects both."""
    x = torch.randn(1, 1, 32, 256, generator=torch.Generator().manual_seed(0)).bfloat16()
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))])
    shards = ttnn.ShardSpec(cores, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
    program = ttnn.LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(4, 1), subblock_w=1, block_h=1, block_w=2, inplace=False
    )
    source = ttnn.from_torch(x, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory)
    stats = getattr(ttnn, f"{name}_pre_all_gather")(source, program_config=program)
    read, exact = ttnn.to_torch(stats).float(), x.float()
    means = [exact.square().mean(-1)] if name == "rms_norm" else [exact.mean(-1), exact.square().mean(-1)]
    for number, mean in enumerate(means):
        assert (read[..., 32 * number] - mean).abs().max() <= 0.03
    result = getattr(ttnn, f"{name}_post_all_gather")(source, stats, epsilon=1e-5, program_config=program)
    centre = 0.0 if name == "rms_norm" else exact.mean(-1, keepdim=True)
    expected = (exact - centre) * ((exact - centre).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    assert (ttnn.to_torch(result).float() - expected).abs().max() <= 0.08


def _sharded_statistics(device, rows: int, columns: int):
    """A memory config with shards 64 wide on that grid, and its program config."""
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(columns - 1, rows - 1))])
    shards = ttnn.ShardSpec(cores, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
    program = ttnn.LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(columns, rows), subblock_w=1, block_h=1, block_w=2, inplace=False
    )
    return memory, program


def test_statistics_of_several_rows_of_cores_are_reduced_in_two_stages(device) -> None:
    """Within each line of cores, then the first line and the sums of the others: fewer roundings than in one stage."""
    x = torch.randn(1, 1, 32, 2048, generator=torch.Generator().manual_seed(0)).bfloat16()
    memory, program = _sharded_statistics(device, 4, 8)
    source = ttnn.from_torch(x, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory)
    stats = ttnn.rms_norm_pre_all_gather(source, program_config=program)
    assert pcc(ttnn.to_torch(stats).float()[..., 0], x.float().square().mean(-1)) >= 0.99


def test_statistics_of_shards_write_the_sum_with_the_residual_to_the_input(device) -> None:
    memory, program = _sharded_statistics(device, 1, 2)
    x, y = torch.randn(2, 1, 1, 32, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
    source, added = (
        ttnn.from_torch(each, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory) for each in (x, y)
    )
    stats = ttnn.rms_norm_pre_all_gather(source, residual_input_tensor=added, program_config=program)
    total = x + y
    assert list(stats.shape) == [1, 1, 32, 32]
    assert (ttnn.to_torch(source).float() - total.float()).abs().max() <= 0.04
    assert torch.equal(ttnn.to_torch(added), y)
    assert (ttnn.to_torch(stats).float()[..., 0] - total.float().square().mean(-1)).abs().max() <= 0.06
