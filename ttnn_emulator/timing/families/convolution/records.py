"""Convolutions of call lists: `resolved` has the library's decisions for a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Blocks, Math, Problem, Settings
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import Window, sides
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.families.convolution.image import slice_launch, slice_write_launch
from ttnn_emulator.timing.families.convolution.plans import Planned, launches_in_l1, made_by, tilized
from ttnn_emulator.timing.families.data_movement.sharding import change_of_memory
from ttnn_emulator.timing.families.matmul.matmul import matmul_launch, recorded_product
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.recorded_arguments import dtype_of, fidelity_of, field_of, layout_of, scheme_of


def recorded_launches(call: Call) -> list[Launch]:
    """The programs of a recorded call."""
    resolved: Mapping[str, Any] = call.arguments["resolved"]
    board, source = call.board, call.tensor("input_tensor")
    planned = recorded_plan(call, resolved, source)
    programs = resolved["programs"]
    if "matmul" in programs:
        found: list[Launch] = []
        if "shard_input" in programs and source is not None:
            found += change_of_memory(source, planned.placed, board)
        if "tilize" in programs:
            found += tilized(planned.placed, board)
        left = planned.placed.with_(layout=Layout.TILE)
        weight = call.tensor("weight_tensor")
        assert weight is not None
        product = recorded_product(call, left, weight, call.outputs[0], resolved["matmul"])
        return [*found, matmul_launch(product, board)]
    if resolved.get("dram_sliced") and source is not None:
        return _sliced_launches(call, resolved, planned, source)
    found = launches_in_l1(replace(planned, moved="shard_input" in programs), source, board)
    made = made_by(planned)
    if made.memory_config.memory_layout is not call.outputs[0].memory_config.memory_layout:
        found += change_of_memory(made, call.outputs[0], board)
    return found


def _sliced_launches(call: Call, resolved: Mapping[str, Any], planned: Planned, source: Spec) -> list[Launch]:
    """Slices of an image in DRAM; the record has the blocks of the first one."""
    problem, board = planned.problem, call.board
    rows = resolved["per_core_out_tiles"][0] * TILE_SIZE * planned.inputs.rows
    asked = field_of(call.arguments.get("slice_config"), "num_slices", 0)
    count = max(resolved["programs"].count("conv2d"), asked, div_up(problem.window.rows, max(rows, 1)))
    high, wide = problem.window.size
    part = replace(problem, window=replace(problem.window, size=(high, max(div_up(wide, count), 1))))
    piece = replace(planned, problem=part, placed=_placed(part, planned.inputs, None), moved=False)
    settings = replace(planned.settings, deallocate_activation=True, reallocate_halo_output=True)
    if not piece.halo_bytes:
        stick = piece.stick_values * part.value_bytes
        piece = replace(piece, halo_bytes=part.window.halo_rows(planned.inputs.rows) * stick)
    each = [slice_launch(source, piece.placed, board)]
    each += launches_in_l1(replace(piece, settings=settings), source, board)
    each.append(slice_write_launch(made_by(piece), call.outputs[0], board))
    return each * count


def recorded_plan(call: Call, resolved: Mapping[str, Any], source: Spec | None) -> Planned:
    """The plan of a recorded convolution."""
    arguments, board = call.arguments, call.board
    config, math = arguments.get("conv_config"), arguments.get("compute_config")
    output = call.outputs[0]
    weight = call.tensor("weight_tensor")
    weight_dtype = dtype_of(field_of(config, "weights_dtype"), weight.dtype if weight is not None else output.dtype)
    settings = _settings(config, weight_dtype)
    down, across = resolved["cores_in"]
    shard = source.shard_spec if source is not None else None
    moved = "shard_input" in resolved["programs"] or shard is None
    if shard is not None and not moved:
        assert source is not None
        inputs = Cores.of(source.memory_config)
    else:
        scheme = settings.shard_layout or scheme_of(None, HEIGHT)
        if source is not None and source.is_sharded and settings.shard_layout is None:
            scheme = source.memory_config.memory_layout
        if down > 1 and across > 1:
            scheme = BLOCK
        inputs = _cores(scheme, down, across, board, settings)
    problem = _problem(call, settings, source, output, board, fp32=bool(field_of(math, "fp32_dest_acc_en", False)))
    problem = replace(problem, as_matmul="matmul" in resolved["programs"])
    if bool(field_of(math, "packer_l1_acc", False)):
        problem = replace(problem, math=Math(problem.math.fp32_acc, True))
    sub, out = resolved["out_subblock_tiles"], resolved["per_core_out_tiles"]
    blocks = Blocks(resolved["act_block_h_tiles"], resolved["act_block_w_tiles"], *sub, *out)
    placed = source
    if placed is None or moved:
        placed = _placed(problem, inputs, source)
    return Planned(
        placed,
        moved,
        problem,
        settings,
        inputs,
        blocks,
        weight_dtype,
        fidelity_of(field_of(math, "math_fidelity"), MathFidelity.HiFi4),
        resolved.get("halo_bytes_per_core", 0) if "halo" in resolved["programs"] else 0,
    )


def _cores(scheme: Any, down: int, across: int, board: Board, settings: Settings) -> Cores:
    if scheme is BLOCK:
        return Cores(sharding.block_grid(down, across, settings.orientation), BLOCK, settings.orientation)
    grid = num_cores_to_corerangeset(max(down, across), CoreCoord(*board.grid), True)
    return Cores(grid, WIDTH if scheme is WIDTH else HEIGHT)


def _placed(problem: Problem, inputs: Cores, source: Spec | None) -> Spec:
    """The sharded copy of an input."""
    window = problem.window
    rows = window.batch * window.size[0] * window.size[1]
    layout = source.layout if source is not None else Layout.ROW_MAJOR
    dtype = source.dtype if source is not None else problem.conv_dtype
    config = sharding.input_memory_config(
        inputs.scheme,
        inputs,
        rows=rows,
        channels=problem.in_channels,
        layout=layout,
        sliced=False,
        as_matmul=problem.as_matmul,
    )
    assert config.shard_spec is not None
    return Spec.of((1, 1, rows, problem.in_channels), dtype, layout, config, alignment=config.shard_spec.shape)


def _settings(config: Any, weight_dtype: DataType) -> Settings:
    def flag(name: str, default: bool = False) -> bool:
        return bool(field_of(config, name, default))

    layout = field_of(config, "shard_layout")
    return Settings(
        weights_dtype=weight_dtype,
        activation=field_of(config, "activation"),
        deallocate_activation=flag("deallocate_activation"),
        reallocate_halo_output=flag("reallocate_halo_output", True),
        config_tensors_in_dram=flag("config_tensors_in_dram"),
        act_block_w_div=field_of(config, "act_block_w_div", 1),
        shard_layout=None if layout is None else scheme_of(layout, HEIGHT),
        transpose_shards=flag("transpose_shards"),
        output_layout=layout_of(field_of(config, "output_layout"), Layout.TILE),
        enable_act_double_buffer=flag("enable_act_double_buffer"),
        enable_weights_double_buffer=flag("enable_weights_double_buffer"),
        full_inner_dim=flag("full_inner_dim"),
        enable_activation_reuse=flag("enable_activation_reuse"),
        force_split_reader=field_of(config, "force_split_reader"),
    )


def _problem(call: Call, settings: Settings, source: Spec | None, output: Spec, board: Board, *, fp32: bool) -> Problem:
    arguments = call.arguments
    if "input_length" in arguments:
        size = (1, arguments["input_length"])
        kernel, stride, dilation = ((1, arguments.get(name) or 1) for name in ("kernel_size", "stride", "dilation"))
        pads = arguments.get("padding") or 0
        padding = (0, 0, *pads) if isinstance(pads, Sequence) else (0, pads)
    else:
        size = (arguments["input_height"], arguments["input_width"])
        kernel, stride, dilation = (
            tuple(arguments.get(name) or (1, 1)) for name in ("kernel_size", "stride", "dilation")
        )
        padding = tuple(arguments.get("padding") or (0, 0))
    transposed = call.name == "ttnn.conv_transpose2d"
    window = Window(
        arguments["batch_size"],
        size,
        kernel,
        stride,
        sides(padding),
        dilation,
        output_padding=tuple(arguments.get("output_padding") or (0, 0)) if transposed else (0, 0),
        transposed=transposed,
    )
    in_dtype = source.dtype if source is not None else DataType.BFLOAT16
    return Problem(
        window,
        arguments["in_channels"],
        arguments["out_channels"],
        arguments.get("groups") or 1,
        call.tensor("bias_tensor") is not None,
        in_dtype,
        output.dtype,
        source.layout if source is not None else Layout.ROW_MAJOR,
        Math(fp32, False),
        board.grid,
        board.arch,
    )
