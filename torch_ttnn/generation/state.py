"""The static cache: tensors on the device that stay from call to call, and how far one generation filled them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

from torch_ttnn.generation.shapes import CacheShapes, LayerShapes

Tensor = torch.Tensor
Layers = tuple[tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class Size:
    """What programs are compiled for: sequences, slots of the cache, and the length of the encoder's output."""

    batch: int
    capacity: int
    encoded: int = 0

    def fits(self, needed: Size) -> bool:
        return (self.batch, self.encoded) == (needed.batch, needed.encoded) and needed.capacity <= self.capacity


class Slots:
    """The tensors of all layers; keys and values have a slot for each token, which only programs write."""

    def __init__(self, shapes: CacheShapes, size: Size, dtype: torch.dtype, device: torch.device) -> None:
        def allocated(layers: tuple[LayerShapes, ...], slots: int) -> Layers:
            return tuple(
                tuple(torch.zeros(shape, dtype=dtype, device=device) for shape in layer.tensors(size.batch, slots))
                for layer in layers
            )

        self.size = size
        self.layers = allocated(shapes.layers, size.capacity)
        self.encoded = allocated(shapes.encoded, size.encoded)

    @property
    def nbytes(self) -> int:
        tensors = (each for layer in (*self.layers, *self.encoded) for each in layer)
        return sum(each.numel() * each.element_size() for each in tensors)


class DeviceCache(Cache):
    """The cache of one generation, as transformers holds it.

    used   slots that are filled: the padded prompt and the tokens after it
    first  for each sequence the slot of its first token, after its padding: [batch]
    """

    slots: Slots

    def __init__(self, most_tokens: int, reorder: Callable[[Slots, Tensor], None]) -> None:
        super().__init__(layers=[])
        self.most_tokens = most_tokens
        self.used = 0
        self.first = torch.zeros(0, dtype=torch.long)
        self.encoder_mask: Tensor | None = None
        self._reorder = reorder

    @property
    def is_compileable(self) -> bool:
        """No: transformers compiles nothing here."""
        return False

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.used

    def get_max_length(self, layer_idx: int | None = None) -> int:
        return self.most_tokens

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Let each beam continue another one of its prompt, so padding and the encoder's output are the same."""
        self._reorder(self.slots, beam_idx)

    def crop(self, *_: Any) -> None:
        raise NotImplementedError("tokens cannot be removed from a cache on the device")
