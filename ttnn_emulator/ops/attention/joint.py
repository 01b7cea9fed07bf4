"""Joint attention: two sequences attend to their concatenated keys."""

from __future__ import annotations

import functools

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.attention.whole_sequences import Prefill, attend, scale_or_default
from ttnn_emulator.ops.attention import checks
from ttnn_emulator.ops.attention.checks import TILE
from ttnn_emulator.ops.attention.circular_buffers import joint_buffers
from ttnn_emulator.ops.attention.whole_sequences import approximates, attention_math, chunk_sizes
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec

TAKEN = (DataType.BFLOAT16, DataType.BFLOAT8_B)


def _require(first: tuple[Spec, Spec, Spec], second: tuple[Spec, Spec, Spec]) -> None:
    specs = (*first, *second)
    require(len({spec.dtype for spec in specs}) == 1, "all tensors must have the same dtype")
    for spec in specs:
        require(spec.on_device, "all tensors must be on a device")
        require(spec.is_tile, f"all tensors must be in TILE layout, not {spec.layout}")
        require(spec.dtype in TAKEN, f"tensors must be BFLOAT16 or BFLOAT8_B, not {spec.dtype}")
        require(spec.memory_config.buffer_type is BufferType.DRAM, "all tensors must be in DRAM")
        checks.require_rank_4(spec, "a tensor")
    for each in (first, second):
        q, k, v = each
        require(q.shape[0] == k.shape[0] == v.shape[0], "queries, keys and values must have one batch")
        require(q.shape[3] == k.shape[3] == v.shape[3], "queries, keys and values must have one width")
        require(q.shape[1] == k.shape[1], f"there are {q.shape[1]} heads of queries and {k.shape[1]} of keys")
    q, other = first[0], second[0]
    same = q.shape[0] == other.shape[0] and q.shape[3] == other.shape[3] and first[1].shape[1] == second[1].shape[1]
    require(same, f"sequences of shapes {list(q.shape)} and {list(other.shape)} cannot be joined")


@operation("ttnn.transformer.joint_scaled_dot_product_attention")
def joint_scaled_dot_product_attention(
    input_tensor_q: Spec,
    input_tensor_k: Spec,
    input_tensor_v: Spec,
    joint_tensor_q: Spec,
    joint_tensor_k: Spec,
    joint_tensor_v: Spec,
    *,
    joint_strategy,
    program_config,
    scale=None,
    compute_kernel_config=None,
):
    """Both sequences attend to the keys of both; returns a pair of results."""
    require(joint_strategy == "rear", f"the only joint_strategy is 'rear', not {joint_strategy!r}")
    first = (input_tensor_q, input_tensor_k, input_tensor_v)
    second = (joint_tensor_q, joint_tensor_k, joint_tensor_v)
    _require(first, second)
    checks.require_chunk_sizes(program_config)
    names = ("the query", "the key", "the value")
    for each in (first, second):
        checks.require_only_lengths_padded(dict(zip(names, each)))
    cores = checks.require_grid(program_config)
    rows, columns = chunk_sizes(program_config)
    q, other = first[0], second[0]
    kernel = Prefill(
        attention_math(compute_kernel_config),
        scale_or_default(scale, q.shape[-1]),
        q.dtype,
        rows,
        columns,
        q.shape[-1] // TILE,
        exp_approx=approximates(program_config),
        streams=False,
    )
    outputs = tuple(Spec.of(each.shape, each.dtype, Layout.TILE, DRAM_MEMORY_CONFIG) for each in (q, other))
    lengths = q.shape[2], other.shape[2]
    chunks = sum(div_up(length, rows * TILE) for length in lengths)
    padded = any(length % (columns * TILE) for length in lengths)
    l1_bytes = joint_buffers(kernel, q, chunks, cores, padded=padded)
    return Plan(outputs, functools.partial(_run, kernel), l1_bytes=l1_bytes)


def _run(kernel: Prefill, *operands: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    q, k, v, other_q, other_k, other_v = operands
    step = kernel.k_chunk * TILE
    room = [round_up(each.shape[2], step) - each.shape[2] for each in (k, other_k)]
    keys, values = (
        torch.cat([torch.nn.functional.pad(each, (0, 0, 0, more)) for each, more in zip(pair, room)], 2)
        for pair in ((k, other_k), (v, other_v))
    )
    absent = torch.zeros(keys.shape[2], dtype=torch.bool)
    end = k.shape[2] + room[0]
    absent[k.shape[2] : end] = True
    absent[end + other_k.shape[2] :] = True
    return tuple(  # type: ignore[return-value]
        attend(kernel, each, keys, values, absent=absent) if each.numel() else each for each in (q, other_q)
    )
