"""Functions that only the library's tests call: forced kernels, delays, strategies of moreh_softmax."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import DEVICE, C, Case, E, G, M, T, block_sharded, call, height_sharded

MOVES = "ttnn._ttnn.operations.data_movement"
STRATEGY = "operations.moreh.SoftmaxOpParallelizationStrategy"
GRADIENT_STRATEGY = "operations.moreh.SoftmaxBackwardOpParallelizationStrategy"

SHAPES = ((7,), (64,), (64, 96), (5, 33), (3, 45, 70), (2, 3, 17, 40), (1, 2, 3, 32, 64), (1, 2, 3, 5, 33), (0, 64))


def cases() -> Iterator[Case]:
    yield from untilized("untilize_force_codegen")
    yield from untilized("untilize_force_native")
    for cores in (G([1, 0, 3, 6]), G([0, 0, 0, 0])):
        for shape in ((32, 128), (64, 128)):
            yield call(f"{MOVES}.untilize_force_native", T(shape), sub_core_grids=cores)
    yield call(f"{MOVES}.untilize_force_native", T([64, 128]), use_multicore=False)
    yield call(f"{MOVES}.untilize_force_native", T([64, 128]), use_multicore=1)
    yield from delays()
    yield from strategies()


def untilized(name: str) -> Iterator[Case]:
    op = f"{MOVES}.{name}"
    for shape in SHAPES:
        for dtype in ("bfloat16", "bfloat8_b"):
            yield call(op, T(shape, dtype))
        yield call(op, T(shape, "float32"), memory_config=M("L1"))
    for dtype in ("int32", "uint16", "bfloat4_b"):
        yield call(op, T([64, 64], dtype))
    yield call(op, T([64, 64], layout="ROW_MAJOR"))
    yield call(op, T([64, 64], host=True))
    yield call(op, T([64, 64]), memory_config="L1")
    for width in (6240, 6272, 131072, 32 * 200 + 1):
        yield call(op, T([32, width]))
        yield call(op, T([64, width]))
    sharded = height_sharded([32, 64], cores=2)
    yield call(op, T([64, 64], mem=sharded))
    yield call(op, T([64, 64]), memory_config=M(sharded))
    yield call(op, T([64, 64], mem=block_sharded([32, 32], [2, 2])), memory_config=M("DRAM"))


def delays() -> Iterator[Case]:
    op = "ttnn.apply_device_delay"
    for given in ([[0]], [[5]], [[1 << 31]], [[(1 << 32) - 1]], [[1 << 32]], [[-1]], [[1.5]], [[1, 2]], [[1], [2]], []):
        yield call(op, DEVICE, given)
    for part in (0, 7, None):
        yield call(op, DEVICE, [[9]], subdevice_id=part)
    for number in (0, 1, 7):
        yield call(op, DEVICE, [[9]], subdevice_id=C("SubDeviceId", number))
    yield call(op, [[9]])
    yield call(op, DEVICE)
    yield call(op, DEVICE, 9)
    yield call(op, DEVICE, [9])
    yield call(op, DEVICE, [["9"]])
    yield call(op, None, [[9]])


def strategies() -> Iterator[Case]:
    for member in ("NONE", "SMALL_W", "SMALL_H", "LARGE_W", "LARGE_H", "LARGE_C"):
        for name in ("softmax", "softmin", "logsoftmax"):
            for dim in (0, 1, 2):
                strategy = E(f"{STRATEGY}.{member}")
                yield call(f"ttnn.moreh_{name}", T([2, 64, 96]), dim, strategy=strategy)
        wide = T([32, 32 * 400])
        yield call("ttnn.moreh_softmax", wide, 1, strategy=E(f"{STRATEGY}.{member}"))
        yield call("ttnn.moreh_softmax", T([64, 64]), 1, strategy=E(f"{GRADIENT_STRATEGY}.{member}"))
        for dim in (0, 1, 2):
            y = T([2, 64, 96])
            yield call("ttnn.moreh_softmax_backward", y, y, dim, strategy=E(f"{GRADIENT_STRATEGY}.{member}"))
        yield call("ttnn.moreh_softmax_backward", wide, wide, 1, strategy=E(f"{GRADIENT_STRATEGY}.{member}"))
    yield call("ttnn.moreh_softmax", T([64, 64]), 1, op=E("_ttnn.operations.moreh.MorehSoftmaxOp.SOFTMIN"))
    yield call("ttnn.moreh_softmax", T([64, 64]), 1, op=E("operations.moreh.SoftmaxOp.SMALL_W"))
    yield call("ttnn.moreh_softmax", T([64, 64]), 1, strategy="LARGE_W")
