"""Routing weights and token weights restricted to the experts of each chip of a mesh."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import bits_of
from ttnn_emulator.ops.collective.exchange import Carriers
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec

INDEX_BYTES = 2  # the kernels keep indices of experts as uint16
UINT16 = DataType.UINT16


def _mesh() -> tuple[int, int]:
    device = current_device()
    rows, columns = (1, 1) if device is None else tuple(device.shape)
    return rows, columns


def _aligned(size: int) -> int:
    return round_up(size, current_board().l1_alignment)


# -- routes -----------------------------------------------------------------------------------------------------------


@operation("ttnn.moe_routing_remap")
def moe_routing_remap(
    routing_weights_tensor: Spec,
    non_zero_weight_size: int,
    expert_parallel_size: int,
    cluster_axis: int,
    *,
    memory_config: MemoryConfig | None = None,
    optional_output_tensor: Spec | None = None,
) -> Plan:
    """The non-zero weights [1, experts] distributed in order over the chips of a row or column; all others are 0."""
    weights, count, parts = routing_weights_tensor, non_zero_weight_size, expert_parallel_size
    require_on_device(weights)
    require(weights.layout is Layout.ROW_MAJOR, f"the weights must be in ROW_MAJOR layout, not {weights.layout}")
    require(weights.rank == 2 and weights.shape[0] == 1, f"the weights must be [1, experts], not {list(weights.shape)}")
    experts = weights.shape[1]
    require(0 < count <= experts, f"{count} non-zero weights are not between 1 and all {experts}")
    require(parts > 0 and experts % parts == 0, f"{experts} experts do not divide over {parts} chips")
    require(count % parts == 0, f"{count} non-zero weights do not divide over {parts} chips")
    require(cluster_axis in (0, 1), f"cluster_axis must be 0 or 1, not {cluster_axis}")
    mesh = _mesh()
    require(
        parts == mesh[cluster_axis], f"the mesh has {mesh[cluster_axis]} chips along axis {cluster_axis}, not {parts}"
    )
    out = weights.with_(memory_config=memory_of(memory_config, weights))
    if optional_output_tensor is not None:
        require(optional_output_tensor == out, f"the output must be {out}, not {optional_output_tensor}")
    each, columns = count // parts, mesh[1]
    cut = any(spec.num_pages != 1 for spec in (weights, out))

    def compute(given: Carriers) -> Carriers:
        if cut:
            raise ChipFault("the kernel reads all weights as one page, and they are in several")
        made = []
        for chip, values in enumerate(given):
            index = chip // columns if cluster_axis == 0 else chip % columns
            # The kernel looks at bit patterns: a weight of -0 is one.
            bits = bits_of(values) if values.is_floating_point() else values
            found = bits[0].nonzero()[:, 0][index * each : (index + 1) * each]
            if found.numel() < each:
                raise ChipFault(
                    f"chip {chip} finds {found.numel()} of its {each} non-zero weights: the kernel reads other data"
                )
            kept = torch.zeros_like(values)
            kept[0, found] = values[0, found]
            made.append(kept)
        return made

    size = _aligned(weights.page_bytes) + _aligned(out.page_bytes) + _aligned(each * INDEX_BYTES)
    return Plan(
        out,
        compute,
        reads=("routing_weights_tensor",),
        into=into(optional_output_tensor, "optional_output_tensor"),
        across=True,
        l1_bytes=size,
    )


# -- tokens -----------------------------------------------------------------------------------------------------------


@operation("ttnn.moe_expert_token_remap")
def moe_expert_token_remap(
    topk_tensor: Spec,
    expert_mapping_tensor: Spec,
    expert_metadata_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    optional_output_mapping_tensor: Spec | None = None,
    optional_output_reduced_tensor: Spec | None = None,
    reduction_size: int = 16,
) -> Plan:
    """The weights [1, batch, sequence, experts] of the chip's own experts that a token selected; others are 0.

    The second result marks, for every `reduction_size` tokens, the experts that any of them selected.
    """
    weights, mapping, chosen = topk_tensor, expert_mapping_tensor, expert_metadata_tensor
    for name, spec in (("weights", weights), ("mapping", mapping), ("metadata", chosen)):
        require_on_device(spec, f"the tensor of {name}")
        require(spec.layout is Layout.ROW_MAJOR, f"the tensor of {name} must be in ROW_MAJOR layout, not {spec.layout}")
        require(name == "weights" or spec.dtype is UINT16, f"the tensor of {name} must be UINT16, not {spec.dtype}")
    rows, columns = _mesh()
    chips = rows * columns
    require(
        mapping.rank >= 3 and mapping.shape[-1] == chips, f"a mapping of {list(mapping.shape)} is not for {chips} chips"
    )
    require(
        weights.rank >= 2 and mapping.shape[-2] == weights.shape[-1],
        f"a mapping of {list(mapping.shape)} is not for weights {list(weights.shape)}",
    )
    require(chosen.rank >= 4, f"the metadata must have rank 4, not {chosen.rank}")
    require(
        chosen.shape[1] == weights.shape[1], f"metadata {list(chosen.shape)} and weights {list(weights.shape)} differ"
    )
    require(reduction_size > 0, f"reduction_size must be positive, not {reduction_size}")
    batch, sequence = chosen.shape[1:3]
    tokens, own = batch * sequence, mapping.shape[2] // chips
    require(tokens % reduction_size == 0, f"{tokens} tokens do not divide into groups of {reduction_size}")
    memory = memory_config or DRAM_MEMORY_CONFIG
    made = (
        Spec.of((1, batch, sequence, own), weights.dtype, Layout.ROW_MAJOR, memory),
        Spec.of((1, 1, tokens // reduction_size, own), UINT16, Layout.ROW_MAJOR, memory),
    )
    given = (optional_output_mapping_tensor, optional_output_reduced_tensor)
    outputs = [spec or wanted for spec, wanted in zip(given, made)]
    fault = _fault(weights, mapping, chosen, outputs, made)

    def compute(values: Carriers, owners: Carriers, metadata: Carriers) -> list[Carriers]:
        if fault is not None:
            raise fault
        mapped: Carriers = []
        reduced: Carriers = []
        for chip, (weight, owner, choice) in enumerate(zip(values, owners, metadata)):
            experts = (owner.reshape(-1, chips)[:, chip] == 1).nonzero()[:, 0]
            if experts.numel() != own:
                raise ChipFault(f"chip {chip} has {experts.numel()} experts, the kernel takes it for {own}")
            picked = (choice.reshape(tokens, -1, 1) == experts).any(1)
            taken = weight.reshape(-1, weight.shape[-1])[:tokens][:, experts]
            mapped.append(torch.where(picked, taken, torch.zeros_like(taken)).reshape(made[0].shape))
            groups = picked.reshape(tokens // reduction_size, reduction_size, own).any(1)
            reduced.append(groups.to(torch.int32).reshape(made[1].shape))
        return [mapped, reduced]

    size = _aligned(mapping.page_bytes) + _aligned(own * INDEX_BYTES) + _aligned(chosen.page_bytes)
    size += 2 * _aligned(weights.page_bytes) + sum(spec.page_bytes for spec in outputs)
    names = ("optional_output_mapping_tensor", "optional_output_reduced_tensor")
    return Plan(
        outputs,
        compute,
        reads=("topk_tensor", "expert_mapping_tensor", "expert_metadata_tensor"),
        into=tuple(name if spec is not None else None for name, spec in zip(names, given)),
        across=True,
        l1_bytes=size,
    )


def _fault(
    weights: Spec, mapping: Spec, chosen: Spec, outputs: list[Spec], made: tuple[Spec, Spec]
) -> ChipFault | None:
    """Faults that the library does not check for."""
    for spec, wanted in zip(outputs, made):
        if (spec.shape, spec.dtype, spec.layout) != (wanted.shape, wanted.dtype, wanted.layout):
            return ChipFault(
                f"an output of {list(spec.shape)} {spec.dtype} is filled like {list(wanted.shape)} {wanted.dtype}"
            )
    if mapping.volume != mapping.shape[2] * mapping.shape[-1] or mapping.rank != 4:
        return ChipFault(f"a mapping of {list(mapping.shape)} is not [1, 1, experts, chips]")
    tokens = chosen.shape[1] * chosen.shape[2]
    if chosen.rank != 4 or chosen.shape[0] != 1:
        return ChipFault(f"metadata {list(chosen.shape)} go beyond the tokens of the result")
    if weights.volume < tokens * weights.shape[-1]:
        return ChipFault(f"weights {list(weights.shape)} are read past their end for {tokens} tokens")
    for spec in (weights, mapping, chosen, *outputs):
        if spec.page_shape[1] != spec.physical_shape[1] and spec.volume:
            return ChipFault("the kernels read a row as one page, and it is in several")
    return None
