"""`tt_lib.fallback_ops.conversion_wrapper`: wraps functions of torch tensors for TT-NN tensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ttnn_emulator.enums import Layout, StorageType
from ttnn_emulator.execution import listeners
from ttnn_emulator.hardware.device_opening import GetDefaultDevice
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# Not all torch functions take these.
_WIDER = {torch.bfloat16: torch.float32, torch.uint16: torch.int16, torch.uint32: torch.int32}
_warned = False


def check_log_pytorch_warning(arg: Any) -> None:
    """Warn once that torch tensors should not be passed."""
    global _warned
    if not _warned and torch.is_tensor(arg):
        _warned = True
        warnings.warn("a torch tensor was passed to a fallback operation instead of a TT-NN tensor", stacklevel=3)


@contextmanager
def custom_tensor_print_handler(tensor_cls: type) -> Iterator[None]:
    """Within the block, tensors of this class print as class and shape."""
    assert tensor_cls in (Tensor, torch.Tensor), f"No custom tensor str fn found for class {tensor_cls}"
    name = "ttnn.Tensor" if tensor_cls is Tensor else "torch.Tensor"

    def shown(tensor: Any) -> str:
        parts = ["_".join(map(str, tensor.shape))]
        if tensor_cls is torch.Tensor:
            parts += [str(tensor.layout), str(tensor.dtype), str(tensor.device)]
        return f"{name}({'|'.join(parts)})"

    before = tensor_cls.__str__, tensor_cls.__repr__
    tensor_cls.__str__ = tensor_cls.__repr__ = shown  # type: ignore[assignment]
    try:
        yield
    finally:
        tensor_cls.__str__, tensor_cls.__repr__ = before  # type: ignore[assignment]


def convert_tt_tensor_to_pt_tensor(tt_tensor: Tensor, output_format: dict[str, Any]) -> torch.Tensor:
    """The values as a torch tensor; results go to the device of the first tensor."""
    on_device = tt_tensor.storage_type() == StorageType.DEVICE
    if on_device and output_format["on_device"] and output_format.get("device") is None:
        output_format["device"] = tt_tensor.device()
    values = tt_tensor.cpu().to(Layout.ROW_MAJOR).to_torch()
    return values.to(_WIDER.get(values.dtype, values.dtype))


def convert_pt_tensor_to_tt_tensor(pt_tensor: torch.Tensor, output_format: dict[str, Any]) -> Tensor:
    """A tensor of rank 4 or more: tiled if its size allows, on the device if its row-major form can be there."""
    shape = [1] * (4 - pt_tensor.ndim) + list(pt_tensor.shape)
    values = pt_tensor.bfloat16() if pt_tensor.dtype == torch.float32 else pt_tensor
    tensor = Tensor(values.reshape(shape))
    height, width = list(tensor.padded_shape)[2:4]
    assert output_format["layout"] in (Layout.TILE, Layout.ROW_MAJOR)
    if output_format["layout"] == Layout.TILE and height % 32 == 0 and width % 32 == 0:
        tensor = tensor.to(Layout.TILE)
    if output_format["on_device"] and (tensor.layout == Layout.TILE or width % 2 == 0):
        tensor = tensor.to(output_format["device"])
    return tensor


def _through(value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, dict):
        return {key: _through(each, kind, convert) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_through(each, kind, convert) for each in value]
    return value


def convert_tt_tensors_to_pt_tensors(args: Any, output_format: dict[str, Any]) -> Any:
    check_log_pytorch_warning(args)
    return _through(args, Tensor, lambda tensor: convert_tt_tensor_to_pt_tensor(tensor, output_format))


def convert_pt_tensors_to_tt_tensors(args: Any, output_format: dict[str, Any]) -> Any:
    return _through(args, torch.Tensor, lambda tensor: convert_pt_tensor_to_tt_tensor(tensor, output_format))


def convert_tt_tensors_wrapper(func: Callable) -> Callable:
    """Wrap a function of torch tensors to take and return TT-NN tensors."""

    @functools.wraps(func)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        form = {
            "on_device": kwargs.get("output_on_device", True),
            "layout": kwargs.get("output_layout", Layout.TILE),
        }
        positional = convert_tt_tensors_to_pt_tensors(args, form)
        named = convert_tt_tensors_to_pt_tensors(kwargs, form)
        if form["on_device"] and form.get("device") is None:
            form["device"] = GetDefaultDevice()
        results = convert_pt_tensors_to_tt_tensors(func(*positional, **named), form)
        if listeners.active:
            # The library names such operations so in its profiles.
            listeners.ran_on_host(f"(torch) {func.__name__}", _specs((args, kwargs)), _specs(results))
        return results

    return wrap


def _specs(values: Any) -> list[Spec]:
    found: list[Spec] = []
    _through(values, Tensor, lambda tensor: found.append(tensor.spec))
    return found
