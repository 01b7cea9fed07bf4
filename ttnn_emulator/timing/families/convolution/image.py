"""Other operations on images: slices in DRAM, folding, upsampling, sampling, channel order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, Chip
from ttnn_emulator.timing.families.data_movement.sharding import TRAFFIC
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import Shards, bytes_of, shards_of

PADDED_SLICE = "PaddedSliceDeviceOperation"
SLICE_WRITE = "SliceWriteDeviceOperation"


@dataclass(frozen=True, slots=True)
class ImageTimes:
    """Constants of one architecture; fits on Blackhole, scaled by clock and latency for others.

    row_ns, tile_ns    a row, or a tile, between a slice in DRAM and a shard: addresses by dimension, and waiting
    slices             GB/s of DRAM for rows of slices
    write_ns           an upsampled row, to DRAM
    transposed_cycles  a tile that is transposed and untilized
    summed_ns          a tile of an integral image
    """

    row_ns: float
    tile_ns: tuple[float, float]
    slices: float
    write_ns: float
    transposed_cycles: float
    summed_ns: float


TIMES = {
    Arch.WORMHOLE_B0: ImageTimes(110.0, (360.0, 330.0), 130.0, 40.0, 350.0, 950.0),
    Arch.BLACKHOLE: ImageTimes(96.0, (410.0, 330.0), 180.0, 32.0, 350.0, 769.0),
    Arch.GRAYSKULL: ImageTimes(110.0, (360.0, 330.0), 60.0, 40.0, 350.0, 950.0),
}
POINT_NS = 60.0  # fit: reading four neighbours of a point, beyond the latency of the first


def _launch(
    code: str, family: str, cores: int, busy: float, chip: Chip, dram: float = 0.0, compute: float = 0.0
) -> Launch:
    bound = Bound.COMPUTE if compute >= busy else Bound.DRAM if dram else Bound.NOC
    return Launch(code, family, cores, chip.launch_ns + max(busy, compute), bound, compute, busy, dram_bytes=dram)


# -- slices of images in DRAM -----------------------------------------------------------------------------------------


def slice_launch(source: Spec, target: Spec, board: Board) -> Launch:
    """A slice of an image in DRAM becomes row-major shards; tiles are untilized on the way."""
    shards = shards_of(target)
    if shards is None:
        shards = _spread(target, board)
    return _slice(source, shards, board)


def _slice(source: Spec, shards: Shards, board: Board) -> Launch:
    chip, cost, traffic = CHIPS[board.arch], TIMES[board.arch], TRAFFIC[board.arch]
    if source.is_tile:
        tiles = div_up(shards.rows, TILE_SIZE) * div_up(shards.page // 2, TILE_SIZE)
        busy = tiles * max(cost.tile_ns[0], source.page_bytes * shards.cores / traffic.dram_read)
    else:
        busy = shards.rows * max(cost.row_ns, shards.page * shards.cores / cost.slices)
    busy += chip.dram.latency_ns
    return _launch(PADDED_SLICE, "padded_slice", shards.cores, busy, chip, float(shards.bytes * shards.cores))


def slice_write_launch(source: Spec, target: Spec, board: Board) -> Launch:
    """Shards are written into a slice of an image in DRAM."""
    chip, cost, traffic = CHIPS[board.arch], TIMES[board.arch], TRAFFIC[board.arch]
    shards = shards_of(source) or _spread(source, board)
    if source.is_tile:
        each = max(cost.tile_ns[1], shards.page * shards.cores / traffic.dram_write)
    else:
        row = min(shards.page, target.page_bytes)
        each = max(cost.row_ns, row * shards.cores / cost.slices)
    busy = shards.pages * each + chip.dram.latency_ns / 2
    return _launch(SLICE_WRITE, "slice_write", shards.cores, busy, chip, float(shards.bytes * shards.cores))


def _spread(spec: Spec, board: Board) -> Shards:
    """The pages of an interleaved tensor, spread over all cores."""
    cores = max(min(spec.num_pages, board.cores), 1)
    return Shards(cores, 1, div_up(spec.num_pages, cores), 1, spec.page_bytes)


@times(PADDED_SLICE, "PaddedSlice", family="padded_slice")
def padded_slice(run: ProgramRun) -> Launch:
    return slice_launch(run.inputs[0], run.outputs[0], run.board)


@times(SLICE_WRITE, "SliceWrite", family="slice_write")
def slice_write(run: ProgramRun) -> Launch:
    return slice_write_launch(run.inputs[0], run.outputs[0], run.board)


@prices("ttnn.prim.padded_slice")
def cut_pixels(call: Call) -> Sequence[Launch]:
    return [slice_launch(call.tensors[0], call.outputs[0], call.board)]


@prices("ttnn.prim.slice_write")
def write_part(call: Call) -> Sequence[Launch]:
    return [slice_write_launch(call.tensors[0], call.tensors[1], call.board)]


# -- folding ----------------------------------------------------------------------------------------------------------


def fold_launch(source: Spec, target: Spec, board: Board) -> Launch:
    """Patches of pixels move into channels: within a core's own L1 for shards, else from and to DRAM row by row."""
    chip, traffic = CHIPS[board.arch], TRAFFIC[board.arch]
    shards = shards_of(source)
    pixels = max(math.prod(target.shape[:-1]), 1)
    # Pixels of a patch's row are contiguous: as many runs as a patch has rows; the sheet does not say how many.
    rows = max(round(math.sqrt(max(target.shape[-1] // max(source.shape[-1], 1), 1))), 1)
    run = target.shape[-1] * 2 / rows
    if shards is not None and source.memory_config.is_l1:
        runs = div_up(pixels, shards.cores) * rows
        busy = runs / 2 * max(chip.local.issue_ns, run / chip.local.bytes_per_ns) + chip.local.latency_ns
        return _launch("FoldDeviceOperation", "fold", shards.cores, busy, chip)
    cores = max(min(pixels, board.cores), 1)
    each = div_up(pixels, cores) * rows
    read = max(chip.dram.issue_ns, run * cores / traffic.dram_read)
    write = max(chip.dram.issue_ns, run * cores / traffic.dram_write)
    busy = each * max(read, write) + chip.dram.latency_ns
    return _launch("FoldDeviceOperation", "fold", cores, busy, chip, float(bytes_of(source) + bytes_of(target)))


@times("FoldDeviceOperation", "Fold", family="fold")
def fold(run: ProgramRun) -> Launch:
    return fold_launch(run.inputs[0], run.outputs[0], run.board)


@prices("ttnn.prim.fold")
def fold_pixels(call: Call) -> Sequence[Launch]:
    return [fold_launch(call.tensors[0], call.outputs[0], call.board)]


# -- enlarging and sampling -------------------------------------------------------------------------------------------


@times("UpsampleOperation", "UpSample", "Upsample", family="upsample")
def upsample(run: ProgramRun) -> Launch:
    return upsample_launch(run.inputs[0], run.outputs[0], run.board, bilinear=False, cores=run.cores)


def upsample_launch(source: Spec, target: Spec, board: Board, *, bilinear: bool, cores: int = 0) -> Launch:
    """Every pixel is copied to its places in the output, or computed from four neighbours."""
    chip, cost, traffic = CHIPS[board.arch], TIMES[board.arch], TRAFFIC[board.arch]
    shards = shards_of(target)
    row = target.shape[-1] * 2
    pixels = math.prod(target.shape[:-1])
    if shards is not None:
        # Both processors read, each pixel by itself.
        each = div_up(pixels, shards.down)
        wide = shards.page
        if bilinear:
            compute = each * sampled_cycles(div_up(wide // 2, TILE_SIZE)) / chip.clock_ghz
            busy = each / 2 * (4 * chip.local.issue_ns + chip.local.latency_ns)
            return _launch("UpsampleOperation", "upsample", shards.cores, busy, chip, compute=compute)
        busy = each / 2 * max(chip.l1_read.issue_ns, wide / chip.l1_read.bytes_per_ns) + chip.l1_read.latency_ns
        return _launch("UpsampleOperation", "upsample", shards.cores, busy, chip)
    cores = cores or max(min(source.num_pages, board.cores), 1)
    limit = traffic.dram_write if target.memory_config.is_dram else traffic.between_cores
    busy = div_up(pixels, cores) * max(cost.write_ns, row * cores / limit) + chip.dram.latency_ns
    return _launch("UpsampleOperation", "upsample", cores, busy, chip, float(bytes_of(source) + bytes_of(target)))


def sampled_cycles(tiles: int) -> float:
    """Cycles of the compute kernel per point that is interpolated."""
    return 200.0 + 40.0 * tiles


@prices("ttnn.prim.upsample")
def enlarge_image(call: Call) -> Sequence[Launch]:
    bilinear = call.arguments.get("mode") == "bilinear"
    found = upsample_launch(call.tensors[0], call.outputs[0], call.board, bilinear=bilinear)
    if not bilinear:
        return [found]
    # The neighbours beyond a core's own rows come first.
    from ttnn_emulator.timing.families.convolution.halo import Gathering, halo_launch

    source, shards = call.tensors[0], shards_of(call.tensors[0])
    if shards is None:
        return [found]
    held, width = shards.rows, source.shape[2]
    halo = Gathering(shards.down, shards.across, held, held + 2 * (width + 2), shards.page, 0)
    return [halo_launch(halo, call.board.arch), found]


@times("GridSampleOperation", "GridSample", "GridSampleDeviceOperation", family="grid_sample")
def grid_sample(run: ProgramRun) -> Launch:
    image, grid = run.inputs[:2]
    return sampling_launch(image, grid, run.outputs[0], run.board, run.cores)


def sampling_launch(
    image: Spec, grid: Spec, target: Spec, board: Board, cores: int = 0, *, bilinear: bool = True
) -> Launch:
    """Points of a grid one after the other: their row of the grid, four pixels around each, and their mean."""
    chip = CHIPS[board.arch]
    shards = shards_of(target)
    cores = cores or (shards.cores if shards is not None else board.cores)
    channels = max(image.shape[-1], 1)
    points = math.prod(target.shape) // channels
    rows = max(math.prod(grid.shape[:-1]), 1)
    cores = max(min(cores, rows), 1)
    per_row = max(points // rows, 1)
    near, far = (
        (chip.dram if spec.memory_config.is_dram else chip.l1_read).latency_ns if not spec.is_sharded else 0.0
        for spec in (image, grid)
    )
    if image.is_sharded:
        near = chip.l1_read.latency_ns
    read = near + far / per_row + (POINT_NS if bilinear else 0.0)
    compute = chip.ns(sampled_cycles(div_up(channels, TILE_SIZE))) if bilinear else 0.0
    each = div_up(rows, cores) * per_row
    return _launch(
        "GridSampleOperation", "grid_sample", cores, each * read, chip, float(bytes_of(grid)), each * compute
    )


@prices("ttnn.grid_sample")
def sample(call: Call) -> Sequence[Launch]:
    image, grid = call.tensors[:2]
    bilinear = call.arguments.get("mode", "bilinear") != "nearest"
    return [sampling_launch(image, grid, call.outputs[0], call.board, bilinear=bilinear)]


@prices("ttnn.rotate")
def rotate(call: Call) -> Sequence[Launch]:
    """Like sampling, with points that are computed instead of read."""
    image, target = call.tensors[0], call.outputs[0]
    chip = call.chip
    pixels = max(math.prod(image.shape[:-1]), 1)
    cores = min(pixels, call.board.cores)
    path = chip.dram if image.memory_config.is_dram else chip.l1_read
    each = div_up(pixels, cores)
    bilinear = call.arguments.get("interpolation_mode", "nearest") == "bilinear"
    if bilinear:
        busy = each * (path.latency_ns + POINT_NS)
        compute = each * chip.ns(sampled_cycles(div_up(image.shape[-1], TILE_SIZE)))
    else:
        limit = TRAFFIC[call.board.arch].dram_read
        busy, compute = each * max(2 * path.issue_ns, image.page_bytes * cores / limit) + path.latency_ns, 0.0
    dram = float(bytes_of(image) + bytes_of(target))
    return [_launch("RotateDeviceOperation", "rotate", cores, busy, chip, dram, compute)]


# -- channel order and sums -------------------------------------------------------------------------------------------


# Tiles of 32 pixels are transposed; then pixels, or channels of 32 pixels, are copied one by one.
@prices("ttnn.experimental.convert_to_hwc", "ttnn.experimental.convert_to_chw", "ttnn.experimental.transpose_rm")
def channel_order(call: Call) -> Sequence[Launch]:
    source, target = call.tensors[0], call.outputs[0]
    chip, cost = call.chip, TIMES[call.board.arch]
    name = call.name.rsplit(".", 1)[-1]
    code = {"convert_to_hwc": "ConvertToHWCDeviceOperation", "convert_to_chw": "ConvertToCHWDeviceOperation"}
    shards = shards_of(target) or shards_of(source) or _spread(source, call.board)
    values = math.prod(source.shape)
    if name == "transpose_rm":
        tiles = div_up(values, TILE_SIZE * TILE_SIZE * call.board.cores)
        runs, cores = float(tiles * TILE_SIZE), call.board.cores
    else:
        channels = source.shape[2] if name == "convert_to_hwc" else source.shape[3]
        pixels = div_up(values // max(channels, 1), shards.cores)
        tiles, cores = div_up(pixels, TILE_SIZE), shards.cores
        runs = pixels / 2 if name == "convert_to_hwc" else tiles * channels
    compute = chip.ns(tiles * cost.transposed_cycles)
    busy = runs * chip.local.issue_ns + tiles / 2 * chip.local.latency_ns
    return [_launch(code.get(name, "TransposeRmDeviceOperation"), "channel_order", cores, busy, chip, compute=compute)]


@times("IntImgDeviceOperation", "IntImg", family="integral_image")
def integral_image(run: ProgramRun) -> Launch:
    """Sums along two dimensions; only channels are spread over cores."""
    source, chip = run.inputs[0], run.chip
    cores = max(div_up(source.shape[-1], TILE_SIZE), 1)
    busy = div_up(source.num_pages, cores) * TIMES[run.board.arch].summed_ns
    return _launch("IntImgDeviceOperation", "integral_image", cores, busy, chip, 2.0 * bytes_of(source))


@prices("ttnn.experimental.intimg")
def intimg(call: Call) -> Sequence[Launch]:
    run = ProgramRun("IntImgDeviceOperation", call.tensors[:1], call.outputs, call.board.cores, call.board)
    return [integral_image(run)]


@prices("ttnn.rgb_to_yuv", "ttnn.experimental.rgb_to_yuv")
def rgb_to_yuv(call: Call) -> Sequence[Launch]:
    """Three planes in, weighted sums out: read and written once."""
    source, chip, traffic = call.tensors[0], call.chip, TRAFFIC[call.board.arch]
    moved = bytes_of(source) + sum(bytes_of(each) for each in call.outputs)
    cores = max(min(source.num_pages, call.board.cores), 1)
    pages = div_up(source.num_pages, cores)
    busy = max(pages * chip.dram.issue_ns, bytes_of(source) / traffic.dram_read) + chip.dram.latency_ns
    tiles = div_up(_volume(call.outputs), TILE_SIZE * TILE_SIZE * cores)
    compute = chip.ns(tiles * 3 * cost_of_weighted_sum())
    return [_launch("RgbToYuvDeviceOperation", "rgb_to_yuv", cores, busy, chip, float(moved), compute)]


def _volume(specs: Sequence[Any]) -> int:
    return sum(math.prod(spec.shape) for spec in specs)


def cost_of_weighted_sum() -> float:
    """Cycles to multiply a tile by a constant and add another."""
    return 120.0
