"""The computation of a planned convolution, and its return values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.execution.operation_table import Bind, Plan, bindable
from ttnn_emulator.numerics.programs.convolution.convolution import BlockOrder, Convolution
from ttnn_emulator.numerics.programs.convolution.depthwise import Depthwise
from ttnn_emulator.numerics.programs.convolution.windows import Windows
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.conv.blocks import Problem
from ttnn_emulator.ops.conv.channel_padding import multiplied_channels, with_channels
from ttnn_emulator.ops.conv.device_weights import padded_rows, prepare_bias, prepare_weight, transposed_weight
from ttnn_emulator.ops.conv.dram_input import Outcome
from ttnn_emulator.ops.conv.plan import Fold
from ttnn_emulator.ops.conv.pointwise import product_of
from ttnn_emulator.ops.conv.sharding import BLOCK, WIDTH
from ttnn_emulator.ops.conv.sliding_window import TILE, Window
from ttnn_emulator.ops.support.fused_functions import fault_of, fused, require_fusable
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec

Compute = Callable[..., torch.Tensor]
REPLICATE = "Replicate"


def windows_of(window: Window, channels: int, *, edges: bool) -> Windows:
    """The windows of a problem."""
    images = (window.batch, *window.size, channels)
    if not window.transposed:
        return Windows(
            images, window.kernel, window.stride, window.padding, window.dilation, window.output_size, edges=edges
        )
    top, bottom, left, right = window.spread_padding
    below, beside = window.output_padding
    return Windows(
        images,
        window.kernel,
        (1, 1),
        (top, bottom + below, left, right + beside),
        window.dilation,
        window.output_size,
        spread=window.stride,
        edges=edges,
    )


def computation(outcome: Outcome, math: MathConfig) -> Compute:
    """(input, prepared weights, prepared bias or None) → the result."""
    run = outcome.run
    if run.product is not None:
        return _after_fold(product_of(run.product, outcome.problem.out_dtype), run.fold, outcome)
    problem = multiplied_channels(run, outcome.problem)
    windows = windows_of(problem.window, problem.in_channels, edges=_repeats_edges(outcome))
    if problem.depthwise_1d:
        return Depthwise(
            windows,
            math,
            problem.in_dtype,
            run.weight.dtype,
            problem.out_dtype,
            problem.out_channels,
            repeats=run.preparation.tall_rows * TILE if problem.groups > 1 else 1,
            whole_window=run.preparation.whole_window,
        ).compute()
    convolve = _convolution(outcome, problem, math, windows).compute()
    return _after_fold(convolve, run.fold, outcome) if run.fold is not None else with_channels(convolve, run, problem)


def _convolution(outcome: Outcome, problem: Problem, math: MathConfig, windows: Windows) -> Convolution:
    """The convolution of a plan that is not 1D depthwise."""
    run = outcome.run
    settings, window = run.settings, problem.window
    scheme, cores = run.inputs.scheme, run.inputs.channels
    in_one = settings.full_inner_dim if scheme is BLOCK else settings.enable_activation_reuse
    kernel_rows = scheme is not WIDTH and not in_one
    order = BlockOrder(
        window.kernel,
        problem.in_channels,
        round_up(problem.in_channels, cores * run.preparation.alignment) // cores,
        cores,
        kernel_rows,
        settings.act_block_w_div if scheme is WIDTH else 1,
    )
    blocks = (window.kernel[0] if kernel_rows else order.chunks) * cores
    l1_acc = math.l1_acc and blocks > (1 if problem.has_bias else 2)
    between = problem.out_dtype
    if l1_acc:
        between = DataType.FLOAT32 if math.fp32_acc else DataType.BFLOAT16
    return Convolution(
        windows,
        order,
        replace(math, l1_acc=l1_acc),
        problem.in_dtype,
        run.weight.dtype,
        problem.out_dtype,
        between,
        problem.out_channels,
        problem.groups,
        fused(settings.activation) if settings.activation is not None else None,
        settings.output_layout is Layout.ROW_MAJOR,
    )


def _binding(outcome: Outcome, math: MathConfig) -> Bind | None:
    """See `Bindable`: a convolution that is not 1D depthwise, with prepared weights."""
    run = outcome.run
    if run.product is not None or run.fold is not None or outcome.problem.depthwise_1d:
        return None
    problem = multiplied_channels(run, outcome.problem)
    windows = functools.partial(windows_of, problem.window, problem.in_channels, edges=_repeats_edges(outcome))
    prepared = functools.cache(lambda: _convolution(outcome, problem, math, windows()))

    def bind(carriers: Sequence[torch.Tensor | None], constant: Sequence[bool]) -> Any:
        made = prepared().bind(carriers, constant)
        return None if made is None else (made[0], made[1].reshape(outcome.output.shape))

    return bind


def _repeats_edges(outcome: Outcome) -> bool:
    mode = outcome.run.settings.padding_mode
    return mode is not None and mode.name == REPLICATE


def _after_fold(convolve: Compute, fold: Fold | None, outcome: Outcome) -> Compute:
    """The computation preceded by folding strided patches into channels, if there is a fold."""
    if fold is None:
        return convolve
    (step_y, step_x), (top, bottom, left, right) = fold.stride, fold.padding
    window = outcome.problem.window
    batch, (high, wide) = window.batch, window.size
    channels = outcome.problem.in_channels // (step_y * step_x)
    shape = (batch, high * step_y - top - bottom, wide * step_x - left - right, channels)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        images = torch.nn.functional.pad(x.reshape(shape), (0, 0, left, right, top, bottom))
        patches = images.reshape(batch, high, step_y, wide, step_x, channels)
        return convolve(patches.permute(0, 1, 3, 2, 4, 5).reshape(batch, high, wide, -1), weight, bias)

    return run


def _fault(outcome: Outcome) -> ChipFault | None:
    """Wrong results of the kernels for settings that the library accepts."""
    run, problem = outcome.run, outcome.problem
    function = run.settings.activation
    if run.product is not None:
        return None  # the matmul applies the function, in its kernel or afterwards
    if problem.depthwise_1d and run.settings.config_tensors_in_dram:
        # tt-metal v0.81.1: ttnn/cpp/ttnn/operations/conv/conv2d/device/kernels/reader_depthwise_conv1d.cpp, reads the
        # indices from L1 and never fetches them from DRAM
        return ChipFault(
            "a 1D depthwise convolution without a bias reads garbage with config_tensors_in_dram=True",
            hint="Give it a bias, of zeros if need be, or config_tensors_in_dram=False.",
        )
    if problem.depthwise_1d and function is not None:
        # tt-metal v0.81.1: ttnn/cpp/ttnn/operations/conv/conv2d/device/kernels/compute_depthwise_conv1d.cpp, applies no
        # activation
        return ChipFault(
            f"a 1D depthwise convolution without a bias leaves its activation {function.op_type.name} out",
            hint="Apply it to the result, or give a bias, of zeros if need be.",
        )
    return None if function is None else fault_of(function)


def convolution_plan(
    outcome: Outcome,
    weight: Spec,
    bias: Spec | None,
    math: MathConfig,
    *,
    with_size: bool,
    with_weights: bool,
    one_dimension: bool = False,
    mirror: bool = True,
    weight_groups: int = 1,
) -> Plan:
    """Prepare weights if needed, compute, and return the requested values."""
    run, shape = outcome.run, outcome.output.shape
    if run.settings.activation is not None:
        in_kernel = run.product is None
        require_fusable(run.settings.activation, typed=not in_kernel, packs_relu=in_kernel)
    fault = _fault(outcome)
    prepared = functools.cache(lambda: computation(outcome, math))  # specs alone do not need it
    new_weight, new_bias = run.weight is not weight, bias is not None and run.bias is not bias
    transposed = outcome.problem.window.transposed

    misfit = not new_weight and _is_misfit(outcome)
    integers = [each for each in _dtypes(outcome) if each not in FLOAT_DTYPES]

    is_plain = not (new_weight or new_bias or misfit or integers or with_weights or fault)

    def compute(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> Any:
        if fault is not None:
            raise fault.with_traceback(None)
        if integers and x.any():
            raise ChipFault(f"the card takes the bits of {integers[0]} for those of floats in a convolution")
        if misfit and w.any():
            raise ChipFault(
                f"weights prepared with {run.weight.padded_shape[-2]} rows were prepared for other sharding",
                hint="Prepare the weights for this convolution.",
            )
        if new_weight:
            if transposed:
                w = transposed_weight(w, weight, weight_groups, mirror)
            w = prepare_weight(w, run.preparation, run.weight.dtype)
        if new_bias:
            assert b is not None and run.bias is not None
            b = prepare_bias(b, run.bias.dtype)
        result = prepared()(x, w, b).reshape(shape)
        return (result, w, b) if with_weights else result

    outputs, into = [outcome.output], [None]
    if with_weights:
        outputs.append(run.weight)
        into.append(None if new_weight else "weight_tensor")  # type: ignore[arg-type]
        if run.bias is not None:
            outputs.append(run.bias)
            into.append(None if new_bias else "bias_tensor")  # type: ignore[arg-type]
    size: Any = outcome.problem.window.output_size
    return Plan(
        tuple(outputs),
        bindable(compute, _binding(outcome, math) if is_plain else None),
        reads=("input_tensor", "weight_tensor", "bias_tensor"),
        into=tuple(into),
        l1_bytes=run.l1_bytes,
        narrow=True,
        wrap=_handed_back(size[1] if one_dimension else size, with_size, with_weights),
        stages=outcome.stages,
        work=(outcome, math),
    )


def _is_misfit(outcome: Outcome) -> bool:
    """Whether prepared weights have their padding elsewhere than the kernel expects."""
    run, to, window = outcome.run, outcome.run.preparation, outcome.run.problem.window
    channels, kernel, depthwise = run.problem.in_channels, window.kernel, run.problem.depthwise_1d
    if run.product is not None or (kernel[0] == 1 and to.inputs.channels == 1):
        return False  # no padding between rows
    return run.weight.padded_shape[-2] != padded_rows(to, channels, kernel, kernel[1], depthwise)


def _dtypes(outcome: Outcome) -> tuple[DataType, ...]:
    return outcome.problem.in_dtype, outcome.run.weight.dtype, outcome.problem.out_dtype


def _handed_back(size: Any, with_size: bool, with_weights: bool) -> Callable[[list], Any]:
    """The result alone, or with the output's size and the prepared weights."""

    def wrap(tensors: list) -> Any:
        output, *rest = tensors
        parts: list[Any] = [output]
        if with_size:
            parts.append(size)
        if with_weights:
            parts.append((rest[0], rest[1] if len(rest) > 1 else None))
        return tuple(parts) if len(parts) > 1 else output

    return wrap
