"""Moves: between host and device, between boards, between dtypes."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.eager import log
from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.eager.handlers import handles, run
from torch_ttnn.eager.operations import run_program
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.storage import Place, Storage
from torch_ttnn.eager.tensor import TtnnTensor, become, whole_of

aten = torch.ops.aten


def on_host(tensor: TtnnTensor) -> torch.Tensor:
    """Download a tensor, as a view of its storage's values."""
    if tensor._held.place is Place.DEVICE:
        log.note("download", log.DOWNLOAD)
    with quiet(), torch.no_grad():
        return tensor._chain.of(tensor._held.host())


@handles(aten._to_copy.default)
def to_copy(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`tensor.to(...)`: to the host, to another board, or to another dtype on the device."""
    (source,) = args
    device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else source.device
    options = {name: value for name, value in kwargs.items() if name not in ("device", "non_blocking", "pin_memory")}
    if device.type == "ttnn" and board_of(device) is source._held.board:
        return run_program(function, args, options)
    host = on_host(source)
    with quiet(), torch.no_grad():
        copied = function(host, **options, device="cpu" if device.type == "ttnn" else device)
    return uploaded(copied, device) if device.type == "ttnn" else copied


def uploaded(tensor: torch.Tensor, device: torch.device) -> TtnnTensor:
    log.note("upload", log.UPLOAD)
    return whole_of(Storage.of(tensor, board_of(device)))


@handles(aten.copy_.default)
def copy(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`destination.copy_(source)`, with either of them on the host."""
    destination, source = args[:2]
    if not isinstance(destination, TtnnTensor):
        with quiet(), torch.no_grad():
            return destination.copy_(on_host(source))
    if isinstance(source, TtnnTensor) and source._held.board is destination._held.board:
        if source._held is destination._held and source._chain == destination._chain:
            return destination
        return run_program(function, (destination, source), {})
    host = on_host(source) if isinstance(source, TtnnTensor) else source
    log.note("upload", log.UPLOAD)
    with quiet(), torch.no_grad():
        values = host.detach().to(destination.dtype).expand(destination.shape)
        if not destination._chain:
            destination._held.upload(values)
            return destination
        staged = whole_of(Storage.of(values.contiguous(), destination._held.board))
    return run_program(function, (destination, staged), {})


def copy_from(source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """The kernel behind `torch.tensor(..., device="ttnn")`, which torch calls without `__torch_dispatch__`."""
    return run(aten.copy_.default, (destination, source), {})


@handles(aten._local_scalar_dense.default)
def item(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    host = on_host(args[0])
    with quiet():
        return host.item()


@handles(aten.equal.default)
def equal(function: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether two tensors have equal values: downloads both, and is no operation of a model."""
    one, other = (on_host(each) if isinstance(each, TtnnTensor) else each for each in args)
    with quiet():
        return torch.equal(one, other)


@handles(aten.is_pinned.default)
def is_pinned(function: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    return False


@handles(aten.resize_.default)
def resize(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Another size, with the elements of the old one in order; other tensors of its storage are not affected."""
    tensor, size = args[:2]
    if tuple(tensor.shape) != tuple(size):
        with quiet(), torch.no_grad():
            resized = on_host(tensor).contiguous().flatten().resize_(size, **kwargs)
        become(tensor, whole_of(Storage.of(resized, tensor._held.board)))
    return tensor


@handles(aten.resize_as_.default)
def resize_as(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return resize(aten.resize_.default, (args[0], args[1].shape), kwargs)


@handles(aten.set_.source_Tensor)
def set_source(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    tensor, source = args
    become(tensor, source)
    return tensor


@handles(aten.set_.source_Storage, aten.set_.source_Storage_storage_offset, aten.set_.default)
def set_storage(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError("a tensor on ttnn has no storage to set; tensor.data = other replaces its values")
