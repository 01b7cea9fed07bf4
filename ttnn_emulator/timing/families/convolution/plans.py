"""The programs of a planned convolution: shard, fold, halo, move, convolution or matmul, slices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Blocks, Problem, Settings
from ttnn_emulator.ops.conv.circular_buffers import l1_accumulates, splits_reader
from ttnn_emulator.ops.conv.dram_input import Outcome
from ttnn_emulator.ops.conv.plan import Run
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.convolution.convolution import Convolution, convolution_launch
from ttnn_emulator.timing.families.convolution.halo import gathering, halo_bytes, halo_launch
from ttnn_emulator.timing.families.convolution.image import fold_launch, slice_launch, slice_write_launch
from ttnn_emulator.timing.families.data_movement.sharding import MOVE, change_of_memory, move, run_of
from ttnn_emulator.timing.families.matmul.matmul import matmul_launch, product_of
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import PROGRAMS, ProgramRun
from ttnn_emulator.timing.shards import grid_of, shards_of


@dataclass(frozen=True, slots=True)
class Planned:
    """One convolution in L1, from its plan or from a record of it.

    placed      the input as the halo reads it; `moved`: it was copied for that
    halo_bytes  bytes per core of the halo; 0 if there is none
    operands    weights and bias, where they are known
    """

    placed: Spec
    moved: bool
    problem: Problem
    settings: Settings
    inputs: Cores
    blocks: Blocks
    weight_dtype: DataType
    fidelity: MathFidelity
    halo_bytes: int
    operands: tuple[Spec, ...] = ()

    @property
    def stick_values(self) -> int:
        shard = self.placed.shard_spec
        assert shard is not None
        return shard.shape[1]


def convolution_of(planned: Planned) -> Convolution:
    """The convolution program of a plan."""
    problem, settings, blocks, inputs = planned.problem, planned.settings, planned.blocks, planned.inputs
    window, scheme = problem.window, inputs.scheme
    channels = planned.stick_values * inputs.channels
    depthwise = problem.depthwise_1d
    whole = depthwise and problem.reads_whole_window(scheme, channels)
    in_one = settings.full_inner_dim if scheme is BLOCK else settings.enable_activation_reuse
    steps = settings.act_block_w_div if scheme is WIDTH else 1 if in_one else window.kernel[0]
    if depthwise:
        steps = 1 if whole else window.kernel[0] * window.kernel[1]
    stick = planned.stick_values * problem.value_bytes
    if scheme is WIDTH:
        stick //= max(settings.act_block_w_div, 1)
    tile = tile_bytes(DEFAULT_TILE, planned.weight_dtype)
    inner = steps * (1 if scheme is HEIGHT else inputs.channels)
    return Convolution(
        scheme,
        inputs.rows,
        inputs.channels,
        blocks.act_h,
        blocks.act_w,
        blocks.sub_h,
        blocks.sub_w,
        blocks.out_h,
        blocks.out_w,
        steps,
        window.kernel,
        stick,
        planned.fidelity,
        problem.in_dtype,
        problem.out_dtype,
        planned.weight_dtype,
        fp32_acc=problem.math.fp32_acc,
        l1_acc=l1_accumulates(problem, inner),
        has_bias=problem.has_bias,
        activation=settings.activation,
        untilizes=settings.output_layout is Layout.ROW_MAJOR,
        apart=window.dilation[1] > 1 or scheme is WIDTH,
        depthwise=depthwise,
        splits=splits_reader(problem, settings, scheme, blocks, channels, tile, depthwise),
        in_one=in_one and scheme is BLOCK,
        reuses=in_one and scheme is HEIGHT,
        row=window.output_size[1],
        doubles_act=settings.enable_act_double_buffer,
        doubles_weights=settings.enable_weights_double_buffer,
    )


def launches_in_l1(planned: Planned, source: Spec | None, board: Board) -> list[Launch]:
    """Sharding the input, halo, its move, and the convolution."""
    arch = board.arch
    found: list[Launch] = []
    if planned.moved and source is not None:
        found += change_of_memory(source, planned.placed, board)
    read = planned.placed
    if planned.halo_bytes:
        problem, settings = planned.problem, planned.settings
        wanted = planned.halo_bytes // max(planned.stick_values * problem.value_bytes, 1)
        work = gathering(planned.placed, problem.window, problem.value_bytes, wanted)
        read = _halo_output(planned, work.wanted)
        found.append(halo_launch(work, arch).of((planned.placed,), (read,), settings=problem.window))
        frees = settings.deallocate_activation or (planned.moved and not problem.window.transposed)
        if settings.reallocate_halo_output and frees:
            # The halo's buffer moves up to where the freed input was.
            found.append(move(run_of(MOVE, read, read, board)))
    launch = convolution_launch(convolution_of(planned), arch)
    found.append(launch.of((read, *planned.operands), (made_by(planned),), planned.fidelity, planned))
    return found


def _halo_output(planned: Planned, rows: int) -> Spec:
    inputs, width = planned.inputs, planned.stick_values
    config = inputs.memory_config(rows * inputs.rows, width * inputs.channels, 1)
    shape = (1, 1, rows * inputs.rows, width * inputs.channels)
    return Spec.of(shape, planned.problem.conv_dtype, Layout.ROW_MAJOR, config)


# -- from the emulator's plan -----------------------------------------------------------------------------------------


def planned_run(run: Run, fidelity: MathFidelity) -> Planned:
    """The plan of one convolution in L1."""
    assert run.placed is not None
    return Planned(
        run.placed.spec,
        run.placed.moved,
        run.problem,
        run.settings,
        run.inputs,
        run.blocks,
        run.weight.dtype,
        fidelity,
        halo_bytes(run.stages),
        (run.weight,) if run.bias is None else (run.weight, run.bias),
    )


def planned_launches(call: Call, outcome: Outcome, fidelity: MathFidelity) -> list[Launch]:
    source, board = call.tensor("input_tensor"), call.board
    if source is not None and not source.on_device:
        source = None
    run = outcome.run
    found: list[Launch] = []
    if run.fold is not None and source is not None:
        folded = _folded(source, run)
        found.append(fold_launch(source, folded, board).of((source,), (folded,)))
        source = folded
    if outcome.slices:
        return found + _launches_of_slices(outcome, source, board, fidelity)
    if run.product is not None:
        return found + _launches_of_product(call, run, source)
    planned = planned_run(run, fidelity)
    found += launches_in_l1(planned, source, board)
    made = made_by(planned)
    if made.memory_config != outcome.output.memory_config:
        found += change_of_memory(made, outcome.output, board)
    return found


def _folded(source: Spec, run: Run) -> Spec:
    """The input after `ttnn.fold`: shards stay on their cores."""
    window, channels = run.problem.window, run.problem.in_channels
    shape = (1, 1, window.batch * window.size[0] * window.size[1], channels)
    config, shard = source.memory_config, source.shard_spec
    if shard is not None:
        rows = div_up(shape[2], grid_of(source)[0])
        config = config.with_shard_spec(ShardSpec(shard.grid, (rows, channels), shard.orientation))
    dtype = source.dtype if source.dtype is DataType.FLOAT32 else DataType.BFLOAT16
    return Spec.of(shape, dtype, Layout.ROW_MAJOR, config)


def made_by(planned: Planned) -> Spec:
    """The convolution's own result, before it goes to another memory."""
    problem = planned.problem
    outputs = sharding.output_cores(
        planned.inputs, problem.board, problem.out_channels, planned.inputs.orientation, problem.as_matmul
    )
    shape = (1, 1, problem.window.rows, problem.out_channels)
    shard = ShardSpec(
        outputs.grid, (planned.blocks.out_h * TILE, planned.blocks.out_w * TILE), planned.inputs.orientation
    )
    config = MemoryConfig(planned.inputs.scheme, BufferType.L1, shard)
    return Spec.of(shape, problem.out_dtype, planned.settings.output_layout, config, alignment=(TILE, TILE))


def _launches_of_slices(outcome: Outcome, source: Spec | None, board: Board, fidelity: MathFidelity) -> list[Launch]:
    """Every slice is cut out of the image in DRAM, convolved in L1, and written to its place."""
    found: list[Launch] = []
    for run, count in outcome.slices:
        planned = planned_run(run, fidelity)
        each: list[Launch] = []
        if source is not None:
            each.append(slice_launch(source, planned.placed, board).of((source,), (planned.placed,)))
        each += launches_in_l1(replace(planned, moved=False), source, board)
        written = (run.output, outcome.output)
        each.append(slice_write_launch(*written, board).of(written, (outcome.output,)))
        found += each * count
    return found


def _launches_of_product(call: Call, run: Run, source: Spec | None) -> list[Launch]:
    """A 1 x 1 convolution: sharding or tilizing the input, and a matmul."""
    assert run.placed is not None and run.product is not None
    placed, found = run.placed.spec, []
    if run.placed.moved and source is not None:
        found += change_of_memory(source, placed.with_(layout=source.layout), call.board)
    left = placed.with_(layout=Layout.TILE)
    if placed.layout is Layout.ROW_MAJOR:
        found += tilized(placed, call.board)
    how = run.product.how
    inputs: list[tuple[str, Spec]] = [("input_tensor_a", left), ("input_tensor_b", run.weight)]
    if run.bias is not None and not run.product.bias_after:
        inputs.append(("bias", run.bias))
    product = Call("ttnn.matmul", tuple(inputs), (how.output,), {"how": how}, call.board)
    found.append(matmul_launch(product_of(product), call.board))
    if run.product.bias_after and run.bias is not None:
        found += _timed("BinaryNgDeviceOperation", (how.output, run.bias), how.output, call.board)
    if run.product.activation_after is not None:
        found += _timed("UnaryDeviceOperation", (how.output,), how.output, call.board)
    if how.output.memory_config != run.output.memory_config:
        found += change_of_memory(how.output, run.output, call.board)
    return found


def tilized(spec: Spec, board: Board) -> list[Launch]:
    return _timed("TilizeDeviceOperation", (spec,), spec.with_(layout=Layout.TILE), board)


def _timed(code: str, inputs: tuple[Spec, ...], output: Spec, board: Board) -> list[Launch]:
    """A program of another family."""
    timed = PROGRAMS.get(code)
    if timed is None:
        return []
    shards = shards_of(output)
    cores = shards.cores if shards is not None else min(board.cores, max(output.num_pages, 1))
    return [timed.timer(ProgramRun(code, inputs, (output,), cores, board))]
