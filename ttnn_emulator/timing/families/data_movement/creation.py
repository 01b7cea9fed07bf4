"""Tensors created on the device: one value, ranges, random values. Tensors that the host fills launch nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.data_movement.copies import copy
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Planned,
    Stages,
    Traffic,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    row_size,
    rows_of,
    run_planned,
    split,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times

FAMILY, RANDOM, PADDING = "full", "random", "fill_pad"

# Cycles per tile of the vector unit and per value of a data movement core; guesses.
RANDOM_CYCLES = 1100.0
NORMAL_CYCLES = 6000.0
COMPARE_CYCLES = 45.0
RANGE_CYCLES = 40.0
FILL_DTYPES = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B})


def _pages(spec: Spec) -> tuple[int, int]:
    """Pages of a tensor and their size."""
    return (tiles_of(spec), tile_size(spec)) if spec.is_tile else (rows_of(spec), row_size(spec))


@times(
    "FullDeviceOperation",
    "FullLikeOperation",
    "FillRMDeviceOperation",
    "MorehArangeOperation",
    family=FAMILY,
    settings=Planned,
)
def full(run: ProgramRun) -> Launch:
    """A page is filled once and written to all places; the pages of a range differ."""
    kernels, target = kernels_of(run), run.outputs[0]
    pages, page = _pages(target)
    cores, mine = split(pages, run)
    values = page / ROW_MAJOR_BYTES[target.dtype]
    writer = writes(kernels, target)
    traffic = write_traffic(target, pages, page)
    if run.code == "MorehArangeOperation":
        stages = Stages(mine, values * run.chip.ns(RANGE_CYCLES), 0.0, writer.ns(page))
        return moved(run, FAMILY, cores, stages, traffic)
    stages = Stages(mine, 0.0, 0.0, writer.stream_ns(page))
    return moved(run, FAMILY, cores, stages, traffic, values * kernels.store_ns + writer.wait_ns(page))


@times(
    "RandDeviceOperation",
    "RandnDeviceOperation",
    "UniformDeviceOperation",
    "BernoulliDeviceOperation",
    "DropoutDeviceOperation",
    family=RANDOM,
    settings=Planned,
)
def random(run: ProgramRun) -> Launch:
    """Tiles of random values from the vector unit; `bernoulli` compares them in the core that writes them."""
    kernels, target = kernels_of(run), run.outputs[0]
    pages, page = tiles_of(target), tile_size(target)
    cores, mine = split(pages, run)
    writer = writes(kernels, target)
    write = writer.stream_ns(page) + kernels.flush_ns
    compute = run.chip.ns(NORMAL_CYCLES if run.code == "RandnDeviceOperation" else RANDOM_CYCLES)
    read, traffic = 0.0, Traffic()
    if run.code in ("BernoulliDeviceOperation", "DropoutDeviceOperation"):
        source = run.inputs[0]
        read = reads(kernels, source).ns(tile_size(source))
        traffic += read_traffic(source, pages, tile_size(source))
    if run.code == "BernoulliDeviceOperation":
        write = TILE_SIZE * TILE_SIZE * run.chip.ns(COMPARE_CYCLES) + writer.ns(page)
    traffic += write_traffic(target, pages, page)
    return moved(run, RANDOM, cores, Stages(mine, read, compute, write), traffic, writer.wait_ns(page))


@times("FillPadDeviceOperation", family=PADDING, settings=Planned)
def fill_padding(run: ProgramRun) -> Launch:
    """Tiles with padding are read, their padding is filled by the vector unit, and they are written back."""
    kernels, spec = kernels_of(run), run.outputs[0]
    height = spec.shape[-2] if len(spec.shape) > 1 else 1
    width = spec.shape[-1] if spec.shape else 1
    down, across = -(-height // TILE_SIZE), -(-width // TILE_SIZE)
    edge = (down if width % TILE_SIZE else 0) + (across if height % TILE_SIZE else 0)
    edge -= bool(width % TILE_SIZE and height % TILE_SIZE)
    tiles = max(tiles_of(spec) // max(down * across, 1) * edge, 1)
    cores, mine = split(tiles, run)
    page = tile_size(spec)
    traffic = NO_TRAFFIC + read_traffic(spec, tiles, page) + write_traffic(spec, tiles, page)
    stages = Stages(mine, reads(kernels, spec).ns(page), run.chip.ns(400.0), writes(kernels, spec).ns(page))
    return moved(run, PADDING, cores, stages, traffic)


# -- operations -------------------------------------------------------------------------------------------------------


@prices(
    "ttnn.empty",
    "ttnn.zeros",
    "ttnn.ones",
    "ttnn.full",
    "ttnn.arange",
    "ttnn.from_buffer",
    "ttnn.empty_like",
    "ttnn.manual_seed",
)
def filled_by_host(call: Call) -> Sequence[Launch]:
    return []


@prices("ttnn.zeros_like", "ttnn.ones_like", "ttnn.full_like")
def price_full_like(call: Call) -> Sequence[Launch]:
    """`ttnn.fill` where the tensor is tiles of the same dtype, otherwise the host."""
    like, out = call.tensor("tensor"), call.outputs[0]
    if like is None or not like.on_device or not like.is_tile or not out.is_tile:
        return []
    if out.dtype is not like.dtype or out.dtype not in FILL_DTYPES:
        return []
    return [run_planned("UnaryDeviceOperation", like, out, call.board, fallback=copy)]


@prices("ttnn.moreh_full", "ttnn.moreh_full_like", "ttnn.moreh_arange", "ttnn.fill_rm", "ttnn.fill_ones_rm")
def price_full(call: Call) -> Sequence[Launch]:
    code = {
        "ttnn.moreh_full": "FullDeviceOperation",
        "ttnn.moreh_full_like": "FullDeviceOperation",
        "ttnn.moreh_arange": "MorehArangeOperation",
    }.get(call.name, "FillRMDeviceOperation")
    return [full(planned_run(call, code, ()))]


@prices("ttnn.uniform", "ttnn.bernoulli", "ttnn.experimental.dropout")
def price_random(call: Call) -> Sequence[Launch]:
    code = {"ttnn.uniform": "UniformDeviceOperation", "ttnn.bernoulli": "BernoulliDeviceOperation"}
    return [random(planned_run(call, code.get(call.name, "DropoutDeviceOperation"), call.tensors))]


@prices("ttnn.fill_implicit_tile_padding")
def price_fill_padding(call: Call) -> Sequence[Launch]:
    spec = call.tensors[0]
    height, width = (spec.shape[-back] if back <= len(spec.shape) else 1 for back in (2, 1))
    if height % TILE_SIZE == 0 and width % TILE_SIZE == 0:
        return []
    if spec.dtype not in BLOCK_FLOAT_DTYPES:
        return [fill_padding(planned_run(call, "FillPadDeviceOperation", (spec,), (spec,)))]
    wide = spec.with_(dtype=DataType.BFLOAT16)
    return [
        run_planned("TypecastDeviceOperation", spec, wide, call.board, fallback=copy),
        fill_padding(planned_run(call, "FillPadDeviceOperation", (wide,), (wide,))),
        run_planned("TypecastDeviceOperation", wide, spec, call.board, fallback=copy),
    ]
