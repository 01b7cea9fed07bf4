"""The gated delta rule: a keys × values state that decays, is updated and is read along a sequence."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.launch_memory import Launch, TakeOutput
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.attention.delta_rule import Unit, scan, solved
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/gated_delta_attn/device/kernels/compute/gated_delta_attn.cpp,
# compile-time args Ct, Kt and Vt, all 4
SIDE = 128  # chunk length, key width and value width
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/gated_delta_attn/device/gated_delta_attn_program_factory.cpp,
# ComputeConfig
# The program ignores the compute kernel config of the call.
SEQUENTIAL = MathConfig(MathFidelity.HiFi2, fp32_acc=True, approx=False)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/gated_delta_attn/device/gated_delta_attn_program_factory.cpp,
# make_cb
# Matrices of 4 × 4 tiles, scratch rows of 4 tiles, and single tiles, each in a circular buffer.
SEQUENTIAL_TILES = 19 * 16 + 3 * 4 + 5


@operation("ttnn.transformer.gated_delta_attn_seq", ignores=("compute_kernel_config",))
def gated_delta_attn_seq(
    L_unit: Spec,
    v_beta_sc: Spec,
    k_bd_sc: Spec,
    intra_attn: Spec,
    q_decay: Spec,
    k_decay_t: Spec,
    dl_exp: Spec,
    L_inv: Spec,
    *,
    initial_state: Spec | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """Chunk after chunk of prepared matrices [heads, chunks, …]: the outputs, and the state after the last."""
    require(L_unit.rank == 4, f"L_unit must be [heads, chunks, {SIDE}, {SIDE}], not {list(L_unit.shape)}")
    heads, chunks = L_unit.shape[:2]
    lead, square = (heads, chunks), (heads, chunks, SIDE, SIDE)
    wanted: dict[str, tuple[Spec, tuple[int, ...]]] = {
        "L_unit": (L_unit, square),
        "v_beta_sc": (v_beta_sc, square),
        "k_bd_sc": (k_bd_sc, square),
        "intra_attn": (intra_attn, square),
        "q_decay": (q_decay, square),
        "k_decay_t": (k_decay_t, square),
        "dl_exp": (dl_exp, (*lead, 1, 1)),
        "L_inv": (L_inv, (*lead, SIDE, TILE_SIZE)),
    }
    if initial_state is not None:
        wanted["initial_state"] = initial_state, (heads, SIDE, SIDE)
    for name, (spec, shape) in wanted.items():
        require(spec.on_device, f"{name} must be on a device")
        require(spec.is_tile, f"{name} must be in TILE layout, it is in {spec.layout}")
        require(spec.memory_config.buffer_type is BufferType.DRAM, f"{name} must be in DRAM")
        require(spec.dtype is DataType.FLOAT32, f"{name} must be FLOAT32, not {spec.dtype}")
        require(spec.shape == shape, f"{name} must be {list(shape)}, not {list(spec.shape)}")
    cores = current_board().cores
    require(heads <= cores, f"{heads} heads are more than the {cores} cores, each of which takes one")

    def compute(*given: torch.Tensor) -> list[torch.Tensor]:
        if not chunks:
            raise ChipFault("the card would hang: without chunks no kernel writes the final state")
        lower, values, keys, attention, queries, updates, decay, inverses = given[:8]
        state = given[8] if len(given) > 8 else torch.zeros(heads, SIDE, SIDE)
        out = torch.empty(square)
        unit = Unit(SEQUENTIAL, heads * chunks * 8 * SIDE**3)
        for at in range(chunks if heads else 0):
            corrected = solved(unit, lower[:, at], inverses[:, at], values[:, at])
            found = solved(unit, lower[:, at], inverses[:, at], keys[:, at])
            rest = (attention[:, at], queries[:, at], updates[:, at], decay[:, at])
            out[:, at], state = scan(unit, corrected, found, *rest, state)
        return [out, state]

    config = memory_config or DRAM_MEMORY_CONFIG
    outputs = tuple(Spec.of(shape, DataType.FLOAT32, Layout.TILE, config) for shape in (square, (heads, SIDE, SIDE)))
    l1_bytes = SEQUENTIAL_TILES * tile_bytes(DEFAULT_TILE, DataType.FLOAT32)
    # The buffers leave so little L1 that outputs in L1 matter.
    stages = (TakeOutput(0), TakeOutput(1), Launch(l1_bytes)) if config.buffer_type is BufferType.L1 else ()
    return Plan(outputs, compute, reads=tuple(wanted), l1_bytes=l1_bytes, stages=stages)
