"""ttnn.rgb_to_yuv: videos [3, H, W, T] as planes of luma and of halved chroma, in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import ALL_ENUMS, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, operation
from ttnn_emulator.numerics.formats import casts
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

BF16 = DataType.BFLOAT16
WIDEST_FRAMES = 32  # frames per unit of work with wide rows
CENTRE = 128.0  # of chroma
# Shares of red and blue in luma, by the recommendations of the ITU.
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/rgb_to_yuv/rgb_to_yuv.hpp, kr
SHARES = {"BT601": (0.299, 0.114), "BT709": (0.2126, 0.0722), "BT2020": (0.2627, 0.0593)}
# Range of luma, its offset, range of chroma.
RANGES = {"Full": (255.0, 0.0, 255.0), "Limited": (219.0, 16.0, 224.0)}
LEAST = {"MinusOneToOne": -1.0, "ZeroToOne": 0.0}  # smallest input value; the largest is 1

Rows = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]  # weights of red, green, blue, and the offset


def _rows(space: str, source: str, target: str) -> Rows:
    """The coefficients of luma and both chromas, computed in float32."""

    def single(value: float) -> float:
        return torch.tensor(value, dtype=torch.float32).item()

    red, blue = (single(share) for share in SHARES[space])
    green = single(single(1.0 - red) - blue)
    least = LEAST[source]
    scale = 1.0 / (1.0 - least)
    luma, offset, chroma = RANGES[target]
    to_blue = single(chroma * scale / single(2.0 * single(1.0 - blue)))
    to_red = single(chroma * scale / single(2.0 * single(1.0 - red)))
    return (
        (*(single(luma * scale * share) for share in (red, green, blue)), offset - luma * scale * least),
        (single(-to_blue * red), single(-to_blue * green), single(to_blue * single(1.0 - blue)), CENTRE),
        (single(to_red * single(1.0 - red)), single(-to_red * green), single(-to_red * blue), CENTRE),
    )


@composite("ttnn.yuv_bt601_coefficients", "ttnn.experimental.yuv_bt601_coefficients")
def yuv_bt601_coefficients() -> Any:
    """Coefficients of standard-definition video, from [-1, 1] to the limited range."""
    return _coefficients(_rows("BT601", "MinusOneToOne", "Limited"))


@composite("ttnn.yuv_bt709_coefficients", "ttnn.experimental.yuv_bt709_coefficients")
def yuv_bt709_coefficients() -> Any:
    """Coefficients of high-definition video, from [-1, 1] to the limited range."""
    return _coefficients(_rows("BT709", "MinusOneToOne", "Limited"))


def _coefficients(rows: Rows) -> Any:
    from ttnn_emulator import YUVCoefficients  # the record types are created after the operations

    return YUVCoefficients(*(list(row) for row in rows))


@operation("ttnn.rgb_to_yuv", "ttnn.experimental.rgb_to_yuv")
def rgb_to_yuv(
    input: Spec,
    *,
    format: Any = ALL_ENUMS["YUVFormat"].YUV420Planar,
    color_space: Any = ALL_ENUMS["YUVColorSpace"].BT601,
    input_range: Any = ALL_ENUMS["RGBRange"].MinusOneToOne,
    output_range: Any = ALL_ENUMS["YUVRange"].Limited,
    coefficients: Any = None,
    memory_config: MemoryConfig | None = None,
    wide_rows: bool = False,
) -> Plan:
    """Luma [1, H, W, T] and two chromas [1, H ÷ 2, W ÷ 2, T]; `wide_rows` joins the last two dimensions."""
    config = memory_of(memory_config, input)
    require(config.interleaved, "the output must be interleaved")
    require(input.rank == 4, f"the input must be [3, H, W, T], not {list(input.shape)}")
    require_on_device(input)
    require(input.dtype is BF16, f"the input must be bfloat16, not {input.dtype}")
    require(not input.is_tile, "the input must be in ROW_MAJOR layout")
    colors, height, width, frames = input.shape
    require(colors == 3, f"the input must have three colours, not {colors}")
    for name, size in (("height", height), ("width", width)):
        require(size >= 2 and size % 2 == 0, f"chroma is halved: the {name} must be even, it is {size}")
    require(frames > 0, "there are no frames")
    require(not wide_rows or frames <= WIDEST_FRAMES, f"wide rows take {WIDEST_FRAMES} frames at most, not {frames}")
    require(input.memory_config.interleaved, "the input must be interleaved")
    rows = _given(coefficients) if coefficients is not None else None
    rows = rows or _rows(color_space.name, input_range.name, output_range.name)
    require(all(math.isfinite(value) for row in rows for value in row), f"coefficients {rows} must be finite")
    sizes = ((1, height, width, frames), *[(1, height // 2, width // 2, frames)] * 2)
    if wide_rows:
        sizes = tuple((1, down, across * frames) for _, down, across, _ in sizes)  # type: ignore[misc]
    outputs = tuple(Spec.of(size, DataType.UINT8, Layout.ROW_MAJOR, config) for size in sizes)

    def compute(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        planes = _planes(x, rows)
        return tuple(plane.reshape(out.shape) for plane, out in zip(planes, outputs))

    return Plan(outputs, compute, wrap=tuple)


def _given(coefficients: Any) -> Rows:
    rows = [coefficients.y, coefficients.cb, coefficients.cr]
    for row in rows:
        require(row is not None and len(row) == 4, "coefficients are three rows of four numbers")
    return tuple(tuple(row) for row in rows)  # type: ignore[return-value]


def _planes(x: torch.Tensor, rows: Rows) -> list[torch.Tensor]:
    """Weighted colours added one by one in bfloat16; of chroma, all four corners of a square, with a quarter each."""
    core = Core.of(MathConfig(MathFidelity.HiFi4, fp32_acc=True), x.numel())
    whole = [[colour] for colour in x]
    corners = [[colour[down::2, across::2] for down in (0, 1) for across in (0, 1)] for colour in x]
    planes = []
    for row, sources, share in zip(rows, (whole, corners, corners), (1.0, 0.25, 0.25)):
        weights = [round_bf16_nearest_even(torch.tensor(weight * share)) for weight in row[:3]]
        offset = round_bf16_nearest_even(torch.tensor(row[3]))
        planes.append(_weighted(core, sources, weights, offset))
    return planes


def _weighted(
    core: Core, sources: Sequence[Sequence[torch.Tensor]], weights: Sequence[torch.Tensor], offset: torch.Tensor
) -> torch.Tensor:
    total: torch.Tensor | None = None
    for colour, weight in zip(sources, weights):
        for part in colour:
            term = core.through(core.mul(part.contiguous(), weight), BF16)
            total = term if total is None else core.through(core.add(total, term), BF16)
    assert total is not None
    clamped = core.packed(core.add(total, offset).clamp(0.0, 255.0), BF16)
    cast = casts.typecast(BF16, DataType.UINT8)
    assert cast is not None
    return cast(clamped)
