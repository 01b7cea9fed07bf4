"""Collectives: gather, reduce-scatter, all-reduce, broadcast, send, and partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.collectives.fabric import Route, route_of
from ttnn_emulator.timing.families.data_movement.copies import copy
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.movement import kernels_of, planned_run, read_traffic, run_planned, shard_cores, write_traffic
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.tile_kernels import UNPACK_BYTES_PER_CYCLE

FAMILY = "collective"
GATHER, SCATTER, REDUCE = "AllGatherAsync", "ReduceScatterMinimalAsyncDeviceOperation", "AllReduceAsync"
BROADCAST, SEND, PARTITION = "AllBroadcastDeviceOperation", "PointToPointOp", "MeshPartitionDeviceOperation"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/ccl/reduce_scatter/device/reduce_scatter_device_operation.cpp,
# create_op_performance_model: partial sums are added by the cores that feed the links
WORKERS_PER_LINK = 4


def _exchange(run: ProgramRun, route: Route, start_ns: float, fabric_ns: float, read: Spec, written: Spec) -> Launch:
    """The launch of an exchange: the fabric, or DRAM at both ends, whichever takes longer."""
    kernels = kernels_of(run)
    traffic = read_traffic(read, read.num_pages, read.page_bytes)
    traffic += write_traffic(written, written.num_pages, written.page_bytes)
    local = max(traffic.dram_ns(kernels), traffic.noc_ns(kernels))
    total = run.chip.launch_ns + start_ns + max(fabric_ns, local)
    cores = min(2 * route.links * (WORKERS_PER_LINK + 1), run.board.cores)
    bound = Bound.DRAM if local > fabric_ns else Bound.NOC if fabric_ns > start_ns else Bound.LATENCY
    return Launch(run.code, FAMILY, cores, total, bound, 0.0, max(fabric_ns, local), 0.0, traffic.total_bytes)


def gather_launch(run: ProgramRun, route: Route, source: Spec, out: Spec, part: float = 1.0) -> Launch:
    """Every chip gets the tensors of all chips, or a part of them."""
    start = route.fabric.start_ns + route.hops * route.fabric.hop_ns
    return _exchange(run, route, start, route.gathered_ns(part * source.num_pages, source.page_bytes), source, out)


def scatter_launch(run: ProgramRun, route: Route, source: Spec, out: Spec) -> Launch:
    """Partial sums travel from chip to chip; each chip adds its part before it passes them on."""
    start = route.fabric.start_ns + (route.chips - 1) * route.fabric.step_ns
    pages = source.num_pages / route.chips
    crossing = route.gathered_ns(pages, source.page_bytes)
    added = 2 * (route.chips - 1) * pages * source.page_bytes / UNPACK_BYTES_PER_CYCLE
    compute = run.chip.ns(added / (2 * route.links * WORKERS_PER_LINK))
    return replace(_exchange(run, route, start, max(crossing, compute), source, out), compute_ns=compute)


def route_of_call(call: Call, chips: int) -> Route:
    arguments = call.arguments
    return route_of(call.board, max(chips, 2), arguments.get("num_links"), arguments.get("topology"))


@prices("ttnn.prim.all_gather", "ttnn.prim.all_gather_async")
def gather(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    chips = out.volume // max(source.volume, 1)
    return [gather_launch(planned_run(call, GATHER, (source,)), route_of_call(call, chips), source, out)]


@prices("ttnn.prim.reduce_scatter")
def scatter(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    chips = source.volume // max(out.volume, 1)
    return [scatter_launch(planned_run(call, SCATTER, (source,)), route_of_call(call, chips), source, out)]


@prices("ttnn.prim.all_reduce_async")
def reduce(call: Call) -> Sequence[Launch]:
    """Every chip sends its shards to all others, which add them."""
    source, out = call.tensors[0], call.outputs[0]
    axis = call.arguments.get("cluster_axis")
    chips = call.board.chips if axis is None else call.board.mesh[int(axis)]
    launch = gather_launch(planned_run(call, REDUCE, (source,)), route_of_call(call, chips), source, out)
    cores = max(shard_cores(out), 1)
    added = call.chip.ns(2 * chips * out.num_pages * out.page_bytes / cores / UNPACK_BYTES_PER_CYCLE)
    return [replace(launch, kernel_ns=launch.kernel_ns + added, compute_ns=added)]


@prices("ttnn.prim.all_broadcast")
def broadcast_all(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    route = route_of_call(call, len(call.outputs))
    return [gather_launch(planned_run(call, BROADCAST, (source,)), route, source, call.outputs[0])]


@prices("ttnn.broadcast", "ttnn.prim.point_to_point")
def send(call: Call) -> Sequence[Launch]:
    """One chip's pages cross every link once."""
    source, out = call.tensors[0], call.outputs[0]
    axis = call.arguments.get("cluster_axis")
    chips = call.board.chips if axis is None else call.board.mesh[int(axis)]
    route = route_of_call(call, chips)
    start = route.fabric.start_ns + route.hops * route.fabric.hop_ns
    crossing = route.pages_ns(source.num_pages, source.page_bytes)
    code = SEND if "point" in call.name else "BroadcastDeviceOperation"
    return [_exchange(planned_run(call, code, (source,)), route, start, crossing, source, out)]


@prices("ttnn.prim.mesh_partition")
def partition(call: Call) -> Sequence[Launch]:
    """A slice of a tensor that all chips have: nothing crosses the fabric."""
    launch = run_planned("SliceDeviceOperation", call.outputs[0], call.outputs[0], call.board, fallback=copy)
    return [replace(launch, program=PARTITION)]


# -- rows of sheets ---------------------------------------------------------------------------------------------------


@times(SCATTER, "ReduceScatterAsync", family=FAMILY)
def scatter_row(run: ProgramRun) -> Launch:
    """The last output is the part that a chip keeps, the one before it the partial sums."""
    source, out = run.inputs[0], run.outputs[-1]
    chips = source.volume // max(out.volume, 1)
    return scatter_launch(run, route_of(run.board, max(chips, 2)), source, out)


@times(GATHER, "AllGatherAsyncDeviceOperation", "AllGather", family=FAMILY)
def gather_row(run: ProgramRun) -> Launch:
    source, out = run.inputs[0], run.outputs[-1]
    chips = out.volume // max(source.volume, 1)
    return gather_launch(run, route_of(run.board, max(chips, 2)), source, out)
