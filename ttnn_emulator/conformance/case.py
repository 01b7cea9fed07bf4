"""Functions to write cases with. A case is one call as JSON; `exchange` describes the format.

yield call("ttnn.softmax", T([2, 5, 33]), dim=-1)
yield call("ttnn.add", T([64, 64], mem=height_sharded([32, 64], cores=2)), T([64, 64], "float32"))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

Case = dict[str, Any]

FLOATS = ("bfloat16", "float32", "bfloat8_b", "bfloat4_b")
INTEGERS = ("int32", "uint32", "uint16", "uint8")
DTYPES = FLOATS + INTEGERS
LAYOUTS = ("TILE", "ROW_MAJOR")
BLOCK_FLOATS = ("bfloat8_b", "bfloat4_b")
STORABLE = tuple(
    (dtype, layout) for dtype in DTYPES for layout in LAYOUTS if layout == "TILE" or dtype not in BLOCK_FLOATS
)

# Ranks 0 to 5, tile-aligned and odd.
SHAPES: tuple[tuple[int, ...], ...] = (
    (64,),
    (7,),
    (32, 64),
    (5, 33),
    (3, 45, 70),
    (1, 1, 64, 96),
    (2, 3, 17, 40),
    (1, 2, 3, 5, 33),
)


def T(
    shape: Sequence[int], dtype: str = "bfloat16", layout: str = "TILE", mem: Any = "DRAM", *, host: bool = False
) -> Case:
    """An input tensor."""
    content = [list(shape), dtype, layout, mem["M"] if isinstance(mem, dict) and "M" in mem else mem]
    return {"T": [*content, "host"] if host else content}


def M(config: Any) -> Case:
    """A memory config argument: M("L1"), M(height_sharded(...))."""
    return config if isinstance(config, dict) and "M" in config else {"M": config}


def E(path: str) -> Case:
    """An enum member or constant: E("MathFidelity.HiFi4"), E("bfloat8_b")."""
    return {"E": path}


def C(name: str, *args: Any, **kwargs: Any) -> Case:
    """An object constructed by `ttnn.<name>`."""
    return {"C": [name, list(args), kwargs]}


def G(*ranges: Sequence[int]) -> Case:
    """A core range set: G([0, 0, 3, 0])."""
    return {"G": [list(item) for item in ranges]}


TILE, ROWS = E("TILE_LAYOUT"), E("ROW_MAJOR_LAYOUT")
FULL_PRECISION = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi4"), fp32_dest_acc_en=True)
DEVICE: Case = {"D": 1}
INFINITY: Case = {"F": "inf"}


def call(op: str, /, *args: Any, **kwargs: Any) -> Case:
    """One case, as JSON reads it back."""
    case: Case = {"op": op}
    if args:
        case["args"] = _as_lists(args)
    if kwargs:
        case["kwargs"] = _as_lists(kwargs)
    return case


def _as_lists(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_lists(item) for item in value]
    return {key: _as_lists(item) for key, item in value.items()} if isinstance(value, dict) else value


def grid_of(cores: int, width: int = 8) -> list[list[int]]:
    """The first `cores` cores, row by row, as ranges."""
    rows, rest = divmod(cores, width)
    ranges = [[0, 0, width - 1, rows - 1]] if rows else []
    return ranges + ([[0, rows, rest - 1, rows]] if rest else [])


def height_sharded(shard: Sequence[int], cores: int, *, buffer: str = "L1", orient: str = "ROW_MAJOR") -> dict:
    return _sharded("HEIGHT_SHARDED", shard, grid_of(cores), buffer, orient)


def width_sharded(shard: Sequence[int], cores: int, *, buffer: str = "L1", orient: str = "ROW_MAJOR") -> dict:
    return _sharded("WIDTH_SHARDED", shard, grid_of(cores), buffer, orient)


def block_sharded(
    shard: Sequence[int], grid: tuple[int, int], *, buffer: str = "L1", orient: str = "ROW_MAJOR"
) -> dict:
    """`grid` is (columns, rows) of cores."""
    return _sharded("BLOCK_SHARDED", shard, [[0, 0, grid[0] - 1, grid[1] - 1]], buffer, orient)


def _sharded(layout: str, shard: Sequence[int], grid: list, buffer: str, orient: str) -> dict:
    return {"layout": layout, "buffer": buffer, "shard": list(shard), "grid": grid, "orient": orient}


# A tensor of 128 × 128 in four shards: height, width and block sharded.
TALL, WIDE, BLOCK = height_sharded([32, 128], 4), width_sharded([128, 32], 4), block_sharded([64, 64], (2, 2))


def sharded_inputs(dtype: str = "bfloat16") -> list[Case]:
    """One tensor [1, 1, 128, 128] in each kind of sharding."""
    shape = (1, 1, 128, 128)
    return [
        T(shape, dtype, mem=height_sharded([32, 128], 4)),
        T(shape, dtype, mem=width_sharded([128, 32], 4)),
        T(shape, dtype, mem=block_sharded([64, 64], (2, 2))),
        T(shape, dtype, mem=block_sharded([64, 64], (2, 2), orient="COL_MAJOR")),
    ]


def product(*axes: Iterable[Any]) -> Iterable[tuple]:
    return itertools.product(*axes)


def volume(shape: Sequence[int]) -> int:
    return math.prod(shape)


def case_id(case: Case) -> str:
    """A readable, unique name of a case."""

    def text(value: Any) -> str:
        if isinstance(value, dict) and len(value) == 1:
            (tag, content), *_ = value.items()
            if tag == "T":
                return "T(" + ", ".join(map(text, content)) + ")"
            if tag == "C":
                return content[0] + "(" + ", ".join([*map(text, content[1]), *named(content[2])]) + ")"
            return text(content)
        if isinstance(value, dict):
            return "{" + ", ".join(named(value)) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(text, value)) + "]"
        return str(value)

    def named(items: dict) -> list[str]:
        return [f"{key}={text(item)}" for key, item in items.items()]

    return f"{case['op']}({', '.join([*map(text, case.get('args', [])), *named(case.get('kwargs', {}))])})"
