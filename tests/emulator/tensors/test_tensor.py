"""Tensors: round trips from torch, properties, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ttnn_emulator as ttnn

DTYPES = {
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "int32": torch.int32,
    "uint32": torch.uint32,
    "uint16": torch.uint16,
    "uint8": torch.uint8,
}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (7,), (5, 33), (2, 3, 17, 40), (0,), (2, 0, 5)])
@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_round_trip_is_exact(name: str, shape: tuple[int, ...], layout, device) -> None:
    torch_dtype = DTYPES[name]
    values = (torch.randn(shape) * 50).abs().to(torch_dtype)
    on_host = ttnn.from_torch(values, layout=layout)
    assert on_host.dtype is getattr(ttnn, name)
    on_device = ttnn.to_device(on_host, device)
    for tensor in (on_host, on_device, ttnn.from_device(on_device)):
        assert list(tensor.shape) == list(shape)
        back = ttnn.to_torch(tensor)
        assert back.dtype is torch_dtype
        assert torch.equal(back.to(torch.float64), values.to(torch.float64))


def test_bfloat16_keeps_every_bit_pattern(device) -> None:
    patterns = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16)
    values = patterns.view(torch.bfloat16).reshape(256, 256)
    tensor = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, device=device)
    assert torch.equal(ttnn.to_torch(tensor).view(torch.int16), patterns.reshape(256, 256))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (torch.int64, "uint32"), (torch.int16, "uint16"), (torch.bool, "uint8"), (torch.float16, "bfloat16"),
    ],
)  # fmt: skip
def test_default_dtypes(source: torch.dtype, expected: str) -> None:
    assert ttnn.from_torch(torch.ones(2, 2).to(source)).dtype is getattr(ttnn, expected)


def test_float64_needs_a_dtype() -> None:
    with pytest.raises(ttnn.InvalidArgument, match="Pass dtype="):
        ttnn.from_torch(torch.ones(2, 2, dtype=torch.float64))
    assert ttnn.from_torch(torch.ones(2, 2, dtype=torch.float64), dtype=ttnn.float32).dtype is ttnn.float32


def test_the_tensor_owns_its_values(device) -> None:
    values = torch.ones(4, 4)
    tensor = ttnn.from_torch(values)
    values.zero_()
    read = ttnn.to_torch(tensor)
    assert read.unique().tolist() == [1.0]
    read.zero_()
    assert ttnn.to_torch(tensor).unique().tolist() == [1.0]


def test_non_contiguous_and_expanded_inputs(device) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    for values in (base.T, base[:, ::2], base[:1].expand(5, 4)):
        assert torch.equal(ttnn.to_torch(ttnn.from_torch(values, device=device)), values)


def test_numpy_lists_and_the_constructor() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert ttnn.Tensor(array, ttnn.bfloat16).dtype is ttnn.bfloat16
    assert ttnn.from_torch(array).to_list() == [[0, 1, 2], [3, 4, 5]]
    made = ttnn.Tensor([1.0, 2.0, 3.0, 4.0], [2, 2], ttnn.float32, ttnn.ROW_MAJOR_LAYOUT)
    assert made.to_list() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="torch tensor or a numpy array"):
        ttnn.from_torch("no")


def test_properties(device) -> None:
    tensor = ttnn.from_torch(torch.ones(2, 40, 50), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    assert tensor.shape == [2, 40, 50]
    assert tensor.padded_shape == (2, 64, 64)
    assert repr(tensor.shape) == "Shape([2, 40, 50])"
    assert (tensor.buffer_page_size(), tensor.buffer_num_pages()) == (2048, 8)
    assert (tensor.volume(), tensor.logical_volume(), tensor.element_size()) == (8192, 4000, 2)
    assert tensor.storage_type() is ttnn.StorageType.DEVICE
    assert tensor.device() is device
    assert "buffer_type=BufferType::DRAM" in str(tensor.memory_config())
    assert str(tensor.dtype) == "DataType.BFLOAT16"


def test_repr_is_that_of_the_library() -> None:
    small = ttnn.from_torch(torch.arange(12.0).reshape(3, 4), dtype=ttnn.bfloat16)
    # printed by ttnn 0.81.1
    assert repr(small) == (
        "ttnn.Tensor([[ 0.0000,  1.0000,  2.0000,  3.0000],\n"
        "             [ 4.0000,  5.0000,  6.0000,  7.0000],\n"
        "             [ 8.0000,  9.0000, 10.0000, 11.0000]], "
        "shape=Shape([3, 4]), dtype=DataType::BFLOAT16, layout=Layout::ROW_MAJOR)"
    )
    # the rest likewise
    assert _shown([[100, -1, 0.5]]) == "[[100.0000, -1.0000,  0.5000]]"
    assert _shown([[1234567, 0.001, -55555]]) == "[[ 1.2346e+06,  1.0000e-03, -5.5555e+04]]"
    assert _shown([[float("inf"), float("-inf"), 0, 1e-30, 1e30]]) == (
        "[[        inf,        -inf,  ...,  1.0000e-30,  1.0000e+30]]"
    )
    assert _shown([[[[0.0]], [[0.0]]]]) == "[[[[ 0.0000]],\n\n              [[ 0.0000]]]]"
    assert "[[    1,   -22],\n             [  300,     4]]" in repr(
        ttnn.from_torch(torch.tensor([[1, -22], [300, 4]], dtype=torch.int32))
    )
    large = repr(ttnn.from_torch(torch.zeros(2, 40, 50), layout=ttnn.TILE_LAYOUT))
    assert large.splitlines()[0] == "ttnn.Tensor([[[ 0.0000,  0.0000,  ...,  0.0000,  0.0000],"
    assert large.splitlines()[2] == "              ...,"


def _shown(values: list) -> str:
    return (
        repr(ttnn.from_torch(torch.tensor(values, dtype=torch.float32)))
        .removeprefix("ttnn.Tensor(")
        .split(", shape")[0]
    )


def test_item_needs_one_element() -> None:
    assert ttnn.from_torch(torch.tensor([[2.5]])).item() == 2.5
    with pytest.raises(ttnn.InvalidArgument, match="exactly one element, but got 4"):
        ttnn.from_torch(torch.ones(2, 2)).item()


def test_deallocate_without_force_keeps_shared_buffers(device) -> None:
    tensor = ttnn.from_torch(torch.ones(32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    view = ttnn.reshape(tensor, [1, 32, 32])
    ttnn.deallocate(tensor, force=False)
    assert view.is_allocated()
    ttnn.deallocate(tensor)
    assert not view.is_allocated()


def _tiles(device, **kwargs) -> ttnn.Tensor:
    return ttnn.from_torch(torch.ones(1, 1, 64, 64), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, **kwargs)


SAME_BUFFER = {
    "add_": lambda x: ttnn.add_(x, 1.0),
    "softmax_in_place": ttnn.softmax_in_place,
    "output_tensor": lambda x: ttnn.multiply(x, 2.0, output_tensor=x),
    "to_memory_config": lambda x: ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG),
    "to_layout": lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT),
    "to_device": lambda x: ttnn.to_device(x, x.device()),
    "reshape": lambda x: ttnn.reshape(x, x.shape),
}


@pytest.mark.parametrize("name", SAME_BUFFER)
def test_results_in_the_same_buffer_are_second_handles(name: str, device) -> None:
    first = _tiles(device)
    second = SAME_BUFFER[name](first)
    assert second is not first and second.buffer_address() == first.buffer_address()
    first.deallocate()
    assert first.is_allocated() and second.is_allocated()
    del first
    second.deallocate()
    assert not second.is_allocated()


def test_a_second_handle_has_the_id_of_the_first(device) -> None:
    tensor = _tiles(device)
    assert ttnn.add_(tensor, 1.0).tensor_id == tensor.tensor_id


def test_sharded_in_place_norm_survives_its_input(device) -> None:
    grid = ttnn.CoreGrid(x=2, y=2)
    config = ttnn.create_sharded_memory_config((64, 64), grid, ttnn.ShardStrategy.BLOCK)
    program = ttnn.LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(2, 2), subblock_w=1, block_h=1, block_w=1, inplace=True
    )
    given = _tiles(device, memory_config=config)
    normal = ttnn.layer_norm(given, program_config=program, memory_config=config)
    given.deallocate()
    del given
    assert torch.equal(ttnn.to_torch(normal), torch.zeros(1, 1, 64, 64, dtype=torch.bfloat16))


def test_the_last_view_frees_the_buffer(device) -> None:
    tensor = _tiles(device)
    view = ttnn.reshape(ttnn.reshape(tensor, (64, 64)), (1, 64, 64))
    view.deallocate()
    assert view.is_allocated()
    del tensor
    view.deallocate()
    assert not view.is_allocated()


def test_host_tensors_keep_their_values_when_deallocated() -> None:
    tensor = ttnn.from_torch(torch.ones(2, 2))
    ttnn.deallocate(tensor)
    assert tensor.is_allocated() and ttnn.to_torch(tensor).sum() == 4


def test_only_unshared_tensors_move(device) -> None:
    tensor = _tiles(device)
    view = ttnn.reshape(tensor, (64, 64))
    assert ttnn.move(tensor).buffer_address() == view.buffer_address()
    config = ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(x=2, y=1), ttnn.ShardStrategy.HEIGHT)
    sharded = _tiles(device, memory_config=config)
    view = ttnn.reshape(sharded, (64, 64))
    with pytest.raises(ttnn.InvalidArgument, match="another tensor shares"):
        ttnn.move(sharded)
    assert view.is_allocated()


def test_a_trace_does_not_own_its_inputs(device) -> None:
    given = _tiles(device)

    def run() -> ttnn.Tensor:
        middle = ttnn.exp(given)
        result = ttnn.multiply(ttnn.reshape(middle, (64, 64)), 2.0)
        middle.deallocate()
        assert not middle.is_allocated()
        return result

    run()
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    result = run()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    ttnn.execute_trace(device, trace, cq_id=0)
    torch.testing.assert_close(ttnn.to_torch(result)[0, 0].float(), torch.tensor(2 * 2.71875))
    given.deallocate()
    assert not given.is_allocated()
    ttnn.release_trace(device, trace)


@pytest.mark.parametrize("name", [*DTYPES, "bfloat8_b", "bfloat4_b"])
def test_files(name: str, tmp_path, device) -> None:
    values = (torch.randn(3, 40) * 20).abs()
    tensor = ttnn.from_torch(values, dtype=getattr(ttnn, name), layout=ttnn.TILE_LAYOUT)
    path = tmp_path / "weight.tensorbin"
    ttnn.dump_tensor(path, tensor)
    loaded = ttnn.load_tensor(path, device=device)
    assert (loaded.dtype, loaded.layout) == (tensor.dtype, tensor.layout)
    assert torch.equal(ttnn.to_torch(loaded).double(), ttnn.to_torch(tensor).double())
    assert [item.name for item in tmp_path.iterdir()] == ["weight.tensorbin"]


def test_bad_files_are_named(tmp_path) -> None:
    broken = tmp_path / "broken.tensorbin"
    broken.write_bytes(b"not a tensor")
    with pytest.raises(RuntimeError, match=r"broken.tensorbin is not a tensor file"):
        ttnn.load_tensor(broken)
    with pytest.raises(RuntimeError, match="does not exist"):
        ttnn.load_tensor(tmp_path / "none.tensorbin")
    with pytest.raises(RuntimeError, match="extension"):
        ttnn.dump_tensor(tmp_path / "weight.bin", ttnn.from_torch(torch.ones(2)))


def test_as_tensor_caches(tmp_path, device) -> None:
    calls = []

    def preprocess(tensor):
        calls.append(1)
        return tensor * 2

    for _ in range(2):
        made = ttnn.as_tensor(
            torch.ones(4, 4), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, preprocess=preprocess,
            memory_config=ttnn.DRAM_MEMORY_CONFIG, cache_file_name=tmp_path / "w",
        )  # fmt: skip
        assert ttnn.to_torch(made).unique().tolist() == [2.0]
    assert len(calls) == 1
    (cached,) = tmp_path.iterdir()
    assert cached.name == "w_dtype_BFLOAT16_layout_TILE.tensorbin"
    cached.write_bytes(b"cut short")
    ttnn.as_tensor(
        torch.ones(4, 4), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, preprocess=preprocess, cache_file_name=tmp_path / "w"
    )
    assert len(calls) == 2


def test_operations_that_are_not_emulated_raise() -> None:
    with pytest.raises(ttnn.NotEmulated, match=r"ttnn.generic_op exists in ttnn but is not emulated"):
        ttnn.generic_op([], None)
    with pytest.raises(ttnn.NotEmulated, match=r"ttnn.SliceDeviceOperation exists in ttnn but is not emulated"):
        ttnn.SliceDeviceOperation.create_output_tensors()
    assert not hasattr(ttnn, "no_such_operation")


def test_wrong_argument_types_show_the_signatures(device) -> None:
    with pytest.raises(TypeError) as caught:
        ttnn.relu("text")
    assert "ttnn.relu: incompatible arguments (str)" in str(caught.value)
    assert "ttnn.relu(input_tensor: Tensor, *" in str(caught.value)


def test_a_tensor_from_values_and_a_shape(device) -> None:
    rows, tiles = ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT
    placed = ttnn.Tensor([0, 31], [2], ttnn.uint32, rows, device)
    assert (placed.device(), placed.dtype, placed.layout) == (device, ttnn.uint32, rows)
    assert ttnn.to_torch(placed).tolist() == [0, 31]
    in_l1 = ttnn.Tensor([1.0] * 4, [2, 2], ttnn.bfloat16, tiles, device, ttnn.L1_MEMORY_CONFIG)
    assert in_l1.memory_config() == ttnn.L1_MEMORY_CONFIG
    on_host = ttnn.Tensor(data=[1.0] * 4, shape=[2, 2], data_type=ttnn.float32, layout=tiles)
    assert on_host.device() is None and ttnn.to_torch(on_host).tolist() == [[1.0, 1.0], [1.0, 1.0]]


# -- narrow carriers --------------------------------------------------------------------------------------------------


def carrier(tensor) -> torch.dtype:
    return tensor._storage.values[0].dtype


def test_large_tensors_stay_narrow_while_they_are_only_moved(device) -> None:
    """A model's weights are uploaded, tilized, sliced and transposed; a float32 copy would double the memory."""
    values = torch.randn(512, 256).bfloat16()
    tensor = ttnn.from_torch(values, dtype=ttnn.bfloat16, device=device)
    moved = {
        "to_layout": (ttnn.to_layout(tensor, ttnn.TILE_LAYOUT), values),
        "transpose": (ttnn.transpose(tensor, 0, 1), values.T),
        "slice": (ttnn.slice(tensor, [0, 0], [512, 128]), values[:, :128]),
        "concat": (ttnn.concat([tensor, tensor], 0), torch.cat([values, values])),
        "reshape": (ttnn.reshape(tensor, (2, 256, 256)), values.reshape(2, 256, 256)),
    }
    for name, (made, expected) in moved.items():
        assert carrier(made) is torch.bfloat16, name
        assert torch.equal(ttnn.to_torch(made), expected), name


def test_an_embedding_reads_the_rows_it_needs(device) -> None:
    table = torch.randn(2000, 64).bfloat16()
    rows = ttnn.from_torch(table, dtype=ttnn.bfloat16, device=device)
    tokens = torch.randint(0, 2000, (1, 32), generator=torch.Generator().manual_seed(0))
    ids = ttnn.from_torch(tokens, dtype=ttnn.uint32, device=device)
    for layout in (ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT):
        made = ttnn.embedding(ids, rows, layout=layout)
        assert torch.equal(ttnn.to_torch(made), table[tokens])
    assert carrier(rows) is torch.bfloat16


def test_a_tensor_read_back_keeps_its_alignment(device) -> None:
    """Rows of a convolution's output are padded to full tiles, also in ROW_MAJOR layout and with width sharding."""
    weight = ttnn.from_torch(torch.randn(65, 64, 5, 5))
    image = ttnn.from_torch(torch.randn(2, 8, 8, 64), device=device)
    config = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.WIDTH_SHARDED, output_layout=ttnn.ROW_MAJOR_LAYOUT)
    made = ttnn.conv2d(
        input_tensor=image, weight_tensor=weight, device=device, in_channels=64, out_channels=65, batch_size=2,
        input_height=8, input_width=8, kernel_size=(5, 5), stride=(2, 2), padding=(2, 4, 3, 5), conv_config=config,
        slice_config=ttnn.Conv2dL1FullSliceConfig,
    )  # fmt: skip
    host = ttnn.from_device(made)
    assert host.padded_shape == made.padded_shape
    assert torch.equal(ttnn.to_torch(host), ttnn.to_torch(made))
