"""Creates tensors from torch, moves them between host and device, reads them back, and stores them in files."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.enums import ALL_ENUMS, BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.execution.trace import require_not_capturing
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.buffer_ownership import release_buffer
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.mesh_distribution import MeshComposer, MeshMapper, as_composer, as_mapper
from ttnn_emulator.tensors.shapes import Tile
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import SpecStorage, Storage
from ttnn_emulator.tensors.tensor import Tensor, read_back, values_of

DumpTensorMode = ALL_ENUMS["DumpTensorMode"]

# The dtype of `from_torch` by default.
DEFAULT_DTYPE = {
    torch.float32: DataType.FLOAT32,
    torch.bfloat16: DataType.BFLOAT16,
    torch.float16: DataType.BFLOAT16,
    torch.int64: DataType.UINT32,
    torch.int32: DataType.INT32,
    torch.int16: DataType.UINT16,
    torch.int8: DataType.INT8,
    torch.uint8: DataType.UINT8,
    torch.bool: DataType.UINT8,
    torch.uint16: DataType.UINT16,
    torch.uint32: DataType.UINT32,
}
NARROW_FROM = 1 << 16  # elements from which an uploaded 16-bit tensor is stored in 16 bits


def tensor_from_arguments(
    tensor: Any = None,
    data_type: DataType | None = None,
    device: MeshDevice | None = None,
    layout: Layout | None = None,
    mem_config: MemoryConfig | None = None,
    tile: Tile | None = None,
    cq_id: Any = None,
    pad_value: float | None = None,
    mesh_mapper: Any = None,
    **kwargs: Any,
) -> Tensor:
    """The constructor of `ttnn.Tensor`: from a tensor, an array, or values with their shape."""
    if isinstance(tensor, Tensor):
        return tensor
    if isinstance(tensor, list) or "data" in kwargs:
        rest = (data_type, device, layout, mem_config, tile, cq_id, *kwargs.values())
        return _tensor_of_values(kwargs.get("data", tensor), kwargs.get("shape", data_type), rest)
    return from_torch_tensor(
        as_torch(tensor),
        data_type,
        device=device,
        layout=layout,
        memory_config=mem_config,
        tile=tile,
        mesh_mapper=mesh_mapper,
        col_tilize=kwargs.get("col_tilize", False),
        pad_value=pad_value,
    )


def _tensor_of_values(values: Any, shape: Any, rest: tuple) -> Tensor:
    """`Tensor(data, shape, data_type, layout, device, …)`; arguments after the shape are distinguished by type."""

    def argument_of(kind: type) -> Any:
        return next((value for value in rest if isinstance(value, kind)), None)

    array = torch.tensor(values).reshape(tuple(shape))
    return from_torch_tensor(
        array,
        argument_of(DataType),
        layout=argument_of(Layout),
        device=argument_of(MeshDevice),
        memory_config=argument_of(MemoryConfig),
        tile=argument_of(Tile),
    )


def as_torch(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach() if value.requires_grad else value
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.ascontiguousarray(value)).reshape(np.shape(value))
    raise TypeError(f"ttnn.from_torch takes a torch tensor or a numpy array, not {type(value).__name__}")


def default_dtype(dtype: torch.dtype) -> DataType:
    if dtype not in DEFAULT_DTYPE:
        raise InvalidArgument(
            f"torch tensors of {dtype} have no matching ttnn dtype",
            hint="Pass dtype=, or convert it with .to(...).",
        )
    return DEFAULT_DTYPE[dtype]


def from_torch_tensor(
    tensor: torch.Tensor,
    dtype: DataType | None = None,
    *,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    tile: Tile | None = None,
    mesh_mapper: Any = None,
    col_tilize: bool = False,
    pad_value: float | None = None,
) -> Tensor:
    dtype = dtype if dtype is not None else default_dtype(tensor.dtype)
    if tensor.is_complex():
        raise InvalidArgument("complex tensors have no ttnn dtype", hint="Use ttnn.complex_tensor of two real tensors.")
    if tensor.is_meta:
        raise InvalidArgument("a tensor on torch's meta device has no values", hint="Use ttnn_emulator.spec_tensor.")
    if col_tilize:
        require(dtype in BLOCK_FLOAT_DTYPES, "col_tilize=True requires BFP dtype (bfloat8_b or bfloat4_b)")
        require(tensor.dim() >= 2, "col_tilize=True requires tensor.ndim >= 2")
        tensor = tensor.transpose(-2, -1)
    if dtype is DataType.FP8_E4M3:
        require(tensor.dtype is torch.float32, f"fp8_e4m3 is converted from torch.float32, not from {tensor.dtype}")
    if layout is None:
        layout = Layout.TILE if dtype in BLOCK_FLOAT_DTYPES else Layout.ROW_MAJOR
    mapper = as_mapper(mesh_mapper)
    pieces = mapper.split(tensor, device) if mapper is not None else [tensor]
    if memory_config is not None and memory_config.is_sharded():
        require(
            memory_config.shard_spec is not None or memory_config.nd_shard_spec is not None,
            "ttnn.from_torch: Shard spec must not be None for sharded tensors",
        )
    spec = Spec.of(
        pieces[0].shape,
        dtype,
        layout,
        memory_config if memory_config is not None else DRAM_MEMORY_CONFIG,
        on_device=device is not None,
        tile=tile,
    )
    holds_values = device is None or device.holds_values  # else a conversion would never be read
    values = [_own(carriers.host_convert(piece, dtype), piece) for piece in pieces] if holds_values else pieces
    if device is None:
        result = Tensor.of(spec, Storage(values), None)
    else:
        result = Tensor.of(spec, _upload(spec, device, values), device)
    result.topology = mapper
    if spec.padded_shape != spec.shape:
        padding_values.note(result._storage, pad_value or 0.0)
    return result


def _own(converted: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """A contiguous carrier that shares no memory with the caller's tensor."""
    if converted.dtype is not source.dtype:
        return converted.contiguous()
    if converted.untyped_storage().data_ptr() == source.untyped_storage().data_ptr():
        return converted.clone(memory_format=torch.contiguous_format)
    return converted.contiguous()


def _upload(spec: Spec, device: MeshDevice, values: list[torch.Tensor]) -> Storage:
    require_not_capturing(device, "Writes")
    if len(values) == 1 and device.num_devices > 1:
        values = values * device.num_devices
    require(len(values) == device.num_devices, f"{len(values)} shards cannot be placed on {device.num_devices} devices")
    storage = Storage.on_device(spec, device)
    _note_upload(spec, device)
    if device.holds_values:
        storage.values = [_device_carrier(value, spec.dtype) for value in values]
    return storage


def _note_upload(spec: Spec, device: MeshDevice) -> None:
    device.activity.uploaded(spec.total_bytes)
    if listeners.active:
        listeners.transferred(spec, device, is_upload=True)


def _device_carrier(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    if values.numel() >= NARROW_FROM:
        return carriers.narrow(values, dtype)
    if values.dtype is torch.bfloat16:
        return carriers.widened(values)
    return values


@composite("ttnn.from_torch")
def from_torch(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    spec: Spec | None = None,
    tile: Tile | None = None,
    pad_value: float | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: Any = None,
    cq_id: Any = None,
    preserve_nan_values: bool = False,
    col_tilize: bool = False,
    enable_bfloat_opt: bool = False,
) -> Tensor | None:
    """A tensor with the values of a torch tensor or numpy array, on the host or, with `device`, on a device.

    >>> import torch, ttnn_emulator as ttnn
    >>> ttnn.from_torch(torch.ones(2, 3), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).padded_shape
    Shape([32, 32])
    """
    if tensor is None:
        return None
    if col_tilize:
        require(spec is None, "col_tilize=True is not supported with spec")
        require(layout in (None, Layout.TILE), "col_tilize=True requires layout to be None or ttnn.TILE_LAYOUT")
    if spec is not None:
        require(tuple(spec.shape) == tuple(tensor.shape), "spec and tensor must have the same shape")
        require(
            dtype is None and layout is None and memory_config is None and tile is None,
            "with spec given, dtype, layout, memory_config and tile must be None",
        )
        dtype, layout, memory_config, tile = spec.dtype, spec.layout, spec.memory_config, spec.tile
        if layout is Layout.ROW_MAJOR:
            tile = None
    return from_torch_tensor(
        as_torch(tensor),
        dtype,
        layout=layout,
        device=device,
        memory_config=memory_config,
        tile=tile,
        mesh_mapper=mesh_mapper,
        col_tilize=col_tilize,
        pad_value=pad_value,
    )


@composite("ttnn.to_torch")
def to_torch(
    tensor: Tensor,
    dtype: torch.dtype | None = None,
    *,
    torch_rank: int | None = None,
    mesh_composer: Any = None,
    device: MeshDevice | None = None,
    cq_id: Any = None,
) -> torch.Tensor:
    """The values as a torch tensor of the logical shape; `torch_rank` drops leading ones."""
    require_not_capturing(tensor._device, "Reads")
    composed = mesh_composer is not None or tensor.dtype is not DataType.FP8_E4M3
    require(composed, "fp8_e4m3 can be read with a mesh_composer only", hint="Or cast it with ttnn.typecast.")
    stored = pieces = read_back(tensor)
    if dtype is not torch.float32 or tensor.dtype not in FLOAT_DTYPES:  # else the carriers are already float32
        pieces = [carriers.to_torch_dtype(values, tensor.dtype) for values in pieces]
    shape = tensor._spec.shape
    pieces = [piece if piece.shape == shape else piece.reshape(shape) for piece in pieces]
    composer: MeshComposer | None = as_composer(mesh_composer)
    if composer is not None:
        result = composer.join(pieces)
    elif len(pieces) > 1 and tensor.topology is not None and not tensor.topology.replicates:
        raise InvalidArgument(
            f"the tensor has {len(pieces)} shards", hint="Give mesh_composer=ttnn.ConcatMeshToTensor(device, dim=...)."
        )
    else:
        result = pieces[0]
    if dtype is not None and result.dtype is not dtype:
        result = result.to(dtype)
    elif result.untyped_storage().data_ptr() == stored[0].untyped_storage().data_ptr():
        result = result.clone(memory_format=torch.contiguous_format)
    result = result.contiguous()  # carriers may be views, which must not be visible outside
    if torch_rank is not None:
        while result.dim() > torch_rank:
            require(result.shape[0] == 1, "ttnn: Unable to squeeze to desired rank!")
            result = result.squeeze(0)
    return result


@composite("ttnn.to_device")
def to_device(tensor: Tensor, device: MeshDevice, memory_config: MemoryConfig | None = None) -> Tensor:
    """Copy a host tensor to a device, by default to its DRAM. A tensor on that device is returned unchanged.

    Only `Tensor.to` restores the memory config that the tensor had on a device before.
    """
    if tensor._spec.on_device:
        require(tensor._device is device, "the tensor is on another device")
        return tensor
    spec = tensor._spec
    config = memory_config or DRAM_MEMORY_CONFIG
    kept = {"alignment": spec.alignment} if config == spec.memory_config else {}
    spec = spec.with_(on_device=True, memory_config=config, **kept)
    if device.holds_values:
        storage = _upload(spec, device, values_of(tensor))
    else:
        require_not_capturing(device, "Writes")
        storage = Storage.on_device(spec, device)
        _note_upload(spec, device)
    moved = Tensor.of(spec, storage, device)
    moved.topology = tensor.topology
    padding_values.carry(tensor._storage, storage)
    return moved


def _holds_values(tensor: Tensor) -> bool:
    return tensor._device is None or tensor._device.holds_values


@composite("ttnn.from_device")
def from_device(tensor: Tensor, blocking: bool = True) -> Tensor:
    """Copy a tensor to the host, keeping its layout and dtype."""
    if not tensor._spec.on_device:
        return tensor
    tensor._storage.require_allocated()
    require_not_capturing(tensor._device, "Reads")
    is_spec = isinstance(tensor._storage, SpecStorage)  # a spec without values: nothing to read
    has_values = tensor._storage.values is not None or not (is_spec or _holds_values(tensor))
    host = Storage([value.clone() for value in read_back(tensor)] if has_values else None)
    copy = Tensor.of(tensor._spec.with_(on_device=False, alignment=tensor._spec.alignment), host, None)
    copy.topology = tensor.topology
    padding_values.carry(tensor._storage, host)
    return copy


@composite("ttnn.deallocate")
def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Free a device tensor's buffer immediately."""
    release_buffer(tensor, force)


@composite("ttnn.allocate_tensor_on_device")
def allocate_tensor_on_device(
    tensor_spec: Spec | None = None,
    mesh_device: MeshDevice | None = None,
    shape: Sequence[int] = (),
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Allocate a zero-filled device tensor."""
    assert mesh_device is not None
    if tensor_spec is None:
        tensor_spec = Spec.of(tuple(shape), dtype, layout, memory_config or DRAM_MEMORY_CONFIG)
    spec = tensor_spec.with_(on_device=True)
    storage = Storage.on_device(spec, mesh_device)
    if mesh_device.holds_values:
        storage.values = _zeros(spec, mesh_device.num_devices)
    return Tensor.of(spec, storage, mesh_device)


@composite("ttnn.allocate_tensor_on_host")
def allocate_tensor_on_host(
    tensor_spec: Spec | None = None,
    mesh_device: MeshDevice | None = None,
    shape: Sequence[int] = (),
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Allocate zero-filled host tensors, one per device."""
    if tensor_spec is None:
        tensor_spec = Spec.of(tuple(shape), dtype, layout, memory_config or DRAM_MEMORY_CONFIG)
    spec = tensor_spec.with_(on_device=False)
    return Tensor.of(spec, Storage(_zeros(spec, mesh_device.num_devices if mesh_device else 1)), None)


def _zeros(spec: Spec, count: int) -> list[torch.Tensor]:
    return [torch.zeros(spec.shape, dtype=carriers.CARRIER[spec.dtype]) for _ in range(count)]


@composite("ttnn.copy_host_to_device_tensor")
def copy_host_to_device_tensor(host_tensor: Tensor, device_tensor: Tensor) -> None:
    """Overwrite a device tensor with a host tensor of the same spec, without allocating memory."""
    require(not host_tensor._spec.on_device, "host_tensor must be on the host")
    require(device_tensor._spec.on_device, "device_tensor must be on a device")
    _require_same(host_tensor, device_tensor)
    device_tensor._storage.require_allocated()
    device = device_tensor._device
    assert device is not None
    require_not_capturing(device, "Writes")
    _note_upload(device_tensor._spec, device)
    values = values_of(host_tensor)
    if len(values) == 1:
        values = values * device.num_devices
    if device.holds_values:
        device_tensor._storage.values = [_own(_device_carrier(value, host_tensor.dtype), value) for value in values]
    padding_values.forget(device_tensor._storage)
    padding_values.carry(host_tensor._storage, device_tensor._storage)


@composite("ttnn.copy_device_to_host_tensor")
def copy_device_to_host_tensor(device_tensor: Tensor, host_tensor: Tensor, blocking: bool = True) -> None:
    """Overwrite a host tensor with a device tensor of the same spec."""
    require(not host_tensor._spec.on_device, "host_tensor must be on the host")
    require(device_tensor._spec.on_device, "device_tensor must be on a device")
    _require_same(host_tensor, device_tensor)
    host_tensor._storage.values = [value.clone() for value in read_back(device_tensor)]


def _require_same(host: Tensor, device: Tensor) -> None:
    a, b = host._spec, device._spec
    if a.shape != b.shape or a.dtype is not b.dtype or a.layout is not b.layout or a.tile != b.tile:
        raise InvalidArgument(
            f"host and device tensors must agree in shape, dtype and layout: {a.brief()} against {b.brief()}"
        )


# -- indexing --------------------------------------------------------------------------------------------------------


def get_item(tensor: Tensor, slices: Any) -> Tensor:
    """`tensor[...]` with integers, slices and an ellipsis, through ttnn.slice and ttnn.squeeze."""
    rank = len(tensor._spec.shape)
    items = list(slices) if isinstance(slices, tuple | list) else [slices]
    if sum(item is Ellipsis for item in items) > 1:
        raise ValueError("Only one ellipsis ('...') is allowed in a slice.")
    if len([item for item in items if item is not Ellipsis]) > rank:
        raise IndexError(f"Too many indices for tensor of dimension {rank}")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    at = next(index for index, item in enumerate(items) if item is Ellipsis)
    items[at : at + 1] = [slice(None)] * (rank - len(items) + 1)
    starts, ends, steps, squeezed = [], [], [], []
    for dim, (item, size) in enumerate(zip(items, tensor._spec.shape)):
        if isinstance(item, int):
            index = item + size if item < 0 else item
            if not 0 <= index < size:
                raise IndexError(f"Index {item} is out of bounds for dimension {dim} of size {size}")
            starts.append(index)
            ends.append(index + 1)
            steps.append(1)
            squeezed.append(dim)
        elif isinstance(item, slice):
            starts.append(0 if item.start is None else item.start)
            ends.append(size if item.stop is None else item.stop)
            steps.append(1 if item.step is None else item.step)
        else:
            raise TypeError(f"Invalid slice type: {item}")
    if tensor._spec.on_device:
        result = ttnn.slice(tensor, starts, ends, steps)
    else:
        require(all(step == 1 for step in steps), "Host tensors cannot be accessed with non-unit stride")
        result = host_slice(tensor, starts, ends)
    for shift, dim in enumerate(squeezed):
        result = ttnn.squeeze(result, dim - shift)
    return result


def host_slice(tensor: Tensor, starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    index = tuple(slice(start, end) for start, end in zip(starts, ends))
    pieces = [values[index].clone() for values in values_of(tensor)]
    return Tensor.of(tensor._spec.with_(shape=tuple(pieces[0].shape)), Storage(pieces), None)


# -- files ------------------------------------------------------------------------------------------------------------


def _require_extension(path: pathlib.Path) -> None:
    if path.suffix != ".tensorbin":
        raise RuntimeError(f"File {path} must have .tensorbin extension")


@composite("ttnn.dump_tensor")
def dump_tensor(file_name: str | pathlib.Path, tensor: Tensor, *, mode: Any = None) -> None:
    """Write a tensor to a .tensorbin file: its values in safetensors form, its spec in the file's metadata.

    The file is written atomically. The card's library has its own format; the two are not compatible.
    """
    path = pathlib.Path(file_name)
    _require_extension(path)
    write_tensor(path, tensor)


def write_tensor(path: pathlib.Path, tensor: Tensor, beside: dict[str, str] | None = None) -> None:
    """Write a tensor, with additional entries in the file's metadata."""
    require(tensor.dtype is not DataType.FP8_E4M3, "fp8_e4m3 cannot be written to files")
    require(_holds_values(tensor), f"{tensor.brief()} has no values to write: its device holds none")
    host = from_device(tensor)
    pieces = {
        str(number): carriers.narrow(values, host.dtype).contiguous() for number, values in enumerate(values_of(host))
    }
    spec = host._spec
    metadata = {"dtype": spec.dtype.name, "layout": spec.layout.name, "tile": json.dumps(spec.tile.tile_shape)}
    metadata |= beside or {}
    metadata["memory_config"] = tensor._spec.memory_config.to_json()
    with replacing(path) as temporary:
        save_file(pieces, temporary, metadata=metadata)


@composite("ttnn.load_tensor")
def load_tensor(file_name: str | pathlib.Path, *, device: MeshDevice | None = None) -> Tensor:
    """Read a tensor that `dump_tensor` wrote; with `device`, place it there."""
    path = pathlib.Path(file_name)
    _require_extension(path)
    return read_tensor(path, device)[0]


def read_tensor(path: pathlib.Path, device: MeshDevice | None = None) -> tuple[Tensor, dict[str, str]]:
    """A tensor that `write_tensor` wrote, and the file's metadata."""
    if not path.is_file():
        raise RuntimeError(f"Unable to load the tensor from {path}.  The file does not exist.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            dtype, layout = DataType[metadata["dtype"]], Layout[metadata["layout"]]
            tile = tuple(json.loads(metadata["tile"]))
            placed = metadata.get("memory_config")  # files of older versions have none
            config = DRAM_MEMORY_CONFIG if placed is None else MemoryConfig.from_json(placed)
            values = [file.get_tensor(str(number)) for number in range(len(file.keys()))]
    except Exception as error:
        raise RuntimeError(f"{path} is not a tensor file written by ttnn.dump_tensor: {error}") from error
    spec = Spec.of(
        values[0].shape, dtype, layout, config, on_device=False, tile=Tile(tile) if layout is Layout.TILE else None
    )
    host = Tensor.of(spec, Storage(values), None)
    return (host if device is None else to_device(host, device, memory_config=config)), metadata


@composite("ttnn.as_tensor")
def as_tensor(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    layout: Layout | None = Layout.ROW_MAJOR,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: str | pathlib.Path | None = None,
    preprocess: Callable[[Any], Any] | None = None,
    mesh_mapper: MeshMapper | None = None,
    cache_dump_mode: Any = None,
) -> Tensor:
    """`from_torch`, cached on disk: converted and written the first time, read afterwards."""
    if device is not None and memory_config is None:
        raise RuntimeError("memory_config must be specified when device is specified")

    def convert(to: MeshDevice | None) -> Tensor:
        source = preprocess(tensor) if preprocess is not None else tensor
        return from_torch(
            source, dtype=dtype, layout=layout, device=to, memory_config=memory_config, mesh_mapper=mesh_mapper
        )

    if cache_file_name is None:
        return convert(device)
    dtype_name = "None" if dtype is None else dtype.name
    layout_name = "None" if layout is None else layout.name
    path = pathlib.Path(f"{cache_file_name}_dtype_{dtype_name}_layout_{layout_name}.tensorbin")
    if path.is_file():
        try:
            loaded = load_tensor(path)
            return loaded if device is None else to_device(loaded, device, memory_config)
        except RuntimeError:
            path.unlink()  # unreadable: converted again below
    if device is not None and not device.holds_values:
        return convert(device)  # tensors of such a device are not written to files
    path.parent.mkdir(parents=True, exist_ok=True)
    converted = convert(None)
    dump_tensor(path, converted)
    return converted if device is None else to_device(converted, device, memory_config)
