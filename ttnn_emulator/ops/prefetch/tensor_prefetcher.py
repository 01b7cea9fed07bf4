"""The tensor prefetcher of `ttnn.experimental`, which runs on programmable cores of DRAM banks.

Wormhole has no such cores, and Blackhole only with recent firmware, which no emulated board has: the library's answers
are those of a card without them.
"""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import BufferType, TensorMemoryLayout
from ttnn_emulator.errors import InvalidArgument, NotEmulated, require
from ttnn_emulator.execution.operation_table import composite
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.ops.matmul.program_configs import program_of
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.tensor import Tensor

NO_DRAM_CORES = "the tensor prefetcher needs programmable cores of DRAM, which this device does not have"


@composite("ttnn.experimental.is_tensor_prefetcher_supported")
def is_tensor_prefetcher_supported(mesh_device: MeshDevice) -> bool:
    """Whether the DRAM of all chips has cores that can run it."""
    return False


@composite(
    "ttnn.experimental.start_tensor_prefetcher",
    ignores=("free_sender_mpfe_weight", "noc1_sender_mpfe_weight", "ordinary_mpfe_weight", "dynamic_mpfe_weighting"),
)
def start_tensor_prefetcher(mesh_device: MeshDevice) -> None:
    """Start waiting for requests."""
    raise InvalidArgument(NO_DRAM_CORES)


@composite("ttnn.experimental.stop_tensor_prefetcher")
def stop_tensor_prefetcher(mesh_device: MeshDevice) -> None:
    """Stop it; a no-op if it never started."""


@composite("ttnn.experimental.wait_for_cq_on_tensor_prefetcher", ignores=("cq_id", "device_subset"))
def wait_for_cq_on_tensor_prefetcher(mesh_device: MeshDevice) -> None:
    """Make it wait for a command queue."""
    raise InvalidArgument("the tensor prefetcher has not been started")


@composite(
    "ttnn.experimental.queue_tensor_prefetcher_request",
    ignores=("mesh_device", "tensors", "device_subset", "capture_into_trace"),
)
def queue_tensor_prefetcher_request(global_cb: Any = None, *, prefetcher_pipes: Any = ()) -> None:
    """Enqueue weights to send."""
    require((global_cb is not None) != bool(prefetcher_pipes), "weights go to a global_cb or to prefetcher_pipes")
    raise InvalidArgument("requests need a buffer or pipes whose senders are cores of DRAM")


@composite(
    "ttnn.experimental.create_global_circular_buffer_for_tensor_prefetcher",
    ignores=("mesh_device", "bank_to_receivers", "size", "buffer_type", "support_multi_receiver_shards"),
)
def create_global_circular_buffer_for_tensor_prefetcher() -> None:
    """A buffer whose senders are cores of DRAM."""
    raise InvalidArgument(NO_DRAM_CORES)


@composite(
    "ttnn.experimental.create_global_circular_buffer_for_matmul_1d",
    ignores=("mesh_device", "weights", "bank_to_receivers", "size", "buffer_type", "support_multi_receiver_shards"),
)
def create_global_circular_buffer_for_matmul_1d(program_configs: Any) -> None:
    """A buffer for the weights of these programs, whose senders are cores of DRAM."""
    require(len(program_configs) > 0, "there must be at least one program config")
    raise InvalidArgument(NO_DRAM_CORES)


@composite("ttnn.experimental.tensor_prefetcher_block_count_for_matmul_1d")
def tensor_prefetcher_block_count_for_matmul_1d(
    program_config: Any, weight: Tensor, global_cb: Any = None, prefetcher_pipes: Any = ()
) -> int:
    """The pages a receiver gets of a weight: one for every core that passes in0 on, or one for every block."""
    spec, program = weight._spec, program_of(program_config)
    if global_cb is None or spec.memory_config.memory_layout is TensorMemoryLayout.ND_SHARDED:
        raise NotEmulated("only weights in width shards that go through a global circular buffer are emulated")
    require(spec.memory_config.buffer_type is BufferType.DRAM, "the weight must be in DRAM")
    require(program.gather_in0 != program.mcast_in0, "either gather_in0 or mcast_in0 must be set")
    require(not program.stream_in1, "stream_in1 needs a weight whose shards are those of the receivers")
    shards, receivers = spec.shard_spec, global_cb.receiver_cores().num_cores()
    require(shards is not None, "the weight must be width sharded over banks of DRAM")
    assert shards is not None
    share = program.num_global_cb_receivers
    require(share > 0 and receivers % share == 0, f"{receivers} receivers do not divide into banks of {share}")
    banks = receivers // share
    (height, width), (inner, columns) = shards.shape, spec.padded_shape[-2:]
    require(height == inner, f"a shard must have all {inner} rows, not {height}")
    require(width * banks == columns, f"{banks} shards {width} wide do not make {columns} columns")
    rows, across = inner // TILE_SIZE, width // TILE_SIZE
    require(
        across % share == 0 and program.per_core_N == across // share,
        f"per_core_N {program.per_core_N} must be a receiver's part of a shard of {across} tiles",
    )
    require(program.in0_block_w > 0, "in0_block_w must not be 0")
    require(rows % program.in0_block_w == 0, f"{rows} tiles do not divide into blocks of {program.in0_block_w}")
    if program.mcast_in0:
        return rows // program.in0_block_w
    require(rows % receivers == 0, f"{rows} tiles do not divide among {receivers} cores")
    return receivers
