"""`ttnn.model_preprocessing`: the weights of a torch model as TT-NN tensors, named as the model names them.

>>> import torch
>>> from ttnn_emulator.library.models.model_preprocessing import preprocess_model_parameters
>>> parameters = preprocess_model_parameters(initialize_model=lambda: torch.nn.Linear(64, 32).eval())
>>> list(parameters.weight.shape)
[64, 32]
"""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.library.models import parameter_cache
from ttnn_emulator.library.models.module_args import (
    Conv2dArgs,
    ConvTranspose2dArgs,
    GroupNormArgs,
    MaxPool2dArgs,
    ModuleArgs,
    infer_ttnn_module_args,
    merge_ttnn_module_args_into_parameters,
)
from ttnn_emulator.library.models.parameters import ParameterDict, ParameterList, make_parameter_dict, repr_parameters
from ttnn_emulator.library.settings import config
from ttnn_emulator.tensors.tensor import Tensor

# The default for parameters without a rule.
torch_dtype_to_ttnn_dtype = {
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
    """Unchanged, in row-major layout."""
    return ttnn.from_torch(weight.detach(), dtype=dtype)


def fold_batch_norm2d_into_conv2d(conv: Any, bn: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and bias of a convolution equal to `conv` followed by `bn`."""
    if not bn.track_running_stats:
        raise InvalidArgument("only a BatchNorm2d with running statistics can be folded into a convolution")
    factor = bn.weight / torch.sqrt(bn.running_var + bn.eps)
    before = conv.bias if conv.bias is not None else torch.zeros_like(bn.running_mean)
    return conv.weight * factor[:, None, None, None], (before - bn.running_mean) * factor + bn.bias


# -- whole models -----------------------------------------------------------------------------------------------------


def default_preprocessor(model: torch.nn.Module, name: str, ttnn_module_args: Any = None) -> ParameterDict:
    """Parameters of modules whose type has a rule; empty for others."""
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


def from_torch(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], torch.nn.Module] | None = None,
    convert_to_ttnn: Convert | None = None,
    custom_preprocessor: Callable | None = None,
    device: Any = None,
    prefix: str = "",
    run_model: Callable | None = None,
    reader_patterns_cache: dict | None = None,
) -> Any:
    """The parameters of a model; from a cache of the same version if `ttnn.CONFIG.enable_model_cache`."""

    def make() -> Any:
        if initialize_model is None:
            raise InvalidArgument(f"there are no cached weights of {model_name}, and no initialize_model was passed")
        model = initialize_model().eval()
        arguments = infer_ttnn_module_args(model=model, run_model=run_model, device=device)
        parameters = convert_torch_model_to_ttnn_model(
            model,
            convert_to_ttnn=convert_to_ttnn or _always,
            custom_preprocessor=custom_preprocessor,
            name=prefix or "",
            ttnn_module_args=arguments,
        )
        if arguments is not None:
            parameters = merge_ttnn_module_args_into_parameters(parameters, arguments)
        return parameters if isinstance(parameters, list) else make_parameter_dict(parameters)

    if model_name is None or not config.current().enable_model_cache:
        parameters = make()
    else:
        folder = config.current().model_cache_path / model_name.replace("/", "_")
        parameters = parameter_cache.cached(folder, git_hash() if version is None else version, make)
    if device is not None:
        parameters = move_to_device(parameters, device)
    return _modules_of(parameters)


def _modules_of(parameters: Any) -> Any:
    """Replace inferred arguments by modules."""
    if isinstance(parameters, ParameterList):
        return ParameterList(_modules_of(value) for value in parameters)
    if not isinstance(parameters, ParameterDict):
        return parameters
    arguments = parameters.get("ttnn_module_args")
    if arguments is None:
        return make_parameter_dict({name: _modules_of(value) for name, value in parameters.items()})
    if isinstance(arguments, Conv2dArgs) and isinstance(parameters["weight"], torch.Tensor):
        return parameters
    if isinstance(arguments, Conv2dArgs | MaxPool2dArgs):
        name = "Conv2d" if isinstance(arguments, Conv2dArgs) else "MaxPool2d"
        # The library looks up classes that it no longer has.
        raise AttributeError(f"module 'ttnn' has no attribute {name!r}")
    raise InvalidArgument(f"Unsupported ttnn module args: {type(arguments)}")


def preprocess_model(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], torch.nn.Module] | None = None,
    convert_to_ttnn: Convert | None = None,
    custom_preprocessor: Callable | None = None,
    device: Any = None,
    prefix: str = "",
    run_model: Callable | None = None,
    reader_patterns_cache: dict | None = None,
) -> Any:
    """All parameters of a model, on `device` if passed; with `run_model` also the arguments of its modules."""
    return from_torch(
        model_name=model_name,
        version=version,
        initialize_model=initialize_model,
        convert_to_ttnn=convert_to_ttnn,
        custom_preprocessor=custom_preprocessor,
        device=device,
        prefix=prefix,
        run_model=run_model,
        reader_patterns_cache=reader_patterns_cache,
    )


def preprocess_model_parameters(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], torch.nn.Module] | None = None,
    convert_to_ttnn: Convert | None = None,
    custom_preprocessor: Callable | None = None,
    device: Any = None,
    prefix: str = "",
) -> Any:
    """All parameters of a model, on `device` if passed."""
    return preprocess_model(
        model_name=model_name,
        version=version,
        initialize_model=initialize_model,
        convert_to_ttnn=convert_to_ttnn,
        custom_preprocessor=custom_preprocessor,
        device=device,
        prefix=prefix,
    )


def git_hash() -> str | None:
    """The short hash of the checked-out commit; None without git."""
    try:
        return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"]).decode("ascii").strip()
    except (OSError, subprocess.CalledProcessError):
        return None


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
    """The parameters of a module and its submodules."""

    def child(part: torch.nn.Module, key: int | str, arguments: Any) -> Any:
        return convert_torch_model_to_ttnn_model(
            part,
            convert_to_ttnn=convert_to_ttnn,
            custom_preprocessor=custom_preprocessor,
            name=f"{name}.{key}" if name else str(key),
            ttnn_module_args=arguments,
        )

    if isinstance(model, torch.nn.ModuleList):
        of = ttnn_module_args
        return ParameterList(child(part, index, of and of[index]) for index, part in enumerate(model))
    custom = _custom(custom_preprocessor, model, name, convert_to_ttnn, ttnn_module_args)
    if custom:
        return make_parameter_dict(custom)
    parameters = _own_parameters(model, name, convert_to_ttnn)
    for key, part in model.named_children():
        number = int(key) if key.isdigit() else key
        of_child = child(part, key, ttnn_module_args and ttnn_module_args.get(number))
        if of_child:
            parameters[number] = of_child
    return parameters


def preprocess_remaining_children_and_parameters(
    model: torch.nn.Module,
    name: str,
    convert_to_ttnn: Convert,
    custom_preprocessor: Callable | None,
    parameters: Any,
    ttnn_module_args: Any,
    *,
    already_preprocessed_children: Any,
) -> Any:
    """Add children and parameters that the custom preprocessor left out."""
    own = [(key, value) for key, value in model.named_parameters() if "." not in key]
    for key, part in (*model.named_children(), *own):
        if key not in already_preprocessed_children:
            parameters[key] = convert_torch_model_to_ttnn_model(
                part,  # type: ignore[arg-type]
                name=name,
                convert_to_ttnn=convert_to_ttnn,
                custom_preprocessor=custom_preprocessor,
                ttnn_module_args=ttnn_module_args.get(key, None),
            )
    return parameters


def _custom(preprocessor: Callable | None, model: torch.nn.Module, name: str, convert: Convert, given: Any) -> Any:
    if preprocessor is None:
        return None
    names = list(inspect.signature(preprocessor).parameters)
    if len(names) < 2 or not set(names[2:]) <= PREPROCESSOR_OPTIONS:
        raise InvalidArgument(
            f"a custom preprocessor takes a model and its name, then any of {sorted(PREPROCESSOR_OPTIONS)}, not {names}"
        )
    options = {"ttnn_module_args": given, "convert_to_ttnn": convert}
    return preprocessor(model, name, **{key: value for key, value in options.items() if key in names[2:]})


def _own_parameters(model: torch.nn.Module, name: str, convert: Convert) -> ParameterDict:
    own = list(model.named_parameters(recurse=False))
    if not convert(model, name):
        turned = isinstance(model, torch.nn.Linear)
        return ParameterDict({key: value.T.contiguous() if turned and key == "weight" else value for key, value in own})
    by_rule = default_preprocessor(model, name)
    return by_rule or ParameterDict(
        {key: ttnn.from_torch(value.detach(), dtype=torch_dtype_to_ttnn_dtype[value.dtype]) for key, value in own}
    )


def move_to_device(parameters: Any, device: Any) -> Any:
    """The same tree with its tensors on a device."""
    if isinstance(parameters, dict | list):
        keys = parameters if isinstance(parameters, dict) else range(len(parameters))
        for key in list(keys):
            parameters[key] = move_to_device(parameters[key], device)
        return parameters
    return ttnn.to_device(parameters, device) if isinstance(parameters, Tensor) else parameters


__all__ = [
    "Conv2dArgs",
    "ConvTranspose2dArgs",
    "GroupNormArgs",
    "MaxPool2dArgs",
    "ModuleArgs",
    "ParameterDict",
    "ParameterList",
    "convert_torch_model_to_ttnn_model",
    "default_preprocessor",
    "fold_batch_norm2d_into_conv2d",
    "from_torch",
    "git_hash",
    "infer_ttnn_module_args",
    "make_parameter_dict",
    "merge_ttnn_module_args_into_parameters",
    "move_to_device",
    "preprocess_embedding_weight",
    "preprocess_layernorm_parameter",
    "preprocess_linear_bias",
    "preprocess_linear_weight",
    "preprocess_model",
    "preprocess_model_parameters",
    "preprocess_remaining_children_and_parameters",
    "repr_parameters",
]
