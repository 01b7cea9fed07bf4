"""The short causal convolution of Kimi Delta Attention: four taps along the tokens, SiLU, and the split into heads."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import NotEmulated, OutOfMemory, require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.programs.attention.indexer_scores import multiplied_onto
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

NARROW = DataType.BFLOAT16
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/kda/qkv_causal_conv1d_silu/device/hostdevcommon/qkv_causal_conv1d_silu_layout.hpp,  # noqa: E501
# tap_count
TAPS = 4
CARRIED = TAPS - 1  # tokens of history before the first token
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/kda/qkv_causal_conv1d_silu/device/hostdevcommon/qkv_causal_conv1d_silu_layout.hpp,  # noqa: E501
# dest_tile_limit
# Tiles per half of the destination register, 16-bit and 32-bit.
DEST_TILES, WIDE_DEST_TILES = 8, 4
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/kda/qkv_causal_conv1d_silu/device/hostdevcommon/qkv_causal_conv1d_silu_layout.hpp,  # noqa: E501
# ReaderScratch
# Bytes of reader scratch per tile of channels (strips, faces and rows), and for alignment.
SCRATCH_OF_TILE, SCRATCH = 5824, 256


@composite("ttnn.experimental.kda.qkv_causal_conv1d_silu")
def qkv_causal_conv1d_silu(
    input: Tensor,
    history: Tensor,
    tap0: Tensor,
    tap1: Tensor,
    tap2: Tensor,
    tap3: Tensor,
    q_width: int,
    k_width: int,
    v_width: int,
    *,
    program_config: Any,
    actual_start: Tensor,
    predecessor_carry: Tensor,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    sequence_parallel_axis: int = 0,
    input_column_offset: int = 0,
) -> Any:
    """silu of Σ tap × token, three tokens back to the token itself; columns go to queries, keys and values.

    What precedes the first token is `history`. Positions and the other chips' tokens matter only where a sequence is
    spread over chips.
    """
    require(len(input.shape) == 3, f"input must be [1, tokens, channels], not {list(input.shape)}")
    if input.layout is Layout.ROW_MAJOR:
        input = ttnn.to_layout(input, Layout.TILE)
    widths = (q_width, k_width, v_width)
    chunk = program_config.channel_chunk_size
    carries = (actual_start, predecessor_carry)
    places = (sequence_parallel_axis, input_column_offset)
    taps = (tap0, tap1, tap2, tap3)
    return convolve(input, history, *taps, *carries, widths, chunk, memory_config, compute_kernel_config, *places)


@internal("ttnn.prim.qkv_causal_conv1d_silu")
def convolve(
    input: Spec,
    history: Spec,
    tap0: Spec,
    tap1: Spec,
    tap2: Spec,
    tap3: Spec,
    actual_start: Spec,
    predecessor_carry: Spec,
    widths: tuple[int, int, int],
    chunk: int,
    memory_config: MemoryConfig | None,
    compute_kernel_config: Any,
    axis: int,
    offset: int,
) -> Plan:
    channels = sum(widths)
    _require_operand(input, "input", Layout.TILE, NARROW)
    _require_operand(history, "history", Layout.ROW_MAJOR, NARROW)
    _require_operand(actual_start, "actual_start", Layout.ROW_MAJOR, DataType.UINT32)
    require(actual_start.volume == 1, f"actual_start must be a scalar, not {list(actual_start.shape)}")
    for number, tap in enumerate((tap0, tap1, tap2, tap3)):
        _require_operand(tap, f"tap{number}", Layout.TILE, NARROW)
        flat = tap.rank > 0 and tap.shape[-1] == tap.volume == channels
        require(flat, f"tap{number} must hold {channels} channels in its last dimension, not {list(tap.shape)}")
    require(predecessor_carry == history, "predecessor_carry must be like history")
    require(all(width > 0 for width in widths), f"Q/K/V widths must be positive, not {list(widths)}")
    whole = all(width % TILE_SIZE == 0 for width in widths)
    require(whole, f"Q/K/V widths must be tile aligned, not {list(widths)}")
    tokens = input.shape[1]
    require(tokens > 0 and tokens % TILE_SIZE == 0, f"the sequence must be positive and tile aligned, not {tokens}")
    require(offset >= 0 and offset % TILE_SIZE == 0, f"input_column_offset must be tile aligned, not {offset}")
    fits = input.shape[0] == 1 and offset + channels <= input.shape[2]
    require(fits, f"input must be [1, tokens, at least {offset + channels}], not {list(input.shape)}")
    wanted = (1, CARRIED, channels)
    require(history.shape == wanted, f"history must be {list(wanted)}, not {list(history.shape)}")
    require(chunk > 0, f"channel_chunk_size must be positive, not {chunk}")
    require(chunk % TILE_SIZE == 0, f"channel_chunk_size must be tile aligned, not {chunk}")
    require(chunk <= channels, f"channel_chunk_size must not exceed {channels} channels, it is {chunk}")
    require(channels % chunk == 0, f"channel_chunk_size must divide {channels} channels, {chunk} does not")
    out_memory = memory_config or DRAM_MEMORY_CONFIG
    require(
        not out_memory.is_sharded(), f"the output memory layout must be INTERLEAVED, not {out_memory.memory_layout}"
    )
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=False)
    require(not config.approx, "math_approx_mode=true is unsupported: the SiLU of this kernel is the precise one")
    require(not config.l1_acc, "packer_l1_acc=true is unsupported: this kernel adds nothing up in L1")
    _require_one_chip(axis)
    l1_bytes = _buffers(chunk // TILE_SIZE, wide=config.fp32_acc)
    if l1_bytes > current_board().l1_bank_bytes:
        raise OutOfMemory(f"channel_chunk_size {chunk} needs {l1_bytes} B of each core's L1, which is too much")

    def compute(values: torch.Tensor, before: torch.Tensor, *taps: torch.Tensor) -> list[torch.Tensor]:
        x = torch.cat([before[0], values[0, :, offset : offset + channels]])
        core = Core.of(config, TAPS * tokens * channels)
        sums = torch.zeros(tokens, channels)
        for number, tap in enumerate(taps):
            row = tap.reshape(1, channels)
            # A tap becomes a diagonal matrix, the identity times its row, and multiplies from the right.
            weight = core.packed(core.mul(torch.ones_like(row), row), NARROW)
            sums = multiplied_onto(sums, weight, x[number : number + tokens], config, exact=core.exact)
        made = core.packed(core.apply("silu", sums), NARROW).unsqueeze(0)
        return list(made.split(widths, -1))

    outputs = tuple(Spec.of((1, tokens, width), NARROW, Layout.TILE, out_memory) for width in widths)
    reads = ("input", "history", "tap0", "tap1", "tap2", "tap3")
    return Plan(outputs, compute, reads=reads, l1_bytes=l1_bytes)


def _require_operand(spec: Spec, name: str, layout: Layout, dtype: DataType) -> None:
    require(spec.on_device, f"{name} must be an allocated device tensor, it is on the host")
    require(spec.dtype is dtype, f"{name} must be {dtype.name}, not {spec.dtype}")
    require(spec.layout is layout, f"{name} must use {layout.name} layout, not {spec.layout}")
    require(not spec.is_sharded, f"{name} must use interleaved memory")


def _require_one_chip(axis: int) -> None:
    device = current_device()
    mesh = (1, 1) if device is None else tuple(device.shape)
    require(0 <= axis < len(mesh), f"sequence_parallel_axis {axis} is no axis of a mesh of shape {list(mesh)}")
    if mesh[axis] > 1:
        raise NotEmulated("the convolution of a sequence on several chips is not emulated")


def _buffers(tiles: int, *, wide: bool) -> int:
    """Identity, taps and their diagonals, shifted tokens and outputs of a group of tiles twice, and scratch."""
    limit = WIDE_DEST_TILES if wide else DEST_TILES
    group = max(size for size in range(1, limit + 1) if tiles % size == 0)
    count = 1 + 2 * TAPS * tiles + 2 * group * (TAPS + 1)
    return count * tile_bytes(DEFAULT_TILE, NARROW) + SCRATCH_OF_TILE * tiles + SCRATCH
