"""Small queries about tensors, dtypes, devices and default settings."""

from __future__ import annotations

import faulthandler
from typing import Any

import torch

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import (
    ALL_ENUMS,
    BLOCK_FLOAT_DTYPES,
    BufferType,
    DataType,
    Layout,
    MathFidelity,
    ShardOrientation,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import require
from ttnn_emulator.execution import listeners
from ttnn_emulator.hardware.boards import default_board_name, find_board
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats.carriers import TORCH_DTYPE
from ttnn_emulator.tensors.host_transfer import from_torch_tensor
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import Tile
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

ThrottleLevel: Any = ALL_ENUMS["ThrottleLevel"]

# -- dtypes and tensors -----------------------------------------------------------------------------------------------


def tile_size(dtype: DataType) -> int:
    """Bytes of a tile of 32 × 32.

    >>> tile_size(DataType.BFLOAT8_B)
    1088
    """
    return tile_bytes(Tile((32, 32)), dtype)


def element_size(dtype: DataType) -> int:
    """Bytes per element; not defined for block floats."""
    if dtype in BLOCK_FLOAT_DTYPES:
        raise ValueError(f"an element of {dtype.name} has no size: it shares its exponent with its block")
    return ROW_MAJOR_BYTES[dtype]


def ttnn_dtype_to_torch_dtype(dtype: DataType) -> torch.dtype:
    """The torch dtype that `to_torch` returns."""
    return TORCH_DTYPE[dtype]


def get_memory_config(tensor: Tensor) -> MemoryConfig | None:
    """The memory config of a tensor on a device; None on the host."""
    return tensor.memory_config() if tensor._spec.on_device else None


def has_storage_type_of(tensor: Tensor, storage_type: Any) -> bool:
    return tensor.storage_type() == storage_type


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    return tensor._spec.on_device


def is_sharded(tensor: Tensor) -> bool:
    return tensor._spec.is_sharded


def has_tile_padding(tensor: Tensor, *, dim: int | None = None) -> bool:
    """Whether a dimension, or one of the last two, is padded."""
    shape, padded = tensor._spec.shape, tensor._spec.padded_shape
    if dim is not None:
        axis = dim if dim >= 0 else dim + len(shape)
        return shape[axis] != padded[axis]
    return len(shape) > 1 and shape[-2:] != padded[-2:]


def divup(a: int, b: int) -> int:
    return -(-a // b)


def roundup(a: int, b: int) -> int:
    return divup(a, b) * b


# -- settings ---------------------------------------------------------------------------------------------------------


def init_device_compute_kernel_config(
    arch: Any,
    device_kernel_config: Any = None,
    *,
    math_fidelity: MathFidelity = MathFidelity.LoFi,
    math_approx_mode: bool = True,
    fp32_dest_acc_en: bool = False,
    packer_l1_acc: bool = False,
    dst_full_sync_en: bool = False,
    throttle_level: Any = ThrottleLevel.NO_THROTTLE,
) -> Any:
    """A copy of the passed compute kernel config, or one with these defaults."""
    names = (
        "math_fidelity", "math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc", "dst_full_sync_en", "throttle_level"
    )  # fmt: skip
    if device_kernel_config is not None:
        return type(device_kernel_config)(**{name: getattr(device_kernel_config, name) for name in names})
    values = (math_fidelity, math_approx_mode, fp32_dest_acc_en, packer_l1_acc, dst_full_sync_en, throttle_level)
    return TYPES.classes["WormholeComputeKernelConfig"](**dict(zip(names, values)))


def layernorm_default_compute_config(arch: Any) -> Any:
    """The default compute kernel config of ttnn.layer_norm."""
    return init_device_compute_kernel_config(
        arch, math_fidelity=MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
    )


def rmsnorm_default_compute_config(arch: Any) -> Any:
    """The default compute kernel config of ttnn.rms_norm."""
    return init_device_compute_kernel_config(arch, math_fidelity=MathFidelity.HiFi4, math_approx_mode=True)


def create_layer_norm_reciprocals(device: MeshDevice, core_range_set: CoreRangeSet, width: int) -> Tensor:
    """1/1, 1/2, … 1/width on each core: the lookup table of layer norms with Welford's algorithm."""
    row = torch.tensor([1.0 / count for count in range(1, width + 1)], dtype=torch.float32)
    shards = ShardSpec(core_range_set, (1, width), ShardOrientation.ROW_MAJOR)
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    table = row.repeat(core_range_set.num_cores(), 1)
    return from_torch_tensor(table, layout=Layout.ROW_MAJOR, device=device, memory_config=config)


# -- devices ----------------------------------------------------------------------------------------------------------


def get_num_devices() -> int:
    """Number of chips of the board."""
    return find_board(default_board_name()).chips


def get_device_ids() -> list[int]:
    return list(range(get_num_devices()))


def get_num_pcie_devices() -> int:
    """Number of chips on the PCIe bus: the first chip of each card."""
    return len(get_pcie_device_ids())


def get_pcie_device_ids() -> list[int]:
    # A board of several cards has two chips per card, one of them on the PCIe bus.
    return list(range(max(1, get_num_devices() // 2)))


def get_allocator_base_address(device: MeshDevice, buffer_type: BufferType) -> int:
    """The lowest address of a memory; L1 and L1_SMALL have the same."""
    kind = BufferType.L1 if buffer_type is BufferType.L1_SMALL else buffer_type
    return device.memory(kind).base


def SetRootDir(root_dir: str) -> None:
    """Set the folder of the kernels; the emulator has none."""


def ClearKernelCache() -> None:
    """The emulator has no compiled kernels."""


def EnableMemoryReports() -> None:
    """No allocator reports are written; `ttnn.get_memory_view` returns the same data."""


def DisableMemoryReports() -> None:
    """No allocator reports are written."""


def enable_asynchronous_slow_dispatch(device: MeshDevice) -> None:
    """No effect: emulated calls are synchronous."""


def disable_asynchronous_slow_dispatch(device: MeshDevice) -> None:
    """No effect: emulated calls are synchronous."""


def is_asynchronous_slow_dispatch_enabled(device: MeshDevice) -> bool:
    return False


def dump_stack_trace_on_segfault() -> None:
    """Print the Python stack if the process crashes."""
    faulthandler.enable()


def using_distributed_env() -> bool:
    """Whether several hosts run together; the emulator is one host."""
    return False


def distributed_context_is_initialized() -> bool:
    return True


def distributed_context_get_rank() -> int:
    return 0


def distributed_context_get_size() -> int:
    return 1


def distributed_context_barrier() -> None:
    """No effect: there is one host."""


def pearson_correlation_coefficient(expected: Any, actual: Any) -> float:
    """The correlation of two flattened tensors; 0 if only one is all NaN."""
    a, b = (_flat(each) for each in (expected, actual))
    require(a.numel() == b.numel(), f"{a.numel()} values cannot be correlated with {b.numel()}")
    if torch.isnan(a).all() and torch.isnan(b).all():
        return 1.0
    if torch.isnan(a).all() or torch.isnan(b).all():
        return 0.0
    if bool(a.any()) != bool(b.any()):
        return 0.0
    kept = torch.isfinite(a) & torch.isfinite(b)
    a, b = torch.where(kept, a, 0.0), torch.where(kept, b, 0.0)
    if torch.equal(a, b):
        return 1.0
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


def _flat(values: Any) -> torch.Tensor:
    read = values.to_torch() if isinstance(values, Tensor) else torch.as_tensor(values)
    return read.double().flatten()


# -- profiling --------------------------------------------------------------------------------------------------------


def start_tracy_zone(source: str, function_name: str, line_number: int, color: int = 0) -> None:
    """No effect: the profiler is not emulated."""


def stop_tracy_zone(name: str = "", color: int = 0) -> bool:
    return False


SIGNPOST = "`TT_SIGNPOST: "


def tracy_message(message: str, color: int = 0) -> None:
    """Signposts reach listeners, such as the performance sheet; other messages have no effect."""
    if listeners.active and message.startswith(SIGNPOST):
        header, _, text = message.removeprefix(SIGNPOST).removesuffix("`").partition("\n")
        listeners.signposted(header, text)


def tracy_frame() -> None:
    """No effect: the profiler is not emulated."""
