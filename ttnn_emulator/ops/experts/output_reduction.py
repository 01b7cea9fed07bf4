"""Post-processing of expert outputs: sums over experts, plain or weighted, and tilizing."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import truncate_bf16
from ttnn_emulator.numerics.formats.casts import repacked
from ttnn_emulator.numerics.programs.products.weighted_sums import weighted_sum
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.collective.exchange import Carriers
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

BF16 = DataType.BFLOAT16
TILE_BYTES = 2 * TILE_SIZE * TILE_SIZE
DTYPES = (BF16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/reduction/deepseek_moe_fast_reduce_nc/device/deepseek_moe_fast_reduce_nc_program_factory.cpp,  # noqa: E501
# input_granularity
MOST_AT_ONCE = 8  # tiles that are read together: the largest divisor of the experts up to this


def _math(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=True)


# -- sums -------------------------------------------------------------------------------------------------------------


@operation("ttnn.experimental.deepseek_moe_fast_reduce_nc")
def deepseek_moe_fast_reduce_nc(
    input_tensor: Spec,
    dim: int,
    *,
    split_size: int,
    output_memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """The sum over a dimension before the last two, with the columns split into tensors of `split_size` each."""
    config = _math(compute_kernel_config)
    out, count, dim = _outputs(input_tensor, dim, split_size, output_memory_config)
    fault = _fault(input_tensor, split_size)

    def compute(values: torch.Tensor) -> list[torch.Tensor]:
        if fault is not None:
            raise fault
        total = numeric.accumulate(values, dim, config).unsqueeze(dim)
        return _split(pack(total, out.dtype, from_fp32=config.fp32_acc), split_size)

    size = 2 * _at_once(input_tensor.shape[dim]) * input_tensor.page_bytes + TILE_BYTES + 2 * out.page_bytes
    return Plan([out] * count, compute, l1_bytes=size)


def _outputs(tensor: Spec, dim: int, split_size: int, memory: MemoryConfig | None) -> tuple[Spec, int, int]:
    """The spec of each result, how many there are, and the dimension counted from the front."""
    require_on_device(tensor)
    width = tensor.shape[-1] if tensor.rank else 1
    require(split_size > 0 and width % split_size == 0, f"{width} columns do not divide into parts of {split_size}")
    rank = len(tensor.padded_shape)
    require(tensor.dtype in DTYPES, f"the input must be BFLOAT16 or BFLOAT8_B, not {tensor.dtype}")
    require_tile(tensor)
    require(rank > 2 and tensor.rank > 2, f"the input must have more than 2 dimensions, not {rank}")
    axis = dim + rank if dim < 0 else dim
    require(0 <= axis <= rank - 3, f"dimension {dim} is not one before the last two of {rank}")
    count = width // split_size
    step = count * TILE_SIZE
    require(tensor.padded_shape[-1] % step == 0, f"{tensor.padded_shape[-1]} columns are not a multiple of {step}")
    require(tensor.shape[axis] > 0, "there is nothing to add up")
    shape = [*tensor.shape[:-1], split_size]
    shape[axis] = 1
    return Spec.of(shape, tensor.dtype, Layout.TILE, memory or DRAM_MEMORY_CONFIG), count, axis


def _fault(tensor: Spec, split_size: int) -> ChipFault | None:
    if split_size != tensor.shape[-1] and tensor.shape[-1] != tensor.padded_shape[-1]:
        return ChipFault(
            f"the parts of {tensor.shape[-1]} columns are cut where their tiles end, not every {split_size}"
        )
    return None


def _split(values: torch.Tensor, size: int) -> list[torch.Tensor]:
    return [part.contiguous() for part in values.split(size, -1)]


def _at_once(experts: int) -> int:
    return next(size for size in range(MOST_AT_ONCE, 0, -1) if experts % size == 0)


@composite("ttnn.experimental.deepseek_moe_fast_reduce_nc_fused")
def deepseek_moe_fast_reduce_nc_fused(
    input_tensor: Tensor,
    expert_indices_tensor: Tensor,
    expert_mapping_tensor: Tensor,
    reduce_dim: int,
    *,
    split_size: int,
    cluster_axis: int,
    output_memory_config: MemoryConfig | None = None,
    scores_tensor: Tensor | None = None,
    num_shared_experts: int = 0,
    shared_expert_scale: float = 1.0,
    compute_kernel_config: Any = None,
) -> list[Tensor]:
    """The same with a weight for every token and expert: its score if the expert is on this chip's row or column.

    The last `num_shared_experts` have `shared_expert_scale` for all tokens. Without scores all weights are 1.
    """
    for name, number in (("cluster_axis", cluster_axis), ("num_shared_experts", num_shared_experts)):
        require(0 <= number < 1 << 32, f"{name} must be an unsigned number of 32 bits, not {number}")
    if scores_tensor is None:
        return ttnn.experimental.deepseek_moe_fast_reduce_nc(
            input_tensor,
            reduce_dim,
            split_size=split_size,
            output_memory_config=output_memory_config,
            compute_kernel_config=compute_kernel_config,
        )
    return weighted_reduce(
        input_tensor,
        expert_indices_tensor,
        expert_mapping_tensor,
        scores_tensor,
        reduce_dim,
        split_size,
        cluster_axis,
        output_memory_config,
        num_shared_experts,
        shared_expert_scale,
        _math(compute_kernel_config),
    )


@internal("ttnn::prim::deepseek_moe_fast_reduce_nc_fused")
def weighted_reduce(
    input_tensor: Spec,
    expert_indices_tensor: Spec,
    expert_mapping_tensor: Spec,
    scores_tensor: Spec,
    dim: int,
    split_size: int,
    cluster_axis: int,
    memory: MemoryConfig | None,
    shared: int,
    scale: float,
    config: MathConfig,
) -> Plan:
    indices, mapping, scores = expert_indices_tensor, expert_mapping_tensor, scores_tensor
    for name, spec in (("scores", scores), ("expert indices", indices), ("expert mapping", mapping)):
        require_on_device(spec, f"the tensor of {name}")
    require(cluster_axis in (0, 1), f"cluster_axis must be 0 or 1, not {cluster_axis}")
    out, count, dim = _outputs(input_tensor, dim, split_size, memory)
    experts, tokens = input_tensor.shape[dim], input_tensor.padded_shape[-2]
    require(scores.dtype is BF16, f"the scores must be BFLOAT16, not {scores.dtype}")
    require(not scores.is_tile, "the scores must be in ROW_MAJOR layout")
    require(scores.rank == 4 and input_tensor.rank == 4, "input and scores must have rank 4")
    require(0 <= shared <= experts, f"{shared} shared experts are more than all {experts}")
    routed = experts - shared
    require(scores.shape[-1] == routed, f"there are {scores.shape[-1]} scores a token for {routed} experts")
    rows = scores.shape[0]
    require(tokens - TILE_SIZE < rows <= tokens, f"scores of {rows} tokens are not those of the input's {tokens} rows")
    fault = _fault(input_tensor, split_size) or _routing_fault(indices, mapping, rows, routed)
    constant = truncate_bf16(torch.tensor(scale))
    device = current_device()
    mesh = tuple(device.shape) if device is not None else (1, 1)

    def weights(chip: int, chosen: torch.Tensor, owners: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        """[experts, tokens] for one chip; rows of padding have weight 0."""
        owners = owners.reshape(-1, owners.shape[-1])
        owners = owners[0 if owners.shape[0] == 1 else chip].long()
        chosen = chosen.reshape(-1, chosen.shape[-1])[:rows, :routed].long()
        if chosen.numel() and int(chosen.max()) >= owners.numel():
            raise ChipFault(f"expert {int(chosen.max())} has no place in a mapping of {owners.numel()} experts")
        at = owners[chosen]
        here = at % mesh[1] == chip % mesh[1] if cluster_axis == 0 else at // mesh[1] == chip // mesh[1]
        kept = torch.where(here, given.reshape(-1, routed)[:rows], 0.0)
        kept = torch.cat([kept, constant.expand(rows, shared)], 1)
        return torch.nn.functional.pad(kept, (0, 0, 0, max(input_tensor.shape[-2] - rows, 0))).mT

    def compute(values: Carriers, chosen: Carriers, owners: Carriers, given: Carriers) -> Any:
        if fault is not None:
            raise fault
        made: list[Carriers] = []
        for chip, tensors in enumerate(zip(values, chosen, owners, given)):
            own = weights(chip, *tensors[1:])[:, : input_tensor.shape[-2]]
            total = weighted_sum(tensors[0].movedim(dim, 0), own[:, None, :, None], config).unsqueeze(dim)
            made.append(_split(pack(total, out.dtype, from_fp32=config.fp32_acc), split_size))
        parts = [list(part) for part in zip(*made)]
        return parts if count > 1 else parts[0]

    size = 2 * (_at_once(experts) * input_tensor.page_bytes + out.page_bytes)
    size += div_up(rows, TILE_SIZE) * experts * TILE_BYTES + rows * _staged(scores)
    size += indices.num_pages * _staged(indices) + mapping.num_pages * _staged(mapping)
    reads = ("input_tensor", "expert_indices_tensor", "expert_mapping_tensor", "scores_tensor")
    return Plan([out] * count, compute, reads=reads, across=True, l1_bytes=size)


def _staged(spec: Spec) -> int:
    """Bytes of a page in its memory, and in the circular buffer."""
    board = current_board()
    in_dram = spec.memory_config.buffer_type is BufferType.DRAM
    aligned = round_up(spec.page_bytes, board.dram_alignment if in_dram else board.l1_alignment)
    return round_up(aligned, board.l1_alignment)


def _routing_fault(indices: Spec, mapping: Spec, rows: int, routed: int) -> ChipFault | None:
    for name, spec in (("expert indices", indices), ("expert mapping", mapping)):
        if spec.dtype is not DataType.UINT16 or spec.is_tile:
            return ChipFault(f"the kernel takes {name} for rows of UINT16; they are {spec.dtype} in {spec.layout}")
    if indices.rank == 0 or indices.shape[-1] < routed or indices.volume // max(indices.shape[-1], 1) < rows:
        return ChipFault(f"expert indices {list(indices.shape)} are too few for {rows} tokens of {routed} experts")
    return None


# -- tiles ------------------------------------------------------------------------------------------------------------


@operation("ttnn.experimental.deepseek_moe_post_combine_tilize")
def deepseek_moe_post_combine_tilize(input_tensor: Spec, *, output_memory_config: MemoryConfig) -> Plan:
    """Tilize, with shards one tile high."""
    spec, memory = input_tensor, output_memory_config
    require_on_device(spec)
    padded = spec.padded_shape
    require(len(padded) >= 2, f"the input must have at least two dimensions, not {len(padded)}")
    require(spec.dtype is BF16, f"the input must be BFLOAT16, not {spec.dtype}")
    layout = spec.memory_config.memory_layout
    require(layout is TensorMemoryLayout.INTERLEAVED, f"the input must be interleaved, not {layout}")
    require(not spec.is_tile, "the input must be in ROW_MAJOR layout")
    shards = memory.nd_shard_spec
    require(memory.is_sharded() and shards is not None, "the output needs an NdShardSpec")
    require(memory.buffer_type is BufferType.L1, "the output must be in L1")
    assert shards is not None
    cut = tuple(shards.shard_shape)
    require(len(cut) == 2, f"shards must have two dimensions, not {len(cut)}")
    height, width = torch.Size(padded[:-1]).numel(), padded[-1]
    require(cut[1] % TILE_SIZE == 0 and width % cut[1] == 0, f"shards {cut[1]} wide do not divide {width} columns")
    require(
        cut[0] == TILE_SIZE and height % TILE_SIZE == 0, f"shards must be a tile high, not {cut[0]} of {height} rows"
    )
    down, across = height // cut[0], width // cut[1]
    cores = shards.grid.num_cores()
    require(down * across == cores, f"{down} × {across} shards are not one for each of {cores} cores")
    out = Spec.of(padded, BF16, Layout.TILE, memory)
    fault = _misplaced(out, shards, down, across)
    convert = repacked(BF16, BF16)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        return values if convert is None else convert(values)

    return Plan(out, compute, l1_bytes=TILE_SIZE * cut[1] * 2)


def _misplaced(out: Spec, shards: Any, down: int, across: int) -> ChipFault | None:
    if out.padded_shape[-2] != out.shape[-2]:
        return ChipFault(f"batches of {out.shape[-2]} rows are stored as if they had no padding")
    row_by_row = shards.orientation is ShardOrientation.ROW_MAJOR
    if shards.shard_distribution_strategy.name == "GRID_2D":
        size = shards.grid.bounding_box().grid_size()
        if (size.x, size.y) != ((across, down) if row_by_row else (down, across)):
            return ChipFault("the kernel numbers cores consecutively, and the shards are in a larger grid")
    elif not row_by_row and down > 1 and across > 1:
        return ChipFault("the kernel writes columns of shards to columns of cores, which hold them row by row")
    return None
