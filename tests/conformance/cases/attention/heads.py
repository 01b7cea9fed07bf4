"""Attention heads: split, concatenated, in decode mode, and for specific models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ttnn_emulator.conformance.case import (
    SHAPES,
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

CONFIGS: tuple[Any, ...] = (
    "DRAM",
    "L1",
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
    {"layout": "WIDTH_SHARDED", "buffer": "L1"},
    {"layout": "BLOCK_SHARDED", "buffer": "L1"},
)
EXPERIMENTAL = "ttnn.experimental."


def cases() -> Iterator[Case]:
    for family in (
        split_heads,
        concatenate,
        nlp_concat,
        nlp_create,
        fixed_models,
        segformer,
        bert,
        create_on_shards,
        create_from_separate,
        boltz,
        concat_decode,
        create_decode,
        split_query,
        load_slice,
    ):
        yield from family()


def common(op: str, good: Sequence[int], *args: Any, **kwargs: Any) -> Iterator[Case]:
    """Dtypes, layouts, storage types and ranks of variants of a valid shape."""
    for dtype, layout in STORABLE:
        yield call(op, T(good, dtype, layout), *args, **kwargs)
    for memory in CONFIGS:
        yield call(op, T(good), *args, memory_config=M(memory), **kwargs)
    yield call(op, T(good, mem="L1"), *args, **kwargs)
    yield call(op, T(good, host=True), *args, **kwargs)
    for shape in SHAPES:
        yield call(op, T(shape), *args, **kwargs)


# -- what models call -------------------------------------------------------------------------------------------------


def split_heads() -> Iterator[Case]:
    op = "ttnn.transformer.split_query_key_value_and_split_heads"
    yield from common(op, (2, 64, 384), num_heads=2)
    for length, transposed in product((1, 32, 50, 96), (True, False)):
        yield call(op, T((2, length, 768)), num_heads=4, transpose_key=transposed)
        yield call(op, T((1, length, 1024)), num_heads=4, num_kv_heads=2, transpose_key=transposed)
        yield call(op, T((3, length, 384), "bfloat8_b"), num_heads=4, num_kv_heads=4, transpose_key=transposed)
    for width in (96, 190, 192, 200, 288, 576):
        yield call(op, T((1, 64, width)), num_heads=2)
    for heads, kv_heads in product((1, 2, 4, 7), (None, 1, 2, 3)):
        yield call(op, T((1, 32, 512)), num_heads=heads, num_kv_heads=kv_heads)
    for kv_shape in ((2, 50, 512), (2, 50, 256), (2, 50, 500), (1, 50, 512), (2, 64, 512), (50, 512), (2, 1, 50, 512)):
        for kv_heads in (None, 2):
            yield call(op, T((2, 50, 256)), T(kv_shape), num_heads=4, num_kv_heads=kv_heads)
    yield call(op, T((2, 50, 256)), T((2, 50, 512), "float32"), num_heads=4)
    yield call(op, T((2, 50, 256)), T((2, 50, 512), layout="ROW_MAJOR"), num_heads=4)
    yield call(op, T((2, 50, 256)), T((2, 50, 512), host=True), num_heads=4)
    yield call(op, T((2, 50, 256), mem="L1"), T((2, 50, 512)), num_heads=4, memory_config=M("DRAM"))
    for grid, shard in (((2, 2), [32, 192]), ((1, 2), [32, 384]), ((2, 1), [64, 192]), ((3, 2), [32, 128])):
        for orient, memory in product(("ROW_MAJOR", "COL_MAJOR"), CONFIGS):
            sharded = T((2, 32, 384), mem=block_sharded(shard, grid, orient=orient))
            yield call(op, sharded, num_heads=2, memory_config=M(memory))
        yield call(op, T((2, 32, 384), mem=block_sharded(shard, grid)), num_heads=2)
    yield call(op, T((2, 32, 384), mem=height_sharded([32, 384], 2)), num_heads=2)
    yield call(op, T((2, 32, 384), mem=width_sharded([64, 192], 2)), num_heads=2)
    sharded = T((2, 32, 384), mem=block_sharded([32, 192], (2, 2)))
    yield call(op, sharded, T((2, 32, 384)), num_heads=2, memory_config=M(CONFIGS[2]))
    for transposed, kv_heads, width in product((True, False), (None, 1), (4672, 4608)):
        kwargs = {"num_heads": 71, "num_kv_heads": kv_heads, "transpose_key": transposed}
        yield call(op, T((1, 32, width)), use_falcon7b_backend=True, **kwargs)
    yield call(op, T((2, 50, 4672)), num_heads=71, num_kv_heads=1, transpose_key=False, use_falcon7b_backend=True)
    yield call(op, T((1, 32, 384)))
    yield call(op, T((1, 32, 384)), num_heads=2.5)
    yield call(op, T((1, 32, 384)), num_heads=-2)
    yield call(op, T((1, 32, 384)), num_heads=2, transpose_key=None)


def concatenate() -> Iterator[Case]:
    op = "ttnn.transformer.concatenate_heads"
    yield from common(op, (2, 4, 64, 64))
    for batch, heads, length, width in product((1, 3), (1, 5), (1, 33, 64), (32, 40, 96)):
        yield call(op, T((batch, heads, length, width)))
    for dtype in ("float32", "bfloat8_b"):
        yield call(op, T((2, 3, 50, 64), dtype), memory_config=M("L1"))
    yield from _sharded_heads(op)
    yield call(op, T((1, 2, 3, 32, 64)))
    yield call(op, T((4, 32, 64)))
    yield call(op)
    yield call(op, T((1, 2, 32, 64)), memory_config="DRAM")


def _sharded_heads(op: str) -> Iterator[Case]:
    for cores, rows in ((4, 32), (2, 64), (1, 128), (8, 32), (3, 64)):
        for memory in CONFIGS:
            yield call(op, T((1, 4, 32, 64), mem=height_sharded([rows, 64], cores)), memory_config=M(memory))
        yield call(op, T((1, 4, 32, 64), mem=height_sharded([rows, 64], cores)))
        yield call(op, T((2, 4, 64, 64), mem=height_sharded([rows, 64], 16)), memory_config=M(CONFIGS[4]))
    for memory in (*CONFIGS, width_sharded([32, 64], 4)):
        yield call(op, T((2, 4, 32, 64), mem=block_sharded([64, 64], (1, 4))), memory_config=M(memory))
        yield call(op, T((1, 4, 32, 64), mem=width_sharded([128, 32], 2)), memory_config=M(memory))


def nlp_concat() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_concat_heads"
    yield from common(op, (2, 4, 64, 64))
    for batch, heads, length, width in product((1, 3), (1, 5), (1, 33, 64), (32, 40)):
        yield call(op, T((batch, heads, length, width)))
    yield from _sharded_heads(op)
    yield call(op, T((1, 2, 3, 32, 64)))
    yield call(op)


def nlp_create() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_create_qkv_heads"
    yield from common(op, (2, 1, 64, 384), num_heads=2)
    for length, transposed, tied in product((1, 50, 64), (True, False), (True, False)):
        kwargs = {"transpose_k_heads": transposed, "kv_tied": tied}
        yield call(op, T((2, 1, length, 768)), num_heads=4, **kwargs)
        yield call(op, T((1, 1, length, 1024)), num_heads=4, num_kv_heads=2, **kwargs)
        yield call(op, T((1, 1, length, 320), "bfloat8_b"), num_heads=3, num_kv_heads=2, **kwargs)
        yield call(op, T((1, 1, length, 256), "float32"), T((1, 1, length, 512), "float32"), num_heads=4, **kwargs)
        yield call(op, T((1, 1, length, 256)), T((1, 1, length, 128)), num_heads=4, num_kv_heads=2, **kwargs)
    for width in (96, 120, 144, 190, 200, 288):
        yield call(op, T((1, 1, 64, width)), num_heads=2)
        yield call(op, T((1, 1, 64, width)), num_heads=1, num_kv_heads=1, kv_tied=True)
    yield call(op, T((1, 2, 64, 384)), num_heads=2)
    for kv in (T((1, 1, 32, 512)), T((2, 1, 64, 512)), T((1, 2, 64, 512)), T((1, 1, 64, 512), "float32")):
        yield call(op, T((1, 1, 64, 256)), kv, num_heads=4)
    yield call(op, T((1, 1, 64, 256)), T((1, 1, 64, 512), mem=width_sharded([64, 128], 4)), num_heads=4)
    yield call(op, T((1, 1, 64, 256)), T((1, 1, 64, 512), host=True), num_heads=4)
    yield call(op, T((1, 1, 64, 256)), T((1, 1, 64, 512), layout="ROW_MAJOR"), num_heads=4)
    for layout, length, transposed in product(("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED"), (32, 64), (0, 1)):
        config = {"layout": layout, "buffer": "L1"}
        for heads, kv_heads, cores, width in ((4, 2, 2, 256), (8, 2, 2, 384), (4, 4, 4, 192), (6, 2, 2, 320)):
            shards = width_sharded([length, width], cores)
            kwargs = {"num_heads": heads, "num_kv_heads": kv_heads, "transpose_k_heads": bool(transposed)}
            yield call(op, T((1, 1, length, width * cores), mem=shards), memory_config=M(config), **kwargs)
    for config, orient in product(CONFIGS[:3], ("ROW_MAJOR", "COL_MAJOR")):
        query = T((1, 1, 32, 256), mem=width_sharded([32, 128], 2, orient=orient))
        rest = T((1, 1, 32, 256), mem=width_sharded([32, 128], 2, orient=orient))
        kwargs = {"num_heads": 4, "num_kv_heads": 2, "transpose_k_heads": False, "memory_config": M(config)}
        yield call(op, query, rest, **kwargs)
        yield call(op, query, T((1, 1, 32, 256)), **kwargs)
        yield call(op, T((1, 1, 32, 512), mem=width_sharded([32, 256], 2, orient=orient)), **kwargs)
        yield call(op, T((1, 1, 32, 384), mem=width_sharded([32, 192], 2, orient=orient)), kv_tied=True, **kwargs)
    outputs = [T((1, 2, 64, 64)), T((1, 2, 64, 64)), T((1, 2, 64, 64))]
    yield call(op, T((1, 1, 64, 384)), num_heads=2, transpose_k_heads=False, output_tensors=outputs)
    yield call(op, T((1, 1, 64, 384)), num_heads=2, output_tensors=outputs)
    yield call(op, T((1, 1, 64, 384)), num_heads=2, output_tensors=outputs[:2])
    yield call(op, T((1, 1, 64, 384)), num_heads=2, output_tensors=[])
    yield call(op, T((1, 1, 64, 384)))
    yield call(op, T((1, 1, 64, 384)), num_heads=-1)


def fixed_models() -> Iterator[Case]:
    for model, width, heads in (("falcon7b", 4672, 71), ("vit", 2304, 12)):
        op = EXPERIMENTAL + f"nlp_create_qkv_heads_{model}"
        yield from common(op, (1, 1, 64, width))
        for batch, one, length, columns in product((1, 3), (1, 2), (1, 50, 96), (width, width - 32, width - 10)):
            yield call(op, T((batch, one, length, columns)))
        yield call(op, T((32, width)))
        yield call(op, T((2, 32, width)))
        yield call(op, T((1, 1, 32, width), mem=width_sharded([32, 64], width // 64)))
        yield call(op, T((1, 1, 64, width), mem=height_sharded([32, width], 2)), memory_config=M("L1"))
        if model == "vit":
            outputs = [T((1, heads, 64, 64)) for _ in range(3)]
            for given in (outputs, outputs[:2], [], [*outputs[:2], None], [*outputs, outputs[0]]):
                yield call(op, T((1, 1, 64, width)), output_tensors=given)


def segformer() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_create_qkv_heads_segformer"
    yield from common(op, (1, 1, 64, 64))
    for batch, one, length, width in product((1, 3), (1, 2), (1, 50, 96), (32, 40, 160)):
        yield call(op, T((batch, one, length, width)))
    outputs = [T((1, 2, 64, 32)) for _ in range(3)]
    for given in (outputs, outputs[:2], [], [*outputs, outputs[0]]):
        yield call(op, T((1, 1, 64, 64)), output_tensors=given)
    yield call(op, T((1, 1, 64, 64), mem=height_sharded([32, 64], 2)))
    yield call(op, T((1, 1, 64, 64), mem=height_sharded([32, 64], 2)), memory_config=M("L1"))


# -- BERT large -------------------------------------------------------------------------------------------------------


def grid(x: int, y: int) -> Case:
    return C("CoreCoord", x, y)


def bert() -> Iterator[Case]:
    split, concat = EXPERIMENTAL + "split_query_key_value_and_split_heads", EXPERIMENTAL + "concatenate_heads"
    yield from common(split, (8, 1, 384, 3072), grid(8, 8))
    yield from common(concat, (8, 16, 384, 64), grid(8, 8))
    for batch in (1, 6, 7, 9, 10):
        yield call(split, T((batch, 1, 384, 3072)), grid(8, 8))
        yield call(concat, T((batch, 16, 384, 64)), grid(8, 8))
    for x, y in ((1, 1), (8, 9), (9, 8), (12, 9), (0, 0)):
        yield call(concat, T((7, 16, 384, 64)), grid(x, y))
    for shape in ((7, 16, 380, 64), (7, 16, 384, 60), (7, 8, 384, 64), (7, 16, 352, 64), (7, 16, 384, 96)):
        yield call(concat, T(shape), grid(8, 8))
    for given in (T((7, 1, 384, 1024)), T((7, 1, 384, 1024), "float32"), T((7, 384, 1024)), T((8, 1, 384, 1024))):
        yield call(concat, T((7, 16, 384, 64)), grid(8, 8), output_tensor=given)
    yield call(concat, T((7, 16, 384, 64)))
    yield call(split, T((8, 1, 384, 3072)))
    for heads, shape in ((16, (7, 1, 384, 1536)), (8, (7, 1, 384, 3072)), (4, (7, 1, 64, 768)), (4, (7, 1, 50, 768))):
        yield call(split, T(shape), grid(8, 8), num_heads=heads)
    for orient, memory in product(("ROW_MAJOR", "COL_MAJOR"), CONFIGS):
        shards = block_sharded([64, 384], (2, 2), orient=orient)
        for size in ((8, 8), (2, 2), (1, 2)):
            yield call(split, T((2, 1, 64, 768), mem=shards), grid(*size), num_heads=4, memory_config=M(memory))
    yield call(split, T((2, 1, 64, 768), mem=height_sharded([64, 768], 2)), grid(8, 8), num_heads=4)
    yield call(split, T((2, 1, 64, 768), mem=width_sharded([128, 384], 2)), grid(8, 8), num_heads=4)
    outputs = [T((8, 16, 384, 64)), T((8, 16, 64, 384)), T((8, 16, 384, 64))]
    for some in (outputs, outputs[:1], [], [*outputs[:2], None]):
        yield call(split, T((8, 1, 384, 3072)), grid(8, 8), output_tensors=some)


# -- shards -----------------------------------------------------------------------------------------------------------


def create_on_shards() -> Iterator[Case]:
    op = EXPERIMENTAL + "create_qkv_heads"
    height = M(CONFIGS[2])
    for dtype in ("bfloat16", "float32", "bfloat8_b", "bfloat4_b", "int32"):
        shards = block_sharded([64, 192], (2, 2))
        yield call(op, T((2, 1, 64, 384), dtype, mem=shards), num_heads=2, memory_config=height)
    for orient, transposed, memory in product(("ROW_MAJOR", "COL_MAJOR"), (True, False), CONFIGS):
        shards = block_sharded([64, 192], (2, 2), orient=orient)
        tensor = T((2, 1, 64, 384), mem=shards)
        yield call(op, tensor, num_heads=2, transpose_k_heads=transposed, memory_config=M(memory))
    for heads, kv_heads, width, across in product((2, 4, 6), (None, 1, 2, 4), (384, 512, 576), (1, 2)):
        shards = block_sharded([32, width // across], (across, 2))
        tensor = T((2, 1, 32, width), mem=shards)
        yield call(op, tensor, num_heads=heads, num_kv_heads=kv_heads, memory_config=height)
    for shape, shard in (((1, 1, 64, 384), [32, 192]), ((4, 1, 32, 384), [64, 192]), ((2, 2, 32, 384), [64, 192])):
        yield call(op, T(shape, mem=block_sharded(shard, (2, 2))), num_heads=2, memory_config=height)
    yield call(op, T((2, 1, 50, 384), mem=block_sharded([64, 192], (2, 2))), num_heads=2, memory_config=height)
    yield call(op, T((2, 1, 64, 384), mem=height_sharded([64, 384], 2)), num_heads=2, memory_config=height)
    yield call(op, T((2, 1, 64, 384)), num_heads=2)
    yield call(op, T((2, 64, 384), mem=block_sharded([64, 192], (2, 2))), num_heads=2, memory_config=height)
    tensor = T((2, 1, 64, 384), layout="ROW_MAJOR", mem=block_sharded([64, 192], (2, 2)))
    yield call(op, tensor, num_heads=2, memory_config=height)
    q, k = height_sharded([64, 64], 4), height_sharded([64, 64], 4)
    outputs = [T((2, 2, 64, 64), mem=q), T((2, 2, 64, 64), mem=k), T((2, 2, 64, 64), mem=q)]
    tensor = T((2, 1, 64, 384), mem=block_sharded([64, 192], (2, 2)))
    for given in (outputs, outputs[:2]):
        yield call(op, tensor, num_heads=2, memory_config=height, output_tensors=given)


def create_from_separate() -> Iterator[Case]:
    op = EXPERIMENTAL + "create_qkv_heads_from_separate_tensors"
    height = M(CONFIGS[2])
    query = T((2, 1, 64, 256), mem=block_sharded([64, 128], (2, 2)))
    for dtype in ("bfloat16", "float32", "bfloat8_b", "bfloat4_b", "uint16"):
        pair = [
            T((2, 1, 64, 256), dtype, mem=block_sharded([64, 128], (2, 2))),
            T((2, 1, 64, 512), dtype, mem=block_sharded([64, 256], (2, 2))),
        ]
        yield call(op, *pair, num_heads=4, memory_config=height)
    for orient, transposed, memory in product(("ROW_MAJOR", "COL_MAJOR"), (True, False), CONFIGS):
        pair = [
            T((2, 1, 64, 256), mem=block_sharded([64, 128], (2, 2), orient=orient)),
            T((2, 1, 96, 256), mem=block_sharded([96, 128], (2, 2), orient=orient)),
        ]
        kwargs = {"num_heads": 4, "num_kv_heads": 2, "transpose_k_heads": transposed}
        yield call(op, *pair, memory_config=M(memory), **kwargs)
    for heads, kv_heads, width in product((2, 3, 4, 8), (None, 1, 2, 4), (256, 512)):
        rest = T((2, 1, 64, width), mem=block_sharded([64, width // 2], (2, 2)))
        yield call(op, query, rest, num_heads=heads, num_kv_heads=kv_heads, memory_config=height)
    for shape, shard in (
        ((1, 1, 64, 512), [32, 256]),
        ((2, 1, 50, 512), [64, 256]),
        ((4, 1, 32, 512), [64, 256]),
        ((2, 2, 32, 512), [64, 256]),
        ((2, 64, 512), [64, 256]),
    ):
        yield call(op, query, T(shape, mem=block_sharded(shard, (2, 2))), num_heads=4, memory_config=height)
    yield call(op, query, T((2, 1, 64, 512)), num_heads=4, memory_config=height)
    yield call(op, T((2, 1, 64, 256)), T((2, 1, 64, 512)), num_heads=4)
    yield call(op, query, T((2, 1, 64, 512), mem=height_sharded([64, 512], 2)), num_heads=4, memory_config=height)
    yield call(op, query, num_heads=4)


# -- pairs of rows ----------------------------------------------------------------------------------------------------


def boltz() -> Iterator[Case]:
    create, concat = EXPERIMENTAL + "nlp_create_qkv_heads_boltz", EXPERIMENTAL + "nlp_concat_heads_boltz"
    yield from common(create, (1, 64, 64, 384), num_heads=2)
    yield from common(concat, (4, 64, 64, 32))
    for length, transposed in product((1, 50, 64), (True, False)):
        kwargs = {"num_heads": 4, "transpose_k_heads": transposed}
        yield call(create, T((1, length, length, 768)), **kwargs)
        yield call(create, T((1, length, length, 512), "bfloat8_b"), num_kv_heads=2, **kwargs)
        yield call(create, T((1, length, length, 128)), T((1, length, length, 256)), **kwargs)
        yield call(create, T((1, length, length, 128)), T((1, length, length, 128)), **kwargs)
        yield call(create, T((2, 32, length, 768)), **kwargs)
        yield call(create, T((1, length, length, 200)), **kwargs)
        yield call(create, T((1, 96, length, 192)), num_heads=2, transpose_k_heads=transposed)
    for kv in (
        T((1, 32, 64, 256), "float32"),
        T((2, 64, 64, 256)),
        T((1, 64, 32, 256)),
        T((1, 64, 64, 256), host=True),
    ):
        yield call(create, T((1, 64, 64, 128)), kv, num_heads=4)
    for config, cores in product(CONFIGS, (2, 4)):
        tensor = T((1, 1, 32, 512), mem=width_sharded([32, 512 // cores], cores))
        kwargs = {"num_heads": 4, "num_kv_heads": 2, "transpose_k_heads": False, "memory_config": M(config)}
        yield call(create, tensor, **kwargs)
    outputs = [T((2, 64, 64, 64)) for _ in range(3)]
    yield call(create, T((1, 64, 64, 384)), num_heads=2, transpose_k_heads=False, output_tensors=outputs)
    yield call(create, T((1, 64, 64, 384)), num_heads=2, output_tensors=outputs[:1])
    for heads, first, length, width in product((1, 4), (1, 50), (1, 50), (32, 40)):
        yield call(concat, T((heads, first, length, width)))
    for given in (T((1, 64, 64, 128)), T((1, 64, 64, 128), "float32"), T((64, 64, 128)), T((1, 64, 64, 96))):
        yield call(concat, T((4, 64, 64, 32)), output_tensor=given)
    yield from _sharded_heads(concat)


# -- decoding ---------------------------------------------------------------------------------------------------------


def concat_decode() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_concat_heads_decode"
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 32, 64), dtype, layout, height_sharded([32, 64], 4)), num_heads=8)
    for users, heads, width in product((1, 4, 16, 32), (1, 8, 32, 40), (32, 64)):
        yield call(op, T((1, users, 32, width), mem=height_sharded([32, width], users)), num_heads=heads)
    for heads, rows in product((4, 12, 40, 70), (32, 64)):
        yield call(op, T((1, 4, heads, 64), mem=height_sharded([rows, 64], 4)), num_heads=heads)
    for shape, cores in (((2, 4, 32, 64), 8), ((1, 40, 32, 64), 40), ((1, 4, 32, 64), 5), ((4, 32, 64), 4)):
        yield call(op, T(shape, mem=height_sharded([32, 64], cores)), num_heads=8)
    for tensor in (
        T((1, 4, 32, 64)),
        T((1, 4, 32, 64), host=True),
        T((1, 4, 32, 64), mem=width_sharded([128, 32], 2)),
        T((1, 4, 32, 64), mem=block_sharded([64, 32], (2, 2))),
        T((1, 4, 32, 64), mem=height_sharded([32, 64], 4, orient="COL_MAJOR")),
    ):
        yield call(op, tensor, num_heads=8)
    elsewhere = {"layout": "HEIGHT_SHARDED", "buffer": "L1", "shard": [32, 64], "orient": "ROW_MAJOR"}
    for place in ([[1, 0, 4, 0]], [[0, 0, 1, 0], [0, 1, 1, 1]], [[2, 2, 3, 3]], [[0, 0, 3, 0]]):
        tensor = T((1, 4, 32, 64), mem={**elsewhere, "grid": place})
        yield call(op, tensor, num_heads=8)
        for ranges in ([[0, 0, 7, 7]], [[1, 0, 3, 3]], [[0, 0, 3, 1], [2, 2, 7, 5]], [[1, 0, 3, 7], [5, 0, 6, 7]]):
            yield call(op, tensor, num_heads=8, sub_core_grids=G(*ranges))
    tensor = T((1, 4, 32, 64), mem=height_sharded([32, 64], 4))
    yield call(op, tensor, num_heads=8, memory_config=M("DRAM"))
    yield call(op, tensor, num_heads=8, output_tensor=T((1, 1, 32, 512), mem=width_sharded([32, 64], 8)))
    yield call(op, tensor, num_heads=8, output_tensor=T((1, 1, 32, 64)))
    yield call(op, tensor)


def create_decode() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_create_qkv_heads_decode"
    yield from common(op, (1, 1, 8, 768), num_heads=8, num_kv_heads=2)
    for users, heads, kv_heads, width in product((1, 7, 32, 33), (8, 32), (None, 2, 40), (1536, 2304)):
        yield call(op, T((1, 1, users, width)), num_heads=heads, num_kv_heads=kv_heads)
    for config in (height_sharded([32, 64], 8), height_sharded([32, 64], 4), width_sharded([32, 64], 8)):
        yield call(op, T((1, 1, 8, 768)), num_heads=8, num_kv_heads=2, memory_config=M(config))
    for ranges in ([[1, 1, 4, 4]], [[0, 0, 2, 2], [4, 0, 6, 2]], [[3, 0, 5, 2], [0, 0, 2, 3]]):
        config = {"layout": "HEIGHT_SHARDED", "buffer": "L1", "shard": [32, 64], "grid": ranges, "orient": "ROW_MAJOR"}
        for overlap in (True, False, None):
            kwargs = {"num_heads": 8, "num_kv_heads": 2, "memory_config": M(config), "overlap_qk_coregrid": overlap}
            yield call(op, T((1, 1, 8, 768)), **kwargs)
            yield call(op, T((1, 1, 8, 768), mem=width_sharded([32, 64], 12)), **kwargs)
    for cores, orient, overlap in product((2, 4, 12, 24), ("ROW_MAJOR", "COL_MAJOR"), (True, False)):
        tensor = T((1, 1, 8, 768), mem=width_sharded([32, 768 // cores], cores, orient=orient))
        yield call(op, tensor, num_heads=8, num_kv_heads=2, overlap_qk_coregrid=overlap)
    sharded = T((1, 1, 8, 768), mem=width_sharded([32, 64], 12))
    index = T((1,), "uint32", "ROW_MAJOR")
    for tensor, offset, size in product((sharded, T((1, 1, 8, 768))), (None, index), (None, 4, 8)):
        yield call(op, tensor, num_heads=8, num_kv_heads=2, batch_offset=offset, slice_size=size)
    yield call(op, sharded, num_heads=8, num_kv_heads=2, batch_offset=T((2,), "uint32", "ROW_MAJOR"), slice_size=4)
    yield call(op, T((1, 1, 8, 768), mem=height_sharded([32, 768], 1)), num_heads=8, num_kv_heads=2)
    for shape in ((2, 1, 8, 768), (1, 2, 8, 768), (1, 1, 8, 760), (8, 768)):
        yield call(op, T(shape), num_heads=8, num_kv_heads=2)
    yield call(op, T((1, 1, 8, 768)))


# -- parts ------------------------------------------------------------------------------------------------------------


def split_query() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_create_q_heads_split"
    yield from common(op, (2, 1, 64, 512), num_heads=4, split_head_dim=64)
    for heads, split in product((1, 2, 4, 5, 16), (0, 32, 40, 64, 128, 512)):
        yield call(op, T((1, 1, 50, 512)), num_heads=heads, split_head_dim=split)
    for shape in ((1, 2, 64, 512), (1, 1, 64, 500), (1, 64, 512), (3, 1, 1, 512), (1, 1, 1, 64, 512)):
        yield call(op, T(shape), num_heads=4, split_head_dim=32)
    for mem in (height_sharded([32, 512], 2), width_sharded([64, 128], 4), block_sharded([32, 256], (2, 2))):
        yield call(op, T((1, 1, 64, 512), mem=mem), num_heads=4, split_head_dim=32)
        yield call(op, T((1, 1, 64, 512), mem=mem), num_heads=4, split_head_dim=32, memory_config=M("DRAM"))
    yield call(op, T((1, 1, 64, 512)), num_heads=4)
    yield call(op, T((1, 1, 64, 512)), split_head_dim=4)
    yield call(op, T((1, 1, 64, 512)), num_heads=0, split_head_dim=32)


def load_slice() -> Iterator[Case]:
    op = EXPERIMENTAL + "nlp_kv_cache_load_slice"
    yield from common(op, (2, 4, 128, 64), seq_len_start=32, seq_len_end=96)
    for start, end in product((0, 10, 32, 96, 128), (0, 32, 50, 64, 128, 160)):
        yield call(op, T((1, 4, 128, 64)), seq_len_start=start, seq_len_end=end)
    for shape in ((8, 8, 64, 32), (8, 9, 64, 32), (1, 1, 50, 40), (3, 5, 100, 96), (4, 128, 64)):
        yield call(op, T(shape), seq_len_start=0, seq_len_end=32)
        yield call(op, T(shape, "bfloat8_b"), seq_len_start=32, seq_len_end=64)
    for mem in (height_sharded([128, 64], 4), width_sharded([512, 32], 2), block_sharded([256, 32], (2, 2))):
        yield call(op, T((1, 4, 128, 64), mem=mem), seq_len_start=0, seq_len_end=64)
    given = T((1, 4, 64, 64), mem=height_sharded([64, 64], 4))
    yield call(op, T((1, 4, 128, 64)), seq_len_start=0, seq_len_end=64, output_tensor=given)
    yield call(op, T((1, 4, 128, 64)), seq_len_start=0, seq_len_end=32, output_tensor=given)
    yield call(op, T((1, 4, 128, 64)), seq_len_start=-32, seq_len_end=32)
    yield call(op, T((1, 4, 128, 64)), seq_len_start=0)
