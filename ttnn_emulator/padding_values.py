"""What lies between a tensor's logical shape and its padded shape, where that is known.

Carriers have logical shapes, so padding takes part in nothing. A few calls write it or read it: they keep here, beside
a storage, one value for all of its padding or whole padded carriers. Every other operation leaves it unknown.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.numerics import formats
from ttnn_emulator.spec import Spec
from ttnn_emulator.storage import Storage

Padding = float | list[torch.Tensor]

_known: weakref.WeakKeyDictionary[Storage, Padding] = weakref.WeakKeyDictionary()


def note(storage: Storage, padding: Padding) -> None:
    _known[storage] = padding


def forget(storage: Storage) -> None:
    """Somebody wrote into the buffer."""
    _known.pop(storage, None)
    _known.pop(storage.root, None)


def carry(source: Storage, target: Storage) -> None:
    """A copy has the padding of what was copied."""
    padding = _known.get(source)
    if padding is not None:
        _known[target] = padding


@contextlib.contextmanager
def unimportant(storage: Storage) -> Iterator[None]:
    """Within the block, padding that is not known reads as zeros: for calls where it ends up in padding again."""
    known = storage in _known
    if not known:
        _known[storage] = 0.0
    try:
        yield
    finally:
        if not known:
            _known.pop(storage, None)


def padded_carriers(storage: Storage, spec: Spec, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The values with their padding."""
    if spec.shape == spec.padded_shape:
        return [value.reshape(spec.shape) for value in values]
    padding = _known.get(storage)
    if padding is None:
        raise NotEmulated(f"the padding from {list(spec.shape)} to {list(spec.padded_shape)} has no known values")
    if isinstance(padding, list):
        return padding
    return [_padded(value, spec, padding) for value in values]


def with_known(storage: Storage, spec: Spec, values: torch.Tensor) -> torch.Tensor:
    """One carrier with its padding where one number fills it; else the carrier as it is."""
    padding = _known.get(storage)
    return _padded(values, spec, padding) if isinstance(padding, float) else values


def _padded(values: torch.Tensor, spec: Spec, value: float) -> torch.Tensor:
    shape = spec.padded_shape
    held = formats.wide(values)
    whole = torch.full(shape, _stored(value, spec.dtype), dtype=held.dtype)
    lifted = held.reshape((1,) * (len(shape) - len(spec.shape)) + tuple(spec.shape))
    whole[tuple(slice(0, size) for size in lifted.shape)] = lifted
    return formats.host_convert(whole, spec.dtype) if spec.dtype in BLOCK_FLOAT_DTYPES else whole


def _stored(value: float, dtype: DataType) -> float | int:
    """A number as a carrier of `dtype` holds it."""
    given = torch.tensor(value, dtype=torch.float64 if dtype not in FLOAT_DTYPES else torch.float32)
    if dtype in BLOCK_FLOAT_DTYPES:
        return value
    return formats.wide(formats.host_convert(given, dtype)).item()
