"""Tokens in fp8_e4m3 with a scale for every 128 values, and packed rows of caches; on Blackhole only."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.boards import Arch
from ttnn_emulator.numerics.formats.carriers import from_bits, upper_halves
from ttnn_emulator.numerics.formats.float8 import LARGEST, from_fp8, packed_fp8
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.prefill.mesh_positions import PREFILL, require_unsigned
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/per_token_cast_to_fp8/per_token_cast_to_fp8.hpp,  # noqa: E501
# BLOCK_W and SCALE_CLAMP_MIN
BLOCK = 128  # values that share a scale
LEAST = 1e-4
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/per_token_cast_to_fp8/device/per_token_cast_to_fp8_program_factory.cpp,  # noqa: E501
# clamp_max_bits
MOST = 3.0e38
WIDE_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)
SCALING = MathConfig(MathFidelity.HiFi4, fp32_acc=True)
SCALING_NARROW = MathConfig(MathFidelity.HiFi2, fp32_acc=True)
# asked ttnn 0.81.1: bytes of circular buffers without those of the input (to fp8) or the output (back).
BUFFERS_TO_FP8, BUFFERS_BACK = 79872, 83968
TILES_BUFFERED = 8
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/pack_scaled_fp8_kv_cache/shared_with_host/packed_kv_layout.hpp,  # noqa: E501
# field widths
LATENT_WIDTH, SCALE_WIDTH, ROPE_WIDTH = 512, 4, 64
PACKED_WIDTH = LATENT_WIDTH + 4 * SCALE_WIDTH + 2 * ROPE_WIDTH
PACKING_BUFFER = 512


def _require_blackhole() -> None:
    arch = current_board().arch
    require(arch is Arch.BLACKHOLE, f"fp8_e4m3 needs Blackhole, not {arch.name}")


def _require_in_dram(config: MemoryConfig, name: str) -> None:
    require(config.is_dram and not config.is_sharded(), f"{name} must be interleaved in DRAM")


@operation(f"{PREFILL}.per_token_cast_to_fp8")
def per_token_cast_to_fp8(
    input_tensor: Spec, memory_config: MemoryConfig | None = None, *, round_scale_to_power_of_two: bool = False
) -> Plan:
    """Values divided by the scale of their 128, as fp8_e4m3, and the scales: the largest of them ÷ 448."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    require_on_device(spec)
    _require_in_dram(spec.memory_config, "the input")
    _require_in_dram(config, "the output")
    _require_blackhole()
    require(spec.dtype in WIDE_DTYPES, f"the input is {spec.dtype}, only bfloat16 and float32 are supported")
    require(spec.tile.height * spec.tile.width == TILE_SIZE * TILE_SIZE, "tiles must hold 1024 values")
    require(spec.rank >= 2, f"the input has rank {spec.rank}, it must be at least 2")
    width, rows = spec.shape[-1], math.prod(spec.shape[:-1])
    require(width % BLOCK == 0, f"a width of {width} is not a multiple of {BLOCK}")
    require(rows > 0, "the input is empty")
    outputs = (
        Spec.of(spec.shape, DataType.FP8_E4M3, Layout.ROW_MAJOR, config),
        Spec.of((*spec.shape[:-1], width // BLOCK), DataType.FLOAT32, Layout.ROW_MAJOR, config),
    )

    def compute(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        blocks = values.reshape(-1, BLOCK)
        core = Core.of(SCALING, blocks.numel())
        source = core.source(blocks.contiguous(), spec.dtype)
        largest = source.abs().amax(-1, keepdim=True).clamp(LEAST, MOST)
        scales = largest * torch.tensor(1.0 / LARGEST, dtype=torch.float32)
        if round_scale_to_power_of_two:
            fraction, exponent = torch.frexp(scales)
            scales = torch.ldexp(torch.ones_like(scales), exponent - (fraction == 0.5).to(exponent.dtype))
        inverse = core.source(apply_function("recip", scales, fp32_dest=True), DataType.FLOAT32)
        made = packed_fp8(core.mul(source, inverse.expand_as(source).contiguous()))
        return made.reshape(spec.shape), scales.reshape(outputs[1].shape)

    l1_bytes = BUFFERS_TO_FP8 + TILES_BUFFERED * tile_bytes(DEFAULT_TILE, spec.dtype)
    return Plan(outputs, compute, l1_bytes=l1_bytes)


# -- back -------------------------------------------------------------------------------------------------------------


@operation(f"{PREFILL}.per_token_cast_back")
def per_token_cast_back(
    input_e4m3: Spec,
    input_scale: Spec | None = None,
    output_dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    narrow_scales_to_bf16: bool = False,
    token_count_aware: bool = False,
    expert_region_offsets: Spec | None = None,
    expert_token_counts: Spec | None = None,
    global_expert_idx_table: Spec | None = None,
    experts_per_chip: int = 0,
    metadata: Spec | None = None,
) -> Plan:
    """fp8_e4m3 times the scales of their 128 values; with token counts, only the rows that experts have.

    Scales are a tensor, or the bits of the last columns of `metadata`, whatever its dtype.
    """
    require_unsigned(experts_per_chip=experts_per_chip)
    counted = (expert_region_offsets, expert_token_counts, global_expert_idx_table)
    if token_count_aware:
        require((input_scale is None) != (metadata is None), "either input_scale or metadata must be given")
        require(all(each is not None for each in counted), "counts of tokens need offsets, counts and a table")
    else:
        require(input_scale is not None, "input_scale must be given")
        given = any(each is not None for each in (*counted, metadata))
        require(not given, "metadata and tensors of experts are for token_count_aware only")
    scale = input_scale if input_scale is not None else metadata
    assert scale is not None
    config = memory_of(memory_config, input_e4m3)
    dtype = output_dtype if output_dtype is not None else DataType.BFLOAT16
    for spec, name in ((input_e4m3, "the input"), (scale, "the scales")):
        require_on_device(spec, name)
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
        _require_in_dram(spec.memory_config, name)
    _require_in_dram(config, "the output")
    _require_blackhole()
    require(input_e4m3.dtype is DataType.FP8_E4M3, f"the input is {input_e4m3.dtype}, not fp8_e4m3")
    bits = (DataType.FLOAT32, DataType.UINT32, DataType.INT32) if metadata is not None else (DataType.FLOAT32,)
    require(scale.dtype in bits, f"the scales are {scale.dtype}, not float32")
    require(dtype in WIDE_DTYPES, f"the output must be bfloat16 or float32, not {dtype}")
    if token_count_aware:
        _require_experts(counted, experts_per_chip)
    rows, blocks = _require_scales(input_e4m3, scale, in_metadata=metadata is not None)
    out = Spec.of(input_e4m3.shape, dtype, Layout.ROW_MAJOR, config)
    math_config = SCALING_NARROW if narrow_scales_to_bf16 else SCALING

    def compute(values: torch.Tensor, factors: torch.Tensor, *experts: torch.Tensor) -> torch.Tensor:
        kept = _rows_of_experts(experts, experts_per_chip, rows) if experts else rows
        source = from_fp8(values.reshape(rows, -1)[:kept]).reshape(-1, BLOCK)
        scales = _as_float(factors.reshape(rows, -1)[:kept, -blocks:]).reshape(-1, 1)
        core = Core.of(math_config, source.numel())
        if narrow_scales_to_bf16:
            scales = pack(scales, DataType.BFLOAT16, from_fp32=True)
        else:
            scales = core.source(scales, DataType.FLOAT32)
        product = core.packed(core.mul(source.contiguous(), scales.expand_as(source).contiguous()), dtype)
        made = torch.zeros(rows, blocks * BLOCK)
        made[:kept] = product.reshape(kept, -1)
        return made.reshape(out.shape)

    source = "input_scale" if metadata is None else "metadata"
    experts = ("expert_region_offsets", "expert_token_counts", "global_expert_idx_table") if token_count_aware else ()
    l1_bytes = BUFFERS_BACK + TILES_BUFFERED * tile_bytes(DEFAULT_TILE, dtype)
    return Plan(out, compute, reads=("input_e4m3", source, *experts), l1_bytes=l1_bytes)


def _require_experts(counted: tuple[Spec | None, ...], experts_per_chip: int) -> None:
    for spec, name in zip(counted, ("offsets", "counts", "the table")):
        assert spec is not None
        require_on_device(spec, name)
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
        _require_in_dram(spec.memory_config, name)
        require(spec.dtype is DataType.UINT32, f"{name} must be uint32, not {spec.dtype}")
        flat = spec.rank == 1 or (spec.rank == 2 and spec.shape[0] == 1)
        require(flat, f"{name} must be one row, not {list(spec.shape)}")
    offsets, counts, table = counted
    assert offsets is not None and counts is not None and table is not None
    same = offsets.shape[-1] == counts.shape[-1]
    require(same, f"there are {offsets.shape[-1]} offsets and {counts.shape[-1]} counts")
    known = 0 < experts_per_chip <= table.shape[-1]
    require(known, f"experts_per_chip {experts_per_chip} must be between 1 and {table.shape[-1]}")


def _require_scales(values: Spec, scale: Spec, *, in_metadata: bool) -> tuple[int, int]:
    """Rows, and scales of each."""
    shape, of_scale = values.shape, scale.shape
    require(len(shape) >= 2, f"the input has rank {len(shape)}, it must be at least 2")
    same = len(shape) == len(of_scale) and shape[:-1] == of_scale[:-1]
    require(same, f"scales of {list(of_scale)} do not fit values of {list(shape)}")
    blocks = shape[-1] // BLOCK
    if in_metadata:
        require(shape[-1] % BLOCK == 0, f"a width of {shape[-1]} is not a multiple of {BLOCK}")
        require(of_scale[-1] >= blocks, f"metadata of {of_scale[-1]} columns does not hold {blocks} scales")
    else:
        require(shape[-1] == of_scale[-1] * BLOCK, f"a width of {shape[-1]} does not fit {of_scale[-1]} scales")
    rows = math.prod(shape[:-1])
    require(rows > 0, "the input is empty")
    return rows, blocks


def _as_float(values: torch.Tensor) -> torch.Tensor:
    """Scales by their bits."""
    if values.is_floating_point():
        return values.contiguous()
    return from_bits(values.to(torch.int32).contiguous())


def _rows_of_experts(experts: tuple[torch.Tensor, ...], local: int, rows: int) -> int:
    """How many rows are cast: whole tiles up to the end of the last expert's."""
    offsets, counts, table = (each.reshape(-1).tolist() for each in experts)
    if max(table[:local]) >= len(offsets):
        raise ChipFault(f"expert {max(table[:local])} is not one of {len(offsets)}")
    ends = [offsets[expert] + round_up(counts[expert], TILE_SIZE) for expert in table[:local]]
    return min(max(ends), rows) // TILE_SIZE * TILE_SIZE


# -- rows of a cache --------------------------------------------------------------------------------------------------


def packed_rows(latent: torch.Tensor, scales: torch.Tensor, rope: torch.Tensor) -> torch.Tensor:
    """Bytes of values, of their scales and of bfloat16 side by side."""
    parts = (latent, scales.float().contiguous(), upper_halves(rope.contiguous()))
    return torch.cat([part.view(torch.uint8) for part in parts], -1)


@operation(f"{PREFILL}.pack_scaled_fp8_kv_cache")
def pack_scaled_fp8_kv_cache(
    latent: Spec, scales: Spec, rope: Spec, *, memory_config: MemoryConfig | None = None
) -> Plan:
    """Rows of 512 values, 4 scales and 64 bfloat16 as rows of 656 bytes, labelled fp8_e4m3."""
    for spec, name, dtype, width in (
        (latent, "latent", DataType.FP8_E4M3, LATENT_WIDTH),
        (scales, "scales", DataType.FLOAT32, SCALE_WIDTH),
        (rope, "rope", DataType.BFLOAT16, ROPE_WIDTH),
    ):
        require_on_device(spec, name)
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
        _require_in_dram(spec.memory_config, name)
        require(spec.dtype is dtype, f"{name} must be {dtype}, not {spec.dtype}")
        require(spec.rank > 0 and spec.shape[-1] == width, f"{name} must be {width} wide, not {list(spec.shape)}")
    config = memory_config if memory_config is not None else DRAM_MEMORY_CONFIG
    _require_in_dram(config, "the output")
    _require_blackhole()
    same = latent.shape[:-1] == scales.shape[:-1] == rope.shape[:-1]
    require(same, "latent, scales and rope must have the same leading dimensions")
    require(math.prod(latent.shape[:-1]) > 0, "the input is empty")
    out = Spec.of((*latent.shape[:-1], PACKED_WIDTH), DataType.FP8_E4M3, Layout.ROW_MAJOR, config)
    compute: Callable[..., torch.Tensor] = packed_rows
    return Plan(out, compute, l1_bytes=PACKING_BUFFER)
