"""`ttnn.model_preprocessing`: the weights of a torch model as TT-NN tensors, named as the model names them.

>>> import torch
>>> from ttnn_emulator.model_preprocessing import preprocess_model_parameters
>>> parameters = preprocess_model_parameters(initialize_model=lambda: torch.nn.Linear(64, 32).eval())
>>> list(parameters.weight.shape)
[64, 32]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import InvalidArgument, NotEmulated
from ttnn_emulator.table import ttnn
from ttnn_emulator.tensor import Tensor

# What a parameter becomes that no rule is known for.
DTYPES = {
    torch.uint8: DataType.UINT8,
    torch.int16: DataType.UINT16,
    torch.int32: DataType.INT32,
    torch.int64: DataType.UINT32,
    torch.bfloat16: DataType.BFLOAT16,
    torch.float32: DataType.BFLOAT16,
    torch.float64: DataType.BFLOAT16,
}
PREPROCESSOR_OPTIONS = frozenset({"ttnn_module_args", "convert_to_ttnn"})

Convert = Callable[[torch.nn.Module, str], bool]


class ParameterList(list):
    """Parameters of the modules of a list. `index in parameters` asks whether there is a module of that number."""

    def __contains__(self, index: Any) -> bool:
        return index < len(self)

    def __repr__(self) -> str:
        return _tree(self)


class ParameterDict(dict):
    """Parameters by name, also as attributes."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__

    def __repr__(self) -> str:
        return _tree(self)


def _tree(parameters: Any, indent: str = "") -> str:
    """One line a parameter, children further in."""
    named = parameters.items() if isinstance(parameters, dict) else enumerate(parameters)
    lines = []
    for name, value in named:
        if isinstance(value, dict | list):
            lines += [f"{indent}{name}:", _tree(value, indent + "  ")]
        else:
            shown = value.brief() if isinstance(value, Tensor) else getattr(value, "shape", value)
            lines.append(f"{indent}{name}: {shown}")
    return "\n".join(lines)


def make_parameter_dict(dictionary: dict) -> ParameterDict:
    """A dictionary, and those within it, with names as attributes."""
    if isinstance(dictionary, ParameterDict):
        return dictionary
    made = {key: make_parameter_dict(value) if isinstance(value, dict) else value for key, value in dictionary.items()}
    return ParameterDict(made)


# -- single parameters ------------------------------------------------------------------------------------------------


def preprocess_linear_weight(
    weight: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """[out, in] → [in, out], as `ttnn.linear` takes it."""
    return ttnn.from_torch(weight.detach().T.contiguous(), dtype=dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_linear_bias(
    bias: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """[out] → [1, out]."""
    return ttnn.from_torch(bias.detach().reshape(1, -1), dtype=dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_layernorm_parameter(parameter: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE) -> Tensor:
    """[width] → [1, width]."""
    return ttnn.from_torch(parameter.detach().reshape(1, -1), dtype=dtype, layout=layout)


def preprocess_embedding_weight(weight: torch.Tensor, *, dtype: DataType) -> Tensor:
    """As it is, in rows."""
    return ttnn.from_torch(weight.detach(), dtype=dtype)


def fold_batch_norm2d_into_conv2d(conv: Any, bn: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and bias of a convolution that does what `conv` and `bn` do one after the other."""
    if not bn.track_running_stats:
        raise InvalidArgument("only a BatchNorm2d with running statistics folds into a convolution")
    factor = bn.weight / torch.sqrt(bn.running_var + bn.eps)
    before = conv.bias if conv.bias is not None else torch.zeros_like(bn.running_mean)
    return conv.weight * factor[:, None, None, None], (before - bn.running_mean) * factor + bn.bias


# -- whole models -----------------------------------------------------------------------------------------------------


def default_preprocessor(model: torch.nn.Module, name: str, ttnn_module_args: Any = None) -> ParameterDict:
    """Parameters of the kinds of modules that have a rule; empty for others."""
    found: dict[str, Tensor] = {}
    narrow = DataType.BFLOAT16
    if isinstance(model, torch.nn.Linear):
        found["weight"] = preprocess_linear_weight(model.weight, dtype=narrow)
        if model.bias is not None:
            found["bias"] = preprocess_linear_bias(model.bias, dtype=narrow)
    elif isinstance(model, torch.nn.LayerNorm):
        found["weight"] = preprocess_layernorm_parameter(model.weight, dtype=narrow)
        found["bias"] = preprocess_layernorm_parameter(model.bias, dtype=narrow)
    elif isinstance(model, torch.nn.Embedding):
        found["weight"] = preprocess_embedding_weight(model.weight, dtype=narrow)
    return make_parameter_dict(found)


def preprocess_model_parameters(
    *,
    initialize_model: Callable[[], torch.nn.Module],
    model_name: str | None = None,
    version: str | None = None,
    convert_to_ttnn: Convert | None = None,
    custom_preprocessor: Callable | None = None,
    device: Any = None,
    prefix: str = "",
    run_model: Callable | None = None,
    reader_patterns_cache: dict | None = None,
) -> ParameterDict:
    """All parameters of a model, on `device` if one is given. Nothing is cached on disk, whatever `model_name` is."""
    if run_model is not None:
        raise NotEmulated("the arguments of convolutions and pools are not inferred by running the model")
    model = initialize_model().eval()
    parameters = convert_torch_model_to_ttnn_model(
        model, convert_to_ttnn=convert_to_ttnn or _always, custom_preprocessor=custom_preprocessor, name=prefix
    )
    return parameters if device is None else move_to_device(parameters, device)


def _always(model: torch.nn.Module, name: str) -> bool:
    return True


def convert_torch_model_to_ttnn_model(
    model: torch.nn.Module,
    *,
    convert_to_ttnn: Convert,
    custom_preprocessor: Callable | None,
    name: str,
    ttnn_module_args: Any = None,
) -> Any:
    """The parameters of a module and of those within it."""

    def child(part: torch.nn.Module, key: int | str) -> Any:
        return convert_torch_model_to_ttnn_model(
            part,
            convert_to_ttnn=convert_to_ttnn,
            custom_preprocessor=custom_preprocessor,
            name=f"{name}.{key}" if name else str(key),
        )

    if isinstance(model, torch.nn.ModuleList):
        return ParameterList(child(part, index) for index, part in enumerate(model))
    custom = _custom(custom_preprocessor, model, name, convert_to_ttnn)
    if custom:
        return make_parameter_dict(custom)
    parameters = _own_parameters(model, name, convert_to_ttnn)
    for key, part in model.named_children():
        of_child = child(part, key)
        if of_child:
            parameters[int(key) if key.isdigit() else key] = of_child
    return parameters


def _custom(preprocessor: Callable | None, model: torch.nn.Module, name: str, convert: Convert) -> Any:
    if preprocessor is None:
        return None
    names = list(inspect.signature(preprocessor).parameters)
    if len(names) < 2 or not set(names[2:]) <= PREPROCESSOR_OPTIONS:
        raise InvalidArgument(
            f"a custom preprocessor takes a model and its name, then any of {sorted(PREPROCESSOR_OPTIONS)}, not {names}"
        )
    options = {"ttnn_module_args": None, "convert_to_ttnn": convert}
    return preprocessor(model, name, **{key: value for key, value in options.items() if key in names[2:]})


def _own_parameters(model: torch.nn.Module, name: str, convert: Convert) -> ParameterDict:
    own = list(model.named_parameters(recurse=False))
    if not convert(model, name):
        turned = isinstance(model, torch.nn.Linear)
        return ParameterDict({key: value.T.contiguous() if turned and key == "weight" else value for key, value in own})
    by_rule = default_preprocessor(model, name)
    return by_rule or ParameterDict(
        {key: ttnn.from_torch(value.detach(), dtype=DTYPES[value.dtype]) for key, value in own}
    )


def move_to_device(parameters: Any, device: Any) -> Any:
    """The same tree with its tensors on a device."""
    if isinstance(parameters, dict | list):
        keys = parameters if isinstance(parameters, dict) else range(len(parameters))
        for key in list(keys):
            parameters[key] = move_to_device(parameters[key], device)
        return parameters
    return ttnn.to_device(parameters, device) if isinstance(parameters, Tensor) else parameters
