"""Checks and plan helpers shared by many families."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import BufferType, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import normalize_dim
from ttnn_emulator.tensors.spec import Spec


def require_on_device(spec: Spec, name: str = "the input tensor") -> None:
    require(spec.on_device, f"{name} must be on a device, it is on the host")


def require_tile(spec: Spec, name: str = "the input tensor") -> None:
    require(spec.is_tile, f"{name} must be in TILE layout, it is in {spec.layout}")


def into(output: Any, name: str = "output_tensor") -> tuple[str, ...]:
    """The `into` of a plan: the result goes to the preallocated output, if there is one."""
    return () if output is None else (name,)


def memory_of(memory_config: MemoryConfig | None, like: Spec) -> MemoryConfig:
    """The requested memory config, or the input's."""
    return memory_config if memory_config is not None else like.memory_config


def dim_of(dim: int, spec: Spec) -> int:
    """A non-negative dimension; refuses one out of range."""
    require(-spec.rank <= dim < max(spec.rank, 1), f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    return normalize_dim(dim, max(spec.rank, 1))


def free_l1() -> int:
    """Bytes of L1 per core below its lowest tensor, on the device of the call that is being prepared."""
    device = current_device()
    if device is None:
        return current_board().l1_bank_bytes
    memory = device.memory(BufferType.L1)
    lowest = memory.lowest_used_address
    return memory.bank_bytes if lowest is None else lowest - memory.base


def math_config(
    given: Any,
    *,
    fidelity: MathFidelity = MathFidelity.LoFi,
    approx: bool = True,
    fp32_acc: bool = False,
    l1_acc: bool = False,
    inner_block: int | None = None,
) -> MathConfig:
    """The caller's compute kernel config, or the operation's defaults. The library does not merge the two.

    A config without a fidelity runs as LoFi: the kernel gets only the first phase.
    """
    if given is None:
        return MathConfig(fidelity, fp32_acc, approx, l1_acc, inner_block)
    chosen = given.math_fidelity if given.math_fidelity is not MathFidelity.Invalid else MathFidelity.LoFi
    return MathConfig(chosen, given.fp32_dest_acc_en, given.math_approx_mode, given.packer_l1_acc, inner_block)


def hashed(spec: Spec | None, *, rows: bool = False) -> tuple | None:
    """The program hash of elementwise programs: the shape matters if shards, or with `rows` pages, depend on it."""
    if spec is None:
        return None
    shape = spec.padded_shape if spec.is_sharded or (rows and not spec.is_tile) else None
    return spec.dtype, spec.layout, spec.memory_config, spec.tile, shape
