"""Parts of Kimi Delta Attention: the short convolution before its recurrence, the gated norm after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import C, Case, E, M, T, call, height_sharded

CONVOLUTION = "ttnn.experimental.kda.qkv_causal_conv1d_silu"
NORM = "ttnn.experimental.kda.sigmoid_gated_rms_norm"
DTYPES = ("bfloat16", "float32", "bfloat8_b", "int32")


def cases() -> Iterator[Case]:
    yield from norms()
    yield from convolutions()


def rows(*shape: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T(shape, dtype, "ROW_MAJOR", **more)


def kernel_config(**more: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi2"), **more)


# -- the norm ---------------------------------------------------------------------------------------------------------


def norm(
    x: Case | None = None, gate: Case | None = None, weight: Case | None = None, heads: int = 2, **more: Any
) -> Case:
    x, gate, weight = x or T((2, 64, 64), "float32"), gate or T((1, 64, 128)), weight or T((64,))
    return call(NORM, x, gate, weight, heads, **more)


def norms() -> Iterator[Case]:
    for batch, heads, tokens, width in (
        (1, 2, 64, 64), (2, 3, 32, 128), (1, 1, 96, 32), (4, 2, 32, 64), (1, 2, 60, 64), (1, 2, 64, 40), (0, 2, 64, 64),
        (1, 2, 0, 64), (1, 2, 32, 1024), (1, 2, 32, 2048),
    ):  # fmt: skip
        shapes = (batch * heads, tokens, width), (batch, tokens, heads * width), (width,)
        yield norm(T(shapes[0], "float32"), T(shapes[1]), T(shapes[2]), heads)
    for dtype in DTYPES:
        yield norm(T((2, 64, 64), dtype))
        yield norm(gate=T((1, 64, 128), dtype))
        yield norm(weight=T((64,), dtype))
        yield norm(output_dtype=E(dtype))
    for heads in (0, 1, 3):
        yield norm(heads=heads)
    for epsilon in (1e-3, 0.0, -1.0):
        yield norm(epsilon=epsilon)
    for shape in ((1, 64), (32,), (64, 1)):
        yield norm(weight=T(shape))
    for shape in ((64, 128), (2, 64, 128), (1, 32, 128), (1, 64, 96)):
        yield norm(gate=T(shape))
    for offset in (0, 64, 128, 160, 16):
        yield norm(gate=T((1, 64, 256)), gate_column_offset=offset)
    yield norm(T((1, 2, 64, 64), "float32"))
    for place in ("L1", height_sharded([32, 64], 4)):
        yield norm(T((2, 64, 64), "float32", mem=place))
    for place in ("L1", height_sharded([32, 128], 2)):
        yield norm(gate=T((1, 64, 128), mem=place))
        yield norm(memory_config=M(place))
    yield norm(rows(2, 64, 64, dtype="float32"))
    yield norm(gate=rows(1, 64, 128))
    yield norm(weight=rows(64))
    yield norm(gate=T((1, 64, 128), host=True))
    for options in ({"fp32_dest_acc_en": False}, {"packer_l1_acc": True}, {"dst_full_sync_en": True}):
        yield norm(compute_kernel_config=kernel_config(**options))


# -- the convolution --------------------------------------------------------------------------------------------------


def convolution(
    tokens: int = 64,
    widths: tuple[int, int, int] = (64, 64, 64),
    chunk: int = 64,
    change: dict[str, Case] | None = None,
    **more: Any,
) -> Case:
    total = sum(widths)
    tensors = {"input": T((1, tokens, total)), "history": rows(1, 3, total)}
    tensors |= {f"tap{number}": T((total,)) for number in range(4)} | (change or {})
    named = {
        "program_config": C("QkvCausalConv1dSiluProgramConfig", channel_chunk_size=chunk),
        "actual_start": rows(1, dtype="uint32"),
        "predecessor_carry": rows(1, 3, total),
    }
    return call(CONVOLUTION, *tensors.values(), *widths, **named | more)


def convolutions() -> Iterator[Case]:
    for tokens, widths, chunk in (
        (64, (64, 64, 64), 64), (128, (128, 64, 64), 64), (32, (32, 32, 32), 32), (32, (32, 32, 32), 96),
        (32, (64, 32, 96), 192), (60, (64, 64, 64), 64), (0, (64, 64, 64), 64), (64, (60, 64, 64), 32),
        (64, (0, 64, 64), 64), (64, (64, 64, 64), 48), (64, (64, 64, 64), 0), (64, (64, 64, 64), 128),
        (64, (64, 64, 64), 224), (32, (512, 512, 512), 1536), (32, (1024, 1024, 1024), 3072),
    ):  # fmt: skip
        yield convolution(tokens, widths, chunk)
    for dtype in DTYPES:
        yield convolution(change={"input": T((1, 64, 192), dtype)})
        yield convolution(change={"tap2": T((192,), dtype)})
    for shape in ((64, 192), (1, 1, 64, 192), (2, 64, 192), (1, 64, 250), (1, 64, 160)):
        yield convolution(change={"input": T(shape)})
    yield convolution(change={"input": rows(1, 64, 192)})
    yield convolution(change={"input": rows(1, 60, 192)})
    for place in ("L1", height_sharded([32, 192], 2)):
        yield convolution(change={"input": T((1, 64, 192), mem=place)})
    for place in ("L1", height_sharded([32, 192], 1)):
        yield convolution(change={"tap1": T((192,), mem=place)})
    for offset in (0, 32, 64, 96, 16):
        yield convolution(change={"input": T((1, 64, 256))}, input_column_offset=offset)
    for shape in ((1, 192), (1, 1, 192), (2, 192), (192, 1), (64,)):
        yield convolution(change={"tap0": T(shape)})
    yield convolution(change={"tap3": rows(192)})
    for history in (rows(1, 3, 192, mem="L1"), rows(1, 4, 192), rows(1, 3, 192, dtype="float32"), T((1, 3, 192))):
        yield convolution(change={"history": history}, predecessor_carry=history)
        yield convolution(change={"history": history})
    for start in (
        rows(1, 1, dtype="uint32"),
        rows(2, dtype="uint32"),
        rows(1, dtype="int32"),
        rows(1, dtype="uint32", mem="L1"),
        rows(1, dtype="uint32", host=True),
        T((1, 1), "uint32"),
    ):
        yield convolution(actual_start=start)
    for place in ("L1", height_sharded([32, 64], 2)):
        yield convolution(memory_config=M(place))
    for axis in (1, 2):
        yield convolution(sequence_parallel_axis=axis)
    for options in ({"fp32_dest_acc_en": True}, {"packer_l1_acc": True}, {"math_approx_mode": True}):
        yield convolution(chunk=192, compute_kernel_config=kernel_config(**{"math_approx_mode": False} | options))
