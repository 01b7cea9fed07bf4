"""Functions of one tensor: unary operations, chains of them, casts, and operations with a number as a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import DataType
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.ops.elementwise.unary.functions import PLAIN
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.releases import Release
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_by_tile import (
    Stream,
    Traffic,
    bytes_of_tile,
    shard_tiles,
    stream_launch,
    tiles_of,
    traffic_of,
)
from ttnn_emulator.timing.tile_kernels import copy_cycles, pack_cycles, tile_cycles
from ttnn_emulator.timing.vector_unit import as_activation, cast_cycles, chain_cycles

UNARY, TYPECAST = "UnaryDeviceOperation", "TypecastDeviceOperation"
UNARY_FAMILY, TYPECAST_FAMILY = "unary", "typecast"
# Performance sheets do not name the function; RELU is the one most models run by itself.
UNNAMED = (Activation("relu"),)


@dataclass(frozen=True, slots=True)
class Function:
    """What a unary program computes: cycles of the vector unit per tile."""

    cycles: float


def unary_launch(
    source: Spec,
    out: Spec,
    cycles: float,
    board: Board,
    *,
    program: str = UNARY,
    family: str = UNARY_FAMILY,
    cores: int | None = None,
) -> Launch:
    """A program that applies functions to every tile of one tensor."""
    chip = CHIPS[board.arch]
    math = copy_cycles(bytes_of_tile(source), source.dtype) + cycles
    compute = chip.ns(tile_cycles(math, pack_cycles(bytes_of_tile(out), chip)))
    stream = _stream(source, out, compute, board, cores)
    return stream_launch(program, family, stream, board)


def _stream(source: Spec, out: Spec, compute_ns: float, board: Board, cores: int | None) -> Stream:
    local_in, local_out = is_local(source), is_local(out)
    if local_in or local_out:
        held = source if local_in else out
        shards = held.shard_spec
        used = shards.num_cores() if shards is not None else cores or board.cores
        return Stream(
            used,
            shard_tiles(held),
            () if local_in else (traffic_of(source),),
            () if local_out else (traffic_of(out),),
            compute_ns,
            waits_for_writes=False,
        )
    if source.is_tile:
        reads, writes, tiles = traffic_of(source), traffic_of(out), tiles_of(source)
    else:
        reads, writes, tiles = rows_of(source, out)
    used = min(tiles, cores or board.cores)
    return Stream(used, div_up(tiles, used), (reads,), (writes,), compute_ns, waits_for_writes=False, all_steps=tiles)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/device/unary_program_factory.cpp, RmChunkConstants: rows
# shorter than a tile are read together, longer ones in parts
def rows_of(source: Spec, out: Spec) -> tuple[Traffic, Traffic, int]:
    """Reads and writes per step of a ROW_MAJOR tensor, and its steps."""
    width = source.padded_shape[-1] if source.padded_shape else 1
    size, out_size = (ROW_MAJOR_BYTES[spec.dtype] for spec in (source, out))
    rows = max(source.volume // max(width, 1), 1)
    area = DEFAULT_TILE.height * DEFAULT_TILE.width
    in_dram, out_in_dram = not source.memory_config.is_l1, not out.memory_config.is_l1
    if width >= area:
        parts = div_up(width, area)
        return Traffic(size * width / parts, in_dram), Traffic(out_size * width / parts, out_in_dram), rows * parts
    alignment = 32 if in_dram else 16
    together = area // max(width, 1) if size * width % alignment == 0 else 1
    return (
        Traffic(size * width, in_dram, min(together, rows)),
        Traffic(out_size * width, out_in_dram, min(together, rows)),
        div_up(rows, together),
    )


# -- programs of performance sheets -----------------------------------------------------------------------------------


@times(UNARY, "Unary", family=UNARY_FAMILY)
def unary(run: ProgramRun) -> Launch:
    source, out = run.inputs[0], run.outputs[0]
    function = run.settings
    cycles = function.cycles if isinstance(function, Function) else _attributed(run, source.dtype)
    return unary_launch(source, out, cycles, run.board, cores=run.cores)


def _attributed(run: ProgramRun, dtype: DataType) -> float:
    chain = (as_activation(run.attributes),) if "UnaryOpType" in run.attributes else UNNAMED
    return chain_cycles(chain, run.board.arch, dtype, Release.AUTUMN_2025)


@times(TYPECAST, family=TYPECAST_FAMILY, settings=Release)
def typecast(run: ProgramRun) -> Launch:
    return typecast_launch(
        run.inputs[0], run.outputs[0], run.board, cores=run.cores, release=run.settings or Release.AUTUMN_2025
    )


def typecast_launch(
    source: Spec, out: Spec, board: Board, *, cores: int | None = None, release: Release = Release.CURRENT
) -> Launch:
    """A program that converts every tile of one tensor."""
    cycles = cast_cycles(source.dtype, out.dtype, board.arch, release)
    return unary_launch(source, out, cycles, board, program=TYPECAST, family=TYPECAST_FAMILY, cores=cores)


# -- operations -------------------------------------------------------------------------------------------------------

# Operations whose program runs another function than their name says, where no plan tells it.
KINDS = {
    **PLAIN,
    "deg2rad": "mul_unary_sfpu",
    "rad2deg": "mul_unary_sfpu",
    "sigmoid_accurate": "sigmoid",
    "clamp_tss": "clamp_tss",
    "prelu_sfpu": "prelu_sfpu",
}
WITH_MODE = ("erf", "exp", "gelu", "log", "log10", "log1p", "log2", "mish", "rsqrt", "sigmoid", "sqrt", "tanh")
WITH_PARAMETERS = (
    "celu elu hardtanh heaviside leaky_relu rpow selu softcap softplus softshrink threshold xielu hardshrink logit "
    "polygamma round rdiv fill relu_max relu_min"
).split(" ")
UNARY_NAMES = (
    *(f"ttnn.{name}" for name in KINDS if name not in ("clamp_tss", "prelu_sfpu")),
    *(f"ttnn.{name}" for name in (*WITH_MODE, *WITH_PARAMETERS)),
    "ttnn.abs",
    "ttnn.alt_complex_rotate90",
    "ttnn.unary_chain",
    "clamp_tss",
    "ttnn.prelu_sfpu",
)


@prices(*UNARY_NAMES)
def unary_operation(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    return [unary_launch(source, out, _chain_cycles(call, source.dtype), call.board)]


def _chain_cycles(call: Call, dtype: DataType) -> float:
    return chain_cycles(chain_of(call), call.board.arch, dtype, call.arguments.get("release", Release.CURRENT))


def chain_of(call: Call) -> Sequence[Activation]:
    """The functions of a unary call: those of its plan, or those that its name and arguments mean."""
    if isinstance(call.work, tuple) and call.work and isinstance(call.work[0], Activation):
        return call.work
    given = call.arguments
    if call.name == "ttnn.unary_chain":
        return tuple([as_activation(each) for each in given.get("ops_chain", ())])
    name = call.name.rsplit(".", 1)[-1]
    return (Activation(KINDS.get(name, name), (), _is_fast(given)),)


def _is_fast(given: Mapping[str, Any]) -> bool:
    mode = given.get("mode", given.get("variant"))
    fast = str(getattr(mode, "name", mode)).rsplit(".", 1)[-1] in ("FastApproximate", "FastLut")
    return fast or bool(given.get("fast_and_approximate_mode"))


@prices("ttnn.typecast", "ttnn.to_dtype")
def typecast_operation(call: Call) -> Sequence[Launch]:
    """A tensor that has the dtype already, or that is on the host, is not touched."""
    if not call.tensors or not call.outputs or call.tensors[0].dtype is call.outputs[0].dtype:
        return []
    return [typecast_launch(call.tensors[0], call.outputs[0], call.board)]


@prices("ttnn.bitcast")
def bitcast_operation(call: Call) -> Sequence[Launch]:
    return [unary_launch(call.tensors[0], call.outputs[0], 0.0, call.board)]
