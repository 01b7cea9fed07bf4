"""Rotary position embeddings, rotated halves, and products with repeated operands."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    FULL_PRECISION,
    SHAPES,
    STORABLE,
    C,
    Case,
    E,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

from .heads import CONFIGS

QUICK = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.LoFi"))


def cases() -> Iterator[Case]:
    for family in (rotary, hugging_face, llama, llama_decode, llama_fused, halves, state_space):
        yield from family()


def rotary() -> Iterator[Case]:
    op = "ttnn.experimental.rotary_embedding"
    cache = T((1, 1, 128, 64))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 64, 64), dtype, layout), cache, cache)
        yield call(op, T((1, 4, 64, 64)), T((1, 1, 128, 64), dtype, layout), T((1, 1, 128, 64), dtype, layout))
        yield call(op, T((1, 4, 64, 64)), cache, T((1, 1, 128, 64), dtype, layout))
    for batch, length, width in product((1, 2), (1, 50, 128, 160), (32, 64, 96, 128)):
        trig = T((1, 1, 128, width))
        yield call(op, T((batch, 3, length, width)), trig, trig)
        yield call(op, T((batch, 3, length, width)), trig, trig, 5)
    for index in (0, 31, 64, 127, 128, 200, -1):
        yield call(op, T((1, 4, 32, 64)), cache, cache, index)
    for rows in (1, 20, 32, 50, 64, 96):
        yield call(op, T((1, 4, 50, 64)), T((1, 1, rows, 64)), T((1, 1, rows, 64)))
    for shape in ((1, 2, 128, 64), (2, 1, 128, 64), (1, 1, 128, 128), (128, 64), (1, 128, 64), (1, 1, 1, 128, 64)):
        yield call(op, T((1, 4, 64, 64)), T(shape), T(shape))
        yield call(op, T((1, 4, 64, 64)), cache, T(shape))
    for other in SHAPES:
        yield call(op, T(other), cache, cache)
    for memory in CONFIGS:
        yield call(op, T((1, 4, 64, 64)), cache, cache, memory_config=M(memory))
        yield call(op, T((2, 3, 96, 64)), cache, cache, memory_config=M(memory))
        for mem in (height_sharded([64, 64], 4), block_sharded([64, 64], (1, 4)), width_sharded([256, 32], 2)):
            yield call(op, T((1, 4, 64, 64), mem=mem), cache, cache, memory_config=M(memory))
        yield call(op, T((1, 4, 64, 64), mem=block_sharded([64, 32], (2, 4))), cache, cache, memory_config=M(memory))
    yield call(op, T((1, 4, 64, 64), mem=height_sharded([96, 64], 3)), cache, cache)
    yield call(op, T((1, 4, 64, 64)), T((1, 1, 128, 64), mem=height_sharded([32, 64], 4)), cache)
    for config in (FULL_PRECISION, QUICK):
        yield call(op, T((1, 4, 64, 64)), cache, cache, compute_kernel_config=config)
    for host in ((True, False), (False, True)):
        yield call(op, T((1, 4, 64, 64), host=host[0]), T((1, 1, 128, 64), host=host[1]), cache)
    yield call(op, T((1, 4, 64, 64)), cache)


def hugging_face() -> Iterator[Case]:
    op = "ttnn.experimental.rotary_embedding_hf"
    cache = T((1, 1, 128, 64))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 64, 64), dtype, layout), cache, cache)
        yield call(op, T((1, 4, 64, 64)), T((1, 1, 128, 64), dtype, layout), T((1, 1, 128, 64), dtype, layout))
    for batch, length, width in product((1, 2), (1, 50, 128, 160), (32, 40, 64, 96)):
        trig = T((1, 1, 128, width))
        yield call(op, T((batch, 3, length, width)), trig, trig)
    for rows in (1, 20, 32, 50, 64):
        yield call(op, T((1, 4, 50, 64)), T((1, 1, rows, 64)), T((1, 1, rows, 64)))
        yield call(op, T((1, 4, 50, 64)), cache, T((1, 1, rows, 64)))
    for shape in ((1, 2, 128, 64), (2, 1, 128, 64), (1, 1, 128, 128), (128, 64), (1, 128, 64)):
        yield call(op, T((1, 4, 64, 64)), T(shape), T(shape))
    for memory in CONFIGS:
        yield call(op, T((1, 4, 64, 64)), cache, cache, memory_config=M(memory))
        for mem in (height_sharded([64, 64], 4), width_sharded([256, 32], 2)):
            yield call(op, T((1, 4, 64, 64), mem=mem), cache, cache, memory_config=M(memory))
    for users, heads, width in product((1, 8), (1, 8, 40), (32, 64)):
        rows = 64 if heads > 32 else 32
        tensor = T((1, users, heads, width), mem=height_sharded([rows, width], users))
        trig = T((1, users, 1, width), mem=height_sharded([32, width], users))
        yield call(op, tensor, trig, trig, is_decode_mode=True)
        yield call(op, tensor, trig, trig)
        yield call(op, tensor, trig, trig, is_decode_mode=True, memory_config=M("DRAM"))
        yield call(op, T((1, users, heads, width)), trig, trig, is_decode_mode=True)
        yield call(op, tensor, T((1, users, 1, width)), T((1, users, 1, width)), is_decode_mode=True)
    tensor = T((1, 8, 8, 64), mem=height_sharded([32, 64], 8))
    trig = T((1, 4, 1, 64), mem=height_sharded([32, 64], 4))
    yield call(op, tensor, trig, trig, is_decode_mode=True)
    yield call(op, T((1, 4, 64, 64)), cache, cache, compute_kernel_config=FULL_PRECISION)
    yield call(op, T((1, 4, 64, 64), host=True), cache, cache)
    yield call(op, T((1, 4, 64, 64)), cache, T((1, 1, 128, 64), host=True))


def llama() -> Iterator[Case]:
    op = "ttnn.experimental.rotary_embedding_llama"
    cache, turn = T((1, 1, 128, 64)), T((1, 1, 32, 32))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 64, 64), dtype, layout), cache, cache, turn)
        yield call(op, T((1, 4, 64, 64)), T((1, 1, 128, 64), dtype, layout), cache, turn)
        yield call(op, T((1, 4, 64, 64)), cache, cache, T((1, 1, 32, 32), dtype, layout))
    for heads, length, width in product((1, 5), (1, 50, 160), (32, 40, 96, 128, 160, 256, 288)):
        trig = T((1, 1, 128, width))
        yield call(op, T((2, heads, length, width)), trig, trig, turn)
    for config, width in product((FULL_PRECISION, QUICK), (64, 128, 160)):
        trig = T((1, 1, 64, width))
        yield call(op, T((1, 2, 64, width)), trig, trig, turn, compute_kernel_config=config)
    for shape in ((1, 4, 128, 64), (1, 2, 128, 64), (2, 1, 128, 64), (1, 1, 128, 32), (128, 64)):
        yield call(op, T((1, 4, 64, 64)), T(shape), T(shape), turn)
        yield call(op, T((1, 4, 64, 64)), cache, T(shape), turn)
    for other in ((1, 1, 64, 32), (1, 1, 32, 64), (1, 1, 30, 32), (2, 1, 32, 32), (32, 32), (1, 32, 32)):
        yield call(op, T((1, 4, 64, 64)), cache, cache, T(other))
    for memory in CONFIGS:
        yield call(op, T((1, 4, 64, 64)), cache, cache, turn, memory_config=M(memory))
    sharded = T((1, 1, 128, 64), mem=height_sharded([32, 64], 4))
    for cos, sin in ((sharded, sharded), (sharded, cache), (cache, sharded)):
        yield call(op, T((1, 4, 64, 64)), cos, sin, turn)
        yield call(op, T((1, 4, 64, 64)), cos, sin, T((1, 1, 128, 32), mem=height_sharded([32, 32], 4)))
    for mem in (height_sharded([64, 64], 2), width_sharded([128, 32], 2), block_sharded([64, 32], (2, 2))):
        trig = T((1, 1, 128, 64), mem=mem)
        yield call(op, T((1, 4, 64, 64)), trig, trig, turn)
    yield call(op, T((1, 4, 64, 64), mem=height_sharded([64, 64], 4)), cache, cache, turn)
    yield call(op, T((1, 4, 64, 64), host=True), cache, cache, turn)
    yield call(op, T((1, 4, 64, 64)), cache, cache)


def users_of(count: int, rows: int, width: int, layout: str = "TILE", shard: int = 32) -> Case:
    return T((1, count, rows, width), layout=layout, mem=height_sharded([shard, width], count))


def llama_decode() -> Iterator[Case]:
    op = "ttnn.experimental.rotary_embedding_llama"
    for users, heads, width in product((1, 8, 32), (1, 8, 32), (32, 64, 128, 160)):
        trig, turn = users_of(users, 1, width), T((1, 1, 32 * users, 32), mem=height_sharded([32, 32], users))
        yield call(op, users_of(users, heads, width), trig, trig, turn, is_decode_mode=True)
    query, trig = users_of(8, 8, 64), users_of(8, 1, 64)
    turn = T((1, 1, 256, 32), mem=height_sharded([32, 32], 8))
    interleaved = T((1, 8, 1, 64))
    for arguments in (
        (T((1, 8, 8, 64)), trig, trig, turn),
        (query, interleaved, interleaved, turn),
        (query, trig, interleaved, turn),
        (query, trig, trig, T((1, 1, 32, 32))),
        (query, users_of(4, 1, 64), users_of(4, 1, 64), turn),
        (query, trig, trig, T((1, 1, 256, 64), mem=height_sharded([32, 64], 8))),
        (query, trig, trig, T((1, 1, 256, 32), mem=height_sharded([64, 32], 4))),
        (query, trig, trig, T((1, 8, 32, 32), mem=height_sharded([32, 32], 8))),
        (T((8, 1, 8, 64), mem=height_sharded([32, 64], 8)), trig, trig, turn),
        (query, users_of(8, 40, 64, shard=64), users_of(8, 40, 64, shard=64), turn),
        (users_of(8, 40, 64, shard=64), trig, trig, turn),
    ):
        yield call(op, *arguments, is_decode_mode=True)
    for memory in CONFIGS:
        yield call(op, query, trig, trig, turn, is_decode_mode=True, memory_config=M(memory))
    yield call(op, query, trig, trig, turn)


def _apart(users: int, rows: int, width: int, first: int, layout: str = "TILE", shard: int = 32) -> Case:
    """Users on one row of cores."""
    mem = height_sharded([shard, width], users)
    return T((1, users, rows, width), layout=layout, mem={**mem, "grid": [[0, first, users - 1, first]]})


def llama_fused() -> Iterator[Case]:
    op = "ttnn.experimental.rotary_embedding_llama_fused_qk"
    for users, heads, width in product((1, 4, 8), (1, 8, 32), (32, 64, 128, 160)):
        trig = users_of(2 * users, 1, width)
        turn = T((1, 1, 64 * users, 32), mem=height_sharded([32, 32], 2 * users))
        yield call(op, _apart(users, heads, width, 0), _apart(users, 8, width, 1), trig, trig, turn)
    query, key, trig = _apart(8, 8, 64, 0), _apart(8, 4, 64, 1), users_of(16, 1, 64)
    turn = T((1, 1, 512, 32), mem=height_sharded([32, 32], 16))
    for arguments in (
        (query, query, trig, trig, turn),
        (query, _apart(4, 4, 64, 1), trig, trig, turn),
        (query, _apart(8, 4, 32, 1), trig, trig, turn),
        (T((1, 8, 8, 64)), key, trig, trig, turn),
        (query, key, T((1, 16, 1, 64)), trig, turn),
        (query, key, users_of(8, 1, 64), users_of(8, 1, 64), turn),
        (query, key, trig, users_of(8, 1, 64), turn),
        (query, key, trig, trig, T((1, 1, 32, 32))),
        (query, key, trig, trig, T((1, 1, 256, 32), mem=height_sharded([32, 32], 8))),
        (query, key, trig, trig, T((1, 1, 512, 64), mem=height_sharded([32, 64], 16))),
        (T((8, 1, 8, 64), mem=height_sharded([32, 64], 8)), key, trig, trig, turn),
        (users_of(32, 8, 64), _apart(8, 4, 64, 5), trig, trig, turn),
        (users_of(40, 8, 64), _apart(8, 4, 64, 6), trig, trig, turn),
    ):
        yield call(op, *arguments)
    for dtype in ("float32", "bfloat8_b"):
        mem = height_sharded([32, 64], 8)
        yield call(op, T((1, 8, 8, 64), dtype, mem=mem), key, trig, trig, turn)
    rows = [_apart(4, 8, 128, 0, "ROW_MAJOR", 8), _apart(4, 8, 128, 1, "ROW_MAJOR", 8)]
    wrapped = users_of(8, 8, 128, "ROW_MAJOR", 8)
    turn = T((1, 1, 256, 32), mem=height_sharded([32, 32], 8))
    yield call(op, *rows, wrapped, wrapped, turn)
    yield call(op, rows[0], _apart(4, 8, 128, 1), wrapped, wrapped, turn)
    yield call(op, *rows, users_of(8, 1, 128), users_of(8, 1, 128), turn)
    short = [_apart(4, 4, 128, 0, "ROW_MAJOR", 4), _apart(4, 4, 128, 1, "ROW_MAJOR", 4)]
    yield call(op, *short, wrapped, wrapped, turn)
    for config in (FULL_PRECISION, QUICK):
        yield call(
            op,
            query,
            key,
            trig,
            trig,
            T((1, 1, 512, 32), mem=height_sharded([32, 32], 16)),
            compute_kernel_config=config,
        )


def halves() -> Iterator[Case]:
    op = "ttnn.experimental.rotate_half"
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 64, 128), dtype, layout))
    for shape in (*SHAPES, (1, 1, 5, 64), (3, 50, 192), (64, 128), (128,), (1, 2, 3, 40, 64), (2, 2, 2, 2, 32, 128)):
        yield call(op, T(shape))
        yield call(op, T(shape, layout="ROW_MAJOR"))
    for memory in CONFIGS:
        yield call(op, T((1, 2, 64, 128)), memory_config=M(memory))
    for mem in (height_sharded([64, 128], 2), width_sharded([128, 64], 2), block_sharded([64, 64], (2, 2)), "L1"):
        yield call(op, T((1, 2, 64, 128), mem=mem))
    yield call(op, T((1, 2, 64, 128), host=True))
    yield call(op)


def state_space() -> Iterator[Case]:
    op = "ttnn.experimental.repeat_and_interleave_eltwise_mul"
    hidden, wide = 5120, 32 * 5120
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 32, 32), dtype, layout), T((1, 1, 32, hidden)))
        yield call(op, T((1, 1, 32, 32)), T((1, 1, 32, hidden), dtype, layout))
        yield call(op, T((1, 1, 32, 32)), T((1, 1, 32, hidden)), dtype=E(dtype))
    for a, b in product((32, hidden, wide, 64, 20), (32, hidden, wide, hidden - 10)):
        yield call(op, T((1, 1, 32, a)), T((1, 1, 32, b)))
    for a, b in (((1, 1, 64, 32), (1, 1, 64, hidden)), ((1, 1, 20, 32), (1, 1, 32, hidden)), ((32, 32), (32, hidden))):
        yield call(op, T(a), T(b))
    for a, b in (((2, 1, 32, 32), (2, 1, 32, hidden)), ((1, 1, 64, 32), (1, 1, 32, hidden))):
        yield call(op, T(a), T(b))
    for memory in CONFIGS:
        yield call(op, T((1, 1, 32, 32)), T((1, 1, 32, hidden)), memory_config=M(memory))
    yield call(op, T((1, 1, 32, 32), mem="L1"), T((1, 1, 32, hidden)))
    yield call(op, T((1, 1, 32, 32), mem=height_sharded([32, 32], 1)), T((1, 1, 32, hidden)))
    yield call(op, T((1, 1, 32, 32)), T((1, 1, 32, hidden), mem=width_sharded([32, 640], 8)))
    for fidelity in ("LoFi", "HiFi2"):
        yield call(op, T((1, 1, 32, 32)), T((1, 1, 32, hidden)), math_fidelity=E(f"MathFidelity.{fidelity}"))
    yield call(op, T((1, 1, 32, 32), host=True), T((1, 1, 32, hidden)))
    yield call(op, T((1, 1, 32, 32)))
