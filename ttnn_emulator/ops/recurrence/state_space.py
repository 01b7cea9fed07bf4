"""Operations of state space models: sums over the latent dimension."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/ssm/hc_sum_reduce/device/hc_sum_reduce_device_operation.cpp,
# latent
LATENT = 32  # values summed into one
BLOCK = LATENT * TILE_SIZE
DTYPES = (DataType.BFLOAT16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/ssm/hc_sum_reduce/device/hc_sum_reduce_program_factory.cpp,
# cb_size
PAIRS = 2  # tiles per circular buffer
BETWEEN = 4  # intermediate bfloat16 buffers, besides input and output


@operation("ttnn.experimental.hc_sum_reduce")
def hc_sum_reduce(
    input: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    math_fidelity: MathFidelity | None = None,
) -> Plan:
    """[1, 1, rows, columns] → [1, 1, rows, columns ÷ 32]: sums of 32 columns. The shapes are padded shapes."""
    made, memory = dtype or input.dtype, memory_of(memory_config, input)
    require_on_device(input)
    require_tile(input)
    require(
        input.memory_config.memory_layout is TensorMemoryLayout.INTERLEAVED,
        f"the input must be interleaved, not {input.memory_config.memory_layout}",
    )
    require(input.dtype in DTYPES, f"the input must be BFLOAT16 or BFLOAT8_B, not {input.dtype}")
    require(
        memory.memory_layout is TensorMemoryLayout.INTERLEAVED,
        f"the output must be interleaved, not {memory.memory_layout}",
    )
    require(made in DTYPES, f"the output must be BFLOAT16 or BFLOAT8_B, not {made}")
    padded = tuple(input.padded_shape)
    require(len(padded) >= 4, f"the input must have rank 4, not {len(padded)}")
    require(padded[:2] == (1, 1), f"the first two dimensions must be 1, not {list(padded[:2])}")
    require(padded[2] % TILE_SIZE == 0, f"{padded[2]} rows are not whole tiles")
    require(padded[3] % BLOCK == 0, f"{padded[3]} columns are not a multiple of {BLOCK}")
    out = Spec.of((*padded[:3], padded[3] // LATENT), made, Layout.TILE, memory)
    math = MathConfig(math_fidelity or MathFidelity.HiFi4, fp32_acc=False, approx=False)
    padding = (0, padded[-1] - input.shape[-1], 0, padded[-2] - input.shape[-2])

    def compute(values: torch.Tensor) -> torch.Tensor:
        if input.rank > 4:
            raise ChipFault(f"of an input of rank {input.rank} the kernel adds up the first rows only")
        if not out.volume:
            return torch.zeros(out.shape)
        if made is not input.dtype:
            raise ChipFault(f"the kernel writes tiles of {input.dtype} whatever the output's dtype, here {made}, is")
        core = Core.of(math, values.numel())
        turned = torch.nn.functional.pad(values, padding).unflatten(-1, (-1, LATENT)).movedim(-3, -1)
        sums = core.through(core.column_sums(turned.contiguous())).squeeze(-2).transpose(-1, -2)
        return core.packed(sums.contiguous(), made)

    size = tile_bytes(Tile(), input.dtype)
    l1_bytes = PAIRS * (2 * size + BETWEEN * tile_bytes(Tile(), DataType.BFLOAT16))
    return Plan(out, compute, l1_bytes=l1_bytes)
