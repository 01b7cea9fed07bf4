"""`prepare_for_generation`: lets `generate` of a transformers model run with programs and a cache on the device."""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.generation.configuration_utils import GenerationConfig, GenerationMode
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast

from torch_ttnn.generation.figures import Figures, Recorder, figures_of
from torch_ttnn.generation.lengths import bucket_of, padded
from torch_ttnn.generation.programs import Steps
from torch_ttnn.generation.runner import Compile, Runner, compiled
from torch_ttnn.generation.shapes import cache_shapes
from torch_ttnn.generation.state import DeviceCache, Size, Slots
from torch_ttnn.options import TorchTtnnOption

log = logging.getLogger("torch_ttnn")

Tensor = torch.Tensor
SAMPLED = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)
BEAMS = (GenerationMode.BEAM_SEARCH, GenerationMode.BEAM_SAMPLE)
# Arguments of `generate` that reach the model and that the programs take into account.
KNOWN = {"attention_mask", "position_ids", "decoder_attention_mask", "encoder_outputs", "logits_to_keep", "use_cache"}


def prepare_for_generation(
    model: Any,
    *,
    max_length: int = 0,
    options: TorchTtnnOption | Mapping[str, Any] | None = None,
    _compile: Compile | None = None,
) -> Prepared:
    """Let `model.generate` run on the device: two programs for all prompts of a bucket, three with an encoder.

    The model is moved to `ttnn` if it is elsewhere. `max_length` is the least length of prompt and answer that the
    cache is allocated for; it grows when a call needs more, which compiles the programs again.
    """
    return Prepared(model, max_length, TorchTtnnOption.of(options), _compile)


class Prepared:
    """A model whose `generate` runs with programs; `restore()`, or leaving it as a context, undoes that.

    figures  of the last call of `generate`: times and tokens per second, programs
    """

    def __init__(self, model: Any, max_length: int, options: TorchTtnnOption, compile: Compile | None) -> None:
        if isinstance(model.generate, _Replaced):
            raise ValueError("the model is prepared already; call restore() of what prepare_for_generation returned")
        if compile is None and model.device.type != "ttnn":
            model.to("ttnn")
        self.model = model
        self.least = max_length
        self.steps = Steps(model, cache_shapes(model))
        self.runner = Runner(self.steps, options, compile or compiled)
        self.recorder = Recorder()
        self._slots: Slots | None = None
        self._own = {name: getattr(model, name) for name in REPLACED}
        self._attach()

    # -- the model's methods ----------------------------------------------------------------------------------------

    def _attach(self) -> None:
        for name, method in REPLACED.items():
            setattr(self.model, name, _Replaced(self._own[name], functools.partial(method, self)))

    def restore(self) -> None:
        """Give the model its own methods back, and drop programs and cache."""
        for name in REPLACED:
            self.model.__dict__.pop(name, None)
        self.runner.drop()
        self._slots = None

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    @property
    def figures(self) -> Figures:
        """Tokens per second and programs of the last call of `generate`."""
        return figures_of(self.recorder, self.runner)

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        """Run the loop of `generate` on the host, where sampling and stopping are; results return to the inputs."""
        origin = _device_of(args, kwargs)
        self.recorder.begin(self.runner.count)
        made = self._own["generate"](*_on_host(args), **_on_host(kwargs))
        if isinstance(made, Tensor):
            return made if origin is None else made.to(origin)
        return self._handed_over(made)

    def _handed_over(self, made: Any) -> Any:
        """A result with the cache as transformers' own, which the caller may continue with."""
        for name, each in made.items() if isinstance(made, Mapping) else ():
            if isinstance(each, DeviceCache):
                made[name] = each.as_dynamic()
        self._slots = None  # they are part of the result now
        return made

    def _prepare_cache(
        self, config: GenerationConfig, model_kwargs: dict[str, Any], mode: Any, batch: int, max_cache_length: int
    ) -> None:
        reason = self._unsupported(config, model_kwargs, mode)
        if reason:
            log.warning("generate runs without prepared programs: %s", reason)
            self._own["_prepare_cache_for_generation"](config, model_kwargs, mode, batch, max_cache_length)
            return
        config.prefill_chunk_size = None
        model_kwargs[self.steps.shapes.argument] = DeviceCache(
            self.model.config, self.steps.shapes, max_cache_length + 1, self.runner.reorder
        )

    def _unsupported(self, config: GenerationConfig, model_kwargs: dict[str, Any], mode: Any) -> str:
        """Why transformers itself runs a call; an empty string if programs run it."""
        others = sorted(name for name, each in model_kwargs.items() if name not in KNOWN and isinstance(each, Tensor))
        if mode not in SAMPLED + BEAMS:
            return f"{mode.value} reads the logits of several tokens at once"
        if config.use_cache is False:
            return "use_cache is False"
        if config.output_attentions or config.output_hidden_states:
            return "attentions or hidden states are wanted"
        if model_kwargs.get(self.steps.shapes.argument) is not None:
            return "a cache is passed"
        if others:
            return f"the model gets {', '.join(others)}"
        return _unsupported_padding(model_kwargs)

    def _slots_for(self, prompts: Tensor, most_tokens: int, encoded: int) -> Slots:
        """The tensors of the last call if they suffice, because programs are compiled for their size."""
        batch, length = prompts.shape
        padded = bucket_of(length) if self.steps.can_pad else length
        slots = max(bucket_of(padded + most_tokens - length), bucket_of(self.least))
        needed = Size(batch, 0 if self.steps.is_recurrent else slots, encoded)
        if self._slots is None or not self._slots.size.fits(needed):
            self.least = needed.capacity
            self._slots = Slots(self.steps.shapes, needed, self.model.dtype, self.model.device)
        return self._slots

    def _encoded(
        self, inputs: Tensor, model_kwargs: dict[str, Any], input_name: str | None, config: GenerationConfig
    ) -> dict[str, Any]:
        if not self.steps.is_encoder_decoder or config.output_attentions or config.output_hidden_states:
            return self._own["_maybe_prepare_encoder_kwargs_for_generation"](inputs, model_kwargs, input_name, config)
        if model_kwargs.get("encoder_outputs") is None:
            if not inputs.is_floating_point():
                mask = model_kwargs.get("attention_mask")
                mask = torch.ones_like(inputs) if mask is None else mask
                inputs = padded(inputs.masked_fill(mask == 0, -1), right=True)
                model_kwargs["attention_mask"] = (inputs >= 0).long()
            started = time.perf_counter()
            hidden = self.runner.encode(inputs)
            self.recorder.ran("encode", started, inputs, self.runner.count)
            model_kwargs["encoder_outputs"] = BaseModelOutput(last_hidden_state=hidden)
        return model_kwargs

    def _decoder_ids(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """The first tokens of a decoder on the host: some models make them where their weights are."""
        ids, model_kwargs = self._own["_prepare_decoder_input_ids_for_generation"](*args, **kwargs)
        return ids.cpu(), {
            name: _on_host(each) if isinstance(each, Tensor) else each for name, each in model_kwargs.items()
        }

    def _inputs(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        cache = kwargs.get(self.steps.shapes.argument)
        if not isinstance(cache, DeviceCache):
            return self._own["prepare_inputs_for_generation"](input_ids, **kwargs)
        made = {self.steps.shapes.argument: cache}
        if cache.used:
            return made | {"tokens": input_ids[:, -1:]}
        if self.steps.is_encoder_decoder:
            cache.hidden = self.runner.uploaded(kwargs["encoder_outputs"][0])
            mask = kwargs.get("attention_mask")
            cache.encoder_mask = None if mask is None else self.runner.uploaded(mask)
        encoded = 0 if cache.hidden is None else cache.hidden.shape[1]
        cache.slots = self._slots_for(input_ids, cache.most_tokens, encoded)
        self.recorder.cache_bytes = cache.slots.nbytes
        mask = kwargs.get(self.steps.mask)
        return made | {"tokens": input_ids if mask is None else input_ids.masked_fill(mask == 0, -1)}

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        cache = kwargs.get(self.steps.shapes.argument)
        if not isinstance(cache, DeviceCache):
            return self._own["forward"](*args, **kwargs)
        tokens = kwargs["tokens"]
        self._check(tokens)
        started = time.perf_counter()
        if cache.used:
            logits, phase = self.runner.decode(tokens, cache), "decode"
        else:
            logits, phase = self.runner.prefill(tokens, cache), "prefill"
        self.recorder.ran(phase, started, tokens, self.runner.count)
        return CausalLMOutputWithPast(logits=logits)

    def _check(self, tokens: Tensor) -> None:
        """Raise torch's error for a token that the model does not have; programs clamp."""
        most = int(tokens.max())
        if most >= self.steps.vocabulary:
            raise IndexError(f"token {most} is out of range: the model has {self.steps.vocabulary} tokens")

    def _compiles_by_itself(self, model_kwargs: dict[str, Any], config: GenerationConfig) -> bool:
        """Whether transformers compiles the forward pass; never, because programs are compiled here."""
        return False


# The methods of a model that are replaced while it is prepared.
REPLACED: dict[str, Callable[..., Any]] = {
    "generate": Prepared._generate,
    "forward": Prepared._forward,
    "prepare_inputs_for_generation": Prepared._inputs,
    "_prepare_cache_for_generation": Prepared._prepare_cache,
    "_maybe_prepare_encoder_kwargs_for_generation": Prepared._encoded,
    "_prepare_decoder_input_ids_for_generation": Prepared._decoder_ids,
    "_valid_auto_compile_criteria": Prepared._compiles_by_itself,
}


class _Replaced:
    """A function in place of a method, with that method's signature, which transformers reads."""

    def __init__(self, own: Callable[..., Any], function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, own.__func__ if inspect.ismethod(own) else own)
        self.__signature__ = inspect.signature(own)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _unsupported_padding(model_kwargs: dict[str, Any]) -> str:
    for name in ("attention_mask", "decoder_attention_mask"):
        mask = model_kwargs.get(name)
        is_encoder = name == "attention_mask" and model_kwargs.get("encoder_outputs") is not None
        if mask is not None and not is_encoder and bool((mask[:, 1:] < mask[:, :-1]).any()):
            return "prompts have padding after a token"
    positions, mask = model_kwargs.get("position_ids"), model_kwargs.get("attention_mask")
    if positions is not None:
        usual = torch.arange(positions.shape[-1])[None] if mask is None else (mask.long().cumsum(-1) - 1).clamp(min=0)
        if positions.dim() != 2 or not torch.equal(positions, usual.expand_as(positions)):
            return "the model gets positions of its own"
    return ""


def _device_of(args: tuple, kwargs: dict[str, Any]) -> torch.device | None:
    return next((each.device for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), None)


def _on_host(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple([_on_host(each) for each in given])
    if type(given) is dict:
        return {name: _on_host(each) for name, each in given.items()}
    return given.cpu() if isinstance(given, Tensor) else given
