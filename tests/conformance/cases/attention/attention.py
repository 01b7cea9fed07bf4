"""Prefill attention: plain, masked, windowed, chunked with paged caches, latent, joint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    SHAPES,
    STORABLE,
    C,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

SDPA = "ttnn.transformer.scaled_dot_product_attention"
CHUNKED = "ttnn.transformer.chunked_scaled_dot_product_attention"
MLA = "ttnn.transformer.flash_mla_prefill"
CHUNKED_MLA = "ttnn.transformer.chunked_flash_mla_prefill"
JOINT = "ttnn.transformer.joint_scaled_dot_product_attention"

MEMORIES = (
    "DRAM",
    "L1",
    height_sharded([64, 64], 4),
    height_sharded([128, 64], 2),
    width_sharded([256, 32], 2),
    block_sharded([128, 32], (2, 2)),
)


def cases() -> Iterator[Case]:
    for family in (plain, masked, windowed, chunked, chunked_latent, latent, joint):
        yield from family()


def program(q: int = 32, k: int = 32, grid: tuple[int, int] = (8, 8), **more: Any) -> Case:
    return C("SDPAProgramConfig", compute_with_storage_grid_size=list(grid), q_chunk_size=q, k_chunk_size=k, **more)


def kernel_config(fidelity: str = "HiFi4", *, wide: bool = False, approx: bool = False) -> Case:
    return C(
        "WormholeComputeKernelConfig",
        math_fidelity=E(f"MathFidelity.{fidelity}"),
        math_approx_mode=approx,
        fp32_dest_acc_en=wide,
        packer_l1_acc=False,
    )


Options = dict[str, Any]
KERNELS = (
    kernel_config(),
    kernel_config("LoFi", approx=True),
    kernel_config("HiFi2", wide=True),
    kernel_config("HiFi3", wide=True, approx=True),
)
CHUNKS = ((32, 32), (64, 32), (32, 64), (128, 128), (256, 128), (96, 160), (0, 32), (32, 0), (48, 32), (32, 33))
LARGE_CHUNKS = ((512, 512), (256, 1024), (1024, 256), (1024, 1024))


def indices(*shape: int, dtype: str = "int32", layout: str = "ROW_MAJOR", **more: Any) -> Case:
    return T(shape, dtype, layout, **more)


# -- whole sequences --------------------------------------------------------------------------------------------------


def plain() -> Iterator[Case]:
    op = SDPA
    for shape in (*SHAPES, (1, 2, 64, 64), (2, 3, 45, 32), (1, 1, 1, 32), (3, 2, 33, 96), (), (0, 2, 64, 64)):
        yield call(op, T(shape), T(shape), T(shape))
        yield call(op, T(shape), T(shape), T(shape), is_causal=False)
    # Shapes of queries, keys and values, matching and mismatching.
    q = (2, 4, 64, 64)
    for k, v in (
        ((2, 2, 64, 64), (2, 2, 64, 64)),
        ((2, 1, 64, 64), (2, 1, 64, 64)),
        ((2, 3, 64, 64), (2, 3, 64, 64)),
        ((2, 8, 64, 64), (2, 8, 64, 64)),
        ((2, 2, 64, 64), (2, 4, 64, 64)),
        ((2, 2, 96, 64), (2, 2, 96, 64)),
        ((2, 2, 96, 64), (2, 2, 64, 64)),
        ((2, 2, 45, 64), (2, 2, 45, 64)),
        ((1, 2, 64, 64), (1, 2, 64, 64)),
        ((2, 2, 64, 32), (2, 2, 64, 32)),
        ((2, 2, 64, 64), (2, 2, 64, 32)),
        ((2, 2, 1, 64), (2, 2, 1, 64)),
        ((2, 64, 64), (2, 64, 64)),
    ):
        for causal in (True, False):
            yield call(op, T(q), T(k), T(v), is_causal=causal)
    square = (1, 4, 64, 64)
    for dtype, layout in STORABLE:
        yield call(op, T(square, dtype, layout), T(square, dtype, layout), T(square, dtype, layout))
        yield call(op, T(square), T(square, dtype, layout), T(square))
        yield call(op, T(square), T(square), T(square, dtype, layout))
    for dtype in ("bfloat8_b", "bfloat4_b"):
        yield call(op, T(square), T(square, dtype), T(square, dtype), is_causal=False)
        yield call(op, T(square, dtype), T(square, dtype), T(square, dtype), memory_config=M("L1"))
    for memory in MEMORIES:
        yield call(op, T(square), T(square), T(square), memory_config=M(memory))
        yield call(op, T(square, mem=memory), T(square), T(square))
        yield call(op, T(square), T(square, mem=memory), T(square, mem=memory))
    for (rows, columns), causal in product((*CHUNKS, *LARGE_CHUNKS), (True, False)):
        yield call(op, T((1, 4, 200, 64)), T((1, 2, 200, 64)), T((1, 2, 200, 64)), is_causal=causal,
                   program_config=program(rows, columns))  # fmt: skip
    for (rows, columns), given in product(LARGE_CHUNKS, KERNELS[2:]):
        yield call(
            op, T(square), T(square), T(square), program_config=program(rows, columns), compute_kernel_config=given
        )
    for grid in ((1, 1), (4, 2), (9, 9), (8, 9), (0, 0), (0, 4)):
        yield call(op, T(square), T(square), T(square), program_config=program(grid=grid))
    options: tuple[Options, ...] = (
        {"exp_approx_mode": True},
        {"exp_approx_mode": False},
        {"max_cores_per_head_batch": 4},
        {"max_k_splits": 2},
        {"matmul_math_fidelity": E("MathFidelity.LoFi")},
        {"segmented_accumulation": True},
        {"sub_core_grids": G([0, 0, 7, 7])},
    )
    for more in options:
        yield call(op, T(square), T(square), T(square), program_config=program(64, 64, **more))
    for given, causal in product(KERNELS, (True, False)):
        yield call(op, T(square), T(square), T(square), is_causal=causal, compute_kernel_config=given)
        yield call(op, T((1, 2, 50, 64)), T((1, 2, 50, 64)), T((1, 2, 50, 64)), is_causal=causal,
                   program_config=program(64, 64), compute_kernel_config=given)  # fmt: skip
    for scale in (0.125, 1.0, 0.0, -1.0, 3, None, "x"):
        yield call(op, T(square), T(square), T(square), scale=scale)
    for window, causal in product((0, 1, 32, 50, 1000, -1, 2.5), (True, False)):
        yield call(op, T(square), T(square), T(square), is_causal=causal, sliding_window_size=window)
    for window, given in product((20, 64), KERNELS[1:3]):
        yield call(op, T(square), T(square), T(square), sliding_window_size=window, compute_kernel_config=given)
    for shape in ((1, 4, 64, 64), (2, 4, 45, 64), (1, 1, 32, 32)):
        yield call(op, T(shape), T(shape), T(shape), output_concat_heads=True)
        yield call(op, T(shape), T(shape), T(shape), output_concat_heads=True, memory_config=M("L1"))
    for place in range(3):
        tensors = [T(square, host=place == index) for index in range(3)]
        yield call(op, *tensors)
    yield call(op, T(square), T(square))
    yield call(op, T(square), T(square), None)
    yield call(op, T(square), T(square), T(square), T((1, 1, 64, 64)))
    yield call(op, T(square), T(square), T(square), is_causal="yes")
    yield call(op, T(square), T(square), T(square), memory_config="L1")
    yield call(op, T((1, 8, 2048, 128)), T((1, 8, 2048, 128)), T((1, 8, 2048, 128)))
    yield call(op, T((1, 1, 64, 1024)), T((1, 1, 64, 1024)), T((1, 1, 64, 1024)), program_config=program(64, 256))


# -- masks and sinks --------------------------------------------------------------------------------------------------


def masked() -> Iterator[Case]:
    op = SDPA
    q, k = T((2, 4, 64, 64)), T((2, 2, 96, 64))
    for shape in (
        (2, 4, 64, 96),
        (1, 4, 64, 96),
        (2, 1, 64, 96),
        (1, 1, 64, 96),
        (1, 1, 1, 96),
        (1, 1, 64, 1),
        (3, 1, 64, 96),
        (1, 2, 64, 96),
        (1, 1, 64, 64),
        (1, 1, 96, 64),
        (64, 96),
        (1, 64, 96),
        (1, 1, 1, 64, 96),
        (96,),
    ):
        yield call(op, q, k, k, attn_mask=T(shape), is_causal=False)
        yield call(op, q, k, k, attn_mask=T(shape), is_causal=False, scale=1.0)
    mask = (1, 1, 64, 96)
    for dtype, layout in STORABLE:
        yield call(op, q, k, k, attn_mask=T(mask, dtype, layout), is_causal=False)
        yield call(op, q, k, k, attn_mask=T(mask, dtype, layout), is_causal=False, scale=1.0)
    for memory in ("L1", height_sharded([32, 96], 2), width_sharded([64, 32], 3), block_sharded([32, 32], (3, 2))):
        yield call(op, q, k, k, attn_mask=T(mask, mem=memory), is_causal=False)
        yield call(op, q, k, k, attn_mask=T(mask, mem=memory), is_causal=False, scale=1.0)
    yield call(op, q, k, k, attn_mask=T(mask, host=True), is_causal=False)
    yield call(op, q, k, k, attn_mask=T(mask))
    yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, sliding_window_size=32)
    yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, sliding_window_size=0)
    yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, scale=0.0)
    odd, odd_k = T((1, 2, 45, 64)), T((1, 2, 70, 64))
    for given in (None, *KERNELS):
        yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, compute_kernel_config=given)
        yield call(op, odd, odd_k, odd_k, attn_mask=T((1, 1, 45, 70)), is_causal=False, compute_kernel_config=given)
    for rows, columns in (*CHUNKS, *LARGE_CHUNKS):
        yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, program_config=program(rows, columns))
    blocks = program(32, 32)
    for shape, dtype, layout in (
        ((1, 1, 2, 3), "int32", "ROW_MAJOR"),
        ((1, 1, 2, 3), "uint32", "ROW_MAJOR"),
        ((1, 1, 2, 3), "uint16", "ROW_MAJOR"),
        ((1, 1, 2, 3), "int32", "TILE"),
        ((1, 1, 3, 2), "int32", "ROW_MAJOR"),
        ((1, 4, 2, 3), "int32", "ROW_MAJOR"),
        ((2, 3), "int32", "ROW_MAJOR"),
        ((1, 1, 2, 3), "float32", "ROW_MAJOR"),
    ):
        given = T(shape, dtype, layout)
        yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, attn_mask_block_map=given, program_config=blocks)
        yield call(op, q, k, k, is_causal=False, attn_mask_block_map=given, program_config=blocks)
        yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, attn_mask_block_map=given)
    square = T((2, 4, 64, 64))
    for shape in ((1, 4, 1, 1), (2, 4, 1, 1), (1, 1, 1, 1), (1, 4, 32, 32), (4,), (4, 1), (1, 4, 1, 32)):
        yield call(op, square, square, square, attention_sink=T(shape))
    for dtype, layout in STORABLE:
        yield call(op, square, square, square, attention_sink=T((1, 4, 1, 1), dtype, layout))
    for given in KERNELS:
        yield call(op, square, square, square, attention_sink=T((1, 4, 1, 1)), compute_kernel_config=given)
    yield call(op, square, square, square, attention_sink=T((1, 4, 1, 1), mem="L1"))
    yield call(op, square, square, square, attention_sink=T((1, 4, 1, 1), host=True))
    yield call(op, square, square, square, attention_sink=T((1, 4, 1, 1)), sliding_window_size=40)
    yield call(op, q, k, k, attn_mask=T(mask), is_causal=False, attention_sink=T((1, 4, 1, 1)))


def windowed() -> Iterator[Case]:
    op = SDPA
    q, k = T((1, 4, 64, 64)), T((1, 2, 64, 64))
    for shape, dtype, layout in (
        ((2,), "int32", "ROW_MAJOR"),
        ((5,), "int32", "ROW_MAJOR"),
        ((5,), "uint32", "ROW_MAJOR"),
        ((1024,), "int32", "ROW_MAJOR"),
        ((1025,), "int32", "ROW_MAJOR"),
        ((1,), "int32", "ROW_MAJOR"),
        ((1, 3), "int32", "ROW_MAJOR"),
        ((3,), "int32", "TILE"),
        ((3,), "uint16", "ROW_MAJOR"),
        ((3,), "float32", "ROW_MAJOR"),
    ):
        for causal in (True, False):
            yield call(op, q, k, k, is_causal=causal, cu_window_seqlens=T(shape, dtype, layout))
    edges = indices(3)
    options: tuple[Options, ...] = (
        {"attn_mask": T((1, 1, 64, 64))},
        {"sliding_window_size": 32},
        {"sliding_window_size": 0},
        {"attention_sink": T((1, 4, 1, 1))},
        {"windowed_q_token_offset": 32},
        {"windowed_q_token_offset": 5},
        {"windowed_q_token_offset": 64},
        {"windowed_q_token_offset_tensor": indices(1)},
        {"windowed_q_token_offset_tensor": indices(1, dtype="uint32")},
        {"windowed_q_token_offset_tensor": indices(2)},
        {"windowed_q_token_offset_tensor": indices(1, dtype="float32")},
        {"windowed_q_token_offset_tensor": indices(1, layout="TILE")},
        {"windowed_q_token_offset_tensor": indices(1), "windowed_q_token_offset": 32},
        {"program_config": program(64, 64)},
        {"compute_kernel_config": KERNELS[2]},
        {"output_concat_heads": True},
    )
    for more in options:
        yield call(op, q, k, k, is_causal=False, cu_window_seqlens=edges, **more)
        yield call(op, T((1, 4, 32, 64)), k, k, is_causal=False, cu_window_seqlens=edges, **more)
    yield call(op, q, k, k, is_causal=False, cu_window_seqlens=indices(3, host=True))
    yield call(op, q, k, k, is_causal=False, windowed_q_token_offset=32)
    yield call(op, q, k, k, is_causal=False, windowed_q_token_offset_tensor=indices(1))
    yield call(op, T((1, 2, 45, 64)), T((1, 2, 45, 64)), T((1, 2, 45, 64)), is_causal=False, cu_window_seqlens=edges)


# -- paged caches -----------------------------------------------------------------------------------------------------


def chunked() -> Iterator[Case]:
    start: Any
    op = CHUNKED
    q, cache, pages = T((1, 4, 128, 64)), T((8, 2, 64, 64)), indices(1, 8)
    for start in (0, 32, 64, 128, 384, 385, 512, -32, None, "x"):
        yield call(op, q, cache, cache, pages, start)
        yield call(op, q, cache, cache, pages, start, program_config=program(64, 64))
        yield call(op, q, cache, cache, pages, start, program_config=program(128, 32))
    for shape in ((1, 8), (1, 2), (1, 1), (2, 8), (1, 7), (8,), (1, 1, 8)):
        yield call(op, q, cache, cache, indices(*shape), 0)
        yield call(op, q, cache, cache, indices(*shape), chunk_start_idx_tensor=indices(1))
    for dtype, layout in STORABLE:
        yield call(op, q, cache, cache, T((1, 8), dtype, layout), 0)
        yield call(op, q, T((8, 2, 64, 64), dtype, layout), T((8, 2, 64, 64), dtype, layout), pages, 0)
    for k, v in (
        ((8, 4, 64, 64), (8, 4, 64, 64)),
        ((8, 1, 64, 64), (8, 1, 64, 64)),
        ((8, 3, 64, 64), (8, 3, 64, 64)),
        ((8, 2, 64, 64), (8, 1, 64, 64)),
        ((8, 2, 32, 64), (8, 2, 32, 64)),
        ((8, 2, 64, 64), (8, 2, 32, 64)),
        ((8, 2, 64, 32), (8, 2, 64, 32)),
        ((8, 2, 64, 64), (8, 2, 64, 32)),
        ((2, 64, 64), (2, 64, 64)),
        ((2, 2, 16, 64), (2, 2, 16, 64)),
    ):
        yield call(op, q, T(k), T(v), pages, 0)
    for start in (indices(1), indices(2), indices(1, 1), indices(1, dtype="uint32"), indices(1, layout="TILE")):
        yield call(op, q, cache, cache, pages, chunk_start_idx_tensor=start)
        yield call(op, q, cache, cache, pages, 0, chunk_start_idx_tensor=start)
    yield call(op, q, cache, cache, pages, chunk_start_idx_tensor=indices(1, host=True))
    geometries: tuple[Options, ...] = (
        {"block_size": 32, "num_kv_heads": 4},
        {"block_size": 64, "num_kv_heads": 2},
        {"block_size": 128, "num_kv_heads": 1},
        {"block_size": 128, "num_kv_heads": 2},
        {"block_size": 0, "num_kv_heads": 2},
        {"block_size": 64, "num_kv_heads": 0},
        {},
    )
    for each in geometries:
        yield call(op, q, cache, cache, pages, 0, paged_cache_geometry=C("PagedCacheGeometryOverride", **each))
    options: tuple[Options, ...] = (
        {"scale": 0.5},
        {"memory_config": M("L1")},
        {"memory_config": M(height_sharded([128, 64], 4))},
        {"sliding_window_size": 50},
        {"sliding_window_size": 0},
        {"attention_sink": T((1, 4, 1, 1))},
        {"attention_sink": T((1, 2, 1, 1))},
        *({"compute_kernel_config": given} for given in KERNELS),
        *({"program_config": program(rows, columns)} for rows, columns in (*CHUNKS, *LARGE_CHUNKS)),
    )
    for more in options:
        yield call(op, q, cache, cache, pages, 0, **more)
    yield call(op, T((2, 4, 45, 64)), cache, cache, indices(2, 8), 0)
    yield call(op, T((1, 4, 128, 64), host=True), cache, cache, pages, 0)
    yield call(op, q, cache, cache, indices(1, 8, host=True), 0)
    yield call(op, q, cache, cache, indices(1, 8, mem="L1"), 0)
    yield call(op, q, cache, cache)


def chunked_latent() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = CHUNKED_MLA
    pages = indices(1, 8)
    q, cache = T((1, 4, 64, 96)), T((8, 1, 64, 96))
    for width in (64, 32, 96, 48, 128, 0, -1, "x"):
        yield call(op, q, cache, width, pages, 0)
    for start in (0, 32, 64, 448, 449, -1, None):
        yield call(op, q, cache, 64, pages, start)
        yield call(op, q, cache, 64, pages, start, program_config=program(64, 64))
    for shape in (
        (8, 4, 64, 96),
        (8, 2, 64, 96),
        (8, 3, 64, 96),
        (8, 1, 32, 96),
        (8, 1, 64, 64),
        (8, 1, 64, 128),
        (8, 64, 96),
    ):
        yield call(op, q, T(shape), 64, pages, 0)
    for dtype, layout in STORABLE:
        yield call(op, q, T((8, 1, 64, 96), dtype, layout), 64, pages, 0)
        yield call(op, q, cache, 64, T((1, 8), dtype, layout), 0)
    for shape in ((1, 2), (2, 8), (1, 1), (8,)):
        yield call(op, q, cache, 64, indices(*shape), 0)
    options: tuple[Options, ...] = (
        {"scale": 0.5},
        {"memory_config": M("L1")},
        *({"compute_kernel_config": given} for given in KERNELS),
        *({"program_config": program(rows, columns)} for rows, columns in CHUNKS),
    )
    for more in options:
        yield call(op, q, cache, 64, pages, 0, **more)


# -- latent values ----------------------------------------------------------------------------------------------------


def latent() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = MLA
    q, k = T((1, 4, 64, 96)), T((1, 1, 64, 96))
    for width in (64, 32, 96, 48, 128, 0, -1, "x", None):
        yield call(op, q, k, width)
        yield call(op, q, k, width, is_causal=False)
    for shape in (
        (1, 1, 64, 64),
        (1, 4, 64, 64),
        (1, 4, 64, 32),
        (1, 4, 64, 96),
        (1, 4, 64, 128),
        (1, 4, 32, 64),
        (1, 3, 64, 64),
        (2, 4, 64, 64),
        (1, 4, 64, 48),
        (64, 64),
    ):
        yield call(op, q, k, T(shape))
        yield call(op, q, k, T(shape), is_causal=False)
    for shape in (
        (1, 4, 64, 96),
        (1, 2, 64, 96),
        (1, 3, 64, 96),
        (2, 1, 64, 96),
        (1, 1, 96, 96),
        (1, 1, 64, 64),
        (64, 96),
    ):
        yield call(op, q, T(shape), 64)
        yield call(op, q, T(shape), 64, is_causal=False)
    for shape in SHAPES:
        yield call(op, T(shape), T(shape), 32)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 64, 96), dtype, layout), T((1, 1, 64, 96), dtype, layout), 64)
        yield call(op, q, T((1, 1, 64, 96), dtype, layout), 64)
        yield call(op, q, k, T((1, 4, 64, 64), dtype, layout))
    for mask in ((1, 1, 64, 64), (1, 4, 64, 64), (1, 1, 32, 64), (64, 64)):
        yield call(op, q, k, 64, attn_mask=T(mask), is_causal=False)
    yield call(op, q, k, 64, attn_mask=T((1, 1, 64, 64)))
    yield call(op, q, k, 64, attn_mask=T((1, 1, 64, 64), "float32"), is_causal=False)
    for memory in ("L1", height_sharded([64, 64], 4), height_sharded([64, 96], 4)):
        yield call(op, q, k, 64, memory_config=M(memory))
        yield call(op, T((1, 4, 64, 96), mem=memory), k, 64)
    options: tuple[Options, ...] = (
        {"scale": 0.5},
        *({"compute_kernel_config": given} for given in KERNELS),
        *({"program_config": program(rows, columns)} for rows, columns in (*CHUNKS, *LARGE_CHUNKS)),
    )
    for more in options:
        yield call(op, q, k, 64, **more)
    yield call(op, T((1, 4, 64, 96), host=True), k, 64)
    yield call(op, q, T((1, 1, 64, 96), host=True), 64)


# -- two sequences ----------------------------------------------------------------------------------------------------


def joint() -> Iterator[Case]:
    op = JOINT
    options: dict[str, Any] = {"joint_strategy": "rear", "program_config": program()}
    for first, second in product(
        ((1, 4, 64, 64), (2, 3, 45, 32), (1, 1, 200, 64)), ((1, 4, 32, 64), (2, 3, 20, 32), (1, 1, 1, 64))
    ):
        yield call(op, *[T(first)] * 3, *[T(second)] * 3, **options)
    for shape in (*SHAPES, ()):
        yield call(op, *[T(shape)] * 6, **options)
    a, b = (1, 4, 64, 64), (1, 4, 32, 64)
    for place, shape in product(
        range(6), ((2, 4, 64, 64), (1, 2, 64, 64), (1, 4, 96, 64), (1, 4, 64, 32), (4, 64, 64))
    ):
        tensors = [T(a)] * 3 + [T(b)] * 3
        tensors[place] = T(shape)
        yield call(op, *tensors, **options)
    for dtype, layout in STORABLE:
        yield call(op, *[T(a, dtype, layout)] * 3, *[T(b, dtype, layout)] * 3, **options)
        yield call(op, *[T(a)] * 3, *[T(b, dtype, layout)] * 3, **options)
    for memory in ("L1", height_sharded([64, 64], 4)):
        yield call(op, *[T(a, mem=memory)] * 3, *[T(b)] * 3, **options)
    six = [T(a)] * 3 + [T(b)] * 3
    for rows, columns in (*CHUNKS, *LARGE_CHUNKS):
        yield call(op, *six, joint_strategy="rear", program_config=program(rows, columns))
    for grid in ((1, 1), (2, 4), (9, 9), (0, 0)):
        yield call(op, *six, joint_strategy="rear", program_config=program(grid=grid))
    for given in KERNELS:
        yield call(op, *six, **options, compute_kernel_config=given)
    for strategy in ("front", "", None, 1):
        yield call(op, *six, joint_strategy=strategy, program_config=program())
    yield call(op, *six, **options, scale=0.5)
    yield call(op, *six, **options, memory_config=M("L1"))
    yield call(op, *six, joint_strategy="rear")
    yield call(op, *six, program_config=program())
    yield call(op, *six[:5], **options)
    yield call(op, *six[:3], *[T(b, host=True)] * 3, **options)
