"""Times of operations on images."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.rows import predicted_ns
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.pricing import launches_of

N150 = find_board("n150")
BF16 = DataType.BFLOAT16


def rows(*shape: int, l1: bool = False) -> Spec:
    return Spec.of(shape, BF16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG if l1 else DRAM_MEMORY_CONFIG)


def ns(name: str, inputs: list[Spec], output: Spec, **arguments: object) -> float:
    named = tuple((f"input_{number}", spec) for number, spec in enumerate(inputs))
    return sum(launch.kernel_ns for launch in launches_of(Call(name, named, (output,), arguments, N150)))


def test_enlarging_is_paid_by_the_output() -> None:
    twice = ns("ttnn.prim.upsample", [rows(1, 64, 64, 256)], rows(1, 128, 128, 256), mode="nearest")
    fourfold = ns("ttnn.prim.upsample", [rows(1, 64, 64, 256)], rows(1, 256, 256, 256), mode="nearest")
    assert fourfold == pytest.approx(4 * twice, rel=0.1)


def test_sampling_waits_for_every_point() -> None:
    def sampled(*, l1: bool, points: int) -> float:
        image, grid = rows(1, 48, 160, 256, l1=l1), rows(1, 64, 64, 2 * points)
        return ns("ttnn.grid_sample", [image, grid], rows(1, 64, 64 * points, 256))

    assert sampled(l1=True, points=1) < sampled(l1=False, points=1)
    # Points of one row of the grid are read together.
    assert sampled(l1=False, points=4) < 4 * sampled(l1=False, points=1)


def test_bilinear_rotation_is_slower() -> None:
    image = rows(1, 64, 64, 64)
    assert ns("ttnn.rotate", [image], image, interpolation_mode="bilinear") > ns("ttnn.rotate", [image], image)


def test_host_work_launches_nothing() -> None:
    assert launches_of(Call("ttnn.prepare_conv_weights", (), (), {}, N150)) == ()


MEASURED = [
    ("PaddedSliceDeviceOperation", "1[1]x159[159]x159[159]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
     "6360[6360]x256[256]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, 31910),
    ("PaddedSliceDeviceOperation", "1[1]x128[128]x256[256]x256[256]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "16512[16512]x256[256]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 103, 110, 21169),
    ("SliceWriteDeviceOperation", "30720[30720]x64[64]:TILE:BFLOAT16:L1_HEIGHT_SHARDED",
     "1[1]x192[192]x640[640]x64[64]:TILE:BFLOAT16:DRAM_INTERLEAVED", 20, 20, 33575),
    ("SliceWriteDeviceOperation", "12561[12561]x256[256]:ROW_MAJOR:BFLOAT16:L1_BLOCK_SHARDED",
     "1[1]x159[159]x159[159]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED", 16, 110, 315134),
    ("UpsampleOperation", "1[1]x64[64]x128[128]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
     "1[1]x128[128]x256[256]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED", 110, 110, 65010),
    ("GridSampleOperation", "1[1]x48[48]x160[160]x256[256]:ROW_MAJOR:BFLOAT16:L1_INTERLEAVED"
     "|1408[1408]x42[42]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
     "1408[1408]x1792[1792]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, 239146),
    ("IntImgDeviceOperation", "1[1]x48[48]x160[160]x256[256]:TILE:BFLOAT16:DRAM_INTERLEAVED",
     "1[1]x48[48]x160[160]x256[256]:TILE:BFLOAT16:DRAM_INTERLEAVED", 8, 20, 184641),
]  # fmt: skip


@pytest.mark.parametrize(("code", "inputs", "output", "cores", "grid", "measured"), MEASURED)
def test_measured_rows(code: str, inputs: str, output: str, cores: int, grid: int, measured: float) -> None:
    assert predicted_ns(code, inputs, output, cores, grid) == pytest.approx(measured, rel=0.1)
