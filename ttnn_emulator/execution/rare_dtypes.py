"""Which operations are emulated for fp8_e4m3 and int8; all others refuse these dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.tensors.spec import Spec

HOST_CAST = "ttnn.to_dtype"  # takes int8: it never reaches the device
HOST_MOVES = ("ttnn.to_layout",)  # take int8 on the host

TAKE_FP8 = frozenset(
    {"ttnn.typecast", HOST_CAST}
    | {
        f"ttnn.experimental.deepseek_prefill.{name}"
        for name in (
            "update_padded_kv_cache",
            "zero_padded_kv_cache",
            "per_token_cast_to_fp8",
            "per_token_cast_back",
            "pack_scaled_fp8_kv_cache",
        )
    }
)
RETURN_FP8 = TAKE_FP8 | {"ttnn.empty"}
RARE_DTYPES = frozenset({DataType.INT8, DataType.FP8_E4M3})


def require_emulated_inputs(name: str, values: Iterable[Any]) -> None:
    """Refuse specs, or tuples of specs, of a dtype that this operation is not emulated for."""
    for value in values:
        if value.__class__ is Spec:
            if value.dtype in RARE_DTYPES:
                _require_emulated(name, value)
        elif value.__class__ is tuple:
            require_emulated_inputs(name, value)


def _require_emulated(name: str, spec: Spec) -> None:
    if spec.dtype is DataType.FP8_E4M3:
        if name not in TAKE_FP8:
            raise NotEmulated(f"{name} of fp8_e4m3 is not emulated")
    elif name != HOST_CAST and (name not in HOST_MOVES or spec.on_device):
        raise NotEmulated("tensors of int8 can be created, moved and read back; no operation on the device is emulated")


def require_emulated_outputs(name: str, specs: Iterable[Spec]) -> None:
    for spec in specs:
        if spec.dtype is DataType.FP8_E4M3 and name not in RETURN_FP8:
            raise NotEmulated(f"{name} to fp8_e4m3 is not emulated")
