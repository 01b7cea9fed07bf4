"""Random input to every operation: a result of the inferred spec, or a typed error with the operation's name."""

from __future__ import annotations

import math
import random
import resource
import time
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.api.binding import _split_union
from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.execution.operation_table import OPERATIONS
from ttnn_emulator.numerics.formats.carriers import CARRIER, wide

# Collectives need a mesh; the first four take torch tensors or files.
LEFT_OUT = {"ttnn.from_torch", "ttnn.as_tensor", "ttnn.dump_tensor", "ttnn.load_tensor"}
NAMES = sorted(name for name, op in OPERATIONS.items() if op.overloads and name not in LEFT_OUT)
ROUNDS = 12

SHAPES = [(), (1,), (7,), (32,), (0,), (5, 33), (32, 64), (1, 1, 32, 32), (2, 3, 17, 40), (1, 1, 64, 64), (2, 0, 5),
          (1, 2, 3, 4, 5), (1, 1, 1, 2, 3, 33)]  # fmt: skip
HUGE = [(1, 1, 2**20, 2**14), (2**31, 32), (65536, 65536)]
DTYPES = ["bfloat16", "float32", "bfloat8_b", "bfloat4_b", "uint8", "uint16", "uint32", "int32"]
INTEGERS = [-(2**31), -5, -1, 0, 1, 2, 3, 5, 31, 32, 33, 70, 2**31 - 1]
EDGES = {"uint8": [255], "uint16": [65535], "uint32": [2**32 - 1, 2**31], "int32": [-(2**31), -1, 2**31 - 1]}
FLOATS = [0.0, -0.0, 1.0, -2.5, 1e-30, 1e30, 1e-42, float("nan"), float("inf"), float("-inf")]
# Values that no parameter expects.
SURPRISES = [
    None,
    "wrong",
    b"bytes",
    3,
    2.5,
    True,
    [],
    {},
    [[1]],
    (None,),
    [1, "two"],
    object(),
    torch.ones(2),
    range(3),
]
MOST_MEMORY = 9 << 30
LONGEST_CALL = 600.0  # CPU seconds of this process, independent of other load


SHARDED = {
    ttnn.ShardStrategy.HEIGHT: ttnn.CoreGrid(y=1, x=2),
    ttnn.ShardStrategy.WIDTH: ttnn.CoreGrid(y=2, x=2),
    ttnn.ShardStrategy.BLOCK: ttnn.CoreGrid(y=2, x=4),
}


class Inputs:
    """Random arguments for a recorded type."""

    def __init__(self, seed: str, device: Any, other: Any) -> None:
        self.random = random.Random(seed)
        self.device = device
        self.other = other

    def tensor(self) -> Any:
        pick = self.random.random()
        dtype = self.random.choice(DTYPES)
        layout = self.random.choice(["TILE", "TILE", "ROW_MAJOR"]) if not dtype.startswith("bfloat8") else "TILE"
        if dtype == "bfloat4_b":
            layout = "TILE"
        shape = self.random.choice(SHAPES)
        options = {"dtype": getattr(ttnn, dtype), "layout": getattr(ttnn, f"{layout}_LAYOUT")}
        values = self.values(shape, dtype)
        if pick < 0.08:
            return ttnn.from_torch(values, **options)  # on the host
        if pick < 0.14:
            return ttnn.from_torch(values, device=self.other, **options)
        tensor = ttnn.from_torch(values, device=self.device, **options)
        if pick < 0.20:
            ttnn.deallocate(tensor)
        elif pick < 0.25:
            with ttnn.specs_only():
                return ttnn.empty(self.random.choice(HUGE), device=self.device, **options)
        elif pick < 0.35:
            return self.sharded(options)
        elif pick < 0.40 and dtype in ("bfloat16", "float32") and 0 not in shape and len(shape) > 1:
            return ttnn.reshape(tensor, (-1, shape[-1]))  # a view, or a copy
        return tensor

    def sharded(self, options: dict[str, Any]) -> Any:
        """64 × 128 values, randomly sharded."""
        strategy = self.random.choice(list(SHARDED))
        config = ttnn.create_sharded_memory_config((64, 128), SHARDED[strategy], strategy)
        values = self.values((1, 1, 64, 128), options["dtype"].name.lower())
        return ttnn.from_torch(values, device=self.device, memory_config=config, **options)

    def values(self, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.random.randrange(1 << 30))
        if dtype in ("uint8", "uint16", "uint32", "int32"):
            if self.random.random() < 0.1:
                return torch.full(shape, self.random.choice(EDGES[dtype]))
            return torch.randint(0, 40, shape, generator=generator)
        values = torch.randn(shape, generator=generator) * 3
        pick = self.random.random()
        if pick < 0.3 and values.numel():
            values.view(-1)[0] = self.random.choice(FLOATS)
        elif pick < 0.4:
            values.fill_(self.random.choice(FLOATS))
        return values

    def of(self, type_text: str) -> Any:
        choice = self.random.choice(_split_union(type_text))
        if choice == "None":
            return None
        if choice == "Tensor":
            return self.tensor()
        if choice == "int":
            return self.random.choice(INTEGERS[1:-1] if self.random.random() < 0.95 else INTEGERS)
        if choice == "float":
            return self.random.choice(FLOATS)
        if choice == "bool":
            return self.random.random() < 0.5
        if choice == "str":
            return self.random.choice(["relu", "gelu", "floor", "mean", "nearest", "", "no such thing"])
        if choice.startswith("Sequence["):
            return [self.of(choice[9:-1]) for _ in range(self.random.randrange(0, 5))]
        if choice == "Shape":
            return list(self.random.choice(SHAPES))
        if choice == "MeshDevice":
            return self.device
        if choice == "MemoryConfig":
            return self.random.choice(
                [ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG, ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG]
            )
        if choice in ALL_ENUMS:
            return self.random.choice(list(ALL_ENUMS[choice]))
        return self.random.choice([None, "wrong", 3])

    def arguments(self, overload: Any) -> dict[str, Any]:
        given = {}
        for name, _, type_text, default in overload.parameters:
            if not default or self.random.random() < 0.25:
                given[name] = self.of(type_text)
            pick = self.random.random()
            if pick < 0.01:
                given.pop(name, None)
            elif pick < 0.03:
                given[name] = self.random.choice(SURPRISES)
            if self.random.random() < 0.02:
                given["surprise"] = 1
        return given


@pytest.fixture(scope="module")
def devices():
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, limits[1]))  # a host tensor of 2³¹ rows is refused by torch
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are small: waking other threads takes longer than they save
    with ttnn.open_device(device_id=0, l1_small_size=32768) as one, ttnn.open_device(device_id=1) as two:
        yield one, two
    torch.set_num_threads(threads)
    resource.setrlimit(resource.RLIMIT_AS, limits)


def check_result(result: Any) -> None:
    """Values have the inferred shape and the carrier of the inferred dtype, and integers are in range."""
    if isinstance(result, list | tuple):
        for item in result:
            check_result(item)
    if not isinstance(result, ttnn.Tensor) or not result.is_allocated() or result._storage.values is None:
        return
    for values in result._storage.values:
        values = wide(values)
        assert tuple(values.shape) == tuple(result.shape), f"{tuple(values.shape)} is not {tuple(result.shape)}"
        assert values.dtype is CARRIER[result.dtype], f"{values.dtype} is not the carrier of {result.dtype}"
        if result.dtype in (ttnn.uint8, ttnn.uint16, ttnn.uint32) and values.numel():
            assert int(values.min()) >= 0
        if result.dtype is ttnn.bfloat16:
            assert torch.equal(
                values.nan_to_num(0.0, math.inf, -math.inf),
                values.bfloat16().float().nan_to_num(0.0, math.inf, -math.inf),
            ), "values that bfloat16 cannot hold"


# Python errors that indicate a missing check, not a wrong argument.
BUGS = (AssertionError, AttributeError, NameError, UnboundLocalError, ZeroDivisionError, MemoryError, RecursionError)


@pytest.mark.parametrize("name", NAMES)
def test_fuzz(name: str, devices, request) -> None:
    for number in range(ROUNDS * (20 if request.config.getoption("--sweep") else 1)):
        call(name, number, devices)


# Failures found by longer runs and fixed: results without values, outputs of other shapes, sizes beyond memory.
FOUND = {
    "ttnn.adaptive_max_pool2d": [219],
    "ttnn.leaky_relu_bw": [133],
    "ttnn.moe": [23, 85],
    "ttnn.moreh_softmin": [131],
    "ttnn.repeat": [197, 206],
    "ttnn.tilize": [96],
    "ttnn.tilize_with_val_padding": [33, 129, 138],
    "ttnn.tilize_with_zero_padding": [217],
}


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, numbers in FOUND.items() for number in numbers])
def test_fixed_failures(name: str, number: int, devices) -> None:
    call(name, number, devices)


def call(name: str, number: int, devices: tuple[Any, Any]) -> None:
    """One call with the arguments of this seed."""
    op = OPERATIONS[name]
    inputs = Inputs(f"{name} {number}", *devices)
    arguments = inputs.arguments(inputs.random.choice(op.overloads))
    if any(key.isidentifier() is False for key in arguments):
        return
    start = time.process_time()
    try:
        check_result(op(**arguments))
    except ttnn.EmulatorError as error:
        assert "ttnn." in str(error).split("\n")[0], f"an error without the operation's name: {error}"
        assert not isinstance(error.__cause__, BUGS), f"{type(error.__cause__).__name__} in {error}"
    finally:
        for device in devices:
            device.clear_program_cache()
    assert time.process_time() - start < LONGEST_CALL
