"""Fused products, and sums of state space models: operations of models beside matmul."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, M, T, call, height_sharded, product, width_sharded

from ._relatives import blocks


def cases() -> Iterator[Case]:
    yield from addcmul()
    yield from decode()
    yield from decode_in_blocks()
    yield from decode_in_batches()
    yield from sums_of_latents()
    yield from output_projection()


def config(fidelity: str = "HiFi2", **settings: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **settings)


def addcmul() -> Iterator[Case]:
    op = "ttnn.experimental.dit_minimal_matmul_addcmul_fused"
    x, weight, residual, gate = T((64, 96)), T((96, 128)), T((64, 128)), T((1, 128))
    for shapes in (
        ((64, 96), (96, 128), (64, 128), (1, 128)),
        ((64, 96), (96, 128), (64, 128), (64, 128)),
        ((64, 96), (96, 128), (64, 128), (128,)),
        ((64, 96), (96, 128), (128,), (1, 128)),
        ((64, 96), (96, 128), (64, 128), (2, 128)),
        ((64, 96), (96, 128), (64, 120), (1, 128)),
        ((5, 33), (33, 40), (5, 40), (1, 40)),
        ((5, 33), (33, 40), (5, 40), (5, 40)),
        ((2, 64, 96), (96, 128), (2, 64, 128), (1, 1, 128)),
        ((2, 64, 96), (96, 128), (64, 128), (1, 128)),
        ((2, 64, 96), (1, 96, 128), (2, 64, 128), (2, 64, 128)),
        ((2, 64, 96), (2, 96, 128), (2, 64, 128), (1, 128)),
        ((64, 96), (64, 128), (64, 128), (1, 128)),
        ((1, 2, 3, 5, 33), (33, 64), (1, 2, 3, 5, 64), (1, 64)),
    ):
        a, b, c, d = map(T, shapes)
        yield call(op, a, b, 1.0, c, d)
        yield call(op, a, b, 0.5, c, d, T((1, shapes[1][-1])))
    for dtype in DTYPES:
        yield call(op, T((64, 96), dtype), weight, 1.0, residual, gate)
        yield call(op, x, T((96, 128), dtype), 1.0, T((64, 128), dtype), gate)
        yield call(op, x, weight, 1.0, T((64, 128), dtype), gate)
        yield call(op, x, weight, 1.0, residual, T((1, 128), dtype))
        yield call(op, x, weight, 1.0, residual, gate, T((1, 128), dtype))
        yield call(op, x, weight, 1.0, residual, gate, dtype=E(dtype))
        yield call(op, x, weight, 1.0, residual, gate, dtype=E(dtype), config=blocks(2, 2, 2, 1, 1))
    for given in (
        blocks(8, 8, 8, 2, 2),
        blocks(8, 8, 8, 4, 2),
        blocks(2, 4, 2, 2, 3),
        blocks(0, 4, 2, 1, 1),
        blocks(2, 2, 2, 1, 1, 1, 8),
        blocks(4, 3, 4, 4, 1),
        blocks(16, 8, 8, 2, 2),
    ):
        yield call(op, x, weight, 1.0, residual, gate, config=given)
        yield call(op, x, weight, 2, residual, gate, config=given, compute_kernel_config=config(packer_l1_acc=True))
    for place in range(4):
        tensors = [x, weight, residual, gate]
        for other in ({"host": True}, {"layout": "ROW_MAJOR"}, {"mem": "L1"}):
            shape = tensors[place]["T"][0]
            replaced = [*tensors[:place], T(shape, **other), *tensors[place + 1 :]]
            yield call(op, *replaced[:2], 1.0, *replaced[2:])
    yield call(op, x, weight, 1.0, residual, gate, memory_config=M("L1"))
    yield call(op, x, weight, 1.0, residual, gate, memory_config=M(height_sharded([32, 128], 2)))
    yield call(op, x, weight, 1.0, residual)


# -- few rows -------------------------------------------------------------------------------------------------------

DECODE = "ttnn.experimental.matmul_decode"


def rows(height: int, inner: int, cores: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T((height, inner), dtype, mem=width_sharded([-(-height // 32) * 32, inner // cores], cores), **more)


def matrix(inner: int, columns: int, cores: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T((inner, columns), dtype, mem=width_sharded([inner, columns // cores], cores), **more)


def decode() -> Iterator[Case]:
    a, b = rows(32, 256, 4), matrix(256, 256, 4)
    for height in (1, 5, 32, 64, 256, 288):
        yield call(DECODE, rows(height, 256, 4), b)
    for inner, columns in ((1, 1), (2, 4), (4, 2), (8, 8), (4, 1), (8, 16)):
        yield call(DECODE, rows(32, 256, inner), matrix(256, 512, columns))
    for dtype in DTYPES:
        yield call(DECODE, rows(32, 256, 4, dtype), b)
        yield call(DECODE, a, matrix(256, 256, 4, dtype))
        yield call(DECODE, a, b, dtype=E(dtype))
    for memory in (
        "DRAM",
        "L1",
        width_sharded([32, 64], 4),
        width_sharded([32, 128], 4),
        width_sharded([32, 32], 8),
        width_sharded([64, 64], 4),
        {"layout": "WIDTH_SHARDED", "buffer": "L1"},
    ):
        yield call(DECODE, a, b, output_mem_config=M(memory))
        yield call(DECODE, T((1, 1, 32, 256), mem=width_sharded([32, 64], 4)), b, output_mem_config=M(memory))
    for shape in ((256,), (1, 32, 256), (1, 1, 32, 256), (1, 1, 1, 32, 256), (2, 16, 256)):
        height = 64 if shape == (2, 16, 256) else 32
        yield call(DECODE, T(shape, mem=width_sharded([height, 64], 4)), b)
    yield call(
        DECODE, T((1, 32, 256), mem=width_sharded([32, 64], 4)), T((2, 256, 256), mem=width_sharded([512, 64], 4))
    )
    yield call(DECODE, T((32, 250), mem=width_sharded([32, 64], 4)), T((250, 256), mem=width_sharded([256, 64], 4)))
    yield call(DECODE, T((32, 256), mem=width_sharded([32, 96], 3)), b)
    yield call(DECODE, a, T((256, 250), mem=width_sharded([256, 64], 4)))
    yield call(DECODE, a, T((256, 256)))
    yield call(DECODE, T((32, 256)), b)
    yield call(DECODE, a, matrix(128, 256, 4))
    yield call(DECODE, T((64, 256), mem=height_sharded([32, 256], 2)), b)
    yield call(DECODE, T((32, 256), layout="ROW_MAJOR", mem=width_sharded([32, 64], 4)), b)
    yield call(DECODE, a, matrix(256, 256, 4, host=True))
    yield call(DECODE, T((32, 256), mem=width_sharded([32, 64], 4, buffer="DRAM")), b)


def decode_in_blocks() -> Iterator[Case]:
    a = rows(32, 256, 4)
    for inner, columns, cores in (
        (128, 512, 8),
        (128, 512, 4),
        (64, 1024, 8),
        (64, 1024, 16),
        (256, 512, 8),
        (512, 1024, 16),
        (32, 1024, 16),
        (128, 512, 16),
        (96, 512, 8),
    ):
        yield call(DECODE, a, matrix(inner, columns, cores), partial_width_sharded=True)
        yield call(
            DECODE, rows(5, 256, 8), matrix(inner, columns, cores), partial_width_sharded=True, dtype=E("float32")
        )
    b = matrix(128, 512, 8)
    shifted = {
        "layout": "WIDTH_SHARDED",
        "buffer": "L1",
        "shard": [32, 64],
        "grid": [[1, 0, 4, 0]],
        "orient": "ROW_MAJOR",
    }
    for memory in ("DRAM", width_sharded([32, 64], 4), width_sharded([32, 32], 8), shifted):
        yield call(DECODE, a, b, partial_width_sharded=True, output_mem_config=M(memory))
    yield call(DECODE, rows(288, 256, 4), b, partial_width_sharded=True)
    yield call(DECODE, rows(32, 384, 4), matrix(128, 768, 12), partial_width_sharded=True)
    yield call(DECODE, T((1, 1, 32, 256), mem=width_sharded([32, 64], 4)), b, partial_width_sharded=True)


def decode_in_batches() -> Iterator[Case]:
    def batches(count: int, height: int = 32) -> Case:
        return T((1, count, height, 256), mem=width_sharded([count * 32, 64], 4))

    def weights(height: int, width: int, cores: int, dtype: str = "bfloat16") -> Case:
        return T((1, 1, height, width), dtype, mem=width_sharded([height, width // cores], cores))

    for height, width, cores in (
        (256, 512, 8),
        (512, 256, 8),
        (1024, 128, 4),
        (768, 256, 8),
        (512, 256, 2),
        (512, 256, 1),
    ):
        for dtype in ("bfloat16", "bfloat4_b"):
            yield call(DECODE, batches(4), weights(height, width, cores, dtype))
    for memory in ("L1", "DRAM", width_sharded([128, 32], 4), height_sharded([32, 128], 4)):
        yield call(DECODE, batches(4), weights(512, 256, 8), output_mem_config=M(memory))
    yield call(DECODE, batches(4, 30), weights(512, 256, 8), dtype=E("bfloat8_b"))
    yield call(DECODE, batches(3), weights(512, 256, 8))
    yield call(DECODE, batches(4), matrix(512, 256, 8))
    yield call(DECODE, batches(4), T((1, 1, 512, 256)))
    yield call(DECODE, T((1, 4, 32, 256)), weights(512, 256, 8))


# -- state space models -----------------------------------------------------------------------------------------------


def sums_of_latents() -> Iterator[Case]:
    op = "ttnn.experimental.hc_sum_reduce"
    for shape in (
        (1, 1, 32, 1024),
        (1, 1, 5, 1000),
        (1, 1, 64, 3072),
        (1, 1, 32, 96),
        (1, 2, 32, 1024),
        (2, 1, 32, 1024),
        (1, 32, 1024),
        (32, 1024),
        (1024,),
        (1, 1, 32, 1024, 1024),
        (1, 1, 5, 1024, 1024),
        (1, 1, 0, 1024),
        (1, 1, 32, 0),
    ):
        yield call(op, T(shape))
    for dtype, mem in product(DTYPES, ("DRAM", "L1")):
        yield call(op, T((1, 1, 32, 1024), dtype, mem=mem))
        yield call(op, T((1, 1, 32, 1024), mem=mem), dtype=E(dtype))
    for fidelity in ("LoFi", "HiFi4"):
        yield call(op, T((1, 1, 32, 1024)), math_fidelity=E(f"MathFidelity.{fidelity}"))
    for memory in ("DRAM", "L1", height_sharded([32, 32], 2), width_sharded([64, 32], 1)):
        yield call(op, T((1, 1, 64, 1024)), memory_config=M(memory))
    yield call(op, T((1, 1, 64, 1024), mem=height_sharded([32, 1024], 2)))
    yield call(op, T((1, 1, 32, 1024), host=True))
    yield call(op, T((1, 1, 32, 1024), layout="ROW_MAJOR"))


# -- DeepSeek's attention ---------------------------------------------------------------------------------------------


def output_projection() -> Iterator[Case]:
    op = "ttnn.experimental.deepseek.mla.matmul_wo"

    def on_rows(shard: list[int], grid: list[list[int]], buffer: str = "L1", kind: str = "HEIGHT_SHARDED") -> dict:
        return {"layout": kind, "buffer": buffer, "shard": shard, "grid": grid, "orient": "ROW_MAJOR"}

    twelve, banks = [[0, 0, 7, 0], [0, 1, 3, 1]], [[0, 0, 11, 0]]
    x = T((12, 32, 16384), mem=on_rows([32, 16384], twelve))
    weight = T((1, 12, 5632, 224), "bfloat8_b", mem=on_rows([5632, 224], banks, "DRAM"))
    out = T((32, 896), mem=width_sharded([32, 128], 7))
    for layer in (0, 1, 7, -1):
        yield call(op, x, w_tensor=weight, output_tensor=out, layer_id=layer)
    for other in (
        T((12, 30, 16384), mem=on_rows([32, 16384], twelve)),
        T((32, 16384), mem=on_rows([32, 16384], [[0, 0, 0, 0]])),
        T((1, 32, 16384), mem=on_rows([32, 16384], [[0, 0, 0, 0]])),
        T((32, 32768), mem=on_rows([32, 16384], [[0, 0, 1, 0]], kind="WIDTH_SHARDED")),
        T((12, 32, 8192), mem=on_rows([32, 8192], twelve)),
        T((12, 32, 8192), "float32", mem=on_rows([32, 8192], twelve)),
        T((12, 32, 16384), "bfloat8_b", mem=on_rows([32, 16384], twelve)),
        T((12, 32, 16384), layout="ROW_MAJOR", mem=on_rows([32, 16384], twelve)),
        T((12, 32, 16384), mem="L1"),
        T((12, 32, 16384)),
        T((32,), mem="L1"),
        T((32, 32), host=True),
    ):
        yield call(op, other, w_tensor=weight, output_tensor=out, layer_id=0)
    for other in (T((32, 32)), T((32, 32), "int32", "ROW_MAJOR"), T((32, 32), mem="L1"), T((32, 32), host=True)):
        yield call(op, x, w_tensor=other, output_tensor=out, layer_id=0)
    for other in (
        T((32, 896), "float32", mem=width_sharded([32, 128], 7)),
        T((32, 896), "float32", mem=width_sharded([32, 64], 14)),
        T((32, 896), mem=width_sharded([32, 64], 14)),
        T((32, 448), mem=width_sharded([32, 64], 7)),
        T((224, 128), mem=height_sharded([32, 128], 7)),
        T((64, 896), mem=width_sharded([64, 128], 7)),
        T((32, 896), mem="L1"),
        T((512, 896), mem="L1"),
        T((32, 896)),
        T((32, 896), host=True),
    ):
        yield call(op, x, w_tensor=weight, output_tensor=other, layer_id=0)
