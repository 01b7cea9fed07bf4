"""Times of pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emulator.timing.families.rows import predicted_ns
from ttnn_emulator.enums import Arch, BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.ops.conv.sliding_window import Window
from ttnn_emulator.ops.pool.sharding import Pool
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.convolution.pooling import Pooling, pool_launch
from ttnn_emulator.timing.launches import Bound
from ttnn_emulator.timing.pricing import launches_of

WORMHOLE, BLACKHOLE = Arch.WORMHOLE_B0, Arch.BLACKHOLE
THREE = Pooling(64, 784, 2, (3, 3), 128, tiled_output=False)


def ns(work: Pooling, arch: Arch = WORMHOLE) -> float:
    return pool_launch(work, arch).kernel_ns


def test_twice_the_windows_take_twice_as_long() -> None:
    assert ns(replace(THREE, windows=2 * 784)) == pytest.approx(2 * ns(THREE), rel=0.05)


def test_wide_channels_are_reduced_in_parts() -> None:
    assert ns(replace(THREE, tiles=16, stick=1024)) > 1.8 * ns(replace(THREE, tiles=8, stick=512))


def test_whole_images_are_bound_by_gathering() -> None:
    image = Pooling(64, 1, 1, (32, 64), 64, tiled_output=False)
    assert pool_launch(image, BLACKHOLE).bound is Bound.NOC
    assert ns(image) > 1.8 * ns(replace(image, kernel=(32, 32)))


def test_indices_and_tiles_cost_time() -> None:
    assert ns(replace(THREE, tiled_output=True)) > ns(THREE)
    assert ns(replace(THREE, indices=True)) > 2 * ns(THREE)


def record(kernel: int, stride: int) -> dict[str, object]:
    window = {
        "batch": 16,
        "size": [112, 112],
        "kernel": [kernel, kernel],
        "stride": [stride, stride],
        "padding": [1, 1, 1, 1],
        "dilation": [1, 1],
    }
    return {"window": window, "channels": 64, "average": False, "dtype": "BFLOAT16", "layout": "ROW_MAJOR"}


def test_a_recorded_pool_and_its_object_have_one_price() -> None:
    grid = num_cores_to_corerangeset(64, CoreCoord(8, 8), True)
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(grid, (3136, 64)))
    source = Spec.of((1, 1, 200704, 64), DataType.BFLOAT8_B, Layout.TILE, config)
    out = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(grid, (784, 64)))
    target = Spec.of((1, 1, 50176, 64), DataType.BFLOAT16, Layout.ROW_MAJOR, out)
    window = Window(16, (112, 112), (3, 3), (2, 2), (1, 1, 1, 1))
    pool = Pool(window, 64, False, DataType.BFLOAT16, Layout.ROW_MAJOR)

    def launches(given: object) -> list[tuple[str, float]]:
        call = Call("ttnn.pool2d", (("x", source),), (target,), {"pool": given, "asked": None}, find_board("n150"))
        return [(launch.program, launch.kernel_ns) for launch in launches_of(call)]

    assert launches(record(3, 2)) == launches(pool)
    assert [program for program, _ in launches(pool)] == ["HaloDeviceOperation", "Pool2D"]


MEASURED = [
    ("151540[151540]x64[64]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
     "30720[30720]x64[64]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED", 20, 20, 342490),
    ("2048[2048]x2048[2048]:ROW_MAJOR:BFLOAT16:L1_WIDTH_SHARDED",
     "1[1]x2048[2048]:ROW_MAJOR:BFLOAT16:L1_WIDTH_SHARDED", 64, 110, 57742),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "cores", "grid", "measured"), MEASURED)
def test_measured_rows(source: str, target: str, cores: int, grid: int, measured: float) -> None:
    assert predicted_ns("Pool2D", source, target, cores, grid) == pytest.approx(measured, rel=0.1)
