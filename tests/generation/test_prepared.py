"""`prepare_for_generation` on the CPU: the tokens of plain `generate`, and few graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.generation.small_models import (
    DECODERS,
    MODELS,
    VOCABULARY,
    counting,
    model_of,
    padded_prompts,
    prompt_of,
    tokenizer,
    uncompiled,
)
from torch_ttnn.generation.prepare import prepare_for_generation

GREEDY = {"max_new_tokens": 20, "do_sample": False}
LENGTHS = (1, 7, 15, 31, 32)


@pytest.mark.parametrize("name", MODELS)
def test_prompts_of_a_bucket_share_two_graphs(name: str) -> None:
    model = model_of(name)
    prompts = [prompt_of(name, length) for length in LENGTHS]
    want = [model.generate(**prompt, **GREEDY) for prompt in prompts]
    graphs: list[int] = []
    prepare_for_generation(model, _compile=counting(graphs))
    for prompt, tokens in zip(prompts, want):
        assert torch.equal(model.generate(**prompt, **GREEDY), tokens)
    assert len(graphs) == 2 + (name in ("t5", "whisper"))


def test_a_longer_bucket_adds_a_graph_for_prompts_and_one_for_the_larger_cache() -> None:
    model = model_of("llama")
    want = model.generate(**prompt_of("llama", 40), **GREEDY)
    graphs: list[int] = []
    prepare_for_generation(model, max_length=128, _compile=counting(graphs))
    model.generate(**prompt_of("llama", 20), **GREEDY)
    assert torch.equal(model.generate(**prompt_of("llama", 40), **GREEDY), want)
    assert len(graphs) == 3  # max_length has room for both
    model.generate(**prompt_of("llama", 20), max_new_tokens=110)
    assert len(graphs) == 5


@pytest.fixture(params=MODELS)
def both(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Any]]:
    """A name, the model, and the same model prepared, without compiling."""
    prepared = model_of(request.param)
    with prepare_for_generation(prepared, _compile=uncompiled):
        yield request.param, model_of(request.param), prepared


def agree(both: tuple[str, Any, Any], prompt: dict[str, torch.Tensor], **options: Any) -> torch.Tensor:
    """The tokens, which must be those of the plain model."""
    _, model, prepared = both
    torch.manual_seed(3)
    want = model.generate(**prompt, **options)
    torch.manual_seed(3)
    got = prepared.generate(**prompt, **options)
    assert torch.equal(got, want)
    return got


def test_sampling_under_a_seed(both: tuple[str, Any, Any]) -> None:
    agree(both, prompt_of(both[0], 9), max_new_tokens=12, do_sample=True, top_k=20, top_p=0.9, temperature=2.0)


def test_beams(both: tuple[str, Any, Any]) -> None:
    agree(both, prompt_of(both[0], 9, batch=2), max_new_tokens=12, num_beams=3, num_return_sequences=2)


def test_beams_that_are_sampled(both: tuple[str, Any, Any]) -> None:
    agree(both, prompt_of(both[0], 9), max_new_tokens=8, num_beams=2, do_sample=True)


def test_end_tokens(both: tuple[str, Any, Any]) -> None:
    """A token that both sequences produce ends them, at different places."""
    tokens = agree(both, prompt_of(both[0], 9, batch=2), **GREEDY)
    end = int(tokens[0, -8])
    agree(both, prompt_of(both[0], 9, batch=2), eos_token_id=end, **GREEDY)


def test_a_static_cache_may_be_requested(both: tuple[str, Any, Any]) -> None:
    agree(both, prompt_of(both[0], 9), cache_implementation="static", **GREEDY)


def test_continuation_of_a_returned_cache(both: tuple[str, Any, Any]) -> None:
    """The result has transformers' own cache, with the values of the plain model's."""
    name, model, prepared = both
    options = {**GREEDY, "return_dict_in_generate": True}
    want, got = (each.generate(**prompt_of(name, 9), **options) for each in (model, prepared))
    assert torch.equal(got.sequences, want.sequences)
    if name == "whisper":
        return  # its `generate` returns caches of its own
    if name == "mamba":
        theirs, mine = (each.past_key_values.layers[1].recurrent_states[0] for each in (want, got))
    elif name == "t5":
        theirs, mine = (each.past_key_values.self_attention_cache.layers[1].keys for each in (want, got))
    else:
        theirs, mine = (each.past_key_values.layers[1].keys for each in (want, got))
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", (*DECODERS, "t5"))
def test_batches_with_padding(name: str) -> None:
    prompts = padded_prompts((5, 12, 9), left=name != "t5")
    model = model_of(name)
    want = model.generate(**prompts, **GREEDY)
    with prepare_for_generation(model, _compile=uncompiled):
        assert torch.equal(model.generate(**prompts, **GREEDY), want)


def test_windows_shorter_than_the_prompt() -> None:
    model = model_of("mistral")
    prompt = prompt_of("mistral", 50)
    want = model.generate(**prompt, max_new_tokens=40, do_sample=False)
    with prepare_for_generation(model, _compile=uncompiled):
        assert torch.equal(model.generate(**prompt, max_new_tokens=40, do_sample=False), want)


def test_layers_with_and_without_windows() -> None:
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8, "use_sliding_window": True}
    model = model_of("qwen2", **kinds)
    want = model.generate(**prompt_of("qwen2", 20), **GREEDY)
    with prepare_for_generation(model, _compile=uncompiled):
        assert torch.equal(model.generate(**prompt_of("qwen2", 20), **GREEDY), want)


@pytest.mark.parametrize("implementation", ("eager", "sdpa"))
def test_implementations_of_attention(implementation: str) -> None:
    model = model_of("llama", attn_implementation=implementation)
    prompts = padded_prompts((5, 12))
    want = model.generate(**prompts, **GREEDY)
    with prepare_for_generation(model, _compile=uncompiled):
        assert torch.equal(model.generate(**prompts, **GREEDY), want)


class Collected:
    """A streamer that keeps what it is given."""

    def __init__(self) -> None:
        self.values: list[list[int]] = []
        self.ended = False

    def put(self, value: torch.Tensor) -> None:
        self.values.append(value.flatten().tolist())

    def end(self) -> None:
        self.ended = True


def test_streamers_get_the_prompt_and_then_each_token() -> None:
    model, streamer = model_of("gpt2"), Collected()
    with prepare_for_generation(model, _compile=uncompiled):
        tokens = model.generate(**prompt_of("gpt2", 5), **GREEDY, streamer=streamer)
    assert [len(each) for each in streamer.values] == [5] + 20 * [1]
    assert [token for each in streamer.values for token in each] == tokens[0].tolist() and streamer.ended


def test_stop_strings() -> None:
    model, letters = model_of("gpt2"), tokenizer()
    prompt = prompt_of("gpt2", 5)
    plain = model.generate(**prompt, **GREEDY)
    stop = letters.decode(plain[0, 11:13])
    want = model.generate(**prompt, **GREEDY, stop_strings=[stop], tokenizer=letters)
    with prepare_for_generation(model, _compile=uncompiled):
        got = model.generate(**prompt, **GREEDY, stop_strings=[stop], tokenizer=letters)
    assert torch.equal(got, want) and got.shape[1] <= 13 < plain.shape[1]


@pytest.mark.parametrize("reason", ("use_cache", "assistant", "attentions", "positions", "right padding", "cache"))
def test_other_calls_are_left_to_transformers(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    model = model_of("llama")
    prompt: dict[str, Any] = prompt_of("llama", 6)
    options: dict[str, Any] = dict(GREEDY)
    if reason == "use_cache":
        options["use_cache"] = False
    if reason == "assistant":
        options["prompt_lookup_num_tokens"] = 2
    if reason == "attentions":
        options |= {"output_hidden_states": True, "return_dict_in_generate": True}
    if reason == "positions":
        prompt["position_ids"] = torch.arange(6)[None] + 3
    if reason == "right padding":
        prompt = padded_prompts((4, 6), left=False)

    def called() -> torch.Tensor:
        if reason == "cache":
            from transformers import DynamicCache

            options["past_key_values"] = DynamicCache(config=model.config)
        made = model.generate(**prompt, **options)
        return made if isinstance(made, torch.Tensor) else made.sequences

    want = called()
    with prepare_for_generation(model, _compile=uncompiled) as prepared:
        assert torch.equal(called(), want)
        assert prepared.runner.count == 0
    assert "without prepared programs" in caplog.text


def test_restoring_gives_the_model_its_methods_back() -> None:
    model = model_of("gpt2")
    before = dict(model.__dict__)
    prepared = prepare_for_generation(model, _compile=uncompiled)
    with pytest.raises(ValueError, match="prepared already"):
        prepare_for_generation(model, _compile=uncompiled)
    prepared.restore()
    assert model.__dict__ == before
    prepare_for_generation(model, _compile=uncompiled)


def test_the_plain_forward_pass_is_the_same() -> None:
    model = model_of("gpt2")
    prompt = prompt_of("gpt2", 6)
    want = model(**prompt).logits
    with prepare_for_generation(model, _compile=uncompiled):
        assert torch.equal(model(**prompt).logits, want)


def test_a_token_that_the_model_lacks_is_an_error() -> None:
    model = model_of("gpt2")
    with prepare_for_generation(model, _compile=uncompiled), pytest.raises(IndexError, match="token 211"):
        model.generate(torch.tensor([[5, VOCABULARY]]), **GREEDY)
