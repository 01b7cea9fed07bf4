"""Elementwise functions as the vector unit's kernels compute them, bit-exact.

Operations call `apply_function`; the kernels are in the modules beside it, one per family of functions. A 16-bit
destination register has only 65,536 values: each function is evaluated once for all of them and looked up afterwards.
With a 32-bit one, large tensors use torch's function where it is as accurate as the kernel.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.errors import InvalidArgument, NotEmulated
from ttnn_emulator.numerics.bound_stages import Stages
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.functions import (  # noqa: F401  the kernels register themselves
    composed,
    error,
    exponential,
    gamma,
    hyperbolic,
    logarithm,
    piecewise,
    power,
    roots,
    rounding,
    trigonometry,
)
from ttnn_emulator.numerics.functions.kernel_vocabulary import KERNELS
from ttnn_emulator.numerics.functions.lookup_tables import ALL_BF16, apply_table
from ttnn_emulator.numerics.functions.torch_float32 import FLOAT32
from ttnn_emulator.numerics.kernels import formats as format_kernels
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.units.vector_unit import bits, store_bf16, store_fp32

WORK = 24  # fused multiply-adds of an average kernel
TABLES_KEPT = 256

# Kernels that do not store unchanged values, so denormals survive that a store would flush.
LEAVES_ALONE = frozenset({"identity", "hardshrink", "softplus", "fused softplus", "threshold"})
STORES_BITS = frozenset({"bitwise_not"})  # stored as integers: denormals survive


def apply_function(
    name: str, x: torch.Tensor, *params: float, approx: bool = False, fp32_dest: bool = False
) -> torch.Tensor:
    """Apply the kernel of `name` to the destination register values `x`.

    `name` is a member of `ttnn.UnaryOpType` in lower case, `params` its parameters, `approx` its approximate mode.
    """
    if name not in KERNELS:
        raise NotEmulated(f"the elementwise function {name!r} is not emulated")
    if not fp32_dest:
        return apply_table(table_of(name, params, approx), x)
    if not approx and name in FLOAT32 and not exactly(x.numel() * WORK):
        return _flushed(FLOAT32[name](x, *params))
    return torch.from_numpy(_stored(name, params, approx, True, x.contiguous().numpy()))


def applying_function(stages: Stages, name: str, x: torch.Tensor, *params: float) -> torch.Tensor | None:
    """`apply_function` in a 32-bit register on fixed buffers, where torch's function is used; else None."""
    if name not in FLOAT32 or exactly(x.numel() * WORK):
        return None
    function = functools.partial(FLOAT32[name], x, *params)
    return stages.by_torch(function, torch.empty_like(x), format_kernels.drop_denormals_at)


@functools.lru_cache(maxsize=TABLES_KEPT)
def table_of(name: str, params: tuple[float, ...], approx: bool) -> np.ndarray:
    """The results for all bfloat16 arguments, as stored in a 16-bit destination register."""
    return _stored(name, params, approx, False, ALL_BF16)


def _stored(name: str, params: tuple[float, ...], approx: bool, fp32: bool, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = np.asarray(KERNELS[name](x, *params, approx=approx, fp32=fp32), np.float32)
        if name in STORES_BITS:
            return result
        stored = store_fp32(result) if fp32 else store_bf16(result)
        return np.where(bits(result) == bits(x), x, stored) if name in LEAVES_ALONE else stored


def _flushed(values: torch.Tensor) -> torch.Tensor:
    """Flush the denormals of a temporary tensor to zeros of their sign."""
    source = values.contiguous()
    carriers.in_parts(format_kernels.drop_denormals_at, address_of(source), address_of(source), source.numel())
    return source


# -- functions fused into other operations ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Activation:
    """A function with its parameters, applied to the destination register."""

    name: str
    params: tuple[float, ...] = ()
    approx: bool = False

    def __call__(self, x: torch.Tensor, fp32_dest: bool = False) -> torch.Tensor:
        return apply_function(self.name, x, *self.params, approx=self.approx, fp32_dest=fp32_dest)


# Functions whose only parameter is the approximate mode, and the default of that mode.
MODE_ONLY = {
    "gelu": True,
    "exp": False,
    "erf": True,
    "log": False,
    "log2": False,
    "log10": False,
    "log1p": False,
    "tanh": False,
    "mish": False,
    "hardmish": False,
}
SIGMOID_ALL_FACES = 4.0

BY_NAME: dict[str, tuple[str, tuple[float, ...]]] = {
    "relu": ("relu", ()),
    "relu6": ("relu6", ()),
    "gelu": ("gelu", (0.0,)),
    "gelu_approx": ("gelu", (1.0,)),
    "gelu_tanh": ("gelu_tanh", ()),
    "silu": ("silu", ()),
    "sigmoid": ("sigmoid", (SIGMOID_ALL_FACES, 0.0)),
    "sigmoid_approx": ("sigmoid", (SIGMOID_ALL_FACES, 1.0)),
    "hardsigmoid": ("hardsigmoid", ()),
    "hardtanh": ("hardtanh", (-1.0, 1.0)),
    "sqrt": ("sqrt", (0.0,)),
    "rsqrt": ("rsqrt", (0.0,)),
    "exp": ("exp", (1.0,)),
    "recip": ("recip", ()),
    "log": ("log", (1.0,)),
    "log1p": ("log1p", (1.0,)),
    "tanh": ("tanh", (0.0,)),
    "log2": ("log2", (1.0,)),
    "log10": ("log10", (1.0,)),
    "sin": ("sin", ()),
    "cos": ("cos", ()),
    "cosh": ("cosh", ()),
    "sinh": ("sinh", ()),
    "abs": ("abs", ()),
    "abs_int32": ("abs_int32", ()),
    "sign": ("sign", ()),
    "square": ("square", ()),
    "softplus": ("softplus", (1.0, 20.0)),
    "xielu": ("xielu", (0.8, 0.8)),
    "selu": ("selu", (1.67326319217681884765625, 1.05070102214813232421875)),
    "alt_complex_rotate90": ("alt_complex_rotate90", ()),
    "hardmish": ("hardmish", (1.0,)),
    "mish": ("mish", (0.0,)),
    "mish_approx": ("mish", (1.0,)),
}


@functools.lru_cache(maxsize=TABLES_KEPT)
def activation(value: str | UnaryWithParam | Any) -> Activation:
    """The fused function that an operation was passed: a name, a `UnaryWithParam` or a `UnaryOpType`."""
    if isinstance(value, str):
        if value not in BY_NAME:
            raise InvalidArgument(f"no elementwise function is called {value!r}")
        return activation_of(*BY_NAME[value])
    if not isinstance(value, UnaryWithParam):
        value = UnaryWithParam(value)
    return activation_of(value.op_type.name.lower(), value.params)


def activation_of(name: str, params: tuple[float, ...]) -> Activation:
    """The function of a `UnaryOpType` member with the parameters of a `UnaryWithParam`."""
    if name in MODE_ONLY:
        return Activation(name, (), bool(params[0]) if params else MODE_ONLY[name])
    if name == "sigmoid":
        return Activation(name, (), len(params) > 1 and bool(params[1]))
    return Activation(name, params)


# -- chains -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=TABLES_KEPT)
def table_of_chain(chain: tuple[Activation, ...], packed: bool) -> np.ndarray:
    """The table of a chain of functions in a 16-bit destination register; `packed`: after the packer."""
    values = ALL_BF16
    for function in chain:
        values = table_of(function.name, function.params, function.approx)[values.view(np.uint32) >> np.uint32(16)]
    return flush(torch.from_numpy(values)).numpy() if packed else values


def apply_chain(chain: tuple[Activation, ...], x: torch.Tensor, *, fp32_dest: bool = False) -> torch.Tensor:
    """Apply a chain of functions in the destination register."""
    if not fp32_dest:
        return apply_table(table_of_chain(chain, False), x)
    for function in chain:
        x = function(x, fp32_dest=True)
    return x


__all__ = ["Activation", "activation", "activation_of", "apply_chain", "apply_function", "table_of", "table_of_chain"]
