"""The static cache: tensors on the device that stay from call to call, and how far one generation filled them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from torch_ttnn.generation.layers import recurrent
from torch_ttnn.generation.shapes import CacheShapes, LayerShapes, RecurrentShapes

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

    most_tokens  of prompt and answer
    used         slots that are filled: the padded prompt and the tokens after it
    padding      of them, those before the prompt as it was given
    first        for each sequence the slot of its first token, after all padding: [batch]
    hidden       the encoder's output on the device, and its mask
    """

    slots: Slots

    def __init__(
        self, config: Any, shapes: CacheShapes, most_tokens: int, reorder: Callable[[Slots, Tensor], None]
    ) -> None:
        super().__init__(layers=[])
        self.config = config
        self.shapes = shapes
        self.most_tokens = most_tokens
        self.padding = 0
        self.used = 0
        self.first = torch.zeros(0, dtype=torch.long)
        self.hidden: Tensor | None = None
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

    # -- for the caller of `generate` ---------------------------------------------------------------------------------

    def as_dynamic(self) -> Cache:
        """The same values in transformers' own cache, without the padding of the bucket."""
        made = self.self_attention_cache
        return EncoderDecoderCache(made, self.cross_attention_cache) if self.shapes.encoded else made

    @property
    def self_attention_cache(self) -> Cache:
        return self._dynamic(self.shapes.layers, self.slots.layers, slice(self.padding, self.used))

    @property
    def cross_attention_cache(self) -> Cache:
        return self._dynamic(self.shapes.encoded, self.slots.encoded, slice(None))

    def _dynamic(self, shapes: tuple[LayerShapes, ...], layers: Layers, used: slice) -> DynamicCache:
        cache = DynamicCache(config=self.config.get_text_config(decoder=True))
        for number, (shape, tensors) in enumerate(zip(shapes, layers)):
            if isinstance(shape, RecurrentShapes):
                windows = len(shape.windows)
                cache.layers[number] = recurrent(tensors[:windows], tensors[windows:], has_previous=True)
            else:
                cache.update(tensors[0][:, :, used], tensors[1][:, :, used], number)
        return cache
