"""Infers the arguments of convolutions, pools and group norms of a torch model by running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.library.dot_access import make_dot_access_dict


class ModuleArgs(dict):
    """Arguments of one module."""


class _NamedArgs(ModuleArgs):
    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__


class Conv2dArgs(_NamedArgs):
    """Arguments of a `torch.nn.Conv2d`."""


class ConvTranspose2dArgs(_NamedArgs):
    """Arguments of a `torch.nn.ConvTranspose2d`."""


class MaxPool2dArgs(_NamedArgs):
    """Arguments of a `torch.nn.MaxPool2d`."""


class GroupNormArgs(_NamedArgs):
    """Arguments of a `torch.nn.GroupNorm`."""


_WINDOW = ("kernel_size", "stride", "padding")
_CHANNELS = ("in_channels", "out_channels")
# ttnn/model_preprocessing.py, infer_ttnn_module_args: kind of module, its arguments, attributes of it in their order.
RULES: tuple[tuple[Any, type[ModuleArgs], tuple[str, ...]], ...] = (
    (torch.nn.Conv2d, Conv2dArgs, (*_CHANNELS, *_WINDOW, "dilation", "groups", "padding_mode")),
    (
        torch.nn.ConvTranspose2d,
        ConvTranspose2dArgs,
        (*_CHANNELS, *_WINDOW, "output_padding", "dilation", "groups", "padding_mode"),
    ),
    (torch.nn.MaxPool2d, MaxPool2dArgs, (*_WINDOW, "dilation")),
    (torch.nn.GroupNorm, GroupNormArgs, ("num_groups", "num_channels", "eps", "affine")),
)


def _arguments(module: torch.nn.Module, shape: torch.Size, device: Any) -> ModuleArgs | None:
    rule = next((rule for rule in RULES if isinstance(module, rule[0])), None)
    if rule is None:
        return None
    _, args, names = rule
    found = args({name: getattr(module, name) for name in names})
    found["batch_size"] = shape[0]
    if args is MaxPool2dArgs:
        found["input_channels"] = shape[1]
    found |= {"input_height": shape[-2], "input_width": shape[-1]}
    if args in (Conv2dArgs, ConvTranspose2dArgs):
        found |= {"math_fidelity": MathFidelity.HiFi4, "dtype": DataType.BFLOAT16, "weights_dtype": DataType.BFLOAT16}
        found |= {"use_1d_systolic_array": True, "enable_auto_formatting": False}
        found |= {"conv_blocking_and_parallelization_config_override": {}, "device": device}
    else:
        found["dtype"] = DataType.BFLOAT16
    return found


def infer_ttnn_module_args(*, model: torch.nn.Module, run_model: Callable | None, device: Any) -> Any:
    """Arguments of every module that `run_model(model)` calls, nested like the calls, by the last part of its name."""
    if run_model is None:
        return None
    calls: list[dict[Any, Any]] = [{}]
    names = {id(module): name for name, module in model.named_modules()}

    def before(module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        calls.append({"input": _first_shape((args, kwargs))})

    def after(module: torch.nn.Module, args: tuple, output: Any) -> None:
        found = calls.pop()
        shape = found.pop("input")
        key = names[id(module)].rsplit(".", 1)[-1]
        arguments = None if shape is None else _arguments(module, shape, device)
        calls[-1][key] = found if arguments is None else arguments
        if key.isdigit():
            calls[-1][int(key)] = calls[-1][key]

    handles = []
    for module in model.modules():
        handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(module.register_forward_hook(after))
    try:
        run_model(model)
    finally:
        for handle in handles:
            handle.remove()
    if "" not in calls[0]:
        raise InvalidArgument("run_model did not call the model")
    return make_dot_access_dict(calls[0], ignore_types=(ModuleArgs,))[""]


def _first_shape(values: Any) -> torch.Size | None:
    if isinstance(values, torch.Tensor):
        return values.shape
    inner = values.values() if isinstance(values, dict) else values if isinstance(values, tuple | list) else ()
    return next((shape for shape in map(_first_shape, inner) if shape is not None), None)


def merge_ttnn_module_args_into_parameters(parameters: Any, ttnn_module_args: Any, path: Any = ()) -> Any:
    """Merge the arguments of modules into their parameters, without the device."""
    if isinstance(ttnn_module_args, ModuleArgs):
        ttnn_module_args.pop("device", None)
        parameters["ttnn_module_args"] = ttnn_module_args
        return parameters
    for key in parameters:
        if key not in ttnn_module_args:
            continue
        here = [*path, str(key)]
        if isinstance(parameters[key], dict) and isinstance(ttnn_module_args[key], dict):
            merge_ttnn_module_args_into_parameters(parameters[key], ttnn_module_args[key], here)
        elif parameters[key] != ttnn_module_args[key]:
            raise InvalidArgument(f"Conflict at {'.'.join(here)}")
    return parameters
