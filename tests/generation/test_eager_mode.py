"""transformers' own `generate` on `ttnn`, operation by operation: the tokens of the CPU, whatever the cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import torch_ttnn
from tests.generation.forced import Forced, clear_draws, first_difference
from tests.generation.small_models import MODELS, model_of, padded_prompts, prompt_of
from torch_ttnn.zoo.sources import library

CALLS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "static cache": {"do_sample": False, "cache_implementation": "static"},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
}


@pytest.fixture(scope="module", params=MODELS)
def both(request: pytest.FixtureRequest) -> tuple[str, Any, Any]:
    """A name, the model on the CPU, and on `ttnn`."""
    return request.param, model_of(request.param), model_of(request.param).to("ttnn")


@pytest.mark.filterwarnings("ignore::torch_ttnn.HostOperationWarning")
@pytest.mark.parametrize("call", CALLS)
def test_tokens(both: tuple[str, Any, Any], call: str) -> None:
    name, model, moved = both
    prompt = prompt_of(name, 7)
    options = {"max_new_tokens": 10, **CALLS[call]}
    torch.manual_seed(3)
    want = model.generate(**prompt, **options)
    torch.manual_seed(3)
    got = moved.generate(**{key: each.to("ttnn") for key, each in prompt.items()}, **options)
    assert got.device.type == "ttnn"
    assert torch.equal(got.cpu(), want)


@pytest.mark.filterwarnings("ignore::torch_ttnn.HostOperationWarning")
def test_sampling(both: tuple[str, Any, Any]) -> None:
    """The tokens of the CPU up to the first draw that a rounding error of the logits may decide."""
    name, model, moved = both
    prompt, options = prompt_of(name, 7), {"max_new_tokens": 20, "do_sample": True, "top_k": 20}
    tokens, recorded = [], []
    for each, device in ((model, "cpu"), (moved, "ttnn")):
        torch.manual_seed(3)
        recorded.append(Forced())
        given = {key: tensor.to(device) for key, tensor in prompt.items()}
        tokens.append(each.generate(**given, **options, logits_processor=[recorded[-1]]).cpu()[0])
    want, got = tokens
    same = first_difference(want, got) - (len(want) - 20)
    logits, others = (each.logits() for each in recorded)
    error = (logits - others)[: same + 1].abs().max()
    assert error < 0.03 * logits.abs().max()
    assert same == 20 or not clear_draws(recorded[0], float(error), 20)[same]


@pytest.mark.parametrize("name", ("llama", "mamba"))
def test_prompts_on_the_host_keep_the_loop_there(name: str) -> None:
    model = model_of(name)
    prompts = padded_prompts((5, 9))
    want = model.generate(**prompts, max_new_tokens=6, do_sample=False)
    model.to("ttnn")
    with torch_ttnn.eager(strict=True):
        got = model.generate(**prompts, max_new_tokens=6, do_sample=False)
    assert got.device.type == "cpu" and torch.equal(got, want)


@pytest.mark.filterwarnings("ignore::torch_ttnn.HostOperationWarning")
def test_several_requests_in_one_batch() -> None:
    """transformers' continuous batching, with sizes that are given."""
    transformers = library("transformers")
    model, lengths = model_of("llama"), (5, 9)
    prompts = [prompt_of("llama", length)["input_ids"] for length in lengths]
    want = [model.generate(each, max_new_tokens=4, do_sample=False)[0, each.shape[1] :].tolist() for each in prompts]
    greedy = transformers.GenerationConfig(max_new_tokens=4, do_sample=False, eos_token_id=-1, pad_token_id=0)
    sizes = transformers.ContinuousBatchingConfig(page_size=32, num_blocks=8, max_batch_tokens=64)
    made = model.to("ttnn").generate_batch(
        inputs=[each[0].tolist() for each in prompts],
        generation_config=greedy,
        continuous_batching_config=sizes,
        progress_bar=False,
    )
    assert [each.generated_tokens for each in made.values()] == want
