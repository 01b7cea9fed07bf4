"""`ttnn.operation_tracer`: writes every call of the slow runtime mode to a JSON file, with arguments and result.

Files go to TTNN_OPERATION_TRACE_DIR, or to the folder `operation_parameters` of the reports. Tests and the sweep
framework assign to its private names, which are therefore in the library's module.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.execution import call_hooks
from ttnn_emulator.execution.operation_table import Operation
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.library.settings.config_serialization import (
    compute_kernel_config_to_dict,
    memory_config_to_dict,
    program_config_to_dict,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

LIBRARY_PRIVATE = ("_ENABLE_TRACE", "_OPERATION_COUNTER", "_SERIALIZE_TENSOR_VALUES", "_SWEEP_SOURCE_HASH")
_ENABLE_TRACE = False
_OPERATION_COUNTER = 0
_SERIALIZE_TENSOR_VALUES = False
_SWEEP_SOURCE_HASH: str | None = None

FLAG = "--trace-params"
FOLDER_VARIABLE = "TTNN_OPERATION_TRACE_DIR"
_writing: list[bool] = []


def _module() -> Any:
    from ttnn_emulator.namespaces import namespace

    return namespace("ttnn.operation_tracer")


def enable_tracing(enable: bool = True) -> None:
    """Start or stop writing calls."""
    _module()._ENABLE_TRACE = enable


def is_tracing_enabled() -> bool:
    return bool(_module()._ENABLE_TRACE) or FLAG in sys.argv


def _follow(enabled: Any) -> None:
    (call_hooks.add if enabled or FLAG in sys.argv else call_hooks.remove)(_written_call)


ON_SET: dict[str, Callable[[Any], None]] = {"_ENABLE_TRACE": _follow}


def enable_tensor_value_serialization(enable: bool = True) -> None:
    """Whether files include the values of tensors."""
    _module()._SERIALIZE_TENSOR_VALUES = enable


def set_sweep_source_hash(hash_value: str | None = None) -> None:
    """Write the hash of the sweep vector to every file."""
    _module()._SWEEP_SOURCE_HASH = hash_value


# -- values as JSON ---------------------------------------------------------------------------------------------------


def _mesh(device: MeshDevice) -> dict[str, Any]:
    return {"shape": list(device.shape), "device_ids": device.get_device_ids()}


def _values(tensor: torch.Tensor) -> dict[str, Any]:
    array = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).detach().numpy()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "values": array.tolist()}


def _described(tensor: Tensor, with_values: bool) -> dict[str, Any]:
    device = tensor.device()
    several = device is not None and device.num_devices > 1
    spread: dict[str, Any] = {}
    if not several:  # the distribution over several chips is not recorded
        topology = tensor.tensor_topology()
        spread["placements"] = [type(placement).__name__ for placement in topology.placements()]
        spread["distribution_shape"] = list(topology.distribution_shape())
    if device is not None:
        spread |= _mesh(device)
    facts: dict[str, Any] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
    if with_values:
        facts = _values(sys.modules["ttnn_emulator"].to_torch(tensor))
    return {
        "type": "ttnn.Tensor",
        "original_shape": list(tensor.shape),
        "original_dtype": str(tensor.dtype),
        "mesh_device": spread,
        **facts,
        "layout": str(tensor.layout),
        "storage_type": str(tensor.storage_type()),
        "memory_config": memory_config_to_dict(tensor.memory_config()),
    }


def _as_json(value: Any, with_values: bool) -> Any:
    if isinstance(value, Tensor):
        return _described(value, with_values)
    if isinstance(value, torch.Tensor):
        facts = _values(value) if with_values else {"shape": list(value.shape), "dtype": str(value.dtype)}
        return {"type": "torch.Tensor", **facts}
    if isinstance(value, int | float | bool | str | type(None)):
        return value
    if isinstance(value, list | tuple):
        return [_as_json(item, with_values) for item in value]
    if isinstance(value, dict):
        return {name: _as_json(item, with_values) for name, item in value.items()}
    if isinstance(value, MeshDevice):
        return {"type": "MeshDevice", "repr": str(value), **_mesh(value)}
    if isinstance(value, MemoryConfig):
        return memory_config_to_dict(value)
    kind = type(value).__name__
    if kind.endswith("ComputeKernelConfig"):
        return compute_kernel_config_to_dict(value)
    if "Matmul" in kind and "ProgramConfig" in kind:
        return program_config_to_dict(value)
    return {"type": kind, "repr" if hasattr(value, "__dict__") else "value": str(value)}


def serialize_operation_parameters(
    operation_name: str,
    function_args: tuple[Any, ...],
    function_kwargs: dict[str, Any],
    log_dir: pathlib.Path,
    return_value: Any = None,
    serialize_tensor_values: bool = True,
) -> None:
    """Write one call to its own file: number, arguments, result."""
    if _writing:  # calls that read values are not part of the trace
        return
    _writing.append(True)
    try:
        module = _module()
        module._OPERATION_COUNTER += 1
        number = module._OPERATION_COUNTER
        record: dict[str, Any] = {
            "operation_id": number,
            "operation_name": operation_name,
            "args": [
                {"position": place, "value": _as_json(arg, serialize_tensor_values)}
                for place, arg in enumerate(function_args)
            ],
            "kwargs": _as_json(function_kwargs, serialize_tensor_values),
        }
        if module._SWEEP_SOURCE_HASH:
            record["sweep_source_hash"] = module._SWEEP_SOURCE_HASH
        if return_value is not None:
            record["return_value"] = _as_json(return_value, serialize_tensor_values)
        moment = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")
        name = operation_name.replace("::", "_").replace(".", "_")
        folder = pathlib.Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=2, default=str)
        (folder / f"{number}_{name}_{moment}.json").write_text(text, encoding="utf-8")
    finally:
        _writing.pop()


def _folder() -> pathlib.Path:
    folder = os.environ.get(FOLDER_VARIABLE)
    root = sys.modules["ttnn_emulator"].CONFIG.root_report_path
    return pathlib.Path(folder) if folder else pathlib.Path(root) / "operation_parameters"


def _write(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> None:
    serialize_operation_parameters(
        name, args, kwargs, _folder(), result, serialize_tensor_values=bool(_module()._SERIALIZE_TENSOR_VALUES)
    )


def _written_call(operation: Operation, proceed: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    result = proceed(*args, **kwargs)
    if not sys.modules["ttnn_emulator"].CONFIG.enable_fast_runtime_mode:
        _write(operation.name, args, kwargs, result)
    return result


def wrap_function_for_tracing(original_function: Any, operation_name: str) -> Any:
    """Wrap a custom function so that its calls are written, too."""
    if isinstance(original_function, Operation):
        return original_function

    @functools.wraps(original_function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original_function(*args, **kwargs)
        if is_tracing_enabled():
            _write(operation_name, args, kwargs, result)
        return result

    return wrapped


if FLAG in sys.argv:
    call_hooks.add(_written_call)
