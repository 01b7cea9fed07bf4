"""Prepared models on `ttnn` with compiled programs: how many, what they move, and the tokens of eager float32."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import torch_ttnn
from tests.generation.forced import Forced, assert_agrees, logits_of
from tests.generation.real_models import MODELS as REAL_MODELS
from tests.generation.real_models import real_model, real_prompt
from tests.generation.small_models import MODELS, VOCABULARY, model_of, prompt_of
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.generation.prepare import Prepared

LENGTHS = (1, 7, 15, 31, 32)
TOKENS = 64
WITH_ENCODER = ("t5", "whisper")
UPLOADS = ("ttnn.from_torch", "ttnn.copy_host_to_device_tensor")
REPLAY = "ttnn.execute_trace"


@pytest.fixture(scope="module", params=MODELS)
def made(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Prepared]]:
    """A name, the model on the CPU, and the model prepared on `ttnn`."""
    torch._dynamo.reset()
    model = model_of(request.param).to("ttnn")
    with torch_ttnn.prepare_for_generation(model, max_length=128) as prepared:
        yield request.param, model_of(request.param), prepared


def programs_of(prepared: Prepared) -> list[Any]:
    return [program for each in prepared.runner.programs.values() for program in each.options.programs]


def test_prompts_of_a_bucket_share_two_programs(made: tuple[str, Any, Prepared]) -> None:
    """Three with an encoder; nothing in them runs on the host."""
    name, _, prepared = made
    for length in LENGTHS:
        prepared.model.generate(**prompt_of(name, length), max_new_tokens=4, do_sample=False)
    programs = programs_of(prepared)
    assert len(programs) == 2 + (name in WITH_ENCODER)
    assert not [node for program in programs for node in program.graph.nodes if REASON.on(node)]


def calls_of(prepared: Prepared, name: str, tokens: int) -> tuple[Counter[str], Counter[str]]:
    """The calls of a generation that reach the library, and the elements that each kind moves."""
    calls: Counter[str] = Counter()
    elements: Counter[str] = Counter()

    def heard(path: str, args: tuple, *_: Any) -> None:
        calls[path] += 1
        if path in (*UPLOADS, "ttnn.to_torch", "ttnn.copy"):
            elements[path] += math.prod(args[0].shape)

    with board_of().target.border.listening(heard):
        prepared.model.generate(**prompt_of(name, 9), max_new_tokens=tokens, do_sample=False)
    return calls, elements


def test_a_token_moves_its_id_and_its_logits(made: tuple[str, Any, Prepared]) -> None:
    """One small upload, one download, one replay; no element of the cache moves outside of it."""
    name, _, prepared = made
    for _ in range(2):  # allocates the cache, compiles, and captures
        calls_of(prepared, name, 16)
    (fewer, less), (calls, elements) = (calls_of(prepared, name, tokens) for tokens in (6, 16))
    further, moved = calls - fewer, elements - less
    assert sum(further[path] for path in UPLOADS) == 10
    assert further["ttnn.to_torch"] == further[REPLAY] == 10
    assert set(further) <= {*UPLOADS, "ttnn.to_torch", REPLAY, "ttnn.copy"}
    assert sum(moved[path] for path in UPLOADS) == 10 * 3
    assert moved["ttnn.copy"] <= 10 * (3 + 32)  # what is uploaded, and the mask of an encoder
    assert moved["ttnn.to_torch"] == 10 * VOCABULARY


def test_logits_and_tokens_are_those_of_eager_float32(made: tuple[str, Any, Prepared]) -> None:
    name, model, prepared = made
    prompt = prompt_of(name, 31)
    want = logits_of(model, prompt, TOKENS)
    forced = Forced(want.tokens)
    prepared.model.generate(**prompt, max_new_tokens=TOKENS, do_sample=False, logits_processor=[forced])
    got = logits_of(prepared.model, prompt, TOKENS)
    assert_agrees(want, forced.logits(), got.tokens)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_MODELS)
def test_models_of_published_sizes(name: str) -> None:
    torch._dynamo.reset()
    model, prompt = real_model(name), real_prompt(name)
    want = logits_of(model, prompt, TOKENS)
    with torch_ttnn.prepare_for_generation(model.to("ttnn")) as prepared:
        forced = Forced(want.tokens)
        model.generate(**prompt, max_new_tokens=TOKENS, do_sample=False, logits_processor=[forced])
        programs = programs_of(prepared)
        got = logits_of(model, prompt, TOKENS)
    assert_agrees(want, forced.logits(), got.tokens)
    assert len(programs) == 2 + name.startswith(WITH_ENCODER)
    assert not [node for program in programs for node in program.graph.nodes if REASON.on(node)]


def test_a_deleted_model_frees_the_device() -> None:
    torch._dynamo.reset()
    gc.collect()  # models of other tests
    before = torch.ttnn.memory_allocated()  # type: ignore[attr-defined]
    model = model_of("gpt2").to("ttnn")
    prepared = torch_ttnn.prepare_for_generation(model)
    model.generate(**prompt_of("gpt2", 9), max_new_tokens=3, do_sample=False)
    assert torch.ttnn.memory_allocated() > before  # type: ignore[attr-defined]
    del model, prepared
    torch._dynamo.reset()
    gc.collect()
    assert torch.ttnn.memory_allocated() == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("steps", [200, pytest.param(1_000, marks=pytest.mark.slow)])
def test_steps_leak_nothing(steps: int) -> None:
    """Memory of the device, and objects of the host, are the same after many tokens."""
    model = model_of("gpt2", n_positions=1_024).to("ttnn")
    with torch_ttnn.prepare_for_generation(model, max_length=1_024):

        def used(tokens: int) -> tuple[int, int]:
            model.generate(**prompt_of("gpt2", 9), max_new_tokens=tokens, do_sample=False)
            gc.collect()
            return torch.ttnn.memory_allocated(), len(gc.get_objects())  # type: ignore[attr-defined]

        used(8)
        device, objects = used(8)
        used(steps)
        later, more = used(8)
    assert later <= device
    assert more - objects < steps // 4  # some are made once
