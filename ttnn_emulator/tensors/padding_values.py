"""Values of the padding between a tensor's logical and padded shape, where they are known.

Carriers have logical shapes, so computations do not see padding. The few calls that write or read padding record here,
per storage, one value for all of its padding or whole padded carriers. Every other operation leaves it unknown.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage

Padding = float | list[torch.Tensor]

_known: weakref.WeakKeyDictionary[Storage, Padding] = weakref.WeakKeyDictionary()


def note(storage: Storage, padding: Padding) -> None:
    _known[storage] = padding


def forget(storage: Storage) -> None:
    """The buffer was written: its padding is unknown."""
    _known.pop(storage, None)
    _known.pop(storage.root, None)


def carry(source: Storage, target: Storage) -> None:
    """A copy has the padding of its source."""
    padding = _known.get(source)
    if padding is not None:
        _known[target] = padding


@contextmanager
def unread() -> Iterator[None]:
    """Within this block, padding that becomes part of a tensor is sliced off later, so its values do not matter: zeros.

    Composites do this to give two tensors the same size; the values are never visible.
    """
    before = _state.unread
    _state.unread = True
    try:
        yield
    finally:
        _state.unread = before


def is_unread() -> bool:
    return _state.unread


def zero_padded(compute: Callable[..., Any], spec: Spec, values: torch.Tensor) -> Any:
    """Apply a computation on padded carriers to a carrier without padding."""
    missing = [
        side for small, large in zip(reversed(spec.shape), reversed(spec.padded_shape)) for side in (0, large - small)
    ]
    return compute(torch.nn.functional.pad(values, missing))


class _State(threading.local):
    unread = False


_state = _State()


def padded_carriers(storage: Storage, spec: Spec, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The values with their padding."""
    if spec.shape == spec.padded_shape:
        return [value.reshape(spec.shape) for value in values]
    padding = _known.get(storage)
    if padding is None:
        raise NotEmulated(f"the padding from {list(spec.shape)} to {list(spec.padded_shape)} has unknown values")
    if isinstance(padding, list):
        return padding
    return [_padded(value, spec, padding) for value in values]


def with_known(storage: Storage, spec: Spec, values: torch.Tensor) -> torch.Tensor:
    """The carrier with its padding if one number fills it; otherwise unchanged."""
    padding = _known.get(storage)
    return _padded(values, spec, padding) if isinstance(padding, float) else values


def _padded(values: torch.Tensor, spec: Spec, value: float) -> torch.Tensor:
    shape = spec.padded_shape
    values_wide = carriers.wide(values)
    whole = torch.full(shape, _stored(value, spec.dtype), dtype=values_wide.dtype)
    lifted = values_wide.reshape((1,) * (len(shape) - len(spec.shape)) + tuple(spec.shape))
    whole[tuple(slice(0, size) for size in lifted.shape)] = lifted
    return carriers.host_convert(whole, spec.dtype) if spec.dtype in BLOCK_FLOAT_DTYPES else whole


def _stored(value: float, dtype: DataType) -> float | int:
    """A number as stored in a carrier of `dtype`."""
    number = torch.tensor(value, dtype=torch.float64 if dtype not in FLOAT_DTYPES else torch.float32)
    if dtype in BLOCK_FLOAT_DTYPES:
        return value
    return carriers.wide(carriers.host_convert(number, dtype)).item()
