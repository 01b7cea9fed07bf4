"""Output specs of operations from their parameters and tensors, without a call."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

L1_WIDTH = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1)


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def tiles(device, *shape, **options):
    options = {"dtype": ttnn.bfloat16, "layout": ttnn.TILE_LAYOUT, "device": device} | options
    return ttnn.from_torch(torch.rand(*shape), **options)


def matmul(a, b, **fields):
    params, inputs = ttnn.MatmulParams(), ttnn.MatmulInputs()
    for name, value in fields.items():
        setattr(params, name, value)
    inputs.input_tensors = [a, b]
    return ttnn.create_matmul_attributes(a, b, params, []), inputs


def test_defaults_of_a_matmul_are_filled_in(device):
    a = tiles(device, 2, 64, 96)
    params, _ = matmul(a, tiles(device, 96, 128))
    assert (params.output_dtype, params.bcast_batch, params.program_config) == (ttnn.bfloat16, True, None)
    assert params.compute_kernel_config.math_fidelity is ttnn.MathFidelity.HiFi2
    assert not matmul(a, tiles(device, 2, 96, 128))[0].bcast_batch


def test_output_specs_of_a_matmul(device):
    params, inputs = matmul(tiles(device, 2, 64, 96), tiles(device, 96, 128), output_mem_config=ttnn.L1_MEMORY_CONFIG)
    (spec,) = ttnn.MatmulDeviceOperation.compute_output_specs(params, inputs)
    (made,) = ttnn.MatmulDeviceOperation.create_output_tensors(params, inputs)
    assert tuple(spec.shape) == tuple(made.shape) == (2, 64, 128)
    assert made.memory_config() == spec.memory_config == ttnn.L1_MEMORY_CONFIG
    (product,) = ttnn.MatmulDeviceOperation.invoke(*inputs.input_tensors, attributes=params)
    expected = ttnn.matmul(*inputs.input_tensors, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert torch.equal(ttnn.to_torch(product), ttnn.to_torch(expected))


def test_sharded_outputs_follow_the_program(device):
    config = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        compute_with_storage_grid_size=(8, 1),
        in0_block_w=2,
        out_subblock_h=1,
        out_subblock_w=1,
        per_core_M=1,
        per_core_N=1,
        fuse_batch=True,
        fused_activation=None,
        mcast_in0=True,
    )
    a, b = tiles(device, 1, 1, 32, 128), tiles(device, 1, 1, 128, 256)
    params, inputs = matmul(a, b, program_config=config, output_mem_config=L1_WIDTH)
    (spec,) = ttnn.MatmulDeviceOperation.compute_output_specs(params, inputs)
    assert spec.memory_config == ttnn.matmul(a, b, program_config=config, memory_config=L1_WIDTH).memory_config()


def test_parameters_without_defaults_are_refused(device):
    inputs = ttnn.MatmulInputs()
    inputs.input_tensors = [tiles(device, 32, 32)] * 2
    with pytest.raises(RuntimeError):
        ttnn.MatmulDeviceOperation.compute_output_specs(ttnn.MatmulParams(), inputs)


def test_output_spec_of_a_layer_norm(device):
    params = ttnn.LayerNormParams()
    params.output_mem_config = ttnn.L1_MEMORY_CONFIG
    params.program_config = ttnn.LayerNormDefaultProgramConfig()
    params.dtype = ttnn.float32  # which only sharded programs use
    inputs = ttnn.LayerNormInputs(tiles(device, 2, 64, 96))
    made = ttnn.LayerNormDeviceOperation.create_output_tensors(params, inputs)
    assert (tuple(made.shape), made.dtype) == ((2, 64, 96), ttnn.bfloat16)
    assert made.memory_config() == ttnn.L1_MEMORY_CONFIG
    operation = ttnn.LayerNormDeviceOperation
    same, other = ttnn.LayerNormInputs(inputs.input), ttnn.LayerNormInputs(tiles(device, 32, 32))
    hashes = [operation.compute_program_hash(params, each) for each in (inputs, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
