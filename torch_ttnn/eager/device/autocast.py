"""`torch.autocast("ttnn")`: products in bfloat16, and what loses too much there in float32, as torch does on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# torch v2.13: aten/src/ATen/autocast_mode.h, AT_FORALL_LOWER_PRECISION_FP
LOWER = (
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d.input",
    "conv_transpose3d.input", "convolution", "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv",
    "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot",
    "scaled_dot_product_attention",
)  # fmt: skip
# torch v2.13: aten/src/ATen/autocast_mode.h, AT_FORALL_FP32
FLOAT32 = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "layer_norm", "native_layer_norm",
    "group_norm", "nuclear_norm", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss",
    "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
    "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp", "softmax.int",
    "log_softmax.int", "cumprod", "cumsum", "prod", "prod.dim_int", "sum", "sum.dim_IntList",
)  # fmt: skip
# torch v2.13: aten/src/ATen/autocast_mode.h, AT_FORALL_PROMOTE
WIDEST = (
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot",
    "scatter_add", "cat", "stack",
)  # fmt: skip
KEY = "AutocastPrivateUse1"


_libraries: list[Any] = []  # registrations live as long as their library


def register() -> None:
    """Register the rules, once; other operations are not affected."""
    if _libraries:
        return
    library, all_others = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    _libraries.extend((library, all_others))
    all_others.fallback(torch.library.fallthrough_kernel, KEY)
    for names, dtype_of in ((LOWER, _lower), (FLOAT32, _float32), (WIDEST, _widest)):
        for name in names:
            library.impl(name, _rule(name, dtype_of), KEY)


def _rule(name: str, dtype_of: Callable[[Any], torch.dtype]) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    function: Any = None

    def rule(*args: Any, **kwargs: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(getattr(torch.ops.aten, packet), overload or "default")
        excluded = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)  # type: ignore[attr-defined]
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            dtype = dtype_of((args, kwargs))
            return function(*_cast(args, dtype), **_cast(kwargs, dtype))

    return rule


def _lower(arguments: Any) -> torch.dtype:
    return torch.get_autocast_dtype("ttnn")


def _float32(arguments: Any) -> torch.dtype:
    return torch.float32


def _widest(arguments: Any) -> torch.dtype:
    """The widest dtype of the floats among the arguments."""
    wide = any(each.dtype is torch.float32 for each in _tensors(arguments))
    return torch.float32 if wide else torch.get_autocast_dtype("ttnn")


def _tensors(item: Any) -> list[torch.Tensor]:
    if isinstance(item, torch.Tensor):
        return [item]
    if isinstance(item, dict):
        item = item.values()
    elif not isinstance(item, list | tuple):
        return []
    return [tensor for each in item for tensor in _tensors(each)]


def _cast(item: Any, dtype: torch.dtype) -> Any:
    """Floats on `ttnn` in another dtype; float64 is left as it is."""
    if isinstance(item, torch.Tensor):
        is_float = item.is_floating_point() and item.dtype is not torch.float64
        return item.to(dtype) if is_float and item.device.type == "ttnn" and item.dtype is not dtype else item
    if isinstance(item, dict):
        return {name: _cast(each, dtype) for name, each in item.items()}
    if isinstance(item, list | tuple):
        return type(item)([_cast(each, dtype) for each in item])
    return item
