"""Error messages contain the library's phrases, which scripts match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn

Call = Callable[[Any], Any]


def zeros(device: Any, *shape: int, dtype: Any = ttnn.bfloat16, layout: Any = ttnn.TILE_LAYOUT, **more: Any) -> Any:
    return ttnn.from_torch(torch.zeros(shape), dtype=dtype, layout=layout, device=device, **more)


def sparse(device: Any, a: Any = None, b: Any = None, flags: Any = None, **options: Any) -> Any:
    config = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        compute_with_storage_grid_size=(2, 1),
        in0_block_w=1,
        out_subblock_h=1,
        out_subblock_w=1,
        out_block_h=1,
        out_block_w=options.pop("out_block_w", 1),
        per_core_M=1,
        per_core_N=1,
        fuse_batch=False,
        fused_activation=None,
        mcast_in0=True,
    )
    a = zeros(device, 1, 1, 32, 32) if a is None else a
    b = zeros(device, 1, 4, 32, 64) if b is None else b
    flags = zeros(device, 1, 1, 1, 4, layout=ttnn.ROW_MAJOR_LAYOUT) if flags is None else flags
    return ttnn.sparse_matmul(a, b, sparsity=flags, program_config=config, **options)


def indices(device: Any, *shape: int, dtype: Any = ttnn.uint16) -> Any:
    return ttnn.from_torch(
        torch.zeros(shape, dtype=torch.int32), dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device
    )


def group_norm(device: Any, *shape: int, layout: Any = ttnn.ROW_MAJOR_LAYOUT, **options: Any) -> Any:
    return ttnn.group_norm(
        zeros(device, *shape, layout=layout), num_groups=2, core_grid=ttnn.CoreGrid(x=1, y=1), **options
    )


ROWS = ttnn.ROW_MAJOR_LAYOUT
REFUSED: dict[str, Call] = {
    "alpha parameter cannot be 0": lambda d: ttnn.addmm(*[zeros(d, 4, 4)] * 3, alpha=0.0),
    "must have shape matching one of result of mat1_tensor @ mat2_tensor": lambda d: ttnn.addmm(
        zeros(d, 8, 8), *[zeros(d, 4, 4)] * 2
    ),
    "types are supported for input_tensor": lambda d: ttnn.addmm(*[zeros(d, 4, 4, dtype=ttnn.uint32)] * 3),
    "The width of the first tensor must be equal to the height of the second tensor": lambda d: ttnn.matmul(
        zeros(d, 1, 32), zeros(d, 1, 32)
    ),
    "requires at least one of is_input_a_sparse or is_input_b_sparse": lambda d: sparse(d, is_input_b_sparse=False),
    "sparsity logical_volume": lambda d: sparse(d, flags=zeros(d, 1, 1, 1, 3, layout=ROWS)),
    "Input tensor A must be TILE layout": lambda d: sparse(d, zeros(d, 1, 1, 32, 32, layout=ROWS)),
    "Input tensor B must be TILE layout": lambda d: sparse(d, b=zeros(d, 1, 4, 32, 64, layout=ROWS)),
    "Input tensor A must be a floating point type": lambda d: sparse(d, zeros(d, 1, 1, 32, 32, dtype=ttnn.uint32)),
    "Sparsity tensor must be ROW_MAJOR layout": lambda d: sparse(d, flags=zeros(d, 1, 1, 1, 4)),
    "when nnz is not provided": lambda d: sparse(d, optional_output_tensor=zeros(d, 1, 4, 32, 64)),
    "must equal to the in0 tile height": lambda d: sparse(
        d, nnz=4, optional_output_tensor=zeros(d, 1, 4, 32, 64, tile=ttnn.Tile((16, 32)))
    ),
    "out_block_w and out_block_h must be non-zero": lambda d: sparse(d, out_block_w=0),
    "indices must be UINT16 dtype": lambda d: sparse(d, indices=indices(d, 1, 1, 1, 2, dtype=ttnn.uint32)),
    "single ROW_MAJOR stick": lambda d: sparse(d, indices=indices(d, 1, 1, 2, 1)),
    "must be <= the number of sparse groups": lambda d: sparse(d, indices=indices(d, 1, 1, 1, 5)),
    "must not be supplied together with indices": lambda d: sparse(d, nnz=2, indices=indices(d, 1, 1, 1, 2)),
    "Device Operations expect device tensors as inputs": lambda d: sparse(d, indices=indices(None, 1, 1, 1, 2)),
    "Tile layout requires non-inplace tensors": lambda d: group_norm(
        d, 1, 1, 32, 64, layout=ttnn.TILE_LAYOUT, inplace=True
    ),
    "must be divisible by the tile size": lambda d: group_norm(d, 1, 1, 16, 64, inplace=False),
    "must be a multiple of the tile height": lambda d: group_norm(d, 2, 1, 16, 64, inplace=False),
    "Input mask must be on device": lambda d: group_norm(
        d, 1, 1, 32, 64, inplace=False, input_mask=ttnn.create_group_norm_input_mask(64, 2, 1)
    ),
    "The head size must be a multiple of the tile width": lambda d: (
        ttnn.transformer.split_query_key_value_and_split_heads(zeros(d, 1, 32, 240), num_heads=1)
    ),
    "Head size must be a multiple of 32": lambda d: ttnn.transformer.concatenate_heads(zeros(d, 1, 2, 32, 80)),
    "col_tilize=True is not supported with spec": lambda d: ttnn.from_torch(
        torch.zeros(32, 64),
        spec=ttnn.TensorSpec((32, 64), ttnn.bfloat8_b, ttnn.TILE_LAYOUT),
        col_tilize=True,
    ),
    "col_tilize=True requires layout to be None or ttnn.TILE_LAYOUT": lambda d: ttnn.from_torch(
        torch.zeros(32, 64), dtype=ttnn.bfloat8_b, layout=ROWS, col_tilize=True
    ),
}


@pytest.mark.parametrize("phrase", REFUSED)
def test_phrases_of_refusals(device: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        REFUSED[phrase](device)
    assert phrase in str(caught.value)


def test_a_sparse_first_operand_takes_the_batches_of_the_second(device: Any) -> None:
    a = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(0)).bfloat16()
    b = torch.randn(1, 4, 32, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    flags = torch.tensor([1.0, 0, 1, 1, 0, 1, 1, 0]).reshape(1, 1, 2, 4)
    place = {"dtype": ttnn.bfloat16, "device": device}
    tensors = [ttnn.from_torch(each, layout=ttnn.TILE_LAYOUT, **place) for each in (a, b)]
    sparsity = ttnn.from_torch(flags, layout=ROWS, **place)
    ours = sparse(device, *tensors, sparsity, is_input_a_sparse=True, is_input_b_sparse=False)
    expected = (a.float() @ b.float()) * flags.reshape(2, 4, 1, 1)
    assert (ttnn.to_torch(ours).float() - expected).abs().max() <= 0.05 * expected.abs().max()
