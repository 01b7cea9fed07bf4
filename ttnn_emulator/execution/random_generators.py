"""The random generators of a device's cores: what `ttnn.manual_seed` seeds and `ttnn.sampling` draws from.

The values differ from the card's, whose generator is not emulated; when they repeat, and which cores share a seed,
does match.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRangeSet

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/manual_seed/device/kernels/compute/manual_seed_set_seed.cpp,
# UINT32_MAX
UNCHANGED = 2**32 - 1  # the seed that leaves a generator unchanged
USERS = 32  # users, each on its own core, row by row

_generators: weakref.WeakKeyDictionary[MeshDevice, dict[CoreCoord, torch.Generator]] = weakref.WeakKeyDictionary()


def cores_of_users(grid: tuple[int, int], sub_core_grids: CoreRangeSet | None, users: int = USERS) -> list[CoreCoord]:
    """The core of every user: the given cores, or the first ones of the device's grid, row by row."""
    if sub_core_grids is not None:
        return sub_core_grids.cores(row_wise=True)[:users]
    return [CoreCoord(number % grid[0], number // grid[0]) for number in range(users)]


def seed_cores(device: MeshDevice, cores: Sequence[CoreCoord], seeds: Sequence[int]) -> None:
    generators = _generators.setdefault(device, {})
    for core, seed in zip(cores, seeds):
        if seed != UNCHANGED:
            generators[core] = torch.Generator().manual_seed(seed)


def draw(device: MeshDevice, cores: Sequence[CoreCoord], highest: int) -> torch.Tensor:
    """One number from 0 to `highest` from every core's generator; unseeded generators start at random."""
    generators = _generators.setdefault(device, {})
    numbers = []
    for core in cores:
        if core not in generators:
            generators[core] = torch.Generator().manual_seed(int(torch.randint(0, UNCHANGED, ())))
        numbers.append(torch.randint(0, highest, (), generator=generators[core]))
    return torch.stack(numbers)
