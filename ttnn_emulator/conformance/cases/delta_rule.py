"""The gated delta rule, from prepared matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import C, Case, E, M, T, call, height_sharded

SEQUENTIAL = "ttnn.transformer.gated_delta_attn_seq"
NAMES = ("L_unit", "v_beta_sc", "k_bd_sc", "intra_attn", "q_decay", "k_decay_t", "dl_exp", "L_inv")


def cases() -> Iterator[Case]:
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
