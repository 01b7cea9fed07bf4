"""Inputs for any model of transformers, from its config and the arguments of its `forward`.

A table derives the values of each argument from the config. An argument is passed if it is required, or if it is
one of the model's inputs (text, image, audio …); all other arguments keep their defaults.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.errors import UserError
from torch_ttnn.zoo.inputs import Argument, Clip, Inputs, Numbers, Padded, Picture, Spectrogram, Tokens

TEXT_LENGTH = 128
DECODER_LENGTH = 16
IMAGE_SIZE = 224
SAMPLES = 16_000  # one second of sound


# Types of models that take any number of images with a text, or audio with a channel axis.
SEVERAL_IMAGES = frozenset("idefics2 idefics3 smolvlm modernvbert ultravbert".split())
CHANNELS_OF_SOUND = frozenset("encodec mimi dac mimi_encoder pe_audio".split())


class UnknownArgument(UserError, ValueError):
    """A model requires an argument that the table does not know."""


@dataclass(frozen=True)
class Boxes:
    """Boxes of tokens on a page: left, top, right and bottom from 0 to 1000."""

    length: int

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        corner = torch.randint(0, 500, (batch, length or self.length, 2), generator=generator, device="cpu")
        return torch.cat([corner, corner + 100], dim=-1)


@dataclass(frozen=True)
class Illustrated:
    """A text with placeholders for the features of an image."""

    vocabulary: int
    token: int  # the placeholder of an image feature
    places: int
    length: int = 32  # number of words

    def draw(self, generator: torch.Generator, batch: int, length: int | None) -> torch.Tensor:
        words = Tokens(min(self.vocabulary, self.token), length or self.length).draw(generator, batch, None)
        return torch.cat([torch.full((batch, self.places), self.token, device="cpu"), words], dim=1)


def inputs_of(cls: Any, config: Any) -> Inputs:
    """The inputs of a model class under a config."""
    parameters = inspect.signature(cls.forward).parameters
    keywords: dict[str, Argument] = {}
    for name, parameter in parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        needed = parameter.default is parameter.empty
        if name in ARGUMENTS and (needed or CARRIERS.get(name, _never)(cls, config)):
            keywords[name] = ARGUMENTS[name](config)
        elif needed:
            raise UnknownArgument(
                f"{cls.__name__} needs the argument {name!r}, which is not in the table; write a function that returns "
                "(model, inputs) and pass it as package.module:function"
            )
    if not keywords:
        raise UnknownArgument(f"none of the arguments of {cls.__name__} is in the table: {', '.join(parameters)}")
    return Inputs(keywords=_consistent(keywords, config))


def _consistent(keywords: dict[str, Argument], config: Any) -> dict[str, Argument]:
    """A text that comes with an image has placeholders for its features."""
    token = _find(config, "image_token_id", "image_token_index")
    if token is None or not {"input_ids", "pixel_values"} <= set(keywords):
        return keywords
    text = Illustrated(_vocabulary(config), token, _image_places(config))
    kept = {name: kind for name, kind in keywords.items() if name != "attention_mask"}
    return {**kept, "input_ids": text}


# -- settings of the config -------------------------------------------------------------------------------------------


def _find(config: Any, *names: str) -> Any:
    """A setting by one of its names, from the config or a nested one."""
    parts = [config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))]
    for part in parts:
        for name in names:
            if (value := getattr(part, name, None)) is not None:
                return value
    return None


def _part(config: Any, *names: str) -> Any:
    return next((part for name in names if (part := getattr(config, name, None)) is not None), config)


def _vocabulary(config: Any) -> int:
    text = _part(config, "text_config", "text_encoder", "decoder", "llm_config")
    return _find(text, "vocab_size") or _find(config, "vocab_size", "text_vocab_size") or 1000


def _text_length(config: Any) -> int:
    text = _part(config, "text_config", "text_encoder")
    positions = _find(text, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    room = positions - 2 if isinstance(positions, int) and positions > 8 else TEXT_LENGTH  # RoBERTa starts at 2
    # Block-wise attention (Longformer, BigBird, Reformer) needs whole blocks.
    return 1 << int(math.log2(min(room, TEXT_LENGTH)))


def _decoder_length(config: Any) -> int:
    return min(DECODER_LENGTH, _text_length(config))


def _size(config: Any) -> tuple[int, int]:
    value = _find(_part(config, "vision_config", "image_config", "encoder"), "image_size", "img_size", "input_size")
    if isinstance(value, dict):
        value = (value["height"], value["width"]) if "height" in value else value.get("shortest_edge")
    if isinstance(value, list | tuple) and len(value) >= 2:
        return int(value[-2]), int(value[-1])
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return (int(value), int(value)) if isinstance(value, int | float) and value else (IMAGE_SIZE, IMAGE_SIZE)


def _channels(config: Any) -> int:
    vision = _part(config, "vision_config", "image_config", "encoder")
    value = _find(vision, "num_channels", "in_channels", "in_chans", "n_channels")
    return value if isinstance(value, int) else 3


def _image_places(config: Any) -> int:
    stated = _find(config, "image_seq_length", "mm_tokens_per_image", "image_seq_len")
    if stated:
        return stated
    height, width = _size(config)
    patch = _find(config, "patch_size") or 14
    return (height // patch) * (width // patch)


def _pictures(config: Any) -> Argument:
    frames = getattr(config, "num_frames", None)
    if isinstance(frames, int) and frames > 1:
        return Clip(_channels(config), frames, *_size(config), frames_first=True)
    if config.model_type in SEVERAL_IMAGES:
        return Clip(_channels(config), 1, *_size(config), frames_first=True)
    return Picture(_channels(config), *_size(config))


def _films(config: Any) -> Argument:
    frames = _find(config, "frames_per_clip", "num_frames") or 16
    return Clip(_channels(config), frames, *_size(config), frames_first=True)


def _features(config: Any) -> Argument:
    """A spectrogram: bins before frames in Whisper, frames first in other models."""
    audio = _part(config, "audio_config", "speech_encoder", "encoder_config", "audio_encoder")
    positions = getattr(audio, "max_source_positions", None)
    bins = _find(audio, "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "feature_size") or 80
    if positions == 1500:
        return Spectrogram(bins, 2 * positions)
    return Numbers((512, bins))


def _sound(config: Any) -> Argument:
    bins = getattr(config, "num_mel_bins", None)
    frames = getattr(config, "max_length", None)
    if isinstance(bins, int) and isinstance(frames, int) and hasattr(config, "patch_size"):
        return Numbers((frames, bins))  # AST's values are a spectrogram
    return Numbers((1, SAMPLES) if config.model_type in CHANNELS_OF_SOUND else (SAMPLES,))


def _series(config: Any) -> Argument:
    steps = getattr(config, "context_length", None) or 512
    lags = getattr(config, "lags_sequence", None)
    channels: int = getattr(config, "num_input_channels", None) or getattr(config, "input_size", None) or 1
    long = steps + max(lags) if lags else steps
    return Numbers((long,)) if channels == 1 and lags else Numbers((long, channels))


ARGUMENTS: Mapping[str, Callable[[Any], Argument]] = {
    "input_ids": lambda config: Tokens(_vocabulary(config), _text_length(config)),
    "decoder_input_ids": lambda config: Tokens(_vocabulary(config), _decoder_length(config)),
    "attention_mask": lambda config: Padded(_text_length(config)),
    "bbox": lambda config: Boxes(_text_length(config)),
    "pixel_values": _pictures,
    "pixel_values_videos": _films,
    "input_features": _features,
    "input_values": _sound,
    "past_values": _series,
    "visual_feats": lambda config: Numbers((36, getattr(config, "visual_feat_dim", 2048))),
    "visual_pos": lambda config: Numbers((36, getattr(config, "visual_pos_dim", 4))),
    "hidden_states": lambda config: Numbers((TEXT_LENGTH, config.hidden_size)),
}


def _never(cls: Any, config: Any) -> bool:
    return False


def _reads_text(cls: Any, config: Any) -> bool:
    main = getattr(cls, "main_input_name", "input_ids")
    both = "pixel_values" in inspect.signature(cls.forward).parameters
    return main == "input_ids" or (both and _find(config, "vocab_size") is not None)


def _is_main(name: str) -> Callable[[Any, Any], bool]:
    return lambda cls, config: getattr(cls, "main_input_name", "") == name


def _sees(cls: Any, config: Any) -> bool:
    main = getattr(cls, "main_input_name", "")
    vision = any(hasattr(config, name) for name in ("vision_config", "image_config", "image_size"))
    return main == "pixel_values" or vision


def _has_decoder(cls: Any, config: Any) -> bool:
    return bool(getattr(config, "is_encoder_decoder", False)) or hasattr(config, "decoder")


def _masked(cls: Any, config: Any) -> bool:
    """Encoders get batches with padding, generators prompts without."""
    causal = cls.__name__.endswith(("ForCausalLM", "LMHeadModel"))
    return not causal and _reads_text(cls, config) and not _sees(cls, config)


CARRIERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "input_ids": _reads_text,
    "decoder_input_ids": _has_decoder,
    "attention_mask": _masked,
    "bbox": lambda cls, config: True,
    "pixel_values": _sees,
    "input_features": lambda cls, config: True,
    "input_values": _is_main("input_values"),
    "past_values": lambda cls, config: True,
}
