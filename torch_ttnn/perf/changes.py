"""Changes of calls that may make a program faster; the timing model is asked what each of them gains."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.perf.calls import Call, PlannedCall, Ref
from ttnn_emulator import (
    Conv2dConfig,
    CoreGrid,
    DataType,
    Layout,
    MathFidelity,
    TensorMemoryLayout,
    WormholeComputeKernelConfig,
)
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.families.convolution.plans import Planned as PlannedConvolution
from ttnn_emulator.timing.launches import Launch

Changed = tuple[tuple, dict[str, Any]] | None

PRODUCTS = ("ttnn.matmul", "ttnn.linear")
CONVOLUTIONS = ("ttnn.conv1d", "ttnn.conv2d", "ttnn.conv_transpose2d")
KEEPS_SHARDS = (*CONVOLUTIONS, "ttnn.max_pool2d", "ttnn.avg_pool2d")
# The parameter that contains the fidelity, where it is not `compute_kernel_config`.
COMPUTE_CONFIG = dict.fromkeys(CONVOLUTIONS, "compute_config")
ORDER = (MathFidelity.LoFi, MathFidelity.HiFi2, MathFidelity.HiFi3, MathFidelity.HiFi4)
# Bits of a mantissa with its leading one, and how many of them the first phase of a product sees: more phases see the
# rest of the second operand (HiFi2), of the first (HiFi3), of both (HiFi4). docs/numerics.md
MANTISSA = {DataType.BFLOAT16: 8, DataType.FLOAT32: 11, DataType.BFLOAT8_B: 7, DataType.BFLOAT4_B: 3}
FIRST_PHASE = (7, 5)


def longest(planned: PlannedCall, board: Board) -> Launch | None:
    """The launch that takes most of a call's time."""
    return max(planned.launches(board), key=lambda launch: launch.kernel_ns, default=None)


# -- fidelity ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fidelity:
    """Products of these calls with fewer phases: a fidelity by reference to the call's first result."""

    wanted: Mapping[Hashable, MathFidelity]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        wanted = self.wanted.get(first_result(call))
        if wanted is None:
            return None
        name = COMPUTE_CONFIG.get(call.name, "compute_kernel_config")
        config = kwargs.get(name)
        if config is None:
            config = WormholeComputeKernelConfig(math_fidelity=wanted, packer_l1_acc=True)
        else:
            fields = ("math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc")
            config = type(config)(math_fidelity=wanted, **{field: getattr(config, field) for field in fields})
        return args, {**kwargs, name: config}


def sufficient_fidelity(launch: Launch) -> MathFidelity | None:
    """The lowest fidelity that uses all bits of the operands of a product, if the program uses a higher one."""
    if launch.fidelity is None or len(launch.inputs) < 2:
        return None
    bits = [MANTISSA.get(spec.dtype, max(MANTISSA.values())) for spec in launch.inputs[:2]]
    first, second = (own > seen for own, seen in zip(bits, FIRST_PHASE))
    enough = ORDER[2 * first + second]
    return enough if ORDER.index(enough) < ORDER.index(launch.fidelity) else None


def first_result(call: Call) -> Hashable:
    """A name for a call: the reference to its first result."""
    return next((leaf.key for leaf in leaves(call.results) if isinstance(leaf, Ref)), None)


# -- dtypes and placement ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmallWeights:
    """Weights of products and convolutions in bfloat8_b."""

    weights: Collection[Hashable]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        if call.name in CONVOLUTIONS:
            return args, {**kwargs, "conv_config": _conv_config(kwargs, weights_dtype=DataType.BFLOAT8_B)}
        if call.name not in PRODUCTS:
            return None
        is_second = len(args) > 1
        own = call.args[1] if is_second else call.kwargs.get("input_tensor_b")
        weight = args[1] if is_second else kwargs.get("input_tensor_b")
        if (
            not isinstance(own, Ref)
            or own.key not in self.weights
            or not isinstance(weight, Spec)
            or not _can_shrink(weight)
        ):
            return None
        small = weight.with_(dtype=DataType.BFLOAT8_B)
        if is_second:
            return (args[0], small, *args[2:]), kwargs
        return args, {**kwargs, "input_tensor_b": small}


def _can_shrink(spec: Spec) -> bool:
    wide = (DataType.BFLOAT16, DataType.FLOAT32)
    return spec.layout is Layout.TILE and spec.dtype in wide


@dataclass(frozen=True)
class InL1:
    """These results in L1."""

    results: Collection[Hashable]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        if first_result(call) not in self.results or kwargs.get("memory_config") not in (None, DRAM_MEMORY_CONFIG):
            return None
        return args, {**kwargs, "memory_config": L1_MEMORY_CONFIG}


@dataclass(frozen=True)
class KeptShards:
    """Convolutions and pools leave these results in the shards that they computed.

    schemes  how each convolution is sharded when it can choose: it reshards its input to that
    """

    results: Collection[Hashable]
    schemes: Mapping[Hashable, TensorMemoryLayout]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        if call.name not in KEEPS_SHARDS:
            return None
        kept = dict(kwargs)
        if first_result(call) in self.results:
            kept.pop("memory_config", None)
        source = args[0] if args else kwargs.get("input_tensor")
        scheme = self.schemes.get(first_result(call))
        if scheme is not None and isinstance(source, Spec) and source.is_sharded:
            kept["conv_config"] = _conv_config(kwargs, reshard_if_not_optimal=True, shard_layout=scheme)
        return None if kept == kwargs else (args, kept)


def scheme_of(planned: PlannedCall, board: Board) -> TensorMemoryLayout | None:
    """How a convolution shards its input."""
    settings = (launch.settings for launch in planned.launches(board))
    return next((each.inputs.scheme for each in settings if isinstance(each, PlannedConvolution)), None)


def _conv_config(kwargs: Mapping[str, Any], **changes: Any) -> Any:
    """The config of a convolution with other settings."""
    config = kwargs.get("conv_config")
    fields = {} if config is None else {name: getattr(config, name) for name in config._fields}
    return Conv2dConfig(**{**fields, **changes})


# -- cores ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Everywhere:
    """These products on the whole grid, with a program config of the library's choice."""

    calls: Collection[Hashable]
    grid: tuple[int, int]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        if call.name not in PRODUCTS or first_result(call) not in self.calls:
            return None
        kept = {name: value for name, value in kwargs.items() if name != "program_config"}
        return args, {**kept, "core_grid": CoreGrid(x=self.grid[0], y=self.grid[1])}


@dataclass(frozen=True)
class Interleaved:
    """Sharded operands of these calls interleaved over all cores."""

    calls: Collection[Hashable]

    def __call__(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> Changed:
        if first_result(call) not in self.calls:
            return None

        def spread(leaf: Any) -> Any:
            is_sharded = isinstance(leaf, Spec) and leaf.on_device and leaf.is_sharded
            return leaf.with_(memory_config=L1_MEMORY_CONFIG) if is_sharded else leaf

        kept = {name: value for name, value in kwargs.items() if name not in ("memory_config", "program_config")}
        return mapped(args, spread), mapped(kept, spread)
