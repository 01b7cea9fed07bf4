"""`ttnn.config_serialization`: memory, compute and program configs as plain data."""

from __future__ import annotations

import json
from typing import Any

from ttnn_emulator.tensors.memory_config import MemoryConfig

COMPUTE_FLAGS = ("fp32_dest_acc_en", "packer_l1_acc", "dst_full_sync_en")


def memory_config_to_dict(memory_config: MemoryConfig) -> dict[str, Any]:
    """A memory config as a dictionary."""
    return {
        "memory_layout": str(memory_config.memory_layout),
        "buffer_type": str(memory_config.buffer_type),
        "shard_spec": str(memory_config.shard_spec),
        "is_sharded": memory_config.is_sharded(),
        "interleaved": not memory_config.is_sharded(),
        "hash": hash(memory_config),
    }


def compute_kernel_config_to_dict(compute_kernel_config: Any) -> dict[str, Any]:
    """A compute kernel config as a dictionary."""
    return {
        "math_fidelity": str(compute_kernel_config.math_fidelity),
        "math_approx_mode": str(compute_kernel_config.math_approx_mode),
        **{name: bool(getattr(compute_kernel_config, name)) for name in COMPUTE_FLAGS},
        "throttle_level": str(compute_kernel_config.throttle_level),
    }


def program_config_to_dict(program_config: Any) -> dict[str, Any]:
    """A program config as a dictionary, with its type."""
    kind = type(program_config).__name__
    if hasattr(program_config, "to_json"):
        return {**json.loads(program_config.to_json()), "type": kind}
    return {"type": kind, "repr": repr(program_config)}
