"""The gated delta rule of whole sequences, in chunks of 32 or 64 tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import ALL_ENUMS, Arch, DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.programs.attention.delta_rule import Unit, prepared, scan_prepared, unit_rows
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

NARROW, WIDE = DataType.BFLOAT16, DataType.FLOAT32
# asked ttnn 0.81.1: values of chunk_size that chunk_gated_delta_rule accepts
CHUNKS = (32, 64)
CONFIG = MathConfig(MathFidelity.HiFi4, fp32_acc=True, approx=False)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/chunk_gated_delta_rule/device/chunk_gdn_phased_program_factory.cpp,  # noqa: E501
# f32_bits
EPSILON = 1e-6  # of the norm of flat queries and keys
CONSTANTS = ("eye", "tril", "ones", "masks")
# asked ttnn 0.81.1: L1 use on mock cards, by tiles per chunk: float32 tiles of the first of two programs, and
# bfloat16 tiles of the single program, without the part that grows with keys and values.
PHASED_TILES, MONO_TILES = {1: 27, 2: 60}, {1: 22, 2: 68}


@dataclass(frozen=True)
class Shape:
    """Sizes derived from a call's tensors."""

    batch: int
    tokens: int
    heads: int  # of queries and keys
    value_heads: int
    keys: int
    values: int
    chunk: int
    flat_keys: bool
    flat_values: bool

    @property
    def all_heads(self) -> int:
        return self.batch * self.value_heads

    @property
    def count(self) -> int:
        return div_up(self.tokens, self.chunk)


@dataclass(frozen=True)
class Course:
    """Which program runs, and how: `mono` is the single one, `inverse` says how a chunk is inverted."""

    mono: bool
    inverse: Any
    scale: float
    head_major: bool
    memory_config: MemoryConfig
    chosen: bool  # by the caller


@composite("ttnn.transformer.chunk_gated_delta_rule")
def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
    use_qk_l2norm: bool = False,
    output_head_major: bool = False,
    program_config: Any = None,
    wy_inverse: Any = ALL_ENUMS["ChunkGdnWyInverse"].AUTO,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    eye: Tensor | None = None,
    tril: Tensor | None = None,
    ones: Tensor | None = None,
    masks: Tensor | None = None,
) -> Any:
    """State ← exp(g) state + beta k (v - kᵀ exp(g) state), output scale × qᵀ state, token after token.

    [B, T, H, K] of queries and keys, [B, T, HV, V] of values, [B, T, HV] of gates. Flat [B, T, H × K] queries and keys
    are normalised to unit length first.
    """
    require(not use_qk_l2norm, "use_qk_l2norm is not supported: normalise queries and keys first")
    shape = _shape_of(q, v, beta, chunk_size)
    if compute_kernel_config is not None:
        given = math_config(compute_kernel_config)
        runs = given.fidelity is MathFidelity.HiFi4 and given.fp32_acc and not given.approx
        require(runs, "the kernels run HiFi4 with fp32_dest_acc_en and without math_approx_mode only")
    factor = float(np.float32(scale)) if scale is not None else float(np.float32(1.0) / np.sqrt(np.float32(shape.keys)))
    course = _course(shape, program_config, wy_inverse, factor, memory_config, output_head_major)
    q, k, v = (_cast(each, (NARROW,)) for each in (q, k, v))
    g, beta = (_cast(each, (NARROW, WIDE)) for each in (g, beta))
    state = None if initial_state is None else _cast(initial_state, (WIDE,))
    if not shape.flat_keys:
        q = ttnn.multiply(q, factor)
    constants = (eye, tril, ones, masks)
    given_all = all(each is not None for each in constants)
    out, final = run_chunks(q, k, v, g, beta, shape, course, state, *(constants if given_all else (None,) * 4))
    return out, final if output_final_state else None


def _shape_of(q: Tensor, v: Tensor, beta: Tensor, chunk: int) -> Shape:
    ranks = (len(q.shape), len(v.shape))
    require(all(rank in (3, 4) for rank in ranks), f"q and v must have rank 4, or 3 if flat, not {list(ranks)}")
    flat_keys, flat_values = (rank == 3 for rank in ranks)
    require(not flat_values or len(beta.shape) == 3, f"beta must be [B, T, HV], not {list(beta.shape)}")
    value_heads = int(beta.shape[2] if flat_values else v.shape[2])
    require(value_heads > 0, "there must be heads")
    values = int(v.shape[2]) // value_heads if flat_values else int(v.shape[3])
    keys = values if flat_keys else int(q.shape[3])
    require(keys > 0, "there must be keys")
    heads = int(q.shape[2]) // keys if flat_keys else int(q.shape[2])
    fits = not flat_keys or q.shape[2] == heads * keys
    require(fits, f"flat q of width {q.shape[2]} is not a multiple of a head's {keys}, which is that of values")
    require(heads > 0 and value_heads % heads == 0, f"{heads} heads of keys cannot serve {value_heads} of values")
    tokens = int(q.shape[1])
    require(chunk in CHUNKS, f"chunk_size must be 32 or 64, not {chunk}")
    require(
        keys % TILE_SIZE == 0 and values % TILE_SIZE == 0, f"keys of {keys} or values of {values} are not whole tiles"
    )
    flat = flat_keys or flat_values
    require(not flat or tokens % chunk == 0, f"{tokens} flat tokens are not a multiple of chunk_size {chunk}")
    require(not flat_keys or chunk == TILE_SIZE, f"flat q and k need chunk_size 32, not {chunk}")
    require(tokens > 0 and q.shape[0] > 0, "there must be tokens")
    return Shape(int(q.shape[0]), tokens, heads, value_heads, keys, values, chunk, flat_keys, flat_values)


def _course(
    shape: Shape, program: Any, inverse: Any, scale: float, config: MemoryConfig | None, head_major: bool
) -> Course:
    kind = type(program).__name__
    if kind == "ChunkGdnFusedProgramConfig":
        raise NotEmulated(
            "ChunkGdnFusedProgramConfig is not emulated for ttnn.transformer.chunk_gated_delta_rule; "
            "ChunkGdnPhasedProgramConfig gives the same values"
        )
    mono = kind == "ChunkGdnMonoProgramConfig"
    require(not mono or not (shape.flat_keys or shape.flat_values), "the single program does not support flat tensors")
    out_memory = config or DRAM_MEMORY_CONFIG
    require(
        not out_memory.is_sharded(), "the outputs cannot be sharded: intermediate tensors of other shapes would be too"
    )
    return Course(mono, inverse, scale, head_major, out_memory, program is not None)


def _cast(tensor: Tensor, dtypes: tuple[DataType, ...]) -> Tensor:
    require(tensor._spec.on_device, "all tensors must be on a device")
    require(tensor.layout is Layout.TILE, f"all tensors must be in TILE layout, one is in {tensor.layout}")
    if tensor._spec.is_sharded:
        tensor = ttnn.to_memory_config(tensor, DRAM_MEMORY_CONFIG)
    return tensor if tensor.dtype in dtypes else ttnn.typecast(tensor, dtypes[-1])


# -- the device operation ---------------------------------------------------------------------------------------------


@internal("ttnn.prim.chunk_gdn")
def run_chunks(
    q: Spec,
    k: Spec,
    v: Spec,
    g: Spec,
    beta: Spec,
    shape: Shape,
    course: Course,
    state: Spec | None = None,
    eye: Spec | None = None,
    tril: Spec | None = None,
    ones: Spec | None = None,
    masks: Spec | None = None,
) -> Plan:
    gates = (shape.batch, shape.tokens, shape.value_heads)
    for name, spec in (("g", g), ("beta", beta)):
        require(spec.shape == gates, f"{name} must be [B, T, HV] = {list(gates)}, not {list(spec.shape)}")
    fault = ""
    if shape.flat_keys:
        fault = "" if k.shape == q.shape else f"k of shape {list(k.shape)} is read like q of shape {list(q.shape)}"
    else:
        _require_view(k, "k", (shape.batch * shape.heads, shape.tokens, shape.keys))
    if shape.flat_values:
        fault = fault or ("" if v.shape[:2] == q.shape[:2] else f"v of shape {list(v.shape)} is read beyond its end")
    else:
        _require_view(v, "v", (shape.all_heads, shape.tokens, shape.values))
    if state is not None:
        _require_view(state, "initial_state", (shape.all_heads, shape.keys, shape.values), split=False)
    constants = [each for each in (eye, tril, ones, masks) if each is not None]
    for name, spec in zip(CONSTANTS, constants):
        right = spec.on_device and spec.is_tile and spec.dtype is WIDE
        require(right, f"{name} must be of FLOAT32 in TILE layout on a device, not {spec.brief()}")
    solves = _solves(shape, course)
    cores = current_board().cores
    require(
        shape.all_heads <= cores, f"{shape.all_heads} heads are more than the {cores} cores, each of which takes one"
    )
    _require_known_program(shape, course)
    out_dtype = NARROW if course.mono else WIDE
    if course.head_major:
        out_shape: tuple[int, ...] = (shape.all_heads, shape.tokens, shape.values)
        layout = Layout.TILE
    else:
        out_shape = (shape.batch, shape.tokens, shape.value_heads, shape.values)
        layout = Layout.ROW_MAJOR
    final = (shape.batch, shape.value_heads, shape.keys, shape.values)
    outputs = (
        Spec.of(out_shape, out_dtype, layout, course.memory_config),
        Spec.of(final, WIDE, Layout.TILE, course.memory_config),
    )
    reads = ("q", "k", "v", "g", "beta") + (() if state is None else ("state",)) + CONSTANTS[: 3 if constants else 0]

    def compute(*given: torch.Tensor) -> list[torch.Tensor]:
        if fault:
            raise ChipFault(f"the card's answer would be wrong: {fault}")
        start = torch.zeros(final) if state is None else given[5]
        if constants:
            _require_constants(given[-3:], shape.chunk)
        made, last = _run(shape, course, solves, given[:5], start)
        if not course.head_major:
            made = made.unflatten(0, (shape.batch, -1)).transpose(1, 2)
        return [pack(made, out_dtype, from_fp32=True), last.reshape(final)]

    return Plan(outputs, compute, reads=reads, l1_bytes=_buffers(shape, mono=course.mono))


def _solves(shape: Shape, course: Course) -> bool:
    """Whether the vector unit inverts chunks by forward substitution."""
    ways, blackhole = ALL_ENUMS["ChunkGdnWyInverse"], current_board().arch is Arch.BLACKHOLE
    if course.inverse is ways.FORWARD_SUBSTITUTION:
        require(not course.mono, "the single program supports HORNER only, not FORWARD_SUBSTITUTION")
        require(blackhole, "only Blackhole has FORWARD_SUBSTITUTION")
        require(shape.chunk == TILE_SIZE, f"FORWARD_SUBSTITUTION needs chunk_size 32, not {shape.chunk}")
    return blackhole and shape.chunk == TILE_SIZE and course.inverse is not ways.HORNER and not course.mono


def _require_view(spec: Spec, name: str, wanted: tuple[int, int, int], *, split: bool = True) -> None:
    """A tensor viewed in another shape: as many values, or more of them in rows of the same width and whole tiles."""
    rank = not split or spec.rank == 4
    require(rank and spec.rank >= 2, f"{name} must have rank 4, its shape is {list(spec.shape)}")
    size = math.prod(wanted)
    rows = spec.shape[1] if split else spec.shape[-2]
    longer = spec.shape[-1] == wanted[2] and rows % TILE_SIZE == wanted[1] % TILE_SIZE == 0 and spec.volume > size
    require(spec.volume == size or longer, f"{name} of shape {list(spec.shape)} cannot be seen as {list(wanted)}")


def _require_known_program(shape: Shape, course: Course) -> None:
    """Without a program config the library considers a third program, which needs too much L1 for heads this wide."""
    wide = shape.chunk // TILE_SIZE * shape.keys * shape.values >= 2 * 256 * 256
    if wide and not course.chosen:
        raise NotEmulated(
            f"which program runs heads of {shape.keys} × {shape.values} is not known: pass program_config"
        )


def _buffers(shape: Shape, *, mono: bool) -> int:
    chunk, keys, values = (size // TILE_SIZE for size in (shape.chunk, shape.keys, shape.values))
    narrow, wide = tile_bytes(DEFAULT_TILE, NARROW), tile_bytes(DEFAULT_TILE, WIDE)
    if not mono:
        return wide * (PHASED_TILES[chunk] + 11 * chunk * keys + 2 * chunk * values) + narrow * chunk * values
    scratch = max(chunk * chunk, chunk * keys, chunk * values, keys * values)
    return narrow * (MONO_TILES[chunk] + chunk * (10 * keys + 11 * values) + 18 * keys * values + 6 * scratch)


# -- running it -------------------------------------------------------------------------------------------------------


def _require_constants(given: tuple[torch.Tensor, ...], chunk: int) -> None:
    makers: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        lambda all_: torch.eye(chunk),
        torch.tril,
        torch.clone,
    )
    for name, ours, maker in zip(CONSTANTS, given, makers):
        right = maker(torch.ones(chunk, chunk))
        if ours.numel() != right.numel() or not torch.equal(ours.reshape(chunk, chunk), right):
            raise ChipFault(f"the card's answer would be wrong: {name} is not what its name says for chunks of {chunk}")


def _run(
    shape: Shape, course: Course, solves: bool, given: tuple[torch.Tensor, ...], start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    q, k, v, g, beta = given
    count = shape.all_heads * shape.count
    steps = 64 if course.mono else 16
    size = shape.chunk * (4 * shape.keys * shape.values + 2 * shape.chunk * (shape.keys + steps * shape.chunk))
    unit = Unit(CONFIG, count * size)
    query, key = (_heads(each, shape, shape.heads, shape.keys, flat=shape.flat_keys) for each in (q, k))
    if shape.flat_keys:
        query = unit_rows(unit, query, EPSILON, course.scale)
        key = unit_rows(unit, key, EPSILON, 1.0)
    groups = shape.value_heads // shape.heads
    query, key = (each.repeat_interleave(groups, 0) for each in (query, key))
    value = _heads(v, shape, shape.value_heads, shape.values, flat=shape.flat_values)
    lines = [each.transpose(1, 2).reshape(shape.all_heads, shape.tokens, 1).float() for each in (g, beta)]
    room = shape.count * shape.chunk - shape.tokens
    parts = [
        torch.nn.functional.pad(each, (0, 0, 0, room)).reshape(count, shape.chunk, -1)
        for each in (query, key, value, *lines)
    ]
    chunks = prepared(unit, *parts, whole=course.mono, solves=solves)
    state = start.reshape(-1)[: shape.all_heads * shape.keys * shape.values]
    made, last = scan_prepared(unit, chunks, state.reshape(-1, shape.keys, shape.values), whole=course.mono)
    return made.flatten(1, 2)[:, : shape.tokens], last


def _heads(values: torch.Tensor, shape: Shape, heads: int, width: int, *, flat: bool) -> torch.Tensor:
    """[B, T, heads, width], or flat, as [B × heads, T, width]; of a larger tensor the first rows, head by head."""
    if flat:
        values = values[..., : heads * width].unflatten(-1, (heads, width))
    rows = values.transpose(1, 2).reshape(-1)[: shape.batch * heads * shape.tokens * width]
    return rows.reshape(-1, shape.tokens, width)
