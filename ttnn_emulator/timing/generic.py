"""Programs that no family models: every core reads its pages, computes and writes, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import Layout
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calibration import GENERIC_FAMILY
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    KERNELS,
    NO_TRAFFIC,
    Stages,
    moved,
    planned_run,
    read_traffic,
    reads,
    shard_cores,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.shards import is_local

# A tile through the unpackers, some instructions of the vector unit, and the packer.
TILE_CYCLES = 200.0  # fit: as many programs of other families are priced too high as too low
TILE_VALUES = DEFAULT_TILE.height * DEFAULT_TILE.width


def generic(call: Call) -> Sequence[Launch]:
    """One program by its bytes, tiles and cores alone. Every tensor is moved once; all cores of the board work."""
    run = planned_run(call, call.name.rpartition(".")[2].rpartition(":")[2], call.tensors)
    kernels, chip = KERNELS[call.board.arch], CHIPS[call.board.arch]
    results = [spec for spec in call.outputs if spec.on_device]
    sources = [spec for spec in call.tensors if spec.on_device and spec not in results]
    specs = [spec for spec in (*results, *sources) if spec.num_pages]
    if not specs:
        return [moved(run, GENERIC_FAMILY, 1, Stages(0.0), NO_TRAFFIC)]
    most = max(specs, key=lambda spec: spec.num_pages)
    cores = min(shard_cores(most) or min(most.num_pages, call.board.cores), call.board.cores)
    items = div_up(most.num_pages, cores)

    def share(spec: Spec) -> float:
        return 0.0 if is_local(spec) else spec.num_pages / most.num_pages

    read = sum([share(spec) * reads(kernels, spec).ns(spec.page_bytes) for spec in sources])
    write = sum([share(spec) * writes(kernels, spec).ns(spec.page_bytes) for spec in results])
    values = max([spec.volume for spec in specs]) / most.num_pages
    if most.layout is Layout.TILE:
        values = max(values, TILE_VALUES)
    compute = chip.ns(TILE_CYCLES * values / TILE_VALUES)
    traffic = NO_TRAFFIC
    for spec in sources:
        traffic += read_traffic(spec, spec.num_pages, spec.page_bytes)
    for spec in results:
        traffic += write_traffic(spec, spec.num_pages, spec.page_bytes)
    return [moved(run, GENERIC_FAMILY, cores, Stages(items, read, compute, write), traffic)]
