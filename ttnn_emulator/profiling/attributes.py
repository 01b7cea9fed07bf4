"""What a row of the sheet says of a program besides its times: attributes, fidelity, tensors, hash."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.conv.sliding_window import Window
from ttnn_emulator.ops.matmul.program_configs import Program as MatmulProgram
from ttnn_emulator.ops.pool.sharding import Pool
from ttnn_emulator.profiling.recorder import plain_arguments
from ttnn_emulator.profiling.timeline import Program
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.families.convolution.plans import Planned as PlannedConvolution
from ttnn_emulator.timing.families.convolution.plans import convolution_of

# What every compute kernel has that no config was passed for.
# tt-metal v0.77.0: tt_metal/api/tt-metalium/kernel_types.hpp, ComputeConfig, math_fidelity
DEFAULT_FIDELITY = MathFidelity.HiFi4
HIDDEN = frozenset({"how", "pool", "asked", "device", "mesh_device"})  # the emulator's own records, and devices

Text = dict[str, str]


def tensors_of(program: Program) -> tuple[Sequence[Spec], Sequence[Spec]]:
    """What a program reads and writes; nothing if it is one of several and they are not known."""
    launch = program.launch
    if launch.inputs or launch.outputs:
        inputs, outputs = launch.inputs, launch.outputs
    elif program.only:
        inputs, outputs = inputs_of(program.record.arguments), tuple(program.record.outputs)
    else:
        return (), ()
    if len(inputs) == 2 and "bias" in program.record.arguments and launch.settings is not None and program.only:
        inputs = inputs_of(program.record.arguments)  # of a matmul: its bias as well
    return inputs, outputs


def inputs_of(arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
    """The tensor arguments of a call."""
    found: list[Spec] = []
    for value in arguments.values():
        found += [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Spec)]
    return tuple(found)


def fidelity_of(program: Program) -> MathFidelity | None:
    """The fidelity of the compute kernel; None if there is none."""
    launch = program.launch
    if launch.fidelity is not None:
        return launch.fidelity
    if not launch.compute_ns:
        return None
    config = program.record.arguments.get("compute_kernel_config")
    given = getattr(config, "math_fidelity", None)
    return given if isinstance(given, MathFidelity) else DEFAULT_FIDELITY


# -- text -------------------------------------------------------------------------------------------------------------


def attributes(program: Program) -> str:
    """The attributes as the profiler writes them: `{'name': 'value'; …}`."""
    found: Text = {}
    if program.only:
        arguments = plain_arguments(program.record)
        found = {name: text(value) for name, value in arguments.items() if name not in HIDDEN}
    settings = program.launch.settings
    describe = _SETTINGS.get(type(settings))
    if describe is not None:
        found |= describe(settings)
    return "{" + "; ".join(f"'{name}': '{value}'" for name, value in found.items()) + "}"


def _matmul(config: MatmulProgram) -> Text:
    fields = {"compute_with_storage_grid_size": f"(x={config.grid[0]},y={config.grid[1]})"}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, bool | int):
            fields[field.name] = str(int(value))
    return {"program_config": _record(config.kind.value, fields)}


def _convolution(planned: PlannedConvolution) -> Text:
    blocks, settings = planned.blocks, planned.settings
    sizes = {
        "act_block_h_ntiles": blocks.act_h,
        "act_block_w_ntiles": blocks.act_w,
        "out_subblock_h_ntiles": blocks.sub_h,
        "out_subblock_w_ntiles": blocks.sub_w,
    }
    spread = {
        "num_cores_nhw": planned.inputs.rows,
        "num_cores_c": planned.inputs.channels,
        "per_core_out_matrix_height_ntile": blocks.out_h,
        "per_core_out_matrix_width_ntile": blocks.out_w,
    }
    return {
        **_window(planned.problem.window),
        "block_config": _record("Conv2dBlockConfig", sizes),
        "parallelization_config": _record("Conv2dParallelizationConfig", spread),
        "memory_config": f"MemoryConfig(memory_layout=TensorMemoryLayout::{planned.inputs.scheme.name})",
        "enable_act_double_buffer": text(settings.enable_act_double_buffer),
        "enable_split_reader": text(convolution_of(planned).splits),
        "output_channels": str(planned.problem.out_channels),
    }


def _pool(pool: Pool) -> Text:
    kind = "AVG_POOL2D" if pool.average else "MAX_POOL2D"
    return {**_window(pool.window), "pool_type": f"Pool2DType::{kind}", "output_layout": text(pool.layout)}


def _window(window: Window) -> Text:
    top, bottom, left, right = window.padding
    fields = {
        "batch_size": window.batch,
        "input_hw": _pair(window.size),
        "window_hw": _pair(window.kernel),
        "stride_hw": _pair(window.stride),
        "padding": f"({_pair((top, bottom))},{_pair((left, right))})",
        "dilation_hw": _pair(window.dilation),
        "is_transpose": int(window.transposed),
    }
    return {"sliding_window_config": _record("SlidingWindowConfig", fields)}


_SETTINGS: dict[type, Callable[[Any], Text]] = {
    MatmulProgram: _matmul,
    PlannedConvolution: _convolution,
    Pool: _pool,
    Window: _window,
}


def _record(name: str, fields: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{field}={value}' for field, value in fields.items())})"


def _pair(values: Sequence[int]) -> str:
    return f"({values[0]},{values[1]})"


def text(value: Any) -> str:
    """An attribute's value in the library's notation."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}::{value.name}"
    if isinstance(value, MemoryConfig | CoreRangeSet):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(text(each) for each in value) + "]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ", ".join(f"{each.name}={text(getattr(value, each.name))}" for each in dataclasses.fields(value))
        return f"{type(value).__name__}({fields})"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return str(value)


def program_hash(program: Program) -> int:
    """A number that is the same for equal programs."""
    said = repr((program.launch.program, program.record.operation, attributes(program), tensors_of(program)))
    return int.from_bytes(hashlib.blake2b(said.encode(), digest_size=8).digest(), "big")


# -- tensors ----------------------------------------------------------------------------------------------------------


def tensor_cells(prefix: str, spec: Spec, chip: int) -> Text:
    """The columns of one tensor."""
    shape, padded = ([1] * (4 - len(each)) + list(each) for each in (spec.shape, spec.padded_shape))
    cells = {
        f"{prefix}_{axis}_PAD[LOGICAL]": f"{size}[{logical}]"
        for axis, size, logical in zip("WZYX", padded[-4:], shape[-4:])
    }
    cells[f"{prefix}_LAYOUT"] = spec.layout.name
    cells[f"{prefix}_DATATYPE"] = spec.dtype.name
    config = spec.memory_config
    place = f"DEV_{chip}_{config.buffer_type.name}_{config.memory_layout.name}"
    cells[f"{prefix}_MEMORY"] = place if spec.on_device else "HOST"
    return cells
