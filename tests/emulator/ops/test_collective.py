"""Collectives compared with torch, on a row of two chips and on a 2 × 4 grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer
from ttnn_emulator.ops.collective.exchange import adder

MESHES = {"n300": (1, 2), "t3000": (2, 4)}
# The matrix unit adds: bfloat16 is rounded at every addition, float32 keeps 10 fraction bits.
CLOSE = {ttnn.bfloat16: (2**-6, 2**-6), ttnn.float32: (2**-7, 2**-8), ttnn.bfloat8_b: (2**-3, 2**-4)}


@pytest.fixture(params=MESHES)
def mesh(request) -> Iterator[ttnn.MeshDevice]:
    with ttnn.open_mesh_device(ttnn.MeshShape(*MESHES[request.param]), board=request.param) as opened:
        yield opened


@pytest.fixture
def row() -> Iterator[ttnn.MeshDevice]:
    with ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300") as opened:
        yield opened


@pytest.fixture
def grid() -> Iterator[ttnn.MeshDevice]:
    with ttnn.open_mesh_device(ttnn.MeshShape(2, 4), board="t3000") as opened:
        yield opened


def deal(parts: list[torch.Tensor], mesh, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, **options):
    """A tensor with one part per chip, and the stored values."""
    tensor = ttnn.from_torch(
        torch.cat(parts),
        dtype=dtype,
        layout=layout,
        device=mesh,
        mesh_mapper=ttnn.ShardTensorToMesh(mesh, 0),
        **options,
    )
    return tensor, pieces(tensor)


def pieces(tensor) -> list[torch.Tensor]:
    return [ttnn.to_torch(each).float() for each in ttnn.get_device_tensors(tensor)]


def values(mesh, shape=(1, 1, 64, 256), seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for _ in range(mesh.get_num_devices())]


def lines(mesh, axis: int | None) -> list[list[int]]:
    numbers = torch.arange(mesh.get_num_devices()).reshape(tuple(mesh.shape))
    if axis is None:
        return [numbers.flatten().tolist()]
    return (numbers.T if axis == 0 else numbers).tolist()


def expected(parts: list[torch.Tensor], mesh, axis, join: Callable) -> list[torch.Tensor]:
    """`join` maps the parts of a line of chips to the result of each chip."""
    results: list = [None] * len(parts)
    for line in lines(mesh, axis):
        for chip, result in zip(line, join([parts[chip] for chip in line])):
            results[chip] = result
    return results


def axes(mesh) -> list[int]:
    return [axis for axis, size in enumerate(mesh.shape) if size > 1]


def gathered(dim: int) -> Callable:
    return lambda parts: [torch.cat(parts, dim)] * len(parts)


def scattered(dim: int) -> Callable:
    return lambda parts: torch.stack(parts).sum(0).chunk(len(parts), dim)


def total(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.stack(parts).sum(0)] * len(parts)


@pytest.mark.parametrize("shape", [(1, 1, 64, 256), (1, 2, 17, 40), (2, 3, 5, 33), (8, 64)])
@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_all_gather_moves_bits(mesh, shape, layout) -> None:
    tensor, parts = deal(values(mesh, shape), mesh, layout=layout)
    for axis in axes(mesh):
        for dim in range(len(shape)):
            result = ttnn.all_gather(tensor, dim, cluster_axis=axis)
            for got, want in zip(pieces(result), expected(parts, mesh, axis, gathered(dim))):
                assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape, dim", [((1, 1, 64, 256), 3), ((1, 8, 64, 32), 1), ((1, 1, 256, 64), 2)])
def test_reduce_scatter_adds(mesh, dtype, shape, dim) -> None:
    atol, rtol = CLOSE[dtype]
    tensor, parts = deal(values(mesh, shape), mesh, dtype)
    for axis in axes(mesh):
        result = ttnn.reduce_scatter(tensor, dim, cluster_axis=axis)
        for got, want in zip(pieces(result), expected(parts, mesh, axis, scattered(dim))):
            torch.testing.assert_close(got, want, atol=atol * 2, rtol=rtol)


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_reduce_scatter_of_partial_tiles(row, layout) -> None:
    tensor, parts = deal(values(row, (1, 2, 10, 70)), row, layout=layout)
    for dim in (1, 2, 3):
        result = ttnn.reduce_scatter(tensor, dim)
        assert result.layout is layout
        for got, want in zip(pieces(result), expected(parts, row, None, scattered(dim))):
            torch.testing.assert_close(got, want, atol=2**-6, rtol=2**-6)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", [(1, 1, 64, 256), (1, 1, 5, 33), (3, 45, 70), (1, 7)])
def test_all_reduce_adds(mesh, dtype, shape) -> None:
    atol, rtol = CLOSE[dtype]
    tensor, parts = deal(values(mesh, shape), mesh, dtype)
    for axis in (*axes(mesh), None):
        result = ttnn.all_reduce(tensor, cluster_axis=axis)
        for got, want in zip(pieces(result), expected(parts, mesh, axis, total)):
            torch.testing.assert_close(got, want, atol=atol * 4, rtol=rtol)


def test_sums_are_rounded_at_every_chip_in_both_directions(grid) -> None:
    """Chip 2 of a line of four first adds (x0 + x1) to its own part, then x3; each sum is a bfloat16."""
    parts = values(grid, (1, 1, 32, 128), seed=3)
    tensor, stored_parts = deal(parts, grid)
    result = pieces(ttnn.reduce_scatter(tensor, 3, cluster_axis=1))[2]
    x0, x1, x2, x3 = (part.chunk(4, 3)[2] for part in stored_parts[:4])
    add = adder(ttnn.bfloat16)
    assert torch.equal(result, add(add(x2, add(x1, x0)), x3))


def test_float32_is_truncated_by_the_matrix_unit(row) -> None:
    tensor, parts = deal([torch.full((1, 1, 32, 64), 1 + 2**-12), torch.zeros(1, 1, 32, 64)], row, ttnn.float32)
    assert parts[0].max() == 1 + 2**-12
    assert pieces(ttnn.all_reduce(tensor))[0].max() == 1.0


def test_integers_cannot_be_added(row) -> None:
    tensor, _ = deal([torch.ones(1, 1, 32, 64, dtype=torch.int32)] * 2, row, ttnn.int32)
    with pytest.raises(ttnn.ChipFault, match="matrix unit"):
        ttnn.reduce_scatter(tensor, 3)


def test_all_broadcast(mesh) -> None:
    tensor, parts = deal(values(mesh, (1, 32)), mesh)
    everywhere = ttnn.all_broadcast(tensor)
    assert len(everywhere) == len(parts)
    for number, each in enumerate(everywhere):
        assert all(torch.equal(piece, parts[number]) for piece in pieces(each))


def test_broadcast(mesh) -> None:
    tensor, parts = deal(values(mesh, (1, 32)), mesh)
    for axis in axes(mesh):
        place = [0, 0]
        place[axis] = 1
        result = ttnn.broadcast(tensor, ttnn.MeshCoordinate(*place), cluster_axis=axis)
        for got, want in zip(pieces(result), expected(parts, mesh, axis, lambda line: [line[1]] * len(line))):
            assert torch.equal(got, want)


def test_a_broadcast_from_a_missing_chip_would_hang(row) -> None:
    tensor, _ = deal(values(row, (1, 32)), row)
    with pytest.raises(ttnn.ChipFault, match="wait forever"):
        ttnn.broadcast(tensor, ttnn.MeshCoordinate(0, 5))


def test_mesh_partition(mesh) -> None:
    whole = torch.randn(1, 1, 32, 256).bfloat16().float()
    tensor, _ = deal([whole] * mesh.get_num_devices(), mesh)
    for axis in axes(mesh):
        result = ttnn.mesh_partition(tensor, 3, cluster_axis=axis)
        for line in lines(mesh, axis):
            for chip, want in zip(line, whole.chunk(len(line), 3)):
                assert torch.equal(pieces(result)[chip], want)
    assert ttnn.mesh_partition(tensor, 3).shape[3] == 256 // mesh.get_num_devices()


def test_point_to_point_keeps_the_rest_of_an_output_tensor(mesh) -> None:
    tensor, parts = deal(values(mesh, (1, 32)), mesh)
    output, before = deal(values(mesh, (1, 32), seed=1), mesh)
    first, last = ttnn.MeshCoordinate(0, 0), ttnn.MeshCoordinate(0, mesh.shape[1] - 1)
    ttnn.point_to_point(tensor, first, last, output_tensor=output)
    after = pieces(output)
    assert torch.equal(after[mesh.shape[1] - 1], parts[0])
    assert torch.equal(after[0], before[0])


def test_sending_a_tensor_to_its_own_chip_runs_no_program(mesh) -> None:
    tensor, parts = deal(values(mesh, (1, 32)), mesh)
    other, _ = deal(values(mesh, (1, 32), seed=1), mesh)
    here = ttnn.MeshCoordinate(0, 0)
    before = mesh.num_program_cache_entries()
    ttnn.point_to_point(tensor, here, here, output_tensor=tensor)
    assert mesh.num_program_cache_entries() == before
    assert torch.equal(pieces(tensor)[0], parts[0])
    ttnn.point_to_point(tensor, here, here, output_tensor=other)
    assert mesh.num_program_cache_entries() == before + 1
    assert torch.equal(pieces(other)[0], parts[0])
    with pytest.raises(ttnn.InvalidArgument, match="like the input"):
        ttnn.point_to_point(tensor, here, here, output_tensor=ttnn.typecast(tensor, ttnn.float32))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 40), st.integers(1, 70), st.integers(0, 2), st.booleans())
def test_gathers_of_any_shape(batch: int, height: int, width: int, dim: int, by_rows: bool) -> None:
    layout = ttnn.ROW_MAJOR_LAYOUT if by_rows else ttnn.TILE_LAYOUT
    with ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300") as mesh:
        tensor, parts = deal(values(mesh, (batch, height, width)), mesh, layout=layout)
        for got in pieces(ttnn.all_gather(tensor, dim)):
            assert torch.equal(got, torch.cat(parts, dim))
        for got in pieces(ttnn.all_reduce(tensor)):
            torch.testing.assert_close(got, parts[0] + parts[1], atol=2**-6, rtol=2**-6)


# -- asynchronous -----------------------------------------------------------------------------------------------------


def semaphores(mesh, count: int) -> list:
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(7, 6))])
    return [ttnn.create_global_semaphore(mesh, cores, 0) for _ in range(count)]


def test_all_gather_async_into_a_buffer(row) -> None:
    tensor, parts = deal(values(row), row)
    buffer, _ = deal(values(row, (1, 1, 64, 512), seed=1), row)
    result = ttnn.experimental.all_gather_async(tensor, buffer, 3, semaphores(row, 2))
    assert same_buffer(result, buffer)
    assert all(torch.equal(piece, torch.cat(parts, 3)) for piece in pieces(buffer))
    with pytest.raises(ttnn.InvalidArgument, match="2 semaphores"):
        ttnn.experimental.all_gather_async(tensor, 3, semaphores(row, 1))


def test_all_gather_async_reversed(row) -> None:
    tensor, parts = deal(values(row), row)
    result = ttnn.experimental.all_gather_async_reversed(tensor, 3, semaphores(row, 2))
    assert all(torch.equal(piece, torch.cat(parts[::-1], 3)) for piece in pieces(result))


def test_reduce_scatter_and_all_reduce_async(row) -> None:
    tensor, parts = deal(values(row), row)
    result = ttnn.experimental.reduce_scatter_minimal_async(tensor, None, 3, semaphores(row, 3))
    for got, want in zip(pieces(result), scattered(3)(parts)):
        torch.testing.assert_close(got, want, atol=2**-6, rtol=2**-6)
    sums = ttnn.experimental.all_reduce_async(
        tensor, 1, row, semaphores(row, 2), semaphores(row, 3), semaphores(row, 2), math_op=ttnn.ReduceType.Sum
    )
    for got in pieces(sums):
        torch.testing.assert_close(got, parts[0] + parts[1], atol=2**-6, rtol=2**-6)


def test_all_reduce_async_over_shards(row) -> None:
    def width_sharded(width: int):
        cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))])
        shards = ttnn.ShardSpec(cores, [32, width], ttnn.ShardOrientation.ROW_MAJOR)
        return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)

    tensor, parts = deal(values(row, (1, 1, 32, 128)), row, memory_config=width_sharded(32))
    buffer, _ = deal(values(row, (1, 1, 32, 256)), row, memory_config=width_sharded(64))
    result = ttnn.experimental.all_reduce_async(tensor, buffer, 1, row, semaphores(row, 1)[0])
    for got in pieces(result):
        torch.testing.assert_close(got, parts[0] + parts[1], atol=2**-6, rtol=2**-6)


# -- experts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [1, 0])
def test_tokens_travel_to_their_experts_and_back(grid, axis) -> None:
    chips, experts, chosen, hidden, tokens = 8, 16, 4, 32, 3
    generator = torch.Generator().manual_seed(axis)
    sent, rows = deal(
        [torch.randn(tokens, 1, 1, hidden, generator=generator) for _ in range(chips)],
        grid,
        layout=ttnn.ROW_MAJOR_LAYOUT,
    )
    picks = [
        torch.stack([torch.randperm(experts, generator=generator)[:chosen] for _ in range(tokens)])
        for _ in range(chips)
    ]
    indices, _ = deal(
        [pick.reshape(tokens, 1, 1, chosen).int() for pick in picks], grid, ttnn.uint16, ttnn.ROW_MAJOR_LAYOUT
    )
    home = torch.arange(experts) % chips
    table = torch.nn.functional.one_hot(home, chips).reshape(1, 1, experts, chips).int()
    mapping, _ = deal([table] * chips, grid, ttnn.uint16, ttnn.ROW_MAJOR_LAYOUT)

    got, metadata = ttnn.all_to_all_dispatch(sent, indices, mapping, cluster_axis=axis)
    arrived, known = pieces(got), pieces(metadata)
    count = grid.shape[axis]
    for line in lines(grid, axis):
        for place, source in enumerate(line):
            for token in range(tokens):
                number = place * tokens + token
                for chip in line:
                    assert known[chip][0, number, 0].tolist() == picks[source][token].tolist()
                    if chip in home[picks[source][token]]:
                        assert torch.equal(arrived[chip][0, number, 0], rows[source][token, 0, 0])

    result = [torch.randn(experts // chips, count * tokens, 1, hidden, generator=generator) for _ in range(chips)]
    results, stored_parts = deal(result, grid, layout=ttnn.ROW_MAJOR_LAYOUT)
    back = pieces(ttnn.all_to_all_combine(results, metadata, mapping, cluster_axis=axis))
    for line in lines(grid, axis):
        for place, source in enumerate(line):
            for token in range(tokens):
                for slot, expert in enumerate(picks[source][token].tolist()):
                    chip = home[expert].item()
                    want = (
                        stored_parts[chip][expert // chips, place * tokens + token, 0]
                        if chip in line
                        else torch.zeros(hidden)
                    )
                    assert torch.equal(back[source][slot, token, 0], want)
