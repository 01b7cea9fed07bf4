"""Operations that the host runs: what has no lowering, and what has values that the device cannot hold."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.eager import log
from torch_ttnn.eager.device.boards import Board, board_of
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.schemas import argument, returns_of
from torch_ttnn.eager.storage import Storage
from torch_ttnn.eager.tensor import TtnnTensor, become, whole_of


def run_on_host(function: Any, args: tuple, kwargs: dict[str, Any], reason: str) -> Any:
    """Run an operation with torch: download its tensors, upload its results and what it wrote."""
    if reason:
        log.note_host(function, reason)
    hosts: dict[Storage, torch.Tensor] = {}

    def host_of(item: Any) -> Any:
        if isinstance(item, TtnnTensor):
            if item._held not in hosts:
                hosts[item._held] = item._held.host()
            return item._chain.of(hosts[item._held])
        return torch.device("cpu") if isinstance(item, torch.device) else item

    board = _board_of(args, kwargs)
    returns = returns_of(function)
    with quiet(), torch.no_grad():
        given, named = mapped(args, host_of), mapped(kwargs, host_of)
        made = function(*given, **named)
        for place in returns.mutates:
            _write_back(argument(place, args, kwargs), argument(place, given, named), hosts)
    results = made if isinstance(made, tuple) else (made,)
    new = [_on_device(results[number], board) for number in returns.new]
    return returns.assembled(new, args, kwargs)


def _board_of(args: tuple, kwargs: dict[str, Any]) -> Board:
    device = kwargs.get("device")
    if device is not None and torch.device(device).type == "ttnn":
        return board_of(device)
    return next(item._held.board for item in leaves((args, kwargs)) if isinstance(item, TtnnTensor))


def _write_back(ours: Any, written: Any, hosts: dict[Storage, torch.Tensor]) -> None:
    for tensor, host in zip(leaves(ours), leaves(written)):
        if not isinstance(tensor, TtnnTensor):
            continue
        if tensor.shape != host.shape:  # of an `out=`, which torch resizes
            become(tensor, whole_of(Storage.of(host, tensor._held.board)))
        else:
            tensor._held.upload(hosts[tensor._held])


def _on_device(made: Any, board: Board) -> Any:
    if isinstance(made, list | tuple):
        return [_on_device(each, board) for each in made]
    return whole_of(Storage.of(made, board)) if isinstance(made, torch.Tensor) else made
