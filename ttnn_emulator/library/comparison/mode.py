"""`ttnn.CONFIG.enable_comparison_mode`: compares every call of the slow runtime mode with its golden function.

Local comparison applies the golden function to the actual inputs. Global comparison applies it to the results of
earlier golden functions, so that accumulated errors show. Operations without a golden function, and calls that it does
not take, are not compared.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.execution import call_hooks
from ttnn_emulator.execution.operation_table import Operation
from ttnn_emulator.library.comparison.records import record_tensor_comparison_data
from ttnn_emulator.tensors import tensor as tensors
from ttnn_emulator.tensors.tensor import Tensor

logger = logging.getLogger(__name__)

_goldens: dict[int, torch.Tensor] = {}  # id of a live tensor → its golden value


def follow(config: Any) -> None:
    """Start or stop comparing, as the settings say."""
    on = config.enable_comparison_mode and not config.enable_fast_runtime_mode
    (call_hooks.add if on else call_hooks.remove)(_compared_call)


def _library() -> Any:
    return sys.modules["ttnn_emulator"]


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, change) for item in value)
    return value


def _plain(tensor: Tensor) -> torch.Tensor:
    return _library().to_torch(tensor)


def _golden(tensor: Tensor) -> torch.Tensor:
    found = _goldens.get(id(tensor))
    return _plain(tensor) if found is None else found


def _compared_call(operation: Operation, proceed: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    golden = operation.golden_function
    if golden is None:
        return proceed(*args, **kwargs)
    # Inputs are read first: the call may overwrite them.
    inputs = [
        (
            [_mapped(arg, change) for arg in args],
            {name: _mapped(arg, change) for name, arg in kwargs.items()},
        )
        for change in (_plain, _golden)
    ]
    result = proceed(*args, **kwargs)
    if not isinstance(result, Tensor):
        return result
    try:
        local, overall = (golden(*positional, **named) for positional, named in inputs)
    except Exception as error:
        logger.warning("%s is not compared: its golden function refused the call (%s)", operation.name, error)
        return result
    if not isinstance(local, torch.Tensor) or local.numel() != result.volume():
        return result
    if id(result) not in _goldens:
        weakref.finalize(result, _goldens.pop, id(result), None)
    _goldens[id(result)] = overall
    _compare(operation.name, result, local, overall)
    return result


def _compare(name: str, result: Tensor, local: torch.Tensor, overall: torch.Tensor) -> None:
    config = _library().CONFIG
    actual, desired = _plain(result).float().flatten(), config.comparison_mode_pcc
    found = {
        kind: _record(result, _library().pearson_correlation_coefficient(golden.float().flatten(), actual), desired)
        for kind, golden in (("local", local), ("global", overall))
    }
    record_tensor_comparison_data(
        local_tensor_comparison_records=[found["local"]],
        global_tensor_comparison_records=[found["global"]],
        tensors=[_described(found[kind]["golden_tensor_id"], local) for kind in found],
    )
    for kind, record in found.items():
        if not record["matches"]:
            message = f"{name}: the {kind} comparison gives a PCC of {record['actual_pcc']}, below {desired}"
            if config.comparison_mode_should_raise_exception:
                raise InvalidArgument(message, hint="ttnn.CONFIG.comparison_mode_pcc is the threshold.")
            logger.error(message)


def _record(result: Tensor, pcc: float, desired: float) -> dict[str, Any]:
    return {
        "tensor_id": result.tensor_id,
        "golden_tensor_id": next(tensors._tensor_ids),
        "matches": bool(pcc >= desired),
        "desired_pcc": desired,
        "actual_pcc": float(pcc),
    }


def _described(number: int, golden: torch.Tensor) -> dict[str, Any]:
    return {
        "tensor_id": number,
        "shape": str(list(golden.shape)),
        "dtype": str(golden.dtype),
        "layout": "",
        "storage_type": "HOST",
    }
