"""The functions that are compiled: encoder, prompt, next token, and the order of beams.

Each takes token ids, lengths and tensors of the cache, nothing else that changes. Masks and positions are computed from
the lengths within the program.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.masking_utils import create_masks_for_generate
from transformers.modeling_outputs import BaseModelOutput

from torch_ttnn.generation import layers as views
from torch_ttnn.generation.shapes import AttentionShapes, CacheShapes
from torch_ttnn.generation.state import Layers

Tensor = torch.Tensor


class Steps:
    """The steps of a generation, as functions of tensors."""

    def __init__(self, model: Any, shapes: CacheShapes) -> None:
        self.model = model
        self.forward = model.forward
        self.shapes = shapes
        accepted = inspect.signature(model.forward).parameters
        self.is_encoder_decoder = bool(model.config.is_encoder_decoder)
        prefix = "decoder_" if self.is_encoder_decoder else ""
        self.ids, self.mask = f"{prefix}input_ids", f"{prefix}attention_mask"
        self.positions = f"{prefix}position_ids" if f"{prefix}position_ids" in accepted else None
        self.options: dict[str, Any] = {"use_cache": True, "return_dict": True}
        if "logits_to_keep" in accepted:
            self.options["logits_to_keep"] = 1
        self.is_recurrent = not any(isinstance(each, AttentionShapes) for each in shapes.layers)
        self.vocabulary = model.get_input_embeddings().weight.shape[0]
        self.create_masks = getattr(model, "create_masks_for_generate", create_masks_for_generate)

    @property
    def can_pad(self) -> bool:
        """Whether a prompt can be padded on its left: the model takes positions, or has none."""
        return self.positions is not None or self.is_recurrent

    def encode(self, inputs: Tensor) -> Tensor:
        """The encoder's output; token ids below zero are padding."""
        encoder = self.model.get_encoder()
        if inputs.is_floating_point():
            return encoder(inputs, return_dict=True).last_hidden_state
        return encoder(
            input_ids=inputs.clamp(0, self.vocabulary - 1), attention_mask=(inputs >= 0).long(), return_dict=True
        ).last_hidden_state

    def prefill(
        self, prompt: Tensor, tensors: Layers, encoded: Layers, hidden: Tensor | None, encoder_mask: Tensor | None
    ) -> Tensor:
        """Fill an empty cache with prompts; the logits after them. Token ids below zero are padding on the left."""
        length = prompt.shape[1]
        is_token = prompt >= 0
        cache = self._cache(tensors, encoded, None)
        inputs = {self.ids: prompt.clamp(0, self.vocabulary - 1)}
        if self.positions:
            padding = (prompt < 0).long().sum(-1, keepdim=True)
            inputs[self.positions] = (torch.arange(length, device=prompt.device)[None] - padding).clamp(min=0)
        if self.is_recurrent:
            inputs[self.mask] = is_token
        else:
            itself = torch.eye(length, dtype=torch.bool, device=prompt.device)  # or padding would attend to nothing
            inputs[self.mask] = _each_mask(self._masks(prompt, is_token, cache), lambda mask: _allow(mask, itself))
        return self._logits(inputs, cache, hidden, encoder_mask)

    def decode(
        self, step: Tensor, tensors: Layers, encoded: Layers, hidden: Tensor | None, encoder_mask: Tensor | None
    ) -> Tensor:
        """Add one token to each sequence; the logits after it. `step` is token, slot and first slot: [batch, 3]."""
        token, slot, first = step[:, 0:1], step[:, 1:2], step[:, 2:3]
        inputs = {self.ids: token.clamp(0, self.vocabulary - 1)}
        if self.is_recurrent:
            return self._logits(inputs, self._cache(tensors, encoded, None, has_previous=True), hidden, encoder_mask)
        capacity = tensors[0][0].shape[2]
        cache = self._cache(tensors, encoded, slot[0].clamp(0, capacity - 1), has_previous=True)
        if self.positions:
            inputs[self.positions] = (slot - first).clamp(0, capacity - 1)
        is_token = torch.arange(capacity, device=step.device)[None] >= first
        inputs[self.mask] = self._masks(token, is_token, cache)
        return self._logits(inputs, cache, hidden, encoder_mask)

    def reorder(self, order: Tensor, tensors: Layers) -> None:
        """Let each row of the cache continue another one."""
        for layer in tensors:
            for each in layer:
                each.copy_(each.index_select(0, order))

    def _logits(
        self, inputs: dict[str, Any], cache: Cache, hidden: Tensor | None, encoder_mask: Tensor | None
    ) -> Tensor:
        if hidden is not None:
            inputs["encoder_outputs"] = BaseModelOutput(last_hidden_state=hidden)
        if encoder_mask is not None:
            inputs["attention_mask"] = encoder_mask
        return self.forward(**inputs, **{self.shapes.argument: cache}, **self.options).logits[:, -1:]

    def _masks(self, tokens: Tensor, is_token: Tensor, cache: Cache) -> Any:
        """The masks of attention, as `generate` makes them for static caches."""
        shaped = torch.empty((*tokens.shape, 0), dtype=self.model.dtype, device=tokens.device)
        return self.create_masks(
            config=self.model.config, inputs_embeds=shaped, attention_mask=is_token, past_key_values=cache
        )

    def _cache(self, tensors: Layers, encoded: Layers, slot: Tensor | None, *, has_previous: bool = False) -> Cache:
        made = [self._layer(number, each, slot, has_previous) for number, each in enumerate(tensors)]
        if not encoded:
            return Cache(layers=made)
        kind = views.Encoded if has_previous else views.Prompt
        return EncoderDecoderCache(Cache(layers=made), Cache(layers=[kind(*each) for each in encoded]))

    def _layer(self, number: int, tensors: tuple[Tensor, ...], slot: Tensor | None, has_previous: bool) -> Any:
        shapes = self.shapes.layers[number]
        if isinstance(shapes, AttentionShapes):
            keys, values = tensors
            return views.Prompt(keys, values) if slot is None else views.NextToken(keys, values, slot)
        windows = len(shapes.windows)
        return views.recurrent(tensors[:windows], tensors[windows:], has_previous=has_previous)


def _each_mask(masks: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(masks, dict):
        return {kind: None if mask is None else change(mask) for kind, mask in masks.items()}
    return None if masks is None else change(masks)


def _allow(mask: Tensor, allowed: Tensor) -> Tensor:
    """A mask with further positions allowed; masks of attention are booleans, or numbers that are added."""
    return mask | allowed if mask.dtype is torch.bool else mask.masked_fill(allowed, 0)


def separate(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a method with a code object of its own: torch keeps and limits graphs by code object."""
    plain = function.__func__  # type: ignore[attr-defined]
    copied = types.FunctionType(plain.__code__.replace(), plain.__globals__, plain.__name__, plain.__defaults__)
    copied.__kwdefaults__ = plain.__kwdefaults__
    return types.MethodType(copied, function.__self__)  # type: ignore[attr-defined]
