"""What a model caches: the shapes of all its layers, learned from one token on torch's meta device."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import (
    CacheLayerMixin,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionLayer,
)

from torch_ttnn.compiler.errors import TorchTtnnError

Shape = tuple[int, ...]


class NotPrepared(TorchTtnnError):
    """A model whose cache has no static form here; the message is the reason."""


@dataclass(frozen=True)
class AttentionShapes:
    """Of keys and values, without batch and slots: heads and their width."""

    keys: tuple[int, int]
    values: tuple[int, int]

    def tensors(self, batch: int, slots: int) -> list[Shape]:
        return [(batch, heads, slots, width) for heads, width in (self.keys, self.values)]


@dataclass(frozen=True)
class RecurrentShapes:
    """Of convolution windows and recurrent states, without batch."""

    windows: tuple[Shape, ...]
    states: tuple[Shape, ...]

    def tensors(self, batch: int, slots: int) -> list[Shape]:
        return [(batch, *shape) for shape in (*self.windows, *self.states)]


LayerShapes = AttentionShapes | RecurrentShapes


@dataclass(frozen=True)
class CacheShapes:
    """The layers of a model's cache, of its cross-attention, and the name of its argument."""

    argument: str
    layers: tuple[LayerShapes, ...]
    encoded: tuple[LayerShapes, ...] = ()


def cache_shapes(model: Any) -> CacheShapes:
    """The shapes that a transformers model caches."""
    with torch.device("meta"):
        twin = type(model)(copy.deepcopy(model.config)).eval()
    argument = "cache_params" if "cache_params" in inspect.signature(model.forward).parameters else "past_key_values"
    token = torch.zeros(1, 1, dtype=torch.long, device="meta")
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            text = model.config.get_text_config(decoder=True)
            encoded = torch.zeros(1, 4, text.hidden_size, dtype=twin.dtype, device="meta")
            made = twin(encoder_outputs=(encoded,), decoder_input_ids=token, use_cache=True, return_dict=True)
        else:
            # a mask that is final: others are examined, and tensors without values cannot be
            masks = {} if argument == "cache_params" else {"attention_mask": torch.zeros(1, 1, 1, 1, device="meta")}
            made = twin(input_ids=token, use_cache=True, return_dict=True, **masks)
    cache = made[argument]
    if isinstance(cache, EncoderDecoderCache):
        return CacheShapes(argument, _layers(cache.self_attention_cache), _layers(cache.cross_attention_cache))
    return CacheShapes(argument, _layers(cache))


def _layers(cache: Any) -> tuple[LayerShapes, ...]:
    return tuple(_layer(each) for each in cache.layers if _has_values(each))


def _has_values(layer: Any) -> bool:
    """Some models make a cache with more layers than their decoder has."""
    return not isinstance(layer, CacheLayerMixin) or layer.is_initialized


def _layer(layer: Any) -> LayerShapes:
    if type(layer) is LinearAttentionLayer:
        return RecurrentShapes(_without_batch(layer.conv_states), _without_batch(layer.recurrent_states))
    if type(layer) in (DynamicLayer, DynamicSlidingWindowLayer):
        return AttentionShapes(*((each.shape[1], each.shape[3]) for each in (layer.keys, layer.values)))
    raise NotPrepared(f"layers of the kind {type(layer).__name__} have no static cache on the device")


def _without_batch(states: dict[int, torch.Tensor | None]) -> tuple[Shape, ...]:
    return tuple([tuple(each.shape[1:]) for each in states.values() if each is not None])
