"""Prices of operations whose plan is a chain of programs, and of the kernels behind composite operations.

A plan has its programs in `work`. Calls of a list are planned again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ttnn_emulator.enums import Layout
from ttnn_emulator.execution.call_context import planning_for
from ttnn_emulator.execution.operation_table import OPERATIONS, Plan
from ttnn_emulator.ops.data_movement.untilize_kernels import takes_generated_kernel
from ttnn_emulator.ops.flows.layout import UNTILIZE
from ttnn_emulator.ops.flows.value_flow import Program
from ttnn_emulator.tensors.shapes import Shape
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.data_movement.copies import copy
from ttnn_emulator.timing.families.data_movement.joining import concat, split_columns
from ttnn_emulator.timing.families.data_movement.slicing import pad, slice_
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.movement import Planned, planned_run, run_planned, shard_cores

Arguments = Mapping[str, Any]

# -- chains of programs -----------------------------------------------------------------------------------------------


def programs_of(call: Call) -> Sequence[Program]:
    """The programs that a call launches, from its plan."""
    if call.work is not None:
        return call.work
    with planning_for(call.board):
        plan: Plan = OPERATIONS[call.name].function(**_AGAIN[call.name](call))
    return plan.work or ()


def launch_of(program: Program, call: Call) -> Launch:
    """The launch of a program of a chain."""
    settings = _settings(program, call)
    return run_planned(program.code, program.source, program.result, call.board, settings, fallback=copy)


def _settings(program: Program, call: Call) -> Planned:
    how = program.how
    if isinstance(how, tuple):
        return Planned(order=how)
    multicore = how is not False
    if program.code == UNTILIZE and multicore:
        with planning_for(call.board):
            return Planned(generated=takes_generated_kernel(program.source, program.result.memory_config))
    return Planned(multicore=multicore)


@prices(
    "ttnn.to_layout",
    "ttnn.tilize",
    "ttnn.tilize_with_val_padding",
    "ttnn.tilize_with_zero_padding",
    "ttnn.untilize",
    "ttnn.untilize_with_unpadding",
    "ttnn._ttnn.operations.data_movement.untilize_force_codegen",
    "ttnn._ttnn.operations.data_movement.untilize_force_native",
    "ttnn.permute",
    "ttnn.transpose",
    "ttnn.reshape",
    "ttnn.reshape_on_device",
    "ttnn.squeeze",
    "ttnn.unsqueeze",
    "ttnn.unsqueeze_to_4D",
    "ttnn.clone",
    "ttnn.copy",
    "ttnn.assign",
    "ttnn.experimental.typecast",
    "ttnn.repeat",
    "ttnn.expand",
    "ttnn.repeat_interleave",
    "ttnn.rand",
    "ttnn.randn",
)
def chain(call: Call) -> Sequence[Launch]:
    """All programs of a plan, one after the other."""
    return [launch_of(program, call) for program in programs_of(call)]


@prices("ttnn.view", "ttnn.experimental.view", "ttnn.narrow")
def nothing(call: Call) -> Sequence[Launch]:
    """Views of the same buffer."""
    return []


# -- planning a recorded call again -----------------------------------------------------------------------------------


def _to_layout(call: Call) -> Arguments:
    source, out = call.tensors[0], call.outputs[0]
    dtype = out.dtype if out.layout is Layout.TILE and out.dtype is not source.dtype else None
    return {"tensor": source, "layout": out.layout, "dtype": dtype, "memory_config": _memory(source, out)}


def _memory(source: Spec, out: Spec) -> Any:
    return None if out.memory_config == source.memory_config else out.memory_config


def _layout(call: Call) -> dict[str, Any]:
    """Arguments of an operation that changes the layout."""
    source, out = call.tensors[0], call.outputs[0]
    multicore = bool(call.arguments.get("use_multicore", True))
    return {"input_tensor": source, "memory_config": _memory(source, out), "use_multicore": multicore}


def _tilize(call: Call) -> Arguments:
    return {**_layout(call), "dtype": call.outputs[0].dtype}


def _tilize_padded(call: Call) -> Arguments:
    return {**_tilize(call), "output_tensor_shape": Shape(call.outputs[0].padded_shape)}


def _tilize_zero_padded(call: Call) -> Arguments:
    return {**_layout(call), "output_dtype": call.outputs[0].dtype}


def _untilize_unpadded(call: Call) -> Arguments:
    return {**_layout(call), "output_tensor_end": Shape([max(size - 1, 0) for size in call.outputs[0].shape])}


def _one(name: str, *kept: str) -> Callable[[Call], Arguments]:
    """The tensor under its name, some arguments as they were, and the memory config of the output."""

    def again(call: Call) -> Arguments:
        arguments = {each: call.arguments[each] for each in kept if each in call.arguments}
        return {name: call.tensors[0], "memory_config": _memory(call.tensors[0], call.outputs[0]), **arguments}

    return again


def _reshape(call: Call) -> Arguments:
    source, out = call.tensors[0], call.outputs[0]
    return {"input_tensor": source, "shape": tuple(out.shape), "memory_config": _memory(source, out)}


def _clone(call: Call) -> Arguments:
    return {"input": call.tensors[0], "memory_config": call.outputs[0].memory_config, "dtype": call.outputs[0].dtype}


def _assign(call: Call) -> Arguments:
    out = call.outputs[0]
    return {"input_tensor": call.tensors[0], "memory_config": out.memory_config, "dtype": out.dtype}


def _experimental_typecast(call: Call) -> Arguments:
    out = call.outputs[0]
    return {"input_tensor": call.tensors[0], "memory_config": out.memory_config, "dtype": out.dtype}


def _copy(call: Call) -> Arguments:
    return {"input_a": call.tensors[0], "input_b": call.tensors[1]}


def _expand(call: Call) -> Arguments:
    return {**_one("input_tensor")(call), "output_shape": tuple(call.outputs[0].shape)}


def _made(call: Call) -> Arguments:
    out = call.outputs[0]
    return {
        "shape": tuple(out.shape),
        "device": None,
        "dtype": out.dtype,
        "layout": out.layout,
        "memory_config": out.memory_config,
    }


_AGAIN: dict[str, Callable[[Call], Arguments]] = {
    "ttnn.to_layout": _to_layout,
    "ttnn.tilize": _tilize,
    "ttnn.tilize_with_val_padding": _tilize_padded,
    "ttnn.tilize_with_zero_padding": _tilize_zero_padded,
    "ttnn.untilize": _layout,
    "ttnn.untilize_with_unpadding": _untilize_unpadded,
    "ttnn.permute": _one("input_tensor", "dims"),
    "ttnn.transpose": _one("input_tensor", "dim1", "dim2"),
    "ttnn.reshape": _reshape,
    "ttnn.reshape_on_device": _one("input_tensor", "W", "Z", "Y", "X"),
    "ttnn.squeeze": lambda call: {"input_tensor": call.tensors[0], "dim": call.arguments.get("dim")},
    "ttnn.unsqueeze": lambda call: {"input_tensor": call.tensors[0], "dim": call.arguments["dim"]},
    "ttnn.unsqueeze_to_4D": lambda call: {"tensor": call.tensors[0]},
    "ttnn.clone": _clone,
    "ttnn.copy": _copy,
    "ttnn.assign": _assign,
    "ttnn.experimental.typecast": _experimental_typecast,
    "ttnn.repeat": _one("input_tensor", "repeat_dims"),
    "ttnn.expand": _expand,
    "ttnn.rand": _made,
    "ttnn.randn": _made,
}

# -- kernels behind composite operations ------------------------------------------------------------------------------


@prices("ttnn.prim.slice")
def price_slice(call: Call) -> Sequence[Launch]:
    strided = any(step != 1 for step in call.arguments.get("steps") or ())
    source = call.tensors[0]
    return [slice_(planned_run(call, "SliceDeviceOperation", (source,), settings=Planned(strided=strided)))]


@prices("ttnn.prim.concat")
def price_concat(call: Call) -> Sequence[Launch]:
    settings = Planned(dim=int(call.arguments["dim"]))
    return [concat(planned_run(call, "ConcatDeviceOperation", call.tensors, settings=settings))]


@prices("ttnn.prim.split")
def price_split(call: Call) -> Sequence[Launch]:
    return [split_columns(planned_run(call, "SplitDeviceOperation", call.tensors[:1]))]


@prices("ttnn.prim.pad")
def price_pad(call: Call) -> Sequence[Launch]:
    kernel = call.arguments.get("kernel")
    settings = Planned(multicore=kernel is None or bool(kernel[0]))
    return [pad(planned_run(call, "PadDeviceOperation", call.tensors[:1], settings=settings))]


@prices("ttnn.prim.roll", "ttnn.prim.example")
def price_copy(call: Call) -> Sequence[Launch]:
    return [copy(planned_run(call, "RollDeviceOperation", call.tensors[:1]))]


@prices("ttnn.prim.dram_prefetcher")
def prefetch(call: Call) -> Sequence[Launch]:
    """Cores next to the banks read all weights of all layers; the receivers consume them."""
    *weights, _ = call.tensors
    layers = int(call.arguments.get("num_layers", 1))
    total = float(layers * sum(spec.num_pages * spec.page_bytes for spec in weights))
    cores = max((shard_cores(spec) for spec in weights), default=1)
    ns = call.chip.launch_ns + call.chip.dram.latency_ns + total / call.chip.dram_bytes_per_ns
    return [Launch("DramPrefetcherOperation", "prefetch", cores, ns, Bound.DRAM, data_ns=ns, dram_bytes=total)]


@prices("ttnn.experimental.broadcast_to")
def price_broadcast(call: Call) -> Sequence[Launch]:
    return [run_planned("ExpandDeviceOperation", call.tensors[0], call.outputs[0], call.board, fallback=copy)]
