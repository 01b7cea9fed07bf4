"""Decode attention: one token per user, contiguous or paged caches, separate or latent values."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    STORABLE,
    C,
    Case,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

from .attention import KERNELS, Options, indices, program

DECODE = "ttnn.transformer.scaled_dot_product_attention_decode"
PAGED = "ttnn.transformer.paged_scaled_dot_product_attention_decode"
MLA_DECODE = "ttnn.transformer.flash_multi_latent_attention_decode"
PAGED_MLA = "ttnn.transformer.paged_flash_multi_latent_attention_decode"

EXTRAS: tuple[Options, ...] = (
    {"is_causal": False},
    {"attn_mask": T((2, 1, 8, 128))},
    {"scale": 0.5},
    {"sliding_window_size": 40},
    {"attention_sink": T((32, 32))},
    {"attention_sink": T((4, 4, 4))},
    {"memory_config": M("L1")},
    {"memory_config": M(height_sharded([32, 64], 2))},
    {"memory_config": M(width_sharded([64, 32], 2))},
    *({"compute_kernel_config": given} for given in KERNELS),
    *({"program_config": program(32, size)} for size in (0, 32, 64, 128, 256, 48, 33)),
    {"program_config": program(32, 32, grid=(1, 1))},
    {"program_config": program(32, 32, max_cores_per_head_batch=0)},
)


def cases() -> Iterator[Case]:
    for family in (decode, decode_masks, decode_programs, paged, paged_options, latent_decode, paged_latent_decode):
        yield from family()


# Positions of two users: of other shapes, dtypes and layouts, and on the host.
UNUSUAL_POSITIONS = (
    indices(1),
    indices(3),
    indices(1, 2),
    indices(2, 1),
    indices(2, dtype="uint32"),
    indices(2, dtype="float32"),
    indices(2, layout="TILE"),
    indices(2, host=True),
)


def decode() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = DECODE
    q, k, grouped = T((1, 2, 8, 64)), T((2, 1, 128, 64)), T((2, 2, 128, 64))
    for position in ([5, 6], [127, 0], [5], [5, 128], [5, 6, 7], [], [-1, 5], "x"):
        yield call(op, q, k, k, cur_pos=position)
        yield call(op, q, grouped, grouped, cur_pos=position)
    for positions in (indices(2), *UNUSUAL_POSITIONS, indices(2, mem="L1")):
        yield call(op, q, k, k, cur_pos_tensor=positions)
    yield call(op, q, k, k, cur_pos=[5, 6], cur_pos_tensor=indices(2))
    yield call(op, q, k, k)
    options: Options = {"cur_pos": [5, 6]}
    for shape in (
        (1, 2, 32, 64),
        (1, 2, 16, 64),
        (1, 2, 17, 64),
        (1, 2, 40, 64),
        (1, 2, 1, 64),
        (1, 3, 8, 64),
        (2, 2, 8, 64),
    ):
        yield call(op, T(shape), k, k, **options)
        yield call(op, T(shape), k, k, is_causal=False)
    for shape in ((1, 2, 8, 32), (1, 2, 8, 48), (2, 8, 64), (8, 64), (1, 1, 2, 8, 64), ()):
        yield call(op, T(shape), k, k, **options)
    for shape in (
        (2, 1, 64, 64),
        (2, 1, 96, 64),
        (2, 1, 45, 64),
        (2, 1, 2048, 64),
        (2, 4, 128, 64),
        (2, 3, 128, 64),
        (2, 8, 128, 64),
        (1, 1, 128, 64),
        (3, 1, 128, 64),
        (2, 1, 128, 48),
        (2, 128, 64),
    ):
        yield call(op, q, T(shape), T(shape), **options)
        yield call(op, q, T(shape), T(shape), **options, program_config=program())
        yield call(op, q, T(shape), T(shape), is_causal=False, program_config=program())
    yield call(op, q, k, T((2, 1, 64, 64)), **options)
    yield call(op, q, k, grouped, **options)
    yield call(op, q, k, T((2, 1, 128, 32)), **options)
    yield call(op, T((1, 2, 8, 48)), T((2, 1, 128, 48)), T((2, 1, 128, 48)), **options)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 8, 64), dtype, layout), k, k, **options)
        yield call(op, T((1, 2, 8, 64), dtype, layout), grouped, grouped, **options)
        yield call(op, q, T((2, 1, 128, 64), dtype, layout), T((2, 1, 128, 64), dtype, layout), **options)
    sharded = height_sharded([32, 64], 2)
    for memory in ("DRAM", "L1", sharded, width_sharded([64, 32], 2), block_sharded([32, 32], (2, 2))):
        yield call(op, q, k, k, **options, memory_config=M(memory))
        yield call(op, q, grouped, grouped, **options, memory_config=M(memory))
        yield call(op, T((1, 2, 32, 64), mem=memory), k, k, **options)
        yield call(op, T((1, 2, 32, 64), mem=memory), k, k, **options, memory_config=M(sharded))
        yield call(op, q, T((2, 1, 128, 64), mem="L1"), k, **options)
    rows = T((1, 2, 32, 64), layout="ROW_MAJOR", mem=sharded)
    yield call(op, rows, k, k, **options)
    yield call(op, rows, k, k, **options, memory_config=M(sharded))


def decode_masks() -> Iterator[Case]:
    op = DECODE
    shape: tuple[int, ...]
    q, k = T((1, 2, 8, 64)), T((2, 1, 128, 64))
    options: Options = {"cur_pos": [5, 6]}
    for shape in (
        (2, 1, 8, 128),
        (1, 1, 8, 128),
        (2, 1, 32, 128),
        (2, 1, 8, 64),
        (2, 2, 8, 128),
        (8, 128),
        (2, 1, 8, 100),
    ):
        yield call(op, q, k, k, is_causal=False, attn_mask=T(shape))
        yield call(op, q, k, k, is_causal=False, attn_mask=T(shape), program_config=program(32, 64))
    for dtype, layout in STORABLE:
        yield call(op, q, k, k, is_causal=False, attn_mask=T((2, 1, 8, 128), dtype, layout))
    yield call(op, q, k, k, is_causal=False, attn_mask=T((2, 1, 8, 128), mem="L1"))
    yield call(op, q, k, k, is_causal=False, attn_mask=T((2, 1, 8, 128), host=True))
    yield call(op, q, k, k, **options, attn_mask=T((2, 1, 8, 128)))
    for shape in ((32, 32), (8, 1), (8, 32), (32, 1), (64, 32), (8, 33), (1, 8, 1, 1), (8,)):
        yield call(op, q, k, k, **options, attention_sink=T(shape))
    for dtype, layout in STORABLE:
        yield call(op, q, k, k, **options, attention_sink=T((32, 32), dtype, layout))
    yield call(op, q, k, k, **options, attention_sink=T((32, 32), mem="L1"))


def decode_programs() -> Iterator[Case]:
    op = DECODE
    q, k = T((1, 2, 8, 64)), T((2, 1, 128, 64))
    options: Options = {"cur_pos": [5, 6]}
    grouped, sharded = T((2, 2, 128, 64)), height_sharded([32, 64], 2)
    for size in (0, 32, 64, 128, 256, 48, 96, 16, 33):
        yield call(op, q, k, k, **options, program_config=program(32, size))
        yield call(op, q, k, k, is_causal=False, program_config=program(32, size))
    for given in (
        program(grid=(1, 1)),
        program(grid=(2, 1)),
        program(grid=(9, 9)),
        program(grid=(0, 0)),
        program(max_cores_per_head_batch=1),
        program(max_cores_per_head_batch=0),
        program(max_cores_per_head_batch=64),
        program(exp_approx_mode=False),
        program(grid=(4, 4), sub_core_grids=G([0, 0, 3, 3])),
        program(grid=(4, 2), sub_core_grids=G([0, 0, 3, 3])),
    ):
        yield call(op, q, k, k, **options, program_config=given)
        yield call(op, q, grouped, grouped, **options, program_config=given)
        yield call(op, T((1, 2, 32, 64), mem=sharded), k, k, **options, program_config=given)
    for given in KERNELS:
        yield call(op, q, k, k, **options, compute_kernel_config=given)
    one = T((1, 1, 128, 64))
    for shared in (True, False, None):
        yield call(op, q, k, k, **options, share_cache=shared)
        yield call(op, q, one, one, **options, share_cache=shared)
        yield call(op, T((1, 1, 8, 64)), one, one, cur_pos=[5], share_cache=shared)
    for window, causal in product((0, 1, 40, 1000, -1), (True, False)):
        yield call(op, q, k, k, is_causal=causal, **(options if causal else {}), sliding_window_size=window)
    for scale in (0.5, 0.0, None, "x"):
        yield call(op, q, k, k, **options, scale=scale)
    users = [5] * 65
    yield call(op, T((1, 64, 8, 64)), T((64, 1, 64, 64)), T((64, 1, 64, 64)), cur_pos=users[:64])
    yield call(op, T((1, 65, 8, 64)), T((65, 1, 64, 64)), T((65, 1, 64, 64)), cur_pos=users)
    yield call(op, T((1, 32, 32, 128)), T((32, 8, 1024, 128)), T((32, 8, 1024, 128)), cur_pos=users[:32])
    yield call(op, T((1, 2, 8, 64), host=True), k, k, **options)
    yield call(op, q, T((2, 1, 128, 64), host=True), k, **options)
    yield call(op, q, k, **options)


def paged() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = PAGED
    q, cache, grouped = T((1, 2, 8, 64)), T((8, 1, 32, 64)), T((8, 2, 32, 64))
    pages = indices(2, 4)
    options: Options = {"cur_pos_tensor": indices(2)}
    for each, more in product((cache, grouped), (options, {}, {"is_causal": False}, {"is_causal": False, **options})):
        yield call(op, q, each, each, pages, **more)
        yield call(op, q, each, each, pages, **more, program_config=program(32, 64))
        yield call(op, q, each, each, pages, **more, program_config=program(0, 0))
    for shape in ((2, 4), (2, 1), (2, 5), (3, 4), (1, 4), (2, 8), (8,), (1, 2, 4)):
        yield call(op, q, cache, cache, indices(*shape), **options)
        yield call(op, q, cache, cache, indices(*shape), is_causal=False)
    for positions in UNUSUAL_POSITIONS:
        yield call(op, q, cache, cache, pages, cur_pos_tensor=positions)
    yield call(op, q, cache, cache, indices(3, 4), cur_pos_tensor=indices(3))
    for dtype, layout in STORABLE:
        yield call(op, q, cache, cache, T((2, 4), dtype, layout), **options)
        yield call(op, q, T((8, 1, 32, 64), dtype, layout), T((8, 1, 32, 64), dtype, layout), pages, **options)
        yield call(op, T((1, 2, 8, 64), dtype, layout), cache, cache, pages, **options)
    for k, v in (
        ((8, 1, 64, 64), (8, 1, 64, 64)),
        ((8, 1, 16, 64), (8, 1, 16, 64)),
        ((8, 1, 48, 64), (8, 1, 48, 64)),
        ((8, 1, 32, 64), (8, 1, 64, 64)),
        ((8, 1, 32, 32), (8, 1, 32, 32)),
        ((8, 1, 32, 64), (8, 2, 32, 64)),
        ((8, 3, 32, 64), (8, 3, 32, 64)),
        ((8, 8, 32, 64), (8, 8, 32, 64)),
        ((8, 32, 64), (8, 32, 64)),
    ):
        yield call(op, q, T(k), T(v), pages, **options)


def paged_options() -> Iterator[Case]:
    op = PAGED
    q, cache, grouped = T((1, 2, 8, 64)), T((8, 1, 32, 64)), T((8, 2, 32, 64))
    pages = indices(2, 4)
    options: Options = {"cur_pos_tensor": indices(2)}
    geometries: tuple[Options, ...] = (
        {"block_size": 32, "num_kv_heads": 1},
        {"block_size": 32, "num_kv_heads": 2},
        {"block_size": 64, "num_kv_heads": 1},
        {"block_size": 0, "num_kv_heads": 1},
        {"block_size": 32, "num_kv_heads": 0},
        {},
    )
    for each in geometries:
        given = C("PagedCacheGeometryOverride", **each)
        yield call(op, q, cache, cache, pages, **options, paged_cache_geometry=given)
        yield call(op, q, grouped, grouped, pages, **options, paged_cache_geometry=given)
    for modulo, window in product((32, 64, 48, 0, 128), (None, 40, 100)):
        yield call(op, q, cache, cache, pages, **options, cache_position_modulo=modulo, sliding_window_size=window)
    for count, heads, places in ((1, 8, 2), (1, 32, 2), (2, 64, 4), (2, 64, 2), (2, 40, 4), (2, 32, 4), (3, 64, 6)):
        yield call(
            op, T((1, 2, heads, 64)), cache, cache, pages, cur_pos_tensor=indices(places), spec_multi_pos_tiles=count
        )
    yield call(op, T((1, 2, 64, 64)), cache, cache, pages, is_causal=False, spec_multi_pos_tiles=2)
    yield call(op, T((1, 2, 64, 64)), cache, cache, pages, cur_pos_tensor=indices(4), spec_multi_pos_tiles=2,
               program_config=program(0, 0))  # fmt: skip
    for shape in ((2, 1, 8, 128), (1, 1, 8, 128), (2, 1, 32, 128), (2, 1, 8, 64)):
        yield call(op, q, cache, cache, pages, is_causal=False, attn_mask=T(shape))
        yield call(op, q, cache, cache, pages, **options, attn_mask=T(shape))
    extras: tuple[Options, ...] = (
        {"scale": 0.5},
        {"sliding_window_size": 40},
        {"attention_sink": T((32, 32))},
        {"attention_sink": T((8, 1, 1, 1))},
        {"memory_config": M("L1")},
        {"memory_config": M(height_sharded([32, 64], 2))},
        *({"compute_kernel_config": given} for given in KERNELS),
        *({"program_config": program(32, size)} for size in (32, 64, 128, 256, 48, 33)),
        {"program_config": program(32, 32, grid=(1, 1))},
        {"program_config": program(32, 32, max_cores_per_head_batch=2)},
    )
    for more in extras:
        yield call(op, q, cache, cache, pages, **options, **more)
    yield call(op, q, cache, cache, indices(2, 4, host=True), **options)
    yield call(op, q, cache, cache, **options)


def latent_decode() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = MLA_DECODE
    q, k, v = T((1, 2, 8, 96)), T((2, 1, 128, 96)), T((2, 1, 128, 64))
    options: Options = {"cur_pos": [5, 6]}
    for given, width in product((None, v), (64, 32, 96, 48, 128, 0, -1, "x")):
        yield call(op, q, k, given, width, **options)
    for shape in ((2, 1, 128, 96), (2, 1, 64, 64), (2, 2, 128, 64), (1, 1, 128, 64), (2, 128, 64)):
        yield call(op, q, k, T(shape), shape[-1], **options)
    for shape in ((2, 2, 128, 96), (2, 1, 45, 96), (2, 1, 96, 96), (1, 1, 128, 96), (2, 1, 128, 64), (2, 128, 96)):
        yield call(op, q, T(shape), None, 64, **options)
        yield call(op, q, T(shape), None, 64, **options, program_config=program())
    for shape in ((1, 2, 32, 96), (1, 2, 40, 96), (1, 3, 8, 96), (2, 2, 8, 96), (2, 8, 96)):
        yield call(op, T(shape), k, None, 64, **options)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 8, 96), dtype, layout), k, None, 64, **options)
        yield call(op, q, T((2, 1, 128, 96), dtype, layout), None, 64, **options)
    for more in EXTRAS:
        yield call(op, q, k, None, 64, **{**options, **more})
        yield call(op, q, k, v, 64, **{**options, **more})
    for positions in (indices(2), indices(3), indices(1), indices(2, dtype="uint32"), indices(2, layout="TILE")):
        yield call(op, q, k, None, 64, cur_pos_tensor=positions)
    yield call(op, q, k, None, 64)
    yield call(op, q, k, None, 64, cur_pos=[5])
    yield call(op, q, k, None, 64, cur_pos=[5, 500])


def paged_latent_decode() -> Iterator[Case]:
    shape: tuple[int, ...]
    op = PAGED_MLA
    q = T((1, 2, 8, 96))
    cache, values, pages = T((8, 1, 32, 96)), T((8, 1, 32, 64)), indices(2, 4)
    options: Options = {"cur_pos_tensor": indices(2)}
    for given, width in product((None, values), (64, 32, 96, 48, 128, 0, "x")):
        yield call(op, q, cache, given, width, pages, **options)
    for shape in ((8, 2, 32, 96), (8, 1, 64, 96), (8, 1, 16, 96), (8, 1, 32, 64), (8, 32, 96)):
        yield call(op, q, T(shape), None, 64, pages, **options)
        yield call(op, q, T(shape), None, 64, pages, **options, program_config=program())
    for shape in ((2, 1), (3, 4), (1, 4), (8,), (1, 2, 4)):
        yield call(op, q, cache, None, 64, indices(*shape), **options)
    for dtype, layout in STORABLE:
        yield call(op, q, T((8, 1, 32, 96), dtype, layout), None, 64, pages, **options)
        yield call(op, q, cache, None, 64, T((2, 4), dtype, layout), **options)
    for more in EXTRAS:
        yield call(op, q, cache, None, 64, pages, **{**options, **more})
        yield call(op, q, cache, values, 64, pages, **{**options, **more})
    for positions in (indices(3), indices(1), indices(2, dtype="uint32"), indices(2, layout="TILE")):
        yield call(op, q, cache, None, 64, pages, cur_pos_tensor=positions)
    yield call(op, q, cache, None, 64, pages)
