"""Convolutions with an input in DRAM: whole in L1 if it fits, else slice by slice."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.execution.launch_memory import Stage
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Problem, Settings
from ttnn_emulator.ops.conv.plan import Fold, Run, flattened, fold_input, fold_problem, folds, plan_in_l1
from ttnn_emulator.ops.conv.scheme_choice import choose_scheme, estimate
from ttnn_emulator.ops.conv.slicing import (
    WHOLE,
    Sliceable,
    Slicing,
    choose_slicing,
    output_slices,
    require_countable,
)
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Sides, Window
from ttnn_emulator.ops.flows.memory import memory_flow
from ttnn_emulator.ops.flows.reshape import reshape_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.spec import Spec


@dataclass(frozen=True)
class Outcome:
    """A planned convolution: its result, the whole problem, and the run that computes it or its first slice.

    `stages` are the L1 allocations of an unsliced convolution; of a sliced one only the first slice's total is checked.
    `slices` are the runs of a sliced convolution, each with the number of slices that are like it.
    """

    output: Spec
    run: Run
    problem: Problem
    stages: tuple[Stage, ...] = ()
    slices: tuple[tuple[Run, int], ...] = ()


class SlicedConvolution(Sliceable):
    """A convolution on slices of its output."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem = problem
        self.settings = settings
        self.output_layout = settings.output_layout
        self.input_size = problem.window.size
        self.output_size = problem.window.output_size

    def padded_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair, Sides]:
        """Input rows and columns of a slice, and its padding."""
        window = self.problem.window
        first, last, pads = [], [], []
        for axis in (0, 1):
            before, after = window.padding[2 * axis], window.padding[2 * axis + 1]
            begin = start[axis] * window.stride[axis] - before
            finish = (end[axis] - 1) * window.stride[axis] - before + window.reach[axis]
            pad_before, pad_after = max(0, -begin), max(0, finish - window.size[axis])
            begin, finish = max(0, begin), min(window.size[axis], finish)
            if start[axis] == 0:
                pad_before, begin = before, 0
            if end[axis] == self.output_size[axis]:
                pad_after, finish = after, window.size[axis]
            first.append(begin)
            last.append(finish)
            pads += [pad_before, pad_after]
        whole = all(finish - begin == size for begin, finish, size in zip(first, last, window.size))
        if self.output_layout is Layout.TILE and not whole:
            pads[3] += -(end[1] - start[1]) % TILE * window.stride[1]
        return (first[0], first[1]), (last[0], last[1]), (pads[0], pads[1], pads[2], pads[3])

    def input_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair]:
        first, last, _ = self.padded_slice(start, end)
        return first, last

    def slice_problem(self, start: Pair, end: Pair) -> Problem:
        first, last, pads = self.padded_slice(start, end)
        size = (last[0] - first[0], last[1] - first[1])
        return replace(self.problem, window=replace(self.problem.window, size=size, padding=pads))

    def input_memory_config(self, start: Pair, end: Pair) -> MemoryConfig:
        """The L1 memory config of the input slice."""
        part = self.slice_problem(start, end)
        scheme = choose_scheme(part, self.settings).shard_layout
        sliced = part.window.size != self.input_size
        return slice_memory_config(part, self.settings, scheme, sliced)

    def l1_bytes(self, start: Pair, end: Pair, count: int) -> int:
        part = self.slice_problem(start, end)
        config = self.input_memory_config(start, end)
        found = estimate(part, self.settings, self.settings.shard_layout or config.memory_layout, config)
        return max(found.input + found.halo, found.total)


def slice_memory_config(part: Problem, settings: Settings, scheme: object, sliced: bool) -> MemoryConfig:
    alignment = sharding.channel_alignment(scheme, part.layout, sliced=sliced)  # type: ignore[arg-type]
    cores = part.cores(settings.with_(act_block_h_override=0), scheme, alignment)  # type: ignore[arg-type]
    window = part.window
    return sharding.input_memory_config(
        scheme,  # type: ignore[arg-type]
        cores,
        rows=window.batch * window.size[0] * window.size[1],
        channels=part.in_channels,
        layout=part.layout,
        sliced=sliced,
        as_matmul=False,
    )


def free_l1() -> int:
    """Free bytes of L1 per core."""
    device = current_device()
    assert device is not None
    memory = device.memory(BufferType.L1)
    return memory.bank_bytes - memory.allocated


def plan_convolution(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    problem: Problem,
    settings: Settings,
    memory_config: MemoryConfig | None,
    slicing: Slicing | None,
    math: MathConfig,
) -> Outcome:
    """Choose between L1 and slices in DRAM as the library does."""
    if (slicing is not None and slicing.kind is WHOLE) or (slicing is None and x.memory_config.is_l1):
        run = plan_in_l1(x, weight, bias, problem, settings, memory_config, math)
        return Outcome(run.output, run, run.problem, run.stages)
    require(
        not settings.override_output_sharding_config,
        "override_output_sharding_config does not support an input that is sliced in DRAM",
    )
    fold = None
    folding = folds(settings, problem.window, x.memory_config, in_rows=not x.is_tile)
    settings = settings.with_(enable_kernel_stride_folding=folding)
    if settings.enable_kernel_stride_folding and problem.window.stride != (1, 1):
        fold = Fold(problem.window.stride, problem.window.padding)
        x = fold_input(x, problem.window, problem.in_channels)
        problem = replace(fold_problem(problem), layout=x.layout, in_dtype=x.dtype)
    if not x.on_device:
        x = x.with_(on_device=True, memory_config=DRAM_MEMORY_CONFIG)
    if problem.as_matmul:
        run = plan_in_l1(x, weight, bias, problem, settings, memory_config, math)
        outcome = Outcome(run.output, run, run.problem, run.stages)
    else:
        op = SlicedConvolution(problem, settings.with_(weights_dtype=settings.weights_dtype or weight.dtype))
        outcome = plan_slices(op, x, weight, bias, slicing, math)
    return outcome if fold is None else replace(outcome, run=replace(outcome.run, fold=fold))


def plan_slices(
    op: SlicedConvolution, x: Spec, weight: Spec, bias: Spec | None, slicing: Slicing | None, math: MathConfig
) -> Outcome:
    """Check a convolution slice by slice; its result is in DRAM."""
    problem, settings = op.problem, op.settings
    require(
        not (settings.output_layout is Layout.ROW_MAJOR and problem.out_dtype is DataType.BFLOAT8_B),
        "bfloat8_b exists in TILE layout only, not ROW_MAJOR",
    )
    problem.window.require_output()
    x = reshape_flow(Flow(x), (problem.window.batch, *problem.window.size, problem.in_channels)).spec
    require(x.memory_config == DRAM_MEMORY_CONFIG, "slices are taken of an interleaved input in DRAM only")
    chosen = choose_slicing(op, slicing, free_l1())
    if chosen.count == 1 and (slicing is None or slicing.count == 0):
        chosen = Slicing(WHOLE, 1)
    require_countable(op, chosen)
    inner = settings.with_(deallocate_activation=True, reallocate_halo_output=True, output_layout=Layout.TILE)
    if chosen.count == 1:
        (start, end) = (0, 0), op.output_size
        run = plan_in_l1(flattened(x), weight, bias, op.slice_problem(start, end), inner, None, math)
        return Outcome(memory_flow(Flow(run.output), DRAM_MEMORY_CONFIG).spec, run, problem)
    first: Run | None = None
    counts: dict[Window, int] = {}
    runs: dict[Window, Run] = {}
    for start, end in output_slices(op, chosen):
        part = op.slice_problem(start, end)
        window = part.window
        counts[window] = counts.get(window, 0) + 1
        if window in runs:
            continue
        config = op.input_memory_config(start, end)
        piece = sharding.slice_in_l1(x.dtype, part.window, part.in_channels, config)
        part = replace(part, layout=Layout.ROW_MAJOR, in_dtype=piece.dtype)
        if inner.shard_layout is None:
            inner = inner.with_(shard_layout=config.memory_layout)
        run = runs[window] = plan_in_l1(piece, weight, bias, part, inner, None, math)
        if first is None:
            first, weight, bias = run, run.weight, run.bias
    assert first is not None
    output = Spec.of((1, 1, problem.window.rows, problem.out_channels), problem.out_dtype, settings.output_layout)
    slices = tuple([(run, counts[window]) for window, run in runs.items()])
    return Outcome(output, first, problem, slices=slices)
