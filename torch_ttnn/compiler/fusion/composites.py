"""Operations without an ATen operator: plain functions, each its own reference implementation in torch.

A graph calls them like operators. One that stays on the host runs as written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

COMPOSITES: dict[str, Callable[..., Any]] = {}


def composite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function under the name by which a program's source calls it."""
    function.name = function.__name__  # type: ignore[attr-defined]
    COMPOSITES[function.__name__] = function
    return function


def is_composite(target: Any) -> bool:
    return COMPOSITES.get(getattr(target, "__name__", "")) is target


# Activations of products and convolutions, by the name used in `linear` and `convolution`.
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
}


@composite
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """activation(x @ weight + bias) for matrices."""
    result = torch.mm(x, weight) if bias is None else torch.addmm(bias, x, weight)
    return ACTIVATIONS[activation](result)


@composite
def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    activation: str,
) -> torch.Tensor:
    """activation(convolution(x, …)), with ATen's arguments."""
    result = torch.ops.aten.convolution.default(
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )
    return ACTIVATIONS[activation](result)


MOST_CORES = 1 << 10  # more than any chip has: `ttnn.rand` adds the core index to its seed


@composite
def drawn_seed() -> int:
    """A seed for the device's random numbers, drawn from torch's generator: `torch.manual_seed` determines it."""
    return int(torch.randint(1, (1 << 31) - MOST_CORES, ()))


@composite
def rng_state() -> torch.Tensor:
    """The state of torch's generator."""
    return torch.get_rng_state()


@composite
def exchanged_rng_state(state: torch.Tensor) -> torch.Tensor:
    """Set the state of torch's generator and return the previous one."""
    before = torch.get_rng_state()
    torch.set_rng_state(state)
    return before


class BeyondDomain(ValueError):
    """A program computed with values for which the device's results are wrong."""


@composite
def require(holds: torch.Tensor, what: str) -> None:
    """Raise unless the condition that the device checked holds everywhere."""
    if not bool(holds.all()):
        raise BeyondDomain(what)


@composite
def restrided(x: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """The same values with other strides, for host operations that read memory and not values."""
    return x if x.stride() == tuple(stride) else copied_to_strides(x, stride)


def copied_to_strides(x: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """A copy with these strides, even if `x` has them already."""
    # Dimensions of stride 0 are expanded views of one element.
    stored = [1 if step == 0 else size for size, step in zip(x.shape, stride)]
    result = torch.empty_strided(stored, stride, dtype=x.dtype, device=x.device)
    return result.copy_(x[tuple([slice(size) for size in stored])]).expand(x.shape)


@composite
def real_part(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj())[..., 0]


@composite
def imaginary_part(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj())[..., 1]


@composite
def put_together(real: torch.Tensor, imag: torch.Tensor, stride: Sequence[int], is_conj: bool) -> torch.Tensor:
    """real + i imag with these strides; `is_conj`: with the conjugate bit set, and the conjugate in memory."""
    result = restrided(torch.complex(real, -imag if is_conj else imag), stride)
    return result.conj() if is_conj else result


@composite
def quick_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


@composite
def scale_mask_softmax(x: torch.Tensor, scale: float, mask: torch.Tensor | None) -> torch.Tensor:
    """softmax(scale × x + mask) over the last dimension."""
    x = x * scale
    return torch.softmax(x if mask is None else x + mask, dim=-1)


@composite
def rotary_embedding(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool, width: int
) -> torch.Tensor:
    """x × cos + rotate(x) × sin on the first `width` of the last dimension; the rest is unchanged.

    `rotate` maps pairs (a, b) to (-b, a). Pairs are neighbours if interleaved, else half the width apart.
    """
    rotated_part, rest = x[..., :width], x[..., width:]
    if interleaved:
        rotated = torch.stack((-rotated_part[..., 1::2], rotated_part[..., ::2]), dim=-1).flatten(-2)
    else:
        rotated = torch.cat((-rotated_part[..., width // 2 :], rotated_part[..., : width // 2]), dim=-1)
    result = rotated_part * cos + rotated * sin
    return result if rest.shape[-1] == 0 else torch.cat((result, rest), dim=-1)


@composite
def qkv_heads(x: torch.Tensor, heads: int, kv_heads: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[B, S, (heads + 2 kv_heads) × D] → queries [B, heads, S, D], keys and values [B, kv_heads, S, D]."""
    batch, length, total = x.shape
    width = total // (heads + 2 * kv_heads)
    pieces = x.split([heads * width, kv_heads * width, kv_heads * width], dim=-1)
    q, k, v = [piece.reshape(batch, length, -1, width).transpose(1, 2) for piece in pieces]
    return q, k, v
