"""Random tensors. Values depend only on the seed; they differ from those of the chip's generator.

A seed of 0, or none, asks for new values at every call, as in the library; torch's own generator then provides them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.execution.random_generators import cores_of_users, seed_cores
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.data_movement.typecast import typecast_flow
from ttnn_emulator.ops.flows.layout import untilize_flow
from ttnn_emulator.ops.flows.value_flow import Flow, Program
from ttnn_emulator.ops.support.common_checks import require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.spec import Spec

GENERATED = frozenset({DataType.BFLOAT16, DataType.FLOAT32})
SMALLEST, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/manual_seed/device/manual_seed_operation.cpp, user_ids
LAST_USER = 31


def _generator(seed: int | None) -> torch.Generator | None:
    return torch.Generator().manual_seed(seed) if seed else None


# -- ranges -----------------------------------------------------------------------------------------------------------


def _inclusive_range(low: float, high: float, dtype: DataType) -> tuple[float, float]:
    """The smallest and the largest value of [low, high) in the dtype, without denormals."""
    low, high = float(np.float32(low)), float(np.float32(high))
    require(math.isfinite(low) and math.isfinite(high), f"the range [{low}, {high}) must be finite")
    require(low < high, f"the range [{low}, {high}) is empty")
    step = 0x10000 if dtype is DataType.BFLOAT16 else 1
    first, final = _at_least(low, step), _below(high, step)
    require(first <= final, f"no {dtype} is in [{low}, {high})")
    width = final - first
    require(width <= LARGEST, f"the range [{low}, {high}) is too wide for float32")
    require(width == 0 or width >= SMALLEST, f"the range [{low}, {high}) is too narrow for the vector unit")
    return first, final


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _float(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def _at_least(value: float, step: int) -> float:
    if 0 < value < SMALLEST:
        return SMALLEST
    if -SMALLEST < value <= 0:
        return 0.0
    bits = _bits(value)
    if bits % step == 0:
        return value
    cut = bits - bits % step
    return _float(cut if value < 0 else cut + step)


def _below(value: float, step: int) -> float:
    if 0 < value <= SMALLEST:
        return 0.0
    if -SMALLEST < value <= 0:
        return -SMALLEST
    bits = _bits(value)
    cut = bits - bits % step
    if value < 0:
        return _float(cut + step)
    return _float(cut if bits % step else cut - step)


def _uniform_values(spec: Spec, bounds: tuple[float, float], seed: int) -> torch.Tensor:
    first, final = bounds
    values = torch.rand(spec.shape, generator=_generator(seed)) * (final - first) + first
    if spec.dtype is DataType.BFLOAT16:
        values = carriers.round_bf16_nearest_even(values)
    return values.clamp(first, final)


# -- operations -------------------------------------------------------------------------------------------------------


@operation("ttnn.rand", ignores=("mesh_mapper",))
def rand(
    shape: Sequence[int],
    device: MeshDevice,
    *,
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Values uniformly distributed over [low, high)."""
    require(seed >= 0, f"a seed of {seed} is negative")
    require(dtype is not DataType.UINT8, f"random values of {dtype} are not supported")
    made_as = dtype if dtype in GENERATED else DataType.FLOAT32
    bounds = _inclusive_range(low, high, made_as)
    made = Spec.of(tuple(shape), made_as, Layout.TILE, memory_config or DRAM_MEMORY_CONFIG)
    flow = Flow(made, moved=True, programs=(Program("RandDeviceOperation", made, made),))
    if dtype is not made_as:
        flow = typecast_flow(flow, dtype)
    flow = layout_flow(flow, layout)
    return _generated(flow, lambda: _uniform_values(made, bounds, seed), program=("rand", made, flow.spec))


def _generated(flow: Flow, make: Any, program: Any = None) -> Plan:
    steps = flow.steps

    def compute() -> torch.Tensor:
        values = make()
        for step in steps:
            values = step(values)
        return values.contiguous()

    # The seed is a runtime argument and not part of the program hash.
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/rand/device/rand_program_factory.cpp, rand_seed_for_core
    return Plan(flow.spec, compute, reads=(), program=program, is_seeded=True, work=flow.programs)


@operation("ttnn.randn", ignores=("compute_kernel_config",))
def randn(
    shape: Sequence[int],
    device: MeshDevice,
    *,
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig | None = None,
    seed: int | None = None,
) -> Plan:
    """Values of the standard normal distribution."""
    require(seed is None or seed >= 0, f"a seed of {seed} is negative")
    require(dtype in GENERATED, f"only bfloat16 and float32 are supported, not {dtype}")
    config = memory_config or DRAM_MEMORY_CONFIG
    made = Spec.of(tuple(shape), dtype, Layout.TILE, config)
    flow = Flow(made, moved=True, programs=(Program("RandnDeviceOperation", made, made),))
    if layout is Layout.ROW_MAJOR:
        flow = untilize_flow(flow, config)

    def make() -> torch.Tensor:
        values = torch.randn(made.shape, generator=_generator(seed))
        return carriers.round_bf16_nearest_even(values) if dtype is DataType.BFLOAT16 else values

    return _generated(flow, make)


@operation("ttnn.uniform", ignores=("memory_config", "compute_kernel_config"))
def uniform(input: Spec, from_: float = 0.0, to: float = 1.0, seed: int = 0) -> Plan:
    """Overwrite a tensor with values uniformly distributed over [from, to)."""
    require(seed >= 0, f"a seed of {seed} is negative")
    require(input.dtype in GENERATED, f"only bfloat16 and float32 are supported, not {input.dtype}")
    bounds = _inclusive_range(from_, to, input.dtype)
    require_on_device(input)
    require_tile(input)
    return Plan(input, lambda: _uniform_values(input, bounds, seed), reads=(), into=("input",))


@operation("ttnn.bernoulli", ignores=("compute_kernel_config",))
def bernoulli(
    input: Spec,
    seed: int = 0,
    *,
    output: Spec | None = None,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """1 with the probability that the input holds, else 0."""
    require(seed >= 0, f"a seed of {seed} is negative")
    require_on_device(input)
    require_tile(input)
    require(input.dtype in GENERATED, f"probabilities are bfloat16 or float32, not {input.dtype}")
    if output is not None:
        require_on_device(output, "the output")
        require_tile(output, "the output")
        require(output.dtype in GENERATED, f"the output must be bfloat16 or float32, not {output.dtype}")
        require(output.volume == input.volume, f"the output has {output.volume} elements, not {input.volume}")
    config = memory_config or input.memory_config
    out = output or Spec.of(input.shape, dtype or DataType.FLOAT32, Layout.TILE, config)

    def compute(chances: torch.Tensor) -> torch.Tensor:
        drawn = torch.rand(chances.shape, generator=_generator(seed))
        return (drawn < chances).to(carriers.CARRIER[out.dtype]).reshape(out.shape)

    return Plan(out, compute, reads=("input",), into=() if output is None else ("output",), is_seeded=True)


@operation("ttnn.experimental.dropout", ignores=("use_per_device_seed",))
def dropout(
    input_tensor: Spec,
    probability: float,
    scale: float,
    seed: int,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """0 with the given probability, else the value times `scale`."""
    spec = input_tensor
    require(seed >= 0, f"a seed of {seed} is negative")
    target = output_tensor.dtype if output_tensor is not None else DataType.BFLOAT16
    require(target is spec.dtype, f"the input is {spec.dtype}, the output {target}")
    require_on_device(spec)
    config = output_tensor.memory_config if output_tensor is not None else memory_config or spec.memory_config
    require(
        spec.memory_config.memory_layout is config.memory_layout,
        f"dropout keeps the memory layout: {spec.memory_config.brief()} cannot become {config.brief()}",
    )
    require(spec.is_sharded or spec.is_tile, "interleaved tensors must be in TILE layout")
    if output_tensor is not None:
        require(output_tensor.shape == spec.shape, f"the output has shape {list(output_tensor.shape)}")
        require(spec.is_sharded or output_tensor.is_tile, "an interleaved output must be in TILE layout")
    out = output_tensor or Spec.of(spec.shape, target, spec.layout if config.is_sharded() else Layout.TILE, config)

    def compute(values: torch.Tensor) -> torch.Tensor:
        kept = torch.rand(values.shape, generator=_generator(seed)) >= probability
        return packer.store(torch.where(kept, values * scale, 0.0), out.dtype)

    into = () if output_tensor is None else ("output_tensor",)
    program = ("dropout", spec, out, probability, scale)
    return Plan(out, compute, reads=("input_tensor",), into=into, program=program, is_seeded=True)


@operation("ttnn.manual_seed")
def manual_seed(
    seeds: Any = 0,
    *,
    device: MeshDevice | None = None,
    user_ids: Any = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Seed the generators of all cores, or of the users' cores, for later calls; returns a dummy tensor."""
    by_tensor = isinstance(seeds, Spec)
    require(by_tensor or device is not None, "a device is needed when the seed is a number")
    require(by_tensor or seeds >= 0, f"a seed of {seeds} is negative")
    if isinstance(seeds, Spec):
        require(
            not isinstance(user_ids, int),
            "Seeds were provided as a tensor, so user_ids must not be provided as a scalar.",
        )
        _require_numbers(seeds, "seeds")
        if isinstance(user_ids, Spec):
            _require_numbers(user_ids, "users")
            require(seeds.shape == user_ids.shape, f"{list(seeds.shape)} seeds, {list(user_ids.shape)} users")
            require(seeds.rank == 1, f"seeds must be of rank 1, not {seeds.rank}")
    elif isinstance(user_ids, int):
        require(0 <= user_ids <= LAST_USER, f"user {user_ids} is not one of 0 to {LAST_USER}")
    spec = Spec.of((1,), DataType.UINT32, Layout.ROW_MAJOR)
    chip = current_device()
    assert chip is not None
    grid = chip.board.grid
    cores = cores_of_users(grid, sub_core_grids, grid[0] * grid[1])

    def compute(*given: torch.Tensor) -> torch.Tensor:
        tensors = [values.reshape(-1).tolist() for values in given]
        numbers = tensors.pop(0) if by_tensor else None
        users = tensors.pop(0) if tensors else range(len(cores)) if user_ids is None else [user_ids]
        chosen = [cores[user] for user in users if user < len(cores)]
        seed_cores(chip, chosen, numbers if numbers is not None else [seeds] * len(chosen))
        return torch.zeros(1, dtype=torch.int64)

    named = (("seeds", seeds), ("user_ids", user_ids))
    return Plan(spec, compute, reads=tuple(name for name, value in named if isinstance(value, Spec)))


def _require_numbers(spec: Spec, name: str) -> None:
    require(spec.dtype is DataType.UINT32, f"{name} must be uint32, not {spec.dtype}")
    require(not spec.is_tile, f"{name} must be in ROW_MAJOR layout")
