"""Cycles of the vector unit per tile, by function, architecture and destination register."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, Arch, DataType
from ttnn_emulator.numerics.functions.apply import BY_NAME, Activation, activation_of
from ttnn_emulator.timing import vector_unit_cycles as counted
from ttnn_emulator.timing.releases import Release

# A function that is not in the table: about twenty instructions per vector.
UNKNOWN = (640, 640)
PLACE = {Arch.WORMHOLE_B0: 0, Arch.BLACKHOLE: 1, Arch.GRAYSKULL: 0}
# Functions under another name in the table.
SAME = {"swish": "silu", "reciprocal": "recip", "logical_not": "logical_not_unary", "log_sigmoid": "logsigmoid"}
# The fast variant of these is chosen by a parameter, not by the approximate mode.
FAST_BY_PARAMETER = frozenset({"sqrt", "rsqrt"})
# Kernels of earlier releases, where they were measured; all are fits. The exponential was squared repeatedly.
EARLIER = {"exp": (1997, 1997), "fp32_to_uint32": (1290, 1290)}
# Formats of the casts in the table.
CAST_NAMES = {
    DataType.FLOAT32: "fp32",
    DataType.BFLOAT16: "fp16b",
    DataType.BFLOAT8_B: "fp16b",
    DataType.BFLOAT4_B: "fp16b",
    DataType.INT32: "int32",
    DataType.UINT32: "uint32",
    DataType.UINT16: "uint16",
    DataType.UINT8: "uint8",
}


def unary_cycles(
    name: str,
    arch: Arch,
    dtype: DataType = DataType.BFLOAT16,
    *,
    approximate: bool = False,
    fp32_dest: bool | None = None,
    release: Release = Release.CURRENT,
) -> float:
    """Cycles of one function of one operand; by default the destination register is as wide as the operand."""
    name = SAME.get(name, name)
    if release is not Release.CURRENT and not approximate and name in EARLIER:
        return _cycles(name, arch, EARLIER)
    if dtype not in FLOAT_DTYPES:
        return _cycles(name, arch, counted.UNARY_INTEGER, counted.UNARY)
    if approximate and name in counted.UNARY_APPROXIMATE:
        return _cycles(name, arch, counted.UNARY_APPROXIMATE)
    if dtype is DataType.FLOAT32 if fp32_dest is None else fp32_dest:
        return _cycles(name, arch, counted.UNARY_FLOAT32, counted.UNARY)
    return _cycles(name, arch, counted.UNARY)


def chain_cycles(
    chain: Sequence[Activation],
    arch: Arch,
    dtype: DataType = DataType.BFLOAT16,
    release: Release = Release.CURRENT,
) -> float:
    """Cycles of functions applied one after the other."""
    return sum(
        [unary_cycles(each.name, arch, dtype, approximate=_is_approximate(each), release=release) for each in chain]
    )


def _is_approximate(function: Activation) -> bool:
    return function.approx or (function.name in FAST_BY_PARAMETER and bool(function.params and function.params[0]))


def binary_cycles(name: str, arch: Arch, dtype: DataType, *, fp32_dest: bool = False) -> float:
    """Cycles of a function of two operands, both in the destination register."""
    if dtype not in FLOAT_DTYPES:
        return _cycles(name, arch, counted.BINARY_INTEGER, counted.BINARY)
    if fp32_dest:
        return _cycles(name, arch, counted.BINARY_FLOAT32, counted.BINARY)
    return _cycles(name, arch, counted.BINARY)


def ternary_cycles(name: str, arch: Arch, *, fp32_dest: bool = False) -> float:
    """Cycles of a function of three operands."""
    if fp32_dest:
        return _cycles(name, arch, counted.TERNARY_FLOAT32, counted.TERNARY)
    return _cycles(name, arch, counted.TERNARY)


def cast_cycles(source: DataType, target: DataType, arch: Arch, release: Release = Release.CURRENT) -> float:
    """Cycles of a cast; the packer converts between floats that need no rounding by the vector unit."""
    if source is target:
        return 0.0
    if source in FLOAT_DTYPES and target in FLOAT_DTYPES:
        rounds = source is DataType.FLOAT32 and target not in BLOCK_FLOAT_DTYPES
        return _cycles("fp32_to_fp16b", arch, counted.TYPECAST) if rounds else 0.0
    start = "fp32" if source in FLOAT_DTYPES else CAST_NAMES.get(source, "uint32")
    end = CAST_NAMES.get(target, "fp16b")
    if end == "uint8":
        start = "fp32" if source in FLOAT_DTYPES else "uint"
    if release is not Release.CURRENT and f"{start}_to_{end}" in EARLIER:
        return _cycles(f"{start}_to_{end}", arch, EARLIER)
    return _cycles(f"{start}_to_{end}", arch, counted.TYPECAST)


def _cycles(name: str, arch: Arch, *tables: counted.Cycles) -> float:
    place = PLACE[arch]
    for table in tables:
        if name in table:
            return float(table[name][place])
    return float(UNKNOWN[place])


_TEXT = re.compile(r"UnaryOpType[:.]+(?P<name>\w+)(?:,\s*params?=\[(?P<params>[^\]]*)\])?")


@functools.lru_cache(maxsize=256)
def _from_text(text: str) -> Activation:
    found = _TEXT.search(text)
    if found is not None:
        params = tuple([float(each) for each in (found["params"] or "").split(",") if each.strip()])
        return activation_of(found["name"].lower(), params)
    name = text.strip().lower()
    if name in BY_NAME:
        kind, params = BY_NAME[name]
        return activation_of(kind, tuple([float(each) for each in params]))
    return activation_of(name, ())


def as_activation(function: Any) -> Activation:
    """A function as the kernels apply it, from any form that plans, arguments and records use."""
    if isinstance(function, Activation):
        return function
    if isinstance(function, UnaryWithParam):
        return activation_of(function.op_type.name.lower(), function.params)
    if isinstance(function, str):
        return _from_text(function)
    if isinstance(function, list | tuple) and function:
        first, *rest = function
        name = first if isinstance(first, str) else first.name
        found = _TEXT.search(name)
        approximate = name.endswith("~")
        kind = (found["name"] if found else name.rstrip("~")).lower()
        made = activation_of(kind, tuple([float(each) for each in rest if isinstance(each, int | float)]))
        return Activation(made.name, made.params, True) if approximate else made
    return activation_of(str(getattr(function, "name", function)).lower(), ())


def activation_cycles(activation: Any, arch: Arch, *, fp32_dest: bool = False) -> float:
    """Cycles of one tile of a function fused into the end of another kernel, where the packer does RELU."""
    function = as_activation(activation)
    name = function.name.removeprefix("fused ")
    if name == "relu":
        return 0.0
    return unary_cycles(name, arch, approximate=_is_approximate(function), fp32_dest=fp32_dest)
