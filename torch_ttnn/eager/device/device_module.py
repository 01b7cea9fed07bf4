"""`torch.ttnn`: what torch and its users ask of the module of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch_ttnn.eager.device.boards import Board

__all__ = [
    "current_device",
    "device_count",
    "device_name",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "set_device",
    "synchronize",
    "use",
]


def _boards() -> Any:
    from torch_ttnn.eager.device import boards

    return boards


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def device_count() -> int:
    """The number of boards."""
    return len(_boards().all_boards())


def current_device() -> int:
    """The board that `"ttnn"` without an index is: always the first, because torch asks C++, which knows no other."""
    return 0


def set_device(device: Any) -> None:
    if _boards().board_of(device).index:
        raise RuntimeError(f'"ttnn" without an index is always ttnn:0; name the board in place of it: {device!r}')


def use(*wanted: Any) -> None:
    """Choose the boards `ttnn:0`, `ttnn:1` …: names such as "emulator:n150", or open devices."""
    _boards().use(*wanted)


def device_name(device: Any = None) -> str:
    """The name of a board, such as "emulated n150"."""
    return _boards().board_of(device).target.name


def memory_allocated(device: Any = None) -> int:
    """Bytes of DRAM in use on a board."""
    board: Board = _boards().board_of(device)
    ttnn = board.target.ttnn
    view = ttnn.get_memory_view(board.target.device, ttnn.BufferType.DRAM)
    return view.total_bytes_allocated_per_bank * view.num_banks


def synchronize(device: Any = None) -> None:
    """Wait for the work of a board."""
    target = _boards().board_of(device).target
    target.ttnn.synchronize_device(target.device)


def empty_cache() -> None:
    """Drop the programs of single operations, and the constants that they keep on the device."""
    from torch_ttnn.eager.programs import forget_programs

    forget_programs()


# Random numbers are drawn by the generator of the CPU, which torch.manual_seed seeds itself.


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Called by torch.manual_seed, which has seeded the CPU's generator already."""


def get_rng_state(device: Any = None) -> torch.Tensor:
    return torch.default_generator.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    torch.default_generator.set_state(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Asked by `torch.autocast("ttnn")`, whose rules are registered here: that takes longer than everything else."""
    from torch_ttnn.eager.device import autocast

    autocast.register()
    return [torch.bfloat16]
