"""Tokens per second of a generation: which steps count, and what they are compared with."""

from __future__ import annotations

import torch

import torch_ttnn
from tests.generation.small_models import model_of, prompt_of
from torch_ttnn.generation.figures import Phase, Recorder, Step


def test_steps_that_compile_are_left_out() -> None:
    """A next token takes the time since the one before, with sampling; the first of them compiled a program."""
    recorder = Recorder()
    recorder.begin(0)
    recorder.steps = [
        Step("prefill", 0.0, 5.0, 2, 64, programs=1),
        Step("decode", 5.0, 9.0, 2, 2, programs=2),
        Step("decode", 9.5, 10.0, 2, 2, programs=2),
        Step("decode", 10.5, 11.0, 2, 2, programs=2),
    ]
    assert recorder.phase("prefill") == Phase(0, 0.0) and recorder.phase("prefill").rate is None
    assert recorder.phase("decode") == Phase(4, 2.0) and recorder.phase("decode").rate == 2.0
    assert recorder.last_tokens("prefill", "decode") == 66


def test_figures_of_a_generation() -> None:
    torch._dynamo.reset()
    model = model_of("gpt2").to("ttnn")
    with torch_ttnn.prepare_for_generation(model) as prepared:
        model.generate(**prompt_of("gpt2", 9, batch=2), max_new_tokens=5, do_sample=False)
        first = prepared.figures
        model.generate(**prompt_of("gpt2", 9, batch=2), max_new_tokens=5, do_sample=False)
        later = prepared.figures
    assert (first.programs, first.compiled) == (2, 2) and (later.programs, later.compiled) == (2, 0)
    assert first.prefill.rate is None and later.prefill.rate and later.decode.rate
    assert (later.prefill.tokens, later.decode.tokens, later.new_tokens) == (18, 8, 10)
    assert (
        later.cache_bytes == 2 * 2 * 2 * 4 * 64 * 16 * 4
    )  # layers, keys and values, batch, heads, slots, width, bytes
    assert later.predicted_prefill and later.predicted_decode
    assert later.predicted_decode.board == "n150" and later.predicted_decode.tokens == 2
    assert later.predicted_decode.seconds > 0 and later.predicted_decode.rate < later.predicted_prefill.rate
    text = str(later)
    assert "predicted for the n150" in text and "10 new tokens; 2 programs; 0.1 MiB of cache" in text
    assert "compiled in this call" in str(first)
