"""deepseek_moe_gate: the generalized gate with groups of experts, under its older name and with checks of its own."""

from __future__ import annotations

from dataclasses import replace

from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.experts.gate import KEPT
from ttnn_emulator.ops.experts.generalized_gate import generalized_moe_gate
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec


@operation("ttnn.experimental.deepseek.moe.deepseek_moe_gate")
def deepseek_moe_gate(
    input_tensor: Spec,
    *,
    bias_tensor: Spec,
    input_indices_tensor: Spec,
    output_tensor: Spec,
    output_indices_tensor: Spec,
    eps: float = 1e-20,
    scaling_factor: float = 2.5,
    enable_sigmoid: bool = False,
) -> Plan:
    """The 8 best of 256 experts from the 4 best of 8 groups, and their normalised scores; one core per token.

    The kernel computes the same steps as generalized_moe_gate with groups; its circular buffers alias the tensors.
    """
    require(
        input_indices_tensor.shape == input_tensor.shape,
        f"indices {list(input_indices_tensor.shape)} and input {list(input_tensor.shape)} must have the same shape",
    )
    plan = generalized_moe_gate.function(
        input_tensor,
        bias_tensor=bias_tensor,
        input_indices_tensor=input_indices_tensor,
        output_tensor=output_tensor,
        output_indices_tensor=output_indices_tensor,
        eps=eps,
        scaling_factor=scaling_factor,
        enable_sigmoid=enable_sigmoid,
        topk=KEPT,
        grouped=True,
    )
    shards = input_tensor.memory_config.shard_spec
    assert shards is not None
    require(tuple(shards.shape) == (TILE_SIZE, TILE_SIZE), f"the input's shards must be one tile, not {shards.shape}")
    return replace(plan, l1_bytes=0)
