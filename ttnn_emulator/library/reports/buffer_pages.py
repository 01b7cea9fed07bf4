"""`ttnn._ttnn.reports`: the buffers of a device, page by page."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import BufferType, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.hardware.boards import find_board, l1_banks
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.storage import page_alignment
from ttnn_emulator.tensors.tensor import Tensor

if TYPE_CHECKING:
    from ttnn_emulator.tensors.spec import Spec


@dataclass(frozen=True)
class BufferInfo:
    """One buffer."""

    device_id: int
    address: int
    max_size_per_bank: int
    buffer_type: BufferType
    buffer_layout: TensorMemoryLayout


@dataclass(frozen=True)
class BufferPageInfo:
    """One page of a buffer in L1, and its location."""

    device_id: int
    address: int
    core_y: int
    core_x: int
    bank_id: int
    page_index: int
    page_address: int
    page_size: int
    buffer_type: BufferType


@dataclass(frozen=True)
class DeviceInfo:
    """Sizes of a chip."""

    num_y_cores: int
    num_x_cores: int
    num_y_compute_cores: int
    num_x_compute_cores: int
    worker_l1_size: int
    l1_num_banks: int
    l1_bank_size: int
    address_at_first_l1_bank: int
    address_at_first_l1_cb_buffer: int
    num_banks_per_storage_core: int
    num_compute_cores: int
    num_storage_cores: int
    total_l1_memory: int
    total_l1_for_tensors: int
    total_l1_for_interleaved_buffers: int
    total_l1_for_sharded_buffers: int
    cb_limit: int


def _devices(devices: Any) -> list[MeshDevice]:
    return [devices] if isinstance(devices, MeshDevice) else list(devices)


def _buffers(device: MeshDevice) -> Iterator[Tensor]:
    """One tensor per buffer, ordered by address; keeping a list would cost time on every call."""
    found: dict[tuple[Any, int], Tensor] = {}
    for each in gc.get_objects():
        if type(each) is Tensor:
            root = each._storage.root
            if root.device is device and root.memory is not None:
                found.setdefault((root.memory.buffer_type.value, root.address), each)
    yield from (found[key] for key in sorted(found))


def _bytes_per_bank(tensor: Tensor) -> int:
    placement = tensor._storage.root.placement
    return 0 if placement is None else placement.bytes_per_bank


def get_buffers(devices: Any) -> list[BufferInfo]:
    """All buffers of the devices."""
    return [
        BufferInfo(
            device_id=device.id(),
            address=tensor._storage.root.address,
            max_size_per_bank=_bytes_per_bank(tensor),
            buffer_type=tensor._spec.memory_config.buffer_type,
            buffer_layout=tensor._spec.memory_config.memory_layout,
        )
        for device in _devices(devices)
        for tensor in _buffers(device)
    ]


def get_buffer_pages(devices: Any) -> list[BufferPageInfo]:
    """All pages of the buffers in L1."""
    return [
        page
        for device in _devices(devices)
        for tensor in _buffers(device)
        if tensor._spec.memory_config.buffer_type in (BufferType.L1, BufferType.L1_SMALL)
        for page in _pages(device, tensor)
    ]


def _pages(device: MeshDevice, tensor: Tensor) -> Iterator[BufferPageInfo]:
    root = tensor._storage.root
    return pages_of(device, root.address, tensor._spec, bank_cores(device))


def pages_of(
    device: MeshDevice, address: int, spec: Spec, banks: Sequence[tuple[int, int]]
) -> Iterator[BufferPageInfo]:
    """The pages of a buffer in L1, from the spec of a tensor in it and the core (column, row) of every bank."""
    config = spec.memory_config
    alignment = page_alignment(device, config.buffer_type)
    pages, size, page_size = spec.num_pages, round_up(spec.page_bytes, alignment), spec.page_bytes
    shards = config.shard_spec or config.nd_shard_spec
    if shards is None:
        places = [(page % len(banks), page // len(banks)) for page in range(pages)]
        # The library reports banks of interleaved buffers with the number of the next bank.
        reported = {bank: (bank + 1) % len(banks) for bank in range(len(banks))}
    else:
        cores = shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)
        reported = {bank: bank for bank in range(len(banks))}
        numbers = [banks.index((core.x, core.y)) for core in cores]
        a_core = max(1, -(-spec.bytes_per_bank(len(banks), alignment) // size))
        places = [(numbers[page // a_core % len(numbers)], page % a_core) for page in range(pages)]
    for page, (bank, row) in enumerate(places):
        x, y = banks[bank]
        yield BufferPageInfo(
            device.id(),
            address,
            y,
            x,
            reported[bank],
            page,
            address + row * size,
            page_size,
            config.buffer_type,
        )


def page_facts(page: BufferPageInfo) -> dict[str, Any]:
    """A page as reports have it."""
    return asdict(page) | {"buffer_type": page.buffer_type.value}


def bank_cores(device: MeshDevice) -> list[tuple[int, int]]:
    """The core (column, row) of every L1 bank."""
    banks = l1_banks(device.board.name)
    if banks is None or device.board.dispatch != find_board(device.board.name).dispatch:
        raise NotEmulated(f"the L1 banks of {device.board.name} are not recorded for this kind of dispatch")
    return banks


def assumed_bank_cores(device: MeshDevice) -> list[tuple[int, int]]:
    """The core of every L1 bank; row by row where it was not recorded, which is another order than the card's."""
    try:
        return bank_cores(device)
    except NotEmulated:
        columns, rows = device.board.grid
        return [(x, y) for y in range(rows) for x in range(columns)]


def get_device_info(device: MeshDevice) -> DeviceInfo:
    """Sizes of the device's chip."""
    board = device.board
    columns, rows = board.grid
    memory = device.memory(BufferType.L1)
    return DeviceInfo(
        num_y_cores=rows + (board.dispatch == "worker_row"),
        num_x_cores=columns + (board.dispatch == "worker_col"),
        num_y_compute_cores=rows,
        num_x_compute_cores=columns,
        worker_l1_size=board.l1_bytes,
        l1_num_banks=memory.banks,
        l1_bank_size=memory.bank_bytes,
        address_at_first_l1_bank=0,
        address_at_first_l1_cb_buffer=board.l1_base,
        num_banks_per_storage_core=1,
        num_compute_cores=board.cores,
        num_storage_cores=0,
        total_l1_memory=board.cores * board.l1_bytes,
        total_l1_for_tensors=0,
        total_l1_for_interleaved_buffers=memory.banks * memory.bank_bytes,
        total_l1_for_sharded_buffers=memory.banks * memory.bank_bytes,
        cb_limit=board.l1_bytes - board.l1_base,
    )
