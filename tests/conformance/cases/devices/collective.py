"""Collectives on a card with two chips."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    DEVICE,
    DTYPES,
    LAYOUTS,
    C,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    width_sharded,
)

BOARD = "n300"

SHAPES = ((1, 1, 32, 64), (1, 1, 64, 128), (2, 3, 64, 64), (1, 1, 4, 66), (1, 1, 5, 33), (2, 1, 17, 40), (32, 64), (7,),
          (6, 96), (3, 45, 70), (1, 2, 2, 32, 64))  # fmt: skip
DIMS = (-1, 0, 1, 2, 3, -2, 5, -6)
PLAIN = (1, 1, 64, 128)
SENDERS = ((0, 0), (0, 1), (0, 2), (1, 0))
ALONG = ("ttnn.all_gather", "ttnn.reduce_scatter", "ttnn.mesh_partition")
WHOLE = ("ttnn.all_reduce", "ttnn.all_broadcast")
SEMAPHORE = C("create_global_semaphore", DEVICE, G([0, 0, 7, 7]), 0)
SHARDS = (height_sharded([32, 128], 2), width_sharded([64, 64], 2), block_sharded([32, 64], (2, 2)))


def cases() -> Iterator[Case]:
    for op in ALONG:
        yield from _along(op)
    for op in WHOLE:
        yield from _whole(op)
    yield from _by_place()
    yield from _gathered_rows()
    yield from _arguments()
    yield from _asynchronous()
    yield from _experts()


def _coordinate(place: tuple[int, int]) -> Case:
    return C("MeshCoordinate", *place)


def _along(op: str) -> Iterator[Case]:
    for shape in SHAPES:
        for dim in DIMS:
            yield call(op, T(shape), dim)
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call(op, T(PLAIN, dtype, layout), 3)
            yield call(op, T(PLAIN, dtype, layout), 2)
    yield from _placed(op, 3)
    for axis in (0, 1, 2):
        yield call(op, T(PLAIN), 3, cluster_axis=axis)
    yield call(op, T(PLAIN, host=True), 3)
    yield call(op, T(PLAIN), 1.5)
    yield call(op, T(PLAIN))


def _whole(op: str) -> Iterator[Case]:
    for shape in SHAPES:
        yield call(op, T(shape))
        yield call(op, T(shape, "bfloat16", "ROW_MAJOR"))
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call(op, T(PLAIN, dtype, layout))
            yield call(op, T((3, 45, 70), dtype, layout))
    yield from _placed(op)
    for axis in (0, 1, 2):
        yield call(op, T(PLAIN), cluster_axis=axis)
    yield call(op, T(PLAIN, host=True))
    yield call(op, 1.0)


def _by_place() -> Iterator[Case]:
    for shape in SHAPES:
        for sender in SENDERS:
            yield call("ttnn.broadcast", T(shape), _coordinate(sender))
            yield call("ttnn.point_to_point", T(shape), _coordinate(sender), _coordinate((0, 1)))
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call("ttnn.broadcast", T(PLAIN, dtype, layout), _coordinate((0, 0)))
            for receiver in ((0, 0), (0, 1)):
                yield call("ttnn.point_to_point", T(PLAIN, dtype, layout), _coordinate((0, 0)), _coordinate(receiver))
    yield from _placed("ttnn.broadcast", _coordinate((0, 0)))
    for axis in (0, 1, 2, -1):
        yield call("ttnn.broadcast", T(PLAIN), _coordinate((0, 0)), cluster_axis=axis)
    for wrong in ([T(PLAIN, host=True), _coordinate((0, 0))], [T(PLAIN)], [T(PLAIN), 0], [1.0, _coordinate((0, 0))]):
        yield call("ttnn.broadcast", *wrong)
    for links in (0, 1, 9):
        yield call("ttnn.broadcast", T(PLAIN), _coordinate((0, 0)), num_links=links)
    to_second = [_coordinate((0, 0)), _coordinate((0, 1))]
    for memory in SHARDS:
        yield call("ttnn.point_to_point", T(PLAIN, mem=memory), *to_second)
    for width in (3, 4, 5, 8, 12, 16):
        yield call("ttnn.point_to_point", T((4, width), "bfloat16", "ROW_MAJOR"), *to_second)
    yield call("ttnn.point_to_point", T(PLAIN), *to_second, output_tensor=T(PLAIN))
    yield call("ttnn.point_to_point", T(PLAIN), *to_second, output_tensor=T(PLAIN, mem="L1"))
    yield call("ttnn.point_to_point", T(PLAIN), *to_second, output_tensor=T(PLAIN, "float32"))
    yield call("ttnn.point_to_point", T(PLAIN), *to_second, output_tensor=T((1, 1, 64, 64)))


def _gathered_rows() -> Iterator[Case]:
    """Rows and shards of all widths, for gathers of one or several programs."""
    for op in ("ttnn.all_gather", "ttnn.reduce_scatter"):
        for width in (4, 8, 10, 16, 24, 32, 33):
            for dim in (0, 1):
                for memory in ("DRAM", "L1"):
                    yield call(op, T((4, width), "bfloat16", "ROW_MAJOR", memory), dim)
                yield call(op, T((4, width), "bfloat16", "ROW_MAJOR"), dim, memory_config=M("L1"))
    for op in ("ttnn.all_gather", "ttnn.reduce_scatter", "ttnn.all_broadcast"):
        for source in SHARDS:
            for target in ("DRAM", "L1", height_sharded([32, 256], 2), width_sharded([64, 128], 2),
                           height_sharded([32, 64], 2), width_sharded([64, 32], 2)):  # fmt: skip
                rest = () if op == "ttnn.all_broadcast" else (3,)
                for layout in LAYOUTS:
                    yield call(op, T(PLAIN, "bfloat16", layout, source), *rest, memory_config=M(target))


def _arguments() -> Iterator[Case]:
    gathered, scattered = (1, 1, 64, 256), (1, 1, 64, 64)
    for shape, dtype, layout, memory in (
        (gathered, "bfloat16", "TILE", "DRAM"),
        (gathered, "bfloat16", "TILE", "L1"),
        (gathered, "float32", "TILE", "DRAM"),
        (gathered, "bfloat16", "ROW_MAJOR", "DRAM"),
        (scattered, "bfloat16", "TILE", "DRAM"),
        (scattered, "bfloat16", "TILE", "L1"),
        (scattered, "float32", "TILE", "DRAM"),
        ((1, 64, 64), "bfloat16", "TILE", "DRAM"),
        ((1, 1, 64, 250), "bfloat16", "TILE", "DRAM"),
    ):
        for op in ("ttnn.all_gather", "ttnn.reduce_scatter"):
            yield call(op, T(PLAIN), 3, output_tensor=T(shape, dtype, layout, memory))
            yield call(op, T(PLAIN), 3, memory_config=M("L1"), output_tensor=T(shape, dtype, layout, memory))
    for config in ("DRAM", "L1", height_sharded([64, 128], 2), height_sharded([32, 128], 2)):
        yield call("ttnn.reduce_scatter", T(PLAIN), 3, intermediate_memory_config=M(config))
    accurate = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi4"), fp32_dest_acc_en=True)
    yield call("ttnn.reduce_scatter", T(PLAIN), 3, compute_kernel_config=accurate)
    for topology in ("Linear", "Ring", "Mesh"):
        for op, *rest in (("ttnn.all_gather", 3), ("ttnn.reduce_scatter", 3), ("ttnn.all_reduce",)):
            yield call(op, T(PLAIN), *rest, topology=E(f"Topology.{topology}"), num_links=1)


def _asynchronous() -> Iterator[Case]:
    two = [SEMAPHORE, SEMAPHORE]
    gather, scatter, total = (
        f"ttnn.experimental.{name}" for name in ("all_gather_async", "reduce_scatter_minimal_async", "all_reduce_async")
    )
    for shape in SHAPES:
        for dim in (-1, 0, 1, 3, 5):
            yield call(gather, T(shape), dim, two)
            yield call(gather, T(shape), None, dim, two, cluster_axis=1)
            yield call(scatter, T(shape), None, dim, [*two, SEMAPHORE])
        yield call(total, T(shape), 1, DEVICE, math_op=E("ReduceType.Sum"))
        yield call(total, T(shape), 1, DEVICE, two, [*two, SEMAPHORE], two, math_op=E("ReduceType.Sum"))
        yield call(total, T(shape), 2, two, [*two, SEMAPHORE], two, E("ReduceType.Sum"))
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call(gather, T(PLAIN, dtype, layout), 3, two)
            yield call(scatter, T(PLAIN, dtype, layout), None, 3, [*two, SEMAPHORE])
            yield call(total, T(PLAIN, dtype, layout), 1, DEVICE, math_op=E("ReduceType.Sum"))
    for memory in ("L1", *SHARDS):
        for target in (None, M("DRAM"), M(memory)):
            kwargs = {} if target is None else {"memory_config": target}
            yield call(gather, T(PLAIN, mem=memory), 3, two, **kwargs)
            yield call(scatter, T(PLAIN, mem=memory), None, 3, [*two, SEMAPHORE], **kwargs)
            yield call(total, T(PLAIN, mem=memory), 1, DEVICE, math_op=E("ReduceType.Sum"), **kwargs)
            yield call(
                total,
                T(PLAIN, mem=memory),
                1,
                DEVICE,
                two,
                [*two, SEMAPHORE],
                two,
                math_op=E("ReduceType.Sum"),
                **kwargs,
            )
    for axis in (0, 1, 2):
        yield call(gather, T(PLAIN), None, 3, two, cluster_axis=axis)
        yield call(gather, T(PLAIN), 3, axis, DEVICE, E("Topology.Linear"), two)
        yield call(scatter, T(PLAIN), None, 3, [*two, SEMAPHORE], cluster_axis=axis)
        yield call(total, T(PLAIN), axis, DEVICE, math_op=E("ReduceType.Sum"))
    for semaphores in (SEMAPHORE, [], [SEMAPHORE], [*two, SEMAPHORE]):
        yield call(gather, T(PLAIN), 3, semaphores)
    for shape, dtype, memory in (
        ((1, 1, 64, 256), "bfloat16", "DRAM"),
        ((1, 1, 64, 256), "bfloat16", "L1"),
        ((1, 1, 64, 256), "float32", "DRAM"),
        ((1, 1, 64, 192), "bfloat16", "DRAM"),
        ((1, 1, 64, 512), "bfloat16", "DRAM"),
        ((1, 64, 256), "bfloat16", "DRAM"),
        ((1, 1, 32, 256), "bfloat16", "DRAM"),
    ):
        yield call(gather, T(PLAIN), T(shape, dtype, mem=memory), 3, two)
        buffers = [T((2, 1, 64, 128)), T(shape, dtype, mem=memory)]
        yield call(scatter, T((1, 1, 64, 512)), buffers, 3, [*two, SEMAPHORE])
    for shape, dim in ((PLAIN, 2), (PLAIN, 3), ((1, 1, 32, 64), 3), ((32, 64), 1), ((2, 1, 32, 64), 3)):
        yield call(gather, T(shape), None, dim, two, use_broadcast=True)
    backwards = f"{gather}_reversed"
    for shape in SHAPES:
        for dim in (-1, 0, 1, 5):
            yield call(backwards, T(shape), dim, two)
    for layout in LAYOUTS:
        for axis in (0, 1, 2):
            yield call(backwards, T(PLAIN, "bfloat16", layout), None, 3, two, cluster_axis=axis)
            yield call(backwards, T(PLAIN, "bfloat16", layout), 3, axis, DEVICE, E("Topology.Linear"), two)
    yield call(backwards, T(PLAIN), T((1, 1, 64, 256)), 3, two)
    yield call(backwards, T(PLAIN), T((1, 1, 64, 256), mem="L1"), 3, two)
    yield call(backwards, T(PLAIN), 3, [SEMAPHORE])
    yield call(gather, T(PLAIN, host=True), 3, two)
    yield call(scatter, T(PLAIN, host=True), None, 3, [*two, SEMAPHORE])
    yield call(scatter, T(PLAIN), None, 3, SEMAPHORE)
    yield call(gather, T(PLAIN), 3)
    yield from _sums_in_a_buffer(total)


def _sums_in_a_buffer(op: str) -> Iterator[Case]:
    shape, shards = (1, 1, 32, 128), width_sharded([32, 32], 4)
    room = T((1, 1, 32, 256), mem=width_sharded([32, 64], 4))
    for source, buffer in (
        (T(shape, mem=shards), room),
        (T(shape, "bfloat8_b", mem=shards), T((1, 1, 32, 256), "bfloat8_b", mem=width_sharded([32, 64], 4))),
        (T(shape, "float32", mem=shards), T((1, 1, 32, 256), "float32", mem=width_sharded([32, 64], 4))),
        (T(shape, mem=shards), T(shape, mem=shards)),
        (T(shape), room),
        (T(shape, mem=shards), T((1, 1, 32, 256))),
        (T(shape, mem=shards), T((1, 1, 32, 256), mem=width_sharded([32, 128], 2))),
        (T((1, 1, 64, 128), mem=height_sharded([32, 128], 2)), room),
    ):
        yield call(op, source, buffer, 1, DEVICE, SEMAPHORE)
    for axis in (0, 2):
        yield call(op, T(shape, mem=shards), room, axis, DEVICE, SEMAPHORE)
    for dtype in ("bfloat16", "bfloat8_b", "float32"):
        yield call(op, T(shape, mem=shards), room, 1, DEVICE, SEMAPHORE, dtype=E(dtype))
    for memory in ("DRAM", width_sharded([32, 64], 2), width_sharded([32, 128], 1)):
        yield call(op, T(shape, mem=shards), room, 1, DEVICE, SEMAPHORE, memory_config=M(memory))


def _experts() -> Iterator[Case]:
    rows = "ROW_MAJOR"
    tokens = T((8, 1, 1, 64), "bfloat16", rows)
    indices = T((8, 1, 1, 4), "uint16", rows)
    places = T((1, 1, 8, 2), "uint16", rows)
    dispatch, combine = "ttnn.all_to_all_dispatch", "ttnn.all_to_all_combine"
    for axis in (None, 0, 1):
        for concat in (1, 2, 0, 3):
            yield call(dispatch, tokens, indices, places, cluster_axis=axis, output_concat_dim=concat)
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call(dispatch, T((8, 1, 1, 64), dtype, layout), indices, places, cluster_axis=1)
            yield call(dispatch, tokens, T((8, 1, 1, 4), dtype, layout), places, cluster_axis=1)
    for shape, chosen in (
        ((4, 2, 1, 96), (4, 2, 1, 8)),
        ((4, 1, 2, 96), (4, 1, 2, 8)),
        ((4, 1, 1, 96), (8, 1, 1, 8)),
        ((4, 96), (4, 8)),
        ((4, 1, 96), (4, 1, 8)),
        ((1, 4, 1, 33), (1, 4, 1, 3)),
    ):
        yield call(dispatch, T(shape, "bfloat16", rows), T(chosen, "uint16", rows), places, cluster_axis=1)
        yield call(
            dispatch, T(shape, "bfloat16", rows), T(chosen, "uint16", rows), places, cluster_axis=1, output_concat_dim=2
        )
    for memory in ("L1", "DRAM", height_sharded([8, 64], 2)):
        yield call(dispatch, tokens, indices, places, cluster_axis=1, memory_config=M(memory))
        yield call(dispatch, T((8, 1, 1, 64), "bfloat16", rows, "L1"), indices, places, cluster_axis=1)
    yield call(dispatch, T((8, 1, 1, 64), "bfloat16", rows, host=True), indices, places, cluster_axis=1)
    yield call(dispatch, tokens, indices, cluster_axis=1)

    made, metadata = T((4, 16, 1, 64), "bfloat16", rows), T((1, 16, 1, 4), "uint16", rows)
    for axis in (None, 0, 1):
        for dim in (1, 2, 0, 3):
            yield call(combine, made, metadata, places, cluster_axis=axis, output_shard_dim=dim)
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield call(combine, T((4, 16, 1, 64), dtype, layout), metadata, places, cluster_axis=1)
            yield call(combine, made, T((1, 16, 1, 4), dtype, layout), places, cluster_axis=1)
    for first, chosen, mapping, reduced in (
        ((4, 8, 2, 64), (1, 8, 2, 4), (1, 1, 8, 2), False),
        ((1, 8, 2, 64), (1, 8, 2, 4), (1, 1, 8, 2), True),
        ((4, 8, 2, 64), (1, 8, 2, 4), (1, 1, 8, 2), True),
        ((4, 7, 2, 64), (1, 7, 2, 4), (1, 1, 8, 2), False),
        ((4, 8, 3, 64), (1, 8, 3, 4), (1, 1, 8, 2), False),
        ((2, 8, 2, 64), (1, 8, 2, 4), (1, 1, 8, 2), False),
        ((4, 8, 2, 64), (1, 8, 2, 4), (1, 1, 7, 2), False),
        ((4, 16, 64), (16, 1, 4), (1, 8, 2), False),
    ):
        for dim in (1, 2):
            yield call(combine, T(first, "bfloat16", rows), T(chosen, "uint16", rows), T(mapping, "uint16", rows),
                       cluster_axis=1, local_reduce=reduced, output_shard_dim=dim)  # fmt: skip
    for memory in ("L1", height_sharded([8, 64], 2)):
        yield call(combine, made, metadata, places, cluster_axis=1, memory_config=M(memory))
    for shape in ((4, 8, 1, 64), (4, 16, 1, 64)):
        yield call(combine, made, metadata, places, cluster_axis=1, output_tensor=T(shape, "bfloat16", rows))


def _placed(op: str, *rest: object) -> Iterator[Case]:
    for memory in ("L1", *SHARDS):
        yield call(op, T(PLAIN, mem=memory), *rest)
        yield call(op, T(PLAIN), *rest, memory_config=M(memory))
        yield call(op, T(PLAIN, mem=memory), *rest, memory_config=M("DRAM"))
