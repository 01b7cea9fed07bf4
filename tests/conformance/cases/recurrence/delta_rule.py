"""The gated delta rule, from prepared matrices and from complete sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, M, T, call, height_sharded

SEQUENTIAL = "ttnn.transformer.gated_delta_attn_seq"
CHUNKED = "ttnn.transformer.chunk_gated_delta_rule"
NAMES = ("L_unit", "v_beta_sc", "k_bd_sc", "intra_attn", "q_decay", "k_decay_t", "dl_exp", "L_inv")


def cases() -> Iterator[Case]:
    yield from prepared()
    yield from sequences()


def prepared() -> Iterator[Case]:
    for heads, chunks in ((2, 3), (1, 1), (64, 2), (65, 1), (100, 1), (2, 0), (0, 2)):
        yield sequential(heads, chunks)
    for chunk, keys, values in ((64, 128, 128), (128, 64, 128), (128, 128, 256), (256, 256, 256), (120, 128, 128)):
        yield sequential(chunk=chunk, keys=keys, values=values)
    for state in (
        T((2, 128, 128), "float32"),
        T((2, 128, 128)),
        T((2, 1, 128, 128), "float32"),
        T((3, 128, 128), "float32"),
        T((2, 128, 128), "float32", mem="L1"),
        T((2, 128, 128), "float32", "ROW_MAJOR"),
    ):
        yield sequential(initial_state=state)
    shapes = shapes_of(2, 2, 128, 128, 128)
    for name, shape in shapes.items():
        yield sequential(change={name: T(shape, "bfloat16")})
        yield sequential(change={name: T(shape, "float32", "ROW_MAJOR")})
        yield sequential(change={name: T(shape, "float32", mem="L1")})
        yield sequential(change={name: T((*shape[:3], 2 * shape[3]), "float32")})
        yield sequential(change={name: T(shape[1:], "float32")})
    yield sequential(change={"v_beta_sc": T(shapes["v_beta_sc"], "float32", host=True)})
    for place in ("L1", "DRAM", height_sharded([128, 128], 4)):
        yield sequential(memory_config=M(place))
    for fidelity, wide in (("LoFi", False), ("HiFi4", True)):
        config = C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), fp32_dest_acc_en=wide)
        yield sequential(compute_kernel_config=config)


def shapes_of(heads: int, chunks: int, chunk: int, keys: int, values: int) -> dict[str, tuple[int, ...]]:
    square, by_key = (chunk, chunk), (chunk, keys)
    ends = (square, (chunk, values), by_key, square, by_key, (keys, chunk), (1, 1), (chunk, 32))
    return {name: (heads, chunks, *end) for name, end in zip(NAMES, ends)}


def sequential(
    heads: int = 2,
    chunks: int = 2,
    chunk: int = 128,
    keys: int = 128,
    values: int = 128,
    change: dict[str, Case] | None = None,
    **more: Any,
) -> Case:
    shapes = shapes_of(heads, chunks, chunk, keys, values)
    tensors = {name: T(shape, "float32") for name, shape in shapes.items()} | (change or {})
    return call(SEQUENTIAL, *tensors.values(), **more)


def sequence(
    batch: int = 1,
    tokens: int = 128,
    heads: int = 2,
    value_heads: int = 0,
    keys: int = 64,
    values: int = 64,
    change: dict[str, Case] | None = None,
    **more: Any,
) -> Case:
    of_values = value_heads or heads
    q, v, g = (batch, tokens, heads, keys), (batch, tokens, of_values, values), (batch, tokens, of_values)
    tensors = {"q": T(q), "k": T(q), "v": T(v), "g": T(g), "beta": T(g)} | (change or {})
    return call(CHUNKED, *tensors.values(), **more)


CHUNK_SIZES = (32, 64)
HEADS = ((1, 2, 4), (2, 3, 3), (1, 2, 3), (1, 2, 1), (1, 64, 64), (1, 65, 65), (2, 40, 40))
KERNELS = (("HiFi4", True, False), ("HiFi4", True, True), ("HiFi2", True, False), ("HiFi4", False, False))
MONO, PHASED = C("ChunkGdnMonoProgramConfig"), C("ChunkGdnPhasedProgramConfig")


def sequences() -> Iterator[Case]:
    for options in ({}, {"program_config": MONO}, {"program_config": PHASED}):
        for size in (32, 64, 128, 48, 0):
            yield sequence(chunk_size=size, **options)
        for tokens in (1, 100, 64):
            yield sequence(tokens=tokens, **options)
        for batch, heads, value_heads in HEADS:
            yield sequence(batch, 32, heads, value_heads, 32, 32, **options)
        for keys, values in ((128, 128), (32, 96), (48, 64), (64, 48), (128, 256), (256, 128)):
            yield sequence(keys=keys, values=values, **options)
        yield sequence(output_final_state=True, **options)
        yield sequence(tokens=100, output_head_major=True, **options)
        for way in ("HORNER", "FORWARD_SUBSTITUTION"):
            yield sequence(wy_inverse=E(f"ChunkGdnWyInverse.{way}"), chunk_size=32, **options)
    yield sequence(keys=256, values=256, program_config=PHASED)
    yield sequence(use_qk_l2norm=True)
    for scale in (0.5, 0.0, -1.0):
        yield sequence(scale=scale)
    for name, shape in (("q", (1, 128, 2, 64)), ("v", (1, 128, 2, 64)), ("g", (1, 128, 2))):
        for dtype in DTYPES:
            yield sequence(change={name: T(shape, dtype)})
        yield sequence(change={name: T(shape, layout="ROW_MAJOR")})
        yield sequence(change={name: T(shape, mem="L1")})
    for shape in ((1, 128, 2, 32), (1, 64, 2, 64), (1, 128, 4, 64), (1, 256, 2, 64), (2, 128, 2, 64), (1, 128, 128)):
        yield sequence(change={"k": T(shape)})
        yield sequence(change={"v": T(shape)})
    for shape in ((1, 128, 2, 1), (1, 128, 4), (1, 64, 2), (128, 2)):
        yield sequence(change={"g": T(shape)})
        yield sequence(change={"beta": T(shape)})
    for shape in ((1, 2, 64, 64), (2, 64, 64), (128, 64), (1, 2, 64, 32), (1, 1, 64, 64), (2, 2, 64, 64)):
        yield sequence(initial_state=T(shape, "float32"), output_final_state=True)
    for dtype in DTYPES:
        yield sequence(initial_state=T((1, 2, 64, 64), dtype))
    yield sequence(initial_state=T((1, 2, 64, 64), "float32", "ROW_MAJOR"))
    flat = {name: T((1, 128, 128)) for name in ("q", "k", "v")}
    for size in CHUNK_SIZES:
        yield sequence(change=flat, chunk_size=size)
        yield sequence(change={"v": flat["v"]}, chunk_size=size)
        yield sequence(change={"q": flat["q"], "k": flat["k"]}, chunk_size=size)
        yield sequence(change=flat | {"q": T((1, 128, 96)), "k": T((1, 128, 96))}, chunk_size=size)
        yield sequence(tokens=100, change={name: T((1, 100, 128)) for name in flat}, chunk_size=size)
        yield sequence(change=flat, chunk_size=size, program_config=MONO)
    for place in ("L1", height_sharded([32, 64], 4)):
        yield sequence(memory_config=M(place), output_final_state=True)
    constants = {name: T((1, 1, 64, 64), "float32") for name in ("eye", "tril", "ones")}
    constants["masks"] = T((1, 1, 32, 96), "float32")
    yield sequence(**constants)
    yield sequence(**constants | {"tril": T((1, 1, 64, 64))})
    yield sequence(eye=T((1, 1, 64, 64)))
    for fidelity, wide, approx in KERNELS:
        asked = {"math_fidelity": E(f"MathFidelity.{fidelity}"), "fp32_dest_acc_en": wide, "math_approx_mode": approx}
        yield sequence(compute_kernel_config=C("WormholeComputeKernelConfig", **asked))
