"""Heads of interleaved tensors: tiles are read and written one by one, in another order; keys may be transposed."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import DataType
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    KERNELS,
    NO_TRAFFIC,
    Stages,
    moved,
    read_traffic,
    reads,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES, copy_cycles, pack_cycles

CREATE, CONCAT = "create heads", "concat heads"


def transposed_cycles(size: float, dtype: DataType, board: Board) -> float:
    """A tile of a key through the compute kernel, which transposes it."""
    return copy_cycles(size, dtype) + pack_cycles(size, CHIPS[board.arch]) + HANDOVER_CYCLES


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads/device/kernels/dataflow/reader_tm_tile_layout_nlp_create_qkv_heads.cpp,  # noqa: E501
# kernel_main, and its writer: a barrier after every tile
def tiles_launch(
    code: str,
    family: str,
    sources: Sequence[Spec],
    outputs: Sequence[Spec],
    board: Board,
    *,
    rows: int,
    transposed: Spec | None = None,
    cores: int = 0,
) -> Launch:
    """Every core has whole rows of tiles of all heads.

    rows        rows of tiles, over all batches
    transposed  the output whose tiles go through the compute kernel
    """
    kernels, chip = KERNELS[board.arch], CHIPS[board.arch]
    outputs = [each for each in outputs if each.volume]
    used = max(min(rows, cores or board.cores), 1)
    share = div_up(rows, used)
    read = sum([tiles_of(each) / rows * reads(kernels, each).ns(tile_size(each)) for each in sources])
    write = sum([tiles_of(each) / rows * writes(kernels, each).ns(tile_size(each)) for each in outputs])
    compute = 0.0
    if transposed is not None:
        compute = chip.ns(
            tiles_of(transposed) / rows * transposed_cycles(tile_size(transposed), transposed.dtype, board)
        )
    traffic = NO_TRAFFIC
    for each in sources:
        traffic += read_traffic(each, tiles_of(each), tile_size(each))
    for each in outputs:
        traffic += write_traffic(each, tiles_of(each), tile_size(each))
    # Within a row, tiles overlap as rows do: the pipeline's items are tiles.
    items = max(sum([tiles_of(each) for each in sources]) / rows, 1.0)
    stages = Stages(share * items, read / items, compute / items, write / items)
    return moved(ProgramRun(code, (), (), used, board), family, used, stages, traffic)


def rows_of_tiles(spec: Spec) -> int:
    """Rows of tiles of all batches: of [B, heads, S, D], B × S ÷ 32."""
    shape = (1, 1, *spec.padded_shape)
    return max(div_up(shape[-2], TILE_SIZE) * spec.padded_shape[0], 1)
