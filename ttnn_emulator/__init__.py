"""A TT-NN device on this CPU: the public API of `ttnn`, with the card's numerics, memory limits and rules.

import ttnn_emulator as ttnn

with ttnn.open_device(device_id=0) as device:
    x = ttnn.from_torch(torch.randn(32, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    y = ttnn.softmax(x, dim=-1)
"""

from __future__ import annotations

import sys as _sys
from typing import Any

from ttnn_emulator.api.known_types import QueueId, SubDeviceId
from ttnn_emulator.api.known_types import register_known_types as _register_known_types
from ttnn_emulator.api.recorded import recorded_names as _recorded_names

_records = _register_known_types()

from ttnn_emulator import ops as _ops  # noqa: E402,F401  (registers all operations)
from ttnn_emulator.api.config_types import UnaryWithParam  # noqa: E402
from ttnn_emulator.api.recorded import ttnn_version  # noqa: E402
from ttnn_emulator.enums import ALL_ENUMS as _ALL_ENUMS  # noqa: E402
from ttnn_emulator.enums import DataType, Layout, StorageType  # noqa: E402
from ttnn_emulator.errors import (  # noqa: E402
    ChipFault,
    DeviceMismatch,
    EmulatorError,
    InvalidArgument,
    NotEmulated,
    OutOfMemory,
    SignatureError,
    UseAfterFree,
)
from ttnn_emulator.execution.call_context import specs_only  # noqa: E402
from ttnn_emulator.execution.listeners import (  # noqa: E402
    Listener,
    OperationEvent,
    listening,
    register_post_operation_hook,
    register_pre_operation_hook,
)
from ttnn_emulator.execution.queues import (
    MeshEvent,
    command_queue,
    event_synchronize,
    get_current_command_queue_id_for_thread,
    record_event,
    wait_for_event,
)
from ttnn_emulator.execution.trace import (
    MeshTraceId,
    begin_trace_capture,
    end_trace_capture,
    execute_trace,
    is_trace_capture_active,
    release_trace,
)
from ttnn_emulator.golden_functions import get_fallback_function, get_golden_function
from ttnn_emulator.golden_functions import images as _golden_images  # noqa: F401  (registers golden functions)
from ttnn_emulator.golden_functions import pools as _golden_pools  # noqa: F401
from ttnn_emulator.hardware.boards import board_names  # noqa: E402
from ttnn_emulator.hardware.core_grid import (  # noqa: E402
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    corerange_to_cores,
    num_cores_to_corerangeset,
)
from ttnn_emulator.hardware.device import Device, MeshDevice  # noqa: E402
from ttnn_emulator.hardware.device_opening import (  # noqa: E402
    CloseDevice,
    CloseDevices,
    CreateDevice,
    CreateDevices,
    GetDefaultDevice,
    SetDefaultDevice,
    close_device,
    close_mesh_device,
    create_mesh_device,
    manage_device,
    open_device,
    open_mesh_device,
    synchronize_device,
)
from ttnn_emulator.hardware.device_queries import (  # noqa: E402
    GetNumAvailableDevices,
    GetNumPCIeDevices,
    GetPCIeDeviceID,
    ReadDeviceProfiler,
    get_arch_name,
    get_device_time,
    get_dram_alignment,
    get_l1_alignment,
    get_max_worker_l1_unreserved_size,
    get_memory_view,
)
from ttnn_emulator.hardware.dispatch_cores import DispatchCoreConfig  # noqa: E402
from ttnn_emulator.hardware.fabric import (  # noqa: E402
    create_global_semaphore,
    get_fabric_config,
    get_global_semaphore_address,
    get_num_links,
    get_tt_fabric_max_payload_size_bytes,
    get_tt_fabric_packet_header_size_bytes,
    get_usable_topology,
    reset_global_semaphore_value,
    set_fabric_config,
)
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape  # noqa: E402
from ttnn_emulator.hardware.work_split import (  # noqa: E402
    get_optimal_dram_bank_to_logical_worker_assignment,
    get_optimal_worker_cores_for_sharded_tensor,
    grid_to_cores,
    num_cores_to_corerangeset_in_subcoregrids,
    split_work_to_cores,
)
from ttnn_emulator.library.queries import (  # noqa: E402
    SetRootDir,
    create_layer_norm_reciprocals,
    disable_asynchronous_slow_dispatch,
    distributed_context_barrier,
    distributed_context_get_rank,
    distributed_context_get_size,
    distributed_context_is_initialized,
    dump_stack_trace_on_segfault,
    element_size,
    enable_asynchronous_slow_dispatch,
    get_allocator_base_address,
    get_device_ids,
    get_memory_config,
    get_num_devices,
    get_num_pcie_devices,
    get_pcie_device_ids,
    has_storage_type_of,
    has_tile_padding,
    init_device_compute_kernel_config,
    is_sharded,
    is_tensor_storage_on_device,
    layernorm_default_compute_config,
    pearson_correlation_coefficient,
    rmsnorm_default_compute_config,
    start_tracy_zone,
    stop_tracy_zone,
    tile_size,
    tracy_frame,
    tracy_message,
    ttnn_dtype_to_torch_dtype,
    using_distributed_env,
)
from ttnn_emulator.library.settings.config import (  # noqa: E402
    CONFIG,
    CONFIG_OVERRIDES,
    CONFIG_PATH,
    Config,
    load_config_from_dictionary,
    load_config_from_json_file,
    manage_config,
    save_config_to_json_file,
)
from ttnn_emulator.namespaces import look_up as _look_up  # noqa: E402
from ttnn_emulator.namespaces import nested_namespaces as _nested_namespaces  # noqa: E402
from ttnn_emulator.namespaces import register_as_ttnn as _register_as_ttnn  # noqa: E402
from ttnn_emulator.namespaces import top_level_operations as _top_level_operations  # noqa: E402
from ttnn_emulator.tensors import host_transfer as _host  # noqa: E402,F401  (registers from_torch, to_device, …)
from ttnn_emulator.tensors.memory_config import (  # noqa: E402
    DRAM_MEMORY_CONFIG,
    L1_BLOCK_SHARDED_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    L1_WIDTH_SHARDED_MEMORY_CONFIG,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    create_sharded_memory_config,
    create_sharded_memory_config_,
)
from ttnn_emulator.tensors.mesh_distribution import (  # noqa: E402
    ConcatMesh2dToTensor,
    ConcatMeshToTensor,
    MeshComposer,
    MeshComposerConfig,
    MeshCoordinateRange,
    MeshCoordinateRangeSet,
    MeshMapper,
    MeshMapperConfig,
    PlacementReplicate,
    PlacementShard,
    ReplicateTensorToMesh,
    ShardTensor2dMesh,
    ShardTensorToMesh,
    aggregate_tensor,
    combine_device_tensors,
    compute_distribution_to_mesh_mapping,
    concat_mesh_to_tensor_composer,
    create_mesh_composer,
    create_mesh_mapper,
    distribute,
    distribute_tensor,
    from_host_shards,
    get_device_tensors,
    replicate_tensor_to_mesh_mapper,
    shard_tensor_to_mesh_mapper,
)
from ttnn_emulator.tensors.printing import set_printoptions  # noqa: E402
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, Tile  # noqa: E402
from ttnn_emulator.tensors.spec import Spec  # noqa: E402
from ttnn_emulator.tensors.tensor import Tensor, spec_tensor  # noqa: E402
from ttnn_emulator.tensors.tensor_spec import TensorSpec  # noqa: E402

__version__ = "0.1.0"

bfloat16 = DataType.BFLOAT16
float32 = DataType.FLOAT32
bfloat8_b = DataType.BFLOAT8_B
bfloat4_b = DataType.BFLOAT4_B
uint8 = DataType.UINT8
uint16 = DataType.UINT16
uint32 = DataType.UINT32
int32 = DataType.INT32
int8 = DataType.INT8
fp8_e4m3 = DataType.FP8_E4M3
TILE_LAYOUT = Layout.TILE
ROW_MAJOR_LAYOUT = Layout.ROW_MAJOR
DEVICE_STORAGE_TYPE = StorageType.DEVICE
CppTensorToMesh = TensorToMesh = MeshMapper
CppMeshToTensor = MeshToTensor = MeshComposer

_known = _recorded_names()["modules"]["ttnn"]
globals().update({name: value for name, value in (_ALL_ENUMS | _records).items() if name in _known})
globals().update(_top_level_operations())
_modules = _nested_namespaces()
globals().update(_modules)
# `from ttnn_emulator.dot_access import …` works as `from ttnn.dot_access import …` does.
for _name, _module in _modules.items():
    _sys.modules.setdefault(f"{__name__}.{_name}", _module)
DeviceComputeKernelConfig = _records["WormholeComputeKernelConfig"]
_slice_types = _ALL_ENUMS["SliceTypeEnum"]
Conv2dDRAMSliceHeight = Op2DDRAMSliceHeight = _slice_types.DRAMSliceHeight
Conv2dDRAMSliceWidth = Op2DDRAMSliceWidth = _slice_types.DRAMSliceWidth
Conv2dL1Full = Op2DL1Full = _slice_types.L1Full
Conv2dL1FullSliceConfig = Op2DL1FullSliceConfig = _records["Op2DSliceConfig"](slice_type=_slice_types.L1Full)

if CONFIG.enable_comparison_mode:  # set by the environment or a file
    from ttnn_emulator.library.comparison import mode as _comparison_mode

    _comparison_mode.follow(CONFIG)
if "--trace-params" in _sys.argv:  # the library's switch for writing every call to a file
    from ttnn_emulator.library.tracer import operation_tracer as _operation_tracer


def __getattr__(name: str) -> Any:
    """Names of `ttnn` that are not emulated resolve to objects that raise when called."""
    if name.startswith("__"):
        raise AttributeError(f"module 'ttnn_emulator' has no attribute {name!r}")
    return _look_up(f"ttnn.{name}")


def install_as_ttnn() -> None:
    """Make `import ttnn` import the emulator in this process, as `python -m ttnn_emulator` does for a script."""
    _register_as_ttnn(_sys.modules[__name__])
