"""Registers the device `ttnn` with torch, as torch's plug-ins of devices do when torch is imported.

It takes a millisecond and imports nothing but torch: kernels load the rest at the first tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

NAME = "ttnn"
# The kernels of `kernels.py`, without importing it, by dispatch key.
OF_DEVICE = (
    "empty.memory_format", "empty_strided", "_copy_from",
    "arange", "arange.start", "arange.start_step", "range", "range.step", "linspace", "logspace", "eye", "eye.m",
    "randperm", "randperm.generator", "tril_indices", "triu_indices",
)  # fmt: skip
OF_AUTOGRAD = ("scaled_dot_product_attention", "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")

_initial_keys: list[Any] = []  # the dispatcher's included and excluded keys, outside of any operation
_libraries: list[Any] = []  # registrations live as long as their library


def register() -> None:
    """Register the device, once. It never raises, because `import torch` calls it: it warns."""
    if _libraries:
        return
    try:
        _register()
    except Exception as error:  # of any kind: another plug-in may own the dispatch key
        warnings.warn(
            f"torch_ttnn could not register the device {NAME!r}: {type(error).__name__}: {error}. torch.compile(..., "
            "backend='ttnn') is not affected. TORCH_DEVICE_BACKEND_AUTOLOAD=0 disables plug-ins of devices.",
            stacklevel=2,
        )


def _register() -> None:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as set_up

    from torch_ttnn.eager.device import accelerator, device_module, tied_weights

    keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    _initial_keys.extend(keys)
    set_up(NAME, backend_module=device_module)
    # `torch.tensor(..., device="ttnn")` makes a tensor of the CPU and moves it: a fake mode sees both steps.
    torch._C._set_only_lift_cpu_tensors(True)
    library = torch.library.Library("aten", "IMPL")
    for key, names in (("PrivateUse1", OF_DEVICE), ("AutogradPrivateUse1", OF_AUTOGRAD)):
        for name in names:
            library.impl(name, _loading(name), key)
    accelerator.extend()
    tied_weights.keep_tied()
    _libraries.append(library)


def initial_keys() -> list[Any]:
    return _initial_keys


def _loading(name: str) -> Callable[..., Any]:
    """A kernel that imports its module at its first call."""
    kernel: Callable[..., Any] | None = None

    def load(*args: Any, **kwargs: Any) -> Any:
        nonlocal kernel
        if kernel is None:
            with torch._C.DisableTorchFunction():
                from torch_ttnn.eager.device.kernels import KERNELS

            kernel = KERNELS[name]
        return kernel(*args, **kwargs)

    return load
