"""Collectives, put to a card with two chips."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import DTYPES, C, Case, M, T, block_sharded, call, height_sharded, width_sharded

BOARD = "n300"

SHAPES = ((1, 1, 32, 64), (1, 1, 64, 128), (2, 3, 64, 64), (1, 1, 4, 66), (1, 1, 5, 33), (2, 1, 17, 40), (32, 64), (7,),
          (6, 96), (3, 45, 70), (1, 2, 2, 32, 64))  # fmt: skip
DIMS = (-1, 0, 1, 2, 3, -2, 5, -6)
SENDERS = ((0, 0), (0, 1), (0, 2), (1, 0))
ALONG = ("ttnn.all_gather", "ttnn.reduce_scatter", "ttnn.mesh_partition")
WHOLE = ("ttnn.all_reduce", "ttnn.all_broadcast")


def _coordinate(place: tuple[int, int]) -> Case:
    return C("MeshCoordinate", *place)


def cases() -> Iterator[Case]:
    for op in ALONG:
        for shape in SHAPES:
            for dim in DIMS:
                yield call(op, T(shape), dim)
        for dtype in DTYPES:
            for layout in ("TILE", "ROW_MAJOR"):
                yield call(op, T((1, 1, 64, 128), dtype, layout), 3)
                yield call(op, T((1, 1, 64, 128), dtype, layout), 2)
        yield from _placed(op, 3)
        for axis in (0, 1, 2):
            yield call(op, T((1, 1, 64, 128)), 3, cluster_axis=axis)
        yield call(op, T((1, 1, 64, 128), host=True), 3)
        yield call(op, T((1, 1, 64, 128)), 1.5)
        yield call(op, T((1, 1, 64, 128)))
    for op in WHOLE:
        for shape in SHAPES:
            yield call(op, T(shape))
        for dtype in DTYPES:
            for layout in ("TILE", "ROW_MAJOR"):
                yield call(op, T((1, 1, 64, 128), dtype, layout))
        yield from _placed(op)
        for axis in (0, 1, 2):
            yield call(op, T((1, 1, 64, 128)), cluster_axis=axis)
        yield call(op, T((1, 1, 64, 128), host=True))
        yield call(op, 1.0)
    for shape in SHAPES:
        for sender in SENDERS:
            yield call("ttnn.broadcast", T(shape), _coordinate(sender))
            yield call("ttnn.point_to_point", T(shape), _coordinate(sender), _coordinate((0, 1)))
    for dtype in DTYPES:
        yield call("ttnn.broadcast", T((1, 1, 64, 128), dtype), _coordinate((0, 0)))
        yield call("ttnn.point_to_point", T((1, 1, 64, 128), dtype), _coordinate((0, 0)), _coordinate((0, 1)))
    yield from _placed("ttnn.broadcast", _coordinate((0, 0)))


def _placed(op: str, *rest: object) -> Iterator[Case]:
    shape = (1, 1, 64, 128)
    for memory in (
        "L1",
        height_sharded([32, 128], 2),
        width_sharded([64, 64], 2),
        block_sharded([32, 64], (2, 2)),
    ):
        yield call(op, T(shape, mem=memory), *rest)
        yield call(op, T(shape), *rest, memory_config=M(memory))
        yield call(op, T(shape, mem=memory), *rest, memory_config=M("DRAM"))
