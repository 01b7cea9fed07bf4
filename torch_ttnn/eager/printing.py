"""How a tensor on `ttnn` is printed: as torch prints one of a GPU."""

from __future__ import annotations

import torch

from torch_ttnn.eager.tensor import TtnnTensor


def text_of(tensor: TtnnTensor) -> str:
    host = tensor.detach().cpu()
    contents = repr(host)
    prefix = "tensor("
    body = contents.removeprefix(prefix)[:-1]
    suffixes = [f"device='{tensor.device}'"]
    for marker in (", size=", ", dtype="):  # torch's order: size, device, dtype, grad_fn
        before, found, after = body.rpartition(marker)
        if found and marker == ", dtype=" and "]" not in after:
            body = before
            suffixes.append(f"dtype={after}".rstrip())
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    text = torch._tensor_str._add_suffixes(prefix + body, suffixes, len(prefix), force_newline=False)
    return f"Parameter containing:\n{text}" if is_parameter else text
