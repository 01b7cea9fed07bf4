"""Operations of chunked prefill on one chip: caches, rotary embeddings, rows and counts of experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    FULL_PRECISION,
    LAYOUTS,
    STORABLE,
    Case,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

PREFILL = "ttnn.experimental.deepseek_prefill"


def cases() -> Iterator[Case]:
    yield from update()
    yield from update_split()
    yield from zero()
    yield from rotary()
    yield from rotary_columns()
    yield from extract_and_insert()
    yield from bincount()
    yield from padding()
    yield from reduce()
    for axis in (0, 1, 2):
        yield call(f"{PREFILL}.offset_cumsum", T((1, 64), "uint32", "ROW_MAJOR"), axis, 1, 8, M("DRAM"))


def number(
    shape: tuple[int, ...] = (1, 1, 1, 1), dtype: str = "uint32", layout: str = "ROW_MAJOR", **more: Any
) -> Case:
    return T(shape, dtype, layout, **more)


def numbers() -> list[Case]:
    """Tensors with one number, in supported and unsupported forms."""
    return [
        number((1,)),
        number((2,)),
        number((1,), "int32"),
        number((1,), layout="TILE"),
        number((1,), mem="L1"),
        number((1, 1), mem=height_sharded([1, 1], 1)),
        number((1,), host=True),
    ]


def update() -> Iterator[Case]:
    op, cache, chunk = f"{PREFILL}.update_padded_kv_cache", T((4, 1, 256, 64)), T((1, 1, 128, 64))
    for dtype, layout in STORABLE:
        yield call(op, T((4, 1, 256, 64), dtype, layout), T((1, 1, 128, 64), dtype, layout), 0, 1, 2, 32, 0)
        yield call(op, cache, T((1, 1, 128, 64), dtype, layout), 0, 1, 2, 32, 0)
    for slot, layer, layers in ((0, 0, 0), (0, 0, 3), (0, 2, 2), (2, 0, 2), (1, 1, 2), (3, 0, 1), (-1, 0, 2)):
        yield call(op, cache, chunk, slot, layer, layers, 0, 0)
    for start, valid in (
        *product((0, 16, 32, 128, 160), (None,)),
        *((160, end) for end in (100, 160, 200, 256, 257, 288)),
        (32, 161),
        (32, 160),
    ):
        yield call(op, cache, chunk, 0, 0, 2, start, 0, valid)
    for axis, other in product((0, 1, 2, None), (None, 0, 1, 2)):
        yield call(op, cache, chunk, 0, 0, 2, 0, axis, tp_axis=other)
    for own, given in (
        ((4, 2, 256, 64), (1, 2, 128, 64)),
        ((4, 1, 256, 64), (1, 2, 128, 64)),
        ((4, 1, 256, 64), (2, 1, 128, 64)),
        ((4, 1, 256, 64), (1, 1, 96, 64)),
        ((4, 1, 256, 64), (1, 1, 100, 64)),
        ((4, 1, 250, 64), (1, 1, 128, 64)),
        ((4, 1, 256, 50), (1, 1, 128, 50)),
        ((4, 1, 256, 50), (1, 1, 128, 64)),
        ((4, 1, 256, 64), (1, 1, 128, 32)),
        ((4, 256, 64), (1, 128, 64)),
    ):
        for layout in LAYOUTS:
            yield call(op, T(own, layout=layout), T(given, layout=layout), 0, 0, 2, 0, 0)
    for mem in ("L1", height_sharded([256, 64], 4), width_sharded([1024, 32], 2)):
        for layout in LAYOUTS:
            yield call(op, T((4, 1, 256, 64), layout=layout, mem=mem), T((1, 1, 128, 64), layout=layout), 0, 0, 2, 0, 0)
    for mem in ("L1", height_sharded([64, 64], 2), block_sharded([64, 32], (2, 2))):
        yield call(op, cache, T((1, 1, 128, 64), mem=mem), 0, 0, 2, 0, 0)
    yield call(op, T((4, 1, 256, 64), host=True), chunk, 0, 0, 2, 0, 0)
    yield call(op, cache, T((1, 1, 128, 64), host=True), 0, 0, 2, 0, 0)
    yield call(op, cache, chunk, 0, 0, 2)
    yield call(op, cache, chunk, 0, 0, 2, 0, 0, scales=T((1, 1, 128, 4), "float32", "ROW_MAJOR"))
    one = number()
    for each in numbers():
        yield call(op, cache, chunk, each, one, 0, 2, 0)
        yield call(op, cache, chunk, each, each, 0, 2, 0, each)
        yield call(op, cache, chunk, one, one, 0, 2, 0, each)
    yield call(op, cache, chunk, one, one, 2, 2, 0)
    yield call(op, cache, chunk, one, one, 0, 2, None, tp_axis=None)
    yield call(op, cache, chunk, one, 0, 0, 2, 0)
    yield call(op, cache, chunk, one, one, 0, 2, 0, 100)


def update_split() -> Iterator[Case]:
    op, cache, rope = f"{PREFILL}.update_padded_kv_cache", T((4, 1, 256, 96), layout="ROW_MAJOR"), T((1, 1, 128, 32))
    latent = T((1, 1, 128, 64))
    yield call(op, cache, latent, 0, 0, 2, 0, 0, rope=rope)
    yield call(op, cache, latent, 0, 0, 2, 160, 0, 200, rope=rope)
    yield call(op, cache, latent, number(), number(), 0, 2, 0, rope=rope)
    yield call(op, T((4, 1, 256, 96)), latent, 0, 0, 2, 0, 0, rope=rope)
    yield call(op, T((4, 1, 256, 64), layout="ROW_MAJOR"), latent, 0, 0, 2, 0, 0, rope=rope)
    for given in (
        T((1, 1, 128, 32), layout="ROW_MAJOR"),
        T((1, 1, 128, 32), "float32"),
        T((1, 1, 96, 32)),
        T((1, 1, 128, 20)),
        T((1, 2, 128, 32)),
        T((1, 1, 128, 32), mem="L1"),
        T((1, 1, 128, 32), mem=height_sharded([64, 32], 2)),
        T((1, 1, 128, 32), host=True),
    ):
        yield call(op, cache, latent, 0, 0, 2, 0, 0, rope=given)
    for given in (T((1, 1, 128, 64), layout="ROW_MAJOR"), T((2, 1, 128, 64)), T((1, 1, 128, 32))):
        yield call(op, cache, given, 0, 0, 2, 0, 0, rope=rope)
    yield call(op, T((4, 2, 256, 64), layout="ROW_MAJOR"), T((1, 2, 128, 32)), 0, 0, 2, 0, 0, rope=T((1, 2, 128, 32)))
    yield call(op, cache, latent, 0, 0, 2, 0, 0, rope=rope, scales=T((1, 1, 128, 4), "float32", "ROW_MAJOR"))
    yield call(op, cache, T((1, 1, 100, 64)), 0, 0, 2, 0, 0, rope=T((1, 1, 100, 32)))


def zero() -> Iterator[Case]:
    op, cache = f"{PREFILL}.zero_padded_kv_cache", T((4, 1, 256, 64))
    for dtype, layout in STORABLE:
        yield call(op, T((4, 1, 256, 64), dtype, layout), 0, 0, 2, 100, 256, 0)
    for step in (0, 32, 64, 100, 512):
        yield call(op, cache, 0, 0, 2, 100, 256, 0, step)
    for chunk, valid in product((0, 96, 100, 128, 256, 512), (100, 256)):
        yield call(op, cache, 0, 0, 2, valid, chunk, 0)
    for slot, layer, layers, valid, axis in (
        (2, 0, 2, 100, 0),
        (0, 2, 2, 100, 0),
        (0, 0, 3, 100, 0),
        (0, 0, 0, 100, 0),
        (0, 0, 2, 257, 0),
        (0, 0, 2, 0, 1),
        (0, 0, 2, 100, 2),
        (0, 0, 2, -1, 0),
    ):
        yield call(op, cache, slot, layer, layers, valid, 256, axis)
    for shape in ((4, 2, 256, 64), (4, 1, 250, 64), (4, 1, 256, 50), (4, 256, 64)):
        for layout in LAYOUTS:
            yield call(op, T(shape, layout=layout), 0, 0, 2, 100, 256, 0)
    for mem in ("L1", height_sharded([256, 64], 4), width_sharded([1024, 32], 2)):
        yield call(op, T((4, 1, 256, 64), mem=mem), 0, 0, 2, 100, 256, 0)
    yield call(op, T((4, 1, 256, 64), host=True), 0, 0, 2, 100, 256, 0)
    for each in numbers():
        yield call(op, cache, each, number(), 0, 2, 256, 0)
        yield call(op, cache, each, each, 0, 2, 256, 0)
    yield call(op, T((4, 1, 256, 64), layout="ROW_MAJOR"), number(), number(), 0, 2, 256, 0)


def rotary() -> Iterator[Case]:
    op, x, cos, turn = f"{PREFILL}.rotary_embedding_indexed", T((1, 2, 128, 64)), T((1, 1, 256, 64)), T((1, 1, 32, 32))
    for position in (0, 16, 32, 128, 160, -32):
        yield call(op, x, cos, cos, turn, position, 0)
    for axis, other in product((0, 1, 2), (None, 0, 1, 2)):
        yield call(op, x, cos, cos, turn, 0, axis, seq_subshard_axis=other)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 128, 64), dtype, layout), cos, cos, turn, 0, 0)
        angles = T((1, 1, 256, 64), dtype, layout)
        yield call(op, x, angles, angles, turn, 0, 0)
        yield call(op, x, cos, angles, turn, 0, 0)
        yield call(op, x, cos, cos, T((1, 1, 32, 32), dtype, layout), 0, 0)
    for shape in ((1, 2, 100, 64), (1, 2, 128, 50), (2, 2, 128, 64), (2, 128, 64), (1, 16, 128, 64), (1, 2, 0, 64)):
        yield call(op, T(shape), cos, cos, turn, 0, 0)
    for shape in ((1, 2, 256, 64), (1, 3, 256, 64), (2, 1, 256, 64), (1, 1, 250, 64), (1, 1, 96, 64), (1, 256, 64)):
        yield call(op, x, T(shape), T(shape), turn, 0, 0)
        yield call(op, x, cos, T(shape), turn, 0, 0)
    for shape in ((1, 1, 64, 64), (32, 32), (1, 1, 20, 20)):
        yield call(op, x, cos, cos, T(shape), 0, 0)
    for mem in ("L1", height_sharded([64, 64], 4), height_sharded([128, 64], 4)):
        yield call(op, x, cos, cos, turn, 0, 0, M(mem))
        yield call(op, T((1, 2, 128, 64), mem=mem), cos, cos, turn, 0, 0)
        yield call(op, x, T((1, 1, 256, 64), mem=mem), cos, turn, 0, 0)
    for width, config in product((160, 256, 512), (None, FULL_PRECISION)):
        wide = T((1, 1, 256, width))
        yield call(op, T((1, 2, 128, width)), wide, wide, turn, 0, 0, compute_kernel_config=config)
    for each in numbers():
        yield call(op, x, cos, cos, turn, each, 0)
    yield call(op, x, T((1, 1, 256, 64), host=True), cos, turn, 0, 0)


def rotary_columns() -> Iterator[Case]:
    op, x, turn = f"{PREFILL}.rotary_embedding_indexed", T((1, 2, 128, 64)), T((1, 1, 32, 32))
    for width, dim, offset in product((32, 64), (None, 0, 32, 48, 64), (0, 16, 32, 64)):
        angles = T((1, 1, 256, width))
        yield call(op, x, angles, angles, turn, 0, 0, rotary_dim=dim, rotary_offset=offset)
    for shape, width, dim in (((1, 2, 128, 50), 64, 64), ((1, 2, 128, 50), 32, 32), ((1, 2, 128, 64), 20, 32)):
        angles = T((1, 1, 256, width))
        yield call(op, T(shape), angles, angles, turn, 0, 0, rotary_dim=dim)
    cos = T((1, 1, 256, 64))
    for prefix in (
        T((1, 2, 128, 32)),
        T((1, 2, 128, 20)),
        T((1, 1, 128, 32)),
        T((1, 2, 100, 32)),
        T((2, 128, 32)),
        T((1, 2, 128, 32), "float32"),
        T((1, 2, 128, 32), layout="ROW_MAJOR"),
        T((1, 2, 128, 32), mem="L1"),
        T((1, 2, 128, 32), mem=height_sharded([64, 32], 4)),
        T((1, 2, 128, 32), host=True),
    ):
        yield call(op, x, cos, cos, turn, 0, 0, concat_prefix=prefix)
    odd = T((1, 1, 256, 50))
    yield call(op, T((1, 2, 128, 50)), odd, odd, turn, 0, 0, concat_prefix=T((1, 2, 128, 32)))
    yield call(op, T((1, 2, 100, 64)), cos, cos, turn, 0, 0, concat_prefix=T((1, 2, 100, 32)))


def places() -> list[Case]:
    """Rows of indices in which a kernel looks up experts."""
    return [
        T((8,), "uint32", "ROW_MAJOR"),
        T((1, 8), "uint32", "ROW_MAJOR"),
        T((2, 8), "uint32", "ROW_MAJOR"),
        T((1, 1, 8), "uint32", "ROW_MAJOR"),
        T((7,), "uint32", "ROW_MAJOR"),
        T((8,), "int32", "ROW_MAJOR"),
        T((8,), "uint32"),
        T((8,), "uint32", "ROW_MAJOR", "L1"),
        T((8,), "uint32", "ROW_MAJOR", host=True),
    ]


def extract_and_insert() -> Iterator[Case]:
    take, put = f"{PREFILL}.extract", f"{PREFILL}.insert"
    rows, own, of = T((256, 64), "bfloat8_b"), T((128, 64), "bfloat8_b"), T((8,), "uint32", "ROW_MAJOR")
    table = T((4,), "uint32", "ROW_MAJOR")
    most: dict[str, Any] = {"local_expert_id": 0, "max_dispatched_tokens_per_expert": 128}
    for dtype, layout in STORABLE:
        yield call(take, T((256, 64), dtype, layout), of, of, table, **most)
        yield call(put, T((256, 64), dtype, layout), T((128, 64), dtype, layout), of, of, table, local_expert_id=0)
        yield call(put, rows, T((128, 64), dtype, layout), of, of, table, local_expert_id=0)
    for shape in ((1, 256, 64), (250, 64), (256, 60), (0, 64), (512, 64)):
        yield call(take, T(shape), of, of, table, **most)
        yield call(put, T(shape), T((128, 64)), of, of, table, local_expert_id=0)
        yield call(put, T((256, 64)), T(shape), of, of, table, local_expert_id=0)
    for mem in ("L1", height_sharded([64, 64], 4)):
        yield call(take, T((256, 64), mem=mem), of, of, table, **most)
        yield call(put, T((256, 64), mem=mem), T((128, 64)), of, of, table, local_expert_id=0)
        yield call(put, T((256, 64)), T((256, 64), mem=mem), of, of, table, local_expert_id=0)
    for each in places():
        yield call(take, rows, each, of, table, **most)
        yield call(take, rows, of, each, table, **most)
        yield call(put, rows, own, each, each, each, local_expert_id=0)
    for expert in (-1, 3, 4):
        yield call(take, rows, of, of, table, local_expert_id=expert, max_dispatched_tokens_per_expert=128)
        yield call(put, rows, own, of, of, table, local_expert_id=expert)
    for count in (0, 100, 32, 512):
        yield call(take, rows, of, of, table, local_expert_id=0, max_dispatched_tokens_per_expert=count)
    yield call(take, T((256, 64), host=True), of, of, table, **most)
    yield call(put, rows, T((128, 32), "bfloat8_b"), of, of, table, local_expert_id=0)


def bincount() -> Iterator[Case]:
    op, chosen, table = f"{PREFILL}.masked_bincount", T((128, 8), "uint16"), T((64,), "int32", "ROW_MAJOR")
    for experts, columns in ((64, 8), (64, 4), (64, 9), (64, 0), (0, 8), (65, 8), (60, 8), (-1, 8)):
        yield call(op, chosen, table, experts, columns)
    for dtype, layout in STORABLE:
        yield call(op, T((128, 8), dtype, layout), table, 64, 8)
        yield call(op, chosen, T((64,), dtype, layout), 64, 8)
    for shape in ((100, 8), (64, 8), (4096, 8), (128, 40), (1, 128, 8), (0, 8)):
        yield call(op, T(shape, "uint16"), table, 64, 8)
    for columns in (16, 17):
        yield call(op, T((128, 32), "uint16"), table, 64, columns)
    for shape in ((1, 64), (2, 64), (1, 1, 64), (64, 1), (100,)):
        yield call(op, chosen, T(shape, "int32", "ROW_MAJOR"), 64, 8)
    for mem in ("L1", height_sharded([32, 32], 4)):
        yield call(op, T((128, 8), "uint16", mem=mem), table, 64, 8)
    yield call(op, T((128, 8), "uint16", host=True), table, 64, 8)
    yield call(op, chosen, T((64,), "int32", "ROW_MAJOR", host=True), 64, 8)


def padding() -> Iterator[Case]:
    op, config = f"{PREFILL}.moe_padding_config", T((1, 2), "uint32", "ROW_MAJOR")
    for tokens, side, axis in product((0, 64, -64), (0, 1, 2), (0, 1, 2)):
        yield call(op, config, number(), number(), tokens, side, axis)
    for shape in ((1, 1), (1, 5), (3, 5), (2,), (1, 1, 1, 2)):
        yield call(op, T(shape, "uint32", "ROW_MAJOR"), number(), number(), 64, 0, 0)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2), dtype, layout), number(), number(), 64, 0, 0)
    for mem in ("L1", height_sharded([1, 2], 1)):
        yield call(op, T((1, 2), "uint32", "ROW_MAJOR", mem), number(), number(), 64, 0, 0)
    for each in numbers():
        yield call(op, config, each, number(), 64, 0, 0)
        yield call(op, config, each, each, 64, 0, 0)
    yield call(op, T((1, 2), "uint32", "ROW_MAJOR", host=True), number(), number(), 64, 0, 0)


def reduce() -> Iterator[Case]:
    op = f"{PREFILL}.post_combine_reduce"

    def outputs(*shape: int, **more: Any) -> Case:
        return T(shape, layout="ROW_MAJOR", **more)

    x, weights = outputs(1, 1, 64, 8, 128), outputs(1, 1, 64, 8, 1)
    chosen, table = T((1, 1, 64, 8), "uint16", "ROW_MAJOR"), T((64,), "int32", "ROW_MAJOR")
    for given in ((), (chosen, table), (chosen,), (None, table)):
        yield call(op, x, weights, *given)
    for dim in (-1, 0, 2, 3, 4, 5):
        yield call(op, x, weights, expert_dim=dim)
    for mem in ("DRAM", height_sharded([32, 128], 2), height_sharded([64, 128], 2), height_sharded([32, 64], 2)):
        yield call(op, x, weights, output_memory_config=M(mem))
    for lead in ((1, 64), (64,), (), (1, 1, 50), (1, 1, 32), (2, 3, 64)):
        for experts in (1, 8, 20):
            made = outputs(*lead, experts, 1024), outputs(*lead, experts, 1)
            yield call(op, *made, expert_dim=len(lead))
    for width in (7168, 1024, 1000, 96, 2880, 9216):
        yield call(op, outputs(1, 1, 64, 8, width), weights)
    for shape in ((1, 1, 64, 8, 2), (1, 1, 64, 4, 1), (1, 64, 8, 1)):
        yield call(op, x, outputs(*shape))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 64, 8, 128), dtype, layout), weights)
        yield call(op, x, T((1, 1, 64, 8, 1), dtype, layout))
        yield call(op, x, weights, T((1, 1, 64, 8), dtype, layout), table)
        yield call(op, x, weights, chosen, T((64,), dtype, layout))
    yield call(op, x, weights, chosen, T((1, 64), "int32", "ROW_MAJOR"))
    yield call(op, x, weights, T((2, 3), "uint16", "ROW_MAJOR"), table)
    for mem in ("L1", height_sharded([64, 128], 8)):
        yield call(op, outputs(1, 1, 64, 8, 128, mem=mem), weights)
    yield call(op, outputs(1, 1, 64, 8, 128, host=True), weights)
