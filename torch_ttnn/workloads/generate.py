"""Text from a model by name, with times: `torch-ttnn generate`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.errors import UserError
from torch_ttnn.generation.figures import Figures
from torch_ttnn.generation.lengths import bucket_of
from torch_ttnn.generation.prepare import prepare_for_generation
from torch_ttnn.zoo import catalog
from torch_ttnn.zoo.entry import ModelEntry
from torch_ttnn.zoo.sources import NotPublished, Transformers, library

WARM_TOKENS = 2  # compile both programs
Note = Callable[[str], None]


class NoText(UserError, ValueError):
    """A model that cannot generate."""


@dataclass(frozen=True)
class Generated:
    """What a model generated, and how fast."""

    model: str
    text: str
    tokens: list[int]
    weights: str
    compile_seconds: float
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def generate(
    name: str,
    prompt: str,
    new_tokens: int,
    *,
    weights: str | None = None,
    layers: int | None = None,
    dtype: torch.dtype = torch.bfloat16,
    seed: int = 0,
    sample: bool = False,
    beams: int = 1,
    note: Note,
    show: Note | None = None,
) -> Generated:
    """Generate after a prompt on `ttnn`; `show` gets text as it comes, `note` what a user must know."""
    entry = _entry(name, layers if weights is None else None)
    model, origin = _model(entry, name, weights, layers, seed, note)
    model = model.to(dtype)
    words = Words.of(origin, model.get_input_embeddings().weight.shape[0], note)
    inputs = words.inputs(prompt) if model.main_input_name == "input_ids" else _audio(entry, model, seed, note)
    length = inputs["input_ids"].shape[1] if "input_ids" in inputs else 1
    settings = {"do_sample": sample, "num_beams": beams, "use_cache": True}
    with prepare_for_generation(model, max_length=bucket_of(length) + new_tokens) as prepared:
        started = time.perf_counter()
        model.generate(**inputs, **settings, max_new_tokens=min(WARM_TOKENS, new_tokens))
        compile_seconds = time.perf_counter() - started
        torch.manual_seed(seed)
        streamer = Streamed(words, show) if show and beams == 1 else None
        made = model.generate(**inputs, **settings, max_new_tokens=new_tokens, streamer=streamer)
        skipped = 0 if model.config.is_encoder_decoder else length
        tokens = made[0, skipped:].tolist()
        text = words.text(tokens)
        if show and streamer is None:
            show(text)
        return Generated(entry.name, text, tokens, origin or f"random, seed {seed}", compile_seconds, prepared.figures)


def _entry(name: str, layers: int | None) -> ModelEntry:
    entry = catalog.resolve(name, layers=layers)
    if entry.source != "transformers":
        raise NoText(f"{name} is a model of {entry.source}; those of transformers generate text")
    return entry


def _model(
    entry: ModelEntry, name: str, weights: str | None, layers: int | None, seed: int, note: Note
) -> tuple[Any, str]:
    """The model and where its weights are from; an empty string if they are random."""
    if weights == "random":
        weights = None
        reason = "as requested"
    elif weights is not None:
        return _able(entry.build(weights)), weights
    else:
        published = _entry(name, None)
        try:
            return _able(published.build("pretrained")), _origin(published)
        except (NotPublished, OSError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    note(f"weights are random (seed {seed}), so the text means nothing: {reason}")
    return _able(_entry(name, layers).build(None, seed=seed, randomise=False)), ""


def _able(model: Any) -> Any:
    if not getattr(model, "can_generate", lambda: False)():
        raise NoText(
            f"{type(model).__name__} does not generate; name a class with a language head, such as GPT2LMHeadModel"
        )
    return model


def _origin(entry: ModelEntry) -> str:
    architecture = entry.architecture
    return architecture.hub if isinstance(architecture, Transformers) else getattr(architecture, "origin", "")


def _audio(entry: ModelEntry, model: Any, seed: int, note: Note) -> dict[str, Any]:
    """Inputs of a model that reads no text."""
    note(f"{entry.name} reads {model.main_input_name}, not text: they are random (seed {seed})")
    _, keywords = entry.inputs(seed)
    return {model.main_input_name: keywords[model.main_input_name]}


class Words:
    """Text to token ids and back; without a tokenizer, bytes are ids and new ids are shown as numbers."""

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary

    @classmethod
    def of(cls, origin: str, vocabulary: int, note: Note) -> Words:
        tokenizer = None
        if origin:
            try:
                tokenizer = library("transformers").AutoTokenizer.from_pretrained(origin)
            except (OSError, ValueError) as error:
                note(f"no tokenizer: {(str(error).strip().splitlines() or [''])[0]}")
        if tokenizer is None:
            note("without a tokenizer, the bytes of the prompt are its token ids, and new ids are shown as numbers")
        return cls(tokenizer, vocabulary)

    def inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        if self.tokenizer is not None:
            made = self.tokenizer(prompt, return_tensors="pt")
            found = {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}
        else:
            ids = torch.tensor([[byte % self.vocabulary for byte in prompt.encode()]], dtype=torch.long)
            found = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if not found["input_ids"].numel():
            raise NoText("the prompt is empty")
        return found

    def text(self, tokens: list[int]) -> str:
        if self.tokenizer is not None:
            return self.tokenizer.decode(tokens, skip_special_tokens=True)
        return " ".join(map(str, tokens))


class Streamed:
    """A streamer of `generate` that shows text as soon as it cannot change any more."""

    def __init__(self, words: Words, show: Note) -> None:
        self.words = words
        self.show = show
        self.tokens: list[int] = []
        self.shown = 0
        self.is_prompt = True

    def put(self, value: torch.Tensor) -> None:
        if self.is_prompt:
            self.is_prompt = False
            return
        self.tokens += value.flatten().tolist()
        text = self.words.text(self.tokens)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):  # the rest of a character follows
            self._show_up_to(text)

    def end(self) -> None:
        self._show_up_to(self.words.text(self.tokens))

    def _show_up_to(self, text: str) -> None:
        self.show(text[self.shown :])
        self.shown = len(text)
