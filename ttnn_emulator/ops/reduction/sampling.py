"""Sampling of tokens: scaling by temperature, truncation to top-k and top-p, and a random draw per user."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.execution.random_generators import cores_of_users, draw, seed_cores
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import CARRIER, round_bf16_nearest_even
from ttnn_emulator.numerics.programs.reduction.ordering import best_of_rows
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

INTEGERS = (DataType.UINT32, DataType.INT32)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/sampling/device/sampling_device_operation.cpp, num_users
MOST_USERS = 32
CHOICES = 32  # candidates per user: one tile's width
LATTICE = 65536  # number of equidistant values of a draw in [0, 1)


@operation("ttnn.sampling")
def sampling(
    input_values_tensor: Spec,
    input_indices_tensor: Spec,
    k: Spec,
    p: Spec,
    temp: Spec,
    *,
    seed: int | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """Draw one token per user. `temp` multiplies the values; k = 1 takes the largest.

    A seed other than 0 seeds the generator of every user's core, as `ttnn.manual_seed` does; otherwise the
    generators keep their state.
    """
    values, indices = input_values_tensor, input_indices_tensor
    for spec in (values, indices, k, p, temp):
        require_on_device(spec)
    _require_inputs(values, indices)
    users = values.shape[2]
    if sub_core_grids is not None:
        count = sub_core_grids.num_cores()
        require(count >= users, f"{users} users need as many cores, sub_core_grids has {count}")
    require(seed is None or seed >= 0, f"the seed must not be negative, it is {seed}")
    for name, spec, allowed in (
        ("k", k, INTEGERS),
        ("p", p, (DataType.BFLOAT16,)),
        ("temp", temp, (DataType.BFLOAT16,)),
    ):
        require(spec.dtype in allowed, f"{name} cannot be {spec.dtype}")
        require(not spec.is_tile, f"{name} must be in ROW_MAJOR layout")
        require(spec.shape == (users,), f"{name} must have one value per user, shape [{users}], not {list(spec.shape)}")
    if output_tensor is not None:
        require(output_tensor.dtype in INTEGERS, f"the output cannot be {output_tensor.dtype}")
        require(output_tensor.shape == (1, 1, 1, users), f"the output must have shape [1, 1, 1, {users}]")
    out = output_tensor or Spec.of((1, 1, 1, users), DataType.UINT32, Layout.ROW_MAJOR, values.memory_config)

    device = current_device()
    assert device is not None
    cores = cores_of_users(device.board.grid, sub_core_grids, users)

    def compute(
        given: torch.Tensor, tokens: torch.Tensor, most: torch.Tensor, mass: torch.Tensor, scale: torch.Tensor
    ) -> torch.Tensor:
        rows = given.reshape(users, -1)
        places = torch.arange(rows.shape[1]).expand(rows.shape)
        if rows.shape[1] < 2 * TILE_SIZE:
            rows = torch.nn.functional.pad(rows, (0, TILE_SIZE), value=-torch.inf)
            places = torch.nn.functional.pad(places, (0, TILE_SIZE))
        best, found = best_of_rows(rows, places, CHOICES, DataType.BFLOAT16, largest=True)
        if seed:
            seed_cores(device, cores, [seed] * users)
        draws = draw(device, cores, LATTICE) / LATTICE
        allowed = torch.arange(CHOICES) < most.reshape(-1, 1)
        weighed = torch.where(allowed, best * scale.reshape(-1, 1), -torch.inf)
        chances = round_bf16_nearest_even(torch.softmax(weighed, dim=-1))
        picked = _draw(chances, allowed, mass.reshape(-1), draws)
        choice = found.gather(-1, picked.reshape(-1, 1)).long()
        token = tokens.reshape(users, -1).gather(-1, choice)
        return token.reshape(out.shape).to(CARRIER[out.dtype])

    reads = ("input_values_tensor", "input_indices_tensor", "k", "p", "temp")
    return Plan(out, compute, reads=reads, into=into(output_tensor))


def _require_inputs(values: Spec, indices: Spec) -> None:
    require(not values.is_sharded and not indices.is_sharded, "values and indices must be interleaved")
    require(values.dtype is DataType.BFLOAT16, f"the values must be bfloat16, not {values.dtype}")
    require(values.is_tile, "the values must be in TILE layout")
    require(indices.dtype in INTEGERS, f"the indices must be uint32 or int32, not {indices.dtype}")
    require(not indices.is_tile, "the indices must be in ROW_MAJOR layout")
    require(indices.shape == values.shape, "values and indices must have the same shape")
    shape = values.shape
    require(len(shape) == 4 and shape[:2] == (1, 1), f"the values must be [1, 1, users, width], not {list(shape)}")
    require(1 <= shape[2] <= MOST_USERS, f"there are 1 to {MOST_USERS} users, not {shape[2]}")
    tiles = shape[3] // TILE_SIZE
    require(
        tiles > 0 and shape[3] % TILE_SIZE == 0 and tiles & (tiles - 1) == 0,
        f"the width must be a power of two of tiles, not {shape[3]}",
    )


def _draw(chances: torch.Tensor, allowed: torch.Tensor, mass: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The smallest set with more than `mass` probability, and its first token whose share so far exceeds the draw."""
    totals = torch.where(allowed, chances, 0.0).cumsum(-1)
    over = totals > mass.reshape(-1, 1)
    last = torch.where(over.any(-1), over.to(torch.uint8).argmax(-1), allowed.sum(-1) - 1).clamp(min=0)
    share = totals / totals.gather(-1, last.reshape(-1, 1))
    hit = (share > draws.reshape(-1, 1)) & (torch.arange(chances.shape[-1]) <= last.reshape(-1, 1))
    return torch.where(hit.any(-1), hit.to(torch.uint8).argmax(-1), 0)
