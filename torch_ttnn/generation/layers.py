"""Layers of a static cache as the model sees them within a program: transformers' cache classes around our tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionLayer

Tensor = torch.Tensor


class Attention(CacheLayerMixin):
    """Keys and values in slots; the slot of the next token is given where the program is called."""

    is_compileable = True
    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.keys, self.values = keys, values
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        raise NotImplementedError("the cache is allocated before the program runs")

    def get_max_length(self) -> int:
        return self.keys.shape[-2]


class Prompt(Attention):
    """An empty cache, which a whole prompt fills: its tokens attend to each other only."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        length = key_states.shape[-2]
        self.keys[:, :, :length].copy_(key_states)
        self.values[:, :, :length].copy_(value_states)
        return key_states, value_states

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return query_length, 0

    def get_seq_length(self) -> int:
        return 0


class NextToken(Attention):
    """A cache that one token is added to, at a slot that is a tensor."""

    def __init__(self, keys: Tensor, values: Tensor, slot: Tensor) -> None:
        super().__init__(keys, values)
        self.slot = slot

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(2, self.slot, key_states)
        self.values.index_copy_(2, self.slot, value_states)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_max_length(), 0

    def get_seq_length(self) -> Tensor:  # type: ignore[override]  # as transformers' static layers do
        return self.slot


class Encoded(Attention):
    """Keys and values of the encoder's output, which no token changes."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("the encoder's keys and values are computed with the prompt")

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_max_length(), 0

    def get_seq_length(self) -> int:
        return self.get_max_length()


def recurrent(conv_states: Sequence[Tensor], states: Sequence[Tensor], *, has_previous: bool) -> LinearAttentionLayer:
    """A layer of convolution windows and recurrent states."""
    layer = LinearAttentionLayer(number_of_states=len(conv_states))
    for number, state in enumerate(conv_states):
        layer.conv_states[number] = state
        layer.is_conv_states_initialized[number] = True
        layer.conv_kernel_size[number] = state.shape[-1]
        layer.has_previous_state[number] = has_previous
    for number, state in enumerate(states):
        layer.recurrent_states[number] = state
        layer.is_recurrent_states_initialized[number] = True
    return layer


def cache_of(layers: list[Any]) -> Cache:
    return Cache(layers=layers)
