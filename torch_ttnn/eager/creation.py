"""New tensors: uninitialised, filled with a number, counted, or drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_ttnn.compiler.analysis.index_bounds import INT32, Bounds
from torch_ttnn.eager import log
from torch_ttnn.eager.device.boards import Board, board_of
from torch_ttnn.eager.handlers import handles, run
from torch_ttnn.eager.operations import run_program
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.storage import HELD, INTEGERS, Place, Storage, resident_of
from torch_ttnn.eager.tensor import TtnnTensor, tensor_of, whole_of
from torch_ttnn.eager.views import Geometry

aten = torch.ops.aten


def uninitialised(tensor: torch.Tensor, board: Board) -> TtnnTensor:
    """A tensor with the geometry of one on torch's meta device; its memory is allocated at the first use."""
    geometry = Geometry.of(tensor)
    return tensor_of(geometry, Storage(geometry.size, geometry.stride, geometry.dtype, board))


@handles(
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
)
def empty_as(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else args[0].device
    with quiet():
        shaped = function(
            Geometry.of(args[0]).on("meta"), *args[1:], **{**kwargs, "device": "meta", "pin_memory": None}
        )
        if device.type != "ttnn":
            return torch.empty_strided(shaped.shape, shaped.stride(), dtype=shaped.dtype, device=device)
    return uninitialised(shaped, board_of(device))


# The number that each of these fills a new tensor with, or the position of the argument that is the number.
LIKE: dict[Any, tuple[Any, int | None, float]] = {
    aten.zeros_like.default: (aten.empty_like.default, None, 0),
    aten.ones_like.default: (aten.empty_like.default, None, 1),
    aten.full_like.default: (aten.empty_like.default, 1, 0),
    aten.new_zeros.default: (aten.new_empty.default, None, 0),
    aten.new_ones.default: (aten.new_empty.default, None, 1),
    aten.new_full.default: (aten.new_empty.default, 2, 0),
}


@handles(*LIKE)
def filled_as(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    empty, position, number = LIKE[function]
    if position is not None:
        number = args[position]
        args = args[:position]
    made = empty_as(empty, args, kwargs)
    return made.fill_(number)


@handles(aten.zero_.default)
def zero(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return fill(aten.fill_.Scalar, (args[0], 0), {})


@handles(aten.fill_.Scalar)
def fill(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Fill a whole storage by the library's `full`, and a view by a program."""
    tensor, number = args
    held = tensor._held
    if held.place is Place.EMPTY:
        return tensor
    if tensor._chain:
        return run_program(function, args, kwargs)
    log.note(function, log.CREATED)
    if held.dtype in INTEGERS or held.dtype is torch.bool:
        number = torch.tensor(number, device="cpu").to(held.dtype).item()
    if held.dtype not in HELD or not math.isfinite(number) or not INT32.low <= number <= INT32.high:
        with quiet():
            held.upload(torch.full(held.size, number, dtype=held.dtype, device="cpu"))
        return tensor
    dtype, _ = HELD[held.dtype]
    resident = resident_of(held.size, dtype)
    border = held.board.target.border
    with quiet():
        payload = border.ttnn.full(
            list(resident.spec.shape),
            number,
            dtype=border.argument(dtype),
            layout=border.argument(resident.spec.layout),
            device=border.device,
        )
    held.keep(payload, resident, Bounds(int(number), int(number)) if held.dtype in INTEGERS else None)
    return tensor


def _drawn_in_place() -> list[Any]:
    names = ("normal_", "uniform_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_")
    overloads = [getattr(getattr(aten, name), each) for name in names for each in getattr(aten, name).overloads()]
    return [*overloads, aten.bernoulli_.Tensor]


@handles(*_drawn_in_place())
def drawn(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Random numbers are torch's own on the host, so a seed gives those of the CPU."""
    tensor, *rest = args
    log.note(function, log.CREATED)
    with quiet(), torch.no_grad():
        values = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        given = [each.cpu() if isinstance(each, torch.Tensor) else each for each in rest]
        function(values, *given, **kwargs)
    run(aten.copy_.default, (tensor, values), {})
    return tensor


@handles(aten.rand_like.default, aten.randn_like.default, aten.randint_like.default, aten.randint_like.low_dtype)
def drawn_as(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    source, *rest = args
    device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else source.device
    log.note(function, log.CREATED)
    with quiet(), torch.no_grad():
        values = function(Geometry.of(source).on("cpu"), *rest, **{**kwargs, "device": "cpu", "pin_memory": None})
    return values.to(device) if device.type != "ttnn" else whole_of(Storage.of(values, board_of(device)))


# -- kernels of the dispatch key ---------------------------------------------------------------------------------------


def empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> TtnnTensor:
    with quiet():
        shaped = torch.empty(size, dtype=dtype, device="meta", memory_format=memory_format or torch.contiguous_format)
    return uninitialised(shaped, board_of(device))


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> TtnnTensor:
    with quiet():
        shaped = torch.empty_strided(size, stride, dtype=dtype, device="meta")
    return uninitialised(shaped, board_of(device))


# Factories whose values torch computes on the host; the others fill an empty tensor.
COUNTED = (
    "arange", "arange.start", "arange.start_step", "range", "range.step", "linspace", "logspace", "eye", "eye.m",
    "randperm", "randperm.generator", "tril_indices", "triu_indices",
)  # fmt: skip


def counted(name: str) -> Callable[..., TtnnTensor]:
    """The kernel of a factory."""
    packet, _, overload = name.partition(".")
    function = getattr(getattr(aten, packet), overload or "default")

    def kernel(*args: Any, device: Any = None, pin_memory: Any = None, **kwargs: Any) -> TtnnTensor:
        log.note(function, log.CREATED)
        with quiet():
            values = function(*args, **kwargs, device="cpu")
        return whole_of(Storage.of(values, board_of(device)))

    return kernel
