"""Functions to write cases of convolutions with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ttnn_emulator.conformance.case import DEVICE, C, Case, E, T, call

SCHEMES = tuple(E(f"TensorMemoryLayout.{name}_SHARDED") for name in ("HEIGHT", "WIDTH", "BLOCK"))
SLICINGS = ("Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth", "Conv2dL1Full")
ACTIVATIONS = tuple(
    C("UnaryWithParam", E(f"UnaryOpType.{name}")) for name in ("RELU", "GELU", "SILU", "SIGMOID", "EXP")
)
KERNELS: tuple[dict[str, Any], ...] = (
    {"math_fidelity": E("MathFidelity.LoFi")},
    {"math_fidelity": E("MathFidelity.HiFi2"), "fp32_dest_acc_en": True},
    {"fp32_dest_acc_en": True, "packer_l1_acc": True},
    {"packer_l1_acc": True},
    {"math_approx_mode": True, "dst_full_sync_en": True},
)


def settings(kind: str = "Conv2dConfig", **fields: Any) -> Case:
    """A convolution's config; weights are bfloat16 by default."""
    given = {"weights_dtype": E("bfloat16")} | {name: value for name, value in fields.items() if value is not None}
    return C(kind, **given)


AUTOMATIC = settings(weights_dtype=E("bfloat8_b"))


def named(name: str, value: Any) -> dict[str, Any]:
    """One argument."""
    return {name: value}


def compute(**fields: Any) -> Case:
    return C("WormholeComputeKernelConfig", **fields)


def slicing(kind: str, count: int | None) -> Case:
    given = {"slice_type": E(kind)}
    return C("Conv2dSliceConfig", **given) if count is None else C("Conv2dSliceConfig", **given, num_slices=count)


@dataclass(frozen=True)
class Image:
    """Images [1, 1, batch × height × width, channels] and matching weights."""

    in_channels: int = 16
    out_channels: int = 32
    size: tuple[int, int] = (8, 8)
    kernel: tuple[int, ...] = (3, 3)
    batch: int = 1
    groups: int = 1
    dtype: str = "bfloat16"
    layout: str = "ROW_MAJOR"
    mem: Any = "DRAM"
    weight_dtype: str = "bfloat16"

    def weight(self, op: str = "conv2d") -> Case:
        taps = tuple((*self.kernel, 1, 1)[:2])
        groups = max(self.groups, 1)
        if "transpose" in op:
            shape = (self.in_channels, self.out_channels // groups, *taps)
        else:
            shape = (self.out_channels, self.in_channels // groups, *taps)
        layout = "TILE" if self.weight_dtype.endswith("_b") else "ROW_MAJOR"
        return T(shape, self.weight_dtype, layout, host=True)

    def bias(self) -> Case:
        layout = "TILE" if self.weight_dtype.endswith("_b") else "ROW_MAJOR"
        return T((1, 1, 1, self.out_channels), self.weight_dtype, layout, host=True)

    def call(
        self,
        op: str = "conv2d",
        *,
        source: Case | None = None,
        weight: Case | None = None,
        bias: bool = False,
        slicing: Case | None = None,
        **more: Any,
    ) -> Case:
        """A convolution of the image; arguments may be replaced by name."""
        high, wide = self.size
        shape = (1, 1, self.batch * high * wide, self.in_channels)
        arguments: dict[str, Any] = {
            "input_tensor": source or T(shape, self.dtype, self.layout, self.mem),
            "weight_tensor": weight or self.weight(op),
            "device": DEVICE,
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "batch_size": self.batch,
            "input_height": high,
            "input_width": wide,
            "kernel_size": list(self.kernel),
        }
        if self.groups != 1:
            arguments["groups"] = self.groups
        if bias:
            arguments["bias_tensor"] = self.bias()
        if slicing is not None:
            arguments["dram_slice_config" if "transpose" in op else "slice_config"] = slicing
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in more.items()}
        return call(f"ttnn.{op}", **(arguments | given))
