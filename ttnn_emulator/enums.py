"""The enums of the public API. Those used by the device are written out; the others come from the recorded API."""

from __future__ import annotations

import enum
from typing import Any

from ttnn_emulator.api.recorded import recorded_api


class ApiEnum(enum.Enum):
    """Prints as the library's enums do: `DataType.BFLOAT16`."""

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}.{self._name_}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:  # used in messages of checks, which are formatted on every first call
        text = f"{self.__class__.__name__}.{self._name_}"
        return format(text, spec) if spec else text

    # Members are singletons: identity is the fastest hash, and specs are hashed on every call.
    __hash__ = object.__hash__


class FabricType(enum.IntEnum):
    """How chips are connected: bit flags, which the library binds as integers."""

    MESH = 1
    TORUS_X = 2
    TORUS_Y = 4
    TORUS_XY = 6

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def is_integer(self) -> bool:
        """`int.is_integer`, which Python has since 3.12."""
        return True


class DataType(ApiEnum):
    BFLOAT16 = 0
    FLOAT32 = 1
    UINT32 = 2
    BFLOAT8_B = 3
    BFLOAT4_B = 4
    UINT8 = 5
    UINT16 = 6
    INT32 = 7
    FP8_E4M3 = 8
    INT8 = 9
    INVALID = 10


class Layout(ApiEnum):
    ROW_MAJOR = 0
    TILE = 1
    INVALID = 2


class StorageType(ApiEnum):
    HOST = 0
    DEVICE = 1


class BufferType(ApiEnum):
    DRAM = 0
    L1 = 1
    L1_SMALL = 3
    TRACE = 4


class TensorMemoryLayout(ApiEnum):
    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5


class ShardOrientation(ApiEnum):
    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardStrategy(ApiEnum):
    HEIGHT = 1
    WIDTH = 2
    BLOCK = 3


class MathFidelity(ApiEnum):
    LoFi = 0
    HiFi2 = 2
    HiFi3 = 3
    HiFi4 = 4
    Invalid = 255


class Arch(ApiEnum):
    GRAYSKULL = 1  # e150 only: the library no longer has this member
    WORMHOLE_B0 = 2
    BLACKHOLE = 3
    QUASAR = 4


class MorehSoftmaxOp(ApiEnum):
    SOFTMAX = 0
    SOFTMIN = 1
    LOGSOFTMAX = 2


class MorehSoftmaxBackwardOp(ApiEnum):
    SOFTMAX = 0
    SOFTMIN = 1
    LOGSOFTMAX = 2


class MorehSoftmaxOpParallelizationStrategy(ApiEnum):
    """Whether the kernel keeps a whole row of tiles in L1 (small) or streams it (large), and along which dimension."""

    NONE = 0
    SMALL_W = 1
    SMALL_H = 2
    LARGE_W = 3
    LARGE_H = 4
    LARGE_C = 5


class MorehSoftmaxBackwardOpParallelizationStrategy(ApiEnum):
    NONE = 0
    SMALL_W = 1
    SMALL_H = 2
    LARGE_W = 3
    LARGE_H = 4
    LARGE_C = 5


WRITTEN_HERE: dict[str, type[enum.Enum]] = {
    cls.__name__: cls
    for cls in (
        DataType,
        Layout,
        StorageType,
        BufferType,
        TensorMemoryLayout,
        ShardOrientation,
        ShardStrategy,
        MathFidelity,
        Arch,
        FabricType,
    )
}
# Enums that the library binds under private names only; the recorded API does not include them.
PRIVATE: dict[str, type[enum.Enum]] = {
    cls.__name__: cls
    for cls in (
        MorehSoftmaxOp,
        MorehSoftmaxBackwardOp,
        MorehSoftmaxOpParallelizationStrategy,
        MorehSoftmaxBackwardOpParallelizationStrategy,
    )
}


def _from_record() -> dict[str, Any]:
    """Every other enum of the library, by the last part of its name."""
    enums: dict[str, Any] = {}
    for path, members in recorded_api()["enums"].items():
        name = path.rsplit(".", 1)[-1]
        if name in WRITTEN_HERE or name in enums or not members:
            continue
        enums[name] = ApiEnum(name, {key: _member_value(value, key) for key, value in members.items()})  # type: ignore[call-arg]
        enums[name].__module__ = __name__
    return enums


def _member_value(value: Any, name: str) -> Any:
    return value if isinstance(value, int | str) else name


ALL_ENUMS: dict[str, Any] = {**_from_record(), **WRITTEN_HERE, **PRIVATE}

FLOAT_DTYPES = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B})
BLOCK_FLOAT_DTYPES = frozenset({DataType.BFLOAT8_B, DataType.BFLOAT4_B})
INTEGER_DTYPES = frozenset({DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.INT32})
