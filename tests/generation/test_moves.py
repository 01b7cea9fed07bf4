"""What crosses between host and device while a prepared model generates on `ttnn`."""

from __future__ import annotations

import pytest
import torch

import torch_ttnn
from tests.generation.small_models import DECODERS, model_of, prompt_of, uncompiled
from torch_ttnn.generation.prepare import Prepared, prepare_for_generation

GREEDY = {"do_sample": False}


def prepared_on_device(name: str) -> Prepared:
    return prepare_for_generation(model_of(name).to("ttnn"), _compile=uncompiled)


@pytest.mark.parametrize("name", DECODERS)
def test_token_ids_go_up_and_logits_come_down(name: str) -> None:
    """Further tokens add one upload each; only the logits of the last position are downloaded."""
    want = model_of(name).generate(**prompt_of(name, 9), max_new_tokens=12, **GREEDY)
    with prepared_on_device(name) as prepared:
        counts = []
        for new_tokens in (10, 10, 11, 12):
            with torch_ttnn.eager(strict=True) as log:
                got = prepared.model.generate(**prompt_of(name, 9), max_new_tokens=new_tokens, **GREEDY)
            counts.append((log.uploads, log.downloads))
        assert torch.equal(got, want)
        (first, second), third, last = counts[1], counts[2], counts[3]
        assert third[0] - first == last[0] - third[0] == 1
        assert third[1] - second == last[1] - third[1] == 1


def test_the_cache_stays_where_it_is() -> None:
    """Calls of the same size write into the same tensors."""
    with prepared_on_device("llama") as prepared:
        prepared.model.generate(**prompt_of("llama", 9), max_new_tokens=4, **GREEDY)
        slots = prepared._slots
        assert slots is not None and slots.layers[0][0].device.type == "ttnn"
        prepared.model.generate(**prompt_of("llama", 20), max_new_tokens=4, **GREEDY)
        assert prepared._slots is slots


def test_results_are_where_the_prompt_was() -> None:
    with prepared_on_device("gpt2") as prepared:
        prompt = prompt_of("gpt2", 5)["input_ids"]
        assert prepared.model.generate(prompt, max_new_tokens=2).device.type == "cpu"
        assert prepared.model.generate(prompt.to("ttnn"), max_new_tokens=2).device.type == "ttnn"
