"""Mixtures of experts over a mesh: tokens are sent to the chips of their experts, and results back."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.ops.collective.exchange import LINKS, Carriers, groups, require_several
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

BATCH, SEQUENCE = 1, 2  # the dimensions along which tokens of several chips are joined


def _require_rows(spec: Spec, dtype: DataType, name: str) -> None:
    require_on_device(spec, name)
    require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout, it is in {spec.layout}")
    require(spec.dtype is dtype, f"{name} must be {dtype.name}, it is {spec.dtype.name}")


def _chips() -> int:
    device = current_device()
    assert device is not None
    return device.num_devices


@composite("ttnn.all_to_all_dispatch", ignores=(*LINKS, "num_links"))
def all_to_all_dispatch(
    input_tensor: Tensor,
    expert_indices_tensor: Tensor,
    expert_mapping_tensor: Tensor,
    *,
    cluster_axis: int | None = None,
    output_tensors: Sequence[Tensor] | None = None,
    memory_config: MemoryConfig | None = None,
    output_concat_dim: int | None = 1,
) -> list[Tensor]:
    """Each token goes to the chips that hold its experts; all chips learn which experts every token chose."""
    require(output_tensors is None or len(output_tensors) == 2, "two output tensors are needed")
    rows, metadata = output_tensors or (None, None)
    return dispatch(
        input_tensor,
        expert_indices_tensor,
        expert_mapping_tensor,
        rows,
        metadata,
        cluster_axis,
        memory_config,
        BATCH if output_concat_dim is None else output_concat_dim,
    )


@internal("ttnn.prim.all_to_all_dispatch")
def dispatch(
    input_tensor: Spec,
    expert_indices_tensor: Spec,
    expert_mapping_tensor: Spec,
    rows: Spec | None,
    metadata: Spec | None,
    cluster_axis: int | None,
    memory_config: MemoryConfig | None,
    concat: int,
) -> Plan:
    """Rows of tokens that are not sent to a chip are undefined there; here they are zero."""
    _require_rows(input_tensor, DataType.BFLOAT16, "the input tensor")
    _require_rows(expert_indices_tensor, DataType.UINT16, "the tensor of expert indices")
    require_on_device(expert_mapping_tensor, "the tensor of expert places")
    config = memory_of(memory_config, input_tensor)
    require(not config.is_sharded(), "the outputs cannot be sharded")
    tokens, chosen = input_tensor.shape, expert_indices_tensor.shape
    require(len(tokens) == len(chosen) == 4, "tokens and expert indices must have rank 4")
    require(tokens[:-1] == chosen[:-1], f"tokens {list(tokens)} and expert indices {list(chosen)} do not match")
    require(concat in (BATCH, SEQUENCE), f"output_concat_dim must be 1 or 2, not {concat}")
    among = groups(cluster_axis) if cluster_axis in (None, 0) else groups(1)
    count = require_several(among, "all_to_all_dispatch")
    batch = tokens[0] * (count if concat == BATCH else 1)
    sequence = chosen[-2] * (count if concat == SEQUENCE else 1)
    outputs = [
        input_tensor.with_(shape=(1, batch, sequence, tokens[-1]), memory_config=config),
        expert_indices_tensor.with_(shape=(1, batch, sequence, chosen[-1]), memory_config=config),
    ]
    if rows is not None and metadata is not None:
        outputs = [rows, metadata]
        require(all(each.layout is Layout.ROW_MAJOR for each in outputs), "outputs must be in ROW_MAJOR layout")

    def compute(inputs: Carriers, indices: Carriers, mappings: Carriers) -> list[Carriers]:
        sparse: Carriers = [torch.empty(0)] * len(inputs)
        known: Carriers = [torch.empty(0)] * len(inputs)
        for group in among:
            sent = torch.cat([inputs[chip].reshape(-1, tokens[-1]) for chip in group])
            experts = torch.cat([indices[chip].reshape(-1, chosen[-1]) for chip in group])
            for chip in group:
                here = mappings[chip].reshape(-1, mappings[chip].shape[-1])[:, chip] == 1
                comes = here[experts.long()].any(1, keepdim=True)
                sparse[chip] = torch.where(comes, sent, 0).reshape(outputs[0].shape)
                known[chip] = experts.reshape(outputs[1].shape)
        return [sparse, known]

    return Plan(
        outputs,
        compute,
        reads=("input_tensor", "expert_indices_tensor", "expert_mapping_tensor"),
        into=() if rows is None else ("rows", "metadata"),
        across=True,
    )


@composite("ttnn.all_to_all_combine", ignores=(*LINKS, "num_links"))
def all_to_all_combine(
    input_tensor: Tensor,
    expert_metadata_tensor: Tensor,
    expert_mapping_tensor: Tensor,
    *,
    local_reduce: bool = False,
    output_shard_dim: int | None = 1,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """Expert outputs are sent back to the chips of their tokens, one row per selected expert."""
    if output_tensor is None:
        device, spec = input_tensor._device, input_tensor._spec
        require(device is not None, "the input tensor must be on a device")
        assert device is not None
        shape = _combined_shape(spec, expert_metadata_tensor._spec, tuple(device.shape), cluster_axis, output_shard_dim)
        config = memory_config if memory_config is not None else spec.memory_config
        output_tensor = ttnn.moreh_full(
            list(shape), 0.0, device, dtype=spec.dtype, layout=spec.layout, memory_config=config
        )
    return combine(
        input_tensor,
        expert_metadata_tensor,
        expert_mapping_tensor,
        output_tensor,
        local_reduce,
        output_shard_dim,
        cluster_axis,
        memory_config,
    )


def _combined_shape(
    spec: Spec, metadata: Spec, mesh: tuple[int, ...], cluster_axis: int | None, shard_dim: int | None
) -> tuple[int, ...]:
    require(metadata.rank >= 3, f"the metadata tensor has rank {metadata.rank}, not 4")
    batch, sequence = metadata.shape[1:3]
    chips = mesh[0] * mesh[1]
    copies = 1 if cluster_axis is None else mesh[0 if cluster_axis else 1]
    if shard_dim in (None, BATCH):
        batch = batch * copies // chips
    elif shard_dim == SEQUENCE:
        sequence = sequence * copies // chips
    return metadata.shape[-1], batch, sequence, spec.shape[-1]


@internal("ttnn.prim.all_to_all_combine")
def combine(
    input_tensor: Spec,
    metadata: Spec,
    mapping: Spec,
    output_tensor: Spec,
    local_reduce: bool,
    shard_dim: int | None,
    cluster_axis: int | None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    _require_rows(input_tensor, DataType.BFLOAT16, "the input tensor")
    _require_rows(metadata, DataType.UINT16, "the metadata tensor")
    _require_rows(mapping, DataType.UINT16, "the tensor of expert places")
    config = memory_of(memory_config, input_tensor)
    require(not config.is_sharded(), "the output cannot be sharded")
    require(
        input_tensor.rank == metadata.rank == mapping.rank == 4, "input, metadata and expert places must have rank 4"
    )
    chips, experts = _chips(), mapping.shape[2]
    require(experts % chips == 0, f"{experts} experts do not divide over {chips} devices")
    local = 1 if local_reduce else experts // chips
    require(input_tensor.shape[0] == local, f"dimension 0 of the input is {input_tensor.shape[0]}, not {local}")
    require(cluster_axis is not None, "all_to_all_combine needs a cluster_axis")
    assert cluster_axis is not None
    device = current_device()
    assert device is not None
    among = groups(min(cluster_axis, 1))
    count = require_several(among, "all_to_all_combine")
    dim = BATCH if shard_dim is None else shard_dim
    require(dim in (BATCH, SEQUENCE), f"output_shard_dim must be 1 or 2, not {dim}")
    require(metadata.shape[dim] % count == 0, f"{metadata.shape[dim]} along dimension {dim} do not divide over {count}")
    shape = _combined_shape(input_tensor, metadata, tuple(device.shape), cluster_axis, shard_dim)
    out = input_tensor.with_(shape=shape, memory_config=config)
    require(output_tensor == out, f"the output tensor is {output_tensor.brief()}, {out.brief()} is needed")
    hidden, chosen = input_tensor.shape[-1], metadata.shape[-1]
    tokens = metadata.shape[1] * metadata.shape[2]
    each = tokens // count

    def compute(inputs: Carriers, choices: Carriers, mappings: Carriers, kept: Carriers) -> Carriers:
        results = [carrier.clone().reshape(chosen, each, hidden) for carrier in kept]
        for group in among:
            for chip in group:
                mine = (mappings[chip].reshape(experts, -1)[:, chip] == 1).nonzero().flatten()[: experts // chips]
                made = inputs[chip].reshape(local, tokens, hidden)
                table = choices[chip].reshape(tokens, chosen).long()
                open_tokens = torch.ones(tokens, dtype=torch.bool)
                for number, expert in enumerate(mine.tolist()):
                    hits = (table == expert) & open_tokens[:, None]
                    rows = hits.any(1).nonzero().flatten()
                    slots = hits[rows].int().argmax(1)
                    for index, target in enumerate(group):
                        bound = rows // each == index
                        sent = rows[bound]
                        results[target][slots[bound], sent % each] = made[number % local, sent]
                    if local_reduce:
                        open_tokens[rows] = False
        return [result.reshape(shape) for result in results]

    return Plan(
        out,
        compute,
        into=("output_tensor",),
        reads=("input_tensor", "metadata", "mapping", "output_tensor"),
        across=True,
    )
