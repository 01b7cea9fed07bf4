"""Calls from torch's operator database, each as a function of its tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree
from hypothesis import settings

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

SEED = 42  # that of torch's own wrapper_set_seed, which some samples call
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.bool)

# They replace some values of floating-point tensors. Negative zero is not among them: the device has none.
EXTREMES = (float("inf"), -float("inf"), 0.0, 1e30, -1e30, 1e-30, 100.0, -100.0)


def _database() -> tuple[dict[str, OpInfo], tuple[type, ...]]:
    """All operators by name, and the classes of elementwise ones."""
    profile = settings.get_current_profile_name()
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    settings.load_profile(profile)  # torch's test modules load their own
    return {".".join(filter(None, (info.name, info.variant_test_name))): info for info in op_db}, (
        UnaryUfuncInfo,
        BinaryUfuncInfo,
    )


OPERATORS, ELEMENTWISE = _database()


class NotDense(Exception):
    """A tensor is sparse, nested or quantised, which Dynamo leaves to torch."""


@dataclass(frozen=True)
class Call:
    """A call of an operator, with its tensors separate from its other arguments."""

    function: Callable[..., Any]
    tensors: tuple[torch.Tensor, ...]
    text: str

    def __call__(self, *tensors: torch.Tensor) -> Any:
        torch.manual_seed(SEED)  # an operator that draws numbers draws the same ones
        return self.function(*tensors)

    def eager(self, tensors: tuple[torch.Tensor, ...] | None = None) -> Any:
        """torch's result for copies of the tensors, and the copies after the call."""
        given = tuple(each.detach().clone() for each in (self.tensors if tensors is None else tensors))
        return self(*given), given


def call_of(operator: Callable[..., Any], sample: Any) -> Call:
    """A sample as a call."""
    leaves, tree = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for place in places:
        if leaves[place].layout is not torch.strided or leaves[place].is_nested or leaves[place].is_quantized:
            raise NotDense

    def function(*tensors: torch.Tensor) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(given, tree)
        return operator(first, *args, **kwargs)

    text = ", ".join(_brief(leaf) for leaf in leaves)
    return Call(function, tuple(leaves[place].detach().clone() for place in places), text)


def _brief(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return repr(leaf)


def forward_calls(info: OpInfo, dtype: torch.dtype) -> Iterator[Call]:
    for sample in _samples(info, dtype):
        yield call_of(info.op, sample)


def in_place_calls(info: OpInfo, dtype: torch.dtype) -> Iterator[Call]:
    """The operator's in-place form; it writes to an input of the graph."""
    if info.inplace_variant is None:
        return
    for sample in _samples(info, dtype):
        if not sample.broadcasts_input and isinstance(sample.input, torch.Tensor):
            yield call_of(info.inplace_variant, sample)


def extremal_calls(info: OpInfo, dtype: torch.dtype) -> Iterator[Call]:
    """Samples of elementwise operators with infinities, zeros and very large and small numbers among their values.

    Other operators add elements in the matrix unit, which has no infinity (docs/compiler.md).
    """
    for call in forward_calls(info, dtype):
        floats = [each for each in call.tensors if each.is_floating_point() and each.numel()]
        if floats and not any(each.is_complex() for each in call.tensors):
            yield Call(call.function, tuple(_with_extremes(each, n) for n, each in enumerate(call.tensors)), call.text)


def _with_extremes(tensor: torch.Tensor, start: int) -> torch.Tensor:
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    flat = tensor.contiguous().flatten().clone()
    step = max(flat.numel() // len(EXTREMES), 1)
    for number, place in enumerate(range(0, flat.numel(), step)):
        flat[place] = EXTREMES[(number + start) % len(EXTREMES)]
    return flat.reshape(tensor.shape)


def error_calls(info: OpInfo) -> Iterator[Call]:
    """Calls that torch rejects."""
    if info.error_inputs_func is None:
        return
    for error in info.error_inputs("cpu"):
        with contextlib.suppress(NotDense):
            yield call_of(info.op, error.sample_input)


def _samples(info: OpInfo, dtype: torch.dtype) -> Iterator[Any]:
    torch.manual_seed(0)
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        try:
            call_of(info.op, sample)
        except NotDense:
            continue
        yield sample
