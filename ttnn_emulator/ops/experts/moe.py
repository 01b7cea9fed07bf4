"""ttnn.moe: the weight that a gate gives to the first expert."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.programs.reduction.ordering import best_of_rows
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import into, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/moe/device/moe_device_operation.cpp, k, input_shape
BEST = 32  # experts that the gate keeps
NARROWEST = 64  # logits per row, the width of the sorting network
BF16 = DataType.BFLOAT16
MATH = MathConfig(MathFidelity.HiFi4, fp32_acc=False, approx=False)


@operation("ttnn.moe")
def moe(
    input_tensor: Spec,
    expert_mask_tensor: Spec,
    topk_mask_tensor: Spec,
    k: int = BEST,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """The softmax weight of the first expert among the best 32 masked logits [N, C, H, experts]: [N, C, H, 1]."""
    spec, config = input_tensor, memory_config if memory_config is not None else DRAM_MEMORY_CONFIG
    require(0 <= k <= 0xFFFF, f"k must fit 16 bits, not {k}")
    shape = (*spec.shape[:-1], 1)
    if spec.rank and not spec.volume:
        return _nothing(spec, shape, memory_config, output_tensor)
    for each in (spec, expert_mask_tensor, topk_mask_tensor):
        require_on_device(each)
    padded = spec.padded_shape
    require(len(padded) == 4, f"the input must be of rank 4, not {len(padded)}")
    require(k == BEST, f"k must be {BEST}, not {k}", hint="Pad the masks with -infinity.")
    width = padded[-1]
    require(width >= NARROWEST and width & (width - 1) == 0, f"{width} logits: not a power of two from {NARROWEST} on")
    rows = padded[0] * padded[1] * padded[2]
    require(rows % TILE_SIZE == 0, f"{rows} rows are not whole tiles")
    require(not config.is_sharded(), "the output must be interleaved")
    require_tile(spec)
    for name, mask, length in (
        ("topk_mask_tensor", topk_mask_tensor, BEST),
        ("expert_mask_tensor", expert_mask_tensor, spec.shape[-1]),
    ):
        require(
            mask.rank and mask.shape == (*[1] * (mask.rank - 1), length),
            f"{name} must be one row of {length}, not {list(mask.shape)}",
        )
        require(mask.padded_shape[-2:][0] == TILE_SIZE, f"{name} must be in tiles")
    out = output_tensor or Spec.of(shape, spec.dtype, spec.layout, config)

    def compute(logits: torch.Tensor, experts: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
        shares = _first_share(logits, experts.reshape(-1), best.reshape(-1), spec, out.dtype)
        return shares.reshape(out.shape)

    reads = ("input_tensor", "expert_mask_tensor", "topk_mask_tensor")
    return Plan(out, compute, reads=reads, into=into(output_tensor))


def _nothing(spec: Spec, shape: tuple[int, ...], config: MemoryConfig | None, output: Spec | None) -> Plan:
    """No logits: no shares."""
    if output is not None:
        require(output.shape == shape, f"the output must be {list(shape)}, not {list(output.shape)}")
    out = output or spec.with_(shape=shape, memory_config=config or spec.memory_config)
    return Plan(
        out, lambda *_: torch.zeros(out.shape, dtype=CARRIER[out.dtype]), reads=("input_tensor",), into=into(output)
    )


def _first_share(
    logits: torch.Tensor, experts: torch.Tensor, best: torch.Tensor, spec: Spec, dtype: DataType
) -> torch.Tensor:
    core = Core.of(MATH, logits.numel())
    masked = core.through(core.add(core.source(logits, spec.dtype), experts), spec.dtype)
    missing = spec.padded_shape[-1] - masked.shape[-1]
    masked = torch.nn.functional.pad(masked, (0, missing), value=float("-inf"))
    places = torch.arange(masked.shape[-1]).expand(masked.shape)
    values, indices = best_of_rows(masked, places, BEST, spec.dtype, largest=True)
    values = core.through(core.add(values, best), BF16)
    largest = core.through(numeric.extreme(values, -1, largest=True).unsqueeze(-1), dtype)
    powers = core.through(core.apply("exp", core.sub(values, largest), approx=True), BF16)
    inverse = core.through(core.apply("recip", core.through(core.row_sums(powers), dtype)), dtype)
    shares = core.through(core.mul(powers, inverse), BF16)
    chosen = core.through(core.mul(shares, (indices == 0).float()), BF16)
    return core.packed(core.row_sums(chosen), dtype)
