"""batch_norm: every tile is scaled by the values of its channel; running statistics move towards those of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import Arch, MathFidelity
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.normalization.passes import PASS_CYCLES, math_settings, passes_of
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.tile_by_tile import COSTS, Operands, bytes_of_tile, operands_launch, tiles_of

FAMILY = "batch_norm"
FILL_WORDS = 512  # 4-byte stores that fill a tile of 16-bit values with its channel's value


def _settings(call: Call) -> tuple[MathFidelity, bool]:
    default = MathFidelity.HiFi3 if call.board.arch is Arch.WORMHOLE_B0 else MathFidelity.HiFi4
    settings = math_settings(call.arguments.get("given_config"), default, fp32=True, approximate=False)
    return settings.fidelity, settings.fp32


@prices("ttnn::prim::batch_norm")
def batch_norm(call: Call) -> Sequence[Launch]:
    """The reader reads a tile of the input per step; statistics and weights once per channel, and fills tiles."""
    source, out, board = call.tensors[0], call.outputs[0], call.board
    fidelity, fp32 = _settings(call)
    passes = passes_of(board, fidelity, fp32=fp32, approximate=False)
    small = [spec for name, spec in call.inputs if name in ("mean", "variance", "weight", "bias")]
    size, middle = bytes_of_tile(source), passes.middle
    scalings = sum([call.tensor(name) is not None for name in ("weight", "bias")])
    cycles = passes.combined(size, middle, middle, block=1) + (1 + scalings) * passes.combined(
        middle, middle, middle, product=True, block=1
    )
    per_channel = max(tiles_of(source) // max(source.shape[0] * source.shape[1], 1), 1)
    filled = FILL_WORDS * COSTS[board.arch].store_cycles * len(small)
    cycles += (passes.inverse_root() + PASS_CYCLES + filled) / per_channel
    reads = [(source, 1.0), *[(spec, 1.0 / per_channel) for spec in small]]
    return [operands_launch("BatchNormOperation", FAMILY, Operands(reads, [(out, 1.0)], cycles), board)]


@prices("ttnn::prim::running_statistics")
def running_statistics(call: Call) -> Sequence[Launch]:
    board, out = call.board, call.outputs
    fidelity, fp32 = _settings(call)
    if not out:
        return []
    passes = passes_of(board, fidelity, fp32=fp32, approximate=False)
    size = bytes_of_tile(out[0])
    cycles = len(out) * (2 * passes.combined(size, size, size, product=True) + passes.combined(size, size, size))
    reads = [(spec, 1.0) for spec in call.tensors]
    work = Operands(reads, [(spec, 1.0) for spec in out], cycles, one_by_one=True)
    return [operands_launch("RunningStatistics", FAMILY, work, board)]
